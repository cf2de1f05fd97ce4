//! The way of a request through Caddy: its server's routes in their order (Caddy's JSON structure, `apps/http/servers`).

use serde_json::Value as Json;

use super::asked::{Document, of_status};
use super::caddy::POLICIES;
use super::find::{get, items};
use super::pointer::Pointer;
use crate::answer::{Answer, Barrier};
use crate::asked::{Request, Way};
use crate::names::is_found;
use crate::place::is_among;

/// Handlers that leave the answer to those behind them.
const GO_ON: &str =
    "encode, headers, rewrite, vars, map, templates, request_body, push, log_append, intercept";

pub(super) fn way(document: &Document<'_>, door: usize, request: &Request<'_>) -> Way {
    let server = &document.found[door].server;
    let name = server.tokens().last().map_or("", String::as_str);
    let spot = Some(document.spot(server, format!("server {name}")));
    if let Some(barrier) = barrier(document, server, request) {
        return Way {
            server: spot,
            ..Way::end(Answer::Bars(barrier))
        };
    }
    let routes = server.child("routes");
    let found = taken(document.json, &routes, request);
    let (location, answer) = match found {
        Some((route, answer)) => {
            let name = route_name(document.json, &route);
            (Some(document.spot(&route, name)), answer)
        }
        None if items(document.json, &routes).is_empty() => (None, Answer::Unknown),
        None => (
            None,
            Answer::Nothing(format!("server {name} has no route for it")),
        ),
    };
    Way {
        server: spot,
        location,
        ..Way::end(answer)
    }
}

/// The certificate that the policy for a handshake asks of clients, who have none. Without a mode it is asked for
/// as soon as it is said whose are believed (`ClientAuthentication` in `caddytls/connpolicy.go`).
fn barrier(document: &Document<'_>, server: &Pointer, request: &Request<'_>) -> Option<Barrier> {
    let name = request.server_name.filter(|_| !request.is_certified)?;
    let policies = items(document.json, server.child(POLICIES));
    let takes = |policy: &&Pointer| {
        let Some(matching) = get(document.json, &policy.child("match")) else {
            return true;
        };
        let names = matching.get("sni").and_then(Json::as_array);
        let mut names = names.into_iter().flatten().filter_map(Json::as_str);
        names.any(|own| is_host(own, name))
    };
    // A copy opens the first to any name where all are for some.
    let policy = policies.iter().find(takes).or(policies.first())?;
    let at = policy.child("client_authentication");
    let said = get(document.json, &at)?.as_object()?;
    let mode = match said.get("mode").and_then(Json::as_str) {
        Some(mode) => mode,
        None if said.is_empty() => return None,
        None => "require",
    };
    mode.starts_with("require").then(|| {
        let says = format!("client_authentication: {mode}");
        Barrier::certificate(document.place(&at), &says)
    })
}

/// The innermost route that answers, and how.
fn taken(json: &Json, routes: &Pointer, request: &Request<'_>) -> Option<(Pointer, Answer)> {
    let mut groups: Vec<&str> = Vec::new();
    // One whose matchers ask for more than is known, where no other answers, and one that may before another.
    let (mut perhaps, mut before) = (None, None);
    for route in items(json, routes) {
        let value = get(json, &route)?;
        let group = value.get("group").and_then(Json::as_str);
        // Of a group the first that matches is the only one.
        if group.is_some_and(|group| groups.contains(&group)) {
            continue;
        }
        match matches(value.get("match"), request) {
            Some(true) => {}
            Some(false) => continue,
            None => {
                if may_answer(json, &route) {
                    before = before.or(Some((route.clone(), Answer::Unknown)));
                }
                perhaps = perhaps.or(Some((route, Answer::Unknown)));
                continue;
            }
        }
        groups.extend(group);
        for handler in items(json, route.child("handle")) {
            let value = get(json, &handler)?;
            let answer = match value.get("handler").and_then(Json::as_str) {
                Some("subroute") => match taken(json, &handler.child("routes"), request) {
                    Some(inner) => return Some(inner),
                    None => continue,
                },
                Some("reverse_proxy") if asks_about_request(value) => continue,
                Some("reverse_proxy") => Answer::Passes,
                Some("file_server") => Answer::Files,
                Some("metrics") => Answer::Statistics,
                Some("static_response") if value.get("abort") == Some(&Json::Bool(true)) => {
                    Answer::Closes
                }
                Some("static_response") => of_status(value.get("status_code"), 200),
                Some("error") => of_status(value.get("status_code"), 500),
                Some(name) if !is_among(name, GO_ON) => Answer::Unknown,
                _ => continue,
            };
            return Some(match (answer, before) {
                (Answer::Passes, _) => (route, Answer::Passes),
                // It may have answered, or have made it another request.
                (_, Some(before)) => before,
                (answer, None) => (route, answer),
            });
        }
        if value.get("terminal") == Some(&Json::Bool(true)) {
            break;
        }
    }
    perhaps
}

/// Whether a route may answer, or have another answer.
fn may_answer(json: &Json, route: &Pointer) -> bool {
    let handlers = items(json, route.child("handle"));
    let mut names = handlers
        .iter()
        .filter_map(|handler| get(json, &handler.child("handler"))?.as_str());
    names.any(|name| name == "rewrite" || !is_among(name, GO_ON))
}

/// Whether one of some sets of matchers takes a request; none at all takes any.
fn matches(sets: Option<&Json>, request: &Request<'_>) -> Option<bool> {
    let sets: Vec<&Json> = sets
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .collect();
    let taken: Vec<Option<bool>> = sets.iter().map(|set| takes(set, request)).collect();
    match () {
        () if taken.is_empty() || taken.contains(&Some(true)) => Some(true),
        () if taken.contains(&None) => None,
        () => Some(false),
    }
}

/// Whether all matchers of a set take a request; `None`: one asks for more than is known.
fn takes(set: &Json, request: &Request<'_>) -> Option<bool> {
    let mut all = Some(true);
    for (name, value) in set.as_object()? {
        let texts = value.as_array().into_iter().flatten();
        let mut texts = texts.filter_map(Json::as_str);
        let is_so = match name.as_str() {
            "host" => Some(texts.any(|host| is_host(host, request.host))),
            "path" => Some(texts.any(|path| is_path(path, request.path))),
            "path_regexp" => {
                let pattern = value.get("pattern").and_then(Json::as_str)?;
                is_found(pattern, false, request.path)
            }
            "method" => Some(texts.any(|method| method == request.method)),
            "header" => has_headers(value, request),
            "protocol" => match value.as_str()? {
                "https" => Some(request.is_tls()),
                "http" => Some(!request.is_tls()),
                _ => None,
            },
            "not" => {
                let sets = value.as_array()?;
                let mut taken = sets.iter().map(|set| takes(set, request));
                match taken.clone().any(|taken| taken == Some(true)) {
                    true => Some(false),
                    false => taken.all(|taken| taken == Some(false)).then_some(true),
                }
            }
            _ => None,
        };
        match is_so {
            Some(false) => return Some(false),
            Some(true) => {}
            None => all = None,
        }
    }
    all
}

/// Whether a request has all these headers; each is one of some values.
fn has_headers(headers: &Json, request: &Request<'_>) -> Option<bool> {
    let has = |(name, values): (&String, &Json)| {
        let mut texts = values.as_array()?.iter().filter_map(Json::as_str);
        let value = match name.eq_ignore_ascii_case("host") {
            true => request.host,
            false => request.field(name)?,
        };
        match value.is_empty() {
            true => Some(false),
            false => texts.any(|text| text == value).then_some(true),
        }
    };
    let said: Vec<Option<bool>> = headers.as_object()?.iter().map(has).collect();
    match said.contains(&Some(false)) {
        true => Some(false),
        false => (!said.contains(&None)).then_some(true),
    }
}

/// A host as Caddy compares it: an asterisk is one label.
fn is_host(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.to_ascii_lowercase());
    let (own, labels) = (pattern.split('.'), host.split('.'));
    pattern == host
        || (own.clone().count() == labels.clone().count()
            && own
                .zip(labels)
                .all(|(own, label)| own == "*" || own == label))
}

/// A path as Caddy compares it: in any case of letters, with an asterisk at either end for anything, or with any number of
/// them for parts without a slash (`MatchPath` of caddyhttp).
fn is_path(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (pattern.to_ascii_lowercase(), path.to_ascii_lowercase());
    let inner = pattern.trim_matches('*');
    match (pattern.starts_with('*'), pattern.ends_with('*')) {
        _ if pattern == "*" => true,
        _ if inner.contains('*') => is_glob(&pattern, &path),
        (true, true) => path.contains(inner),
        (true, false) => path.ends_with(inner),
        (false, true) => path.starts_with(inner),
        (false, false) => path == pattern,
    }
}

/// Whether a pattern takes all of a path; an asterisk is for anything without a slash.
fn is_glob(pattern: &str, path: &str) -> bool {
    let Some((before, behind)) = pattern.split_once('*') else {
        return pattern == path;
    };
    path.strip_prefix(before).is_some_and(|rest| {
        let end = rest.find('/').unwrap_or(rest.len());
        (0..=end).any(|at| rest.is_char_boundary(at) && is_glob(behind, &rest[at..]))
    })
}

/// What a route takes, by its own matchers and by those of the routes around it.
fn route_name(json: &Json, route: &Pointer) -> String {
    let around = 1..=route.tokens().len();
    let levels = around.map(|steps| route.first(steps));
    let levels = levels.filter(|at| {
        let mut tokens = at.tokens().iter().rev();
        tokens.nth(1).is_some_and(|token| token == "routes")
    });
    let said: Vec<String> = levels
        .flat_map(|at| {
            let first = get(json, &at.join("/match/0"));
            ["host", "path"].into_iter().filter_map(move |name| {
                let values = first?.get(name)?.as_array()?;
                let values: Vec<&str> = values.iter().filter_map(Json::as_str).collect();
                Some(values.join(" "))
            })
        })
        .collect();
    if said.is_empty() {
        "route".to_owned()
    } else {
        format!("route for {}", said.join(" "))
    }
}

/// The routes that a request goes through, or may go through where their matchers ask for more than is known, inner ones
/// too; none behind the one that answers it.
pub(super) fn met(
    json: &Json,
    server: &Pointer,
    request: &Request<'_>,
    end: &Pointer,
) -> Vec<Pointer> {
    let mut met = Vec::new();
    through(json, &server.child("routes"), (request, end), &mut met);
    met
}

/// Adds the routes of a list, and tells whether the one that answers is among them.
fn through(
    json: &Json,
    routes: &Pointer,
    (request, end): (&Request<'_>, &Pointer),
    met: &mut Vec<Pointer>,
) -> bool {
    let mut groups: Vec<&str> = Vec::new();
    for route in items(json, routes) {
        let value = get(json, &route).unwrap_or(&Json::Null);
        let group = value.get("group").and_then(Json::as_str);
        let taken = matches(value.get("match"), request);
        if taken == Some(false) || group.is_some_and(|group| groups.contains(&group)) {
            continue;
        }
        if taken == Some(true) {
            groups.extend(group);
        }
        met.push(route.clone());
        for handler in items(json, route.child("handle")) {
            if through(json, &handler.child("routes"), (request, end), met) {
                return true;
            }
        }
        if route == *end {
            return true;
        }
    }
    false
}

/// Returns true for a `reverse_proxy` that asks a service about a request and lets it go on where that says 2xx: what
/// `forward_auth` becomes (`caddyhttp/reverseproxy/forwardauth`).
pub(super) fn asks_about_request(handler: &Json) -> bool {
    let responses = handler.get("handle_response").and_then(Json::as_array);
    let mut codes = responses
        .into_iter()
        .flatten()
        .filter_map(|response| response.get("match")?.get("status_code")?.as_array());
    handler.get("rewrite").is_some() && codes.any(|codes| codes.iter().any(|code| *code == 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asterisks_in_a_path_take_parts_of_it() {
        for (pattern, path, expected) in [
            ("/v1/*/items", "/v1/7/items", true),
            ("/v1/*/items", "/v1/7/8/items", false),
            ("/v1/*/items*", "/v1/7/items2", true),
            ("/a/*.CSS", "/a/b.css", true),
            ("*/b", "/x/a/b", true),
            ("/a*", "/a/b/c", true),
        ] {
            assert_eq!(is_path(pattern, path), expected, "{pattern} {path}");
        }
    }
}
