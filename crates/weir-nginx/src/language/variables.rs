//! Values that variables of a configuration can have, and the inputs that decide them.

use std::collections::{BTreeMap, BTreeSet};

use weir_configuration::Source;
use weir_model::record::ReplacedPart;

use super::syntax::{Directive, Tree};
use super::view::{Node, is_include};

/// Texts by the names of variables, which have their `$` and are in lower case.
pub(super) type Texts = BTreeMap<String, BTreeSet<String>>;

/// Variables that hold the client's address or its location, by name or beginning of the name.
const CLIENTS: [&str; 4] = ["remote_addr", "binary_remote_addr", "geoip_", "realip_"];

/// Variables that the PROXY protocol sets, by name or beginning of the name.
const OF_PROTOCOL: [&str; 1] = ["proxy_protocol_"];

/// Variables to which a configuration gives values.
#[derive(Default)]
pub(super) struct Variables {
    /// Values of the variables, without the empty one.
    pub(super) values: Texts,
    /// Inputs by which `map`, `geo` and `split_clients` choose a value.
    sources: Texts,
}

impl Variables {
    /// Collects the variables assigned in some nodes and in the blocks inside of them.
    pub(super) fn of(source: &Source, trees: &[Tree], nodes: &[Node<'_>]) -> Variables {
        let mut variables = Variables::default();
        variables.assign(source, trees, nodes);
        for texts in variables.values.values_mut() {
            // Who holds nothing asks nobody.
            texts.remove("");
        }
        variables
    }

    /// Returns all texts that a word may be, if it is nothing but a variable. Variables that hold other variables are
    /// followed. None for another word, or if a value is not known.
    pub(super) fn texts(&self, word: &str) -> Option<BTreeSet<String>> {
        let mut texts = BTreeSet::new();
        let (mut left, mut seen) = (vec![key(word)], BTreeSet::new());
        while let Some(name) = left.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            for text in self.values.get(&name)? {
                if !text.contains('$') {
                    texts.insert(text.clone());
                } else if self.values.contains_key(&key(text)) {
                    left.push(key(text));
                } else {
                    return None;
                }
            }
        }
        Some(texts)
    }

    /// Returns the replaced part that a variable in a text depends on, if there is one.
    pub(super) fn replaced_in(&self, text: &str) -> Option<ReplacedPart> {
        if self.depends(text, &OF_PROTOCOL) {
            Some(ReplacedPart::ProxyProtocol)
        } else {
            self.depends(text, &CLIENTS).then_some(ReplacedPart::ClientAddress)
        }
    }

    /// Returns true if a variable in a text depends on one whose name begins with one of `begins`.
    fn depends(&self, text: &str, begins: &[&str]) -> bool {
        let (mut left, mut seen) = (vec![text], BTreeSet::new());
        while let Some(text) = left.pop() {
            for name in names_in(text) {
                if begins.iter().any(|begin| name.starts_with(begin)) {
                    return true;
                }
                let name = format!("${}", name.to_ascii_lowercase());
                let further = [&self.values, &self.sources].map(|texts| texts.get(&name));
                if seen.insert(name) {
                    left.extend(further.into_iter().flatten().flatten().map(String::as_str));
                }
            }
        }
        false
    }
}

/// Returns the names of the variables in a text, without `$` and braces.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).map(|piece| {
        let name = piece.trim_start_matches('{');
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &name[..end.unwrap_or(name.len())]
    })
}

/// Returns the canonical name of a variable in any spelling: `${name}` is `$name`.
pub(super) fn key(host: &str) -> String {
    let inner = host.strip_prefix("${").and_then(|inner| inner.strip_suffix('}'));
    let key = inner.map_or_else(|| host.to_owned(), |inner| format!("${inner}"));
    key.to_ascii_lowercase()
}

/// Value that stands for a text that is unknown before a request comes. No group has this name.
const ANYTHING: &str = "$";

impl Variables {
    fn assign(&mut self, source: &Source, trees: &[Tree], nodes: &[Node<'_>]) {
        for node in nodes {
            let directive = node.directive;
            collect_captures(directive, &mut self.values);
            match &*directive.name.text {
                "set" | "auth_request_set" if directive.block.is_none() => {
                    let words = directive.argument(0).zip(directive.argument(1));
                    if let Some((name, value)) = words {
                        let texts = self.values.entry(key(name)).or_default();
                        texts.insert(value.to_owned());
                    }
                }
                "map" | "geo" | "split_clients" => self.choose(source, trees, directive),
                "geoip2" => {
                    for entry in directive.children() {
                        unknown(&entry.name.text, &mut self.values);
                        let mut words = entry.words();
                        let source = words.find_map(|word| word.strip_prefix("source="));
                        let texts = self.sources.entry(key(&entry.name.text)).or_default();
                        texts.insert(source.unwrap_or("$remote_addr").to_owned());
                    }
                }
                _ => self.assign(source, trees, &node.children),
            }
        }
    }

    /// Records a variable that a block chooses a value for.
    fn choose(&mut self, source: &Source, trees: &[Tree], block: &Directive) {
        let words: Vec<&str> = block.words().collect();
        let Some((name, deciding)) = words.split_last() else {
            return;
        };
        let name = key(name);
        let mut deciding: BTreeSet<String> = deciding.iter().map(|&it| it.to_owned()).collect();
        if block.is("geo") && deciding.is_empty() {
            deciding.insert("$remote_addr".to_owned());
        }
        self.sources.entry(name.clone()).or_default().extend(deciding);
        self.values.entry(name.clone()).or_default();
        entries(source, trees, block.children(), &mut |entry| {
            collect_captures(entry, &mut self.values);
            let texts = self.values.entry(name.clone()).or_default();
            texts.extend(entry.argument(0).map(str::to_owned));
        });
    }
}

/// Records that a variable may hold any text.
fn unknown(name: &str, values: &mut Texts) {
    let texts = values.entry(key(name)).or_default();
    texts.insert(ANYTHING.to_owned());
}

/// Records the variables that hold a named capture of a pattern (pcre2pattern(3)): `(?<pool>a|b)`.
fn collect_captures(directive: &Directive, values: &mut Texts) {
    let words = std::iter::once(&*directive.name.text).chain(directive.words());
    for word in words.filter(|word| word.contains("(?")) {
        for open in ["(?<", "(?P<", "(?'"] {
            for rest in word.split(open).skip(1) {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
                if behind.starts_with(['>', '\'']) {
                    unknown(&format!("${name}"), values);
                }
            }
        }
    }
}

/// Calls `tell` with each entry, including those of included files.
pub(super) fn entries<'t>(
    source: &Source,
    trees: &'t [Tree],
    all: &'t [Directive],
    tell: &mut dyn FnMut(&'t Directive),
) {
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
