//! Writes a configuration: the settings of an arm in Envoy's document.

use std::net::SocketAddr;

use serde_json::{Value, json};
use weir_parameters::Directive;
use weir_sut::certificate::{CERTIFICATE_FILE, KEY_FILE};
use weir_sut::configuration::{ADMIN_SOCKET, Configuration};
use weir_sut::{Site, SutError, Task};

use super::document::{CLEAR, CLUSTER, ROUTER, TLS, UPSTREAM_HTTP, put_all};
use super::{Envoy, own, request_log};

/// Name of the configuration file; its extension tells Envoy the format.
const FILE: &str = "envoy.json";

/// Name under which Envoy keeps the statistics of client connections, for both listeners together.
pub(super) const STATISTICS: &str = "ingress";

pub(super) fn write(envoy: &Envoy, task: &Task<'_>) -> Result<Configuration, SutError> {
    if let Some(own) = task.site.own {
        return own::write(envoy, task, own);
    }
    let directives = task.directives()?;
    let layout = Layout { directives: &directives };
    let document = layout.bootstrap(task.site, task.origin()?)?;
    let configuration = Configuration {
        arguments: if task.site.request_log {
            [layout.arguments()?, request_log::FLUSH.map(str::to_owned).to_vec()].concat()
        } else {
            layout.arguments()?
        },
        ..Configuration::prepare(task, FILE, None)?
    };
    configuration.write(&format!("{document:#}\n"))?;
    Ok(configuration)
}

/// Returns the options of the command line that settings lead to.
pub(super) fn arguments(directives: &[Directive]) -> Result<Vec<String>, SutError> {
    Layout { directives }.arguments()
}

/// Puts directives into the objects of their contexts, and nests these objects.
struct Layout<'a> {
    directives: &'a [Directive],
}

impl Layout<'_> {
    /// Returns weir's own object for a context with the settings of that context put in.
    fn with(&self, context: &str, own: Value) -> Result<Value, SutError> {
        put_all(own, context, self.directives)
    }

    /// Returns the options of the command line, from the names that `/server_info` has for them.
    fn arguments(&self) -> Result<Vec<String>, SutError> {
        let options = self.with("arguments", json!({}))?;
        let words = options.as_object().into_iter().flatten().flat_map(|(name, value)| {
            let option = format!("--{}", name.replace('_', "-"));
            match value {
                Value::Bool(true) => vec![option],
                Value::Bool(false) | Value::Null => Vec::new(),
                Value::String(word) => vec![option, word.clone()],
                other => vec![option, other.to_string()],
            }
        });
        Ok(words.collect())
    }

    fn bootstrap(&self, site: &Site<'_>, origin: SocketAddr) -> Result<Value, SutError> {
        let mut listeners = vec![self.listener(CLEAR, site, site.listen, None)?];
        if let Some(tls) = site.tls {
            listeners.push(self.listener(TLS, site, tls.listen, Some(self.tls()?))?);
        }
        let bootstrap = json!({
            "admin": {"address": {"pipe": {"path": ADMIN_SOCKET}}},
            "static_resources": {"listeners": listeners, "clusters": [self.cluster(origin)?]},
        });
        self.with("bootstrap", bootstrap)
    }

    fn listener(
        &self,
        name: &str,
        site: &Site<'_>,
        listen: SocketAddr,
        tls: Option<Value>,
    ) -> Result<Value, SutError> {
        let mut chain = json!({"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": self.hcm(site.request_log)?,
        }]});
        if let Some(tls) = tls {
            chain["transport_socket"] =
                json!({"name": "envoy.transport_sockets.tls", "typed_config": tls});
        }
        let listener = json!({
            "name": name,
            // Else its statistics would have its address in their names.
            "stat_prefix": name,
            "address": address(listen),
            "filter_chains": [chain],
        });
        self.with("listener", listener)
    }

    fn hcm(&self, is_logged: bool) -> Result<Value, SutError> {
        let compressor = self.with("compressor", json!({}))?;
        let router =
            self.with("router", typed("envoy.extensions.filters.http.router.v3.Router"))?;
        let router = json!({"name": ROUTER, "typed_config": router});
        // Settings of a compression that is not asked for make no filter.
        let filters: Vec<Value> = Some(compressor)
            .filter(|filter| filter.get("name").is_some())
            .into_iter()
            .chain([router])
            .collect();
        let mut manager = typed(
            "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        );
        manager["stat_prefix"] = json!(STATISTICS);
        manager["http_filters"] = Value::Array(filters);
        manager["route_config"] = json!({"name": CLUSTER, "virtual_hosts": [{
            "name": CLUSTER,
            "domains": ["*"],
            "routes": [{
                "match": {"prefix": "/"},
                "route": self.with("route", json!({"cluster": CLUSTER}))?,
            }],
        }]});
        let mut manager = self.with("hcm", manager)?;
        if is_logged {
            // Behind those of settings, which name the first.
            match manager.get_mut("access_log").and_then(Value::as_array_mut) {
                Some(logs) => logs.push(request_log::logger()),
                None => manager["access_log"] = json!([request_log::logger()]),
            }
        }
        Ok(manager)
    }

    fn tls(&self) -> Result<Value, SutError> {
        let mut context = typed("envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext");
        context["common_tls_context"] = json!({"tls_certificates": [{
            "certificate_chain": {"filename": format!("conf/{CERTIFICATE_FILE}")},
            "private_key": {"filename": format!("conf/{KEY_FILE}")},
        }]});
        self.with("tls", context)
    }

    fn cluster(&self, origin: SocketAddr) -> Result<Value, SutError> {
        let mut http = typed(UPSTREAM_HTTP);
        // HTTP/1.1, as without the extension.
        http["explicit_http_config"] = json!({"http_protocol_options": {}});
        let http = self.with("upstream_http", http)?;
        let cluster = json!({
            "name": CLUSTER,
            "type": "STATIC",
            "typed_extension_protocol_options": {UPSTREAM_HTTP: http},
            "load_assignment": {"cluster_name": CLUSTER, "endpoints": [{
                "lb_endpoints": [{"endpoint": {"address": address(origin)}}],
            }]},
        });
        self.with("cluster", cluster)
    }
}

/// Returns an object of a protobuf type.
fn typed(name: &str) -> Value {
    json!({"@type": format!("type.googleapis.com/{name}")})
}

fn address(address: SocketAddr) -> Value {
    json!({"socket_address": {"address": address.ip().to_string(), "port_value": address.port()}})
}
