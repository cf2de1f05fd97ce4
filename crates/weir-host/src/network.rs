//! Network namespaces and the links between them.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What could not be done to the host's network.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The kernel refused.
    #[error("cannot {doing}: {source}")]
    Refused {
        /// What was tried.
        doing: String,
        /// The kernel's words.
        source: std::io::Error,
    },
}

/// A network namespace, held by a descriptor: it lives as long as any clone of this, or any process
/// or thread in it.
#[derive(Debug, Clone)]
pub struct Network(Arc<OwnedFd>);

/// One end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wire {
    /// Name of the interface, 15 bytes at most.
    pub name: String,
    /// Its addresses, with the length of their prefix.
    pub addresses: Vec<(Ipv4Addr, u8)>,
}

/// Whether this process may make namespaces (CAP_SYS_ADMIN and CAP_NET_ADMIN, and a kernel that has
/// them).
///
/// # Errors
/// It may not; the error says why.
pub fn may_have_networks() -> Result<(), HostError> {
    Network::create().map(drop)
}

impl Network {
    /// A new namespace whose loopback interface is up.
    ///
    /// # Errors
    /// The kernel refused, most often for want of CAP_SYS_ADMIN.
    pub fn create() -> Result<Network, HostError> {
        todo_(())
    }

    /// The one that the calling thread is in.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn of_this_thread() -> Result<Network, HostError> {
        todo_(())
    }

    /// Moves the calling thread into it for good, and so all threads and processes that it starts
    /// from then on.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn join(&self) -> Result<(), HostError> {
        let _ = &self.0;
        todo_(())
    }

    /// Does something inside, on a thread of its own.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, HostError> {
        todo_(work)
    }
}

/// Links two namespaces by a pair of virtual Ethernet devices (veth(4)), sets their addresses and
/// brings them up. `mtu` in bytes.
///
/// # Errors
/// The kernel refused: a name or an address is taken, the MTU is out of range.
pub fn connect(a: (&Network, &Wire), b: (&Network, &Wire), mtu: u32) -> Result<(), HostError> {
    todo_((a, b, mtu))
}

fn todo_<A, T>(_: A) -> Result<T, HostError> {
    Err(HostError::Refused {
        doing: "do this yet".to_owned(),
        source: std::io::ErrorKind::Unsupported.into(),
    })
}
