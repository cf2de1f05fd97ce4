//! Groups of origin servers, and variables that name nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::Source;
use crate::nginx::origin::Target;
use crate::nginx::syntax::{Directive, Tree};
use crate::nginx::view::{Node, is_include};

/// What `http`, or `stream`, passes on to by name.
pub(super) struct Groups {
    /// In lower case; a variable with its `$`.
    names: BTreeSet<String>,
}

/// What variables are seen to hold, by their names with `$`.
type Values = BTreeMap<String, BTreeSet<String>>;

impl Groups {
    /// Those of a block outside all others.
    pub(super) fn of(source: &Source, trees: &[Tree], block: &Node<'_>) -> Groups {
        let upstreams = block.children.iter().filter(|it| it.is_block("upstream"));
        let mut groups = Groups {
            names: upstreams
                .filter_map(|upstream| upstream.directive.argument(0))
                .map(str::to_ascii_lowercase)
                .collect(),
        };
        let mut values = Values::new();
        assigned(source, trees, &block.children, &mut values);
        for of_one in values.values_mut() {
            // Who holds nothing asks nobody.
            of_one.remove("");
        }
        // A variable may hold another, and that a third.
        while groups.add_variables(&values) {}
        groups
    }

    /// Whether a name is a group's, or a variable's that is seen to hold names of groups alone.
    pub(super) fn contains(&self, host: &str) -> bool {
        self.names.contains(&key(host))
    }

    /// Adds the variables whose values are all known, and tells whether there were any.
    fn add_variables(&mut self, values: &Values) -> bool {
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

/// How a name of any spelling is known: `${name}` is `$name`.
fn key(host: &str) -> String {
    let inner = host
        .strip_prefix("${")
        .and_then(|inner| inner.strip_suffix('}'));
    let key = inner.map_or_else(|| host.to_owned(), |inner| format!("${inner}"));
    key.to_ascii_lowercase()
}

fn assigned(source: &Source, trees: &[Tree], nodes: &[Node<'_>], values: &mut Values) {
    for node in nodes {
        let directive = node.directive;
        match &*directive.name.text {
            "set" if directive.block.is_none() => {
                if let (Some(name), Some(value)) = (directive.argument(0), directive.argument(1)) {
                    values
                        .entry(key(name))
                        .or_default()
                        .insert(value.to_owned());
                }
            }
            "map" | "geo" | "split_clients" => {
                if let Some(name) = directive.words().last() {
                    let of_one = values.entry(key(name)).or_default();
                    entries(source, trees, directive.children(), of_one);
                }
            }
            _ => assigned(source, trees, &node.children, values),
        }
    }
}

/// The second words of entries, those of included files too.
fn entries(source: &Source, trees: &[Tree], all: &[Directive], values: &mut BTreeSet<String>) {
    for entry in all {
        let argument = entry.argument(0).unwrap_or_default();
        let files = source.includes.get(argument).filter(|_| is_include(entry));
        match files {
            Some(files) => {
                for &file in files {
                    entries(source, trees, &trees[file].directives, values);
                }
            }
            None => values.extend(entry.argument(0).map(str::to_owned)),
        }
    }
}
