//! Directives of blocks: where they are, and where they go.

use super::{KEYED, Planner, Writing};
use crate::ConfigurationError;
use crate::nginx::view::Node;

/// Blocks below `http` that directives of `http` may stand in as well.
const INNER: [&str; 4] = ["server", "location", "if", "limit_except"];

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
        if !self.put_at(http.simple(), writing) {
            self.insert(writing, Some(http));
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
        for chain in &chains {
            self.put_for_location(chain, writing);
        }
        Ok(())
    }

    fn put_for_location(&mut self, chain: &Chain<'a>, writing: &Writing<'_>) {
        let is_kept = match writing.text {
            // Without HTTP/1.1 there is no upgrade either.
            None => writing.name == "proxy_http_version" || writing.name == "proxy_set_header",
            Some(_) => writing.name == "proxy_set_header",
        };
        if is_kept && is_websocket(chain) {
            return;
        }
        match level_with(chain, &writing.name) {
            Some(level) => {
                if !self.put_at(level.simple(), writing) {
                    let is_keyed = KEYED.contains(&&*writing.name);
                    let block = if is_keyed {
                        Some(level)
                    } else {
                        chain.last().copied()
                    };
                    self.insert(writing, block);
                }
            }
            None => self.insert(writing, chain.last().copied()),
        }
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

fn is_websocket(chain: &Chain<'_>) -> bool {
    level_with(chain, "proxy_set_header").is_some_and(|level| {
        let headers = level.simple();
        headers
            .filter(|node| node.is_simple("proxy_set_header"))
            .filter_map(|node| node.directive.argument(0))
            .any(|header| header.eq_ignore_ascii_case("upgrade"))
    })
}
