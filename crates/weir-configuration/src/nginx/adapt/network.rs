//! Addresses of a copy: those it listens at, and those it asks.

use std::collections::BTreeMap;

use super::Adaptation;
use crate::nginx::listen::{self, Listen, Socket};
use crate::nginx::origin::Target;
use crate::nginx::syntax::quoted;
use crate::nginx::view::Node;
use crate::place::{self, is_among};
use crate::{ConfigurationError, Source, Surroundings};

/// Flags of `listen` that mean something for a socket of the file system.
const UNIX_FLAGS: &str =
    "default, default_server, ssl, http2, proxy_protocol, backlog, rcvbuf, sndbuf, bind";

/// Parameters of a `server` in `upstream` that mean something for another address.
const SERVER_PARAMETERS: &str = "weight, max_conns, max_fails, fail_timeout, backup, down";

/// Modules that pass requests on, as names of their directives begin.
pub(super) const PASSING: &str = "proxy, grpc, fastcgi, uwsgi, scgi, memcached";

/// The new address of everything that is listened at.
pub(super) struct Sockets {
    new: BTreeMap<Socket, String>,
    /// Those that a load asks.
    asked: Vec<Socket>,
}

impl Sockets {
    pub(super) fn choose(
        source: &Source,
        surroundings: &Surroundings<'_>,
        nodes: &[Node<'_>],
    ) -> Result<Sockets, ConfigurationError> {
        let all = listen::all(nodes);
        let mut sockets = Sockets {
            new: BTreeMap::new(),
            asked: Vec::new(),
        };
        let port = surroundings.port;
        let is_at_port = |it: &Listen<'_>| port.is_none_or(|port| it.socket.port() == Some(port));
        let in_clear = asked(&all, |it| !it.ssl && is_at_port(it));
        let is_tls = |it: &Listen<'_>| it.ssl && Some(&it.socket) != in_clear;
        let tls_at_port = asked(&all, |it| is_tls(it) && is_at_port(it));
        let with_tls = tls_at_port.or_else(|| asked(&all, is_tls));
        let wants_tls = surroundings.tls_listen.is_some();
        if in_clear.is_none() && !(wants_tls && tls_at_port.is_some()) {
            let at = port.map_or(String::new(), |port| format!(" at port {port}"));
            let what = format!("no HTTP server listens in clear{at}");
            return Err(none(source, &all, what));
        }
        if wants_tls && with_tls.is_none() {
            let what = "no HTTP server listens with TLS".to_owned();
            return Err(none(source, &all, what));
        }
        if let Some(socket) = in_clear {
            sockets.ask(socket, surroundings.listen.to_string());
        }
        if let Some((socket, address)) = with_tls.zip(surroundings.tls_listen) {
            sockets.ask(socket, address.to_string());
        }
        for listen in &all {
            if !sockets.new.contains_key(&listen.socket) {
                let name = format!("{}.sock", sockets.new.len());
                let path = place::socket(surroundings.prefix, &name, &source.files[0])?;
                let address = quoted(&format!("unix:{path}"));
                sockets.new.insert(listen.socket.clone(), address);
            }
        }
        Ok(sockets)
    }

    fn ask(&mut self, socket: &Socket, address: String) {
        self.new.insert(socket.clone(), address);
        self.asked.push(socket.clone());
    }
}

/// What the first listener binds that a load can ask and that is as wanted.
fn asked<'l>(all: &'l [Listen<'_>], is_wanted: impl Fn(&Listen<'_>) -> bool) -> Option<&'l Socket> {
    let mut found = all
        .iter()
        .filter(|it| it.is_http && !it.socket.is_udp && is_wanted(it));
    found.next().map(|listen| &listen.socket)
}

fn none(source: &Source, all: &[Listen<'_>], what: String) -> ConfigurationError {
    let main = &source.files[0];
    let error = ConfigurationError::at(&main.path, "", 0, what);
    let http = all.iter().filter(|listen| listen.is_http);
    let listeners: Vec<String> = http
        .take(10)
        .map(|it| {
            let file = source.files[it.node.file].path.display();
            let tls = if it.ssl { " (TLS)" } else { "" };
            format!("{}{tls} at {file}:{}", it.address(), it.node.directive.line)
        })
        .collect();
    match listeners.is_empty() {
        true => error.hint("write a `server` into `http`"),
        false => error.hint(format!("listeners: {}", listeners.join(", "))),
    }
}

impl Adaptation<'_> {
    pub(super) fn listen(&mut self, nodes: &[Node<'_>], sockets: &Sockets) {
        for listen in listen::all(nodes) {
            let Some(address) = sockets.new.get(&listen.socket) else {
                continue;
            };
            if listen.is_implicit {
                self.insert_into(listen.node, &format!(" listen {address};"));
                continue;
            }
            let file = listen.node.file;
            if let Some(word) = listen.node.directive.arguments.first() {
                self.replace(file, word, address.clone());
            }
            let is_asked = sockets.asked.contains(&listen.socket);
            for flag in listen.flags() {
                let name = flag.text.split('=').next().unwrap_or_default();
                let stays = match is_asked {
                    // The address may be of another family than the user's.
                    true => name != "proxy_protocol" && name != "ipv6only",
                    false => is_among(name, UNIX_FLAGS),
                };
                if !stays {
                    self.blank(file, flag.span.start, flag.span.end);
                }
            }
        }
    }

    /// A `server` of an `upstream`.
    pub(super) fn origin_server(&mut self, node: &Node<'_>) {
        let origin = self.surroundings.origin;
        for (index, word) in node.directive.arguments.iter().enumerate() {
            let name = word.text.split('=').next().unwrap_or_default();
            if index == 0 {
                self.replace(node.file, word, origin.to_string());
            } else if !is_among(name, SERVER_PARAMETERS) {
                self.blank(node.file, word.span.start, word.span.end);
            }
        }
    }

    /// `proxy_pass` and its relatives, `outer` being the outermost block around it.
    pub(super) fn pass(&mut self, node: &Node<'_>, outer: &str) {
        let Some(word) = node.directive.arguments.first() else {
            return;
        };
        let target = Target::of(&word.text);
        let groups = self.groups.get(outer);
        let is_group = groups.is_some_and(|groups| groups.contains(target.host));
        // A variable alone holds the scheme as well; `stream` knows none.
        let holds_scheme = target.scheme.is_empty() && target.host.contains('$');
        let scheme = match &*node.directive.name.text {
            "proxy_pass" if !is_group && holds_scheme && outer == "http" => "http://",
            _ if target.is_in_clear() => target.scheme,
            "grpc_pass" => "grpc://",
            _ => "http://",
        };
        if is_group && scheme == target.scheme {
            return;
        }
        let origin = self.surroundings.origin.to_string();
        let host = if is_group { target.host } else { &origin };
        let text = quoted(&format!("{scheme}{host}{}", target.uri));
        self.replace(node.file, word, text);
    }

    /// `proxy_bind` and its relatives: a trial has no address of the user's.
    pub(super) fn bind(&mut self, node: &Node<'_>) {
        if node.directive.argument(0) != Some("off") {
            self.remove(node.file, node.directive);
        }
    }
}

/// Whether a directive passes requests on.
pub(super) fn is_pass(name: &str) -> bool {
    name.strip_suffix("_pass")
        .is_some_and(|module| is_among(module, PASSING))
}

/// Whether a directive says from which address an origin server is asked.
pub(super) fn is_bind(name: &str) -> bool {
    name.strip_suffix("_bind")
        .is_some_and(|module| is_among(module, PASSING))
}
