//! Counters, settings and error log of an nginx that weir did not start.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use weir_configuration::nginx::{self, Plain};

use super::status;
use crate::observed::{Offers, Peer, Process, Running, StatusEndpoint};

pub(super) const RUNNING: Running = Running {
    find,
    needs_files: true,
    sampled: |ask| ask("").map(|text| status::sampled(&text)),
};

/// The value of an option of `configure` in `nginx -V`.
fn built<'t>(printed: &'t str, option: &str) -> Option<&'t str> {
    let mut words = printed.split_whitespace();
    words.find_map(|word| word.strip_prefix(option)?.strip_prefix('='))
}

fn find(process: &Process, _: SocketAddr) -> Result<Offers, String> {
    let printed = process.printed()?;
    let prefix_given = process
        .values(&["-p"])
        .last()
        .map(|path| process.path(path));
    let prefix = prefix_given
        .or_else(|| built(&printed, "--prefix").map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("/usr/local/nginx"));
    let named = process.values(&["-c"]).last().map(|path| prefix.join(path));
    let main = named
        .or_else(|| built(&printed, "--conf-path").map(|path| prefix.join(path)))
        .unwrap_or_else(|| prefix.join("conf/nginx.conf"));
    let source = nginx::read(&main, None).map_err(|error| error.to_string())?;
    let tree = nginx::expanded(&source).map_err(|error| error.to_string())?;
    let log: &[String] = (tree.iter().rfind(|directive| directive.name == "error_log"))
        .map_or(&[], |directive| &directive.arguments);
    let level = log.get(1).map_or("error", String::as_str);
    let events: &[Plain] = (tree.iter().find(|directive| directive.name == "events"))
        .and_then(|events| events.block.as_deref())
        .unwrap_or_default();
    let mut settings = BTreeMap::new();
    let mut keep = |tree: &[Plain], name: &str| {
        let level = (tree.iter().rfind(|directive| directive.name == name))
            .and_then(|directive| directive.arguments.first());
        settings.extend(level.map(|level| (name.to_owned(), level.clone())));
    };
    keep(&tree, "worker_processes");
    keep(events, "worker_connections");
    settings
        .entry("worker_connections".to_owned())
        .or_insert_with(|| "512".to_owned());
    let none = "its configuration has no location with `stub_status` that this host may ask";
    Ok(Offers {
        error_log: log.first().map(|path| prefix.join(path)),
        logs_warnings: Some(!["error", "crit", "alert", "emerg"].contains(&level)),
        settings,
        idle: idle(&tree),
        endpoint: stub_status(&tree).ok_or_else(|| none.to_owned()),
    })
}

/// Counters of nginx by the directives that they count, and which of these a configuration has not.
fn idle(tree: &[Plain]) -> Vec<&'static str> {
    const COUNTED: [(&str, &[&str]); 2] = [
        ("limit_req", &["log.limit_req", "log.limit_req_delayed"]),
        ("limit_conn", &["log.limit_conn"]),
    ];
    let absent = COUNTED.iter().filter(|(name, _)| !has(tree, name));
    absent
        .flat_map(|(_, counters)| *counters)
        .copied()
        .collect()
}

fn has(tree: &[Plain], name: &str) -> bool {
    tree.iter().any(|directive| {
        directive.name == name
            || directive
                .block
                .as_ref()
                .is_some_and(|block| has(block, name))
    })
}

/// Finds the location of its counters (ngx_http_stub_status_module).
fn stub_status(tree: &[Plain]) -> Option<StatusEndpoint> {
    let blocks = |tree: &'_ [Plain], name: &'static str| -> Vec<Plain> {
        let found = tree
            .iter()
            .filter(|it| it.name == name && it.block.is_some());
        found.cloned().collect()
    };
    let https = blocks(tree, "http");
    let servers = https
        .iter()
        .flat_map(|http| blocks(http.block.as_deref().unwrap_or_default(), "server"));
    for server in servers {
        let inner = server.block.as_deref().unwrap_or_default();
        let Some(path) = location_of(inner, "stub_status") else {
            continue;
        };
        let argument = |name: &str| {
            let found = inner.iter().find(|directive| directive.name == name);
            found.and_then(|directive| directive.arguments.first())
        };
        let host = argument("server_name").map_or("localhost", String::as_str);
        let listens = inner.iter().filter(|directive| directive.name == "listen");
        let mut in_clear = listens.filter(|listen| {
            let mut flags = listen.arguments.iter().skip(1);
            !flags.any(|flag| ["ssl", "quic", "proxy_protocol"].contains(&flag.as_str()))
        });
        let peer = match in_clear.next() {
            Some(listen) => Peer::listening_at(listen.arguments.first()?)?,
            None if argument("listen").is_some() => continue,
            None => Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 80))),
        };
        return Some(StatusEndpoint::Http(peer, host.to_owned(), path));
    }
    None
}

/// The path of the first location with a directive, nested ones included.
fn location_of(blocks: &[Plain], directive: &str) -> Option<String> {
    let locations = blocks.iter().filter(|it| it.name == "location");
    locations.into_iter().find_map(|location| {
        let inner = location.block.as_deref()?;
        let is_here = inner.iter().any(|it| it.name == directive);
        let path = match &location.arguments[..] {
            [path] if path.starts_with('/') => Some(path),
            [sign, path] if sign == "=" || sign == "^~" => Some(path),
            _ => None,
        };
        let own = path.filter(|_| is_here).cloned();
        own.or_else(|| location_of(inner, directive))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_is_asked_where_its_status_is() {
        let status = |text: &str| {
            let path = PathBuf::from("/etc/nginx/nginx.conf");
            let file = weir_configuration::SourceFile {
                path,
                text: text.to_owned(),
            };
            let source = weir_configuration::Source::new(vec![file]);
            stub_status(&nginx::expanded(&source).unwrap())
        };
        let http = |peer, host: &str, path: &str| {
            Some(StatusEndpoint::Http(peer, host.to_owned(), path.to_owned()))
        };
        let tcp = |address: &str| Peer::Tcp(address.parse().unwrap());
        for (text, expected) in [
            (
                "http { server { listen 8081; location /s { stub_status; } } }",
                http(tcp("127.0.0.1:8081"), "localhost", "/s"),
            ),
            (
                "http { server { listen 443 ssl; listen 127.0.0.2:81; server_name a; \
                 location / { location = /s { stub_status on; } } } }",
                http(tcp("127.0.0.2:81"), "a", "/s"),
            ),
            (
                "http { server { location /s { stub_status; } } }",
                http(tcp("127.0.0.1:80"), "localhost", "/s"),
            ),
            (
                "http { server { listen unix:/run/s.sock; location /s { stub_status; } } }",
                http(Peer::Unix("/run/s.sock".into()), "localhost", "/s"),
            ),
            (
                "http { server { listen 443 ssl; location /s { stub_status; } } }",
                None,
            ),
            (
                "http { server { listen 80; location ~ ^/s { stub_status; } } }",
                None,
            ),
        ] {
            assert_eq!(status(text), expected, "{text}");
        }
    }
}
