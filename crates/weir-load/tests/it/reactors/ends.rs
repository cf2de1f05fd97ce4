//! Ends of connections from either side, and their traces.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use weir_load::reactor::{ConnId, Event, Reactor, Route};

use super::{pair, patient, pattern, receive, turn_to, turn_until};

pub(super) fn a_closed_connection_is_never_heard_of<R: Reactor>(mut reactor: R) {
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
        (0..20).filter(|other| *other != conn).for_each(|other| reactor.close(other));
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

pub(super) fn a_number_is_used_again_at_once<R: Reactor>(mut reactor: R) {
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
        assert_eq!(receive(&mut reactor, 0, 10), [round; 10]);
        // What the old connection had still to send does not reach the new one's peer.
        reactor.send(0, b"new").unwrap();
        reactor.wait(0);
        let mut received = [0; 3];
        new.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"new");
        reactor.close(0);
    }
}

pub(super) fn all_bytes_come_before_the_end<R: Reactor>(mut reactor: R) {
    let bytes = pattern(3 << 20);
    let mut stream = pair(&mut reactor, 0);
    let copy = bytes.clone();
    let writer = std::thread::spawn(move || stream.write_all(&copy).unwrap());
    let mut received_bytes = 0;
    turn_until(&mut reactor, |reactor, event| match event {
        Event::Received(0) => {
            let part = reactor.received();
            assert!(part == &bytes[received_bytes..received_bytes + part.len()]);
            received_bytes += part.len();
            false
        }
        Event::Ended(0) => true,
        other => panic!("{other:?}"),
    });
    assert_eq!(received_bytes, bytes.len());
    writer.join().unwrap();
}

pub(super) fn a_reset_is_told<R: Reactor>(mut reactor: R) {
    let stream = pair(&mut reactor, 0);
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    turn_to(&mut reactor, Event::Failed(0, Errno::CONNRESET));
    // Sending on a broken connection is an error now or later, and nothing worse.
    if reactor.send(0, b"too late").is_ok() {
        turn_until(&mut reactor, |_, event| matches!(event, Event::Failed(0, _)));
    }
    reactor.close(0);
}

/// The peer answers before it has read everything, as who refuses content does.
pub(super) fn an_answer_before_a_reset_is_heard<R: Reactor>(mut reactor: R) {
    let request = pattern(16 << 20);
    for _ in 0..20 {
        let mut stream = pair(&mut reactor, 0);
        let mut sent = reactor.send(0, &request).unwrap();
        reactor.wait(0);
        stream.read_exact(&mut [0; 1000]).unwrap();
        stream.write_all(b"refused").unwrap();
        // With bytes unread, which makes it a reset.
        drop(stream);
        sent += reactor.send(0, &request[sent..]).unwrap();
        let mut received = Vec::new();
        turn_until(&mut reactor, |reactor, event| {
            match event {
                Event::Received(0) => received.extend_from_slice(reactor.received()),
                Event::Writable(0) => sent += reactor.send(0, &request[sent..]).unwrap(),
                Event::Failed(0, Errno::CONNRESET | Errno::PIPE) => {}
                other => panic!("{other:?}"),
            }
            matches!(event, Event::Failed(..))
        });
        assert_eq!(received, b"refused");
        reactor.close(0);
    }
}

/// Nothing is unread on either side: that would cause a reset in any case.
pub(super) fn a_close_by_reset_is_one_for_the_peer<R: Reactor>(mut reactor: R) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let peer = listener.local_addr().unwrap();
    for [brief, reset] in [[false, false], [false, true], [true, false], [true, true]] {
        let route = Route { brief, reset, ..Route::to(peer) };
        reactor.connect(0, &route).unwrap();
        turn_to(&mut reactor, Event::Connected(0));
        let mut stream = patient(listener.accept().unwrap().0);
        stream.write_all(b"all").unwrap();
        receive(&mut reactor, 0, 3);
        reactor.close(0);
        reactor.wait(0);
        let end = stream.read(&mut [0; 1]).map_err(|error| error.kind());
        let expected = if reset { Err(std::io::ErrorKind::ConnectionReset) } else { Ok(0) };
        assert_eq!(end, expected, "brief {brief}");
    }
}

/// Opens and closes connections in every state; the peers must see each of them end.
pub(super) fn every_close_is_seen_by_the_peer<R: Reactor>(mut reactor: R) {
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
        for stream in waiting {
            let mut remaining = Vec::new();
            if let Err(error) = patient(stream).read_to_end(&mut remaining) {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
            }
        }
    });
    let (mut opened, mut open) = (CONNECTIONS, CONNECTIONS);
    for conn in 0..CONNECTIONS as ConnId {
        reactor.connect(conn, &Route::to(address)).unwrap();
    }
    turn_until(&mut reactor, |reactor, event| {
        let (Event::Connected(conn) | Event::Received(conn)) = event else {
            panic!("{event:?}");
        };
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
