//! Changes that directives of ngx_http_rewrite_module, `try_files` and `index` make to a request before a location
//! answers it, as far as the request alone determines them.

use std::collections::{BTreeMap, BTreeSet};

use weir_configuration::Source;
use weir_configuration::answer::Answer;
use weir_configuration::asked::Request;
use weir_configuration::names::{captures, is_found};

use super::syntax::{Directive, Tree};
use super::variables::entries;
use super::view::Node;

/// Maximum depth of variables whose values contain others; more than anybody needs.
const MOST_NESTED: usize = 10;

/// A request on its way through a server.
pub(super) struct Passage<'a> {
    pub(super) request: &'a Request<'a>,
    /// Port of the request's listener, if it has one.
    pub(super) port: Option<u16>,
    /// Path of the request, with all changes on the way.
    pub(super) path: String,
    /// The `map` blocks of `http`.
    maps: &'a [MapBlock<'a>],
    /// Values that `set` gave variables on the way; None if the value is not known.
    values: BTreeMap<String, Option<String>>,
    /// Places of the conditions that did not hold on the way.
    failed: BTreeSet<(usize, usize)>,
}

/// Reason why the rewrite directives of a block end early.
pub(super) enum End {
    Answer(Answer),
    /// The block goes on with the request, whatever its path is now.
    Break,
    /// nginx looks for another location.
    Last,
}

/// Target of `try_files` if no file is there.
pub(super) enum Fallback<'n> {
    Named(&'n str),
    Path(String),
}

/// A `map` block with all its entries, including those of included files.
pub(super) struct MapBlock<'t> {
    block: &'t Directive,
    entries: Vec<&'t Directive>,
}

/// Returns the `map` blocks of `http`.
pub(super) fn maps<'t>(source: &Source, trees: &'t [Tree], http: &Node<'t>) -> Vec<MapBlock<'t>> {
    (http.children.iter())
        .filter(|node| node.is_block("map"))
        .map(|node| {
            let mut all = Vec::new();
            let block = node.directive;
            entries(source, trees, block.children(), &mut |entry| {
                all.push(entry);
            });
            MapBlock { block, entries: all }
        })
        .collect()
}

impl<'a> Passage<'a> {
    pub(super) fn new(
        request: &'a Request<'a>,
        port: Option<u16>,
        maps: &'a [MapBlock<'a>],
    ) -> Passage<'a> {
        Passage {
            request,
            port,
            path: request.path.to_owned(),
            maps,
            values: BTreeMap::new(),
            failed: BTreeSet::new(),
        }
    }

    /// Returns the passage of a request within this one, with the same variables.
    pub(super) fn within<'p>(&'p self, request: &'p Request<'p>) -> Passage<'p> {
        let values = self.values.clone();
        Passage { values, ..Passage::new(request, None, self.maps) }
    }

    /// Returns true for an `if` that is certainly not entered.
    pub(super) fn fails(&self, condition: &Node<'_>) -> bool {
        self.failed.contains(&condition.place())
    }

    /// Returns a text with its variables replaced; None if one is not known.
    pub(super) fn text(&self, text: &str) -> Option<String> {
        self.fill(text, &[], MOST_NESTED)
    }

    /// Follows the rewrite directives in a block. Returns the reason if they end early; None if all were followed.
    pub(super) fn rewritten(&mut self, block: &Node<'_>) -> Option<End> {
        let end = self.followed(block);
        // A service says it later, before the content is asked for.
        for node in block.simple().filter(|it| it.directive.is("auth_request_set")) {
            self.set(node, false);
        }
        end
    }

    fn followed(&mut self, block: &Node<'_>) -> Option<End> {
        for node in &block.children {
            let end = match &*node.directive.name.text {
                "return" => Some(End::Answer(returned(node))),
                "break" => Some(End::Break),
                "rewrite" => self.rewrite(node),
                "if" => self.condition(node),
                "set" => {
                    self.set(node, true);
                    None
                }
                _ => None,
            };
            if end.is_some() {
                return end;
            }
        }
        None
    }

    fn condition(&mut self, node: &Node<'_>) -> Option<End> {
        self.failed.remove(&node.place());
        match self.is_true(node) {
            Some(true) => return self.rewritten(node),
            Some(false) => {
                self.failed.insert(node.place());
            }
            None => {
                for set in node.simple().filter(|it| it.directive.is("set")) {
                    self.set(set, false);
                }
            }
        }
        None
    }

    fn set(&mut self, node: &Node<'_>, is_surely: bool) {
        let [variable, text] = [0, 1].map(|at| node.directive.argument(at).unwrap_or_default());
        let value = self.text(text).filter(|_| is_surely);
        self.values.insert(name_of(variable), value);
    }

    fn rewrite(&mut self, node: &Node<'_>) -> Option<End> {
        let [pattern, goes, flag] = [0, 1, 2].map(|at| node.directive.argument(at));
        let (pattern, goes, flag) = (pattern?, goes?, flag.unwrap_or_default());
        if is_found(pattern, false, &self.path) != Some(true) {
            return None;
        }
        let schemes = ["http://", "https://", "$scheme"];
        if schemes.iter().any(|scheme| goes.starts_with(scheme))
            || matches!(flag, "redirect" | "permanent")
        {
            return Some(End::Answer(Answer::Redirects));
        }
        let path = captures(pattern, &self.path).unwrap_or_default();
        match (self.fill_in(goes, &path), flag) {
            (Some(path), _) => self.path = path,
            (None, "break") => {}
            (None, _) => return Some(End::Answer(Answer::Unknown)),
        }
        match flag {
            "last" => Some(End::Last),
            "break" => Some(End::Break),
            _ => None,
        }
    }

    /// Returns the target of a request for which a block finds no file.
    pub(super) fn fallback<'n>(&self, block: &'n Node<'_>) -> Option<Fallback<'n>> {
        let last = last_word(block, "try_files")?;
        if last.starts_with('@') {
            Some(Fallback::Named(last))
        } else {
            self.at_root(last).map(Fallback::Path)
        }
    }

    /// Returns the target of a request for a folder that has none of the files of `index`.
    pub(super) fn index(&self, location: Option<&Node<'_>>, server: &Node<'_>) -> Option<String> {
        let of_location = location.and_then(|node| last_word(node, "index"));
        let last = of_location.or_else(|| last_word(server, "index"))?;
        self.at_root(last).filter(|_| self.path.ends_with('/'))
    }

    fn at_root(&self, text: &str) -> Option<String> {
        self.fill_in(text, &[]).filter(|_| text.starts_with('/'))
    }

    /// Returns a text with its variables replaced, up to its query; None if one is not known.
    fn fill_in(&self, text: &str, captures: &[String]) -> Option<String> {
        let path = self.fill(text.split('?').next()?, captures, MOST_NESTED)?;
        Some(path.split('?').next().unwrap_or_default().to_owned())
    }

    fn fill(&self, text: &str, captures: &[String], left: usize) -> Option<String> {
        let mut pieces = text.split('$');
        let mut filled = pieces.next()?.to_owned();
        for piece in pieces {
            let (name, rest) = match piece.strip_prefix('{') {
                Some(inner) => inner.split_once('}')?,
                None if piece.starts_with(|c: char| c.is_ascii_digit()) => piece.split_at(1),
                None => {
                    let end = piece.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                    piece.split_at(end.unwrap_or(piece.len()))
                }
            };
            match name.parse::<usize>() {
                Ok(number) => filled += captures.get(number)?,
                Err(_) => filled += &self.resolve(name, left)?,
            }
            filled += rest;
        }
        Some(filled)
    }

    /// Returns the value of a variable, from `set`, from `map` or from the request; None if it is not known.
    fn resolve(&self, name: &str, left: usize) -> Option<String> {
        let nested = left.checked_sub(1)?;
        let key = name_of(name);
        if let Some(value) = self.values.get(&key) {
            return value.clone();
        }
        let mut maps = self.maps.iter();
        match maps.find(|map| map.block.argument(1).map(name_of).as_ref() == Some(&key)) {
            Some(map) => self.look_up(map, nested),
            None => self.variable(&key),
        }
    }

    /// Returns the value of a `map` for the request: an equal text comes before expressions (ngx_http_map_module).
    fn look_up(&self, map: &MapBlock<'_>, left: usize) -> Option<String> {
        let key = self.fill(map.block.argument(0)?, &[], left)?;
        let entries = &map.entries;
        if entries.iter().any(|entry| entry.is("hostnames")) {
            return None;
        }
        let value = |entry: &Directive, groups: &[String]| {
            self.fill(entry.argument(0).unwrap_or_default(), groups, left)
        };
        let equal = entries.iter().copied().find(|entry| {
            let text = entry.name.text.trim_start_matches('\\');
            text.eq_ignore_ascii_case(&key) && !entry.is("default") && !entry.is("volatile")
        });
        if let Some(entry) = equal {
            return value(entry, &[]);
        }
        for entry in entries {
            let Some(pattern) = entry.name.text.strip_prefix('~') else {
                continue;
            };
            let pattern = match pattern.strip_prefix('*') {
                Some(pattern) => format!("(?i){pattern}"),
                None => pattern.to_owned(),
            };
            if is_found(&pattern, false, &key)? {
                let groups = captures(&pattern, &key).unwrap_or_default();
                return value(entry, &groups);
            }
        }
        let default = entries.iter().find(|entry| entry.is("default"));
        default.map_or(Some(String::new()), |entry| value(entry, &[]))
    }

    /// Returns the value of a built-in variable of nginx; None if more than the request decides it.
    fn variable(&self, name: &str) -> Option<String> {
        let request = self.request;
        let query = request.query();
        let text: &str = match name {
            "host" | "http_host" => request.host,
            "scheme" if request.is_tls() => "https",
            "scheme" => "http",
            "https" if request.is_tls() => "on",
            "https" => "",
            "ssl_protocol" | "ssl_cipher" if !request.is_tls() => "",
            "ssl_client_verify" if !request.is_certified => "NONE",
            "uri" | "document_uri" => &self.path,
            "request_uri" => request.target,
            "request_method" => request.method,
            "args" | "query_string" => query,
            "is_args" if query.is_empty() => "",
            "is_args" => "?",
            "server_port" => return self.port.map(|port| port.to_string()),
            name if name.starts_with("cookie_") => {
                pair(request.field("cookie")?, &[';', ','], name)
            }
            name if name.starts_with("arg_") && !query.contains("{{") => pair(query, &['&'], name),
            name => request.field(&name.strip_prefix("http_")?.replace('_', "-"))?,
        };
        Some(text.to_owned())
    }

    /// Returns true if an `if` is entered; None if this cannot be determined.
    fn is_true(&self, node: &Node<'_>) -> Option<bool> {
        let words: Vec<&str> = node.directive.words().collect();
        let text = words.join(" ");
        let condition = text.trim().strip_prefix('(')?.strip_suffix(')')?.trim();
        let (variable, rest) = match condition.split_once(char::is_whitespace) {
            Some((variable, rest)) => (variable, rest.trim()),
            None => (condition, ""),
        };
        let value = self.resolve(variable.strip_prefix('$')?, MOST_NESTED)?;
        let (sign, operand) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let word = operand.trim();
        match sign {
            "" => Some(!value.is_empty() && value != "0"),
            "=" => Some(value == word),
            "!=" => Some(value != word),
            "~" => is_found(word, false, &value),
            "~*" => is_found(word, true, &value),
            "!~" => is_found(word, false, &value).map(|found| !found),
            "!~*" => is_found(word, true, &value).map(|found| !found),
            _ => None,
        }
    }
}

/// Returns a variable's name without its signs, in lower case.
fn name_of(variable: &str) -> String {
    variable.trim_matches(['$', '{', '}']).to_ascii_lowercase()
}

/// Returns the value of `a` among pairs `name=value`, which `signs` separate, for a variable such as `arg_a`.
fn pair<'t>(text: &'t str, signs: &[char], variable: &str) -> &'t str {
    let name = variable.split_once('_').map_or("", |(_, name)| name);
    text.split(signs)
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(named, _)| named.eq_ignore_ascii_case(name))
        .map_or("", |(_, value)| value)
}

fn returned(node: &Node<'_>) -> Answer {
    let first = node.directive.argument(0).unwrap_or_default();
    // A URL alone is 302.
    first.parse().map_or(Answer::Redirects, Answer::of_status)
}

/// Returns the last word of a directive that stands in a block.
fn last_word<'n>(block: &'n Node<'_>, name: &str) -> Option<&'n str> {
    let mut simple = block.simple();
    simple.find(|node| node.directive.is(name))?.directive.words().last()
}
