//! Sending and receiving: bytes arrive in order and complete.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use weir_load::reactor::{ConnId, Event, Reactor, Route};

use super::{open, pattern, receive, server, turn_until};

/// Sends as much as possible and adds it to `sent`, the number of bytes sent so far.
fn send_on<R: Reactor>(reactor: &mut R, conn: ConnId, bytes: &[u8], sent: &mut usize) {
    *sent += reactor.send(conn, &bytes[*sent..]).unwrap();
}

fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 65536];
    while let Ok(read) = stream.read(&mut buffer) {
        if read == 0 || stream.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

pub(super) fn echoes_on_many_connections<R: Reactor>(mut reactor: R) {
    const CONNECTIONS: usize = 200;
    const ROUNDS: usize = 20;
    let (address, thread) = server(CONNECTIONS, echo);
    for conn in 0..CONNECTIONS as ConnId {
        reactor.connect(conn, &Route::to(address)).unwrap();
    }
    let bytes = pattern(8192);
    // How often everything came to each connection, and how much of the next part.
    let mut came = vec![(0, 0); CONNECTIONS];
    let mut done = 0;
    turn_until(&mut reactor, |reactor, event| {
        let conn = match event {
            Event::Connected(conn) => conn,
            Event::Received(conn) => {
                let (round, got) = &mut came[conn as usize];
                let part = reactor.received();
                let wanted = choose_part(&bytes, conn, *round);
                assert_eq!(part, &wanted[*got..*got + part.len()]);
                *got += part.len();
                if *got < wanted.len() {
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
            let wanted = choose_part(&bytes, conn, came[conn as usize].0);
            assert_eq!(reactor.send(conn, wanted).unwrap(), wanted.len());
        }
        done == CONNECTIONS
    });
    drop(reactor);
    thread.join().unwrap();
}

/// Returns what a connection is to get back in a round.
fn choose_part(bytes: &[u8], conn: ConnId, round: usize) -> &[u8] {
    let at = (conn as usize * 31 + round * 977) % 4096;
    &bytes[at..at + 1 + (conn as usize * 17 + round * 401) % 4000]
}

pub(super) fn sends_more_than_anybody_takes_at_once<R: Reactor>(mut reactor: R) {
    const BYTES: usize = 12 << 20;
    // Hesitates, reads everything, and says whether it was right.
    let (address, thread) = server(2, |mut stream| {
        std::thread::sleep(Duration::from_millis(100));
        let mut all = vec![0; BYTES];
        stream.read_exact(&mut all).unwrap();
        stream.write_all(&[u8::from(all == pattern(BYTES))]).unwrap();
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

pub(super) fn sends_and_receives_at_once<R: Reactor>(mut reactor: R) {
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

pub(super) fn many_small_sends_arrive_in_order<R: Reactor>(mut reactor: R) {
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
    assert!(receive(&mut reactor, 0, bytes.len()) == bytes);
    drop(reactor);
    thread.join().unwrap();
}
