//! Targets to which nginx's directives pass requests on.

use std::collections::BTreeSet;

use weir_configuration::place::is_among;
use weir_model::record::ReplacedPart;

use super::asked::Servers;
use super::listen::Socket;
use super::origin::Target;
use super::replaced::{Search, in_force};
use super::rewrite::Passage;
use super::view::Node;

/// Directives that choose one of several servers; without one, the servers take turns.
const BALANCING: &str = "hash, least_conn, least_time, random, sticky";

/// Default settings of TLS to origin servers, without the name of their module.
const USUAL_TLS: &str = "ssl_ciphers DEFAULT, ssl_name $proxy_host, ssl_server_name off, ssl_session_reuse on, ssl_verify off, \
     ssl_verify_depth 1";

/// Target to which a directive passes requests on.
pub(super) struct PassTarget<'a> {
    node: &'a Node<'a>,
    /// Group of that name; None for an address, or if the target is not known.
    pub(super) group: Option<&'a Node<'a>>,
    /// Scheme with `://`.
    pub(super) scheme: String,
    /// Address, if the target is no group.
    server: String,
    /// Name or address, with a port if it has one.
    pub(super) host: String,
    /// URI behind the host, from its slash on.
    pub(super) uri: String,
    /// True for a group that a copy goes on naming.
    pub(super) is_kept: bool,
    /// True if the target comes from a variable.
    pub(super) is_by_variable: bool,
}

impl<'a> PassTarget<'a> {
    pub(super) fn is_in_clear(&self) -> bool {
        Target::of(&self.scheme).is_in_clear()
    }

    /// Returns the servers that are no listeners of the configuration itself, each with the directive that names it.
    pub(super) fn others(&self, search: &Search<'a>) -> Vec<(&'a Node<'a>, String)> {
        self.servers(search, false)
    }

    /// Returns the servers that are listeners of the configuration itself, each with the directive that names it.
    pub(super) fn own(&self, search: &Search<'a>) -> Vec<(&'a Node<'a>, String)> {
        self.servers(search, true)
    }

    fn servers(&self, search: &Search<'a>, own: bool) -> Vec<(&'a Node<'a>, String)> {
        let mut servers = match self.group {
            Some(group) => search.servers_of(group),
            None => vec![(self.node, self.server.clone())],
        };
        servers.retain(|(_, server)| search.servers.listener_at(server).is_some() == own);
        servers
    }
}

impl<'a> Search<'a> {
    /// Returns the targets of a directive that passes requests on: for a variable, its value, or else all its known
    /// values.
    pub(super) fn targets(&self, pass: &'a Node<'a>, passage: &Passage<'_>) -> Vec<PassTarget<'a>> {
        let argument = pass.directive.argument(0).unwrap_or_default();
        let target = Target::of(argument);
        let is_by_variable = target.host.contains('$');
        // Each with whether the variable leaves its scheme to the directive, or holds one in clear.
        let mut texts: Vec<(String, bool)> = Vec::new();
        if is_by_variable {
            let held = (passage.text(target.host).map(|text| BTreeSet::from([text])))
                .or_else(|| self.variables.texts(target.host));
            texts.extend(held.into_iter().flatten().map(|text| {
                let is_plain = Target::of(&text).is_in_clear();
                if text.contains("://") {
                    (text, is_plain)
                } else {
                    (format!("{}{text}", target.scheme), is_plain)
                }
            }));
        }
        if texts.is_empty() {
            texts.push((argument.to_owned(), true));
        }
        texts
            .iter()
            .map(|(text, is_plain)| {
                let target = Target::of(text);
                let group = self.group(target.host);
                PassTarget {
                    node: pass,
                    group,
                    scheme: target.scheme.to_owned(),
                    server: target.server().into_owned(),
                    host: target.host.to_owned(),
                    uri: target.uri.to_owned(),
                    is_kept: group.is_some() && *is_plain,
                    is_by_variable,
                }
            })
            .collect()
    }

    /// Returns the group of origin servers with a name.
    fn group(&self, host: &str) -> Option<&'a Node<'a>> {
        let mut blocks = self.http.iter().flat_map(|http| &http.children);
        blocks.find(|node| {
            let name = node.directive.argument(0).unwrap_or_default();
            node.is_block("upstream") && name.eq_ignore_ascii_case(host)
        })
    }

    /// Returns the servers of a group that are not `down`, with their addresses.
    fn servers_of(&self, group: &'a Node<'a>) -> Vec<(&'a Node<'a>, String)> {
        group
            .simple()
            .filter(|node| node.directive.is("server"))
            .filter(|node| !node.directive.words().any(|word| word == "down"))
            .filter_map(|node| Some((node, node.directive.argument(0)?.to_owned())))
            .collect()
    }
}

impl<'a> Search<'a> {
    /// Adds the parts that one of the targets of a directive loses in the copy.
    pub(super) fn target(
        &mut self,
        pass: &Node<'_>,
        target: &PassTarget<'a>,
        layers: &[&'a Node<'a>],
    ) {
        let servers = target.others(self);
        if !servers.is_empty() && !target.is_in_clear() {
            let name = format!("{} {}", pass.directive.name.text, target.scheme);
            let spot = self.servers.spot(pass, name);
            self.found.add(ReplacedPart::OriginTls, &spot);
            for node in in_force(layers, is_of_tls) {
                if !is_usual(node) {
                    self.add(ReplacedPart::OriginTls, node);
                }
            }
        }
        if let Some(group) = target.group {
            self.shares(group, &servers);
        }
        for (node, server) in &servers {
            if server.starts_with("unix:") && target.group.is_none() {
                let spot = self.servers.spot(node, "server unix:".to_owned());
                self.found.add(ReplacedPart::Servers, &spot);
            }
            if node.directive.words().any(|word| word == "resolve") {
                self.names(node, layers);
            }
        }
        if !servers.is_empty() {
            for node in in_force(layers, |name| name.ends_with("_bind")) {
                if node.directive.argument(0) != Some("off") {
                    let spot = self.servers.spot(node, node.directive.name.text.clone());
                    self.found.add(ReplacedPart::LeftOut, &spot);
                }
            }
        }
    }

    /// Adds the parts that a group loses because its servers (`others`) become one in the copy.
    fn shares(&mut self, group: &'a Node<'a>, others: &[(&'a Node<'a>, String)]) {
        let paths: Vec<&Node<'_>> = (others.iter())
            .filter(|(_, server)| server.starts_with("unix:"))
            .map(|(node, _)| *node)
            .collect();
        let named = match paths[..] {
            [] => None,
            [node] => Some((node, "server unix:".to_owned())),
            _ => Some((group, format!("{} servers unix:", paths.len()))),
        };
        let mut parameters: Vec<&str> = (others.iter())
            .flat_map(|(node, _)| node.directive.words())
            .filter(|word| *word == "backup" || word.starts_with("weight="))
            .collect();
        parameters.sort_unstable();
        let shares = parameters.iter().map(|word| format!(" {word}"));
        let count = format!("{} servers{}", others.len(), shares.collect::<String>());
        let several = (others.len() > 1).then_some((group, count));
        for (node, name) in named.into_iter().chain(several) {
            let spot = self.servers.spot(node, name);
            self.found.add(ReplacedPart::Servers, &spot);
        }
        for node in group.simple() {
            if node.directive.is("ip_hash") {
                self.add(ReplacedPart::ClientAddress, node);
            } else if is_among(&node.directive.name.text, BALANCING) {
                self.add_client(node);
                if others.len() > 1 {
                    self.add(ReplacedPart::Servers, node);
                }
            }
        }
    }
}

/// Returns true for a directive about TLS to origin servers.
fn is_of_tls(name: &str) -> bool {
    name.starts_with("proxy_ssl_")
        || name.starts_with("grpc_ssl_")
        || name.starts_with("uwsgi_ssl_")
}

/// Returns true for a directive about TLS to origin servers that repeats nginx's default.
fn is_usual(node: &Node<'_>) -> bool {
    let name = &*node.directive.name.text;
    let value: String = node.directive.words().collect();
    name.split_once('_').is_some_and(|(_, name)| is_among(&format!("{name} {value}"), USUAL_TLS))
}

impl Servers<'_> {
    /// Returns the index of the HTTP listener that a server's address leads to.
    pub(super) fn listener_at(&self, server: &str) -> Option<usize> {
        let mut all = self.listens.iter();
        all.position(|listen| Socket::at(server).leads_to(&listen.socket))
    }
}
