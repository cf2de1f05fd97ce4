//! The way of a request through Envoy: filter chain, virtual host, route (`FilterChainMatch`, `VirtualHost.domains`
//! and `RouteMatch` of its API reference).

use serde_json::Value as Json;
use weir_configuration::answer::{Answer, Barrier};
use weir_configuration::asked::{Request, Route};
use weir_configuration::document::asked::{Document, of_status};
use weir_configuration::document::find::{field, get, is_constant, is_true, items};
use weir_configuration::document::listening::Listening;
use weir_configuration::document::{Pointer, camel};
use weir_configuration::names::{fold_case, is_found, wildcard};

use super::bootstrap::{CHAIN_TLS, chains, is_of_type, present, tls_chains};

pub(super) fn find_route(
    document: &Document<'_>,
    candidate: usize,
    request: &Request<'_>,
) -> Route {
    let chains = chains_taken(document, candidate, request);
    let [chain] = &chains[..] else {
        let listener = &document.found[candidate];
        let is_by_rules = get(document.json, &listener.at.child(MATCHER)).is_some();
        return Route::end(
            if is_by_rules
                || chains.len() > 1
                || candidates(document, candidate, request).is_empty()
            {
                Answer::Unknown
            } else {
                untaken(document, listener, request)
            },
        );
    };
    match barrier(document, chain, request) {
        Some(barrier) => Route::end(Answer::Bars(barrier)),
        None => through(document, chain, request),
    }
}

/// Key of a listener's own rules for its chains, which replace the conditions in each chain.
pub(super) const MATCHER: &str = "filter_chain_matcher";

/// Returns the filter chains of a listener that a request can use: with TLS, only those that speak it.
fn candidates(document: &Document<'_>, candidate: usize, request: &Request<'_>) -> Vec<Pointer> {
    let listener = &document.found[candidate].at;
    let mut all = if request.is_tls() {
        tls_chains(document.json, listener)
    } else {
        chains(document.json, listener)
    };
    all.retain(|chain| get(document.json, chain).is_some());
    all
}

/// Returns true if a filter chain is for some clients, addresses or protocols, about which a request says nothing.
fn is_by_more(json: &Json, chain: &Pointer) -> bool {
    let decided = ["destination_port", "server_names", "transport_protocol"];
    let matching = get(json, &chain.child("filter_chain_match")).and_then(Json::as_object);
    let mut keys = matching.into_iter().flatten().filter(|(_, value)| !value.is_null());
    keys.any(|(name, _)| !is_any(name, &decided))
}

/// Returns the filter chain that a request takes, or all that it could take if more than the request decides.
pub(super) fn chains_taken(
    document: &Document<'_>,
    candidate: usize,
    request: &Request<'_>,
) -> Vec<Pointer> {
    let listener = &document.found[candidate];
    let all = candidates(document, candidate, request);
    let is_by_rules = get(document.json, &listener.at.child(MATCHER)).is_some();
    if is_by_rules || all.iter().any(|chain| is_by_more(document.json, chain)) {
        return all;
    }
    // A copy opens the first to any name where all are for some, so that names are no matter then.
    chain(document, &all, listener.port, request)
        .or_else(|| all.first().cloned().filter(|_| !request.is_named))
        .into_iter()
        .collect()
}

/// Returns the demand of a filter chain that clients of a load cannot meet, if it has one.
fn barrier(document: &Document<'_>, chain: &Pointer, request: &Request<'_>) -> Option<Barrier> {
    let demand = chain.join(CHAIN_TLS).child("require_client_certificate");
    if is_true(document.json, &demand) && !request.is_certified {
        let position = document.place(&demand);
        return Some(Barrier::certificate(position, "require_client_certificate"));
    }
    let codec = filter(document.json, chain, "HttpConnectionManager")?.child("codec_type");
    let is_http2 = get(document.json, &codec).is_some_and(|it| is_constant(it, "HTTP2", 2));
    is_http2.then(|| Barrier::http2(document.place(&codec), "codec_type: HTTP2"))
}

/// Returns the configuration of a chain's first filter of a type.
pub(super) fn filter(json: &Json, chain: &Pointer, message: &str) -> Option<Pointer> {
    let mut configs =
        items(json, chain.child("filters")).into_iter().map(|filter| filter.child("typed_config"));
    configs.find(|config| get(json, config).is_some_and(|it| is_of_type(it, message)))
}

/// Returns the way of a request through a filter chain.
pub(super) fn through(document: &Document<'_>, chain: &Pointer, request: &Request<'_>) -> Route {
    let manager = filter(document.json, chain, "HttpConnectionManager");
    match (manager, filter(document.json, chain, "TcpProxy")) {
        (Some(manager), _) => managed(document, &manager, request),
        (None, Some(proxy)) => Route {
            location: Some(document.spot(&proxy, "tcp_proxy")),
            ..Route::end(Answer::Tunnels)
        },
        (None, None) => Route::end(Answer::Unknown),
    }
}

/// Returns the answer for a name that no filter chain takes, with the reason.
fn untaken(document: &Document<'_>, listener: &Listening, request: &Request<'_>) -> Answer {
    let name = request.server_name.unwrap_or(request.host);
    let in_clear: Vec<Pointer> = chains(document.json, &listener.at)
        .into_iter()
        .filter(|chain| get(document.json, chain).is_some())
        .collect();
    Answer::Nothing(match chain(document, &in_clear, listener.port, request) {
        Some(_) => format!(
            "the filter chain for `{name}` passes TLS on as it is, and the study's origin server speaks none"
        ),
        None => format!("no filter chain takes the name `{name}`"),
    })
}

/// Returns the filter chain that a connection takes: by destination port, then server name, then transport protocol,
/// the most specific first in each.
fn chain(
    document: &Document<'_>,
    all: &[Pointer],
    port: Option<u16>,
    request: &Request<'_>,
) -> Option<Pointer> {
    let ranked = all.iter().filter_map(|chain| {
        let of_port = match demand(document, chain, "destination_port") {
            None => 0,
            Some(own) if own.as_u64() == port.map(u64::from) => 1,
            Some(_) => return None,
        };
        let of_name = match demand(document, chain, "server_names") {
            None => 0,
            Some(names) => {
                let name = request.server_name?;
                texts(names)
                    .into_iter()
                    .filter_map(|own| {
                        if own.eq_ignore_ascii_case(name) {
                            Some(usize::MAX)
                        } else {
                            wildcard(own, name)
                        }
                    })
                    .max()?
            }
        };
        let transport = demand(document, chain, "transport_protocol");
        let of_transport = match transport.and_then(Json::as_str).unwrap_or_default() {
            "" => 0,
            "tls" if request.is_tls() => 1,
            "raw_buffer" if !request.is_tls() => 1,
            _ => return None,
        };
        Some(((of_port, of_name, of_transport), chain))
    });
    // Of equals the first.
    let best = ranked.rev().max_by_key(|(rank, _)| *rank);
    best.map(|(_, chain)| chain.clone())
}

/// Returns what a filter chain demands of a connection in a field.
fn demand<'a>(document: &Document<'a>, chain: &Pointer, name: &str) -> Option<&'a Json> {
    present(get(document.json, &chain.child("filter_chain_match"))?, name)
}

/// Returns the way of a request through a connection manager.
fn managed(document: &Document<'_>, manager: &Pointer, request: &Request<'_>) -> Route {
    let json = document.json;
    let checks = items(json, manager.child("http_filters")).into_iter().any(|filter| {
        get(json, &filter.child("typed_config")).is_some_and(|config| {
            is_of_type(config, "HealthCheck") && is_checked(config, request.path)
        })
    });
    if checks {
        return Route::end(Answer::Statistics);
    }
    let hosts = manager.join("/route_config/virtual_hosts");
    if get(json, &hosts).is_none() {
        return Route::end(Answer::Unknown);
    }
    let ranked = items(json, &hosts).into_iter().filter_map(|host| {
        let ranks = texts(get(json, &host.child("domains"))?)
            .into_iter()
            .filter_map(|domain| domain_rank(domain, request.authority));
        Some((ranks.max()?, host))
    });
    let Some((_, host)) = ranked.max_by_key(|(rank, _)| *rank) else {
        return Route::end(Answer::Nothing(format!(
            "no virtual host has the domain `{}`",
            request.authority
        )));
    };
    let value = get(json, &host).unwrap_or(&Json::Null);
    let name = field(value, "name").and_then(Json::as_str).unwrap_or_default();
    let server = Some(document.spot(&host, format!("virtual host {name}")));
    let requires =
        field(value, "require_tls").is_some_and(|it| !it.is_null() && !is_constant(it, "NONE", 0));
    if !request.is_tls() && requires {
        return Route { server, ..Route::end(Answer::Redirects) };
    }
    let routes = items(json, host.child("routes"));
    let (route, is_sure) = taken(json, &routes, request);
    let is_matched = field(value, "matcher").is_some();
    let answer = match route.as_ref().and_then(|route| get(json, route)) {
        Some(route) if is_sure => answer(route),
        None if !is_matched => Answer::Nothing(format!("virtual host {name} has no route for it")),
        _ => Answer::Unknown,
    };
    Route {
        server,
        location: route.as_ref().map(|route| {
            let name = route_name(get(json, route).unwrap_or(&Json::Null));
            document.spot(route, name)
        }),
        ..Route::end(answer)
    }
}

/// Returns the first route that may take a request, and true if it certainly does.
fn taken(json: &Json, routes: &[Pointer], request: &Request<'_>) -> (Option<Pointer>, bool) {
    let first = may_take(json, routes.to_vec(), request).into_iter().next();
    let is_sure = first.as_ref().is_some_and(|first| is_taken(json, first, request) == Some(true));
    (first, is_sure)
}

/// Returns the routes that may take a request: the first that certainly does, and those before it whose conditions are
/// not decided.
pub(super) fn may_take(
    json: &Json,
    mut routes: Vec<Pointer>,
    request: &Request<'_>,
) -> Vec<Pointer> {
    let mut is_over = false;
    routes.retain(|route| {
        let outcome = is_taken(json, route, request);
        let is_kept = !is_over && outcome != Some(false);
        is_over |= outcome == Some(true);
        is_kept
    });
    routes
}

/// Returns true if a health check answers a path itself.
fn is_checked(config: &Json, path: &str) -> bool {
    let passes = field(config, "pass_through_mode") == Some(&Json::Bool(true));
    let mut headers = field(config, "headers").and_then(Json::as_array).into_iter().flatten();
    !passes
        && headers.any(|header| {
            let exact = field(header, "exact_match")
                .or_else(|| field(field(header, "string_match")?, "exact"));
            field(header, "name").is_some_and(|name| name == ":path")
                && exact.and_then(Json::as_str) == Some(path)
        })
}

/// Returns the texts of a list, or the one text in place of a list.
pub(super) fn texts(value: &Json) -> Vec<&str> {
    match value {
        Json::Array(items) => items.iter().filter_map(Json::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

/// Returns how closely a domain matches a host, the greater the closer: exactly, by its end, by its beginning, or as
/// `*`. None if it does not match.
fn domain_rank(domain: &str, host: &str) -> Option<(u8, usize)> {
    match domain {
        "*" => Some((0, 0)),
        domain if domain.eq_ignore_ascii_case(host) => Some((3, 0)),
        domain if domain.starts_with('*') => Some((2, wildcard(domain, host)?)),
        domain if domain.ends_with('*') => Some((1, wildcard(domain, host)?)),
        _ => None,
    }
}

/// Conditions of a route that are decided by path and headers.
const DECIDED: [&str; 7] = [
    "prefix",
    "path",
    "safe_regex",
    "path_separated_prefix",
    "connect_matcher",
    "case_sensitive",
    "headers",
];

/// Returns true if a field has one of these names, in either spelling of protobuf's JSON.
fn is_any(field: &str, names: &[&str]) -> bool {
    names.iter().any(|name| field == *name || field == camel(name))
}

/// Returns true if a route takes a request; None if more than the request decides.
fn is_taken(json: &Json, route: &Pointer, request: &Request<'_>) -> Option<bool> {
    let Some(matching) = get(json, &route.child("match")) else {
        return Some(false);
    };
    if !has_path(matching, request)? {
        return Some(false);
    }
    let headers = field(matching, "headers").map_or_else(Vec::new, list);
    let mut outcomes: Vec<Option<bool>> =
        headers.iter().map(|header| has_header(header, request)).collect();
    for (name, value) in matching.as_object().into_iter().flatten() {
        outcomes.push(if is_any(name, &DECIDED) {
            continue;
        } else if is_any(name, &["grpc"]) {
            // No load of weir's is gRPC.
            Some(false)
        } else if is_any(name, &["runtime_fraction"]) {
            share(json, value)
        } else if is_any(name, &["query_parameters"]) && request.query().is_empty() {
            Some(false)
        } else {
            None
        });
    }
    if outcomes.contains(&Some(false)) {
        Some(false)
    } else {
        (!outcomes.contains(&None)).then_some(true)
    }
}

/// Returns the items of a list, or the one value in place of a list.
fn list(value: &Json) -> Vec<&Json> {
    match value {
        Json::Array(items) => items.iter().collect(),
        value => vec![value],
    }
}

/// Returns true for a share of all requests, or a switch that is on, and false for no requests. None for a share of
/// some requests, or if the runtime may set another value.
pub(super) fn share(json: &Json, share: &Json) -> Option<bool> {
    let key = field(share, "runtime_key").and_then(Json::as_str);
    let layers = field(json, "layered_runtime").map_or(String::new(), Json::to_string);
    // A layer writes `a.b` as `a: {b: …}` too, or has it in a file.
    let last = key.and_then(|key| key.rsplit('.').next());
    if last.is_some_and(|last| {
        [last, "disk_layer", "diskLayer"].iter().any(|name| layers.contains(name))
    }) {
        return None;
    }
    let value = field(share, "default_value").or(key.is_none().then_some(share))?;
    if let Some(is_on) = value.as_bool() {
        return Some(is_on);
    }
    let denominator = field(value, "denominator").unwrap_or(&Json::Null);
    let all = if is_constant(denominator, "TEN_THOUSAND", 1) {
        10_000.0
    } else if is_constant(denominator, "MILLION", 2) {
        1_000_000.0
    } else {
        100.0
    };
    let amount = field(value, "numerator")
        .or_else(|| field(value, "value"))
        .map_or(Some(0.0), Json::as_f64)?;
    (amount >= all || amount <= 0.0).then_some(amount >= all)
}

/// Returns true if a request's path matches a route's conditions; None if this cannot be determined.
fn has_path(matching: &Json, request: &Request<'_>) -> Option<bool> {
    let any_case = field(matching, "case_sensitive") == Some(&Json::Bool(false));
    let path = fold_case(request.path, any_case);
    let text = |name: &str| {
        let text = field(matching, name).and_then(Json::as_str);
        text.map(|text| fold_case(text, any_case))
    };
    if let Some(prefix) = text("prefix") {
        return Some(path.starts_with(&prefix));
    }
    if let Some(exact) = text("path") {
        return Some(path == exact);
    }
    if let Some(prefix) = text("path_separated_prefix") {
        let behind = path.strip_prefix(&prefix);
        return Some(behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('/')));
    }
    if field(matching, "connect_matcher").is_some() {
        return Some(request.method == "CONNECT");
    }
    let expression = field(field(matching, "safe_regex")?, "regex").and_then(Json::as_str)?;
    // It has to take the whole path.
    is_found(&format!("^(?:{expression})$"), any_case, &path)
}

/// Returns true if a request has a header that a route demands; None if this cannot be determined.
fn has_header(matching: &Json, request: &Request<'_>) -> Option<bool> {
    // Envoy sets these itself.
    const OWN: [&str; 3] = ["x-envoy-", "x-forwarded-", "x-request-id"];
    let name = field(matching, "name")?.as_str()?.to_ascii_lowercase();
    let value = match name.as_str() {
        ":authority" | "host" => request.authority,
        ":method" => request.method,
        ":path" => request.target,
        ":scheme" if request.is_tls() => "https",
        ":scheme" => "http",
        name if OWN.iter().any(|own| name.starts_with(own)) => return None,
        name => request.field(name)?,
    };
    let old = ["exact", "prefix", "suffix", "contains", "safe_regex"]
        .into_iter()
        .find_map(|how| Some((how, field(matching, &format!("{how}_match"))?)));
    let new = field(matching, "string_match");
    let holds = match (new, old, field(matching, "present_match")) {
        (Some(matching), ..) => is_text(value, matching)?,
        (None, Some((how, pattern)), _) => is_so(value, how, pattern)?,
        (None, None, Some(is_there)) => is_there.as_bool() == Some(!value.is_empty()),
        (None, None, None) if field(matching, "range_match").is_some() => return None,
        (None, None, None) => !value.is_empty(),
    };
    let is_inverted = field(matching, "invert_match") == Some(&Json::Bool(true));
    // Versions differ about what is not there.
    (!is_inverted || !value.is_empty()).then_some(holds != is_inverted)
}

/// Returns true if a text matches a `StringMatcher`; None if this cannot be determined.
fn is_text(value: &str, matching: &Json) -> Option<bool> {
    if field(matching, "ignore_case") == Some(&Json::Bool(true)) {
        return None;
    }
    let (how, pattern) = ["exact", "prefix", "suffix", "contains", "safe_regex"]
        .into_iter()
        .find_map(|how| Some((how, field(matching, how)?)))?;
    is_so(value, how, pattern)
}

fn is_so(value: &str, how: &str, pattern: &Json) -> Option<bool> {
    // Of what is not there nothing is so.
    if how == "safe_regex" {
        let regex = field(pattern, "regex")?.as_str()?;
        return Some(is_found(&format!("^(?:{regex})$"), false, value)? && !value.is_empty());
    }
    let text = pattern.as_str()?;
    Some(
        !value.is_empty()
            && match how {
                "exact" => value == text,
                "prefix" => value.starts_with(text),
                "suffix" => value.ends_with(text),
                _ => value.contains(text),
            },
    )
}

fn route_name(route: &Json) -> String {
    let matching = field(route, "match").unwrap_or(&Json::Null);
    let path = ["prefix", "path", "path_separated_prefix"]
        .iter()
        .find_map(|name| Some((name, field(matching, name)?.as_str()?)));
    match path {
        Some((name, path)) => format!("route with {name} {path}"),
        None => "route".to_owned(),
    }
}

fn answer(route: &Json) -> Answer {
    match field(route, "direct_response") {
        Some(response) => of_status(field(response, "status"), 200),
        None if field(route, "redirect").is_some() => Answer::Redirects,
        None if field(route, "route").is_some() => Answer::Passes,
        None => Answer::Unknown,
    }
}
