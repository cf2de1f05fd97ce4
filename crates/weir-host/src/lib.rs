//! Changes that weir makes to a host, and how they are undone.
//!
//! * [`Network`]: network namespaces that are held by a descriptor alone, so that the kernel removes them, their links
//!   and their addresses when the last process that uses one has ended, however it ended. Nothing is mounted and
//!   nothing has a name. [`connect`] links two of them.
//! * [`sysctl`]: kernel settings, as the calling thread's namespace has them.
//! * [`listeners`]: accept queues that the kernel really keeps (sock_diag(7)).
//! * [`journal`]: record of changes outside of weir's own namespaces, written beforehand so that they can be put back
//!   afterwards.

mod error;
pub mod journal;
mod link;
mod links;
pub mod listeners;
mod netlink;
mod network;
pub mod sysctl;
mod user_namespace;
mod wire;

pub use error::HostError;
pub use link::{connect, disconnect};
pub use links::Interface;
pub use network::{Network, interface_with, may_have_networks, return_to_first_network};
pub use user_namespace::enter_user_namespace;
pub use wire::Wire;
