//! Sockets that listen, and the accept queues that the kernel really keeps for them.

use std::net::SocketAddr;

use crate::HostError;

/// The accept queue of one listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenQueue {
    /// Where it listens.
    pub address: SocketAddr,
    /// Connections that wait to be accepted (Recv-Q of ss(8)).
    pub waiting: u32,
    /// How many may: the smaller of what listen(2) was given and net.core.somaxconn (Send-Q).
    pub backlog: u32,
}

/// All TCP listeners in the calling thread's network namespace, IPv4 and IPv6.
///
/// # Errors
/// The kernel has no sock_diag(7), or refused.
pub fn listen_queues() -> Result<Vec<ListenQueue>, HostError> {
    Err(HostError::Refused {
        doing: "ask for listeners yet".to_owned(),
        source: std::io::ErrorKind::Unsupported.into(),
    })
}
