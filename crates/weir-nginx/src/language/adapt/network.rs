//! Addresses in a copy: those on which it listens, and those that it contacts.

use std::collections::BTreeMap;

use weir_configuration::place::{self, is_among};
use weir_configuration::{ConfigurationError, Source, Surroundings};

use super::Adaptation;
use crate::language::asked;
use crate::language::listen::{self, Socket};
use crate::language::origin::Target;
use crate::language::syntax::{Tree, quoted};
use crate::language::view::Node;

/// Flags of `listen` that have a meaning for a socket of the file system.
const UNIX_FLAGS: &str =
    "default, default_server, ssl, http2, proxy_protocol, backlog, rcvbuf, sndbuf, bind";

/// Parameters of a `server` in `upstream` that have a meaning for another address.
const SERVER_PARAMETERS: &str = "weight, max_conns, max_fails, fail_timeout, backup, down";

/// Modules that pass requests on, by the beginnings of their directives' names.
pub(super) const PASSING: &str = "proxy, grpc, fastcgi, uwsgi, scgi, memcached";

/// New addresses of all sockets that are listened on: `127.0.0.1:8080`, `unix:/arm/run/0.sock`.
pub(super) struct Sockets {
    new: BTreeMap<Socket, String>,
    /// Sockets that loads ask.
    asked: Vec<Socket>,
}

impl Sockets {
    pub(super) fn choose(
        source: &Source,
        (surroundings, build): (&Surroundings<'_>, &str),
        parsed: (&[Tree], &[Node<'_>]),
    ) -> Result<Sockets, ConfigurationError> {
        let all = listen::all(parsed.1);
        let mut sockets = Sockets { new: BTreeMap::new(), asked: Vec::new() };
        for (socket, address) in asked::sockets(source, parsed, (&surroundings.asks, build))? {
            sockets.new.insert(socket.clone(), address.to_string());
            sockets.asked.push(socket);
        }
        for listen in &all {
            if !sockets.new.contains_key(&listen.socket) {
                let name = format!("{}.sock", sockets.new.len());
                let path = place::socket(surroundings.prefix, &name, &source.files[0])?;
                sockets.new.insert(listen.socket.clone(), format!("unix:{path}"));
            }
        }
        Ok(sockets)
    }

    /// Returns the new address of the listener that a server's address leads to, if it is a listener of this
    /// configuration.
    pub(super) fn behind(&self, server: &str) -> Option<&String> {
        let mut all = self.new.iter();
        all.find(|(listener, _)| Socket::at(server).leads_to(listener)).map(|(_, new)| new)
    }
}

impl Adaptation<'_> {
    pub(super) fn listen(&mut self, nodes: &[Node<'_>]) {
        for listen in listen::all(nodes) {
            let Some(address) = self.sockets.new.get(&listen.socket) else {
                continue;
            };
            let address = quoted(address);
            if listen.is_implicit {
                self.insert_into(listen.node, &format!(" listen {address};"));
                continue;
            }
            let file = listen.node.file;
            if let Some(word) = listen.node.directive.arguments.first() {
                self.replace(file, word, address);
            }
            let is_asked = self.sockets.asked.contains(&listen.socket);
            for flag in listen.flags() {
                let name = flag.text.split('=').next().unwrap_or_default();
                let stays = if is_asked {
                    // The address may be of another family than the user's.

                    name != "proxy_protocol" && name != "ipv6only"
                } else {
                    is_among(name, UNIX_FLAGS)
                };
                if !stays {
                    self.blank(file, flag.span.start, flag.span.end);
                }
            }
        }
    }

    /// Adapts a `server` of an `upstream`.
    pub(super) fn origin_server(&mut self, node: &Node<'_>) {
        let server = node.directive.argument(0).unwrap_or_default();
        let new = match self.sockets.behind(server) {
            Some(own) => quoted(own),
            None => self.surroundings.origin.to_string(),
        };
        for (index, word) in node.directive.arguments.iter().enumerate() {
            let name = word.text.split('=').next().unwrap_or_default();
            if index == 0 {
                self.replace(node.file, word, new.clone());
            } else if !is_among(name, SERVER_PARAMETERS) {
                self.blank(node.file, word.span.start, word.span.end);
            }
        }
    }

    /// Adapts `proxy_pass` and its relatives; `outer` is the outermost block around it.
    pub(super) fn pass(&mut self, node: &Node<'_>, outer: &str) {
        let Some(word) = node.directive.arguments.first() else {
            return;
        };
        let target = Target::of(&word.text);
        if let Some(own) = self.sockets.behind(&target.server()) {
            // Behind a socket's path a colon stands before the URI.
            let colon = if own.starts_with("unix:") && !target.uri.is_empty() { ":" } else { "" };
            let text = format!("{}{own}{colon}{}", target.scheme, target.uri);
            return self.replace(node.file, word, quoted(&text));
        }
        let groups = self.groups.get(outer);
        let is_group = groups.is_some_and(|groups| groups.contains(target.host));
        // What its own listeners speak is as it was.
        if groups.is_some_and(|groups| groups.is_own(target.host)) {
            return;
        }
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
        // Beside a variable the URI is passed on as it stands; without one it would take the place of the location's
        // name, and a location of a regular expression could have none. No request has this field.
        let has_variable = target.host.contains('$') || target.scheme.contains('$');
        let has_none = !host.contains('$') && !target.uri.contains('$');
        let nothing = if has_variable && has_none && !target.uri.is_empty() {
            "$http_weir_nothing"
        } else {
            ""
        };
        let text = quoted(&format!("{scheme}{host}{nothing}{}", target.uri));
        self.replace(node.file, word, text);
    }

    /// Takes out `proxy_bind` and its relatives: a trial has no address of the user's.
    pub(super) fn bind(&mut self, node: &Node<'_>) {
        if node.directive.argument(0) != Some("off") {
            self.remove(node.file, node.directive);
        }
    }
}

/// Returns true if a directive passes requests on.
pub(in crate::language) fn is_pass(name: &str) -> bool {
    name.strip_suffix("_pass").is_some_and(|module| is_among(module, PASSING))
}

/// Returns true if a directive sets the source address of connections to origin servers.
pub(super) fn is_bind(name: &str) -> bool {
    name.strip_suffix("_bind").is_some_and(|module| is_among(module, PASSING))
}
