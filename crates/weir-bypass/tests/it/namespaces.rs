//! Equal addresses in several network namespaces: each bypass takes only the sockets of its own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use weir_bypass::{Bypass, Counts, Namespace};
use weir_host::Network;
use weir_testkit::peers::{PATIENCE, Topology};

use crate::bypass_at;

/// Listener in the proxy's namespace of a topology, and a connection to it.
struct Pair {
    client: TcpStream,
    server: TcpStream,
    _listener: TcpListener,
}

impl Pair {
    fn at(topology: &Topology) -> Pair {
        let inbound = topology.inbound;
        let listener = topology.proxy.within(|| TcpListener::bind(inbound)).unwrap().unwrap();
        // The same port on both sides too: all that is left to differ is the namespace.
        let client = topology.client.within(|| connect_from(topology, 40_000));
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

fn connect_from(topology: &Topology, port: u16) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&fd, &std::net::SocketAddr::new(topology.source, port)).unwrap();
    connect(&fd, &topology.inbound).unwrap();
    let stream = TcpStream::from(fd);
    stream.set_nodelay(true).unwrap();
    stream
}

fn read_counts(bypass: &Bypass) -> Counts {
    bypass.counters().unwrap().total
}

#[test]
fn equal_addresses_elsewhere_are_left_alone() {
    let topologies = [(); 3].map(|()| Topology::namespaces());
    let [Some(one), Some(two), Some(by_tcp)] = topologies else {
        return;
    };
    let attached = [&one, &two].map(|topology| bypass_at(topology, &[topology.inbound]));
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
        let counts = read_counts(bypass);
        assert_eq!([counts.sockets, counts.redirected_bytes, counts.tcp_bytes], [2, bytes, 0]);
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
    assert_eq!(read_counts(&bypass_two).redirected_bytes, 1_007);
    drop(bypass_two);
    c.send(&[b'f'; 7]);
    assert_eq!(c.receive(7), [b'f'; 7]);
}

#[test]
fn a_namespace_is_told_from_others_and_is_one_to_all_bypasses() {
    let [one, two] = [(); 2].map(|()| Bypass::attach(&[]));
    let (Some(topology), Ok(mut one), Ok(mut two)) = (Topology::namespaces(), one, two) else {
        return;
    };
    let client = shared_namespace(&topology.client, &mut one, &mut two);
    assert_eq!(client, shared_namespace(&topology.client, &mut one, &mut two));
    assert_ne!(client, shared_namespace(&topology.proxy, &mut one, &mut two));
}

/// Returns the namespace of a network, which both bypasses must find.
fn shared_namespace(network: &Network, one: &mut Bypass, two: &mut Bypass) -> Namespace {
    let [first, second] = network
        .within(|| [one, two].map(|bypass| bypass.namespace_of_this_thread().unwrap()))
        .unwrap();
    assert_eq!(first, second);
    first
}
