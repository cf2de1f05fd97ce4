//! Groups of origin servers, and variables that name nothing else.

use std::collections::{BTreeMap, BTreeSet};

use super::network::Sockets;
use crate::Source;
use crate::nginx::origin::Target;
use crate::nginx::syntax::{Directive, Tree};
use crate::nginx::view::{Node, is_include};

/// What `http`, or `stream`, passes on to by name.
pub(super) struct Groups {
    /// In lower case; a variable with its `$`.
    names: BTreeSet<String>,
    /// Names of groups whose servers are listeners of the configuration itself.
    own: BTreeSet<String>,
}

/// What variables are seen to hold, by their names with `$`.
type Values = BTreeMap<String, BTreeSet<String>>;

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

    /// Returns true for a group whose servers are listeners of the configuration itself.
    pub(super) fn is_own(&self, host: &str) -> bool {
        self.own.contains(&key(host))
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

/// Stands for what nobody can know before a request is there. No group is called so.
const ANYTHING: &str = "$";

fn assigned(source: &Source, trees: &[Tree], nodes: &[Node<'_>], values: &mut Values) {
    for node in nodes {
        let directive = node.directive;
        captured(directive, values);
        match &*directive.name.text {
            "set" | "auth_request_set" if directive.block.is_none() => {
                if let (Some(name), Some(value)) = (directive.argument(0), directive.argument(1)) {
                    values
                        .entry(key(name))
                        .or_default()
                        .insert(value.to_owned());
                }
            }
            "map" | "geo" | "split_clients" => {
                let name = directive.words().last().map(key).unwrap_or_default();
                values.entry(name.clone()).or_default();
                entries(source, trees, directive.children(), &mut |entry| {
                    captured(entry, values);
                    let of_one = values.entry(name.clone()).or_default();
                    of_one.extend(entry.argument(0).map(str::to_owned));
                });
            }
            "geoip2" => {
                for entry in directive.children() {
                    unknown(&entry.name.text, values);
                }
            }
            _ => assigned(source, trees, &node.children, values),
        }
    }
}

/// Notes that a variable may hold anything.
fn unknown(name: &str, values: &mut Values) {
    let of_one = values.entry(key(name)).or_default();
    of_one.insert(ANYTHING.to_owned());
}

/// Notes the variables that are what a pattern captures by name (pcre2pattern(3)): `(?<pool>a|b)`.
fn captured(directive: &Directive, values: &mut Values) {
    let words = std::iter::once(&*directive.name.text).chain(directive.words());
    for word in words.filter(|word| word.contains("(?")) {
        for open in ["(?<", "(?P<", "(?'"] {
            for rest in word.split(open).skip(1) {
                let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
                if rest[end..].starts_with(['>', '\'']) {
                    unknown(&format!("${}", &rest[..end]), values);
                }
            }
        }
    }
}

/// Tells of all entries, those of included files too.
fn entries(source: &Source, trees: &[Tree], all: &[Directive], tell: &mut dyn FnMut(&Directive)) {
    for entry in all {
        let argument = entry.argument(0).unwrap_or_default();
        let files = source.includes.get(argument).filter(|_| is_include(entry));
        match files {
            Some(files) => {
                for &file in files {
                    entries(source, trees, &trees[file].directives, tell);
                }
            }
            None => tell(entry),
        }
    }
}
