//! Addresses and counters of this host's network.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::net::{SocketAddr, TcpListener};

use rustix::io::Errno;

use crate::ProbeError;

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

/// How often a connection found the queue of a listener full, since boot, in the calling thread's network
/// namespace
/// (`TcpExt: ListenOverflows`, proc_pid_net(5)); 0 where the kernel does not say.
pub fn listen_overflows() -> u64 {
    // `/proc/net` is the namespace of the process's first thread.
    let text = fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default();
    counter(&text, "TcpExt:", "ListenOverflows").unwrap_or(0)
}

/// The same figure of the network namespace that the calling thread was in when this was opened,
/// for any thread to read.
#[derive(Debug)]
pub struct NetstatReader(File);

impl NetstatReader {
    /// Opens the counters of the calling thread's namespace.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn open() -> Result<NetstatReader, ProbeError> {
        // `/proc/net` is the namespace of the process's first thread.
        const PATH: &str = "/proc/thread-self/net/netstat";
        let file = File::open(PATH).map_err(|error| ProbeError::read(PATH, error))?;
        Ok(NetstatReader(file))
    }

    /// [`listen_overflows`] of that namespace.
    pub fn listen_overflows(&mut self) -> u64 {
        let mut text = String::new();
        let read = self.0.rewind();
        let read = read.and_then(|()| self.0.read_to_string(&mut text));
        read.ok()
            .and_then(|_| counter(&text, "TcpExt:", "ListenOverflows"))
            .unwrap_or(0)
    }
}

/// Names and numbers stand in lines of their own, one below the other.
fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let pairs = names
        .split_ascii_whitespace()
        .zip(numbers.split_ascii_whitespace());
    let (_, number) = pairs.skip(1).find(|(found, _)| *found == name)?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name() {
        let text = "IpExt: A B\nIpExt: 1 2\nTcpExt: A ListenOverflows B\nTcpExt: 3 4 5\n";
        assert_eq!(counter(text, "TcpExt:", "ListenOverflows"), Some(4));
        assert_eq!(counter(text, "TcpExt:", "C"), None);
        let real = fs::read_to_string("/proc/net/netstat").expect("this kernel counts");
        assert!(counter(&real, "TcpExt:", "ListenOverflows").is_some());
    }
}
