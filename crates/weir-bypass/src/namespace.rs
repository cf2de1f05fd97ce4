//! Network namespaces as BPF programs tell them apart: by a cookie that no other ever has.
//!
//! SO_NETNS_COOKIE (socket(7)) tells it too, and no library asks for it without unsafe code; so a
//! program is asked: it sees a connection of a socket that is known by its own cookie.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

use aya::maps::{HashMap, MapData};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::BypassError;

/// A network namespace; [`Bypass::namespace_of_this_thread`](crate::Bypass::namespace_of_this_thread)
/// makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Namespace(pub(crate) u64);

/// The namespaces of a hop's ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Where connections come from.
    pub client: Namespace,
    /// Where they are accepted.
    pub server: Namespace,
}

impl Ends {
    /// Both in one.
    pub fn within(namespace: Namespace) -> Ends {
        Ends {
            client: namespace,
            server: namespace,
        }
    }
}

/// Asks through `asked` of the programs.
pub(crate) fn of_this_thread(
    asked: &mut HashMap<MapData, u64, u64>,
) -> Result<Namespace, BypassError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(io::Error::from)?;
    let key = sockopt::socket_cookie(&client).map_err(io::Error::from)?;
    let doing = "ask for the cookie of a network namespace";
    let refused = |e| BypassError::map(doing, e);
    asked.insert(key, 0, 0).map_err(refused)?;
    let connected = connect(&client, &listener.local_addr()?);
    let told = asked.get(&key, 0);
    asked.remove(&key).map_err(refused)?;
    connected.map_err(io::Error::from)?;
    match told.map_err(refused)? {
        0 => Err(BypassError::Refused {
            doing,
            words: "the program did not see the connection".to_owned(),
        }),
        cookie => Ok(Namespace(cookie)),
    }
}
