//! What clusters of Envoy's bootstrap lose in a copy, and what a request meets behind those of its own listeners.

use serde_json::Value as Json;

use weir_model::record::ReplacedPart;

use super::envoy::{UPSTREAM_HTTP, behind};
use super::envoy_filters::type_of;
use super::envoy_protocol::NEGOTIATED;
use super::envoy_replaced::Search;
use super::envoy_routes::texts;
use super::find::{field, get, items};
use super::pointer::Pointer;
use crate::asked::Request;

/// Rewrites of a route after which the configuration alone does not say what is asked for.
const REWRITES: [&str; 7] = [
    "auto_host_rewrite",
    "host_rewrite",
    "host_rewrite_header",
    "host_rewrite_path_regex",
    "path_rewrite",
    "path_rewrite_policy",
    "regex_rewrite",
];

/// Fields of a cluster that have its transport sockets.
const SOCKETS: [&str; 2] = ["transport_socket", "transport_socket_matches"];

impl Search<'_, '_, '_> {
    /// Adds what the clusters of an action lose in the copy, and what is behind them.
    pub(super) fn clusters(&mut self, action: &Pointer, request: &Request<'_>) {
        let Some(value) = get(self.json, action) else {
            return;
        };
        let text = |name: &str| field(value, name).and_then(Json::as_str);
        let header = text("cluster_header").and_then(|name| request.field(name));
        let weighted = weighted(self.json, action);
        let weighted = weighted
            .iter()
            .map(|one| get(self.json, &one.child("name"))?.as_str());
        let weighted: Option<Vec<&str>> = weighted.collect();
        let names = match (text("cluster").or(header), weighted) {
            (Some(name), _) if !name.is_empty() => vec![name],
            (_, Some(names)) if !names.is_empty() => names,
            // A header that is not decided, a plugin.
            _ => return self.every_cluster(request),
        };
        let all = names.into_iter().filter_map(|name| named(self.json, name));
        let all: Vec<Pointer> = all.collect();
        let mut endpoints = all.iter().flat_map(|cluster| self.endpoints(cluster));
        let is_own = endpoints.any(|(_, own)| own.is_some());
        if is_own && REWRITES.iter().any(|name| field(value, name).is_some()) {
            return self.every_cluster(request);
        }
        let path = rewritten(self.json, action, request.path);
        let host = text("host_rewrite_literal").unwrap_or(request.authority);
        for cluster in all {
            self.cluster(&cluster, &request.passed_on(&path, host));
        }
    }

    /// Adds what any cluster loses, where the configuration alone does not say which is asked.
    pub(super) fn every_cluster(&mut self, request: &Request<'_>) {
        for cluster in items(self.json, "/static_resources/clusters") {
            self.cluster(&cluster, request);
        }
    }

    /// The addresses of a cluster's endpoints, each with the listener of the configuration that it leads to.
    pub(super) fn endpoints(&self, cluster: &Pointer) -> Vec<(Pointer, Option<usize>)> {
        let localities = items(self.json, cluster.join("/load_assignment/endpoints")).into_iter();
        let all = localities.flat_map(|locality| items(self.json, locality.child("lb_endpoints")));
        let all = all.map(|endpoint| endpoint.join("/endpoint/address"));
        all.map(|at| (at.clone(), behind(self.document, &at)))
            .collect()
    }

    /// Adds what a cluster loses in the copy, and what is met behind it.
    pub(super) fn cluster(&mut self, cluster: &Pointer, request: &Request<'_>) {
        if !self.meets(cluster, request) {
            return;
        }
        let members = cluster.join("/cluster_type/typed_config/clusters");
        for name in get(self.json, &members).map_or_else(Vec::new, texts) {
            if let Some(member) = named(self.json, name) {
                self.cluster(&member, request);
            }
        }
        self.left_out(&cluster.child("upstream_bind_config"));
        let options = cluster.child("typed_extension_protocol_options");
        let options = options.child(UPSTREAM_HTTP);
        for filter in items(self.json, options.child("http_filters")) {
            self.filter(&filter.child("typed_config"), &[], request);
        }
        let endpoints = self.endpoints(cluster);
        let (own, others): (Vec<_>, Vec<_>) = endpoints.into_iter().partition(|it| it.1.is_some());
        if !others.is_empty() {
            let others: Vec<Pointer> = others.into_iter().map(|(at, _)| at).collect();
            self.others(cluster, &others);
        }
        let mut inner = *request;
        let mut layers = SOCKETS
            .iter()
            .flat_map(|name| transports(self.json, cluster.child(name)));
        if let Some((_, socket)) = layers.find(|(part, _)| *part == ReplacedPart::OriginTls) {
            let name = get(self.json, &socket.join("/typed_config/sni")).and_then(Json::as_str);
            inner.server_name = Some(name.unwrap_or(inner.host));
        }
        (inner.is_named, inner.is_certified) = (true, true);
        for door in own.into_iter().filter_map(|(_, own)| own) {
            self.listener(door, &inner);
        }
    }

    /// Adds what a cluster loses with servers that are not of the configuration.
    fn others(&mut self, cluster: &Pointer, addresses: &[Pointer]) {
        let json = self.json;
        for name in SOCKETS {
            let at = cluster.child(name);
            let value = get(json, &at).unwrap_or(&Json::Null);
            for (part, _) in transports(json, at.clone()) {
                self.add(part, &at, format!("{name} {value}"));
            }
        }
        let options = cluster.child("typed_extension_protocol_options");
        let options = options.child(UPSTREAM_HTTP);
        for name in NEGOTIATED {
            let at = options.join(name);
            if let Some(value) = get(json, &at) {
                let name = at.tokens().last().cloned().unwrap_or_default();
                self.add(ReplacedPart::OriginTls, &at, format!("{name} {value}"));
            }
        }
        if addresses.len() > 1 {
            let name = format!("{} endpoints", addresses.len());
            self.add(ReplacedPart::Servers, cluster, name);
        }
        let mut pipes = addresses.iter().map(|address| address.child("pipe"));
        if let Some(pipe) = pipes.find(|pipe| get(json, pipe).is_some()) {
            self.add(ReplacedPart::Servers, &pipe, "pipe");
        }
    }
}

/// The cluster of a name.
pub(super) fn named(json: &Json, name: &str) -> Option<Pointer> {
    let mut all = items(json, "/static_resources/clusters").into_iter();
    all.find(|at| get(json, &at.child("name")).and_then(Json::as_str) == Some(name))
}

/// The clusters among which an action shares requests out, but those that get none.
pub(super) fn weighted(json: &Json, action: &Pointer) -> Vec<Pointer> {
    let mut all = items(json, action.join("/weighted_clusters/clusters"));
    all.retain(|at| get(json, &at.child("weight")).and_then(Json::as_u64) != Some(0));
    all
}

/// The path that a route asks for: `prefix_rewrite` stands in place of what it has matched.
fn rewritten(json: &Json, action: &Pointer, path: &str) -> String {
    let matching = action.first(action.tokens().len() - 1).child("match");
    let text = |at: Pointer| get(json, &at).and_then(Json::as_str);
    let matched =
        ["prefix", "path_separated_prefix", "path"].map(|name| text(matching.child(name)));
    let matched = matched.into_iter().flatten().next();
    let rest = matched.and_then(|matched| path.strip_prefix(matched));
    match (text(action.child("prefix_rewrite")), rest) {
        (Some(new), Some(rest)) if !new.is_empty() => format!("{new}{rest}"),
        _ => path.to_owned(),
    }
}

/// What the transport sockets at a place add, with the sockets within them.
fn transports(json: &Json, at: Pointer) -> Vec<(ReplacedPart, Pointer)> {
    let mut added = Vec::new();
    for socket in items(json, at) {
        let config = socket.child("typed_config");
        let kind = get(json, &config).map_or("", |config| type_of(config).0);
        if kind == "ProxyProtocolUpstreamTransport" {
            added.push((ReplacedPart::ProxyProtocol, socket.clone()));
        }
        // Of a match, or of a socket around another.
        let inner = [&socket, &config].map(|outer| outer.child("transport_socket"));
        let inner: Vec<Pointer> = inner
            .into_iter()
            .filter(|it| get(json, it).is_some())
            .collect();
        let name = get(json, &socket.child("name")).and_then(Json::as_str);
        let is_raw = kind.is_empty() && name == Some("envoy.transport_sockets.raw_buffer");
        if inner.is_empty() && kind != "RawBuffer" && !is_raw {
            added.push((ReplacedPart::OriginTls, socket));
        }
        added.extend(inner.into_iter().flat_map(|inner| transports(json, inner)));
    }
    added
}
