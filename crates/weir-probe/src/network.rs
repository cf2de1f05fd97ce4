//! Addresses and counters of this host's network.

use std::fs;
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

/// How often a connection found the queue of a listener full, since boot, in this network namespace
/// (`TcpExt: ListenOverflows`, proc_pid_net(5)); 0 where the kernel does not say.
pub fn listen_overflows() -> u64 {
    let text = fs::read_to_string("/proc/net/netstat").unwrap_or_default();
    counter(&text, "TcpExt:", "ListenOverflows").unwrap_or(0)
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
