//! Finds what a copy of Envoy's bootstrap replaces, of what the requests of a load meet ([`super::adapt_envoy`]).

use serde_json::Value as Json;

use weir_model::record::ReplacedPart;

use super::asked::Document;
use super::envoy::CHAIN_TLS;
use super::find::{field, get, items};
use super::pointer::Pointer;
use super::tree::camel;
use super::walk::Visit;
use crate::Asked;
use crate::asked::Request;
use crate::replaced::Replacements;

/// Types of filters, and what of them a run has otherwise.
const FILTERS: [(&str, ReplacedPart); 11] = [
    ("AdaptiveConcurrency", ReplacedPart::Limit),
    ("AdmissionControl", ReplacedPart::Limit),
    ("BandwidthLimit", ReplacedPart::Limit),
    ("CacheConfig", ReplacedPart::Content),
    ("Compressor", ReplacedPart::Content),
    ("ConnectionLimit", ReplacedPart::Limit),
    ("Decompressor", ReplacedPart::Content),
    ("ExtAuthz", ReplacedPart::Service),
    ("LocalRateLimit", ReplacedPart::Limit),
    ("RateLimit", ReplacedPart::Service),
    ("ProxyProtocol", ReplacedPart::ProxyProtocol),
];

/// Matchers and descriptors that are about the client's address.
const ADDRESSES: [&str; 6] = [
    "direct_remote_ip",
    "masked_remote_address",
    "remote_address",
    "remote_ip",
    "source_ip",
    "source_prefix_ranges",
];

/// Parts that are looked at by themselves: for the request alone, and if they are not switched off.
const BY_THEMSELVES: [&str; 4] = ["http_filters", "route_config", "routes", "virtual_hosts"];

/// Keys of what is sent to others beside the request.
const SENT_ELSEWHERE: [&str; 3] = ["remote_jwks", "request_mirror_policies", "tracing"];

/// Adds what a copy has otherwise of what a request meets.
pub(super) fn add(
    document: &Document<'_>,
    (request, asked): (&Request<'_>, &Asked),
    found: &mut Replacements<'_>,
) {
    let route = asked.location.as_ref();
    let route = route.map(|route| Pointer::parse(&route.pointer));
    let Some(host) = &asked.server else {
        // A proxy of TCP has no hosts: `filter_chains/N/filters/M/typed_config`.
        if let Some(config) = route.filter(|route| route.tokens().len() > 3) {
            let filters = config.first(config.tokens().len() - 2);
            in_connections(document, &filters, request, found);
            clusters(document, &config, found);
        }
        return;
    };
    let host = Pointer::parse(&host.pointer);
    let tokens = host.tokens().iter();
    let manager = tokens
        .clone()
        .position(|token| matches!(token.as_str(), "route_config" | "routeConfig"));
    let Some(steps) = manager else { return };
    in_connections(document, &host.first(steps - 2), request, found);
    let all_hosts = host.first(steps + 1);
    let levels: Vec<&Pointer> = route.iter().chain([&host, &all_hosts]).collect();
    for filter in items(document.json, host.first(steps).child("http_filters")) {
        if is_on(document.json, &filter, &levels) {
            filter_of(document, &filter.child("typed_config"), request, found);
        }
    }
    for level in &levels {
        by_address(document, level, "route", found);
        sent_elsewhere(document, level, found);
        let overrides = get(document.json, &level.child("typed_per_filter_config"));
        for (name, _) in overrides.and_then(Json::as_object).into_iter().flatten() {
            let at = level.child("typed_per_filter_config").child(name);
            filter_of(document, &at, request, found);
        }
    }
    if let Some(route) = &route {
        clusters(document, &route.child("route"), found);
    }
}

/// Adds what is replaced of a connection, by the list of the filters of its chain.
fn in_connections(
    document: &Document<'_>,
    filters: &Pointer,
    request: &Request<'_>,
    found: &mut Replacements<'_>,
) {
    // `/static_resources/listeners/N`
    let of_listener = items(document.json, filters.first(3).child("listener_filters"));
    for filter in of_listener.into_iter().chain(items(document.json, filters)) {
        filter_of(document, &filter.child("typed_config"), request, found);
    }
    let chain = filters.first(filters.tokens().len() - 1);
    let matching = chain.child("filter_chain_match");
    by_address(document, &matching, "filter_chain_match", found);
    let protocol = chain.child("use_proxy_proto");
    if get(document.json, &protocol) == Some(&Json::Bool(true)) {
        let spot = document.spot(&protocol, "use_proxy_proto");
        found.add(ReplacedPart::ProxyProtocol, &spot);
    }
}

/// Returns true for a filter that is not switched off, by itself or for a route.
fn is_on(json: &Json, filter: &Pointer, levels: &[&Pointer]) -> bool {
    let name = get(json, &filter.child("name")).and_then(Json::as_str);
    let mut overrides = levels
        .iter()
        .filter_map(|level| get(json, &level.child("typed_per_filter_config").child(name?)));
    let said = overrides.next().or_else(|| get(json, filter));
    said.and_then(|said| field(said, "disabled")) != Some(&Json::Bool(true))
}

/// Finds the certificates that clients are shown: those of the filter chain in which the virtual host is.
pub(super) fn certificates(document: &Document<'_>, asked: &Asked) -> Vec<Pointer> {
    let host = asked
        .server
        .as_ref()
        .map(|host| Pointer::parse(&host.pointer));
    let Some(host) = host else { return Vec::new() };
    let tokens = host.tokens();
    let chain = tokens.iter().position(|token| {
        matches!(token.as_str(), "filter_chains" | "filterChains")
            || matches!(
                token.as_str(),
                "default_filter_chain" | "defaultFilterChain"
            )
    });
    let Some(at) = chain else { return Vec::new() };
    let steps = if tokens[at].starts_with("default") {
        at + 1
    } else {
        at + 2
    };
    let context = host
        .first(steps)
        .join(CHAIN_TLS)
        .child("common_tls_context");
    let all = items(document.json, context.child("tls_certificates")).into_iter();
    all.map(|one| one.child("certificate_chain")).collect()
}

/// Adds what the copy replaces of a filter.
fn filter_of(
    document: &Document<'_>,
    at: &Pointer,
    request: &Request<'_>,
    found: &mut Replacements<'_>,
) {
    let Some(config) = get(document.json, at) else {
        return;
    };
    let message = config
        .get("@type")
        .and_then(Json::as_str)
        .unwrap_or_default();
    let kind = message.rsplit('.').next().unwrap_or_default();
    let is_idle = match kind {
        "Compressor" => request.is_plain(),
        // It limits where a route says how much.
        "LocalRateLimit" => field(config, "token_bucket").is_none(),
        _ => field(config, "disabled") == Some(&Json::Bool(true)),
    };
    let known = FILTERS.iter().find(|(name, _)| *name == kind);
    if let Some((name, part)) = known.filter(|_| !is_idle) {
        found.add(*part, &document.spot(at, *name));
    }
    by_address(document, at, kind, found);
    sent_elsewhere(document, at, found);
}

/// Adds the first matcher by the client's address in a part.
fn by_address(document: &Document<'_>, at: &Pointer, name: &str, found: &mut Replacements<'_>) {
    if let Some(at) = named(document.json, at, &ADDRESSES) {
        let spot = document.spot(&at, format!("{name} by address"));
        found.add(ReplacedPart::ClientAddress, &spot);
    }
}

/// Adds the first thing in a part that is sent to others.
fn sent_elsewhere(document: &Document<'_>, at: &Pointer, found: &mut Replacements<'_>) {
    if let Some(at) = named(document.json, at, &SENT_ELSEWHERE) {
        let name = at.tokens().last().cloned().unwrap_or_default();
        found.add(ReplacedPart::Service, &document.spot(&at, name));
    }
}

/// The first value of a part with one of these keys.
fn named(json: &Json, at: &Pointer, keys: &[&str]) -> Option<Pointer> {
    let mut first = None;
    Visit::all(get(json, at)?, &mut |inner, _| {
        let tokens = inner.tokens();
        let is_one_of = |key: &String, names: &[&str]| {
            names.iter().any(|name| key == name || *key == camel(name))
        };
        let is_named = tokens.last().is_some_and(|key| is_one_of(key, keys));
        let is_by_itself = tokens.iter().any(|key| is_one_of(key, &BY_THEMSELVES));
        if first.is_none() && is_named && !is_by_itself {
            first = Some(at.join(inner));
        }
    });
    first
}

/// Adds what the clusters of an action lose in the copy.
fn clusters(document: &Document<'_>, action: &Pointer, found: &mut Replacements<'_>) {
    for name in clusters_of(document.json, action) {
        if let Some(cluster) = cluster(document.json, &name) {
            servers(document, &cluster, found);
        }
    }
}

/// The names of the clusters that a route leads to.
fn clusters_of(json: &Json, action: &Pointer) -> Vec<String> {
    let text = |at: &Pointer| get(json, at).and_then(Json::as_str).map(str::to_owned);
    let weighted = items(json, action.join("/weighted_clusters/clusters"));
    let names = weighted.iter().map(|cluster| cluster.child("name"));
    std::iter::once(action.child("cluster"))
        .chain(names)
        .filter_map(|name| text(&name))
        .collect()
}

fn cluster(json: &Json, name: &str) -> Option<Pointer> {
    let mut all = items(json, "/static_resources/clusters").into_iter();
    all.find(|at| get(json, &at.child("name")).and_then(Json::as_str) == Some(name))
}

/// Adds what a cluster loses in the copy.
fn servers(document: &Document<'_>, cluster: &Pointer, found: &mut Replacements<'_>) {
    let json = document.json;
    let localities = items(json, cluster.join("/load_assignment/endpoints")).into_iter();
    let endpoints = localities.flat_map(|locality| items(json, locality.child("lb_endpoints")));
    let endpoints: Vec<Pointer> = endpoints
        .map(|endpoint| endpoint.join("/endpoint/address"))
        .filter(|address| super::envoy::behind(document, address).is_none())
        .collect();
    if endpoints.is_empty() {
        return;
    }
    for name in ["transport_socket", "transport_socket_matches"] {
        let at = cluster.child(name);
        if let Some(value) = get(json, &at).filter(|value| !is_in_clear(value)) {
            let text = value.to_string();
            let spot = document.spot(&at, format!("{name} {text}"));
            let part = match text.contains("ProxyProtocolUpstreamTransport") {
                true => ReplacedPart::ProxyProtocol,
                false => ReplacedPart::OriginTls,
            };
            found.add(part, &spot);
        }
    }
    if endpoints.len() > 1 {
        let name = format!("{} endpoints", endpoints.len());
        found.add(ReplacedPart::Servers, &document.spot(cluster, name));
    }
    let mut pipes = endpoints.iter().map(|address| address.child("pipe"));
    if let Some(pipe) = pipes.find(|pipe| get(json, pipe).is_some()) {
        found.add(ReplacedPart::Servers, &document.spot(&pipe, "pipe"));
    }
}

/// Returns true for a transport socket that adds nothing.
fn is_in_clear(socket: &Json) -> bool {
    field(socket, "name").and_then(Json::as_str) == Some("envoy.transport_sockets.raw_buffer")
}
