//! Opening of connections: accepted, refused, unanswered; and the clock.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use weir_load::reactor::{Event, Reactor, Route};

use super::{PATIENCE_NS, open, pair, silence, turn_until};

pub(super) fn connects_or_says_why_not<R: Reactor>(mut reactor: R) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let six = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok();
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let nobody = closed.local_addr().unwrap();
    drop(closed);
    let good = listener.local_addr().unwrap();
    reactor.connect(0, &Route::to(good)).unwrap();
    // Some kernels refuse at once, which is an answer, too.
    let refused_at_once = reactor.connect(1, &Route::to(nobody)) == Err(Errno::CONNREFUSED);
    let mut events = Vec::new();
    turn_until(&mut reactor, |_, event| {
        events.push(event);
        events.len() == 2 - usize::from(refused_at_once)
    });
    assert!(events.contains(&Event::Connected(0)), "{events:?}");
    assert!(refused_at_once || events.contains(&Event::ConnectFailed(1, Errno::CONNREFUSED)));
    // The number is free again.
    open(&mut reactor, 1, good);
    if let Some(six) = six {
        open(&mut reactor, 2, six.local_addr().unwrap());
    }
}

pub(super) fn an_address_of_ones_own<R: Reactor>(mut reactor: R) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let route = Route {
        source: Some(Ipv4Addr::new(127, 0, 0, 77).into()),
        brief: true,
        ..Route::to(listener.local_addr().unwrap())
    };
    reactor.connect(0, &route).unwrap();
    turn_until(&mut reactor, |_, event| event == Event::Connected(0));
    let (_stream, from) = listener.accept().unwrap();
    assert_eq!(Some(from.ip()), route.source);
}

/// Opens more connections than a listener that never accepts has room for: some are never opened.
pub(super) fn a_connection_that_does_not_open_is_closed<R: Reactor>(mut reactor: R) {
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

pub(super) fn a_wait_ends<R: Reactor>(mut reactor: R) {
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
