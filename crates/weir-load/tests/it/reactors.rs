//! What every reactor promises, tried on each of them with real sockets.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};
use weir_load::reactor::epoll::Epoll;
use weir_load::reactor::uring::{Uring, probe};
use weir_load::reactor::{ConnId, Event, Reactor, Route};

/// No test waits longer; none needs to.
const PATIENCE_NS: u64 = 20_000_000_000;

fn uring(connections: usize) -> Option<Uring> {
    match probe() {
        Ok(()) => Some(Uring::new(connections).unwrap()),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

macro_rules! every_reactor {
    ($($name:ident($connections:expr);)*) => {
        mod epoll {
            use super::Epoll;
            $(#[test]
            fn $name() {
                super::$name(Epoll::new($connections).unwrap());
            })*
        }

        mod uring {
            $(#[test]
            fn $name() {
                if let Some(reactor) = super::uring($connections) {
                    super::$name(reactor);
                }
            })*
        }
    };
}

every_reactor! {
    connects_or_says_why_not(3);
    echoes_on_many_connections(200);
    sends_more_than_anybody_takes_at_once(2);
    sends_and_receives_at_once(1);
    many_small_sends_arrive_in_order(1);
    a_closed_connection_is_never_heard_of(20);
    a_number_is_used_again_at_once(1);
    all_bytes_come_before_the_end(1);
    a_reset_is_told(1);
    discarded_content_is_counted(1);
    discarding_ends_with_the_connection(1);
    a_wait_ends(1);
    an_address_of_ones_own(1);
    a_connection_that_does_not_open_is_closed(64);
    every_close_is_seen_by_the_peer(50);
}

// ---- tools ------------------------------------------------------------------------------------

/// Turns until `done` has been given what it waits for.
fn turn_until<R: Reactor>(reactor: &mut R, mut done: impl FnMut(&mut R, Event) -> bool) {
    let deadline = reactor.now() + PATIENCE_NS;
    let mut over = false;
    while !over {
        let now = reactor.now();
        assert!(now < deadline, "nothing more happens");
        reactor.wait(deadline.min(now + 1_000_000_000));
        while let Some(event) = reactor.next() {
            over |= done(reactor, event);
        }
    }
}

/// Turns for a while, during which nothing may happen.
fn silence<R: Reactor>(reactor: &mut R, length: Duration) {
    let until = reactor.now() + length.as_nanos() as u64;
    while reactor.wait(until) < until {
        assert_eq!(reactor.next(), None);
    }
    assert_eq!(reactor.next(), None);
}

fn open<R: Reactor>(reactor: &mut R, conn: ConnId, peer: SocketAddr) {
    reactor.connect(conn, &Route::to(peer)).unwrap();
    turn_until(reactor, |_, event| {
        assert_eq!(event, Event::Connected(conn));
        true
    });
}

/// A server that handles each connection by `serve`, in a thread of its own. Ends with the last
/// of `connections`.
fn server(
    connections: usize,
    serve: impl Fn(TcpStream) + Send + Copy + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let streams = listener.incoming().take(connections).map(Result::unwrap);
        let threads: Vec<_> = streams
            .map(|stream| {
                stream
                    .set_read_timeout(Some(Duration::from_nanos(PATIENCE_NS)))
                    .unwrap();
                std::thread::spawn(move || serve(stream))
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
    (address, thread)
}

/// A connection and the other end of it.
fn pair<R: Reactor>(reactor: &mut R, conn: ConnId) -> TcpStream {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    open(reactor, conn, listener.local_addr().unwrap());
    let (stream, _) = listener.accept().unwrap();
    stream
        .set_read_timeout(Some(Duration::from_nanos(PATIENCE_NS)))
        .unwrap();
    stream
}

/// Bytes of which no two neighbouring parts are alike.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect()
}

/// Sends on whenever there is room; `sent` is how far it came.
fn send_on<R: Reactor>(reactor: &mut R, conn: ConnId, bytes: &[u8], sent: &mut usize) {
    *sent += reactor.send(conn, &bytes[*sent..]).unwrap();
}

// ---- opening ----------------------------------------------------------------------------------

fn connects_or_says_why_not<R: Reactor>(mut reactor: R) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let six = TcpListener::bind((std::net::Ipv6Addr::LOCALHOST, 0)).ok();
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let nobody = gone.local_addr().unwrap();
    drop(gone);
    let good = listener.local_addr().unwrap();
    reactor.connect(0, &Route::to(good)).unwrap();
    // Some kernels refuse at once, which is an answer, too.
    let refused_at_once = reactor.connect(1, &Route::to(nobody)) == Err(Errno::CONNREFUSED);
    let mut seen = Vec::new();
    turn_until(&mut reactor, |_, event| {
        seen.push(event);
        seen.len() == 2 - usize::from(refused_at_once)
    });
    assert!(seen.contains(&Event::Connected(0)), "{seen:?}");
    assert!(refused_at_once || seen.contains(&Event::ConnectFailed(1, Errno::CONNREFUSED)));
    // The number is free again.
    open(&mut reactor, 1, good);
    if let Some(six) = six {
        open(&mut reactor, 2, six.local_addr().unwrap());
    }
}

fn an_address_of_ones_own<R: Reactor>(mut reactor: R) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let route = Route {
        peer: listener.local_addr().unwrap(),
        source: Some(Ipv4Addr::new(127, 0, 0, 77).into()),
    };
    reactor.connect(0, &route).unwrap();
    turn_until(&mut reactor, |_, event| event == Event::Connected(0));
    let (_stream, from) = listener.accept().unwrap();
    assert_eq!(Some(from.ip()), route.source);
}

/// More connections than a listener that never accepts has room for: some stay in between.
fn a_connection_that_does_not_open_is_closed<R: Reactor>(mut reactor: R) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    rustix::net::bind(&socket, &any).unwrap();
    rustix::net::listen(&socket, 1).unwrap();
    let full = TcpListener::from(socket);
    let address = full.local_addr().unwrap();
    for conn in 0..64 {
        reactor.connect(conn, &Route::to(address)).unwrap();
    }
    let until = reactor.now() + 50_000_000;
    let mut opened = 0;
    while reactor.wait(until) < until {
        while let Some(event) = reactor.next() {
            assert!(matches!(event, Event::Connected(_)), "{event:?}");
            opened += 1;
        }
    }
    assert!(opened < 64);
    (0..64).for_each(|conn| reactor.close(conn));
    drop(full);
    // A SYN would be sent again after a second: nothing may come of the old ones.
    let stream = pair(&mut reactor, 63);
    silence(&mut reactor, Duration::from_millis(1200));
    drop(stream);
    turn_until(&mut reactor, |_, event| event == Event::Ended(63));
}

// ---- bytes ------------------------------------------------------------------------------------

fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 65536];
    while let Ok(read) = stream.read(&mut buffer) {
        if read == 0 || stream.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

fn echoes_on_many_connections<R: Reactor>(mut reactor: R) {
    const CONNECTIONS: usize = 200;
    const ROUNDS: usize = 20;
    let (address, thread) = server(CONNECTIONS, echo);
    for conn in 0..CONNECTIONS as ConnId {
        reactor.connect(conn, &Route::to(address)).unwrap();
    }
    let bytes = pattern(8192);
    // What each connection is to get back, how much of it came, and how often.
    let asked = |conn: ConnId, round: usize| {
        let at = (conn as usize * 31 + round * 977) % 4096;
        &bytes[at..at + 1 + (conn as usize * 17 + round * 401) % 4000]
    };
    let mut came = vec![(0, 0); CONNECTIONS];
    let mut done = 0;
    turn_until(&mut reactor, |reactor, event| {
        let conn = match event {
            Event::Connected(conn) => conn,
            Event::Received(conn) => {
                let (round, got) = &mut came[conn as usize];
                let part = reactor.received();
                let whole = asked(conn, *round);
                assert_eq!(part, &whole[*got..*got + part.len()]);
                *got += part.len();
                if *got < whole.len() {
                    return false;
                }
                (*round, *got) = (*round + 1, 0);
                conn
            }
            other => panic!("{other:?}"),
        };
        if came[conn as usize].0 == ROUNDS {
            done += 1;
        } else {
            let whole = asked(conn, came[conn as usize].0);
            assert_eq!(reactor.send(conn, whole).unwrap(), whole.len());
        }
        done == CONNECTIONS
    });
    drop(reactor);
    thread.join().unwrap();
}

fn sends_more_than_anybody_takes_at_once<R: Reactor>(mut reactor: R) {
    const BYTES: usize = 12 << 20;
    // Hesitates, reads everything, and says whether it was right.
    let (address, thread) = server(2, |mut stream| {
        std::thread::sleep(Duration::from_millis(100));
        let mut all = vec![0; BYTES];
        stream.read_exact(&mut all).unwrap();
        stream
            .write_all(&[u8::from(all == pattern(BYTES))])
            .unwrap();
    });
    let bytes = pattern(BYTES);
    let (mut sent, mut verdicts) = ([0; 2], 0);
    (0..2).for_each(|conn| open(&mut reactor, conn, address));
    for conn in [0, 1] {
        send_on(&mut reactor, conn, &bytes, &mut sent[conn as usize]);
        assert!(sent[conn as usize] < BYTES);
    }
    turn_until(&mut reactor, |reactor, event| {
        match event {
            Event::Writable(conn) => send_on(reactor, conn, &bytes, &mut sent[conn as usize]),
            Event::Received(_) => {
                assert_eq!(reactor.received(), [1]);
                verdicts += 1;
            }
            Event::Ended(_) => {}
            other => panic!("{other:?}"),
        }
        verdicts == 2
    });
    assert_eq!(sent, [BYTES; 2]);
    thread.join().unwrap();
}

fn sends_and_receives_at_once<R: Reactor>(mut reactor: R) {
    let bytes = pattern(6 << 20);
    let (address, thread) = server(1, echo);
    open(&mut reactor, 0, address);
    let (mut sent, mut got) = (0, 0);
    send_on(&mut reactor, 0, &bytes, &mut sent);
    turn_until(&mut reactor, |reactor, event| {
        match event {
            Event::Writable(0) => send_on(reactor, 0, &bytes, &mut sent),
            Event::Received(0) => {
                let part = reactor.received();
                assert!(part == &bytes[got..got + part.len()]);
                got += part.len();
            }
            other => panic!("{other:?}"),
        }
        got == bytes.len()
    });
    drop(reactor);
    thread.join().unwrap();
}

fn many_small_sends_arrive_in_order<R: Reactor>(mut reactor: R) {
    let bytes = pattern(10_000);
    let (address, thread) = server(1, echo);
    open(&mut reactor, 0, address);
    // Several within a turn, and in turns of their own.
    for (index, part) in bytes.chunks(100).enumerate() {
        assert_eq!(reactor.send(0, part).unwrap(), part.len());
        if index % 7 == 0 {
            reactor.wait(0);
        }
    }
    let mut got = Vec::new();
    turn_until(&mut reactor, |reactor, event| {
        assert_eq!(event, Event::Received(0));
        got.extend_from_slice(reactor.received());
        got.len() == bytes.len()
    });
    assert!(got == bytes);
    drop(reactor);
    thread.join().unwrap();
}

// ---- ends -------------------------------------------------------------------------------------

fn a_closed_connection_is_never_heard_of<R: Reactor>(mut reactor: R) {
    let mut streams: Vec<_> = (0..20).map(|conn| pair(&mut reactor, conn)).collect();
    for stream in &mut streams {
        stream.write_all(b"something").unwrap();
    }
    // Whoever is heard of first ends all others.
    let mut first = None;
    turn_until(&mut reactor, |reactor, event| {
        assert_eq!(first, None, "{event:?}");
        let Event::Received(conn) = event else {
            panic!("{event:?}");
        };
        assert_eq!(reactor.received(), b"something");
        (0..20)
            .filter(|other| *other != conn)
            .for_each(|other| reactor.close(other));
        first = Some(conn);
        true
    });
    for stream in &mut streams {
        // The peer of a closed connection may be told of it.
        let _ = stream.write_all(b"more");
    }
    let until = reactor.now() + 50_000_000;
    while reactor.wait(until) < until {
        while let Some(event) = reactor.next() {
            assert_eq!(Some(event), first.map(Event::Received));
        }
    }
}

fn a_number_is_used_again_at_once<R: Reactor>(mut reactor: R) {
    for round in 0..50u8 {
        let mut old = pair(&mut reactor, 0);
        old.write_all(&[0xff; 100]).unwrap();
        if round % 2 == 0 {
            let soon = reactor.now() + 1_000_000;
            reactor.wait(soon);
        }
        if round % 3 == 0 {
            let _ = reactor.send(0, b"to nobody").unwrap();
        }
        // Closed with bytes unread, and opened again within the turn.
        reactor.close(0);
        let mut new = pair(&mut reactor, 0);
        new.write_all(&[round; 10]).unwrap();
        let mut got = Vec::new();
        turn_until(&mut reactor, |reactor, event| {
            assert_eq!(event, Event::Received(0));
            got.extend_from_slice(reactor.received());
            got.len() == 10
        });
        assert_eq!(got, [round; 10]);
        reactor.close(0);
    }
}

fn all_bytes_come_before_the_end<R: Reactor>(mut reactor: R) {
    let bytes = pattern(3 << 20);
    let mut stream = pair(&mut reactor, 0);
    let copy = bytes.clone();
    let writer = std::thread::spawn(move || stream.write_all(&copy).unwrap());
    let mut got = 0;
    turn_until(&mut reactor, |reactor, event| match event {
        Event::Received(0) => {
            let part = reactor.received();
            assert!(part == &bytes[got..got + part.len()]);
            got += part.len();
            false
        }
        Event::Ended(0) => true,
        other => panic!("{other:?}"),
    });
    assert_eq!(got, bytes.len());
    writer.join().unwrap();
}

fn a_reset_is_told<R: Reactor>(mut reactor: R) {
    let stream = pair(&mut reactor, 0);
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    turn_until(&mut reactor, |_, event| {
        assert_eq!(event, Event::Failed(0, Errno::CONNRESET));
        true
    });
    // Sending on a broken connection is an error now or later, and nothing worse.
    let told = reactor.send(0, b"too late").is_err();
    reactor.wait(0);
    if !told {
        turn_until(&mut reactor, |_, event| {
            matches!(event, Event::Failed(0, _))
        });
    }
    reactor.close(0);
}

// ---- content that nobody looks at ---------------------------------------------------------------

const HEAD: usize = 100;
const CONTENT: usize = 5 << 20;

fn discarded_content_is_counted<R: Reactor>(mut reactor: R) {
    let (address, thread) = server(1, |mut stream| {
        let content = vec![0xee; CONTENT];
        let mut request = [0; 1];
        for round in 0..6u8 {
            stream.read_exact(&mut request).unwrap();
            stream.write_all(&[round; HEAD]).unwrap();
            // Together with the head or apart from it; in one piece or in several.
            for part in content.chunks(CONTENT >> round) {
                if round % 2 == 1 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                stream.write_all(part).unwrap();
            }
            stream.write_all(&[round | 0x80; HEAD]).unwrap();
        }
        // It is the reactor that closes.
        assert_eq!(stream.read(&mut request).unwrap(), 0);
    });
    open(&mut reactor, 0, address);
    for round in 0..6u8 {
        reactor.send(0, &[round]).unwrap();
        discard_one(&mut reactor, round);
    }
    drop(reactor);
    thread.join().unwrap();
}

/// One response: its head, content to be discarded, and what follows.
fn discard_one<R: Reactor>(reactor: &mut R, round: u8) {
    let (mut total, mut dropped) = (0, 0);
    let mut asked = false;
    turn_until(reactor, |reactor, event| {
        match event {
            Event::Received(0) => {
                let part = reactor.received().to_vec();
                for (at, byte) in (total..).zip(&part) {
                    let expected = match at {
                        0..HEAD => round,
                        _ if at < HEAD + CONTENT => 0xee,
                        _ => round | 0x80,
                    };
                    assert_eq!(*byte, expected, "byte {at} of round {round}");
                }
                total += part.len();
                if total >= HEAD && !asked {
                    asked = true;
                    reactor.discard(0, (HEAD + CONTENT - total) as u64);
                }
            }
            Event::Discarded(0, bytes) => {
                assert!(asked && bytes > 0);
                dropped += bytes;
                total += bytes as usize;
                assert!(total <= HEAD + CONTENT);
            }
            other => panic!("{other:?}"),
        }
        assert!(total <= CONTENT + 2 * HEAD);
        total == CONTENT + 2 * HEAD
    });
    assert!(dropped > 0, "all of round {round} was copied");
}

fn discarding_ends_with_the_connection<R: Reactor>(mut reactor: R) {
    let mut stream = pair(&mut reactor, 0);
    stream.write_all(&[1; 10]).unwrap();
    turn_until(&mut reactor, |reactor, event| {
        assert_eq!(event, Event::Received(0));
        reactor.discard(0, 1000);
        true
    });
    stream.write_all(&[2; 600]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut came = 0;
    turn_until(&mut reactor, |reactor, event| match event {
        Event::Discarded(0, bytes) => {
            came += bytes as usize;
            false
        }
        Event::Received(0) => {
            came += reactor.received().len();
            false
        }
        Event::Ended(0) => true,
        other => panic!("{other:?}"),
    });
    assert_eq!(came, 600);
    // The next connection of this number has nothing to discard.
    reactor.close(0);
    let mut stream = pair(&mut reactor, 0);
    stream.write_all(&[3; 50]).unwrap();
    turn_until(&mut reactor, |reactor, event| {
        assert_eq!(event, Event::Received(0));
        assert_eq!(reactor.received(), [3; 50]);
        true
    });
}

// ---- time, and what is left behind --------------------------------------------------------------

fn a_wait_ends<R: Reactor>(mut reactor: R) {
    // In the past: at once, with nothing.
    let now = reactor.now();
    let stamp = reactor.wait(now.saturating_sub(1));
    assert!(stamp >= now);
    assert_eq!(reactor.next(), None);
    // In the future: then, and not before, as nothing happens. More than a second has two parts.
    for wait in [1_000, 3_000_000, 1_020_000_000] {
        let until = reactor.now() + wait;
        assert!(reactor.wait(until) >= until);
        assert_eq!(reactor.next(), None);
    }
    // What is there already is told without a wait.
    let mut stream = pair(&mut reactor, 0);
    stream.write_all(b"here").unwrap();
    let until = reactor.now() + PATIENCE_NS;
    assert!(reactor.wait(until) < until);
    assert_eq!(reactor.next(), Some(Event::Received(0)));
}

/// Opens and closes in every state; the peers must see each of them end.
fn every_close_is_seen_by_the_peer<R: Reactor>(mut reactor: R) {
    const CONNECTIONS: usize = 50;
    const OPENED: usize = 3000;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // Greets, and hears the end of each connection before it accepts the next.
    let peer = std::thread::spawn(move || {
        let mut waiting: Vec<TcpStream> = Vec::new();
        for _ in 0..OPENED {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(b"hello");
            waiting.push(stream);
        }
        for stream in &mut waiting {
            stream
                .set_read_timeout(Some(Duration::from_nanos(PATIENCE_NS)))
                .unwrap();
            let mut rest = Vec::new();
            if let Err(error) = stream.read_to_end(&mut rest) {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
            }
        }
    });
    let (mut opened, mut open) = (0, 0);
    let mut ages: HashMap<ConnId, usize> = HashMap::new();
    for conn in 0..CONNECTIONS as ConnId {
        reactor.connect(conn, &Route::to(address)).unwrap();
    }
    opened += CONNECTIONS;
    open += CONNECTIONS;
    turn_until(&mut reactor, |reactor, event| {
        let (Event::Connected(conn) | Event::Received(conn)) = event else {
            panic!("{event:?}");
        };
        let age = ages.entry(conn).or_default();
        *age += 1;
        let close = match opened % 3 {
            // As soon as it is open, with a receive under way.
            0 => true,
            // With bytes received, and others on their way out.
            1 if event == Event::Received(conn) => {
                reactor.send(conn, b"good bye").unwrap();
                true
            }
            // After a discard was asked for.
            2 if event == Event::Received(conn) => {
                reactor.discard(conn, 77);
                true
            }
            _ => false,
        };
        if close {
            reactor.close(conn);
            open -= 1;
            if opened < OPENED {
                reactor.connect(conn, &Route::to(address)).unwrap();
                opened += 1;
                open += 1;
            }
        }
        open == 0
    });
    let until = reactor.now() + 1_000_000;
    while reactor.wait(until) < until {
        assert_eq!(reactor.next(), None);
    }
    peer.join().unwrap();
}
