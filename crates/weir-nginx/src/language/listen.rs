//! Addresses on which a configuration listens.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use weir_configuration::place::is_among;
use weir_configuration::{ConfigurationError, Listener, Source};

use super::syntax::Directive;
use super::view::{self, Node};

/// Returns the listeners of all HTTP servers, in nginx's order. The line is that of the `listen`, or of a `server`
/// without one, which listens on port 80 by default.
///
/// # Errors
/// Returns an error if a file is not in nginx's language, which cannot happen to a source from [`super::read`].
pub fn listeners(source: &Source) -> Result<Vec<Listener>, ConfigurationError> {
    let trees = view::parse(source)?;
    let nodes = view::expand(source, &trees)?;
    let listens = all(&nodes).into_iter().filter(|listen| listen.is_http);
    Ok(listens.map(|listen| listen.listener(source)).collect())
}

/// One `listen`, or a server that listens without one.
pub(super) struct Listen<'a> {
    /// Directive `listen`, or the `server` without one.
    pub(super) node: &'a Node<'a>,
    /// Block `server` of the listener.
    pub(super) server: &'a Node<'a>,
    pub(super) is_http: bool,
    pub(super) is_implicit: bool,
    pub(super) socket: Socket,
    pub(super) ssl: bool,
}

/// Socket that nginx binds, regardless of its spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Socket {
    host: Host,
    port: u16,
    /// True for datagrams: QUIC, or `udp` in `stream`.
    pub(super) is_udp: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    /// Name in lower case; also a text that is no address at all, such as a range of ports.
    Name(String),
    /// A socket of the file system.
    Unix(String),
}

/// Address on which nginx listens by default, if root starts it.
const IMPLICIT: &str = "*:80";

impl Listen<'_> {
    /// Returns the listener for messages.
    pub(super) fn listener(&self, source: &Source) -> Listener {
        Listener {
            file: source.files[self.node.file].path.clone(),
            line: self.node.directive.line,
            address: self.address().to_owned(),
            port: self.socket.port(),
            tls: self.ssl,
        }
    }

    pub(super) fn address(&self) -> &str {
        if self.is_implicit {
            IMPLICIT
        } else {
            self.node.directive.argument(0).unwrap_or(IMPLICIT)
        }
    }

    /// Returns the words behind the address.
    pub(super) fn flags(&self) -> &[super::syntax::Word] {
        if self.is_implicit {
            &[]
        } else {
            self.node.directive.arguments.get(1..).unwrap_or_default()
        }
    }

    /// Returns true if the directive has an option of the socket, which nginx accepts once per address, and with which
    /// it binds an address beside one that covers it.
    pub(super) fn sets_options(&self) -> bool {
        const OPTIONS: &str = "bind, backlog, rcvbuf, sndbuf, accept_filter, deferred, setfib, fastopen, reuseport, \
             so_keepalive, ipv6only";
        self.flags()
            .iter()
            .any(|flag| is_among(flag.text.split('=').next().unwrap_or_default(), OPTIONS))
    }
}

impl Socket {
    pub(super) fn of(listen: &Directive) -> Socket {
        let address = listen.argument(0).unwrap_or(IMPLICIT);
        let mut flags = listen.words().skip(1);
        let is_udp = flags.any(|flag| flag == "quic" || flag == "udp");
        let (host, port) = host_and_port(address);
        Socket { host, port, is_udp }
    }

    /// Returns the socket of an address alone.
    pub(super) fn at(address: &str) -> Socket {
        let (host, port) = host_and_port(address);
        Socket { host, port, is_udp: false }
    }

    pub(super) fn port(&self) -> Option<u16> {
        (!self.is_unix()).then_some(self.port)
    }

    pub(super) fn is_loopback(&self) -> bool {
        match self.host {
            Host::V4(address) => address.is_loopback(),
            Host::V6(address) => address.is_loopback(),
            _ => false,
        }
    }

    pub(super) fn is_unix(&self) -> bool {
        matches!(self.host, Host::Unix(_))
    }

    /// Returns true if a connection to this address reaches a listener of the same host.
    pub(super) fn leads_to(&self, listener: &Socket) -> bool {
        !listener.is_udp
            && (self == listener || (self.is_loopback() && self.is_covered_by(listener)))
    }

    /// Returns true if the port of this socket is already open at every address because of `other`.
    pub(super) fn is_covered_by(&self, other: &Socket) -> bool {
        let is_wider = match (&self.host, &other.host) {
            (Host::V4(a), Host::V4(b)) => b.is_unspecified() && a != b,
            (Host::V6(a), Host::V6(b)) => b.is_unspecified() && a != b,
            _ => false,
        };
        is_wider && self.port == other.port && self.is_udp == other.is_udp
    }
}

fn host_and_port(address: &str) -> (Host, u16) {
    if let Some(path) = address.strip_prefix("unix:") {
        return (Host::Unix(path.to_owned()), 0);
    }
    if let Ok(port) = address.parse() {
        return (Host::V4(Ipv4Addr::UNSPECIFIED), port);
    }
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => match port.parse() {
            Ok(port) => (host, port),
            Err(_) => return (Host::Name(address.to_owned()), 0),
        },
        _ => (address, 80),
    };
    (host_of(host), port)
}

fn host_of(host: &str) -> Host {
    let inner = host.trim_start_matches('[').trim_end_matches(']');
    match host {
        "*" => Host::V4(Ipv4Addr::UNSPECIFIED),
        "localhost" => Host::V4(Ipv4Addr::LOCALHOST),
        _ => (inner.parse().map(Host::V6))
            .or_else(|_| host.parse().map(Host::V4))
            .unwrap_or_else(|_| Host::Name(host.to_ascii_lowercase())),
    }
}

/// Returns all listeners, those of `stream` and `mail` included, in nginx's order.
pub(super) fn all<'a>(nodes: &'a [Node<'a>]) -> Vec<Listen<'a>> {
    let mut listens = Vec::new();
    for block in nodes {
        let is_http = block.is_block("http");
        if !is_http && !block.is_block("stream") && !block.is_block("mail") {
            continue;
        }
        for server in block.children.iter().filter(|node| node.is_block("server")) {
            of_server(server, is_http, &mut listens);
        }
    }
    share_tls(&mut listens);
    listens
}

/// Makes servers on one socket share TLS: `ssl` of one of them applies to all (`ngx_http_add_addresses`).
fn share_tls(found: &mut [Listen<'_>]) {
    let with_tls: BTreeSet<Socket> =
        (found.iter().filter(|listen| listen.flags().iter().any(|flag| flag.text == "ssl")))
            .map(|listen| listen.socket.clone())
            .collect();
    for listen in found {
        listen.ssl |= with_tls.contains(&listen.socket);
    }
}

fn of_server<'a>(server: &'a Node<'a>, is_http: bool, found: &mut Vec<Listen<'a>>) {
    let before = found.len();
    // Gone from nginx 1.25.1 on; before, it made all listeners of the server speak TLS.
    let all_ssl = server
        .children
        .iter()
        .any(|node| node.is_simple("ssl") && node.directive.argument(0) == Some("on"));
    for node in server.children.iter().filter(|node| node.is_simple("listen")) {
        found.push(Listen {
            node,
            server,
            is_http,
            is_implicit: false,
            socket: Socket::of(node.directive),
            ssl: all_ssl,
        });
    }
    if is_http && found.len() == before {
        found.push(Listen {
            node: server,
            server,
            is_http,
            is_implicit: true,
            socket: Socket { host: Host::V4(Ipv4Addr::UNSPECIFIED), port: 80, is_udp: false },
            ssl: all_ssl,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_address_are_one_socket() {
        for same in [
            &["80", "*:80", "0.0.0.0:80", "*"][..],
            &["127.0.0.1:80", "127.0.0.1", "localhost", "localhost:80"],
            &["[::]:80", "[::]", "[0:0::0]:80"],
            &["unix:/a.sock"],
            &["8000-8010"],
        ] {
            for address in same {
                assert_eq!(host_and_port(address), host_and_port(same[0]), "{address}");
            }
        }
        assert_ne!(host_and_port("[::]:80"), host_and_port("80"));
    }
}
