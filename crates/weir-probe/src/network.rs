//! Addresses and counters of this host's network.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

use rustix::io::Errno;
use weir_model::record::SocketCounts;

use crate::ProbeError;

/// Returns true if a listener can be opened at an address. It is opened and closed again at once, so another process
/// may still take the port afterwards.
///
/// Connections of an earlier listener in TIME_WAIT do not count, as they do not for proxies: the test socket has
/// SO_REUSEADDR, like theirs.
///
/// # Errors
/// Fails if a listener cannot be opened for any other reason, for example an address that is not this host's, or a port
/// below 1024 without the privilege.
pub fn port_is_free(address: SocketAddr) -> io::Result<bool> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(true),
        Err(e) if e.raw_os_error() == Some(Errno::ADDRINUSE.raw_os_error()) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Returns the address from which this host sends to another; `None` if there is no route to it.
pub fn source_towards(other: IpAddr) -> Option<IpAddr> {
    let any = match other {
        IpAddr::V4(_) => "0.0.0.0:0",
        IpAddr::V6(_) => "[::]:0",
    };
    // Connecting a datagram socket sends nothing: the kernel looks up the route.
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect((other, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Returns how often a connection found the queue of a listener full, since boot, in the calling thread's network
/// namespace (`TcpExt: ListenOverflows`, proc_pid_net(5)); 0 if the kernel does not provide it.
pub fn listen_overflows() -> u64 {
    // `/proc/net` is the namespace of the process's first thread.
    let text = fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default();
    counter(&text, "TcpExt:", "ListenOverflows").unwrap_or(0)
}

/// Counters of the network namespace that the calling thread was in when this was opened, readable by any thread.
#[derive(Debug)]
pub struct NetstatReader {
    netstat: File,
    sockstat: File,
}

impl NetstatReader {
    /// Opens the counters of the calling thread's namespace.
    ///
    /// # Errors
    /// Fails if `/proc` is not mounted.
    pub fn open() -> Result<NetstatReader, ProbeError> {
        // `/proc/net` is the namespace of the process's first thread.
        let [netstat, sockstat] = ["netstat", "sockstat"].map(|name| {
            let path = format!("/proc/thread-self/net/{name}");
            File::open(&path).map_err(|error| ProbeError::read(&path, error))
        });
        Ok(NetstatReader { netstat: netstat?, sockstat: sockstat? })
    }

    /// Returns [`listen_overflows`] of that namespace.
    pub fn listen_overflows(&mut self) -> u64 {
        let text = whole(&mut self.netstat).unwrap_or_default();
        counter(&text, "TcpExt:", "ListenOverflows").unwrap_or(0)
    }

    /// Returns the number of TCP sockets of that namespace over IPv4, and of all in TIME_WAIT; `None` if the kernel
    /// does not provide it. Takes a few microseconds: the kernel maintains these figures and walks no list.
    pub fn sockets(&mut self) -> Option<SocketCounts> {
        sockets(&whole(&mut self.sockstat).ok()?)
    }
}

fn whole(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Parses `TCP: inuse 4 orphan 0 tw 14 alloc 4 mem 0` of sockstat.
fn sockets(text: &str) -> Option<SocketCounts> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    Some(SocketCounts {
        in_use: field(&fields, "inuse")?,
        orphans: field(&fields, "orphan")?,
        time_wait: field(&fields, "tw")?,
    })
}

fn field(fields: &[&str], name: &str) -> Option<u64> {
    fields.chunks_exact(2).find(|pair| pair[0] == name)?[1].parse().ok()
}

/// Returns a counter of a group, which consists of a line of names and a line of numbers.
pub(crate) fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let (_, number) = names
        .split_ascii_whitespace()
        .zip(numbers.split_ascii_whitespace())
        .skip(1)
        .find(|(found, _)| *found == name)?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_counted_by_state() {
        let text =
            "sockets: used 33\nTCP: inuse 4 orphan 1 tw 14 alloc 4 mem 0\nUDP: inuse 0 mem 0\n";
        let (in_use, orphans, time_wait) = (4, 1, 14);
        let wanted = SocketCounts { in_use, orphans, time_wait };
        assert_eq!(sockets(text), Some(wanted));
        assert_eq!(sockets("TCP: inuse 4\n"), None);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut reader = NetstatReader::open().unwrap();
        let before = reader.sockets().unwrap();
        assert!(before.in_use > 0);
        // Who closes first remembers the connection.
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        drop(client);
        std::io::copy(&mut &server, &mut std::io::sink()).unwrap();
        drop(server);
        assert!(reader.sockets().unwrap().time_wait > before.time_wait);
    }

    #[test]
    fn a_counter_is_found_by_its_name() {
        let text = "IpExt: A B\nIpExt: 1 2\nTcpExt: A ListenOverflows B\nTcpExt: 3 4 5\n";
        assert_eq!(counter(text, "TcpExt:", "ListenOverflows"), Some(4));
        assert_eq!(counter(text, "TcpExt:", "C"), None);
        let real = fs::read_to_string("/proc/net/netstat").expect("this kernel counts");
        assert!(counter(&real, "TcpExt:", "ListenOverflows").is_some());
    }
}
