//! The way of a request through Caddy: its server's routes in their order (Caddy's JSON structure, `apps/http/servers`).

use serde_json::Value as Json;
use weir_configuration::answer::{Answer, Barrier};
use weir_configuration::asked::{Request, Route};
use weir_configuration::document::Pointer;
use weir_configuration::document::asked::{Document, of_status};
use weir_configuration::document::find::{get, items};
use weir_configuration::place::is_among;

use super::document::POLICIES;
use super::matchers::{is_host, matches};
use super::passage::Passage;

/// Handlers that leave the answer to the handlers behind them.
const GO_ON: &str =
    "encode, headers, rewrite, vars, map, templates, request_body, push, log_append, intercept";

pub(super) fn find_route(
    document: &Document<'_>,
    candidate: usize,
    request: &Request<'_>,
) -> Route {
    let server = &document.found[candidate].server;
    let name = server.tokens().last().map_or("", String::as_str);
    let spot = Some(document.spot(server, format!("server {name}")));
    if let Some(barrier) = barrier(document, server, request) {
        return Route { server: spot, ..Route::end(Answer::Bars(barrier)) };
    }
    let routes = server.child("routes");
    let walk = Walk::through(document.json, server, Passage::of(request));
    let (location, answer) = match walk.end {
        Some((route, answer)) => {
            let name = route_name(document.json, &route);
            (Some(document.spot(&route, name)), answer)
        }
        None if items(document.json, &routes).is_empty() => (None, Answer::Unknown),
        None => (None, Answer::Nothing(format!("server {name} has no route for it"))),
    };
    Route { server: spot, location, ..Route::end(answer) }
}

/// Returns a barrier if the policy for a handshake demands a certificate from clients that have none. A policy without
/// a mode demands one as soon as it says which certificates are trusted (`ClientAuthentication` in
/// `caddytls/connpolicy.go`).
fn barrier(document: &Document<'_>, server: &Pointer, request: &Request<'_>) -> Option<Barrier> {
    let name = request.server_name.filter(|_| !request.is_certified)?;
    let policies = items(document.json, server.child(POLICIES));
    // A copy opens the first to any name where all are for some.
    let policy =
        policies.iter().find(|policy| takes(document, policy, name)).or(policies.first())?;
    let at = policy.child("client_authentication");
    let authentication = get(document.json, &at)?.as_object()?;
    let mode = match authentication.get("mode").and_then(Json::as_str) {
        Some(mode) => mode,
        None if authentication.is_empty() => return None,
        None => "require",
    };
    mode.starts_with("require").then(|| {
        let says = format!("client_authentication: {mode}");
        Barrier::certificate(document.place(&at), &says)
    })
}

/// Returns true if a policy is for a name.
fn takes(document: &Document<'_>, policy: &Pointer, name: &str) -> bool {
    let Some(matching) = get(document.json, &policy.child("match")) else {
        return true;
    };
    let mut names =
        matching.get("sni").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    names.any(|pattern| is_host(pattern, name))
}

/// The way of a request through a server's routes and their handlers, as far as it can be determined.
pub(super) struct Walk<'a> {
    json: &'a Json,
    passage: Passage<'a>,
    /// Routes that take the request or may take it, with the nested ones.
    pub(super) routes: Vec<Pointer>,
    /// Handlers in these routes, each with the request as it gets it.
    pub(super) handlers: Vec<(Pointer, Passage<'a>)>,
    /// First route that may or may not answer, or after which it is unknown which route answers.
    doubt: Option<Pointer>,
    /// First route whose matchers cannot be decided.
    undecided: Option<Pointer>,
    /// Innermost route that answers, and its answer.
    pub(super) end: Option<(Pointer, Answer)>,
}

impl<'a> Walk<'a> {
    pub(super) fn through(json: &'a Json, server: &Pointer, passage: Passage<'a>) -> Walk<'a> {
        let mut walk = Walk {
            json,
            passage,
            routes: Vec::new(),
            handlers: Vec::new(),
            doubt: None,
            undecided: None,
            end: None,
        };
        let end = walk.list(&server.child("routes"));
        if end.is_none() {
            walk.doubt = walk.doubt.or(walk.undecided.take());
        }
        let doubt = walk.doubt.take();
        walk.end = doubt.map(|route| (route, Answer::Unknown)).or(end);
        walk
    }

    /// Goes through a list of routes; returns the one that certainly ends the way.
    fn list(&mut self, routes: &Pointer) -> Option<(Pointer, Answer)> {
        // Of a group the first that matches is the only one.
        let (mut taken, mut perhaps) = (Vec::new(), Vec::new());
        for route in items(self.json, routes) {
            let value = get(self.json, &route)?;
            let group = value.get("group").and_then(Json::as_str);
            let is_taken = matches(value.get("match"), &self.passage);
            if is_taken == Some(false) || group.is_some_and(|group| taken.contains(&group)) {
                continue;
            }
            self.routes.push(route.clone());
            if is_taken.is_none() || group.is_some_and(|group| perhaps.contains(&group)) {
                if !self.perhaps(&route) {
                    perhaps.extend(group);
                }
                continue;
            }
            taken.extend(group);
            if let Some(end) = self.route(&route) {
                return Some(end);
            }
            if value.get("terminal") == Some(&Json::Bool(true)) {
                break;
            }
        }
        None
    }

    /// Goes through a route that may take the request or not; returns true if the route answers when it takes it.
    fn perhaps(&mut self, route: &Pointer) -> bool {
        self.undecided.get_or_insert_with(|| route.clone());
        let (before, doubt) = (self.passage.clone(), self.doubt.take());
        let answers = self.route(route).is_some();
        if answers || self.doubt.is_some() {
            let cause = before.path.clone().err();
            self.doubt = doubt.or(cause).or_else(|| Some(route.clone()));
        } else {
            self.doubt = doubt;
        }
        // Whatever comes behind one that answers has not been there.
        self.passage = if answers { before } else { before.joined(&self.passage, route) };
        answers
    }

    /// Goes through the handlers of a route; returns the innermost route that certainly ends the way.
    fn route(&mut self, route: &Pointer) -> Option<(Pointer, Answer)> {
        for handler in items(self.json, route.child("handle")) {
            let value = get(self.json, &handler)?;
            self.handlers.push((handler.clone(), self.passage.clone()));
            let end = match value.get("handler").and_then(Json::as_str)? {
                "subroute" => self.list(&handler.child("routes")),
                "rewrite" | "headers" => {
                    self.passage = self.passage.clone().changed(value, route);
                    None
                }
                // Clients that are known, and files that are not there, are left to those behind.
                name if name == "authentication"
                    || value.get("pass_thru") == Some(&true.into()) =>
                {
                    self.doubt.get_or_insert_with(|| route.clone());
                    None
                }
                name => answer(name, value).map(|answer| (route.clone(), answer)),
            };
            if end.is_some() {
                return end;
            }
        }
        None
    }
}

/// Returns the answer of a handler; None if it leaves the answer to the handlers behind it.
fn answer(name: &str, handler: &Json) -> Option<Answer> {
    Some(match name {
        "reverse_proxy" if asks_about_request(handler) => return None,
        "reverse_proxy" => Answer::Passes,
        "file_server" => Answer::Files,
        "metrics" => Answer::Statistics,
        "static_response" if handler.get("abort") == Some(&Json::Bool(true)) => Answer::Closes,
        "static_response" => of_status(handler.get("status_code"), 200),
        "error" => of_status(handler.get("status_code"), 500),
        name if is_among(name, GO_ON) => return None,
        _ => Answer::Unknown,
    })
}

/// Returns a name for a route by the hosts and paths that it matches, with those of the routes around it.
fn route_name(json: &Json, route: &Pointer) -> String {
    let around = 1..=route.tokens().len();
    let levels = around.map(|steps| route.first(steps)).filter(|at| {
        let mut tokens = at.tokens().iter().rev();
        tokens.nth(1).is_some_and(|token| token == "routes")
    });
    let matchers: Vec<String> = levels
        .flat_map(|at| {
            let first = get(json, &at.join("/match/0"));
            ["host", "path"].into_iter().filter_map(move |name| {
                let values = first?.get(name)?.as_array()?;
                let values: Vec<&str> = values.iter().filter_map(Json::as_str).collect();
                Some(values.join(" "))
            })
        })
        .collect();
    if matchers.is_empty() {
        "route".to_owned()
    } else {
        format!("route for {}", matchers.join(" "))
    }
}

/// Returns true for a `reverse_proxy` that asks a service about a request and lets the request go on if the service
/// answers 2xx. `forward_auth` is expanded to such a handler (`caddyhttp/reverseproxy/forwardauth`).
pub(super) fn asks_about_request(handler: &Json) -> bool {
    let responses = handler.get("handle_response").and_then(Json::as_array);
    let mut codes = responses
        .into_iter()
        .flatten()
        .filter_map(|response| response.get("match")?.get("status_code")?.as_array());
    handler.get("rewrite").is_some() && codes.any(|codes| codes.iter().any(|code| *code == 2))
}
