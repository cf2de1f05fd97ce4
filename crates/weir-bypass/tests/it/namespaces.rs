//! Equal addresses in several network namespaces: each bypass takes only the sockets of its own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use weir_bypass::{Bypass, Counts};

use crate::bypass_at;
use crate::peers::{PATIENCE, Place};

/// Listener in the proxy's namespace of a place, and a connection to it.
struct Pair {
    client: TcpStream,
    server: TcpStream,
    _listener: TcpListener,
}

impl Pair {
    fn at(place: &Place) -> Pair {
        let inbound = place.inbound;
        let listener = place.proxy.within(|| TcpListener::bind(inbound)).unwrap().unwrap();
        // The same port on both sides too: all that is left to differ is the namespace.
        let client = place.client.within(|| connect_from(place, 40_000));
        let (server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        Pair { client: client.unwrap(), server, _listener: listener }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.client.write_all(bytes).unwrap();
    }

    fn receive(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.server.read_exact(&mut bytes).unwrap();
        bytes
    }
}

fn connect_from(place: &Place, port: u16) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &std::net::SocketAddr::new(place.source, port)).unwrap();
    connect(&socket, &place.inbound).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true).unwrap();
    stream
}

fn counts(bypass: &Bypass) -> Counts {
    bypass.counters().unwrap().total
}

#[test]
fn equal_addresses_elsewhere_are_left_alone() {
    let places = [(); 3].map(|()| Place::namespaces());
    let [Some(one), Some(two), Some(by_tcp)] = places else {
        return;
    };
    let attached = [&one, &two].map(|place| bypass_at(place, &[place.inbound]));
    let [Some(bypass_one), Some(bypass_two)] = attached else {
        return;
    };
    let [mut a, mut b, mut c] = [&one, &two, &by_tcp].map(Pair::at);
    let [of_a, of_b] = [&a, &b].map(|pair| pair.client.local_addr().unwrap());
    assert_eq!(of_a, of_b);
    a.send(&[b'a'; 100]);
    b.send(&[b'b'; 1_000]);
    c.send(&[b'c'; 10_000]);
    for (bypass, bytes) in [(&bypass_one, 100), (&bypass_two, 1_000)] {
        let counts = counts(bypass);
        let seen = [counts.sockets, counts.redirected_bytes, counts.tcp_bytes];
        assert_eq!(seen, [2, bytes, 0]);
    }
    assert_eq!(a.receive(100), [b'a'; 100]);
    // What is unread on sockets of one is the other's loss in nothing.
    drop(bypass_one);
    assert_eq!(b.receive(1_000), [b'b'; 1_000]);
    assert_eq!(c.receive(10_000), [b'c'; 10_000]);
    b.send(&[b'd'; 7]);
    c.send(&[b'e'; 7]);
    assert_eq!(b.receive(7), [b'd'; 7]);
    assert_eq!(c.receive(7), [b'e'; 7]);
    assert_eq!(counts(&bypass_two).redirected_bytes, 1_007);
    drop(bypass_two);
    c.send(&[b'f'; 7]);
    assert_eq!(c.receive(7), [b'f'; 7]);
}

#[test]
fn a_namespace_is_told_from_others_and_is_one_to_all_bypasses() {
    let [one, two] = [(); 2].map(|()| Bypass::attach(&[]));
    let (Some(place), Ok(mut one), Ok(mut two)) = (Place::namespaces(), one, two) else {
        return;
    };
    let mut ask = |network: &weir_host::Network| {
        let [first, second] = network
            .within(|| {
                [&mut one, &mut two].map(|bypass| bypass.namespace_of_this_thread().unwrap())
            })
            .unwrap();
        assert_eq!(first, second);
        first
    };
    let client = ask(&place.client);
    assert_eq!(client, ask(&place.client));
    assert_ne!(client, ask(&place.proxy));
}
