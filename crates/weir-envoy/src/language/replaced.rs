//! Finds the parts on the way of a load's requests that a copy of Envoy's bootstrap replaces ([`super::adapt`]).

use std::collections::BTreeSet;

use serde_json::Value as Json;
use weir_configuration::RequestOutcome;
use weir_configuration::answer::Answer;
use weir_configuration::asked::Request;
use weir_configuration::document::asked::Document;
use weir_configuration::document::find::{get, is_true, items, text};
use weir_configuration::document::visit_all;
use weir_configuration::document::{Pointer, camel};
use weir_configuration::replaced::Replacements;
use weir_model::record::ReplacedPart;

use super::bootstrap::{CHAIN_TLS, chains, kind};
use super::clusters::{named, weighted};
use super::filters::{fetched_keys, in_force, replaced};
use super::routes::{MATCHER, chains_taken, filter, may_take, share, through};

/// Maximum number of listeners behind each other that a request is followed through.
const MOST_LAYERS: usize = 10;

/// Matchers and descriptors that use the client's address, by key or type.
const ADDRESSES: [&str; 8] = [
    "DirectSourceIPInput",
    "SourceIPInput",
    "direct_remote_ip",
    "masked_remote_address",
    "remote_address",
    "remote_ip",
    "source_ip",
    "source_prefix_ranges",
];

/// Parts that are searched separately: only for the given request, and only if they are not switched off.
const BY_THEMSELVES: [&str; 5] =
    ["http_filters", "route_config", "routes", "typed_per_filter_config", "virtual_hosts"];

/// Settings by which the whole process sends data to others, or that set its source address; a copy does without them.
const OUTPUTS: [&str; 4] = [
    "/cluster_manager/load_stats_config",
    "/cluster_manager/upstream_bind_config",
    "/hds_config",
    "/stats_sinks",
];

/// Adds the parts on the way of a request that are different in a copy.
pub(super) fn add(
    document: &Document<'_>,
    (request, asked): (&Request<'_>, &RequestOutcome),
    found: &mut Replacements<'_>,
) {
    let mut search =
        Search { document, json: document.json, met: BTreeSet::new(), layers: 0, found };
    for at in OUTPUTS.map(Pointer::parse) {
        search.left_out(&at);
    }
    search.before(asked.index);
    search.listener(asked.index, request);
}

/// Search for the parts that a copy replaces on the ways of one request.
pub(super) struct Search<'d, 'f, 's> {
    pub(super) document: &'d Document<'d>,
    pub(super) json: &'d Json,
    /// Places that a request has come to, each with its target there; they end a circle.
    met: BTreeSet<(Pointer, String)>,
    /// Number of listeners that the request has gone through so far.
    layers: usize,
    found: &'f mut Replacements<'s>,
}

impl Search<'_, '_, '_> {
    pub(super) fn add(&mut self, part: ReplacedPart, at: &Pointer, name: impl Into<String>) {
        self.found.add(part, &self.document.spot(at, name));
    }

    /// Records that a request comes to a place; returns true if that is new.
    pub(super) fn meets(&mut self, at: &Pointer, request: &Request<'_>) -> bool {
        let target = format!("{}{}", request.authority, request.path);
        self.met.insert((at.clone(), target))
    }

    /// Adds a value with all of its text, if it is there.
    pub(super) fn add_whole(&mut self, part: ReplacedPart, at: &Pointer) {
        if let (Some(value), Some(name)) = (get(self.json, at), at.tokens().last()) {
            self.add(part, at, format!("{name} {value}"));
        }
    }

    /// Adds a value that is not there in the copy, unless it is empty.
    pub(super) fn left_out(&mut self, at: &Pointer) {
        let value = get(self.json, at).unwrap_or(&Json::Null).to_string();
        if !matches!(&*value, "null" | "[]" | "{}") {
            self.add_whole(ReplacedPart::LeftOut, at);
        }
    }

    /// Adds TCP proxies that pass connections on to a listener; loads ask the listener in their place.
    fn before(&mut self, candidate: usize) {
        for listener in &self.document.found {
            for chain in chains(self.json, &listener.at) {
                let proxy = filter(self.json, &chain, "TcpProxy").unwrap_or_default();
                let name = text(self.json, proxy.child("cluster")).unwrap_or_default();
                let cluster = named(self.json, name).unwrap_or_default();
                let mut endpoints = self.endpoints(&cluster).into_iter();
                if endpoints.any(|(_, listener)| listener == Some(candidate)) {
                    self.add_whole(ReplacedPart::Before, &chain.child("filters"));
                }
            }
        }
    }

    /// Adds the replaced parts for a request that comes in at a listener.
    pub(super) fn listener(&mut self, candidate: usize, request: &Request<'_>) {
        let is_first = self.layers == 0;
        let listener = self.document.found[candidate].at.clone();
        if self.layers == MOST_LAYERS || !self.meets(&listener, request) {
            return;
        }
        self.layers += 1;
        for filter in items(self.json, listener.child("listener_filters")) {
            let config = filter.child("typed_config");
            // What sends it within the configuration does so in the copy.
            if is_first || kind(self.json, &config) != "ProxyProtocol" {
                self.filter(&config, &[], request);
            }
        }
        self.by_address(&listener.child(MATCHER), MATCHER);
        self.logs(&listener);
        for chain in chains_taken(self.document, candidate, request) {
            let protocol = chain.child("use_proxy_proto");
            if is_first && is_true(self.json, &protocol) {
                self.add(ReplacedPart::ProxyProtocol, &protocol, "use_proxy_proto");
            }
            self.by_address(&chain.child("filter_chain_match"), "filter_chain_match");
            for filter in items(self.json, chain.child("filters")) {
                self.filter(&filter.child("typed_config"), &[], request);
            }
            self.chain(&chain, request);
        }
        self.layers -= 1;
    }

    /// Adds the replaced parts for a request in a filter chain.
    fn chain(&mut self, chain: &Pointer, request: &Request<'_>) {
        let chain_route = through(self.document, chain, request);
        let [host, place] = [&chain_route.server, &chain_route.location]
            .map(|spot| spot.as_ref().map(|spot| Pointer::parse(&spot.pointer)));
        let mut passed = *request;
        if get(self.json, &chain.join(CHAIN_TLS)).is_some() {
            passed.server_name = None;
        }
        let Some(host) = host else {
            // A proxy of TCP has no hosts.
            if let Some(proxy) = place {
                self.clusters(&proxy, &passed);
            }
            return;
        };
        // `route_config/virtual_hosts/N`
        let manager = host.first(host.tokens().len() - 3);
        let routes = match place {
            Some(_) => may_take(self.json, items(self.json, host.child("routes")), request),
            None => Vec::new(),
        };
        let outer = [host.clone(), manager.child("route_config")];
        for route in &routes {
            let levels: Vec<Pointer> = std::iter::once(route).chain(&outer).cloned().collect();
            self.route(&manager, &levels, request);
            self.clusters(&route.child("route"), &passed);
        }
        if routes.is_empty() {
            self.route(&manager, &outer, request);
        }
        if routes.is_empty() && chain_route.answer == Answer::Unknown {
            self.every_cluster(&passed);
        }
    }

    /// Adds the replaced parts in a connection manager's treatment of a request; `levels` are the route, if there is
    /// one, and the levels around it.
    fn route(&mut self, manager: &Pointer, levels: &[Pointer], request: &Request<'_>) {
        self.tracing(manager, &levels[0], request);
        for level in levels {
            self.by_address(level, "route");
        }
        let json = self.json;
        let mut chains: Vec<_> = weighted(json, &levels[0].child("route"))
            .into_iter()
            .map(|cluster| [&[cluster], levels].concat())
            .collect();
        if chains.is_empty() {
            chains.push(levels.to_vec());
        }
        for levels in &chains {
            for filter in items(json, manager.child("http_filters")) {
                let configs = in_force(json, &filter, levels);
                for config in &configs {
                    self.filter(config, levels, request);
                }
                for keys in fetched_keys(json, &configs, request) {
                    self.add(ReplacedPart::Service, &keys, "remote_jwks");
                }
            }
        }
        let mut lists = levels
            .iter()
            .flat_map(|it| [it.child("route"), it.clone()])
            .map(|it| items(json, it.child("request_mirror_policies")));
        // The innermost count.
        for mirror in lists.find(|all| !all.is_empty()).unwrap_or_default() {
            let fraction = get(json, &mirror.child("runtime_fraction"));
            if fraction.and_then(|it| share(json, it)) != Some(false) {
                let list = mirror.first(mirror.tokens().len() - 1);
                self.service(&list, &mirror, "request_mirror_policies", request);
            }
        }
    }

    /// Adds the tracing of a request, unless it is off for the request.
    fn tracing(&mut self, manager: &Pointer, route: &Pointer, request: &Request<'_>) {
        let json = self.json;
        let at = manager.child("tracing");
        let tracers = [at.child("provider"), Pointer::parse("/tracing/http")];
        let is_none = |name: &str| {
            let sampling = [route.child("tracing"), at.clone()]
                .map(|place| place.child(name))
                .iter()
                .find_map(|sampling| get(json, sampling));
            sampling.and_then(|sampling| share(json, sampling)) == Some(false)
        };
        let mut forces = ["traceparent", "x-client-trace-id", "x-envoy-force-trace"].iter();
        let is_off = is_none("overall_sampling")
            || (is_none("random_sampling") && forces.all(|it| request.field(it) == Some("")));
        if get(json, &at).is_some() && tracers.iter().any(|it| get(json, it).is_some()) && !is_off {
            self.add(ReplacedPart::Service, &at, "tracing");
        }
    }

    /// Adds the replaced parts of a filter, or of a level's settings for it.
    pub(super) fn filter(&mut self, at: &Pointer, levels: &[Pointer], request: &Request<'_>) {
        match replaced(self.json, at, levels, request) {
            Some((name, ReplacedPart::Service)) => self.service(at, at, name, request),
            Some((name, part)) => self.add(part, at, name),
            None => {}
        }
        self.by_address(at, kind(self.json, at));
        self.logs(at);
    }

    /// Adds logs that are sent to a collector.
    fn logs(&mut self, at: &Pointer) {
        let lists = ["access_log", "upstream_log"].map(|name| at.child(name));
        for log in lists.iter().flat_map(|list| items(self.json, list)) {
            let config = log.child("typed_config");
            let log_kind = kind(self.json, &config);
            if log_kind.ends_with("AccessLogConfig") {
                self.add(ReplacedPart::Service, &config, log_kind);
            }
        }
    }

    /// Adds a service that is asked about a request, and the parts that its clusters lose. A service that consists of
    /// listeners of the configuration is not replaced.
    fn service(&mut self, spot: &Pointer, at: &Pointer, name: &str, request: &Request<'_>) {
        let mut all = Vec::new();
        let value = get(self.json, at).unwrap_or(&Json::Null);
        visit_all(value, &mut |at, value| {
            let key = at.tokens().last().map_or("", String::as_str);
            if matches!(key, "cluster" | "cluster_name" | "clusterName") {
                all.extend(value.as_str().and_then(|name| named(self.json, name)));
            }
        });
        let mut endpoints = all.iter().map(|cluster| self.endpoints(cluster));
        let is_own = endpoints.all(|it| !it.is_empty() && it.iter().all(|(_, own)| own.is_some()));
        if all.is_empty() || !is_own {
            self.add(ReplacedPart::Service, spot, name);
        }
        for cluster in all {
            self.cluster(&cluster, request);
        }
    }

    /// Adds the first matcher in a part that uses the client's address.
    fn by_address(&mut self, at: &Pointer, name: &str) {
        let mut first = None;
        let value = get(self.json, at).unwrap_or(&Json::Null);
        visit_all(value, &mut |inner, value| {
            let tokens = inner.tokens();
            let is_by_itself = tokens.iter().any(|key| is_one_of(key, &BY_THEMSELVES));
            let key = tokens.last().map_or("", String::as_str);
            let mut names = [key, kind(value, &Pointer::default())].into_iter();
            if first.is_none() && !is_by_itself && names.any(|name| is_one_of(name, &ADDRESSES)) {
                first = Some(at.join(inner));
            }
        });
        if let Some(at) = first {
            let name = format!("{name} by address");
            self.add(ReplacedPart::ClientAddress, &at, name);
        }
    }
}

/// Returns true if a key is one of some names, in either spelling.
fn is_one_of(key: &str, names: &[&str]) -> bool {
    names.iter().any(|name| key == *name || key == camel(name))
}
