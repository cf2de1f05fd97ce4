//! Where directives of nginx pass requests on.

use super::asked::Servers;
use super::listen::Socket;
use super::origin::Target;
use super::replaced::Search;
use super::view::Node;

/// Where a directive passes requests on.
pub(super) struct PassTarget<'a> {
    node: &'a Node<'a>,
    /// The group of that name; `None`: it is an address, or not known.
    pub(super) group: Option<&'a Node<'a>>,
    /// With `://`.
    pub(super) scheme: String,
    /// The address where it is no group.
    server: String,
    /// Name or address, with a port if it has one.
    pub(super) host: String,
    /// What stands behind that, from its slash on.
    pub(super) uri: String,
    /// True for a group that a copy goes on naming.
    pub(super) is_kept: bool,
    /// True if a variable says where.
    pub(super) is_by_variable: bool,
}

impl<'a> PassTarget<'a> {
    pub(super) fn is_in_clear(&self) -> bool {
        Target::of(&self.scheme).is_in_clear()
    }

    /// Its servers that are no listeners of the configuration itself, and the directives that name them.
    pub(super) fn others(&self, search: &Search<'a>) -> Vec<(&'a Node<'a>, String)> {
        self.servers(search, false)
    }

    /// Addresses of its servers that are listeners of the configuration itself.
    pub(super) fn own(&self, search: &Search<'a>) -> Vec<String> {
        let own = self.servers(search, true).into_iter();
        own.map(|(_, server)| server).collect()
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
    /// Where a directive passes requests on: of a variable, to all that it is seen to hold.
    pub(super) fn targets(&self, pass: &'a Node<'a>) -> Vec<PassTarget<'a>> {
        let argument = pass.directive.argument(0).unwrap_or_default();
        let target = Target::of(argument);
        let is_by_variable = target.host.contains('$');
        // Each with whether the variable leaves its scheme to the directive, or holds one in clear.
        let mut texts: Vec<(String, bool)> = Vec::new();
        if is_by_variable {
            let known = self.variables.texts(target.host).into_iter().flatten();
            texts.extend(known.map(|text| {
                let is_plain = Target::of(text).is_in_clear();
                match text.contains("://") {
                    true => (text.to_owned(), is_plain),
                    false => (format!("{}{text}", target.scheme), is_plain),
                }
            }));
        }
        if texts.is_empty() {
            texts.push((argument.to_owned(), true));
        }
        let of = |(text, is_plain): &(String, bool)| {
            let target = Target::of(text);
            let (group, is_plain) = (self.group(target.host), *is_plain);
            PassTarget {
                node: pass,
                group,
                scheme: target.scheme.to_owned(),
                server: target.server().into_owned(),
                host: target.host.to_owned(),
                uri: target.uri.to_owned(),
                is_kept: group.is_some() && is_plain,
                is_by_variable,
            }
        };
        texts.iter().map(of).collect()
    }

    /// The group of origin servers of a name.
    fn group(&self, host: &str) -> Option<&'a Node<'a>> {
        let mut blocks = self.http.iter().flat_map(|http| &http.children);
        blocks.find(|node| {
            let name = node.directive.argument(0).unwrap_or_default();
            node.is_block("upstream") && name.eq_ignore_ascii_case(host)
        })
    }

    /// The servers of a group that are asked, with their addresses.
    fn servers_of(&self, group: &'a Node<'a>) -> Vec<(&'a Node<'a>, String)> {
        let lines = group.simple().filter(|node| node.directive.is("server"));
        let up = lines.filter(|node| !node.directive.words().any(|word| word == "down"));
        up.filter_map(|node| Some((node, node.directive.argument(0)?.to_owned())))
            .collect()
    }
}

impl Servers<'_> {
    /// The listener of HTTP that a server's address leads to.
    pub(super) fn listener_at(&self, server: &str) -> Option<usize> {
        let mut all = self.listens.iter();
        all.position(|listen| Socket::at(server).leads_to(&listen.socket))
    }
}
