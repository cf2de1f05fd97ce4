//! Groups of origin servers, and variables that hold only names of such groups.

use std::collections::BTreeSet;

use weir_configuration::Source;

use super::network::Sockets;
use crate::language::origin::Target;
use crate::language::syntax::Tree;
use crate::language::variables::{Texts, Variables, key};
use crate::language::view::Node;

/// Names to which the block `http`, or `stream`, passes requests on.
pub(super) struct Groups {
    /// Names in lower case; variables with their `$`.
    names: BTreeSet<String>,
    /// Names of groups whose servers are listeners of the configuration itself.
    own: BTreeSet<String>,
}

impl Groups {
    /// Finds the groups of a top-level block.
    pub(super) fn of(
        source: &Source,
        trees: &[Tree],
        block: &Node<'_>,
        sockets: &Sockets,
    ) -> Groups {
        let named =
            block.children.iter().filter(|it| it.is_block("upstream")).filter_map(|upstream| {
                Some((upstream, upstream.directive.argument(0)?.to_ascii_lowercase()))
            });
        let mut served = BTreeSet::new();
        for (upstream, name) in named {
            let mut addresses = upstream
                .simple()
                .filter(|node| node.directive.is("server"))
                .filter_map(|server| server.directive.argument(0));
            if addresses.all(|address| sockets.behind(address).is_some()) {
                served.insert(name);
            }
        }
        Groups { names: group_names(source, trees, block), own: served }
    }

    /// Returns true if a name is a group's, or that of a variable that is known to hold only names of groups.
    pub(super) fn contains(&self, host: &str) -> bool {
        self.names.contains(&key(host))
    }

    /// Returns true if all servers of a group are listeners of the configuration itself.
    pub(super) fn is_own(&self, host: &str) -> bool {
        self.own.contains(&key(host))
    }
}

/// Returns the names, in lower case, of the groups of a top-level block, and of the variables, with their `$`, that are
/// known to hold only names of groups.
pub(in crate::language) fn group_names(
    source: &Source,
    trees: &[Tree],
    block: &Node<'_>,
) -> BTreeSet<String> {
    let upstreams = block.children.iter().filter(|it| it.is_block("upstream"));
    let mut names: BTreeSet<String> = upstreams
        .filter_map(|upstream| upstream.directive.argument(0))
        .map(str::to_ascii_lowercase)
        .collect();
    let variables = Variables::of(source, trees, &block.children);
    // A variable may hold another, and that a third.
    while add_variables(&mut names, &variables.values) {}
    names
}

/// Adds the variables whose values are all known groups; returns true if there were any.
fn add_variables(names: &mut BTreeSet<String>, values: &Texts) -> bool {
    let new: Vec<String> = (values.iter().filter(|(name, of_one)| {
        !names.contains(*name)
            && !of_one.is_empty()
            && of_one.iter().all(|value| is_clear_target(names, value))
    }))
    .map(|(name, _)| name.clone())
    .collect();
    let are_any = !new.is_empty();
    names.extend(new);
    are_any
}

/// Returns true if a value leads to one of these groups in clear.
fn is_clear_target(names: &BTreeSet<String>, value: &str) -> bool {
    let target = Target::of(value);
    target.is_in_clear() && names.contains(&key(target.host))
}
