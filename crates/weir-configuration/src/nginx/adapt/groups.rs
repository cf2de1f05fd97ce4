//! Groups of origin servers, and variables that name nothing else.

use std::collections::BTreeSet;

use super::network::Sockets;
use crate::Source;
use crate::nginx::origin::Target;
use crate::nginx::syntax::Tree;
use crate::nginx::variables::{Texts, Variables, key};
use crate::nginx::view::Node;

/// What `http`, or `stream`, passes on to by name.
pub(super) struct Groups {
    /// In lower case; a variable with its `$`.
    names: BTreeSet<String>,
    /// Names of groups whose servers are listeners of the configuration itself.
    own: BTreeSet<String>,
}

impl Groups {
    /// Those of a block outside all others.
    pub(super) fn of(
        source: &Source,
        trees: &[Tree],
        block: &Node<'_>,
        sockets: &Sockets,
    ) -> Groups {
        let upstreams = block.children.iter().filter(|it| it.is_block("upstream"));
        let named =
            upstreams.filter_map(|upstream| Some((upstream, upstream.directive.argument(0)?)));
        let mut groups = Groups {
            names: BTreeSet::new(),
            own: BTreeSet::new(),
        };
        for (upstream, name) in named {
            let name = name.to_ascii_lowercase();
            let servers = upstream.simple().filter(|node| node.directive.is("server"));
            let mut addresses = servers.filter_map(|server| server.directive.argument(0));
            if addresses.all(|address| sockets.behind(address).is_some()) {
                groups.own.insert(name.clone());
            }
            groups.names.insert(name);
        }
        let variables = Variables::of(source, trees, &block.children);
        // A variable may hold another, and that a third.
        while groups.add_variables(&variables.values) {}
        groups
    }

    /// Whether a name is a group's, or a variable's that is seen to hold names of groups alone.
    pub(super) fn contains(&self, host: &str) -> bool {
        self.names.contains(&key(host))
    }

    /// Returns true for a group whose servers are listeners of the configuration itself.
    pub(super) fn is_own(&self, host: &str) -> bool {
        self.own.contains(&key(host))
    }

    /// Adds the variables whose values are all known, and tells whether there were any.
    fn add_variables(&mut self, values: &Texts) -> bool {
        let is_known = |value: &String| {
            let target = Target::of(value);
            target.is_in_clear() && self.contains(target.host)
        };
        let is_new = |(name, of_one): &(&String, &BTreeSet<String>)| {
            !self.names.contains(*name) && !of_one.is_empty() && of_one.iter().all(is_known)
        };
        let new: Vec<String> = (values.iter().filter(is_new))
            .map(|(name, _)| name.clone())
            .collect();
        let are_any = !new.is_empty();
        self.names.extend(new);
        are_any
    }
}
