//! Finds what a copy of Envoy's bootstrap replaces, of what the requests of a load meet ([`super::adapt_envoy`]).

use serde_json::Value as Json;

use weir_model::record::ReplacedPart;

use super::asked::Document;
use super::envoy::CHAIN_TLS;
use super::find::{field, get, items};
use super::pointer::Pointer;
use super::walk::Visit;
use crate::Asked;
use crate::asked::Request;
use crate::replaced::Replacements;

/// Types of filters, and what of them a run has otherwise.
const FILTERS: [(&str, ReplacedPart); 9] = [
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

/// Matchers that ask for the client's address.
const ADDRESSES: [&str; 4] = [
    "direct_remote_ip",
    "remote_ip",
    "source_ip",
    "source_prefix_ranges",
];

/// Adds what a copy has otherwise of what a request meets.
pub(super) fn add(
    document: &Document<'_>,
    (request, asked): (&Request<'_>, &Asked),
    found: &mut Replacements<'_>,
) {
    let Some(host) = &asked.server else { return };
    let host = Pointer::parse(&host.pointer);
    let tokens = host.tokens().iter();
    let manager = tokens
        .clone()
        .position(|token| matches!(token.as_str(), "route_config" | "routeConfig"));
    let Some(steps) = manager else { return };
    // `/static_resources/listeners/N`
    let listener = host.first(3);
    let filters = items(document.json, listener.child("listener_filters"))
        .into_iter()
        .chain(items(document.json, host.first(steps - 2)))
        .chain(items(
            document.json,
            host.first(steps).child("http_filters"),
        ));
    for filter in filters {
        filter_of(document, &filter.child("typed_config"), request, found);
    }
    let route = asked.location.as_ref();
    let route = route.map(|route| Pointer::parse(&route.pointer));
    for level in route.iter().chain([&host]) {
        let overrides = get(document.json, &level.child("typed_per_filter_config"));
        for (name, _) in overrides.and_then(Json::as_object).into_iter().flatten() {
            let at = level.child("typed_per_filter_config").child(name);
            filter_of(document, &at, request, found);
        }
    }
    if let Some(route) = route {
        for name in clusters_of(document.json, &route.child("route")) {
            if let Some(cluster) = cluster(document.json, &name) {
                servers(document, &cluster, found);
            }
        }
    }
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
    let known = FILTERS.iter().find(|(name, _)| *name == kind);
    if let Some((name, part)) = known
        && !(*name == "Compressor" && request.is_plain())
    {
        found.add(*part, &document.spot(at, *name));
    }
    let mut by_address = None;
    Visit::all(config, &mut |inner, _| {
        let key = inner.tokens().last().map_or("", String::as_str);
        if ADDRESSES.contains(&key) && by_address.is_none() {
            by_address = Some(at.join(inner));
        }
    });
    if let Some(at) = by_address {
        let spot = document.spot(&at, format!("{kind} by address"));
        found.add(ReplacedPart::ClientAddress, &spot);
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
