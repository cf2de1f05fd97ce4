//! Errors of operations on a host's network, with hints on what they need.

use std::io;
use std::net::Ipv4Addr;

use crate::user_namespace;
use crate::wire::MTU;

/// Error of an operation on the host's network.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The kernel refused.
    #[error("cannot {doing}: {source}")]
    Refused {
        /// Action that was attempted, as in "cannot {doing}".
        doing: String,
        /// Error from the kernel.
        source: io::Error,
    },
    /// The kernel refused, with an explanation besides the error number (extended acknowledgement, netlink(7)).
    #[error("cannot {doing}: {words} ({source})")]
    Explained {
        /// Action that was attempted, as in "cannot {doing}".
        doing: String,
        /// Text of the kernel's extended acknowledgement.
        words: String,
        /// Error number from the kernel.
        source: io::Error,
    },
    /// A capability is missing, or a filter of the container forbids the action.
    #[error("cannot {doing}: not permitted")]
    NotPermitted {
        /// Action that was attempted, as in "cannot {doing}".
        doing: String,
        /// Capability that the action needs (capabilities(7)).
        capability: &'static str,
    },
    /// The kernel was built without network namespaces.
    #[error("this kernel has no network namespaces")]
    NoNamespaces,
    /// The maximum number of network namespaces is in use.
    #[error("cannot make a network namespace: the maximum number is in use")]
    TooManyNamespaces,
    /// The kernel has no veth(4).
    #[error("cannot link two namespaces: this kernel has no virtual Ethernet devices")]
    NoVirtualEthernet,
    /// The kernel has no sock_diag(7) for TCP.
    #[error("cannot ask the kernel for its listeners: it has no sock_diag for TCP")]
    NoSocketDiagnosis,
    /// The name is not valid for an interface.
    #[error("`{name}` cannot be the name of an interface: {why}")]
    BadName {
        /// The name.
        name: String,
        /// Reason why the name is not valid.
        why: &'static str,
    },
    /// The namespace already has an interface of that name.
    #[error("the namespace has an interface `{0}`")]
    NameTaken(String),
    /// The MTU, in bytes, is out of the range of a veth.
    #[error("an MTU of {0} bytes is out of range")]
    MtuOutOfRange(u32),
    /// No interface can have that address.
    #[error("`{name}` cannot have the address {address}/{prefix}: {why}")]
    BadAddress {
        /// The interface.
        name: String,
        /// Address that the interface cannot have.
        address: Ipv4Addr,
        /// Length of the address's prefix, bits.
        prefix: u8,
        /// Reason why the address is not valid.
        why: &'static str,
    },
    /// The interface has that address already.
    #[error("`{name}` has the address {address} twice")]
    AddressTaken {
        /// The interface.
        name: String,
        /// The address.
        address: Ipv4Addr,
    },
    /// An interface did not come up in time.
    #[error("`{0}` was set up and does not come up")]
    StillDown(String),
}

impl HostError {
    /// Returns advice on what to do about the error; None if there is none.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            HostError::NotPermitted { capability, .. } => {
                let without_root = match user_namespace::permission() {
                    Some(command) => format!(", or allow user namespaces (`{command}`)"),
                    None => String::new(),
                };
                return Some(format!(
                    "it needs {capability}: run weir as root, or in a container that has it{without_root}"
                ));
            }
            HostError::MtuOutOfRange(_) => {
                let (min, max) = (MTU.start(), MTU.end());
                return Some(format!("a veth takes {min} to {max}; Ethernet has 1500"));
            }
            HostError::NoNamespaces => "use a kernel that was built with CONFIG_NET_NS",
            HostError::TooManyNamespaces => {
                "`lsns --type net` shows them, `sysctl user.max_net_namespaces` the limit (each \
                 user namespace has its own)"
            }
            HostError::NoVirtualEthernet => {
                "`modprobe veth`, or a kernel that was built with CONFIG_VETH"
            }
            HostError::NoSocketDiagnosis => {
                "`modprobe tcp_diag`, or a kernel that was built with CONFIG_INET_DIAG"
            }
            HostError::NameTaken { .. } => "choose another name for this end",
            HostError::AddressTaken { .. } => "name every address of an end once",
            HostError::Refused { .. }
            | HostError::Explained { .. }
            | HostError::BadName { .. }
            | HostError::BadAddress { .. }
            | HostError::StillDown { .. } => return None,
        };
        Some(hint.to_owned())
    }

    /// Wraps an error from the kernel; `doing` is the action that was attempted.
    pub(crate) fn refused(doing: impl Into<String>, source: impl Into<io::Error>) -> HostError {
        HostError::Refused { doing: doing.into(), source: source.into() }
    }
}
