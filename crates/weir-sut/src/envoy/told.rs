//! What an Envoy runs with that a control plane configures, from its `/config_dump`: listeners, routes and clusters come
//! one by one and not with the bootstrap.

use serde_json::{Value, json};

use super::document::{CLEAR, Document, TLS};
use crate::met::Met;

/// The document of a dump, as one of a bootstrap that has everything would be; `None`: it is no dump.
///
/// A Service's port is not the listener's, so the listener that loads meet is the one at their address, else the first
/// that speaks HTTP, over TLS as they do. Of clusters those that are in force are there: what warms up is not.
pub(super) fn document(dump: &Value, met: &Met) -> Option<Document> {
    let configs = dump.get("configs")?.as_array()?;
    let part = |kind: &str| {
        let is_kind = |config: &&Value| {
            let name = config.get("@type").and_then(Value::as_str);
            name.is_some_and(|name| name.ends_with(kind))
        };
        configs.iter().find(is_kind)
    };
    let all = |kind: &str, list: &str, at: &str| -> Vec<Value> {
        let entries = part(kind).and_then(|part| part.get(list)?.as_array());
        let entries = entries.into_iter().flatten();
        entries
            .filter_map(|entry| entry.pointer(at).cloned())
            .collect()
    };
    let mut bootstrap = part(".BootstrapConfigDump")?.get("bootstrap")?.clone();
    let routes = all(
        ".RoutesConfigDump",
        "dynamic_route_configs",
        "/route_config",
    );
    let mut listeners = all(
        ".ListenersConfigDump",
        "dynamic_listeners",
        "/active_state/listener",
    );
    listeners.retain_mut(|listener| resolve(listener, &routes));
    // The first of its kind is the one that is asked where none is at the address.
    for (name, is_secure) in [(CLEAR, false), (TLS, true)] {
        let of_kind = listeners.iter().enumerate();
        let of_kind = of_kind.filter(|(_, listener)| speaks_tls(listener) == is_secure);
        let of_kind: Vec<usize> = of_kind.map(|(place, _)| place).collect();
        let is_at_port = |place: &&usize| {
            let port = listeners[**place].pointer("/address/socket_address/port_value");
            port == Some(&json!(met.at.port()))
        };
        let met = of_kind.iter().find(is_at_port).or(of_kind.first());
        if let Some(place) = met.copied() {
            listeners[place]["name"] = json!(name);
        }
    }
    let clusters = all(".ClustersConfigDump", "dynamic_active_clusters", "/cluster");
    bootstrap["static_resources"] = json!({"listeners": listeners, "clusters": clusters});
    bootstrap.as_object_mut()?.remove("node");
    Some(Document {
        arguments: Value::Null,
        bootstrap,
    })
}

/// Puts the routes where a connection manager only names them; `false`: the listener has no such manager.
fn resolve(listener: &mut Value, routes: &[Value]) -> bool {
    let mut is_http = false;
    let default = listener.get("default_filter_chain").cloned();
    if let (Some(default), Some(chains)) = (default, listener.get_mut("filter_chains")) {
        chains
            .as_array_mut()
            .into_iter()
            .for_each(|chains| chains.push(default.clone()));
    }
    let chains = listener
        .get_mut("filter_chains")
        .and_then(Value::as_array_mut);
    let filters = chains.into_iter().flatten();
    let filters = filters.filter_map(|chain| chain.get_mut("filters")?.as_array_mut());
    for filter in filters.flatten() {
        let Some(config) = filter.get_mut("typed_config") else {
            continue;
        };
        let kind = config.get("@type").and_then(Value::as_str);
        if !kind.is_some_and(|kind| kind.ends_with(".HttpConnectionManager")) {
            continue;
        }
        is_http = true;
        let name = config.pointer("/rds/route_config_name").cloned();
        let found = routes
            .iter()
            .find(|routes| routes.get("name") == name.as_ref());
        if let Some(found) = found {
            config["route_config"] = found.clone();
        }
    }
    is_http
}

fn speaks_tls(listener: &Value) -> bool {
    let chains = listener.get("filter_chains").and_then(Value::as_array);
    let mut chains = chains.into_iter().flatten();
    chains.any(|chain| chain.get("transport_socket").is_some())
}

#[cfg(test)]
mod tests {
    use weir_parameters::Catalog;

    use super::*;

    fn listener(port: u16, buffer: u32, tls: bool) -> Value {
        let mut chain = json!({"filters": [{"typed_config": {
            "@type": "type.googleapis.com/a.HttpConnectionManager",
            "rds": {"route_config_name": format!("routes-{port}")},
            "common_http_protocol_options": {"idle_timeout": "7s"},
        }}]});
        if tls {
            chain["transport_socket"] = json!({"typed_config": {}});
        }
        json!({"name": format!("default/eg/{port}"), "active_state": {"listener": {
            "name": format!("default/eg/{port}"),
            "address": {"socket_address": {"address": "0.0.0.0", "port_value": port}},
            "per_connection_buffer_limit_bytes": buffer,
            "filter_chains": [chain],
        }}})
    }

    fn cluster(name: &str, most: u32) -> Value {
        json!({"cluster": {"name": name, "circuit_breakers": {"thresholds": [{"max_connections": most}]}}})
    }

    #[test]
    fn what_a_control_plane_has_sent_is_read_where_it_is_in_force() {
        let routes = |port: u16, to: &str| {
            json!({"route_config": {"name": format!("routes-{port}"),
            "virtual_hosts": [{"routes": [{"route": {"cluster": to, "timeout": "3s"}}]}]}})
        };
        let dump = json!({"configs": [
            {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {"node": {}}},
            {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "dynamic_listeners": [
                {"active_state": {"listener": {"name": "stats", "filter_chains": [{"filters": []}]}}},
                listener(10080, 4096, false), listener(10443, 8192, true), listener(8080, 1024, false)]},
            {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
                "dynamic_active_clusters": [cluster("other", 1), cluster("app", 77)],
                "dynamic_warming_clusters": [cluster("app", 99)]},
            {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump",
                "dynamic_route_configs": [routes(8080, "other"), routes(10080, "app"), routes(10443, "app")]},
        ]});
        let levels = |at: &str, is_secure| {
            let met = Met::at(at.parse().unwrap(), is_secure);
            let document = document(&dump, &met).unwrap();
            super::super::effective::read(&document, vec![met], &Catalog::builtin(), None).levels
        };
        let clear = levels("10.96.7.7:80", false);
        for (id, level) in [
            ("per_connection_buffer_limit", "4k"),
            ("keepalive_timeout", "7s"),
            ("max_connections", "77"),
            ("route_timeout", "3s"),
        ] {
            assert_eq!(clear[id], level, "{id}");
        }
        assert_eq!(
            levels("10.96.7.7:443", true)["per_connection_buffer_limit"],
            "8k"
        );
        let other = levels("10.96.7.7:8080", false);
        assert_eq!(other["per_connection_buffer_limit"], "1k");
        assert_eq!(other["max_connections"], "1");
        assert!(document(&json!({}), &Met::at("1.2.3.4:5".parse().unwrap(), false)).is_none());
    }
}
