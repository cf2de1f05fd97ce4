//! Envoy's effective configuration, read back over its administration interface.

use std::fs;

use serde_json::{Map, Value, json};
use weir_configuration::document::effective;
use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, EffectiveFrom, Parameter};
use weir_sut::route_match::{RequestRoute, RouteMatch};
use weir_sut::{Configuration, Effective, RunningProxy, SutError, admin};

use super::document::{Document, find_config};
use super::language::Bootstrap;
use super::own;

/// Reads the configuration of a process: its command line from `/server_info`, the rest from `/config_dump`.
pub(super) fn of_process(
    configuration: &Configuration,
    proxy: &RunningProxy,
    catalog: &Catalog,
) -> Result<Effective, SutError> {
    let info = json_of("/server_info", &admin::get(configuration, "/server_info")?)?;
    let dump = json_of("/config_dump", &admin::get(configuration, "/config_dump")?)?;
    let document = Document {
        arguments: info["command_line_options"].clone(),
        bootstrap: merge_dump(&dump)
            .ok_or_else(|| unreadable("/config_dump", "has no bootstrap"))?,
    };
    let nofile = Some(proxy.nofile()?);
    Ok(read(&document, configuration.route_matches(), catalog, nofile))
}

/// Reads the configuration that a process would have, from its file.
pub(super) fn of_file(
    configuration: &Configuration,
    catalog: &Catalog,
) -> Result<Effective, SutError> {
    let file = configuration.file();
    let bootstrap = if configuration.own.is_some() {
        own::bootstrap(configuration)?
    } else {
        let text = fs::read_to_string(&file).map_err(SutError::file("read", &file))?;
        json_of("its configuration", &text)?
    };
    let document = Document { arguments: options(&configuration.arguments), bootstrap };
    Ok(read(&document, configuration.route_matches(), catalog, None))
}

/// Returns the bootstrap of a dump, with the listeners and clusters that are in force. The list of extensions that
/// Envoy was built with is left out: it is the same for all arms, and thousands of lines long.
fn merge_dump(dump: &Value) -> Option<Value> {
    let configs = dump.get("configs")?.as_array()?;
    let mut bootstrap = find_config(configs, ".BootstrapConfigDump")?.get("bootstrap")?.clone();
    bootstrap.as_object_mut()?.remove("node");
    #[rustfmt::skip]
    let rows = [
        (".ListenersConfigDump", "static_listeners", "listener", "listeners"),
        (".ClustersConfigDump", "static_clusters", "cluster", "clusters"),
    ];
    for (kind, list, one, into) in rows {
        // What is empty is left out.
        let in_force = match find_config(configs, kind)?.get(list) {
            Some(list) => list.as_array()?.as_slice(),
            None => &[],
        };
        let in_force =
            Value::Array(in_force.iter().filter_map(|entry| entry.get(one).cloned()).collect());
        let resources = bootstrap
            .as_object_mut()?
            .entry("static_resources")
            .or_insert_with(|| json!({}))
            .as_object_mut()?;
        resources.insert(into.to_owned(), in_force);
    }
    Some(bootstrap)
}

/// Converts the words of a command line to the form of `/server_info`.
fn options(words: &[String]) -> Value {
    let mut options = Map::new();
    let mut remaining = words.iter().peekable();
    while let Some(word) = remaining.next() {
        let value = match remaining.next_if(|next| !next.starts_with("--")) {
            Some(value) => serde_json::from_str(value).unwrap_or_else(|_| json!(value)),
            None => Value::Bool(true),
        };
        options.insert(word.trim_start_matches('-').replace('-', "_"), value);
    }
    Value::Object(options)
}

/// Reads the configuration of an Envoy with a control plane, from its answers to `/config_dump` and, for its command
/// line, `/server_info`.
pub(super) fn read_report(
    text: String,
    meeting: &RequestRoute,
    catalog: &Catalog,
) -> Result<Effective, SutError> {
    let mut documents = Vec::new();
    for document in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        documents.push(
            document
                .map_err(|error| unreadable("/config_dump", &format!("is no JSON: {error}")))?,
        );
    }
    let document = super::reported::document(&documents, meeting)
        .map_err(|why| unreadable("/config_dump", why))?;
    let route_matches = vec![RouteMatch::at(meeting.at, meeting.is_secure)];
    Ok(read(&document, route_matches, catalog, None))
}

pub(super) fn read(
    document: &Document,
    route_matches: Vec<RouteMatch>,
    catalog: &Catalog,
    nofile: Option<u64>,
) -> Effective {
    let Document { arguments, bootstrap } = document;
    let text = json!({"command_line_options": arguments, "bootstrap": bootstrap});
    let routes: Vec<(bool, RouteMatch)> =
        route_matches.into_iter().map(|route_match| (route_match.is_secure, route_match)).collect();
    let (text, rows) = (format!("{text:#}\n"), (catalog, ProxyKind::Envoy));
    Effective::of_routes(text, rows, &routes, is_of_tls, |row, route_match| {
        level(row, document, route_match, nofile)
    })
}

/// Returns true if a row is about TLS towards clients.
fn is_of_tls(row: &Parameter) -> bool {
    matches!(&row.effective, EffectiveFrom::Value { context, .. } if context.name() == "tls")
}

fn level(
    row: &Parameter,
    document: &Document,
    route_match: &RouteMatch,
    nofile: Option<u64>,
) -> Option<String> {
    let value = match &row.effective {
        EffectiveFrom::Value { context, .. } => match log_level(row, document, route_match) {
            Some(level) => return Some(level),
            None => document
                .context(context.name(), route_match)
                .and_then(|object| effective(&Bootstrap, row, object))
                .map(Value::to_string),
        },
        EffectiveFrom::ProcessLimit { .. } => nofile.map(|limit| limit.to_string()),
        _ => None,
    };
    row.read_back(value.as_deref()).or(value)
}

/// Returns the level of a row that switches a log on, if there is a log of any kind (`StdoutAccessLog` has no path) in
/// the connection manager or its listener.
fn log_level(row: &Parameter, document: &Document, route_match: &RouteMatch) -> Option<String> {
    let mut writes = row.writes.iter();
    let write = writes.find(|write| write.text.contains("{logs}"))?;
    let (list, _) = write.at.as_deref()?.split_once("/0/")?;
    let is_on = has_log(document, route_match, "hcm", list)
        || has_log(document, route_match, "listener", list);
    write.only.first().filter(|_| is_on).cloned()
}

fn has_log(document: &Document, route_match: &RouteMatch, context: &str, list: &str) -> bool {
    let logs = document.context(context, route_match).and_then(|it| it.pointer(list));
    logs.is_some_and(|logs| match logs {
        Value::Array(logs) => !logs.is_empty(),
        logs => !logs.is_null(),
    })
}

fn json_of(what: &str, text: &str) -> Result<Value, SutError> {
    serde_json::from_str(text).map_err(|error| unreadable(what, &format!("is no JSON: {error}")))
}

fn unreadable(what: &str, why: &str) -> SutError {
    SutError::Unreadable { kind: ProxyKind::Envoy, what: format!("{what} {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the way to one listener: the one in clear with weir's name.
    fn anywhere() -> Vec<RouteMatch> {
        vec![RouteMatch::at("127.0.0.1:9".parse().unwrap(), false)]
    }

    #[test]
    fn a_log_of_any_kind_is_one() {
        let stdout = json!([{"name": "a", "typed_config": {"@type": "type.googleapis.com/b.StdoutAccessLog"}}]);
        let file = json!([{"typed_config": {"path": "/var/log/envoy.log"}}]);
        for (of_manager, of_listener, expected) in [
            (stdout.clone(), json!(null), "on"),
            (file, json!([]), "on"),
            (json!([]), stdout.clone(), "on"),
            (stdout[0].clone(), json!(null), "on"),
            (json!([]), json!(null), "off"),
        ] {
            let manager = json!({
                "@type": "type.googleapis.com/a.HttpConnectionManager", "access_log": of_manager,
            });
            let listener = json!({
                "name": "clear",
                "access_log": of_listener,
                "filter_chains": [{"filters": [{"typed_config": manager}]}],
            });
            let document = Document {
                bootstrap: json!({"static_resources": {"listeners": [listener]}}),
                ..Document::default()
            };
            let levels = read(&document, anywhere(), &Catalog::builtin(), None).levels;
            assert_eq!(levels["access_log"], expected);
        }
    }

    #[test]
    fn a_cluster_that_says_it_by_itself_is_read() {
        let document = Document {
            bootstrap: json!({"static_resources": {"clusters": [
                {"name": "origin", "common_http_protocol_options": {"max_requests_per_connection": 1}},
            ]}}),
            ..Document::default()
        };
        let levels = read(&document, anywhere(), &Catalog::builtin(), None).levels;
        assert_eq!(levels["origin_keepalive_requests"], "1");
    }

    #[test]
    fn what_is_in_force_counts_and_not_what_was_written() {
        let dump = json!({"configs": [
            {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {
                "node": {"extensions": []},
                "stats_flush_interval": "0.250s",
                "static_resources": {"listeners": [{"name": "clear"}], "clusters": []},
            }},
            {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "static_listeners": [
                {"listener": {"name": "clear", "tcp_backlog_size": 99, "enable_reuse_port": false}},
            ]},
            {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "static_clusters": [
                {"cluster": {"name": "origin", "circuit_breakers": {"thresholds": [
                    {"max_connections": 7},
                ]}}},
            ]},
        ]});
        let document = Document {
            arguments: json!({"concurrency": 2}),
            bootstrap: merge_dump(&dump).unwrap(),
        };
        let effective = read(&document, anywhere(), &Catalog::builtin(), None);
        for (id, level) in [
            ("concurrency", "2"),
            ("backlog", "99"),
            ("reuseport", "off"),
            ("max_connections", "7"),
            ("max_requests", "1024"),
            ("stats_flush_interval", "250ms"),
            ("keepalive_requests", "unlimited"),
            ("gzip", "off"),
        ] {
            assert_eq!(effective.levels[id], level, "{id}");
        }
        assert!(!effective.text.contains("extensions"));
    }

    #[test]
    fn a_dump_without_clusters_or_listeners_is_read_all_the_same() {
        let dump = json!({"configs": [
            {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {
                "stats_flush_interval": "0.250s",
            }},
            {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "static_listeners": [
                {"listener": {"name": "clear", "tcp_backlog_size": 99}},
            ]},
            {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump"},
        ]});
        let document = Document { arguments: json!({}), bootstrap: merge_dump(&dump).unwrap() };
        let levels = read(&document, anywhere(), &Catalog::builtin(), None).levels;
        assert_eq!(levels["backlog"], "99");
        assert_eq!(levels["stats_flush_interval"], "250ms");
        let catalog = Catalog::builtin();
        let defaults = catalog.defaults(ProxyKind::Envoy);
        assert_eq!(levels["max_connections"], defaults["max_connections"]);
    }

    #[test]
    fn of_a_list_the_item_counts_that_a_row_means() {
        let levels_of = |thresholds: Value| {
            let document = Document {
                arguments: json!({}),
                bootstrap: json!({
                    "overload_manager": {"resource_monitors": [
                        {"name": "envoy.resource_monitors.fixed_heap"},
                        {"name": "envoy.resource_monitors.global_downstream_max_connections",
                         "typed_config": {"max_active_downstream_connections": "9"}},
                    ]},
                    "static_resources": {"clusters": [
                        {"name": "origin", "circuit_breakers": {"thresholds": thresholds}},
                    ]},
                }),
            };
            read(&document, anywhere(), &Catalog::builtin(), None).levels
        };
        let high = json!({"priority": "HIGH", "max_connections": 3});
        let levels = levels_of(json!([high, {"max_connections": 7}]));
        assert_eq!(levels["max_connections"], "7");
        assert_eq!(levels["max_active_downstream_connections"], "9");
        assert_eq!(levels_of(json!([high]))["max_connections"], "1024");
    }

    #[test]
    fn the_command_line_is_read_as_envoy_tells_it() {
        let words = "--concurrency 2 --cpuset-threads --service-node a".split(' ');
        let words: Vec<String> = words.map(str::to_owned).collect();
        let expected = json!({"concurrency": 2, "cpuset_threads": true, "service_node": "a"});
        assert_eq!(options(&words), expected);
    }

    #[test]
    fn a_dump_of_something_else_is_none() {
        for dump in [json!({}), json!({"configs": []}), json!([1])] {
            assert_eq!(merge_dump(&dump), None);
        }
    }
}
