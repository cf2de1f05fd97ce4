//! Writes directives of `upstream`, and makes groups if `proxy_pass` names an origin server directly.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use weir_configuration::{ConfigurationError, Splice};

use super::levels::{Chain, level_with};
use super::{Planner, Writing};
use crate::language::adapt::groups::group_names;
use crate::language::origin::Target;
use crate::language::place::{self, Insertion};
use crate::language::syntax::quoted;
use crate::language::variables::key;
use crate::language::view::{Node, error_at};

/// Directive that keeps connections, for which a group is made.
const KEEPALIVE: &str = "keepalive";

impl<'a> Planner<'a> {
    pub(super) fn put_in_upstreams(
        &mut self,
        writing: &Writing<'_>,
    ) -> Result<(), ConfigurationError> {
        let http = self.block("http", writing)?;
        let upstreams = http.children.iter().filter(|node| node.is_block("upstream"));
        let upstreams: Vec<&Node<'_>> = upstreams.collect();
        let used = self.used(http, &upstreams, writing)?;
        let used: Vec<&Node<'_>> = upstreams
            .iter()
            .filter(|upstream| {
                let name = upstream.directive.argument(0).unwrap_or_default();
                used.contains(&name.to_ascii_lowercase())
            })
            .copied()
            .collect();
        if used.is_empty() && self.groups.is_empty() && writing.text.is_some() {
            let message = "an `upstream` that `proxy_pass` names";
            return Err(self.missing(message, writing));
        }
        for upstream in used {
            if !self.put_at(upstream.simple(), writing) {
                self.insert(writing, Some(upstream));
            }
        }
        Ok(())
    }

    /// Returns the names, in lower case, of the groups of origin servers that requests are passed to.
    fn used(
        &mut self,
        http: &'a Node<'a>,
        upstreams: &[&Node<'_>],
        writing: &Writing<'_>,
    ) -> Result<BTreeSet<String>, ConfigurationError> {
        let names: BTreeSet<String> = upstreams
            .iter()
            .filter_map(|upstream| upstream.directive.argument(0))
            .map(str::to_ascii_lowercase)
            .collect();
        let mut all = Vec::new();
        passes(&mut vec![http], &mut all);
        let kept_names = group_names(self.source, self.trees, http);
        let mut replaced = None;
        let mut used = BTreeSet::new();
        for pass in &all {
            let host = pass.target().host.to_ascii_lowercase();
            if host.contains('$') && !kept_names.contains(&key(&host)) {
                replaced = replaced.or(Some(pass));
            } else if host.contains('$') {
                used.extend(names.iter().cloned());
            } else if names.contains(&host) {
                used.insert(host);
            } else if writing.text.is_some() {
                self.make_group(pass, &names, writing)?;
            }
        }
        if let Some(pass) = replaced.filter(|_| writing.text.is_some()) {
            if used.is_empty() && self.groups.is_empty() {
                return Err(self.replaced_group(pass, writing));
            }
            // A load may ask what the others are for.
            used.extend(names);
        }
        Ok(used)
    }

    /// Makes a group for an origin server that `proxy_pass` names directly. Directives of the group are written into it
    /// in the next round, as if the user had written the group.
    ///
    /// nginx does not let a group's name have a port, and the name is the `Host` that the origin server gets
    /// (`$proxy_host`). A server without a port therefore gives the group its own name, and nothing else changes. Any
    /// other server, and any that is asked over TLS, keeps its `Host` by a header, and the default of `proxy_redirect`
    /// is written out with it.
    ///
    /// # Errors
    /// Returns an error if the origin server would get other requests than before; the hint says what to write by hand.
    fn make_group(
        &mut self,
        pass: &Pass<'a>,
        names: &BTreeSet<String>,
        writing: &Writing<'_>,
    ) -> Result<(), ConfigurationError> {
        let target = pass.target();
        let server = server_of(target);
        let existing = self.groups.get(&server).cloned();
        if writing.name != KEEPALIVE {
            // Another row of the arm may make it.
            return match existing {
                Some(_) => Ok(()),
                None => Err(self.no_upstream(pass, writing, None)),
            };
        }
        if !target.is_in_clear() && pass.is_name_shown() {
            let why = "over TLS the group's name would be asked for or verified";
            return Err(self.no_upstream(pass, writing, Some(why)));
        }
        if pass.is_looked_up_for_each_request() {
            return Err(self.looked_up_at_start(pass, writing));
        }
        let group = existing.unwrap_or_else(|| {
            let group = group_name(&server, names, &self.groups);
            self.put_group(pass, &group, &server);
            self.groups.insert(server, group.clone());
            group
        });
        if group == target.host {
            return Ok(());
        }
        let lines = pass.kept_lines().map_err(|why| self.no_upstream(pass, writing, Some(why)))?;
        for (location, line) in lines {
            self.put_in_location(location, &line);
        }
        let Some(word) = pass.node.directive.arguments.first() else {
            return Ok(());
        };
        let colon =
            if target.host.starts_with("unix:") && !target.uri.is_empty() { ":" } else { "" };
        let text = word.text.replacen(&format!("{}{colon}", target.host), &group, 1);
        self.edits.change(Splice {
            file: pass.node.file,
            range: word.span.clone(),
            text: quoted(&text),
        });
        Ok(())
    }

    /// Writes the group before the server that needs it.
    fn put_group(&mut self, pass: &Pass<'_>, group: &str, host: &str) {
        let Some(server) = pass.around.get(1) else {
            return;
        };
        let Insertion { at, text } = place::block_before(
            &self.source.files[server.file].text,
            server.directive,
            &format!("upstream {}", quoted(group)),
            &format!("server {}", quoted(host)),
        );
        self.edits.change(Splice { file: server.file, range: at..at, text });
    }

    fn put_in_location(&mut self, location: &Node<'_>, directive: &str) {
        let Insertion { at, text } = place::insertion(
            &self.source.files[location.file].text,
            &self.trees[location.file],
            Some(location.directive),
            directive,
        );
        self.edits.change(Splice { file: location.file, range: at..at, text });
    }

    /// Returns the error for a server that is looked up for each request: the server of a group is looked up when nginx
    /// starts.
    fn looked_up_at_start(&self, pass: &Pass<'_>, writing: &Writing<'_>) -> ConfigurationError {
        let target = pass.target();
        let (host, server) = (target.host, server_of(target));
        let message = format!(
            "`{}` needs an `upstream`, and nginx looks {host} up for each request, because `proxy_pass` has a variable",
            writing.row.id
        );
        error_at(self.source, pass.node.file, pass.node.directive, message).hint(format!(
            "write `upstream NAME {{ zone NAME 64k; server {server} resolve; }}` in `http` and `proxy_pass` to NAME \
             (nginx 1.27.3 and later); without `zone` and `resolve` the name is looked up once, when nginx starts, \
             which fails if it cannot be"
        ))
    }

    /// Returns the error for a variable that may hold something other than a group: a copy passes its requests to the
    /// run's origin server itself, so no group is used.
    fn replaced_group(&self, pass: &Pass<'_>, writing: &Writing<'_>) -> ConfigurationError {
        let host = pass.target().host;
        let message = format!(
            "`{}` is set in an `upstream`, and {host} may hold something else: in a copy, requests go to weir's origin server \
             without an `upstream`, so the change would have no effect",
            writing.row.id
        );
        error_at(self.source, pass.node.file, pass.node.directive, message).hint(format!(
            "give {host} only names of `upstream` blocks, also for each address that it may hold now"
        ))
    }

    /// Returns the error for a server without a group; `why` is the reason why weir does not make the group.
    fn no_upstream(
        &self,
        pass: &Pass<'_>,
        writing: &Writing<'_>,
        why: Option<&str>,
    ) -> ConfigurationError {
        let target = pass.target();
        let (host, server) = (target.host, server_of(target));
        let reason = why.map_or_else(String::new, |why| format!("; {why}"));
        let message = format!(
            "`{}` needs an `upstream`, and `proxy_pass` names {host} itself{reason}",
            writing.row.id
        );
        error_at(self.source, pass.node.file, pass.node.directive, message).hint(format!(
            "write `upstream NAME {{ server {server}; }}` in `http` and `proxy_pass` to NAME; \
             the header `Host` that the origin gets is NAME then, unless `proxy_set_header Host` \
             says another"
        ))
    }
}

/// A `proxy_pass` and the blocks around it, outermost first.
struct Pass<'a> {
    around: Chain<'a>,
    node: &'a Node<'a>,
}

impl<'a> Pass<'a> {
    fn target(&self) -> Target<'a> {
        Target::of(self.node.directive.argument(0).unwrap_or_default())
    }

    /// Returns true if the origin server has a name that nginx does not look up when it starts: if `proxy_pass` has
    /// variables, nginx looks for a group of that name, and else asks a `resolver` (ngx_http_proxy_module).
    fn is_looked_up_for_each_request(&self) -> bool {
        let Target { host, uri, .. } = self.target();
        uri.contains('$') && !host.starts_with("unix:") && !is_address(host)
    }

    /// Returns true if the name of the group would be in the TLS handshake or be verified; by default neither is so
    /// (ngx_http_proxy_module). A scheme in a variable may be any.
    fn is_name_shown(&self) -> bool {
        let is_on = |name: &str| self.word(name).is_some_and(|word| word != "off");
        let is_own = self.word("proxy_ssl_name").is_none_or(|name| name.contains("proxy_host"));
        let is_asked = is_on("proxy_ssl_server_name") || is_on("proxy_ssl_verify");
        self.target().scheme != "https://" || (is_own && is_asked)
    }

    /// Returns the first word of a directive that is in force around this one.
    fn word(&self, name: &str) -> Option<&'a str> {
        let level = level_with(&self.around, name)?;
        let mut nodes = level.simple().filter(|it| it.is_simple(name));
        nodes.next()?.directive.argument(0)
    }

    /// Returns the lines that have to be written into a location so that the origin server gets the same `Host` as
    /// before the group had a name of its own, and redirects to itself are changed as before.
    ///
    /// # Errors
    /// Returns the reason why this cannot be done by adding lines.
    fn kept_lines(&self) -> Result<Vec<(&'a Node<'a>, String)>, &'static str> {
        let host = self.kept_host()?;
        let redirect = self.kept_redirect()?;
        Ok(host.into_iter().chain(redirect).collect())
    }

    fn location(&self) -> Option<&'a Node<'a>> {
        let location = self.around.iter().rfind(|it| it.is_block("location"));
        location.copied()
    }

    /// Returns the header `Host` to be added, if nothing sets one and the default is the name of the group.
    fn kept_host(&self) -> Result<Option<(&'a Node<'a>, String)>, &'static str> {
        let level = level_with(&self.around, "proxy_set_header");
        if let Some(host) = level.and_then(|level| header(level, "host")) {
            let value = host.directive.argument(1).unwrap_or_default();
            return if value.contains("proxy_host") || value.contains("proxy_port") {
                Err("its header `Host` is made from that")
            } else {
                Ok(None)
            };
        }
        let Target { scheme, host, .. } = self.target();
        let location = self.location();
        let Some(location) = location.filter(|_| !host.starts_with("unix:")) else {
            return Err("it has no header `Host` of its own");
        };
        if level.is_some_and(|level| level.place() != location.place()) {
            // One more in the location would hide the others, and beside them it would be of all locations.
            return Err("it has its headers from above, and no `Host` is among them");
        }
        // nginx leaves out the port that is the scheme's.
        let usual = if scheme == "https://" { ":443" } else { ":80" };
        let hostname = host.strip_suffix(usual).unwrap_or(host);
        Ok(Some((location, format!("proxy_set_header Host {hostname}"))))
    }

    /// Returns the default of `proxy_redirect`, which is made from the address in `proxy_pass`.
    fn kept_redirect(&self) -> Result<Option<(&'a Node<'a>, String)>, &'static str> {
        if let Some(level) = level_with(&self.around, "proxy_redirect") {
            let mut redirects = level.simple().filter(|it| it.is_simple("proxy_redirect"));
            return if redirects.any(|it| it.directive.argument(0) == Some("default")) {
                Err("`proxy_redirect default` is made from that")
            } else {
                Ok(None)
            };
        }
        let Target { scheme, host, uri } = self.target();
        // Nobody redirects to a socket of the file system, and beside variables there is no default.
        let has_default = !host.starts_with("unix:") && !uri.contains('$');
        let Some(location) = self.location().filter(|_| has_default) else {
            return Ok(None);
        };
        let name = location.directive.arguments.last();
        let (theirs, ours) = match uri {
            "" => ("/", "/"),
            uri => (uri, name.map_or("/", |word| &*word.text)),
        };
        let theirs = quoted(&format!("{scheme}{host}{theirs}"));
        let line = format!("proxy_redirect {theirs} {}", quoted(ours));
        Ok(Some((location, line)))
    }
}

/// Collects all `proxy_pass` below the innermost of some blocks.
fn passes<'a>(around: &mut Chain<'a>, found: &mut Vec<Pass<'a>>) {
    let Some(&block) = around.last() else { return };
    for node in &block.children {
        if node.is_simple("proxy_pass") {
            found.push(Pass { around: around.clone(), node });
        }
        around.push(node);
        passes(around, found);
        around.pop();
    }
}

/// Returns the `proxy_set_header` directly in a block for a header; `name` is in lower case.
pub(super) fn header<'a>(level: &'a Node<'a>, name: &str) -> Option<&'a Node<'a>> {
    let mut headers = level.simple().filter(|node| node.is_simple("proxy_set_header"));
    headers.find(|node| node.directive.argument(0).unwrap_or_default().eq_ignore_ascii_case(name))
}

/// Returns true if an origin server is an address, and not a name that is looked up.
fn is_address(host: &str) -> bool {
    let without_port = if has_port(host) {
        host.rsplit_once(':').map_or(host, |(address, _)| address)
    } else {
        host
    };
    let bare = without_port.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
}

fn has_port(host: &str) -> bool {
    let port = host.rsplit_once(':').map(|(_, port)| port);
    port.is_some_and(|port| !port.ends_with(']'))
}

/// Returns an origin server as an entry of a group, whose default port is 80.
fn server_of(target: Target<'_>) -> String {
    if target.scheme == "https://" && !has_port(target.host) {
        format!("{}:443", target.host)
    } else {
        target.host.to_owned()
    }
}

/// Returns the name of an origin server's group: the server itself, if it has no port.
fn group_name(host: &str, names: &BTreeSet<String>, groups: &BTreeMap<String, String>) -> String {
    if !has_port(host) {
        return host.to_owned();
    }
    let last = match host.strip_prefix("unix:") {
        Some(path) => path.rsplit('/').next().unwrap_or(path),
        None => host,
    };
    let plain =
        last.replace(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '_'), "-");
    let name = plain.trim_matches('-').to_owned();
    std::iter::once(name.clone())
        .chain((2..).map(|nth| format!("{name}-{nth}")))
        .find(|name| {
            !names.contains(&name.to_ascii_lowercase())
                && !groups.values().any(|group| group == name)
        })
        .unwrap_or(name)
}
