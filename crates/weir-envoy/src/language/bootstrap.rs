//! Envoy's bootstrap: its structure, and a copy that runs beside the original.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value as Json, json};
use weir_configuration::asked::{Missing, addresses};
use weir_configuration::document::asked::{Document, Parts};
use weir_configuration::document::find::{field, get, is_constant, items, text};
use weir_configuration::document::kept::check;
use weir_configuration::document::listening::{Listening, leads};
use weir_configuration::document::visit_all;
use weir_configuration::document::{Dialect as _, Edits, Pointer, Tree, set_in};
use weir_configuration::place::socket;
use weir_configuration::{ConfigurationError, Pem, Source, Surroundings};

use super::known::KNOWN;
use super::protocol::{destinations, in_clear, without_protocol};
use super::{Bootstrap, routes};

/// Returns the objects that a context's name stands for; None if the context is not known.
pub(super) fn objects(document: &Json, context: &str) -> Option<Vec<Pointer>> {
    Some(match context {
        "bootstrap" => vec![Pointer::default()],
        "listener" => items(document, "/static_resources/listeners"),
        "cluster" => items(document, "/static_resources/clusters"),
        "hcm" => managers(document),
        "compressor" => filters(document, "Compressor"),
        "router" => {
            filters(document, "Router").iter().map(|filter| filter.child("typed_config")).collect()
        }
        "upstream_http" => items(document, "/static_resources/clusters")
            .iter()
            .map(|cluster| cluster.child("typed_extension_protocol_options"))
            .map(|options| options.child(UPSTREAM_HTTP))
            .collect(),
        "tls" => items(document, "/static_resources/listeners")
            .iter()
            .flat_map(|listener| tls_chains(document, listener))
            .map(|chain| chain.join(CHAIN_TLS))
            .collect(),
        "route" => managers(document)
            .iter()
            .flat_map(|manager| items(document, manager.join("/route_config/virtual_hosts")))
            .flat_map(|host| items(document, host.child("routes")))
            .map(|route| route.child("route"))
            .filter(|action| get(document, action).is_some())
            .collect(),
        _ => return None,
    })
}

const MISSING: Missing = Missing {
    clear: "no listener is in clear",
    tls: "no listener has a DownstreamTlsContext",
    hint: "add a listener to static_resources",
};

/// Name and type of a cluster's extension that sets how HTTP is spoken.
pub(super) const UPSTREAM_HTTP: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// Pointer from a filter chain to its TLS context.
pub(super) const CHAIN_TLS: &str = "/transport_socket/typed_config";

/// Returns the HTTP filters of a type, in all connection managers.
fn filters(document: &Json, message: &str) -> Vec<Pointer> {
    managers(document)
        .iter()
        .flat_map(|manager| items(document, manager.child("http_filters")))
        .filter(|filter| {
            let config = get(document, &filter.child("typed_config"));
            config.is_some_and(|config| is_of_type(config, message))
        })
        .collect()
}

/// Returns the filter chains of a listener, with its default one.
pub(super) fn chains(document: &Json, listener: &Pointer) -> Vec<Pointer> {
    let mut chains = items(document, listener.child("filter_chains"));
    chains.push(listener.child("default_filter_chain"));
    chains
}

/// Returns the filter chains of a listener that speak TLS.
pub(super) fn tls_chains(document: &Json, listener: &Pointer) -> Vec<Pointer> {
    let mut secure = chains(document, listener);
    secure.retain(|chain| {
        let config = get(document, &chain.join(CHAIN_TLS));
        config.is_some_and(|config| is_of_type(config, "DownstreamTlsContext"))
    });
    secure
}

/// Returns the fields that a new object of [`UPSTREAM_HTTP`] needs: the cluster's own settings of how it speaks HTTP,
/// which do not count beside such an object, or HTTP/1.1 if it has none. None if the cluster speaks the protocol of its
/// clients, which such an object sets in another way.
pub(super) fn new_upstream_http(cluster: &Json) -> Option<Vec<(&'static str, Json)>> {
    if present(cluster, "protocol_selection")
        .is_some_and(|value| !is_constant(value, "USE_CONFIGURED_PROTOCOL", 0))
    {
        return None;
    }
    let config = match present(cluster, "http2_protocol_options") {
        Some(http2) => json!({"http2_protocol_options": http2}),
        None => {
            let http = present(cluster, "http_protocol_options").cloned();
            json!({"http_protocol_options": http.unwrap_or_else(|| json!({}))})
        }
    };
    let name = format!("type.googleapis.com/{UPSTREAM_HTTP}");
    let both = ["common_http_protocol_options", "upstream_http_protocol_options"]
        .iter()
        .filter_map(|name| Some((*name, present(cluster, name)?.clone())));
    let explicit = [("@type", json!(name)), ("explicit_http_config", config)];
    Some(explicit.into_iter().chain(both).collect())
}

/// Returns a field of an object unless it is null.
pub(super) fn present<'a>(object: &'a Json, name: &str) -> Option<&'a Json> {
    field(object, name).filter(|value| !value.is_null())
}

/// Returns the configurations of HTTP connection managers in the listeners' filter chains.
fn managers(document: &Json) -> Vec<Pointer> {
    let listeners = items(document, "/static_resources/listeners");
    listeners
        .iter()
        .flat_map(|listener| chains(document, listener))
        .flat_map(|chain| items(document, chain.child("filters")))
        .map(|filter| filter.child("typed_config"))
        .filter(|config| {
            get(document, config).is_some_and(|c| is_of_type(c, "HttpConnectionManager"))
        })
        .collect()
}

pub(super) fn is_of_type(config: &Json, message: &str) -> bool {
    kind(config, &Pointer::default()) == message
}

/// Returns the type of a configuration, without its package; empty if it has none.
pub(super) fn kind<'d>(document: &'d Json, config: &Pointer) -> &'d str {
    let message = text(document, config.child("@type")).unwrap_or_default();
    message.rsplit('.').next().unwrap_or_default()
}

/// Returns the listeners of the bootstrap.
fn listening(document: &Json) -> Vec<Listening> {
    let listeners = items(document, "/static_resources/listeners");
    listeners.into_iter().map(|at| of_listener(document, at)).collect()
}

fn of_listener(document: &Json, at: Pointer) -> Listening {
    let socket = at.join("/address/socket_address");
    let port = get(document, &socket.child("port_value"))
        .and_then(Json::as_u64)
        .and_then(|port| u16::try_from(port).ok());
    let tls = !tls_chains(document, &at).is_empty();
    let udp = text(document, socket.child("protocol"))
        .is_some_and(|protocol| protocol.eq_ignore_ascii_case("udp"));
    Listening {
        server: at.clone(),
        address: address_of(document, &at.child("address")),
        at,
        port,
        tls,
        udp,
    }
}

/// Returns the index of the listener that an endpoint's address leads to, if there is one.
pub(super) fn behind(document: &Document<'_>, address: &Pointer) -> Option<usize> {
    let address = address_of(document.json, address);
    let mut all = document.found.iter();
    all.position(|listener| is_behind(document.json, listener, &address))
}

/// Returns true if an endpoint's address leads to a listener by any of the listener's addresses.
fn is_behind(document: &Json, listener: &Listening, server: &str) -> bool {
    let additional = items(document, listener.at.child("additional_addresses"));
    listener.is_behind(server)
        || additional
            .iter()
            .any(|other| leads(server, &address_of(document, &other.child("address"))))
}

/// Returns an address as messages show it: `127.0.0.1:8080`, or the path of a pipe.
fn address_of(document: &Json, at: &Pointer) -> String {
    let socket = at.child("socket_address");
    let port = get(document, &socket.child("port_value")).and_then(Json::as_u64);
    let pipe = text(document, at.join("/pipe/path"));
    match (text(document, socket.child("address")), port, pipe) {
        (Some(address), Some(port), _) if address.contains(':') => format!("[{address}]:{port}"),
        (Some(address), Some(port), _) => format!("{address}:{port}"),
        (.., pipe) => pipe.unwrap_or_default().to_owned(),
    }
}

/// Returns the bootstrap prepared for looking up ways.
pub(super) fn document(parts: Parts<'_>) -> Document<'_> {
    let mut missing = MISSING;
    if get(parts.2, &Pointer::parse("/dynamic_resources/lds_config")).is_some() {
        missing.hint = "listeners of `lds_config` are not read: write them into static_resources";
    }
    Document::new(parts, listening(parts.2), missing, routes::find_route)
}

/// Makes a copy that can run in a trial: on the given addresses, with its sockets below `PREFIX/run/` and its logs
/// below `PREFIX/logs/` (which the caller makes), and contacting only the given origin server.
///
/// * The administration interface is the pipe `PREFIX/run/admin.sock`; it is added if it is missing.
/// * The listeners that loads ask ([`Surroundings::asks`]) get the new addresses. Those with a DownstreamTlsContext
///   show the certificate of the surroundings, if there is one, in all their filter chains; if all chains are for
///   servers by name, the first of these becomes one for any name. All other listeners become the pipes
///   `PREFIX/run/N.sock`, and those for UDP get some free port of the loopback. Additional addresses are taken out.
/// * Filter chains for the port of a listener under load are changed to its new port, and to any address. Its clients
///   need not speak the PROXY protocol.
/// * Every endpoint of the clusters gets the origin server's address. Clusters that ask the DNS become `STATIC`. Their
///   `transport_socket` (TLS) is taken out, with source addresses and resolvers. HTTP/3, and protocols that are
///   negotiated within TLS, become HTTP/1.1. An endpoint that is a listener of the bootstrap stays one. The protocol of
///   a cluster stays otherwise: the origin server must speak it. Active `health_checks` stay and ask the origin server
///   in addition to the load; their expectations of an answer are taken out.
/// * `stats_sinks` and reports of load and health (`load_stats_config`, `hds_config`) are taken out.
/// * Access logs to files, `/dev/stdout` too, go to `PREFIX/logs/access-N.log`, with their formats and filters; logs of
///   events (`event_log_path`) go to `PREFIX/logs/events-N.log`.
/// * Relative names of files become absolute if a file exists there, relative to the user's folder.
///
/// Some parts stay that can matter: tracing, access logs and rate limits over gRPC contact clusters, whose endpoints
/// are the origin server in a copy.
///
/// # Errors
/// Returns an error if the configuration cannot be read; if the rest of it could contact or write something else
/// (`dynamic_resources`, clusters that are discovered, `google_grpc`, Lua, Wasm, an extension that weir does not know);
/// if no listener matches a load; if the prefix is too long for a socket; or if a value to be changed is shared with
/// others by a YAML anchor.
pub fn adapt(
    source: &Source,
    surroundings: &Surroundings<'_>,
) -> Result<Source, ConfigurationError> {
    let format = Bootstrap.format(&source.files[0].path);
    let tree = Tree::parse(&source.files[0], format)?;
    let document = tree.meaning(&tree.root);
    let mut copy = Copy {
        source,
        tree: &tree,
        document: &document,
        surroundings,
        edits: Edits::default(),
        replaced: Vec::new(),
        listening: Vec::new(),
    };
    copy.admin()?;
    copy.listeners()?;
    copy.elsewhere();
    copy.clusters(surroundings.origin);
    copy.files();
    check(&source.files[0], &tree, &copy.edits.0, &KNOWN)?;
    set_in(source, &tree, format, &copy.edits.0)
}

struct Copy<'c> {
    source: &'c Source,
    tree: &'c Tree,
    document: &'c Json,
    surroundings: &'c Surroundings<'c>,
    edits: Edits,
    /// Lists that the copy replaces as a whole.
    replaced: Vec<Pointer>,
    /// Listeners, each with its new address.
    listening: Vec<(Listening, Json)>,
}

impl Copy<'_> {
    fn pipe(&self, name: &str) -> Result<Json, ConfigurationError> {
        let path = socket(self.surroundings.prefix, name, &self.source.files[0])?;
        Ok(json!({"pipe": {"path": path}}))
    }

    fn admin(&mut self) -> Result<(), ConfigurationError> {
        let pipe = self.pipe("admin.sock")?;
        self.edits.put("/admin/address", pipe);
        let log = Pointer::parse("/admin/access_log_path");
        if get(self.document, &log).is_some() {
            let path = self.surroundings.prefix.join("logs/admin.log");
            self.edits.put(log, path.display().to_string());
        }
        Ok(())
    }

    fn listeners(&mut self) -> Result<(), ConfigurationError> {
        let document = document((self.source, self.tree, self.document));
        let load_addresses = addresses(&document, &self.surroundings.asks)?;
        for (index, listener) in document.found.into_iter().enumerate() {
            let candidate = load_addresses.iter().find(|(candidate, _)| *candidate == index);
            let address = match candidate {
                _ if listener.udp => socket_address(&([127, 0, 0, 1], 0).into(), true),
                Some((_, address)) => socket_address(address, false),
                None => self.pipe(&format!("{index}.sock"))?,
            };
            if candidate.is_some()
                && listener.tls
                && let Some(pem) = self.surroundings.certificate
            {
                self.certificate(&listener.at, pem);
            }
            self.edits.put(listener.at.child("address"), address.clone());
            self.edits.take(listener.at.child("additional_addresses"));
            if let Some((_, address)) = candidate {
                without_protocol(self.document, &listener.at, &mut self.edits);
                destinations(self.document, &listener, address, &mut self.edits);
            }
            self.listening.push((listener, address));
        }
        Ok(())
    }

    /// Makes a listener show a certificate to clients that name any server.
    fn certificate(&mut self, listener: &Pointer, pem: Pem<'_>) {
        let secure = tls_chains(self.document, listener);
        let names = Pointer::parse("/filter_chain_match/server_names");
        let mut all = chains(self.document, listener)
            .into_iter()
            .filter(|chain| get(self.document, chain).is_some());
        // One without TLS is for other names just as well.
        let takes_all = all.any(|chain| get(self.document, &chain.join(&names)).is_none());
        if let Some(first) = secure.first().filter(|_| !takes_all) {
            self.edits.take(first.join(&names));
        }
        let [chain, key] = [pem.certificate, pem.key].map(|path| path.display().to_string());
        let shown = json!([{
            "certificate_chain": {"filename": chain},
            "private_key": {"filename": key},
        }]);
        for chain in secure {
            let common = chain.join(CHAIN_TLS).child("common_tls_context");
            for other in [
                "tls_certificate_sds_secret_configs",
                "tls_certificate_provider_instance",
                "tls_certificate_certificate_provider_instance",
                "custom_tls_certificate_selector",
            ] {
                self.edits.take(common.child(other));
            }
            let certificates = common.child("tls_certificates");
            self.edits.put(certificates.clone(), shown.clone());
            self.replaced.push(certificates);
        }
    }

    /// Takes out settings by which the whole process contacts or informs others.
    fn elsewhere(&mut self) {
        for at in [
            "/admin/profile_path",
            "/cluster_manager/load_stats_config",
            "/cluster_manager/upstream_bind_config",
            "/dns_resolution_config",
            "/hds_config",
            "/stats_sinks",
            "/typed_dns_resolver_config",
        ] {
            self.edits.take(at);
        }
    }

    fn clusters(&mut self, origin: SocketAddr) {
        for cluster in items(self.document, "/static_resources/clusters") {
            // Listeners of the bootstrap are spoken to as before.
            let mut is_own = true;
            let localities = cluster.join("/load_assignment/endpoints");
            let endpoints = items(self.document, &localities)
                .into_iter()
                .flat_map(|locality| items(self.document, locality.child("lb_endpoints")))
                .map(|member| member.child("endpoint"));
            for endpoint in endpoints {
                let moved = self.find_moved_address(&endpoint.child("address"));
                is_own &= moved.is_some();
                let new = moved.unwrap_or_else(|| socket_address(&origin, false));
                self.edits.put(endpoint.child("address"), new);
                self.edits.take(endpoint.child("health_check_config"));
                self.edits.take(endpoint.child("additional_addresses"));
            }
            for check in items(self.document, cluster.child("health_checks")) {
                self.health_check(&check);
            }
            let kind = cluster.child("type");
            if get(self.document, &kind).is_some_and(is_listed) {
                self.edits.put(kind, "STATIC");
            }
            let extension = cluster.child("cluster_type");
            let config = get(self.document, &extension.child("typed_config"));
            if config.is_some_and(|config| is_of_type(config, "DnsCluster")) {
                self.edits.take(extension);
            }
            if !is_own {
                in_clear(self.document, &cluster, &mut self.edits);
            }
            for other in [
                "dns_resolution_config",
                "dns_resolvers",
                "typed_dns_resolver_config",
                "upstream_bind_config",
            ] {
                self.edits.take(cluster.child(other));
            }
        }
    }

    /// Returns the new address of the listener that an endpoint's address leads to, if it is a listener of the
    /// bootstrap.
    fn find_moved_address(&self, address: &Pointer) -> Option<Json> {
        let address = address_of(self.document, address);
        let mut all = self.listening.iter();
        all.find(|(listener, _)| is_behind(self.document, listener, &address))
            .map(|(_, new)| new.clone())
    }

    /// Changes a health check so that the origin server can pass it, whose answers are not those of the user's servers.
    /// A check by another protocol than HTTP only connects.
    fn health_check(&mut self, check: &Pointer) {
        let [http, tcp] = ["http_health_check", "tcp_health_check"].map(|kind| check.child(kind));
        for expected in
            ["expected_statuses", "receive", "retriable_statuses", "service_name_matcher"]
        {
            self.edits.take(http.child(expected));
        }
        for said in ["receive", "send"] {
            self.edits.take(tcp.child(said));
        }
        if [&http, &tcp].iter().all(|kind| get(self.document, kind).is_none()) {
            self.edits.put(tcp, json!({}));
            for other in ["custom_health_check", "grpc_health_check"] {
                self.edits.take(check.child(other));
            }
        }
    }

    /// Moves log files below the prefix, and makes relative names of files absolute, anywhere in the document.
    fn files(&mut self) {
        let beside = self.source.files[0].path.parent().unwrap_or(Path::new("/")).to_owned();
        let folder = self.surroundings.prefix.join("logs");
        let (mut logs, mut events) = (0, 0);
        let mut edits = Vec::new();
        visit_all(self.document, &mut |at, value| {
            if is_of_type(value, "FileAccessLog") {
                let path = folder.join(format!("access-{logs}.log"));
                edits.push((at.child("path"), path.display().to_string()));
                logs += 1;
            }
            // Of health checks, their sinks, and the detection of outliers.
            let log = field(value, "event_log_path").and_then(Json::as_str);
            if log.is_some_and(|log| !log.is_empty()) {
                let path = folder.join(format!("events-{events}.log"));
                edits.push((at.child("event_log_path"), path.display().to_string()));
                events += 1;
            }
            let name = field(value, "filename").and_then(Json::as_str);
            if let Some(name) = name.filter(|name| Path::new(name).is_relative()) {
                let path = beside.join(name);
                if path.exists() {
                    edits.push((at.child("filename"), path.display().to_string()));
                }
            }
        });
        for (at, path) in edits {
            if !self.replaced.iter().any(|list| at.is_below(list)) {
                self.edits.put(at, path);
            }
        }
    }
}

fn socket_address(address: &SocketAddr, udp: bool) -> Json {
    let (ip, port) = (address.ip().to_string(), address.port());
    if udp {
        json!({"socket_address": {"protocol": "UDP", "address": ip, "port_value": port}})
    } else {
        json!({"socket_address": {"address": ip, "port_value": port}})
    }
}

/// Returns true if a kind of clusters has a list of endpoints.
fn is_listed(kind: &Json) -> bool {
    let mut listed = ["STATIC", "STRICT_DNS", "LOGICAL_DNS"].iter().zip(0..);
    listed.any(|(name, number)| is_constant(kind, name, number))
}
