//! nginx's effective configuration, read back from its own output.

use weir_configuration::Spot;
use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, EffectiveFrom, Parameter};
use weir_sut::Effective;
use weir_sut::route_match::RouteMatch;

use crate::language::Plain;
use crate::running::limit_req_rate;

/// Reads the levels of all parameters from the configuration, for the ways that loads take. Process limits are known
/// only for a running proxy.
pub(super) fn read(
    text: String,
    tree: &[Plain],
    route_matches: Vec<RouteMatch>,
    catalog: &Catalog,
    nofile: Option<u64>,
) -> Effective {
    let routes = route_matches
        .iter()
        .map(|route_match| (route_match.is_secure, Route::of(tree, route_match)));
    let routes: Vec<(bool, Route<'_>)> = routes.collect();
    let rows = (catalog, ProxyKind::Nginx);
    let mut effective = Effective::of_routes(text, rows, &routes, is_of_tls, |row, route| {
        level(row, route, nofile)
    });
    // No parameter, but a limit that shows in what nginx answers.
    let limit = limit_req_rate(tree).map(|rate| ("limit_req_rate".to_owned(), rate.to_string()));
    effective.levels.extend(limit);
    effective
}

/// Returns true if a row is from nginx's module for TLS towards clients.
fn is_of_tls(row: &Parameter) -> bool {
    matches!(&row.effective, EffectiveFrom::Directive { name, .. } if name.starts_with("ssl_"))
}

fn level(row: &Parameter, route: &Route<'_>, nofile: Option<u64>) -> Option<String> {
    let value = match &row.effective {
        EffectiveFrom::Directive { name, context } => route.find(context.name(), name),
        EffectiveFrom::ListenFlag { .. } => Some(route.listen.join(" ")),
        EffectiveFrom::ProcessLimit { .. } => match nofile {
            Some(limit) => Some(limit.to_string()),
            None => written_level(row, route),
        },
        EffectiveFrom::Value { .. }
        | EffectiveFrom::Sysctl { .. }
        | EffectiveFrom::Launcher
        | EffectiveFrom::CpuSet
        | EffectiveFrom::Workload(_)
        | EffectiveFrom::Transport { .. } => None,
    };
    row.read_back(value.as_deref()).or(value)
}

/// Returns the value of the directive that a row is written as, if there is no process to read it from.
fn written_level(row: &Parameter, route: &Route<'_>) -> Option<String> {
    let write = row.writes.first()?;
    let name = write.text.split_whitespace().next()?;
    let directive = route.find(write.context.name(), name)?;
    Some(directive.split_once(' ')?.1.to_owned())
}

/// Blocks that apply to a load.
struct Route<'t> {
    main: &'t [Plain],
    events: &'t [Plain],
    /// Blocks from `http` and the server down to the innermost location.
    http: Vec<&'t [Plain]>,
    /// Block of the group that requests are passed on to.
    upstream: &'t [Plain],
    /// Arguments of all `listen` directives for the load's address; servers share the address, and one of them has its
    /// flags.
    listen: Vec<&'t str>,
}

impl<'t> Route<'t> {
    /// Finds the blocks. If the server is not known, takes the first server at the address that passes requests on, or
    /// else the first one there; if the location is not known, takes the server's first location that passes requests
    /// on, or else its first.
    fn of(tree: &'t [Plain], route_match: &RouteMatch) -> Route<'t> {
        let http = first_block(tree, "http");
        let requested = route_match.at.to_string();
        let is_there = |server: &&Plain| {
            directives_named(inside(server), "listen")
                .any(|listen| listen.arguments.first() == Some(&requested))
        };
        let servers = || blocks(http, "server");
        let server = route_match
            .server
            .as_ref()
            .and_then(|spot| servers().find(|server| is_at(server, spot)))
            .or_else(|| servers().filter(is_there).find(|it| passing(it).is_some()))
            .or_else(|| servers().find(is_there))
            .or_else(|| servers().next());
        let mut path: Vec<&Plain> = Vec::new();
        if let Some(server) = server {
            path.push(server);
            let is_found =
                route_match.location.as_ref().map(|spot| down_to(server, spot, &mut path));
            if is_found != Some(true) {
                let location =
                    passing(server).or_else(|| blocks(inside(server), "location").next());
                path.extend(location);
            }
        }
        let innermost = path.last().map_or(&[][..], |block| inside(block));
        let listens = servers().flat_map(|server| directives_named(inside(server), "listen"));
        let listens: Vec<&Plain> = listens.collect();
        let first_listen =
            server.and_then(|server| directives_named(inside(server), "listen").next());
        let address = if listens.iter().any(|it| it.arguments.first() == Some(&requested)) {
            Some(&requested)
        } else {
            first_listen.and_then(|listen| listen.arguments.first())
        };
        let flags = listens
            .iter()
            .filter(|it| it.arguments.first() == address)
            .flat_map(|listen| listen.arguments.iter().map(String::as_str));
        Route {
            main: tree,
            events: first_block(tree, "events"),
            listen: flags.collect(),
            upstream: group(http, innermost).map_or(&[][..], inside),
            http: std::iter::once(http).chain(path.into_iter().map(inside)).collect(),
        }
    }

    /// Returns the words of the directive that applies to a context, the innermost one: a location inherits directives
    /// from the blocks around it.
    fn find(&self, context: &str, name: &str) -> Option<String> {
        let blocks: &[&[Plain]] = match context {
            "main" => &[self.main],
            "events" => &[self.events],
            "upstream" => &[self.upstream],
            // http, server, location
            _ => &self.http,
        };
        blocks.iter().rev().find_map(|block| directives_named(block, name).next()).map(words)
    }
}

fn first_block<'t>(tree: &'t [Plain], name: &'static str) -> &'t [Plain] {
    blocks(tree, name).next().map_or(&[][..], inside)
}

/// Returns the group of origin servers that a location passes requests on to: by name, or the first group if the name
/// is a variable. None if `proxy_pass` names an address.
fn group<'t>(http: &'t [Plain], location: &'t [Plain]) -> Option<&'t Plain> {
    let mut groups = blocks(http, "upstream");
    let pass = directives_named(location, "proxy_pass").next();
    let target = pass.and_then(|pass| pass.arguments.first()?.split("://").nth(1));
    let Some(name) = target.map(|target| target.split('/').next().unwrap_or(target)) else {
        return groups.next();
    };
    if name.contains('$') {
        groups.next()
    } else {
        groups.find(|group| {
            group.arguments.first().is_some_and(|first| first.eq_ignore_ascii_case(name))
        })
    }
}

/// Appends the blocks that lead to a spot to `path`; returns true if the spot is there.
fn down_to<'t>(block: &'t Plain, spot: &Spot, path: &mut Vec<&'t Plain>) -> bool {
    blocks(inside(block), "location").any(|location| {
        path.push(location);
        let is_found = is_at(location, spot) || down_to(location, spot, path);
        if !is_found {
            path.pop();
        }
        is_found
    })
}

fn is_at(directive: &Plain, spot: &Spot) -> bool {
    (directive.file, directive.line) == (spot.file, spot.line)
}

fn inside(directive: &Plain) -> &[Plain] {
    directive.block.as_deref().unwrap_or_default()
}

fn directives_named<'t>(block: &'t [Plain], name: &'t str) -> impl Iterator<Item = &'t Plain> {
    block.iter().filter(move |directive| directive.name == name)
}

fn blocks<'t>(block: &'t [Plain], name: &'t str) -> impl Iterator<Item = &'t Plain> {
    directives_named(block, name).filter(|directive| directive.block.is_some())
}

/// Returns the first location of a server that passes requests on.
fn passing(server: &Plain) -> Option<&Plain> {
    let mut locations = blocks(inside(server), "location");
    locations.find(|location| directives_named(inside(location), "proxy_pass").next().is_some())
}

fn words(directive: &Plain) -> String {
    std::iter::once(&directive.name)
        .chain(&directive.arguments)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::language::directives;
    use weir_model::study::HOST;

    use super::*;
    use weir_sut::route_match::RequestRoute;

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

    fn read_levels(text: &str, nofile: Option<u64>) -> BTreeMap<String, String> {
        let tree = directives(text).unwrap();
        let route_matches = vec![RouteMatch::at("127.0.0.1:2".parse().unwrap(), false)];
        read(text.to_owned(), &tree, route_matches, &Catalog::builtin(), nofile).levels
    }

    #[test]
    fn the_context_decides_and_the_innermost_wins() {
        let levels = read_levels(TEXT, Some(4096));
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
        let levels = read_levels(
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

    /// Loads that reach different blocks have the levels of all of them; for TLS, only loads over TLS count.
    #[test]
    fn the_server_and_the_location_that_loads_meet_count() {
        let text = "events { }
            http {
                upstream app { server 127.0.0.1:1; keepalive 6; }
                server { listen 127.0.0.1:1; gzip on; location / { proxy_pass http://app; } }
                server {
                    listen 127.0.0.1:2 ssl backlog=9;
                    ssl_session_cache off;
                    location / { sendfile on; proxy_pass http://app; }
                    location /api/ {
                        gzip on;
                        location /api/v2/ { sendfile off; proxy_pass http://127.0.0.1:9; }
                    }
                }
            }";
        let tree = directives(text).unwrap();
        let clear = RouteMatch::at("127.0.0.1:1".parse().unwrap(), false);
        let tls = RouteMatch {
            server: spot_at(5),
            ..RouteMatch::at("127.0.0.1:2".parse().unwrap(), true)
        };
        let api = RouteMatch { location: spot_at(11), ..tls.clone() };
        for (route_matches, expected) in [
            (vec![clear.clone()], ["on", "off", "6", "511", "none"]),
            (vec![tls.clone()], ["off", "on", "6", "9", "off"]),
            (vec![api.clone()], ["on", "off", "0", "9", "off"]),
            (vec![clear, tls, api], ["on and off", "off and on", "6 and 0", "511 and 9", "off"]),
        ] {
            let levels =
                read(String::new(), &tree, route_matches, &Catalog::builtin(), None).levels;
            let ids = ["gzip", "sendfile", "origin_keepalive", "backlog", "ssl_session_cache"];
            assert_eq!(ids.map(|id| &*levels[id]), expected);
        }
    }

    fn spot_at(line: usize) -> Option<Spot> {
        Some(Spot { line, ..Spot::default() })
    }

    /// Output from an ingress controller's nginx has a server for each host, and a location for each path.
    #[test]
    fn what_was_printed_elsewhere_is_read_by_host_and_path() {
        let text = "events { }
            http {
                init_by_lua_block { a = { b = \"}\" } }
                server { listen 80 default_server; server_name _; location / { gzip on; proxy_pass http://a; } }
                server {
                    listen 80;
                    server_name a.example;
                    location / { proxy_buffering off; proxy_pass http://a; }
                }
                server {
                    listen 80;
                    listen 443 ssl;
                    server_name b.example;
                    location /api/ { proxy_buffering off; sendfile on; proxy_pass http://a; }
                    location / { set $x y; proxy_buffering on; proxy_pass http://a; }
                }
            }";
        let levels_for = |host: &str, target: &str, is_secure| {
            let meeting = RequestRoute {
                at: "10.96.7.7:8080".parse().unwrap(),
                is_secure,
                host: host.to_owned(),
                target: target.to_owned(),
            };
            crate::PROGRAM.read_report.unwrap()(text.to_owned(), &meeting, &Catalog::builtin()).map(
                |effective| {
                    ["gzip", "proxy_buffering", "sendfile"].map(|id| effective.levels[id].clone())
                },
            )
        };
        for (host, target, is_secure, expected) in [
            ("a.example", "/api/x", false, ["off", "off", "off"]),
            ("b.example", "/", false, ["off", "on", "off"]),
            ("b.example", "/", true, ["off", "on", "off"]),
            ("b.example", "/api/x?y", false, ["off", "off", "on"]),
            // Nobody's, and that of a load that names none.
            ("c.example", "/", false, ["on", "on", "off"]),
            (HOST, "/", false, ["on", "on", "off"]),
        ] {
            assert_eq!(levels_for(host, target, is_secure).unwrap(), expected, "{host}{target}");
        }
        let error = levels_for("a.example", "/", true).unwrap_err().to_string();
        assert!(error.contains("no server there has the name `a.example`"), "{error}");
    }

    #[test]
    fn a_text_that_no_level_leads_to_stands_as_it_is() {
        let levels = read_levels("http { access_log syslog:server=a main; }", None);
        assert_eq!(levels["access_log"], "access_log syslog:server=a main");
    }
}
