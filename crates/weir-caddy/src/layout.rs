//! Builds Caddy's document: what a site needs, and the settings of an arm in their contexts.
//!
//! A listener in clear and one with TLS are two servers with the same routes, because Caddy speaks TLS on all ports of
//! a server that has a TLS policy. The server in clear is therefore the same with the other one and without it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use weir_model::study::ProxyRole;
use weir_parameters::Directive;
use weir_sut::certificate::{CERTIFICATE_FILE, KEY_FILE};
use weir_sut::configuration::ADMIN_SOCKET;
use weir_sut::route_match::RouteMatch;
use weir_sut::{Site, SutError, admin};

use super::{KIND, request_log};

/// Name of the context that is not part of the document: variables of the process.
pub(super) const ENVIRONMENT: &str = "environment";

/// Names of the servers: in clear, and with TLS.
const SITE: &str = "site";
const SITE_TLS: &str = "site_tls";

/// Configuration that results from settings and a site.
pub(super) struct LaidOut {
    pub(super) document: Value,
    pub(super) environment: Vec<(String, String)>,
}

pub(super) fn lay_out(directives: &[Directive], site: &Site<'_>) -> Result<LaidOut, SutError> {
    let mut sections = Sections::gather(directives)?;
    let environment = sections.environment();
    Ok(LaidOut { document: sections.document(site)?, environment })
}

/// Returns the variables of the process that settings lead to.
pub(super) fn environment(directives: &[Directive]) -> Result<Vec<(String, String)>, SutError> {
    Ok(Sections::gather(directives)?.environment())
}

/// Returns a variable's value: the text of a JSON string, or a number as it is written.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Values written into each context, by the context's name.
struct Sections(BTreeMap<String, Value>);

impl Sections {
    fn gather(directives: &[Directive]) -> Result<Sections, SutError> {
        let mut sections = BTreeMap::new();
        for directive in directives {
            let text = &directive.text;
            let at =
                directive.at.as_deref().ok_or_else(|| misplaced(text, "the row says no `at`"))?;
            let value = serde_json::from_str(text)
                .map_err(|error| misplaced(text, &format!("it is no JSON ({error})")))?;
            let section =
                sections.entry(directive.context.name().to_owned()).or_insert_with(|| json!({}));
            place(section, at, value);
        }
        Ok(Sections(sections))
    }

    fn environment(&mut self) -> Vec<(String, String)> {
        self.take(ENVIRONMENT, json!({}))
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect()
    }

    /// Returns `base` merged with the values written into a context, which take precedence.
    fn take(&mut self, context: &str, mut base: Value) -> Value {
        if let Some(written) = self.0.remove(context) {
            merge(&mut base, written);
        }
        base
    }

    fn document(mut self, site: &Site<'_>) -> Result<Value, SutError> {
        let handlers = self.handlers(site)?;
        let mut base = json!({
            "listen": [site.listen.to_string()],
            "automatic_https": {"disable": true},
            "routes": [{"handle": handlers}],
        });
        if site.request_log {
            base["logs"] = request_log::of_server();
        }
        let server = self.take("server", base);
        let mut tls = self.take("tls", json!({}));
        let mut servers = Map::new();
        if let Some(listener) = site.tls {
            let policy = self.take("tls_policy", json!({}));
            let mut tls_server = server.clone();
            let tls_part = json!({
                "listen": [listener.listen.to_string()],
                "tls_connection_policies": [policy],
            });
            merge(&mut tls_server, tls_part);
            servers.insert(SITE_TLS.to_owned(), tls_server);
            let files = json!({
                "certificate": format!("conf/{CERTIFICATE_FILE}"),
                "key": format!("conf/{KEY_FILE}"),
            });
            // weir's certificate names nobody who could be asked.
            let loaded = json!({
                "certificates": {"load_files": [files]},
                "disable_ocsp_stapling": true,
            });
            merge(&mut tls, loaded);
        }
        servers.insert(SITE.to_owned(), server);
        let app = self.take("app", json!({"servers": servers}));
        let mut root = json!({
            // It would keep a copy of the configuration where nobody asked for one.
            "admin": {
                "listen": format!("unix/{ADMIN_SOCKET}"),
                "origins": [admin::HOST],
                "config": {"persist": false},
            },
            "storage": {"module": "file_system", "root": "temp/storage"},
            "apps": {"http": app, "tls": tls},
        });
        if site.request_log {
            root["logging"] = request_log::logging();
        }
        Ok(self.take("root", root))
    }

    fn handlers(&mut self, site: &Site<'_>) -> Result<Vec<Value>, SutError> {
        let content = match site.role {
            ProxyRole::ReverseProxy => {
                self.reverse_proxy(&site.origin.ok_or(SutError::NoOrigin)?.to_string())
            }
            ProxyRole::StaticFiles { .. } => json!({"handler": "file_server", "root": "files"}),
        };
        Ok(self.encode().into_iter().chain([content]).collect())
    }

    fn reverse_proxy(&mut self, origin: &str) -> Value {
        let upstream = self.take("upstream", json!({"dial": origin}));
        let mut transport = self.take("transport", json!({"protocol": "http"}));
        if let Some(keep_alive) = transport.pointer_mut("/keep_alive") {
            fill_keep_alive(keep_alive);
        }
        let base = json!({
            "handler": "reverse_proxy",
            "transport": transport,
            "upstreams": [upstream],
        });
        self.take("reverse_proxy", base)
    }

    /// Returns the handler that compresses, with the preferred encodings only: the settings of an encoding would
    /// otherwise switch it on.
    fn encode(&mut self) -> Option<Value> {
        let mut encode = self.take("encode", json!({"handler": "encode"}));
        let preferred = encode.get("prefer")?.clone();
        if let Some(encodings) = encode.get_mut("encodings").and_then(Value::as_object_mut) {
            encodings.retain(|name, _| {
                let names = preferred.as_array();
                names.is_some_and(|names| names.iter().any(|preferred| preferred == name))
            });
        }
        Some(encode)
    }
}

/// Adds the defaults of the fields that are not set. Caddy 2.6 drops all defaults as soon as one of the object's fields
/// is there (`NewTransport` in `reverseproxy/httptransport.go`): two connections would be kept instead of 32, and for
/// ever.
fn fill_keep_alive(kept: &mut Value) {
    let mut filled = json!({
        "probe_interval": "30s",
        "idle_timeout": "120s",
        "max_idle_conns_per_host": 32,
    });
    merge(&mut filled, kept.take());
    *kept = filled;
}

/// Path of a load through a document.
pub(super) struct Route<'d> {
    document: &'d Value,
    /// Server that the load's requests go to.
    server: Option<&'d Value>,
    /// Route that the requests take, if it is known.
    route: Option<&'d Value>,
}

impl<'d> Route<'d> {
    /// Finds the path by the server that listens at the load's address, or else by weir's name for the server.
    pub(super) fn of(document: &'d Value, route_match: &RouteMatch) -> Route<'d> {
        let address = route_match.at.to_string();
        let servers = document.pointer("/apps/http/servers").and_then(Value::as_object);
        let mut all = servers.into_iter().flatten();
        let server = all.find(|(_, server)| {
            let listen = server.get("listen").and_then(Value::as_array);
            listen.is_some_and(|listen| listen.iter().any(|bound| *bound == *address))
        });
        let usual = if route_match.is_secure { SITE_TLS } else { SITE };
        let spot = route_match.location.as_ref().filter(|spot| !spot.pointer.is_empty());
        Route {
            document,
            server: server.map(|(_, server)| server).or_else(|| servers?.get(usual)),
            route: spot.and_then(|spot| document.pointer(&spot.pointer)),
        }
    }

    /// Returns the object that a context's name stands for; None if the proxy lacks it in its role or without a
    /// listener for TLS.
    pub(super) fn section(&self, context: &str) -> Option<&'d Value> {
        match context {
            "root" => Some(self.document),
            "app" => self.document.pointer("/apps/http"),
            "tls" => self.document.pointer("/apps/tls"),
            "server" => self.server,
            "encode" => handler(self.routes()?, context),
            "reverse_proxy" => self.proxy(),
            "transport" => self.proxy()?.get("transport"),
            "upstream" => self.proxy()?.pointer("/upstreams/0"),
            "tls_policy" => self.server?.pointer("/tls_connection_policies/0"),
            _ => None,
        }
    }

    fn routes(&self) -> Option<&'d Vec<Value>> {
        self.server?.get("routes")?.as_array()
    }

    fn proxy(&self) -> Option<&'d Value> {
        let route = self.route.map_or(&[][..], std::slice::from_ref);
        handler(route, "reverse_proxy").or_else(|| handler(self.routes()?, "reverse_proxy"))
    }
}

/// Returns the first handler of a name in routes, at any depth.
fn handler<'a>(routes: &'a [Value], name: &str) -> Option<&'a Value> {
    routes.iter().find_map(|route| {
        let mut handlers = route.get("handle")?.as_array()?.iter();
        handlers.find_map(|it| {
            if it["handler"] == name {
                Some(it)
            } else {
                handler(it.get("routes")?.as_array()?, name)
            }
        })
    })
}

/// Sets a value at a JSON pointer (RFC 6901), and creates missing objects on the way.
fn place(target: &mut Value, at: &str, value: Value) {
    let wrapped = at.strip_prefix('/').unwrap_or(at).rsplit('/').fold(value, |inner, key| {
        Value::Object(Map::from_iter([(key.replace("~1", "/").replace("~0", "~"), inner)]))
    });
    merge(target, wrapped);
}

fn misplaced(directive: &str, why: &str) -> SutError {
    SutError::Unable { kind: KIND, what: format!("take `{directive}` from the catalog: {why}") }
}

/// Merges objects; any other value replaces the one in `target`.
fn merge(target: &mut Value, other: Value) {
    match (target, other) {
        (Value::Object(target), Value::Object(other)) => {
            for (key, value) in other {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, other) => *target = other,
    }
}

#[cfg(test)]
mod tests {
    use weir_parameters::Context;

    use super::*;

    fn directive(context: &str, at: Option<&str>, text: &str) -> Directive {
        Directive {
            context: Context::new(context),
            at: at.map(str::to_owned),
            text: text.to_owned(),
        }
    }

    fn proxied(directives: &[Directive]) -> Result<LaidOut, SutError> {
        let origin = "127.0.0.1:9".parse().ok();
        let role = ProxyRole::ReverseProxy;
        let listen = "127.0.0.1:1".parse().expect("an address");
        lay_out(directives, &Site::new(&role, listen, origin))
    }

    fn asked() -> RouteMatch {
        RouteMatch::at("127.0.0.1:1".parse().expect("an address"), false)
    }

    #[test]
    fn what_is_placed_is_merged_whatever_comes_first() {
        let (level, name) = (("/a/b/level", json!(5)), ("/a/b", json!({})));
        for order in [[&level, &name], [&name, &level]] {
            let mut target = json!({"a": {"c": 1}});
            for (at, value) in order {
                place(&mut target, at, value.clone());
            }
            assert_eq!(target, json!({"a": {"b": {"level": 5}, "c": 1}}));
        }
        let mut target = json!({});
        place(&mut target, "/a~1b/~0c", json!([1]));
        assert_eq!(target, json!({"a/b": {"~c": [1]}}));
    }

    #[test]
    fn one_setting_of_kept_connections_does_not_undo_the_defaults_of_the_others() {
        assert_eq!(keep_alive_of(&[]), None);
        let idle_timeout = directive("transport", Some("/keep_alive/idle_timeout"), "\"1s\"");
        let expected = json!({
            "probe_interval": "30s", "idle_timeout": "1s", "max_idle_conns_per_host": 32,
        });
        assert_eq!(keep_alive_of(&[idle_timeout]), Some(expected));
    }

    fn keep_alive_of(directives: &[Directive]) -> Option<Value> {
        section_of(directives, "transport").expect("a transport").get("keep_alive").cloned()
    }

    fn section_of(directives: &[Directive], context: &str) -> Option<Value> {
        let document = proxied(directives).expect("it is laid out").document;
        Route::of(&document, &asked()).section(context).cloned()
    }

    #[test]
    fn an_encoding_that_is_only_tuned_is_not_offered() {
        let level = directive("encode", Some("/encodings/gzip/level"), "9");
        assert_eq!(section_of(std::slice::from_ref(&level), "encode"), None);
        let zstd = [
            level,
            directive("encode", Some("/encodings/zstd"), "{}"),
            directive("encode", Some("/prefer"), "[\"zstd\"]"),
        ];
        let expected = json!({"handler": "encode", "encodings": {"zstd": {}}, "prefer": ["zstd"]});
        assert_eq!(section_of(&zstd, "encode"), Some(expected));
    }

    #[test]
    fn a_row_that_leads_to_no_json_is_refused() {
        for (directive, why) in [
            (directive("server", None, "1"), "says no `at`"),
            (directive("server", Some("/x"), "{x"), "is no JSON"),
        ] {
            let error = proxied(&[directive]).err().expect("it is refused");
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
