//! Counters, settings and error log of an nginx that weir did not start.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use weir_parameters::Catalog;
use weir_sut::observed::{Offers, Peer, Process, Running, StatusEndpoint};
use weir_sut::route_match::RouteMatch;

use super::{counters, effective};
use crate::language::{self, Plain};

pub(super) const RUNNING: Running = Running {
    find,
    needs_files: true,
    most: 64 << 10,
    sampled: |ask| ask("").map(|text| counters::sampled(&text)),
};

/// Returns the value of an option of `configure` in the output of `nginx -V`.
fn build_option<'t>(printed: &'t str, option: &str) -> Option<&'t str> {
    let mut words = printed.split_whitespace();
    words.find_map(|word| word.strip_prefix(option)?.strip_prefix('='))
}

fn find(process: &Process, address: SocketAddr) -> Result<Offers, String> {
    let printed = process.printed(&["-V"])?;
    let prefix = (process.values(&["-p"]).last())
        .map(|path| process.path(path))
        .or_else(|| build_option(&printed, "--prefix").map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("/usr/local/nginx"));
    let main = (process.values(&["-c"]).last())
        .map(|path| prefix.join(path))
        .or_else(|| build_option(&printed, "--conf-path").map(|path| prefix.join(path)))
        .unwrap_or_else(|| prefix.join("conf/nginx.conf"));
    let source = language::read(&main, None).map_err(|error| error.to_string())?;
    let tree = language::expanded(&source).map_err(|error| error.to_string())?;
    let log: &[String] = (tree.iter().rfind(|directive| directive.name == "error_log"))
        .map_or(&[], |directive| &directive.arguments);
    let level = log.get(1).map_or("error", String::as_str);
    let route_matches = vec![RouteMatch::at(address, false)];
    let catalog = Catalog::builtin();
    let mut settings = effective::read(String::new(), &tree, route_matches, &catalog, None).levels;
    settings.entry("worker_connections".to_owned()).or_insert_with(|| "512".to_owned());
    let none = "its configuration has no location with `stub_status` that this host may ask";
    Ok(Offers {
        error_log: log.first().map(|path| prefix.join(path)),
        logs_warnings: Some(!["error", "crit", "alert", "emerg"].contains(&level)),
        settings,
        idle: idle(&tree),
        endpoint: stub_status(&tree).ok_or_else(|| none.to_owned()),
    })
}

/// Returns the counters that cannot count anything, because a configuration lacks the directives for them.
fn idle(tree: &[Plain]) -> Vec<&'static str> {
    const COUNTED: [(&str, &[&str]); 3] = [
        ("limit_req", &["log.limit_req", "log.limit_req_delayed"]),
        ("limit_conn", &["log.limit_conn"]),
        ("_pass", &["log.temporary_file"]),
    ];
    COUNTED
        .iter()
        .filter(|(end, _)| !has(tree, end))
        .flat_map(|(_, counters)| *counters)
        .copied()
        .collect()
}

fn has(tree: &[Plain], end: &str) -> bool {
    tree.iter().any(|directive| {
        let inner = directive.block.as_deref().unwrap_or_default();
        directive.name.ends_with(end) || has(inner, end)
    })
}

/// Returns the rate of `limit_req`, requests per second; 0 if it is not used, `None` if several zones have rates of
/// their own (ngx_http_limit_req_module).
pub(super) fn limit_req_rate(tree: &[Plain]) -> Option<f64> {
    let limits = all_of(tree, "limit_req");
    let names: BTreeSet<&str> =
        (limits.iter()).filter_map(|limit| option(limit, "zone=")).collect();
    let zones = all_of(tree, "limit_req_zone");
    let rates: Vec<f64> = (zones.iter()).filter_map(|zone| zone_rate(zone, &names)).collect();
    match (names.len(), &rates[..]) {
        (0, _) => Some(0.0),
        (_, [rate]) => Some(*rate),
        _ => None,
    }
}

/// Returns the rate of a `limit_req_zone` with one of these names, requests per second: `zone=NAME:SIZE
/// rate=NUMBERr/s`, or `r/m`.
fn zone_rate(zone: &Plain, names: &BTreeSet<&str>) -> Option<f64> {
    let name = option(zone, "zone=")?.split(':').next()?;
    let (number, unit) = option(zone, "rate=")?.split_once('r')?;
    let seconds = if unit == "/m" { 60.0 } else { 1.0 };
    let rate = number.parse::<f64>().ok()? / seconds;
    names.contains(name).then_some(rate)
}

/// Returns the rest of the argument that begins with a name.
fn option<'d>(directive: &'d Plain, name: &str) -> Option<&'d str> {
    let mut arguments = directive.arguments.iter();
    arguments.find_map(|argument| argument.strip_prefix(name))
}

/// Returns all directives of a name, including nested ones.
fn all_of<'t>(tree: &'t [Plain], name: &str) -> Vec<&'t Plain> {
    let mut directives: Vec<&Plain> = Vec::new();
    for directive in tree {
        if directive.name == name {
            directives.push(directive);
        }
        directives.extend(all_of(directive.block.as_deref().unwrap_or_default(), name));
    }
    directives
}

/// Finds the endpoint of nginx's counters (ngx_http_stub_status_module).
fn stub_status(tree: &[Plain]) -> Option<StatusEndpoint> {
    for server in all_of(tree, "server") {
        let inner = server.block.as_deref().unwrap_or_default();
        let Some(path) = location_of(inner, "stub_status") else {
            continue;
        };
        let host = first_argument(inner, "server_name").map_or("localhost", String::as_str);
        let mut in_clear =
            inner.iter().filter(|directive| directive.name == "listen").filter(|listen| {
                let mut flags = listen.arguments.iter().skip(1);
                !flags.any(|flag| ["ssl", "quic", "proxy_protocol"].contains(&flag.as_str()))
            });
        let peer = match in_clear.next() {
            Some(listen) => Peer::listening_at(listen.arguments.first()?)?,
            None if first_argument(inner, "listen").is_some() => continue,
            None => Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 80))),
        };
        return Some(StatusEndpoint::Http(peer, host.to_owned(), path));
    }
    None
}

fn first_argument<'t>(block: &'t [Plain], name: &str) -> Option<&'t String> {
    block.iter().find(|directive| directive.name == name)?.arguments.first()
}

/// Returns the path of the first location with a directive, including nested locations.
fn location_of(blocks: &[Plain], directive: &str) -> Option<String> {
    blocks.iter().filter(|it| it.name == "location").find_map(|location| {
        let inner = location.block.as_deref()?;
        let is_here = inner.iter().any(|it| it.name == directive);
        let path = match &location.arguments[..] {
            [path] if path.starts_with('/') => Some(path),
            [sign, path] if sign == "=" || sign == "^~" => Some(path),
            _ => None,
        };
        path.filter(|_| is_here).cloned().or_else(|| location_of(inner, directive))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Vec<Plain> {
        let path = PathBuf::from("/etc/nginx/nginx.conf");
        let file = weir_configuration::SourceFile { path, text: text.to_owned() };
        language::expanded(&weir_configuration::Source::new(vec![file])).unwrap()
    }

    #[test]
    fn the_rate_of_the_one_zone_in_use_is_read() {
        const ZONES: &str =
            "limit_req_zone $uri zone=a:1m rate=90r/m; limit_req_zone $uri zone=b:1m rate=20r/s;";
        for (limits, rate) in [
            ("", Some(0.0)),
            ("limit_req burst=5 zone=a;", Some(1.5)),
            ("limit_req zone=b; location / { limit_req zone=b; }", Some(20.0)),
            ("limit_req zone=a; location / { limit_req zone=b; }", None),
            ("limit_req zone=c;", None),
        ] {
            let text = format!("http {{ {ZONES} server {{ {limits} }} }}");
            assert_eq!(limit_req_rate(&tree(&text)), rate, "{limits}");
        }
    }

    #[test]
    fn what_passes_nothing_on_writes_no_temporary_files() {
        for (location, counters) in [
            (
                "return 200;",
                &["log.limit_req", "log.limit_req_delayed", "log.limit_conn", "log.temporary_file"]
                    [..],
            ),
            ("limit_req zone=a; fastcgi_pass b;", &["log.limit_conn"]),
        ] {
            let text = format!("http {{ server {{ location / {{ {location} }} }} }}");
            assert_eq!(idle(&tree(&text)), counters, "{location}");
        }
    }

    #[test]
    fn nginx_is_asked_where_its_status_is() {
        for (text, expected) in [
            (
                "http { server { listen 8081; location /s { stub_status; } } }",
                http(tcp_at("127.0.0.1:8081"), "localhost", "/s"),
            ),
            (
                "http { server { listen 443 ssl; listen 127.0.0.2:81; server_name a; \
                 location / { location = /s { stub_status on; } } } }",
                http(tcp_at("127.0.0.2:81"), "a", "/s"),
            ),
            (
                "http { server { location /s { stub_status; } } }",
                http(tcp_at("127.0.0.1:80"), "localhost", "/s"),
            ),
            (
                "http { server { listen unix:/run/s.sock; location /s { stub_status; } } }",
                http(Peer::Unix("/run/s.sock".into()), "localhost", "/s"),
            ),
            ("http { server { listen 443 ssl; location /s { stub_status; } } }", None),
            ("http { server { listen 80; location ~ ^/s { stub_status; } } }", None),
        ] {
            assert_eq!(stub_status(&tree(text)), expected, "{text}");
        }
    }

    fn http(peer: Peer, host: &str, path: &str) -> Option<StatusEndpoint> {
        Some(StatusEndpoint::Http(peer, host.to_owned(), path.to_owned()))
    }

    fn tcp_at(address: &str) -> Peer {
        Peer::Tcp(address.parse().unwrap())
    }
}
