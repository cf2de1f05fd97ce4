//! Discarding of content.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use weir_load::reactor::{Event, Reactor};

use super::{open, pair, receive, server, turn_until};

const HEAD: usize = 100;
const CONTENT: usize = 5 << 20;

pub(super) fn discarded_content_is_counted<R: Reactor>(mut reactor: R) {
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

/// Receives one response: its head, content to be discarded, and the bytes after it.
fn discard_one<R: Reactor>(reactor: &mut R, round: u8) {
    let (mut total, mut dropped) = (0, 0);
    let mut discards = false;
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
                if total >= HEAD && !discards {
                    discards = true;
                    reactor.discard(0, (HEAD + CONTENT - total) as u64);
                }
            }
            Event::Discarded(0, bytes) => {
                assert!(discards && bytes > 0);
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

pub(super) fn discarding_ends_with_the_connection<R: Reactor>(mut reactor: R) {
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
    assert_eq!(receive(&mut reactor, 0, 50), [3; 50]);
}
