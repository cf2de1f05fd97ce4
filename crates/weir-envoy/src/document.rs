//! Envoy's configuration as a tree: where the catalog's contexts are in it, and how values are set there.

use std::net::SocketAddr;

use serde_json::{Map, Value};
use weir_configuration::Spot;
use weir_model::study::ProxyKind;
use weir_parameters::Directive;
use weir_sut::SutError;
use weir_sut::route_match::RouteMatch;

/// Names of weir's parts in Envoy's statistics and dumps: the listener in clear, the listener with TLS, the cluster.
pub(super) const CLEAR: &str = "clear";
pub(super) const TLS: &str = "tls";
pub(super) const CLUSTER: &str = "origin";

/// Names of the HTTP filters of the catalog's contexts.
pub(super) const COMPRESSOR: &str = "envoy.filters.http.compressor";
pub(super) const ROUTER: &str = "envoy.filters.http.router";

/// Cluster extension that sets how HTTP is spoken; name and type are the same.
pub(super) const UPSTREAM_HTTP: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// Maximum length to which an index in a pointer extends an array.
const LONGEST: usize = 64;

/// Envoy's configuration: the document, and its command line in the form of `/server_info`.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) arguments: Value,
    pub(super) bootstrap: Value,
}

impl Document {
    /// Returns the object of a catalog context on the way that a load takes. `None` if the configuration has no such
    /// object.
    pub(super) fn context(&self, name: &str, route_match: &RouteMatch) -> Option<&Value> {
        match name {
            "arguments" => Some(&self.arguments),
            "bootstrap" => Some(&self.bootstrap),
            "listener" => self.listener(route_match),
            "hcm" => self.hcm(route_match),
            "compressor" => self.compressor(route_match),
            "router" => self.router(route_match)?.get("typed_config"),
            "route" => self.route(route_match),
            "cluster" => self.cluster(route_match),
            "upstream_http" => {
                let cluster = self.cluster(route_match)?;
                let options = cluster.get("typed_extension_protocol_options");
                // Without such an object the cluster's own fields count, which have the same names.
                options.and_then(|it| it.get(UPSTREAM_HTTP)).or(Some(cluster))
            }
            "tls" => self.tls(route_match),
            _ => None,
        }
    }

    fn listener(&self, route_match: &RouteMatch) -> Option<&Value> {
        let listeners = self.bootstrap.pointer("/static_resources/listeners")?;
        // A user's may have the name of one of weir's and be another.
        let mut all = listeners.as_array()?.iter();
        all.find(|listener| address_of(listener) == Some(route_match.at))
            .or_else(|| find_named(listeners, if route_match.is_secure { TLS } else { CLEAR }))
    }

    /// Returns the filter chains of the listener, beginning with the one that the load's connections take.
    fn chains(&self, route_match: &RouteMatch) -> Vec<&Value> {
        let Some(listener) = self.listener(route_match) else {
            return Vec::new();
        };
        let matched = in_listener(route_match.server.as_ref())
            .and_then(|at| at.split_once("/filters/"))
            .and_then(|(chain, _)| listener.pointer(chain));
        let chains = listener.get("filter_chains").and_then(Value::as_array).into_iter().flatten();
        let default = listener.get("default_filter_chain");
        matched.into_iter().chain(chains).chain(default).collect()
    }

    fn hcm(&self, route_match: &RouteMatch) -> Option<&Value> {
        let mut configs = self
            .chains(route_match)
            .into_iter()
            .filter_map(|chain| chain.get("filters")?.as_array())
            .flatten()
            .filter_map(|it| it.get("typed_config"));
        configs.find(|config| is_of_type(config, ".HttpConnectionManager"))
    }

    fn tls(&self, route_match: &RouteMatch) -> Option<&Value> {
        let mut configs = self
            .chains(route_match)
            .into_iter()
            .filter_map(|chain| chain.pointer("/transport_socket/typed_config"));
        configs.find(|config| is_of_type(config, ".DownstreamTlsContext"))
    }

    fn router(&self, route_match: &RouteMatch) -> Option<&Value> {
        let filters = self.hcm(route_match)?.get("http_filters")?;
        find_named(filters, ROUTER)
            .or_else(|| filters.as_array()?.iter().find(|it| has_type(it, ".Router")))
    }

    /// Returns the filter that compresses a load's responses by gzip; other filters may exist, and other routes may use
    /// this one.
    fn compressor(&self, route_match: &RouteMatch) -> Option<&Value> {
        let manager = self.hcm(route_match)?;
        let overrides = in_listener(route_match.location.as_ref())
            .and_then(|at| {
                let (host, _) = at.rsplit_once("/routes/")?;
                let listener = self.listener(route_match)?;
                Some([listener.pointer(at), listener.pointer(host)])
            })
            .unwrap_or_else(|| first_of(manager));
        let mut filters = manager.get("http_filters")?.as_array()?.iter();
        filters.find(|filter| is_gzip(filter) && is_on(filter, manager, overrides))
    }

    fn route(&self, route_match: &RouteMatch) -> Option<&Value> {
        in_listener(route_match.location.as_ref())
            .and_then(|at| self.listener(route_match)?.pointer(at)?.get("route"))
            .or_else(|| first_of(self.hcm(route_match)?)[0]?.get("route"))
    }

    fn cluster(&self, route_match: &RouteMatch) -> Option<&Value> {
        let clusters = self.bootstrap.pointer("/static_resources/clusters")?;
        let routed = self.route(route_match).and_then(|route| route.get("cluster"));
        let name = routed.and_then(Value::as_str).unwrap_or(CLUSTER);
        find_named(clusters, name).or_else(|| clusters.get(0))
    }
}

/// Returns the pointer of a spot within its listener. The listener's index may differ in what Envoy reports.
fn in_listener(spot: Option<&Spot>) -> Option<&str> {
    let below = spot?.pointer.strip_prefix("/static_resources/listeners/")?;
    Some(&below[below.find('/')?..])
}

/// Returns the address of a listener.
fn address_of(listener: &Value) -> Option<SocketAddr> {
    let socket = listener.pointer("/address/socket_address")?;
    let address = socket.get("address")?.as_str()?.parse().ok()?;
    let port = socket.get("port_value")?.as_u64()?;
    Some(SocketAddr::new(address, u16::try_from(port).ok()?))
}

/// Returns the first route of a connection manager, and the virtual host that has it.
pub(super) fn first_of(manager: &Value) -> [Option<&Value>; 2] {
    let host = manager.pointer("/route_config/virtual_hosts/0");
    [host.and_then(|host| host.pointer("/routes/0")), host]
}

/// Returns true if an HTTP filter compresses by gzip, not by brotli or zstd.
pub(super) fn is_gzip(filter: &Value) -> bool {
    let library = filter.pointer("/typed_config/compressor_library/typed_config");
    has_type(filter, ".Compressor") && library.is_some_and(|library| is_of_type(library, ".Gzip"))
}

/// Returns true if an HTTP filter of a connection manager is active on a route. The route's own configuration of the
/// filter takes precedence over its virtual host's, then comes that for all routes, then the filter itself.
pub(super) fn is_on(filter: &Value, manager: &Value, route_and_host: [Option<&Value>; 2]) -> bool {
    let name = filter.get("name").and_then(Value::as_str);
    let all = manager.get("route_config");
    let mut scopes = route_and_host.into_iter().chain([all]).flatten();
    let settings = scopes.find_map(|scope| scope.get("typed_per_filter_config")?.get(name?));
    settings.unwrap_or(filter).get("disabled") != Some(&Value::Bool(true))
}

fn has_type(filter: &Value, end: &str) -> bool {
    let config = filter.get("typed_config");
    config.is_some_and(|config| is_of_type(config, end))
}

fn is_of_type(config: &Value, end: &str) -> bool {
    let kind = config.get("@type").and_then(Value::as_str);
    kind.is_some_and(|kind| kind.ends_with(end))
}

/// Returns the element of an array that has a name.
fn find_named<'a>(array: &'a Value, name: &str) -> Option<&'a Value> {
    let mut elements = array.as_array()?.iter();
    elements.find(|element| element.get("name").is_some_and(|value| value == name))
}

/// Sets the values of a context's directives in an object.
pub(super) fn put_all(
    mut into: Value,
    context: &str,
    directives: &[Directive],
) -> Result<Value, SutError> {
    for directive in directives.iter().filter(|directive| directive.context.name() == context) {
        let text = &directive.text;
        let at = directive
            .at
            .as_deref()
            .ok_or_else(|| unable(text, context, "the row says not where (`at`)".to_owned()))?;
        let value = serde_json::from_str(text)
            .map_err(|error| unable(text, context, format!("it is no JSON value, {error}")))?;
        put(&mut into, at, value)
            .ok_or_else(|| unable(text, context, format!("there is no place `{at}` for it")))?;
    }
    Ok(into)
}

fn unable(text: &str, context: &str, why: String) -> SutError {
    SutError::Unable {
        kind: ProxyKind::Envoy,
        what: format!("be told `{text}` in `{context}`: {why}"),
    }
}

/// Returns the part of a dump of the configuration whose type ends with `kind`.
pub(super) fn find_config<'c>(configs: &'c [Value], kind: &str) -> Option<&'c Value> {
    configs.iter().find(|config| {
        let name = config.get("@type").and_then(Value::as_str);
        name.is_some_and(|name| name.ends_with(kind))
    })
}

/// Sets a value at a JSON pointer (RFC 6901) and creates what is missing on the way: an array for an index, an object
/// for a name. `None` if something else is in the way.
fn put(into: &mut Value, pointer: &str, value: Value) -> Option<()> {
    let mut target = into;
    for token in pointer.strip_prefix('/')?.split('/') {
        let key = token.replace("~1", "/").replace("~0", "~");
        let index = key.parse::<usize>().ok();
        if target.is_null() {
            *target = match index {
                Some(_) => Value::Array(Vec::new()),
                None => Value::Object(Map::new()),
            };
        }
        target = match target {
            Value::Object(members) => members.entry(key).or_insert(Value::Null),
            Value::Array(elements) => {
                let position = index.filter(|&index| index < LONGEST)?;
                if elements.len() <= position {
                    elements.resize(position + 1, Value::Null);
                }
                &mut elements[position]
            }
            _ => return None,
        };
    }
    *target = value;
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_parameters::Context;

    use super::*;

    #[test]
    fn a_listener_is_known_by_its_address_before_its_name() {
        let listeners = json!([listener_at(CLEAR, 1), listener_at("web", 2), listener_at(TLS, 3)]);
        let document = Document {
            bootstrap: json!({"static_resources": {"listeners": listeners}}),
            ..Document::default()
        };
        for (address, is_secure, expected) in [
            ("127.0.0.1:2", false, "web"),
            ("127.0.0.1:2", true, "web"),
            ("127.0.0.1:9", false, CLEAR),
            ("127.0.0.1:9", true, TLS),
        ] {
            let route_match = RouteMatch::at(address.parse().unwrap(), is_secure);
            let listener = document.listener(&route_match).unwrap();
            assert_eq!(listener["name"], expected);
        }
    }

    fn listener_at(name: &str, port: u16) -> Value {
        let socket = json!({"address": "127.0.0.1", "port_value": port});
        json!({"name": name, "address": {"socket_address": socket}})
    }

    /// The spots of a load select chain, virtual host and route, and by the route the cluster.
    #[test]
    fn of_several_chains_and_routes_those_count_that_a_load_meets() {
        let document = Document {
            bootstrap: json!({"static_resources": {
                "listeners": [
                    {"name": "other"},
                    {"name": TLS, "filter_chains": [chain_named("a"), chain_named("b")]},
                ],
                "clusters": [{"name": "one"}, {"name": "two", "max": 1}],
            }}),
            ..Document::default()
        };
        let route_match = RouteMatch::at("127.0.0.1:9".parse().unwrap(), true);
        assert_eq!(names_met(&document, &route_match), ["a", "a", "one"]);
        let host = "/static_resources/listeners/0/filter_chains/1/filters/0/typed_config/route_config/\
                    virtual_hosts/1";
        let route_match = RouteMatch {
            server: spot_at(host.to_owned()),
            location: spot_at(format!("{host}/routes/1")),
            ..route_match
        };
        assert_eq!(names_met(&document, &route_match), ["b", "b", "two"]);
    }

    fn chain_named(name: &str) -> Value {
        let [one, two] = ["one", "two"].map(|cluster| json!({"route": {"cluster": cluster}}));
        json!({"filters": [{"typed_config": {
            "@type": "type.googleapis.com/a.HttpConnectionManager",
            "stat_prefix": name,
            "route_config": {"virtual_hosts": [{"routes": [one]}, {"routes": [one, two]}]},
        }}], "transport_socket": {"typed_config": {
            "@type": "type.googleapis.com/a.DownstreamTlsContext", "name": name,
        }}})
    }

    fn spot_at(pointer: String) -> Option<Spot> {
        Some(Spot { pointer, ..Spot::default() })
    }

    fn names_met(document: &Document, route_match: &RouteMatch) -> [Value; 3] {
        [("hcm", "stat_prefix"), ("tls", "name"), ("cluster", "name")]
            .map(|(context, name)| document.context(context, route_match).unwrap()[name].clone())
    }

    #[test]
    fn what_is_missing_on_the_way_is_made() {
        let mut document = json!({"name": "a"});
        for (at, value) in [
            ("/thresholds/0/max", json!(1)),
            ("/thresholds/0/min", json!(0)),
            ("/a~1b/@type", json!("c")),
            ("/name", json!("b")),
        ] {
            put(&mut document, at, value).unwrap();
        }
        let expected = json!({
            "name": "b", "thresholds": [{"max": 1, "min": 0}], "a/b": {"@type": "c"}
        });
        assert_eq!(document, expected);
    }

    #[test]
    fn what_has_no_place_is_refused() {
        let mut document = json!({"name": "a", "list": []});
        for at in ["/name/b", "/list/b", "/list/99999999999", "/list/64", "x"] {
            assert_eq!(put(&mut document, at, json!(1)), None, "{at}");
        }
    }

    #[test]
    fn a_row_that_is_no_json_is_told_with_its_text() {
        for (at, text, word) in [
            (Some("/a"), "ten", "no JSON value"),
            (None, "1", "`at`"),
            (Some("/a/b"), "1", "no place"),
        ] {
            let directive = Directive {
                context: Context::new("hcm"),
                at: at.map(str::to_owned),
                text: text.to_owned(),
            };
            let error = put_all(json!({"a": 1}), "hcm", &[directive]).unwrap_err();
            let words = error.to_string();
            assert!(words.starts_with(&format!("Envoy cannot be told `{text}` in `hcm`")));
            assert!(words.contains(word), "{words}");
        }
    }
}
