//! Sockets that listen, and the accept queues that the kernel really keeps for them (sock_diag(7)).

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponseHeader, SocketId, StateFlags,
};
use netlink_packet_sock_diag::{AF_INET, AF_INET6, IPPROTO_TCP, SockDiagMessage};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use rustix::io::Errno;

use crate::HostError;
use crate::netlink::{Netlink, Refusal};

/// The accept queue of one listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenQueue {
    /// Address on which the socket listens. A socket on `[::]` may listen for IPv4 too.
    pub address: SocketAddr,
    /// Connections that wait to be accepted (Recv-Q of ss(8)).
    pub waiting: u32,
    /// Maximum number of waiting connections: the smaller of the backlog given to listen(2) and net.core.somaxconn
    /// (Send-Q). The kernel admits one more, because it looks before it counts (`sk_acceptq_is_full`).
    pub backlog: u32,
}

/// Lists all TCP listeners in the calling thread's network namespace, IPv4 and IPv6, of all processes. Sockets that
/// share an address (SO_REUSEPORT) have a queue each.
///
/// # Errors
/// The kernel has no sock_diag(7), or refused.
pub fn listen_queues() -> Result<Vec<ListenQueue>, HostError> {
    let mut kernel = Netlink::open(NETLINK_SOCK_DIAG).map_err(|e| refused(e.into()))?;
    let mut queues = Vec::new();
    for question in
        [listeners(AF_INET, SocketId::new_v4()), listeners(AF_INET6, SocketId::new_v6())]
    {
        let answers = kernel.list(&question).map_err(refused)?;
        queues.extend(answers.iter().filter_map(queue));
    }
    Ok(queues)
}

fn listeners(family: u8, any: SocketId) -> SockDiagMessage {
    SockDiagMessage::InetRequest(InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::LISTEN,
        socket_id: any,
    })
}

fn queue(answer: &SockDiagMessage) -> Option<ListenQueue> {
    let SockDiagMessage::InetResponse(response) = answer else {
        return None;
    };
    Some(ListenQueue {
        address: address(&response.header),
        waiting: response.header.recv_queue,
        backlog: response.header.send_queue,
    })
}

fn address(header: &InetResponseHeader) -> SocketAddr {
    let socket = &header.socket_id;
    match socket.source_address {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => {
            SocketAddrV6::new(ip, socket.source_port, 0, socket.interface_id).into()
        }
        ip => (ip, socket.source_port).into(),
    }
}

fn refused(refusal: Refusal) -> HostError {
    if refusal.is(Errno::NOENT) || refusal.is(Errno::PROTONOSUPPORT) {
        return HostError::NoSocketDiagnosis;
    }
    HostError::refused("ask the kernel for its listeners", refusal.source)
}
