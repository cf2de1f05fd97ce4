//! Guarantees of every reactor, tested on each of them with real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "all of this is tests, though not all of it is marked so"
)]

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_load::reactor::epoll::Epoll;
use weir_load::reactor::uring::{Uring, probe};
use weir_load::reactor::{ConnId, Event, Reactor, Route};

mod bytes;
mod content;
mod ends;
mod opening;

/// Time limit of a test's waits, nanoseconds.
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
    ($($part:ident::$name:ident($connections:expr);)*) => {
        mod epoll {
            use super::Epoll;
            $(#[test]
            fn $name() {
                super::$part::$name(Epoll::new($connections).unwrap());
            })*
        }

        mod uring {
            $(#[test]
            fn $name() {
                if let Some(reactor) = super::uring($connections) {
                    super::$part::$name(reactor);
                }
            })*
        }
    };
}

every_reactor! {
    opening::connects_or_says_why_not(3);
    opening::an_address_of_ones_own(1);
    opening::a_connection_that_does_not_open_is_closed(64);
    opening::a_wait_ends(1);
    bytes::echoes_on_many_connections(200);
    bytes::sends_more_than_anybody_takes_at_once(2);
    bytes::sends_and_receives_at_once(1);
    bytes::many_small_sends_arrive_in_order(1);
    content::discarded_content_is_counted(1);
    content::discarding_ends_with_the_connection(1);
    ends::a_closed_connection_is_never_heard_of(20);
    ends::a_number_is_used_again_at_once(1);
    ends::all_bytes_come_before_the_end(1);
    ends::a_reset_is_told(1);
    ends::an_answer_before_a_reset_is_heard(1);
    ends::a_close_by_reset_is_one_for_the_peer(1);
    ends::every_close_is_seen_by_the_peer(50);
}

/// Turns until `done` returns true.
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

/// Turns for `length`, during which no event may come.
fn silence<R: Reactor>(reactor: &mut R, length: Duration) {
    let until = reactor.now() + length.as_nanos() as u64;
    while reactor.wait(until) < until {
        assert_eq!(reactor.next(), None);
    }
    assert_eq!(reactor.next(), None);
}

/// Turns until the next event, which must be `expected`.
fn turn_to<R: Reactor>(reactor: &mut R, expected: Event) {
    turn_until(reactor, |_, event| {
        assert_eq!(event, expected);
        true
    });
}

/// Turns until `count` bytes have arrived on a connection; no other event may come.
fn receive<R: Reactor>(reactor: &mut R, conn: ConnId, count: usize) -> Vec<u8> {
    let mut received = Vec::new();
    turn_until(reactor, |reactor, event| {
        assert_eq!(event, Event::Received(conn));
        received.extend_from_slice(reactor.received());
        received.len() >= count
    });
    received
}

fn open<R: Reactor>(reactor: &mut R, conn: ConnId, peer: SocketAddr) {
    reactor.connect(conn, &Route::to(peer)).unwrap();
    turn_to(reactor, Event::Connected(conn));
}

/// Sets the read timeout of a stream to [`PATIENCE_NS`].
fn patient(stream: TcpStream) -> TcpStream {
    let patience = Some(Duration::from_nanos(PATIENCE_NS));
    stream.set_read_timeout(patience).unwrap();
    stream
}

/// Starts a server that handles each connection by `serve`, in a thread of its own. It ends after `connections`
/// connections.
fn server(
    connections: usize,
    serve: impl Fn(TcpStream) + Send + Copy + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let threads: Vec<_> = listener
            .incoming()
            .take(connections)
            .map(Result::unwrap)
            .map(|stream| std::thread::spawn(move || serve(patient(stream))))
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    (address, thread)
}

/// Opens a connection; returns its other end.
fn pair<R: Reactor>(reactor: &mut R, conn: ConnId) -> TcpStream {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    open(reactor, conn, listener.local_addr().unwrap());
    patient(listener.accept().unwrap().0)
}

/// Returns bytes in which no two neighbouring parts are alike.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}
