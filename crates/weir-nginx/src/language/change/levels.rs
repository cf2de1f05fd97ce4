//! Finds the blocks in which directives stand, and those into which they are written.

use std::collections::BTreeSet;

use weir_configuration::ConfigurationError;

use super::origin::header;
use super::{KEYED, Planner, Writing};
use crate::language::place::begins_alike;
use crate::language::view::{Node, error_at};

/// Blocks below `http` that may contain directives of `http` as well.
const INNER: [&str; 4] = ["server", "location", "if", "limit_except"];

/// Position of a directive in the files ([`Node::place`]).
type Written = (usize, usize);

/// A block with those around it, outermost first.
pub(super) type Chain<'a> = Vec<&'a Node<'a>>;

impl<'a> Planner<'a> {
    pub(super) fn put_in_main(&mut self, writing: &Writing<'_>) {
        let nodes = self.nodes;
        if !self.put_at(nodes.iter(), writing) {
            self.insert(writing, None);
        }
    }

    pub(super) fn put_in_events(
        &mut self,
        writing: &Writing<'_>,
    ) -> Result<(), ConfigurationError> {
        let events = self.block("events", writing)?;
        if !self.put_at(events.simple(), writing) {
            self.insert(writing, Some(events));
        }
        Ok(())
    }

    pub(super) fn put_in_http(&mut self, writing: &Writing<'_>) -> Result<(), ConfigurationError> {
        let http = self.block("http", writing)?;
        if !self.put_at(http.simple(), writing) && !is_said_inside(http, writing) {
            match &homes(http, writing)[..] {
                [] => self.insert(writing, Some(http)),
                homes => {
                    homes
                        .iter()
                        .filter(|server| !is_said(server, writing))
                        .for_each(|server| self.insert(writing, Some(server)));
                }
            }
        }
        self.put_inside(http, writing);
        Ok(())
    }

    pub(super) fn put_in_servers(
        &mut self,
        writing: &Writing<'_>,
    ) -> Result<(), ConfigurationError> {
        let http = self.block("http", writing)?;
        let inherited = self.put_at(http.simple(), writing);
        for server in http.children.iter().filter(|node| node.is_block("server")) {
            if !self.put_at(server.simple(), writing) && !inherited {
                self.insert(writing, Some(server));
            }
            self.put_inside(server, writing);
        }
        Ok(())
    }

    pub(super) fn put_in_locations(
        &mut self,
        writing: &Writing<'_>,
    ) -> Result<(), ConfigurationError> {
        let http = self.block("http", writing)?;
        let passes = pass_of(&writing.name);
        let mut chains = Vec::new();
        locations(&mut vec![http], &mut chains);
        chains.retain(|chain| passes.is_none_or(|pass| passes_on(chain, pass)));
        if chains.is_empty() && writing.text.is_some() {
            let message = match passes {
                Some(pass) => format!("a location with `{pass}`"),
                None => "a location".to_owned(),
            };
            return Err(self.missing(&message, writing));
        }
        let is_kept = match writing.text {
            // Without HTTP/1.1 there is no upgrade either.
            None => writing.name == "proxy_http_version" || writing.name == "proxy_set_header",
            Some(_) => writing.name == "proxy_set_header",
        };
        let unchanged = if is_kept { in_websockets(&chains, writing) } else { BTreeSet::new() };
        for chain in chains.iter().filter(|it| is_websocket(it)) {
            self.keep_beside_upgrades(chain, writing)?;
        }
        let hidden = hiding(&chains, writing);
        for chain in chains.iter().filter(|it| !is_kept || !is_websocket(it)) {
            self.put_for_location(chain, writing, &unchanged, &hidden)?;
        }
        Ok(())
    }

    /// Writes a directive for one location. `kept` are directives that stay as they are; `hiding` are blocks in which
    /// another directive would hide others from a location.
    fn put_for_location(
        &mut self,
        chain: &Chain<'a>,
        writing: &Writing<'_>,
        kept: &BTreeSet<Written>,
        hiding: &BTreeSet<Written>,
    ) -> Result<(), ConfigurationError> {
        let is_keyed = KEYED.contains(&&*writing.name);
        let level = level_with(chain, &writing.name);
        let is_there = match level {
            Some(level) if writing.text.is_none() => {
                let nodes = level.simple().filter(|it| !kept.contains(&it.place()));
                self.put_at(nodes, writing)
            }
            Some(level) => {
                self.check_kept(level, writing, kept)?;
                self.put_at(level.simple(), writing)
            }
            None => false,
        };
        if is_there {
            return Ok(());
        }
        let block = match level {
            Some(level) if is_keyed => Some(level),
            // `http` hides nothing from anybody: whoever has others has them further in.
            None if is_keyed => {
                let mut inner = chain.iter().rev();
                inner.find(|block| !hiding.contains(&block.place())).copied()
            }
            _ => chain.last().copied(),
        };
        self.insert(writing, block);
        Ok(())
    }

    /// Checks that directives that stay as they are, in a file that several locations include, have the wanted
    /// arguments already.
    ///
    /// # Errors
    /// Returns an error for the first such directive with other arguments.
    fn check_kept(
        &self,
        level: &Node<'_>,
        writing: &Writing<'_>,
        kept: &BTreeSet<Written>,
    ) -> Result<(), ConfigurationError> {
        let wanted = writing.text.iter().flat_map(|text| &text.arguments);
        let Some(node) = level.simple().find(|node| {
            let is_wanted = node.directive.words().eq(wanted.clone().map(String::as_str));
            writing.is_about(node) && kept.contains(&node.place()) && !is_wanted
        }) else {
            return Ok(());
        };
        let message = format!(
            "`{}` would change this for a location that speaks WebSocket too",
            writing.row.id
        );
        let error = error_at(self.source, node.file, node.directive, message);
        Err(error.hint("write it into that location, which sets `Upgrade`, and not into this file"))
    }

    /// Changes the directives in blocks inside of a block. A log that is off there stays off: it was switched off for
    /// its contents, not for its cost.
    fn put_inside(&mut self, outer: &'a Node<'a>, writing: &Writing<'_>) {
        for inner in &outer.children {
            if INNER.iter().any(|name| inner.is_block(name)) {
                let matching: Vec<&Node<'_>> = inner
                    .simple()
                    .filter(|node| writing.is_about(node))
                    .filter(|node| writing.is_off() || !writing.is_log() || !is_off(node))
                    .collect();
                self.edit_all(&matching, writing);
                self.put_inside(inner, writing);
            }
        }
    }

    /// Changes the directives directly in a block; returns true if there are any.
    pub(super) fn put_at(
        &mut self,
        nodes: impl Iterator<Item = &'a Node<'a>>,
        writing: &Writing<'_>,
    ) -> bool {
        let matching: Vec<&Node<'_>> = nodes.filter(|node| writing.is_about(node)).collect();
        self.edit_all(&matching, writing);
        !matching.is_empty()
    }
}

/// Returns true if all servers set the directive themselves, so that none would take it from `http`.
fn is_said_inside(http: &Node<'_>, writing: &Writing<'_>) -> bool {
    let mut servers = http.children.iter().filter(|node| node.is_block("server"));
    let is_there = servers.clone().any(|server| is_somewhere(server, writing));
    is_there && servers.all(|server| is_said(server, writing))
}

/// Returns the servers to which a directive of `http` goes instead, because its relatives are there and not in `http`:
/// all servers that need it.
fn homes<'a>(http: &'a Node<'a>, writing: &Writing<'_>) -> Vec<&'a Node<'a>> {
    // Without these relatives it does nothing.
    const DEPENDENT: [&str; 2] = ["gzip_", "ssl_"];
    let is_relative = |node: &Node<'_>| begins_alike(&node.directive.name.text, &writing.name);
    if http.simple().any(is_relative) {
        return Vec::new();
    }
    let (homes, others): (Vec<_>, Vec<_>) = http
        .children
        .iter()
        .filter(|node| node.is_block("server"))
        .filter(|server| !server.simple().any(|node| node.is_simple("return")))
        .partition(|server| server.simple().any(is_relative));
    let is_dependent = DEPENDENT.iter().any(|begin| writing.name.starts_with(begin));
    if is_dependent || others.is_empty() { homes } else { Vec::new() }
}

fn is_somewhere(block: &Node<'_>, writing: &Writing<'_>) -> bool {
    let mut nodes = block.children.iter();
    nodes.any(|node| writing.is_about(node) || is_somewhere(node, writing))
}

/// Returns true if every answer of a block takes the directive from the block or from further in, or has no content.
fn is_said(block: &Node<'_>, writing: &Writing<'_>) -> bool {
    let mut simple = block.simple();
    if simple.any(|node| writing.is_about(node) || node.is_simple("return")) {
        return true;
    }
    let mut locations = block.children.iter().filter(|node| node.is_block("location"));
    locations.clone().any(|location| location.directive.words().eq(["/"]))
        && locations.all(|location| is_said(location, writing))
}

fn is_off(log: &Node<'_>) -> bool {
    log.directive.argument(0) == Some("off")
}

/// Collects all locations, each with the blocks around it.
fn locations<'a>(chain: &mut Chain<'a>, found: &mut Vec<Chain<'a>>) {
    let Some(&block) = chain.last() else { return };
    for inner in &block.children {
        if inner.is_block("server") || inner.is_block("location") {
            chain.push(inner);
            if inner.is_block("location") {
                found.push(chain.clone());
            }
            locations(chain, found);
            chain.pop();
        }
    }
}

/// Returns the directive that makes a location one that a directive concerns: `proxy_pass` for all that begin with
/// `proxy_`.
fn pass_of(name: &str) -> Option<&'static str> {
    match name.split('_').next()? {
        "proxy" => Some("proxy_pass"),
        "grpc" => Some("grpc_pass"),
        "fastcgi" => Some("fastcgi_pass"),
        "uwsgi" => Some("uwsgi_pass"),
        "scgi" => Some("scgi_pass"),
        _ => None,
    }
}

/// Returns true if a location passes requests on, itself or under a condition.
fn passes_on(chain: &Chain<'_>, pass: &str) -> bool {
    chain.last().is_some_and(|location| {
        location.children.iter().any(|node| {
            let is_condition = node.is_block("if") || node.is_block("limit_except");
            node.is_simple(pass)
                || (is_condition && node.children.iter().any(|child| child.is_simple(pass)))
        })
    })
}

/// Returns the block that a location takes a directive from.
pub(super) fn level_with<'a>(chain: &Chain<'a>, name: &str) -> Option<&'a Node<'a>> {
    chain.iter().rev().find(|block| block.simple().any(|node| node.is_simple(name))).copied()
}

/// Returns the directives of a name that apply to locations which speak WebSocket, from any block around them.
fn in_websockets(chains: &[Chain<'_>], writing: &Writing<'_>) -> BTreeSet<Written> {
    chains
        .iter()
        .filter(|chain| is_websocket(chain))
        .filter_map(|chain| level_with(chain, &writing.name))
        .flat_map(Node::simple)
        .filter(|node| writing.is_about(node))
        .map(Node::place)
        .collect()
}

/// Returns the blocks inside of the one that a location takes a directive from. By an `include`, they may also belong
/// to other locations, which have no such directive.
fn hiding(chains: &[Chain<'_>], writing: &Writing<'_>) -> BTreeSet<Written> {
    chains
        .iter()
        .filter_map(|chain| {
            let level = chain
                .iter()
                .rposition(|block| block.simple().any(|node| node.is_simple(&writing.name)))?;
            Some(&chain[level + 1..])
        })
        .flatten()
        .map(|block| block.place())
        .collect()
}

fn is_websocket(chain: &Chain<'_>) -> bool {
    level_with(chain, "proxy_set_header").is_some_and(|level| header(level, "upgrade").is_some())
}
