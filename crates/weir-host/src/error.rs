//! What could not be done to a host's network, and what it would take.

use std::io;
use std::net::Ipv4Addr;

use crate::user_namespace;
use crate::wire::MTU;

/// What could not be done to the host's network.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The kernel refused.
    #[error("cannot {doing}: {source}")]
    Refused {
        /// What was tried.
        doing: String,
        /// The kernel's words.
        source: io::Error,
    },
    /// The kernel refused, and said more than a number (extended acknowledgement, netlink(7)).
    #[error("cannot {doing}: {words} ({source})")]
    Explained {
        /// What was tried.
        doing: String,
        /// What the kernel said.
        words: String,
        /// The number it gave.
        source: io::Error,
    },
    /// A capability is missing, or a filter of the container's stands against it.
    #[error("cannot {doing}: not permitted")]
    NotPermitted {
        /// What was tried.
        doing: String,
        /// What it takes (capabilities(7)).
        capability: &'static str,
    },
    /// The kernel was built without network namespaces.
    #[error("this kernel has no network namespaces")]
    NoNamespaces,
    /// As many namespaces are in use as may be.
    #[error("cannot make a network namespace: the maximum number is in use")]
    TooManyNamespaces,
    /// The kernel has no veth(4).
    #[error("cannot link two namespaces: this kernel has no virtual Ethernet devices")]
    NoVirtualEthernet,
    /// The kernel has no sock_diag(7) for TCP.
    #[error("cannot ask the kernel for its listeners: it has no sock_diag for TCP")]
    NoSocketDiagnosis,
    /// Not a name for an interface.
    #[error("`{name}` cannot be the name of an interface: {why}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An interface of that name is there.
    #[error("the namespace has an interface `{0}`")]
    NameTaken(String),
    /// No veth can have that MTU.
    #[error("an MTU of {0} bytes is out of range")]
    MtuOutOfRange(u32),
    /// No interface can have that address.
    #[error("`{name}` cannot have the address {address}/{prefix}: {why}")]
    BadAddress {
        /// The interface.
        name: String,
        /// The address.
        address: Ipv4Addr,
        /// Length of its prefix, bits.
        prefix: u8,
        /// What is wrong with it.
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
    /// What to do about it, where that can be said.
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

    /// The kernel refused what `doing` says.
    pub(crate) fn refused(doing: impl Into<String>, source: impl Into<io::Error>) -> HostError {
        HostError::Refused {
            doing: doing.into(),
            source: source.into(),
        }
    }
}
