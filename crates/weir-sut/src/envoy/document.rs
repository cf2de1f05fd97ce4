//! Envoy's configuration as a tree: where the catalog's contexts are in it, and how values are set there.

use std::net::SocketAddr;

use serde_json::{Map, Value};
use weir_configuration::Spot;
use weir_model::study::ProxyKind;
use weir_parameters::Directive;

use crate::SutError;
use crate::met::Met;

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
    pub(super) fn context(&self, name: &str, met: &Met) -> Option<&Value> {
        match name {
            "arguments" => Some(&self.arguments),
            "bootstrap" => Some(&self.bootstrap),
            "listener" => self.listener(met),
            "hcm" => self.hcm(met),
            "compressor" => self.compressor(met),
            "router" => self.router(met)?.get("typed_config"),
            "route" => self.route(met),
            "cluster" => self.cluster(met),
            "upstream_http" => {
                let cluster = self.cluster(met)?;
                let options = cluster.get("typed_extension_protocol_options");
                // Without such an object the cluster's own fields count, which have the same names.
                options.and_then(|it| it.get(UPSTREAM_HTTP)).or(Some(cluster))
            }
            "tls" => self.tls(met),
            _ => None,
        }
    }

    fn listener(&self, met: &Met) -> Option<&Value> {
        let listeners = self.bootstrap.pointer("/static_resources/listeners")?;
        // A user's may have the name of one of weir's and be another.
        let mut all = listeners.as_array()?.iter();
        all.find(|listener| address_of(listener) == Some(met.at))
            .or_else(|| named(listeners, if met.is_secure { TLS } else { CLEAR }))
    }

    /// Returns the filter chains of the listener, beginning with the one that the load's connections take.
    fn chains(&self, met: &Met) -> Vec<&Value> {
        let Some(listener) = self.listener(met) else {
            return Vec::new();
        };
        let own = in_listener(met.server.as_ref())
            .and_then(|at| at.split_once("/filters/"))
            .and_then(|(chain, _)| listener.pointer(chain));
        let chains = listener.get("filter_chains").and_then(Value::as_array).into_iter().flatten();
        let default = listener.get("default_filter_chain");
        own.into_iter().chain(chains).chain(default).collect()
    }

    fn hcm(&self, met: &Met) -> Option<&Value> {
        let mut configs = self
            .chains(met)
            .into_iter()
            .filter_map(|chain| chain.get("filters")?.as_array())
            .flatten()
            .filter_map(|it| it.get("typed_config"));
        configs.find(|config| is_of_type(config, ".HttpConnectionManager"))
    }

    fn tls(&self, met: &Met) -> Option<&Value> {
        let mut configs = self
            .chains(met)
            .into_iter()
            .filter_map(|chain| chain.pointer("/transport_socket/typed_config"));
        configs.find(|config| is_of_type(config, ".DownstreamTlsContext"))
    }

    fn router(&self, met: &Met) -> Option<&Value> {
        let filters = self.hcm(met)?.get("http_filters")?;
        named(filters, ROUTER).or_else(|| {
            let mut filters = filters.as_array()?.iter();
            filters.find(|it| has_type(it, ".Router"))
        })
    }

    /// Returns the filter that compresses a load's responses by gzip; other filters may exist, and other routes may use
    /// this one.
    fn compressor(&self, met: &Met) -> Option<&Value> {
        let manager = self.hcm(met)?;
        let own = in_listener(met.location.as_ref()).and_then(|at| {
            let (host, _) = at.rsplit_once("/routes/")?;
            let listener = self.listener(met)?;
            Some([listener.pointer(at), listener.pointer(host)])
        });
        let said = own.unwrap_or_else(|| first_of(manager));
        let mut filters = manager.get("http_filters")?.as_array()?.iter();
        filters.find(|filter| is_gzip(filter) && is_on(filter, manager, said))
    }

    fn route(&self, met: &Met) -> Option<&Value> {
        let own = in_listener(met.location.as_ref())
            .and_then(|at| self.listener(met)?.pointer(at)?.get("route"));
        own.or_else(|| first_of(self.hcm(met)?)[0]?.get("route"))
    }

    fn cluster(&self, met: &Met) -> Option<&Value> {
        let clusters = self.bootstrap.pointer("/static_resources/clusters")?;
        let routed = self.route(met).and_then(|route| route.get("cluster"));
        let name = routed.and_then(Value::as_str).unwrap_or(CLUSTER);
        named(clusters, name).or_else(|| clusters.get(0))
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
    let mut said = route_and_host.into_iter().chain([all]).flatten();
    let own = said.find_map(|one| one.get("typed_per_filter_config")?.get(name?));
    own.unwrap_or(filter).get("disabled") != Some(&Value::Bool(true))
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
fn named<'a>(array: &'a Value, name: &str) -> Option<&'a Value> {
    let mut elements = array.as_array()?.iter();
    elements.find(|element| element.get("name").is_some_and(|own| own == name))
}

/// Sets the values of a context's directives in an object.
pub(super) fn put_all(
    mut into: Value,
    context: &str,
    directives: &[Directive],
) -> Result<Value, SutError> {
    for directive in directives.iter().filter(|directive| directive.context.name() == context) {
        let text = &directive.text;
        let unable = |why: String| SutError::Unable {
            kind: ProxyKind::Envoy,
            what: format!("be told `{text}` in `{context}`: {why}"),
        };
        let at = directive
            .at
            .as_deref()
            .ok_or_else(|| unable("the row says not where (`at`)".to_owned()))?;
        let value = serde_json::from_str(text)
            .map_err(|error| unable(format!("it is no JSON value, {error}")))?;
        put(&mut into, at, value)
            .ok_or_else(|| unable(format!("there is no place `{at}` for it")))?;
    }
    Ok(into)
}

/// Sets a value at a JSON pointer (RFC 6901) and creates what is missing on the way: an array for an index, an object
/// for a name. `None` if something else is in the way.
fn put(into: &mut Value, pointer: &str, value: Value) -> Option<()> {
    let mut place = into;
    for token in pointer.strip_prefix('/')?.split('/') {
        let token = token.replace("~1", "/").replace("~0", "~");
        let index = token.parse::<usize>().ok();
        if place.is_null() {
            *place = match index {
                Some(_) => Value::Array(Vec::new()),
                None => Value::Object(Map::new()),
            };
        }
        place = match place {
            Value::Object(members) => members.entry(token).or_insert(Value::Null),
            Value::Array(elements) => {
                let index = index.filter(|&index| index < LONGEST)?;
                if elements.len() <= index {
                    elements.resize(index + 1, Value::Null);
                }
                &mut elements[index]
            }
            _ => return None,
        };
    }
    *place = value;
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_parameters::Context;

    use super::*;

    #[test]
    fn a_listener_is_known_by_its_address_before_its_name() {
        let listener = |name: &str, port: u16| {
            let socket = json!({"address": "127.0.0.1", "port_value": port});
            json!({"name": name, "address": {"socket_address": socket}})
        };
        let listeners = json!([listener(CLEAR, 1), listener("web", 2), listener(TLS, 3)]);
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
            let met = Met::at(address.parse().unwrap(), is_secure);
            let found = document.listener(&met).unwrap();
            assert_eq!(found["name"], expected);
        }
    }

    /// The spots of a load select chain, virtual host and route, and by the route the cluster.
    #[test]
    fn of_several_chains_and_routes_those_count_that_a_load_meets() {
        let manager = |name: &str| {
            let route = |cluster: &str| json!({"route": {"cluster": cluster}});
            json!({"filters": [{"typed_config": {
                "@type": "type.googleapis.com/a.HttpConnectionManager",
                "stat_prefix": name,
                "route_config": {"virtual_hosts": [
                    {"routes": [route("one")]}, {"routes": [route("one"), route("two")]},
                ]},
            }}], "transport_socket": {"typed_config": {
                "@type": "type.googleapis.com/a.DownstreamTlsContext", "name": name,
            }}})
        };
        let document = Document {
            bootstrap: json!({"static_resources": {
                "listeners": [
                    {"name": "other"},
                    {"name": TLS, "filter_chains": [manager("a"), manager("b")]},
                ],
                "clusters": [{"name": "one"}, {"name": "two", "max": 1}],
            }}),
            ..Document::default()
        };
        let met = Met::at("127.0.0.1:9".parse().unwrap(), true);
        let said = |met: &Met| {
            let of =
                |context: &str, name: &str| document.context(context, met).unwrap()[name].clone();
            [of("hcm", "stat_prefix"), of("tls", "name"), of("cluster", "name")]
        };
        assert_eq!(said(&met), ["a", "a", "one"]);
        let host = "/static_resources/listeners/0/filter_chains/1/filters/0/typed_config/route_config/\
                    virtual_hosts/1";
        let spot = |pointer: String| Some(Spot { pointer, ..Spot::default() });
        let met = Met {
            server: spot(host.to_owned()),
            location: spot(format!("{host}/routes/1")),
            ..met
        };
        assert_eq!(said(&met), ["b", "b", "two"]);
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
