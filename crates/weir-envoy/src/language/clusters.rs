//! Clusters of Envoy's bootstrap: the parts that they lose in a copy, and the bootstrap's own listeners behind them.

use serde_json::Value as Json;
use weir_configuration::asked::Request;
use weir_configuration::document::Pointer;
use weir_configuration::document::find::{field, get, items, text};
use weir_model::record::ReplacedPart;

use super::bootstrap::{UPSTREAM_HTTP, behind, kind};
use super::protocol::NEGOTIATED;
use super::replaced::Search;
use super::routes::texts;

/// Rewrites of a route after which the configuration alone does not say which target is requested.
const REWRITES: [&str; 7] = [
    "auto_host_rewrite",
    "host_rewrite",
    "host_rewrite_header",
    "host_rewrite_path_regex",
    "path_rewrite",
    "path_rewrite_policy",
    "regex_rewrite",
];

impl Search<'_, '_, '_> {
    /// Adds the parts that the clusters of an action lose in the copy, and the parts behind these clusters.
    pub(super) fn clusters(&mut self, action: &Pointer, request: &Request<'_>) {
        let json = self.json;
        if get(json, action).is_none() {
            return;
        }
        let header = text(json, action.child("cluster_header")).and_then(|it| request.field(it));
        let shares = weighted(json, action);
        let shares: Option<Vec<&str>> =
            shares.iter().map(|share| text(json, share.child("name"))).collect();
        let names = match (text(json, action.child("cluster")).or(header), shares) {
            (Some(name), _) if !name.is_empty() => vec![name],
            (_, Some(names)) if !names.is_empty() => names,
            // A header that is not decided, a plugin.
            _ => return self.every_cluster(request),
        };
        let clusters: Vec<Pointer> = names.iter().filter_map(|name| named(json, name)).collect();
        let mut endpoints = clusters.iter().flat_map(|cluster| self.endpoints(cluster));
        let has_own = endpoints.any(|(_, listener)| listener.is_some());
        if has_own && REWRITES.iter().any(|name| get(json, &action.child(name)).is_some()) {
            return self.every_cluster(request);
        }
        let path = rewritten(json, action, request.path);
        let host = text(json, action.child("host_rewrite_literal")).unwrap_or(request.authority);
        for cluster in clusters {
            self.cluster(&cluster, &request.passed_on(&path, host));
        }
    }

    /// Adds the parts that any cluster loses, if the configuration alone does not say which one is asked.
    pub(super) fn every_cluster(&mut self, request: &Request<'_>) {
        for cluster in items(self.json, "/static_resources/clusters") {
            self.cluster(&cluster, request);
        }
    }

    /// Returns the addresses of a cluster's endpoints, each with the index of the bootstrap's listener that it leads
    /// to, if there is one.
    pub(super) fn endpoints(&self, cluster: &Pointer) -> Vec<(Pointer, Option<usize>)> {
        items(self.json, cluster.join("/load_assignment/endpoints"))
            .into_iter()
            .flat_map(|locality| items(self.json, locality.child("lb_endpoints")))
            .map(|endpoint| endpoint.join("/endpoint/address"))
            .map(|address| (address.clone(), behind(self.document, &address)))
            .collect()
    }

    /// Adds the parts that a cluster loses in the copy, and the parts behind the cluster.
    pub(super) fn cluster(&mut self, cluster: &Pointer, request: &Request<'_>) {
        if !self.meets(cluster, request) {
            return;
        }
        let members = get(self.json, &cluster.join("/cluster_type/typed_config/clusters"));
        for name in members.map_or_else(Vec::new, texts) {
            if let Some(member) = named(self.json, name) {
                self.cluster(&member, request);
            }
        }
        self.left_out(&cluster.child("upstream_bind_config"));
        for filter in items(self.json, protocol_options(cluster).child("http_filters")) {
            self.filter(&filter.child("typed_config"), &[], request);
        }
        let mut servers = Vec::new();
        for (address, listener) in self.endpoints(cluster) {
            let Some(candidate) = listener else {
                servers.push(address);
                continue;
            };
            let mut inner = *request;
            let mut wrappers =
                layers(self.json, socket_of(self.json, cluster, &address)).into_iter();
            if let Some((_, socket)) = wrappers.find(|(part, _)| *part == ReplacedPart::OriginTls) {
                let name = text(self.json, socket.join("/typed_config/sni"));
                inner.server_name = Some(name.unwrap_or(inner.host));
            }
            (inner.is_named, inner.is_certified) = (true, true);
            self.listener(candidate, &inner);
        }
        if !servers.is_empty() {
            self.servers(cluster, &servers);
        }
    }

    /// Adds the parts that a cluster loses with servers that are no listeners of the bootstrap.
    fn servers(&mut self, cluster: &Pointer, addresses: &[Pointer]) {
        let json = self.json;
        for socket in addresses.iter().map(|address| socket_of(json, cluster, address)) {
            for (part, _) in layers(json, socket.clone()) {
                self.add_whole(part, &socket);
            }
        }
        for at in NEGOTIATED.map(|name| protocol_options(cluster).join(name)) {
            self.add_whole(ReplacedPart::OriginTls, &at);
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

/// Returns the place of the options by which a cluster speaks HTTP.
fn protocol_options(cluster: &Pointer) -> Pointer {
    cluster.child("typed_extension_protocol_options").child(UPSTREAM_HTTP)
}

/// Returns the cluster with a name.
pub(super) fn named(json: &Json, name: &str) -> Option<Pointer> {
    let mut clusters = items(json, "/static_resources/clusters").into_iter();
    clusters.find(|cluster| text(json, cluster.child("name")) == Some(name))
}

/// Returns the clusters among which an action distributes requests, except those with weight 0.
pub(super) fn weighted(json: &Json, action: &Pointer) -> Vec<Pointer> {
    let mut clusters = items(json, action.join("/weighted_clusters/clusters"));
    clusters.retain(|it| get(json, &it.child("weight")).and_then(Json::as_u64) != Some(0));
    clusters
}

/// Returns the path that a route requests: `prefix_rewrite` replaces the part that the route has matched.
fn rewritten(json: &Json, action: &Pointer, path: &str) -> String {
    let route = action.first(action.tokens().len() - 1);
    let matching = get(json, &route.child("match")).unwrap_or(&Json::Null);
    let mut kinds = ["prefix", "path_separated_prefix", "path"].iter();
    let matched = kinds.find_map(|kind| field(matching, kind)?.as_str());
    match (text(json, action.child("prefix_rewrite")), matched.and_then(|it| path.strip_prefix(it)))
    {
        (Some(new), Some(rest)) if !new.is_empty() => format!("{new}{rest}"),
        _ => path.to_owned(),
    }
}

/// Returns the transport socket of an endpoint: the first one that matches its metadata, or the cluster's.
fn socket_of(json: &Json, cluster: &Pointer, address: &Pointer) -> Pointer {
    // `N/lb_endpoints/N/endpoint/address`
    let labels = [2, 4].map(|steps| {
        let labelled = address.first(address.tokens().len() - steps);
        labelled.join("/metadata/filter_metadata/envoy.transport_socket_match")
    });
    items(json, cluster.child("transport_socket_matches"))
        .iter()
        .find(|candidate| {
            let wanted = get(json, &candidate.child("match")).and_then(Json::as_object);
            wanted.into_iter().flatten().all(|(name, value)| {
                labels.iter().find_map(|at| get(json, &at.child(name))) == Some(value)
            })
        })
        .unwrap_or(cluster)
        .child("transport_socket")
}

/// Returns the parts that a transport socket adds, with those of the sockets nested in it.
fn layers(json: &Json, socket: Pointer) -> Vec<(ReplacedPart, Pointer)> {
    if get(json, &socket).is_none() {
        return Vec::new();
    }
    let config = socket.child("typed_config");
    let (kind, name) = (kind(json, &config), text(json, socket.child("name")));
    let inner = config.child("transport_socket");
    let mut added = layers(json, inner.clone());
    if kind == "ProxyProtocolUpstreamTransport" {
        added.push((ReplacedPart::ProxyProtocol, socket));
    } else if get(json, &inner).is_none()
        && kind != "RawBuffer"
        && !(kind.is_empty() && name == Some("envoy.transport_sockets.raw_buffer"))
    {
        added.push((ReplacedPart::OriginTls, socket));
    }
    added
}
