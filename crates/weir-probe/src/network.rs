//! Addresses on this host.

use std::io;
use std::net::{SocketAddr, TcpListener};

use rustix::io::Errno;

/// Whether a listener could be opened at an address. It is opened and closed again at once, so
/// somebody else may still be quicker afterwards.
///
/// Connections of an earlier listener in TIME_WAIT do not count, as they do not for proxies: the
/// test socket has SO_REUSEADDR, like theirs.
///
/// # Errors
/// Something else stands against it, for example an address that is not this host's, or a port
/// below 1024 without the privilege.
pub fn port_is_free(address: SocketAddr) -> io::Result<bool> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(true),
        Err(e) if e.raw_os_error() == Some(Errno::ADDRINUSE.raw_os_error()) => Ok(false),
        Err(e) => Err(e),
    }
}
