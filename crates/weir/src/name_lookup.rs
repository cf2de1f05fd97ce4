//! Resolution of names to addresses.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// Returns the addresses of `name:port`, `1.2.3.4:port` or `[::1]:port`.
///
/// # Errors
/// The system cannot resolve the name.
pub(crate) fn addresses(text: &str) -> io::Result<Vec<SocketAddr>> {
    match text.to_socket_addrs() {
        Ok(found) => Ok(found.collect()),
        Err(error) => loopback(text).ok_or(error),
    }
}

/// Returns the loopback addresses for `localhost` and the names below it (RFC 6761 section 6.3), even without an entry:
/// an empty container has no /etc/hosts.
fn loopback(text: &str) -> Option<Vec<SocketAddr>> {
    let (host, port) = text.rsplit_once(':')?;
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_local = name == "localhost" || name.ends_with(".localhost");
    let port: u16 = port.parse().ok().filter(|_| is_local)?;
    let (four, six) = (Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    Some(vec![(four, port).into(), (six, port).into()])
}

/// Returns a hint about a name that does not resolve.
pub(crate) fn hint() -> &'static str {
    if Path::new("/etc/resolv.conf").exists() {
        "an address does not need resolving: http://127.0.0.1:8080/"
    } else {
        "there is no /etc/resolv.conf here, so no name server is known; \
             --to ADDRESS:PORT needs none"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_names_are_loopback_s_without_anybody_who_says_so() {
        let both = ["127.0.0.1:80", "[::1]:80"].map(|text| text.parse().unwrap());
        for text in ["localhost:80", "LocalHost.:80", "a.localhost:80"] {
            assert_eq!(loopback(text), Some(both.to_vec()), "{text}");
        }
        for text in ["localhost", "localhost:x", "notlocalhost:80", "example.com:80"] {
            assert_eq!(loopback(text), None, "{text}");
        }
        let address = "127.0.0.9:7".parse().unwrap();
        assert_eq!(addresses("127.0.0.9:7").unwrap(), [address]);
    }
}
