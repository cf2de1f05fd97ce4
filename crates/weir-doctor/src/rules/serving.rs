//! Finds the locations and servers that answer the requests of clients. Rules look only there.

use crate::configuration::{Configuration, Placed, Statement};

/// Directives of blocks whose own answers are no load: redirections, refusals, counters.
const ANSWERS: [&str; 4] = ["return", "stub_status", "empty_gif", "api"];

/// Returns the locations of servers in `http`, and the servers for requests that no location takes. Leaves out servers
/// reachable over Unix sockets alone, and blocks that only redirect, refuse or show nginx's own counters.
pub(super) fn places(configuration: &Configuration) -> Vec<Placed<'_>> {
    let mut places = Vec::new();
    for server in configuration.all(&["server"]) {
        let is_of_http = matches!(&server.within[..], [http] if http.name == "http");
        if is_of_http && server.statement.block.is_some() && is_reached(server.statement) {
            add(server, &mut places);
        }
    }
    places
}

fn add<'a>(place: Placed<'a>, places: &mut Vec<Placed<'a>>) {
    let answers =
        ANSWERS.iter().any(|name| Configuration::inside(place.statement, name).next().is_some());
    if answers || redirects_all(place.statement) {
        return;
    }
    let inner = place.inner("location");
    if !inner.iter().any(|location| location.statement.arguments == ["/"]) {
        places.push(place);
    }
    for location in inner {
        add(location, places);
    }
}

/// Returns true for a block that redirects every request: `rewrite ^/(.*)$ https://a.example/$1 permanent`.
fn redirects_all(block: &Statement) -> bool {
    const ALL: [&str; 8] = ["^", "^/", "/", ".*", "^.*$", "^(.*)$", "^/(.*)$", "^/(.*)"];
    Configuration::inside(block, "rewrite").any(|rewrite| {
        let [pattern, target, flags @ ..] = &rewrite.arguments[..] else {
            return false;
        };
        let is_redirect = target.starts_with("http://")
            || target.starts_with("https://")
            || target.starts_with("$scheme")
            || flags.iter().any(|flag| flag == "permanent" || flag == "redirect");
        ALL.contains(&&**pattern) && is_redirect
    })
}

/// Returns true if a server has a TCP listener. A server without `listen` has one at port 80.
fn is_reached(server: &Statement) -> bool {
    let mut listens = Configuration::inside(server, "listen").peekable();
    listens.peek().is_none()
        || listens.any(|listen| !listen.argument().unwrap_or_default().starts_with("unix:"))
}
