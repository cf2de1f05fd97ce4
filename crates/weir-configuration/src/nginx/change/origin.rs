//! Directives of `upstream`.

use std::collections::BTreeSet;

use super::{Planner, Writing};
use crate::ConfigurationError;
use crate::nginx::origin::Target;
use crate::nginx::view::{Node, error_at};

impl<'a> Planner<'a> {
    pub(super) fn put_in_upstreams(
        &mut self,
        writing: &Writing<'_>,
    ) -> Result<(), ConfigurationError> {
        let http = self.block("http", writing)?;
        let upstreams = http
            .children
            .iter()
            .filter(|node| node.is_block("upstream"));
        let upstreams: Vec<&Node<'_>> = upstreams.collect();
        let used = self.used(http, &upstreams, writing)?;
        let is_used = |upstream: &&&Node<'_>| {
            let name = upstream.directive.argument(0).unwrap_or_default();
            used.contains(&name.to_ascii_lowercase())
        };
        let used: Vec<&Node<'_>> = upstreams.iter().filter(is_used).copied().collect();
        if used.is_empty() && writing.text.is_some() {
            let what = "an `upstream` that `proxy_pass` names";
            return Err(self.missing(what, writing));
        }
        for upstream in used {
            if !self.put_at(upstream.simple(), writing) {
                self.insert(writing, Some(upstream));
            }
        }
        Ok(())
    }

    /// Names, in lower case, of the groups of origin servers that requests are passed to.
    fn used(
        &self,
        http: &'a Node<'a>,
        upstreams: &[&Node<'_>],
        writing: &Writing<'_>,
    ) -> Result<BTreeSet<String>, ConfigurationError> {
        let names: BTreeSet<String> = upstreams
            .iter()
            .filter_map(|upstream| upstream.directive.argument(0))
            .map(str::to_ascii_lowercase)
            .collect();
        let mut used = BTreeSet::new();
        for pass in passes(http) {
            let target = Target::of(pass.directive.argument(0).unwrap_or_default());
            let host = target.host.to_ascii_lowercase();
            if host.contains('$') {
                used.extend(names.iter().cloned());
            } else if names.contains(&host) {
                used.insert(host);
            } else if writing.text.is_some() {
                return Err(self.no_upstream(pass, target.host, writing));
            }
        }
        Ok(used)
    }

    fn no_upstream(
        &self,
        pass: &Node<'_>,
        host: &str,
        writing: &Writing<'_>,
    ) -> ConfigurationError {
        let what = format!(
            "`{}` needs an `upstream`, and `proxy_pass` names {host} itself",
            writing.row.id
        );
        error_at(self.source, pass.file, pass.directive, what).hint(format!(
            "write `upstream NAME {{ server {host}; }}` in `http` and `proxy_pass` to NAME; \
             the header `Host` that the origin gets is NAME then, unless `proxy_set_header Host` \
             says another"
        ))
    }
}

/// All `proxy_pass` below a block.
fn passes<'a>(block: &'a Node<'a>) -> Vec<&'a Node<'a>> {
    let mut found = Vec::new();
    for node in &block.children {
        if node.is_simple("proxy_pass") {
            found.push(node);
        }
        found.extend(passes(node));
    }
    found
}
