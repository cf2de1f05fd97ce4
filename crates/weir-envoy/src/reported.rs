//! Configuration of an Envoy with a control plane, from its `/config_dump`: listeners, routes and clusters come one by
//! one and not with the bootstrap.

use serde_json::{Value, json};
use weir_sut::route_match::RequestRoute;

use super::document::{CLEAR, COMPRESSOR, Document, TLS, find_config, first_of, is_gzip, is_on};

/// Builds the document of a dump, in the form of a bootstrap that contains everything. The error names what is missing.
///
/// A Service's port need not be the listener's. Loads reach the listener at their port; otherwise the first listener
/// that has its routes from the control plane and speaks TLS if the loads do. Only clusters in force are included, not
/// those that are warming up.
pub(super) fn document(
    documents: &[Value],
    meeting: &RequestRoute,
) -> Result<Document, &'static str> {
    let mut dumps = documents.iter();
    let configs = dumps
        .find_map(|document| document.get("configs")?.as_array())
        .map_or(&[][..], Vec::as_slice);
    let mut bootstrap = find_config(configs, ".BootstrapConfigDump")
        .and_then(|part| part.get("bootstrap"))
        .ok_or("has no bootstrap")?
        .clone();
    let mut routes =
        resources(configs, ".RoutesConfigDump", "dynamic_route_configs", "/route_config");
    for routes in &mut routes {
        put_first(routes, meeting);
    }
    let mut listeners =
        resources(configs, ".ListenersConfigDump", "dynamic_listeners", "/active_state/listener");
    listeners.retain_mut(|listener| resolve(listener, &routes));
    if listeners.is_empty() {
        return Err("has no listener whose routes come from a control plane");
    }
    // The first of its kind is the one that is asked where none is at the port.
    for (name, is_secure) in [(CLEAR, false), (TLS, true)] {
        let of_kind =
            listeners.iter().enumerate().filter(|(_, listener)| speaks_tls(listener) == is_secure);
        let of_kind: Vec<usize> = of_kind.map(|(place, _)| place).collect();
        let chosen = of_kind
            .iter()
            .find(|place| {
                let port = listeners[**place].pointer("/address/socket_address/port_value");
                port == Some(&json!(meeting.at.port()))
            })
            .or(of_kind.first());
        if let Some(place) = chosen.copied() {
            listeners[place]["name"] = json!(name);
        }
    }
    let clusters = resources(configs, ".ClustersConfigDump", "dynamic_active_clusters", "/cluster");
    bootstrap["static_resources"] = json!({"listeners": listeners, "clusters": clusters});
    bootstrap.as_object_mut().map(|it| it.remove("node"));
    let mut infos = documents.iter();
    let arguments = infos.find_map(|document| document.get("command_line_options").cloned());
    Ok(Document { arguments: arguments.unwrap_or_default(), bootstrap })
}

fn resources(configs: &[Value], kind: &str, list: &str, pointer: &str) -> Vec<Value> {
    find_config(configs, kind)
        .and_then(|config| config.get(list)?.as_array())
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.pointer(pointer).cloned())
        .collect()
}

/// Moves the virtual host for a load's name to the front, and within it the route for the load's target.
fn put_first(routes: &mut Value, meeting: &RequestRoute) {
    let hosts = routes.get_mut("virtual_hosts");
    let Some(hosts) = hosts.and_then(Value::as_array_mut) else {
        return;
    };
    // Of several as good the first one counts.
    hosts.sort_by_key(|host| std::cmp::Reverse(best_domain(host, &meeting.host)));
    let routes = hosts.first_mut().and_then(|host| host.get_mut("routes"));
    if let Some(routes) = routes.and_then(Value::as_array_mut) {
        let path = meeting.target.split('?').next().unwrap_or_default();
        // The first that matches is taken, so the order of the others is left.
        routes.sort_by_key(|route| {
            let is_route = route.get("route").is_some_and(|it| it.get("cluster").is_some());
            !(is_route && matches_path(route, path))
        });
    }
}

fn best_domain(host: &Value, name: &str) -> Option<usize> {
    host.get("domains")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|domain| matches_host(domain.as_str()?, name))
        .max()
}

/// Returns how well a domain of a virtual host fits a name: the whole name ranks above the longest end of the name
/// behind `*`. `None` if it does not fit.
fn matches_host(domain: &str, host: &str) -> Option<usize> {
    let lowercase = host.to_ascii_lowercase();
    let bare = lowercase.split(':').next().unwrap_or_default();
    match domain.strip_prefix('*') {
        Some("") => Some(0),
        Some(end) => bare.ends_with(end).then_some(end.len()),
        None => (lowercase == domain || bare == domain).then_some(usize::MAX),
    }
}

/// Returns true if a route's path condition matches a path; its other conditions are ignored.
fn matches_path(route: &Value, path: &str) -> bool {
    let Some(rule) = route.get("match") else {
        return false;
    };
    let text = |key: &str| rule.get(key).and_then(Value::as_str);
    if let Some(exact) = text("path") {
        return exact == path;
    }
    if let Some(prefix) = text("prefix") {
        return path.starts_with(prefix);
    }
    let below = text("path_separated_prefix").and_then(|prefix| path.strip_prefix(prefix));
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Fills in the routes if a connection manager only names them, gives compressors weir's name, and marks there whether
/// they are active on the first route. Returns false if no connection manager of the listener has its routes from the
/// control plane, as in a listener for Envoy's own statistics.
fn resolve(listener: &mut Value, routes: &[Value]) -> bool {
    let mut is_met = false;
    let mut chains: Vec<&mut Value> = Vec::new();
    for (key, value) in listener.as_object_mut().into_iter().flatten() {
        match (key.as_str(), value) {
            ("filter_chains", Value::Array(all)) => chains.extend(all),
            ("default_filter_chain", chain) => chains.push(chain),
            _ => {}
        }
    }
    let filters = chains.into_iter().filter_map(|chain| chain.get_mut("filters")?.as_array_mut());
    for filter in filters.flatten() {
        let Some(config) = filter.get_mut("typed_config") else {
            continue;
        };
        if !is_of_type(config, ".HttpConnectionManager") {
            continue;
        }
        let name = config.pointer("/rds/route_config_name").cloned();
        is_met |= name.is_some();
        if let Some(routes) = routes.iter().find(|routes| routes.get("name") == name.as_ref()) {
            config["route_config"] = routes.clone();
        }
        let filters = config.get("http_filters").and_then(Value::as_array).into_iter().flatten();
        let works: Vec<bool> =
            filters.map(|filter| is_on(filter, config, first_of(config))).collect();
        let filters = config.get_mut("http_filters").and_then(Value::as_array_mut);
        for (filter, works) in filters.into_iter().flatten().zip(works) {
            if is_gzip(filter) {
                filter["name"] = json!(COMPRESSOR);
                filter["disabled"] = json!(!works);
            }
        }
    }
    is_met
}

fn is_of_type(config: &Value, end: &str) -> bool {
    let kind = config.get("@type").and_then(Value::as_str);
    kind.is_some_and(|kind| kind.ends_with(end))
}

fn speaks_tls(listener: &Value) -> bool {
    let chains = listener.get("filter_chains").and_then(Value::as_array);
    let default = listener.get("default_filter_chain");
    chains.into_iter().flatten().chain(default).any(|chain| chain.get("transport_socket").is_some())
}

#[cfg(test)]
mod tests {
    use super::super::effective;
    use super::*;
    use weir_parameters::Catalog;

    fn listener(port: u16, buffer: u32, tls: bool) -> Value {
        let mut chain = json!({"filters": [{"typed_config": {
            "@type": "type.googleapis.com/a.HttpConnectionManager",
            "rds": {"route_config_name": format!("routes-{port}")},
            "common_http_protocol_options": {"idle_timeout": "7s"},
            "http_filters": [compressor("brotli", "Brotli"), compressor("gzip", "Gzip")],
        }}]});
        if tls {
            chain["transport_socket"] = json!({"typed_config": {}});
        }
        // Both are usual: one chain for all connections, and one for each name.
        let (key, chains) =
            if tls { ("filter_chains", json!([chain])) } else { ("default_filter_chain", chain) };
        json!({"name": format!("default/eg/{port}"), "active_state": {"listener": {
            "name": format!("default/eg/{port}"),
            "address": {"socket_address": {"address": "0.0.0.0", "port_value": port}},
            "per_connection_buffer_limit_bytes": buffer,
            key: chains,
        }}})
    }

    /// Returns a compressor as Envoy Gateway configures it: active only on routes with a configuration of it.
    fn compressor(name: &str, library: &str) -> Value {
        json!({"name": format!("envoy.filters.http.compressor.{name}"), "disabled": true, "typed_config": {
            "@type": "type.googleapis.com/a.Compressor",
            "compressor_library": {"typed_config": {"@type": format!("type.googleapis.com/b.{library}")}}}})
    }

    fn cluster(name: &str, most: u32) -> Value {
        json!({"cluster": {"name": name, "circuit_breakers": {"thresholds": [{"max_connections": most}]}}})
    }

    /// Returns a dump with three listeners; the first one of the control plane's is for its statistics.
    fn dump() -> Value {
        let statistics = json!({"active_state": {"listener": {"name": "stats", "filter_chains": [
            {"filters": [{"typed_config": {"@type": "type.googleapis.com/a.HttpConnectionManager",
                "route_config": {}}}]}]}}});
        json!({"configs": [
            {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {"node": {}}},
            {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "dynamic_listeners": [
                statistics,
                listener(10080, 4096, false), listener(10443, 8192, true), listener(8080, 1024, false)]},
            {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
                "dynamic_active_clusters": [cluster("other", 1), cluster("app", 77)],
                "dynamic_warming_clusters": [cluster("app", 99)]},
            {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump",
                "dynamic_route_configs": [routes_of(8080), routes_of(10080), routes_of(10443)]},
        ]})
    }

    fn routes_of(port: u16) -> Value {
        json!({"route_config": {"name": format!("routes-{port}"), "virtual_hosts": [
            {"domains": ["*"], "routes": [route("/", "other", "1s")]},
            {"domains": ["*.example"], "routes": [route("/", "other", "2s")]},
            {"domains": ["shop.example"], "routes": [
                {"match": {"path_separated_prefix": "/a"}, "route": {"cluster": "other", "timeout": "4s"}},
                route("/ap", "app", "3s"), route("/", "other", "5s")]},
        ]}})
    }

    fn route(prefix: &str, to: &str, timeout: &str) -> Value {
        json!({"match": {"prefix": prefix}, "route": {"cluster": to, "timeout": timeout}})
    }

    fn meeting(at: &str, is_secure: bool, host: &str, target: &str) -> RequestRoute {
        RequestRoute {
            at: at.parse().unwrap(),
            is_secure,
            host: host.to_owned(),
            target: target.to_owned(),
        }
    }

    #[test]
    fn what_a_control_plane_has_sent_is_read_where_it_is_in_force() {
        let info = json!({"version": "1.40.0", "command_line_options": {"concurrency": 3}});
        let text = format!("{info}\n{}", dump());
        let levels_for = |at: &str, is_secure, host: &str, target: &str| {
            let request = meeting(at, is_secure, host, target);
            effective::read_report(text.clone(), &request, &Catalog::builtin()).unwrap().levels
        };
        let clear = levels_for("10.96.7.7:80", false, "Shop.example:80", "/app?x");
        for (id, level) in [
            ("concurrency", "3"),
            ("per_connection_buffer_limit", "4k"),
            ("keepalive_timeout", "7s"),
            ("max_connections", "77"),
            ("route_timeout", "3s"),
            ("gzip", "off"),
        ] {
            assert_eq!(clear[id], level, "{id}");
        }
        for (at, is_secure, host, target, buffer, timeout) in [
            ("10.96.7.7:443", true, "shop.example", "/", "8k", "5s"),
            ("10.96.7.7:8080", false, "shop.example", "/a/b", "1k", "4s"),
            ("10.96.7.7:8080", false, "shop.example", "/ab", "1k", "5s"),
            ("10.96.7.7:80", false, "a.example", "/", "4k", "2s"),
            ("10.96.7.7:80", false, "elsewhere", "/", "4k", "1s"),
        ] {
            let levels = levels_for(at, is_secure, host, target);
            assert_eq!(levels["per_connection_buffer_limit"], buffer, "{at} {host}");
            assert_eq!(levels["route_timeout"], timeout, "{host}{target}");
            assert_eq!(levels["max_connections"], "1", "{host}{target}");
        }
    }

    /// A compressor may be active on one route and not on the next, and other compressors may not be gzip.
    #[test]
    fn a_compressor_counts_where_it_works() {
        let gzip = "envoy.filters.http.compressor.gzip";
        let brotli = "envoy.filters.http.compressor.brotli";
        let per_route = json!({"overrides": {"response_direction_config": {}}});
        for (of_route, of_host, of_all, filter, expected) in [
            (json!({}), json!({}), json!({}), json!(true), "off"),
            (json!({gzip: per_route}), json!({}), json!({}), json!(true), "on"),
            (json!({brotli: per_route}), json!({}), json!({}), json!(true), "off"),
            (json!({}), json!({gzip: per_route}), json!({}), json!(true), "on"),
            (json!({}), json!({}), json!({gzip: per_route}), json!(true), "on"),
            (json!({}), json!({}), json!({}), json!(null), "on"),
            (
                json!({gzip: {"disabled": true}}),
                json!({gzip: per_route}),
                json!({}),
                json!(null),
                "off",
            ),
        ] {
            let mut changed = dump();
            let routes = &mut changed["configs"][3]["dynamic_route_configs"][1]["route_config"];
            routes["typed_per_filter_config"] = of_all;
            let host = &mut routes["virtual_hosts"][2];
            host["typed_per_filter_config"] = of_host;
            host["routes"][2]["typed_per_filter_config"] = of_route;
            let listener =
                &mut changed["configs"][1]["dynamic_listeners"][1]["active_state"]["listener"];
            let manager = &mut listener["default_filter_chain"]["filters"][0]["typed_config"];
            manager["http_filters"][1]["disabled"] = filter;
            let request = meeting("10.96.7.7:80", false, "shop.example", "/");
            let effective =
                effective::read_report(changed.to_string(), &request, &Catalog::builtin());
            assert_eq!(effective.unwrap().levels["gzip"], expected, "{changed}");
        }
    }

    #[test]
    fn what_is_no_dump_is_told() {
        let request = meeting("1.2.3.4:5", false, "a", "/");
        let mut partial = dump();
        partial["configs"][1] = Value::Null;
        let without = partial.to_string();
        for (text, words) in [
            ("", "has no bootstrap"),
            ("{}", "has no bootstrap"),
            ("<html>", "is no JSON"),
            ("{\"configs\": []}", "has no bootstrap"),
            (&without, "has no listener"),
        ] {
            let error = effective::read_report(text.to_owned(), &request, &Catalog::builtin())
                .unwrap_err()
                .to_string();
            assert!(error.contains(&format!("/config_dump {words}")), "{error}");
        }
    }
}
