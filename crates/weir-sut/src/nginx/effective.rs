//! What nginx is really running with, read back from what it prints of itself.

use std::net::SocketAddr;

use weir_configuration::nginx::Plain;
use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, EffectiveFrom, Parameter};

use crate::Effective;

/// Reads the levels of all parameters from what the text means, where a load that asks the given
/// addresses meets it. Process limits are known only of a proxy that runs.
pub(super) fn read(
    text: String,
    tree: &[Plain],
    asked: [Option<SocketAddr>; 2],
    catalog: &Catalog,
    nofile: Option<u64>,
) -> Effective {
    let way = Way::of(tree, asked);
    Effective::of(text, (catalog, ProxyKind::Nginx), |row| {
        level(row, &way, nofile)
    })
}

fn level(row: &Parameter, way: &Way<'_>, nofile: Option<u64>) -> Option<String> {
    let found = match &row.effective {
        EffectiveFrom::Directive { name, context } => way.find(context.name(), name),
        EffectiveFrom::ListenFlag { .. } => Some(way.listen.join(" ")),
        EffectiveFrom::ProcessLimit { .. } => nofile.map(|limit| limit.to_string()),
        EffectiveFrom::Value { .. }
        | EffectiveFrom::Sysctl { .. }
        | EffectiveFrom::Launcher
        | EffectiveFrom::Transport { .. } => None,
    };
    row.read_back(found.as_deref()).or(found)
}

/// The blocks that a load meets.
#[derive(Default)]
struct Way<'t> {
    main: &'t [Plain],
    events: &'t [Plain],
    http: &'t [Plain],
    /// The first server at an address that is asked which passes requests on, or else the first there:
    /// which one it is the load's Host field says, and it may be another with each load.
    server: &'t [Plain],
    /// Its first location that passes requests on, or else its first.
    location: &'t [Plain],
    /// The group that requests are passed on to.
    upstream: &'t [Plain],
    /// What is said of the address that is asked; servers share it, and one of them says it.
    listen: Vec<&'t str>,
}

impl<'t> Way<'t> {
    fn of(tree: &'t [Plain], asked: [Option<SocketAddr>; 2]) -> Way<'t> {
        let first = |name: &'static str| blocks(tree, name).next().unwrap_or_default();
        let http = first("http");
        let asked: Vec<String> = asked.iter().flatten().map(SocketAddr::to_string).collect();
        // The first of the addresses that this server has.
        let address_of = |server| {
            let mut own = named(server, "listen").filter_map(|listen| listen.arguments.first());
            own.find(|own| asked.contains(own))
        };
        let servers = || blocks(http, "server");
        let at_address = || servers().filter(|server| address_of(server).is_some());
        let server = at_address()
            .find(|server| passing(server).is_some())
            .or_else(|| at_address().next())
            .or_else(|| servers().next())
            .unwrap_or_default();
        let location = passing(server).or_else(|| blocks(server, "location").next());
        let location = location.unwrap_or_default();
        let passes = named(location, "proxy_pass").next();
        let group = passes.and_then(|pass| pass.arguments.first()?.split("://").nth(1));
        let group = group.map(|rest| rest.split('/').next().unwrap_or(rest));
        let is_group = |upstream: &&&Plain| upstream.arguments.first().map(String::as_str) == group;
        let upstreams: Vec<&Plain> = named(http, "upstream").collect();
        let upstream = upstreams.iter().find(is_group).or(upstreams.first());
        let address = address_of(server).or_else(|| {
            let mut any = named(server, "listen");
            any.find_map(|listen| listen.arguments.first())
        });
        let listens = servers().flat_map(|server| named(server, "listen"));
        let listens = listens.filter(|listen| listen.arguments.first() == address);
        let flags = listens.flat_map(|listen| listen.arguments.iter().map(String::as_str));
        Way {
            main: tree,
            events: first("events"),
            http,
            server,
            location,
            upstream: upstream
                .and_then(|it| it.block.as_deref())
                .unwrap_or_default(),
            listen: flags.collect(),
        }
    }

    /// The words of the directive that counts for a context, the innermost that there is: what a
    /// location does not say it takes from its server, and that from `http`.
    fn find(&self, context: &str, name: &str) -> Option<String> {
        let blocks: &[&[Plain]] = match context {
            "main" => &[self.main],
            "events" => &[self.events],
            "upstream" => &[self.upstream],
            "listen" => &[self.server],
            // http, server, location
            _ => &[self.location, self.server, self.http],
        };
        let mut found = blocks.iter().filter_map(|block| named(block, name).next());
        found.next().map(words)
    }
}

fn named<'t>(block: &'t [Plain], name: &'t str) -> impl Iterator<Item = &'t Plain> {
    block.iter().filter(move |directive| directive.name == name)
}

fn blocks<'t>(block: &'t [Plain], name: &'t str) -> impl Iterator<Item = &'t [Plain]> {
    named(block, name).filter_map(|directive| directive.block.as_deref())
}

/// The first location of a server that passes requests on.
fn passing(server: &[Plain]) -> Option<&[Plain]> {
    blocks(server, "location").find(|location| named(location, "proxy_pass").next().is_some())
}

fn words(directive: &Plain) -> String {
    let words = std::iter::once(&directive.name).chain(&directive.arguments);
    words.map(String::as_str).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_configuration::nginx::directives;

    use super::*;

    const TEXT: &str = r#"
        worker_processes 2;
        events { worker_connections 768; }
        http {
            keepalive_requests 50;
            sendfile on;
            upstream origin { server 127.0.0.1:1; keepalive 16; keepalive_requests 7; }
            server {
                listen 127.0.0.1:2 backlog=99 reuseport;
                sendfile off;
                location / { proxy_pass http://origin; }
            }
        }
    "#;

    fn levels(text: &str, nofile: Option<u64>) -> BTreeMap<String, String> {
        let tree = directives(text).unwrap();
        let asked = [Some("127.0.0.1:2".parse().unwrap()), None];
        read(text.to_owned(), &tree, asked, &Catalog::builtin(), nofile).levels
    }

    #[test]
    fn the_context_decides_and_the_innermost_wins() {
        let levels = levels(TEXT, Some(4096));
        for (id, level) in [
            ("worker_processes", "2"),
            ("worker_connections", "768"),
            ("worker_rlimit_nofile", "4096"),
            ("keepalive_requests", "50"),
            ("origin_keepalive_requests", "7"),
            ("origin_keepalive", "16"),
            ("sendfile", "off"),
            ("backlog", "99"),
            ("reuseport", "on"),
        ] {
            assert_eq!(levels.get(id).map(String::as_str), Some(level), "{id}");
        }
    }

    #[test]
    fn of_several_servers_the_one_that_is_asked_counts() {
        let levels = levels(
            "events { }
             http {
                 gzip on;
                 upstream other { server 127.0.0.1:1; keepalive 5; }
                 upstream app { server 127.0.0.1:1; keepalive 6; }
                 server { listen 127.0.0.1:1; keepalive_requests 1; location / { proxy_pass http://other; } }
                 server { listen 127.0.0.1:2 backlog=9; keepalive_requests 2; return 404; }
                 server {
                     listen 127.0.0.1:3 backlog=3;
                     listen 127.0.0.1:2;
                     keepalive_requests 3;
                     location /static/ { gzip off; }
                     location / { sendfile on; proxy_pass http://app/x; }
                 }
             }",
            None,
        );
        for (id, level) in [
            ("keepalive_requests", "3"),
            ("origin_keepalive", "6"),
            ("sendfile", "on"),
            ("gzip", "on"),
            ("backlog", "9"),
        ] {
            assert_eq!(levels.get(id).map(String::as_str), Some(level), "{id}");
        }
    }

    #[test]
    fn a_text_that_no_level_leads_to_stands_as_it_is() {
        let levels = levels("http { access_log syslog:server=a main; }", None);
        assert_eq!(levels["access_log"], "access_log syslog:server=a main");
    }
}
