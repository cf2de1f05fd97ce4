//! Tests with too few buffers and slots. Behaviour common to all reactors is tested with the crate's other tests on
//! real sockets.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

const TINY: Sizes = Sizes { buffers: 4, buffer_bytes: 64, slots: 2, requests: 4, completions: 8 };

fn tiny(connections: usize) -> Option<Uring> {
    match probe() {
        Ok(()) => Some(Uring::with(connections, TINY).unwrap()),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

/// Returns the events of the next batch that has any, with the bytes received.
fn turn(reactor: &mut Uring) -> Vec<(Event, Vec<u8>)> {
    let deadline = reactor.now() + PATIENCE.as_nanos() as u64;
    let mut events = Vec::new();
    while events.is_empty() {
        assert!(reactor.wait(deadline) < deadline, "nothing more happens");
        while let Some(event) = reactor.next() {
            let bytes = match event {
                Event::Received(_) => reactor.received().to_vec(),
                _ => Vec::new(),
            };
            events.push((event, bytes));
        }
    }
    events
}

/// Opens connections all at once; returns the accepted streams.
fn open(reactor: &mut Uring, connections: ConnId) -> Vec<TcpStream> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let route = Route::to(listener.local_addr().unwrap());
    let mut opened = 0;
    (0..connections).for_each(|conn| reactor.connect(conn, &route).unwrap());
    while opened < connections {
        for (event, _) in turn(reactor) {
            assert!(matches!(event, Event::Connected(_)), "{event:?}");
            opened += 1;
        }
    }
    (0..connections)
        .map(|_| {
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream
        })
        .collect()
}

/// Sorts the accepted streams by connection, identified by a byte that each connection sends.
fn in_order(reactor: &mut Uring, streams: Vec<TcpStream>) -> Vec<TcpStream> {
    let count = streams.len();
    let mut waiting: Vec<ConnId> = (0..count as ConnId).collect();
    for _ in 0..100 * count {
        waiting.retain(|conn| reactor.send(*conn, &[*conn as u8]).unwrap() == 0);
        let until = reactor.now();
        reactor.wait(until);
        while reactor.next().is_some() {}
    }
    assert!(waiting.is_empty(), "no slot for {waiting:?}");
    reactor.wait(0);
    let mut numbered: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            let mut number = [0; 1];
            stream.read_exact(&mut number).unwrap();
            (number[0], stream)
        })
        .collect();
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, stream)| stream).collect()
}

/// Asserts that nothing is in use and nothing is lost: all slots are free. All buffers are free too, shown by as many
/// receives as there are buffers without a shortage.
fn assert_all_free(reactor: &mut Uring) {
    for _ in 0..10 {
        reactor.wait(0);
        while reactor.next().is_some() {}
    }
    reactor.wait(0);
    assert_eq!(reactor.outbox.free(), usize::from(TINY.slots));
    let mut stream = open(reactor, 1).remove(0);
    let starved = reactor.starved();
    let mut received = 0;
    let capacity = usize::from(TINY.buffers) * TINY.buffer_bytes as usize;
    stream.write_all(&vec![7; capacity]).unwrap();
    while received < capacity {
        for (event, bytes) in turn(reactor) {
            assert_eq!(event, Event::Received(0));
            received += bytes.len();
        }
    }
    assert_eq!(reactor.starved(), starved);
    reactor.close(0);
}

/// Sends several times the size of all buffers over each connection; returns how often a receive had no buffer. `None`
/// if io_uring does not work here.
fn more_than_the_buffers_hold(connections: usize) -> Option<u64> {
    const BYTES: usize = 5000;
    let mut reactor = tiny(connections)?;
    let streams = open(&mut reactor, connections as ConnId);
    let mut streams = in_order(&mut reactor, streams);
    for (conn, stream) in streams.iter_mut().enumerate() {
        let bytes: Vec<u8> = (0..BYTES).map(|at| pattern_byte(conn, at)).collect();
        stream.write_all(&bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let mut received = vec![0; connections];
    let mut ended = 0;
    while ended < connections {
        for (event, bytes) in turn(&mut reactor) {
            match event {
                Event::Received(conn) => {
                    let at = &mut received[conn as usize];
                    for came in bytes {
                        assert_eq!(came, pattern_byte(conn as usize, *at), "byte {at} of {conn}");
                        *at += 1;
                    }
                }
                Event::Ended(conn) => {
                    assert_eq!(received[conn as usize], BYTES);
                    ended += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let starved = reactor.starved();
    (0..connections as ConnId).for_each(|conn| reactor.close(conn));
    assert_all_free(&mut reactor);
    Some(starved)
}

fn pattern_byte(conn: usize, at: usize) -> u8 {
    (conn * 31 + at * 7 + at / 256) as u8
}

#[test]
fn without_a_buffer_bytes_wait_in_the_kernel() {
    let connections = 10;
    if let Some(starved) = more_than_the_buffers_hold(connections) {
        assert!(starved > connections as u64, "{starved}");
    }
}

#[test]
fn with_a_buffer_each_a_connection_starves_once_at_most() {
    let connections = usize::from(TINY.buffers);
    if let Some(starved) = more_than_the_buffers_hold(connections) {
        assert!((1..=connections as u64).contains(&starved), "{starved}");
    }
}

/// Thirty connections share two slots; half of them send more than a slot holds.
#[test]
fn without_a_slot_senders_wait_for_their_turn() {
    const CONNECTIONS: usize = 30;
    let Some(mut reactor) = tiny(CONNECTIONS) else {
        return;
    };
    let streams = open(&mut reactor, CONNECTIONS as ConnId);
    let streams = in_order(&mut reactor, streams);
    let readers: Vec<_> = (0..)
        .zip(streams)
        .map(|(conn, mut stream)| {
            std::thread::spawn(move || {
                let mut all = vec![0; build_message(conn).len()];
                stream.read_exact(&mut all).unwrap();
                assert!(all == build_message(conn));
                stream
            })
        })
        .collect();
    let mut sent = [0; CONNECTIONS];
    for (conn, sent) in sent.iter_mut().enumerate() {
        *sent = reactor.send(conn as ConnId, &build_message(conn)).unwrap();
    }
    assert!(sent.contains(&0));
    while (0..CONNECTIONS).any(|conn| sent[conn] < build_message(conn).len()) {
        for (event, _) in turn(&mut reactor) {
            let Event::Writable(conn) = event else {
                panic!("{event:?}");
            };
            let at = conn as usize;
            assert!(sent[at] < build_message(at).len());
            sent[at] += reactor.send(conn, &build_message(at)[sent[at]..]).unwrap();
        }
    }
    while readers.iter().any(|reader| !reader.is_finished()) {
        let until = reactor.now() + 1_000_000;
        reactor.wait(until);
        assert_eq!(reactor.next(), None);
    }
    let streams = readers.into_iter().map(|reader| reader.join().unwrap());
    assert_eq!(streams.collect::<Vec<_>>().len(), CONNECTIONS);
    (0..CONNECTIONS as ConnId).for_each(|conn| reactor.close(conn));
    assert_all_free(&mut reactor);
}

fn build_message(conn: usize) -> Vec<u8> {
    vec![conn as u8; 10 + conn % 2 * 100_000]
}

/// Bytes arrive for connections that are closed in the same turn, before their events are returned.
#[test]
fn bytes_that_nobody_takes_leave_no_buffer_behind() {
    let Some(mut reactor) = tiny(3) else {
        return;
    };
    for _ in 0..usize::from(TINY.buffers) {
        let mut streams = open(&mut reactor, 3);
        // So that all receives are under way when bytes come.
        reactor.wait(0);
        assert_eq!(reactor.next(), None);
        for stream in &mut streams {
            stream.write_all(b"for nobody").unwrap();
        }
        let until = reactor.now() + 1_000_000_000;
        reactor.wait(until);
        assert!(matches!(reactor.next(), Some(Event::Received(_))));
        (0..3).for_each(|conn| reactor.close(conn));
        assert_eq!(reactor.next(), None);
    }
    assert_all_free(&mut reactor);
}

/// Brief connections whose peer has or has not closed, with or without bytes before, and closed in order or by a reset:
/// checks whether the socket is left for the next connection. All have the same number, one after the other.
#[test]
fn a_socket_is_left_by_a_connection_that_is_over_or_is_reset() {
    let Some(mut reactor) = tiny(1) else {
        return;
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let from = Ipv4Addr::new(127, 0, 0, 77);
    let rows = [
        (true, 0, false, true),
        (true, 0, false, true),
        (false, 0, false, false),
        (true, 7, false, true),
        (false, 0, true, true),
        (true, 7, true, true),
        (true, 0, true, true),
    ];
    let mut before = None;
    for row @ (ends, unread, reset, is_left) in rows {
        let mut route = Route::to(listener.local_addr().unwrap());
        (route.source, route.brief, route.reset) = (Some(from.into()), true, reset);
        reactor.connect(0, &route).unwrap();
        assert_eq!(turn(&mut reactor), [(Event::Connected(0), Vec::new())], "{row:?}");
        let (mut stream, peer) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(peer.ip(), from, "{row:?}");
        assert_ne!(before.replace(peer), Some(peer), "a port of its own: {row:?}");
        assert_eq!(reactor.send(0, b"ask").unwrap(), 3);
        reactor.wait(0);
        stream.read_exact(&mut [0; 3]).unwrap();
        stream.write_all(&vec![1; 64 + unread]).unwrap();
        if ends {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
        // Closed while its event is handled: afterwards it would receive again.
        let deadline = reactor.now() + PATIENCE.as_nanos() as u64;
        while reactor.next() != Some(Event::Received(0)) {
            assert!(reactor.wait(deadline) < deadline, "{row:?}");
        }
        reactor.close(0);
        assert_eq!(reactor.brief[0].as_ref().unwrap().left.is_some(), is_left, "{row:?}");
        reactor.wait(0);
        let end = stream.read(&mut [0; 1]).map_err(|error| error.kind());
        let expected = if reset { Err(std::io::ErrorKind::ConnectionReset) } else { Ok(0) };
        assert_eq!(end, expected, "{row:?}");
    }
}

/// Closes connections in every possible state. The thread has its own table of descriptors, so that no other test opens
/// any in it.
#[test]
fn nothing_is_left_of_closed_connections() {
    let test = std::thread::spawn(|| {
        crate::sys::own_descriptor_table().unwrap();
        let Some(mut reactor) = tiny(4) else {
            return;
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let route = Route::to(listener.local_addr().unwrap());
        let before = count_descriptors();
        for round in 0..2000u32 {
            for conn in 0..4 {
                reactor.connect(conn, &route).unwrap();
            }
            let mut streams: Vec<TcpStream> = Vec::new();
            for step in 0..round % 5 {
                if streams.is_empty() && step > 0 {
                    streams = (0..4).map(|_| listener.accept().unwrap().0).collect();
                    let mut written = streams.iter_mut().map(|stream| stream.write_all(&[1; 100]));
                    assert!(written.all(|written| written.is_ok()));
                }
                let until = reactor.now() + 200_000;
                reactor.wait(until);
                while let Some(event) = reactor.next() {
                    match event {
                        Event::Connected(conn) => drop(reactor.send(conn, &[2; 40_000])),
                        Event::Received(conn) if conn > 1 => reactor.discard(conn, 70),
                        // Closed while its event is handled.
                        Event::Received(conn) if round % 2 == 0 => reactor.close(conn),
                        _ => {}
                    }
                }
            }
            (0..4).for_each(|conn| reactor.close(conn));
            // Those that were not accepted yet, so that the backlog does not fill.
            while streams.is_empty() && round % 5 < 2 && round % 5 > 0 {
                reactor.wait(0);
                streams = (0..4).map(|_| listener.accept().unwrap().0).collect();
            }
        }
        drop(listener);
        assert!(reactor.sockets.iter().all(|socket| socket.fd.is_none()));
        assert_all_free(&mut reactor);
        for _ in 0..10 {
            reactor.wait(0);
            assert_eq!(reactor.next(), None);
        }
        // The listener has gone.
        assert_eq!(count_descriptors(), before - 1);
    });
    test.join().unwrap();
}

fn count_descriptors() -> usize {
    std::fs::read_dir("/proc/thread-self/fd").unwrap().count()
}

/// Linux before 6.12 takes durations instead of deadlines.
#[test]
fn a_wait_by_duration_ends_too() {
    let Some(mut reactor) = tiny(1) else {
        return;
    };
    reactor.ring.by_duration();
    let mut stream = open(&mut reactor, 1).remove(0);
    for wait in [1_000, 3_000_000, 1_020_000_000] {
        let until = reactor.now() + wait;
        assert!(reactor.wait(until) >= until);
        assert_eq!(reactor.next(), None);
    }
    stream.write_all(b"here").unwrap();
    assert_eq!(turn(&mut reactor), [(Event::Received(0), b"here".to_vec())]);
}

#[test]
fn dropping_closes_what_is_open() {
    let Some(mut reactor) = tiny(40) else {
        return;
    };
    let streams = open(&mut reactor, 40);
    drop(reactor);
    for mut stream in streams {
        // Not `read`: what ends with the ring may interrupt a system call of its thread.
        assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}

#[test]
#[should_panic(expected = "assertion failed")]
fn no_index_leaves_the_mapping() {
    let mapping = memory::Mapping::new(4096).unwrap();
    assert!(!mapping.at(4095, 1).is_null());
    mapping.at(4095, 2);
}

/// An idle connection costs this and a few bytes for its queue in the outbox.
#[test]
fn an_idle_connection_is_small() {
    assert!(size_of::<Socket>() <= 24);
}
