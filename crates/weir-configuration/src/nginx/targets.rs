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
        let mut texts: Vec<String> = Vec::new();
        if is_by_variable && let Some(variables) = &self.variables {
            let known = variables.texts(target.host).into_iter().flatten();
            texts.extend(known.map(|text| match text.contains("://") {
                true => text.to_owned(),
                false => format!("{}{text}", target.scheme),
            }));
        }
        if texts.is_empty() {
            texts.push(argument.to_owned());
        }
        let of = |text: &String| {
            let target = Target::of(text);
            PassTarget {
                node: pass,
                group: self.group(target.host),
                scheme: target.scheme.to_owned(),
                server: target.server().into_owned(),
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
