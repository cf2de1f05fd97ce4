//! Where the requests of clients are answered: what counts for them is looked at there.

use crate::configuration::{Configuration, Placed, Statement};

/// Directives of blocks that answer by themselves what is no load: redirections, refusals, counters.
const ANSWERS: [&str; 4] = ["return", "stub_status", "empty_gif", "api"];

/// Locations of the servers of `http`, and servers for what no location takes. Servers that nobody
/// reaches but over sockets of the file system are left out, and so is what only redirects, refuses or
/// shows nginx's own counters.
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
    let answers = |name: &&str| {
        Configuration::inside(place.statement, name)
            .next()
            .is_some()
    };
    if ANSWERS.iter().any(answers) || redirects_all(place.statement) {
        return;
    }
    let inner = place.inner("location");
    let takes_all = |location: &Placed<'_>| location.statement.arguments == ["/"];
    if !inner.iter().any(takes_all) {
        places.push(place);
    }
    for location in inner {
        add(location, places);
    }
}

/// Returns true for a block that redirects whatever is asked for: `rewrite ^/(.*)$ https://a.example/$1 permanent`.
fn redirects_all(block: &Statement) -> bool {
    const ALL: [&str; 8] = ["^", "^/", "/", ".*", "^.*$", "^(.*)$", "^/(.*)$", "^/(.*)"];
    Configuration::inside(block, "rewrite").any(|rewrite| {
        let [pattern, target, flags @ ..] = &rewrite.arguments[..] else {
            return false;
        };
        let is_redirect = target.starts_with("http://")
            || target.starts_with("https://")
            || target.starts_with("$scheme")
            || flags
                .iter()
                .any(|flag| flag == "permanent" || flag == "redirect");
        ALL.contains(&&**pattern) && is_redirect
    })
}

/// Whether it has a listener of TCP. One without any listens at port 80.
fn is_reached(server: &Statement) -> bool {
    let is_unix = |listen: &Statement| {
        let address = listen.argument().unwrap_or_default();
        address.starts_with("unix:")
    };
    let mut listens = Configuration::inside(server, "listen").peekable();
    listens.peek().is_none() || listens.any(|listen| !is_unix(listen))
}
