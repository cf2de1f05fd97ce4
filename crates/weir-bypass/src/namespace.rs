//! Network namespaces, identified as BPF programs do by a cookie that is never reused.
//!
//! SO_NETNS_COOKIE (socket(7)) returns it too, but no library offers that option without unsafe code. A BPF program
//! reads it instead, from a connection of a socket that is identified by its own cookie.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

use aya::maps::{HashMap, MapData};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::BypassError;

/// A network namespace, obtained from [`Bypass::namespace_of_this_thread`](crate::Bypass::namespace_of_this_thread).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Namespace(pub(crate) u64);

/// Network namespaces of a hop's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Namespace that connections come from.
    pub client: Namespace,
    /// Namespace in which connections are accepted.
    pub server: Namespace,
}

impl Ends {
    /// Makes ends that are both in one namespace.
    pub fn within(namespace: Namespace) -> Ends {
        Ends { client: namespace, server: namespace }
    }
}

/// Finds the calling thread's namespace with the programs' map `asked`.
pub(crate) fn of_this_thread(
    asked: &mut HashMap<MapData, u64, u64>,
) -> Result<Namespace, BypassError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(io::Error::from)?;
    let key = sockopt::socket_cookie(&client).map_err(io::Error::from)?;
    let doing = "ask for the cookie of a network namespace";
    asked.insert(key, 0, 0).map_err(|e| BypassError::map(doing, e))?;
    let connected = connect(&client, &listener.local_addr()?);
    let reply = asked.get(&key, 0);
    asked.remove(&key).map_err(|e| BypassError::map(doing, e))?;
    connected.map_err(io::Error::from)?;
    match reply.map_err(|e| BypassError::map(doing, e))? {
        0 => Err(BypassError::Refused {
            doing,
            words: "the program did not see the connection".to_owned(),
        }),
        cookie => Ok(Namespace(cookie)),
    }
}
