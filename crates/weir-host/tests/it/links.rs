//! Tests of links: what crosses them, what the kernel makes of them, what it refuses.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags, nlas};
use netlink_packet_sock_diag::{AF_INET, IPPROTO_TCP, SockDiagMessage};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use weir_host::{HostError, Interface, Network, Wire, connect, sysctl};

use crate::support::{networks_or_skip, pair, wire};

fn find(network: &Network, name: &str) -> Option<Interface> {
    let all = network.interfaces().unwrap();
    all.into_iter().find(|interface| interface.name == name)
}

/// Returns the MSS that the one TCP connection of the calling thread's namespace announces.
fn announced_mss() -> u32 {
    let mut packet = NetlinkMessage::new(
        NetlinkHeader::default(),
        NetlinkPayload::InnerMessage(SockDiagMessage::InetRequest(InetRequest {
            family: AF_INET,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            states: StateFlags::ESTABLISHED,
            socket_id: SocketId::new_v4(),
        })),
    );
    packet.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    let socket = Socket::new(NETLINK_SOCK_DIAG).unwrap();
    socket.connect(&SocketAddr::new(0, 0)).unwrap();
    socket.send(&bytes, 0).unwrap();
    let (answer, _) = socket.recv_from_full().unwrap();
    let message = NetlinkMessage::<SockDiagMessage>::deserialize(&answer).unwrap();
    let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(connection)) = message.payload
    else {
        panic!("no connection: {message:?}");
    };
    // tcpi_advmss of struct tcp_info (linux/tcp.h).
    let announced = connection.nlas.iter().find_map(|nla| match nla {
        nlas::Nla::TcpInfo(bytes) => bytes[84..88].try_into().ok(),
        _ => None,
    });
    u32::from_ne_bytes(announced.unwrap())
}

fn listen(network: &Network, address: &str) -> TcpListener {
    network.within(|| TcpListener::bind(address).unwrap()).unwrap()
}

fn client(network: &Network, address: &str) -> TcpStream {
    network.within(|| TcpStream::connect(address).unwrap()).unwrap()
}

#[test]
fn tcp_crosses_a_link() {
    if !networks_or_skip() {
        return;
    }
    for mtu in [1500, 1400, 9000] {
        let (a, b) = pair(mtu);
        for (network, name) in [(&a, "left"), (&b, "right")] {
            let interface = find(network, name).unwrap();
            assert_eq!((interface.mtu, interface.up), (mtu, true));
        }
        let listener = listen(&b, "10.0.0.2:80");
        let mut stream = client(&a, "10.0.0.2:80");
        let (mut server, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip(), Ipv4Addr::new(10, 0, 0, 1));
        stream.write_all(b"over the wire").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut text = String::new();
        server.read_to_string(&mut text).unwrap();
        assert_eq!(text, "over the wire");
    }
}

#[test]
fn the_mss_of_a_connection_is_its_links_mtu_less_the_headers() {
    if !networks_or_skip() {
        return;
    }
    for mtu in [1500, 1400, 9000] {
        let (a, b) = pair(mtu);
        for network in [&a, &b] {
            // They take 12 bytes of every segment (RFC 7323 appendix A).
            let plain = network.within(|| sysctl::write("net.ipv4.tcp_timestamps", "0"));
            plain.unwrap().unwrap();
        }
        let listener = listen(&b, "10.0.0.2:80");
        let _client = client(&a, "10.0.0.2:80");
        let _server = listener.accept().unwrap();
        // Headers of IPv4 and TCP take 20 bytes each (RFC 9293 section 3.7.1).
        assert_eq!(a.within(announced_mss).unwrap(), mtu - 40);
        assert_eq!(b.within(announced_mss).unwrap(), mtu - 40);
    }
}

#[test]
fn the_hosts_interfaces_stay_as_they_are() {
    if !networks_or_skip() {
        return;
    }
    let host = Network::of_this_thread().unwrap();
    let before = host.interfaces().unwrap();
    let host_name = before.iter().map(|i| i.name.clone()).find(|n| n != "lo");
    let (a, b) = (Network::create().unwrap(), Network::create().unwrap());
    // A name that the host has is as good as another in there.
    let name = host_name.unwrap_or("eth0".to_owned());
    connect((&a, &wire(&name, 1)), (&b, &wire(&name, 2)), 1500).unwrap();
    assert_eq!(find(&a, &name).unwrap().mtu, 1500);
    assert_eq!(host.interfaces().unwrap(), before);
    drop((a, b));
    assert_eq!(host.interfaces().unwrap(), before);
}

#[test]
fn many_addresses_are_all_there() {
    if !networks_or_skip() {
        return;
    }
    let (a, b) = (Network::create().unwrap(), Network::create().unwrap());
    connect((&a, &crowded_wire("left", 1)), (&b, &crowded_wire("right", 2)), 1500).unwrap();
    for (network, third) in [(&a, 1), (&b, 2)] {
        let bound = network.within(|| {
            (1..=254)
                .filter(|last| TcpListener::bind((Ipv4Addr::new(10, 0, third, *last), 80)).is_ok())
                .count()
        });
        assert_eq!(bound.unwrap(), 254);
    }
    let listener = listen(&b, "0.0.0.0:80");
    let reached = a.within(|| {
        for last in 1..=254 {
            TcpStream::connect((Ipv4Addr::new(10, 0, 2, last), 80)).unwrap();
            drop(listener.accept().unwrap());
        }
    });
    reached.unwrap();
    // proc_pid_net(5), arp: 0x2 is a complete entry, 0x4 a permanent one. None was learned.
    for network in [&a, &b] {
        let neighbours =
            network.within(|| fs::read_to_string("/proc/thread-self/net/arp").unwrap()).unwrap();
        let permanent = neighbours.lines().filter(|line| line.contains(" 0x6 ")).count();
        assert_eq!((permanent, neighbours.lines().count()), (254, 255), "{neighbours}");
    }
}

/// Makes a wire with 254 addresses of 10.0.`third`.0.
fn crowded_wire(name: &str, third: u8) -> Wire {
    Wire {
        name: name.to_owned(),
        addresses: (1..=254).map(|last| (Ipv4Addr::new(10, 0, third, last), 8)).collect(),
    }
}

#[test]
fn one_namespace_may_have_many_links() {
    if !networks_or_skip() {
        return;
    }
    let hub = Network::create().unwrap();
    let spokes: Vec<Network> = (0..4).map(|_| Network::create().unwrap()).collect();
    for (number, spoke) in (0_u8..).zip(&spokes) {
        let [hub_end, spoke_end] =
            [(format!("arm{number}"), 1), ("generator".to_owned(), 2)].map(|(name, last)| Wire {
                name,
                addresses: vec![(Ipv4Addr::new(10, 0, number, last), 24)],
            });
        connect((&hub, &hub_end), (spoke, &spoke_end), 1500).unwrap();
    }
    for number in 0_u8..4 {
        let address = format!("10.0.{number}.2:80");
        let listener = listen(&spokes[usize::from(number)], &address);
        client(&hub, &address);
        drop(listener.accept().unwrap());
    }
}

#[test]
fn a_name_is_taken_once() {
    if !networks_or_skip() {
        return;
    }
    let (a, b) = pair(1500);
    let c = Network::create().unwrap();
    for (near, far, name) in [
        ((&a, "left"), (&c, "new"), "left"),
        ((&c, "new"), (&b, "right"), "right"),
        ((&c, "new"), (&c, "new"), "new"),
        ((&c, "lo"), (&a, "new"), "lo"),
    ] {
        let (near, far) = ((near.0, &wire(near.1, 3)), (far.0, &wire(far.1, 4)));
        assert_eq!(taken_name(connect(near, far, 1500).unwrap_err()), name);
    }
    assert_eq!(find(&c, "new"), None, "nothing was left half made");
    assert_eq!(find(&a, "new"), None);
    assert!(find(&a, "left").unwrap().up, "what was there goes on");
}

fn taken_name(error: HostError) -> String {
    match error {
        HostError::NameTaken(name) => name,
        error => panic!("{error}"),
    }
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    if !networks_or_skip() {
        return;
    }
    let (a, b) = (Network::create().unwrap(), Network::create().unwrap());
    let good = wire("left", 1);
    let twice = Wire { addresses: vec![("10.0.0.2".parse().unwrap(), 24); 2], ..wire("right", 2) };
    for (bad, mtu, expected) in [
        (wire("sixteen-bytes-xx", 2), 1500, "longer than 15 bytes"),
        (wire("right", 2), 67, "68 to 65535"),
        (wire("right", 2), 65_536, "68 to 65535"),
        (wire("right", 0), 1500, "10.0.0.0/24"),
        (twice, 1500, "10.0.0.2 twice"),
    ] {
        let error = connect((&a, &good), (&b, &bad), mtu).unwrap_err();
        let message = format!("{error}; {:?}", error.hint());
        assert!(message.contains(expected), "{message}");
        assert_eq!(find(&a, "left"), None);
        assert_eq!(find(&b, &bad.name), None);
    }
    for mtu in [68, 65_535] {
        let (a, b) = (Network::create().unwrap(), Network::create().unwrap());
        connect((&a, &good), (&b, &wire("right", 2)), mtu).expect("the kernel takes it");
    }
}
