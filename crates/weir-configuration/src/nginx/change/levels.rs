//! Directives of blocks: where they are, and where they go.

use std::collections::BTreeSet;

use super::{KEYED, Planner, Writing};
use crate::ConfigurationError;
use crate::nginx::place::begins_alike;
use crate::nginx::view::{Node, error_at};

/// Blocks below `http` that directives of `http` may stand in as well.
const INNER: [&str; 4] = ["server", "location", "if", "limit_except"];

/// The place of something in the files ([`Node::place`]).
type Written = (usize, usize);

/// A block and those around it, outermost first.
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
                    let missing = homes.iter().filter(|server| !is_said(server, writing));
                    missing.for_each(|server| self.insert(writing, Some(server)));
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
            let what = match passes {
                Some(pass) => format!("a location with `{pass}`"),
                None => "a location".to_owned(),
            };
            return Err(self.missing(&what, writing));
        }
        let is_kept = match writing.text {
            // Without HTTP/1.1 there is no upgrade either.
            None => writing.name == "proxy_http_version" || writing.name == "proxy_set_header",
            Some(_) => writing.name == "proxy_set_header",
        };
        let kept = match is_kept {
            true => in_websockets(&chains, writing),
            false => BTreeSet::new(),
        };
        let hiding = hiding(&chains, writing);
        for chain in chains.iter().filter(|it| !is_kept || !is_websocket(it)) {
            self.put_for_location(chain, writing, &kept, &hiding)?;
        }
        Ok(())
    }

    /// `kept`: directives that stay as they are; `hiding`: blocks in which one more would hide others
    /// from a location.
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
                inner
                    .find(|block| !hiding.contains(&block.place()))
                    .copied()
            }
            _ => chain.last().copied(),
        };
        self.insert(writing, block);
        Ok(())
    }

    /// Whether what stays as it is, in a file that several locations include, is as it is to be.
    fn check_kept(
        &self,
        level: &Node<'_>,
        writing: &Writing<'_>,
        kept: &BTreeSet<Written>,
    ) -> Result<(), ConfigurationError> {
        let wanted = writing.text.iter().flat_map(|text| &text.arguments);
        let is_other = |node: &&Node<'_>| {
            let is_wanted = node
                .directive
                .words()
                .eq(wanted.clone().map(String::as_str));
            writing.is_about(node) && kept.contains(&node.place()) && !is_wanted
        };
        let Some(node) = level.simple().find(is_other) else {
            return Ok(());
        };
        let what = format!(
            "`{}` would change this for a location that speaks WebSocket too",
            writing.row.id
        );
        let error = error_at(self.source, node.file, node.directive, what);
        Err(error.hint("write it into that location, which sets `Upgrade`, and not into this file"))
    }

    /// Changes what is in blocks inside of one. A log that is off there stays off: it was switched
    /// off for what it would say, not for its cost.
    fn put_inside(&mut self, outer: &'a Node<'a>, writing: &Writing<'_>) {
        for inner in &outer.children {
            if INNER.iter().any(|name| inner.is_block(name)) {
                let is_quiet = |node: &&Node<'_>| writing.is_log() && is_off(node);
                let is_loud = |node: &&Node<'_>| writing.is_off() || !is_quiet(node);
                let about = inner.simple().filter(|node| writing.is_about(node));
                let found: Vec<&Node<'_>> = about.filter(is_loud).collect();
                self.edit_all(&found, writing);
                self.put_inside(inner, writing);
            }
        }
    }

    /// Changes what stands directly in a block, and tells whether something does.
    pub(super) fn put_at(
        &mut self,
        nodes: impl Iterator<Item = &'a Node<'a>>,
        writing: &Writing<'_>,
    ) -> bool {
        let found: Vec<&Node<'_>> = nodes.filter(|node| writing.is_about(node)).collect();
        self.edit_all(&found, writing);
        !found.is_empty()
    }
}

/// Whether all servers say it themselves, so that nobody would take it from `http`.
fn is_said_inside(http: &Node<'_>, writing: &Writing<'_>) -> bool {
    let mut servers = http.children.iter().filter(|node| node.is_block("server"));
    let is_there = servers.clone().any(|server| is_somewhere(server, writing));
    is_there && servers.all(|server| is_said(server, writing))
}

/// The servers to which a directive of `http` goes instead, because its relatives are there and not in
/// `http`: all that need it.
fn homes<'a>(http: &'a Node<'a>, writing: &Writing<'_>) -> Vec<&'a Node<'a>> {
    // Without these relatives it does nothing.
    const DEPENDENT: [&str; 2] = ["gzip_", "ssl_"];
    let is_relative = |node: &Node<'_>| begins_alike(&node.directive.name.text, &writing.name);
    if http.simple().any(is_relative) {
        return Vec::new();
    }
    let servers = http.children.iter().filter(|node| node.is_block("server"));
    let answering = servers.filter(|server| !server.simple().any(|node| node.is_simple("return")));
    let (homes, others): (Vec<_>, Vec<_>) =
        answering.partition(|server| server.simple().any(is_relative));
    let is_dependent = DEPENDENT
        .iter()
        .any(|begin| writing.name.starts_with(begin));
    match is_dependent || others.is_empty() {
        true => homes,
        false => Vec::new(),
    }
}

fn is_somewhere(block: &Node<'_>, writing: &Writing<'_>) -> bool {
    let mut nodes = block.children.iter();
    nodes.any(|node| writing.is_about(node) || is_somewhere(node, writing))
}

/// Whether whoever is answered here takes it from here or from further in, or gets no content.
fn is_said(block: &Node<'_>, writing: &Writing<'_>) -> bool {
    let mut simple = block.simple();
    if simple.any(|node| writing.is_about(node) || node.is_simple("return")) {
        return true;
    }
    let mut locations = block
        .children
        .iter()
        .filter(|node| node.is_block("location"));
    let takes_all = |location: &Node<'_>| location.directive.words().eq(["/"]);
    locations.clone().any(takes_all) && locations.all(|location| is_said(location, writing))
}

fn is_off(log: &Node<'_>) -> bool {
    log.directive.argument(0) == Some("off")
}

/// All locations, with the blocks around them.
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

/// The directive that makes a location one that a directive concerns: `proxy_pass` for all that
/// begin with `proxy_`.
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

/// Whether a location passes requests on, itself or under a condition.
fn passes_on(chain: &Chain<'_>, pass: &str) -> bool {
    let is_pass = |node: &Node<'_>| node.is_simple(pass);
    chain.last().is_some_and(|location| {
        location.children.iter().any(|node| {
            let is_condition = node.is_block("if") || node.is_block("limit_except");
            is_pass(node) || (is_condition && node.children.iter().any(is_pass))
        })
    })
}

/// The block that a location takes a directive from.
fn level_with<'a>(chain: &Chain<'a>, name: &str) -> Option<&'a Node<'a>> {
    let has_it = |block: &&&Node<'_>| block.simple().any(|node| node.is_simple(name));
    chain.iter().rev().find(has_it).copied()
}

/// Directives of a name that locations which speak WebSocket take, wherever from.
fn in_websockets(chains: &[Chain<'_>], writing: &Writing<'_>) -> BTreeSet<Written> {
    let websockets = chains.iter().filter(|chain| is_websocket(chain));
    let levels = websockets.filter_map(|chain| level_with(chain, &writing.name));
    levels
        .flat_map(Node::simple)
        .filter(|node| writing.is_about(node))
        .map(Node::place)
        .collect()
}

/// Blocks inside of the one that a location takes a directive from. They may be other locations' too,
/// by an `include`, that take none.
fn hiding(chains: &[Chain<'_>], writing: &Writing<'_>) -> BTreeSet<Written> {
    let has_it = |block: &Node<'_>| block.simple().any(|node| node.is_simple(&writing.name));
    let inner = chains.iter().filter_map(|chain| {
        let level = chain.iter().rposition(|block| has_it(block))?;
        Some(&chain[level + 1..])
    });
    inner.flatten().map(|block| block.place()).collect()
}

fn is_websocket(chain: &Chain<'_>) -> bool {
    level_with(chain, "proxy_set_header").is_some_and(|level| {
        let headers = level.simple();
        headers
            .filter(|node| node.is_simple("proxy_set_header"))
            .filter_map(|node| node.directive.argument(0))
            .any(|header| header.eq_ignore_ascii_case("upgrade"))
    })
}
