//! Values that do not belong to a row stay as they are, next to any rows of the catalog.

use weir_caddy::language::CaddyJson;
use weir_configuration::document::{self, Dialect};
use weir_configuration::{Source, WantedSetting};
use weir_envoy::language::Bootstrap;
use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, Parameter};

use super::{Users, all};
use crate::languages::support::{make_source, must_have, text};

/// Puts settings of the catalog into a document; returns its new text, or the error's message.
fn settle(name: &str, before: &str, settings: &[(&str, &str)]) -> Result<String, String> {
    let (dialect, kind): (&dyn Dialect, _) = if name.starts_with("caddy") {
        (&CaddyJson, ProxyKind::Caddy)
    } else {
        (&Bootstrap, ProxyKind::Envoy)
    };
    let catalog = Catalog::builtin();
    let wanted = settings
        .iter()
        .map(|(id, level)| WantedSetting { row: catalog.get(kind, id).unwrap(), level });
    let wanted: Vec<WantedSetting<'_>> = wanted.collect();
    let after = document::change(&make_source(name, before), dialect, &wanted)
        .map_err(|error| error.to_string())?;
    let again = document::change(&after, dialect, &wanted).unwrap();
    assert_eq!(text(&again), text(&after), "what is in force is changed again");
    Ok(text(&after).to_owned())
}

#[test]
fn an_item_of_a_list_is_the_one_that_a_row_means() {
    let monitors =
        |items: &str| format!("overload_manager:\n  resource_monitors:\n{items}\nadmin: {{}}\n");
    let heap =
        "  - name: envoy.resource_monitors.fixed_heap\n    typed_config: {max_heap_size_bytes: 9}";
    let monitor = r#"  - name: envoy.resource_monitors.global_downstream_max_connections
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig
      max_active_downstream_connections: "7""#;
    let with = set_connections(&monitors(heap), "7");
    assert_eq!(with, monitors(&format!("{heap}\n{monitor}")));
    assert_eq!(set_connections(&with, "8"), with.replace("\"7\"", "\"8\""));
    assert_eq!(set_connections(&with, "unlimited"), monitors(heap));
    let first = monitors(&format!("{monitor}\n{heap}"));
    assert_eq!(set_connections(&first, "unlimited"), monitors(heap));
    let alone = set_connections(&monitors(monitor), "unlimited");
    assert_eq!(alone, "overload_manager:\n  {}\nadmin: {}\n");

    let json = "{\n  \"overload_manager\": {\n    \"resource_monitors\": [\n      {\"name\": \"a\"}\n    ]\n  }\n}\n";
    let settings = [("max_active_downstream_connections", "7")];
    let with = settle("envoy.json", json, &settings).unwrap();
    let expected = json.replace("\"a\"}", "\"a\"},\n      {\n        \"name\": \"envoy");
    assert!(with.starts_with(&expected[..expected.find("envoy").unwrap()]), "{with}");
    let unlimited = [("max_active_downstream_connections", "unlimited")];
    let without = settle("envoy.json", &with, &unlimited);
    assert_eq!(without.as_deref(), Ok(json));
    let empty = "overload_manager: {resource_monitors: []}\n";
    let with = settle("envoy.yaml", empty, &settings).unwrap();
    must_have(with, &["overload_manager: {resource_monitors: [{name: "]);
}

#[test]
fn limits_are_those_of_all_requests() {
    let high = "{priority: HIGH, max_connections: 3}";
    let new = format!("{high}, {{max_connections: 7, max_requests: 8}}");
    assert_eq!(set_limits(high), clusters_with(&new));
    let both = format!("{high}, {{priority: DEFAULT, max_connections: 5}}");
    let changed = both.replace("s: 5", "s: 7, max_requests: 8");
    assert_eq!(set_limits(&both), clusters_with(&changed));
}

fn caddy(server: &str, more: &str) -> String {
    format!("{{\"apps\":{{\"http\":{{\"servers\":{{\"a\":{server}}}}}}}{more}}}")
}

#[test]
fn an_object_that_is_there_keeps_what_is_in_it() {
    let both = [("compression", "gzip"), ("gzip_comp_level", "7")];
    for settings in [both, [both[1], both[0]]] {
        #[rustfmt::skip]
        let rows = [
            (r#""encodings":{"gzip":{"level":3}}"#, r#""encodings":{"gzip":{"level":7}}"#),
            (r#""encodings":{"gzip":{}}"#, r#""encodings":{"gzip":{"level": 7}}"#),
            (r#""encodings":{"gzip":null}"#, r#""encodings":{"gzip":{"level": 7}}"#),
            (r#""encodings":{}"#, r#""encodings":{"gzip": {"level": 7}}"#),
        ];
        for (before, after) in rows {
            let set = settle("caddy.json", &encoder(before), &settings).unwrap();
            let prefer = format!("{after}, \"prefer\": [\"gzip\"]");
            assert_eq!(set, encoder(&prefer), "{before}");
        }
    }
    let only = settle("caddy.json", &encoder(r#""encodings":{"gzip":{"level":3}}"#), &both[..1]);
    assert!(only.unwrap().contains(r#"{"gzip":{"level":3}}"#));
    let metrics = caddy(r#"{"metrics":{"per_host":true}}"#, "");
    assert_eq!(settle("caddy.json", &metrics, &[("metrics", "on")]), Ok(metrics));
}

#[test]
fn changes_within_each_other_are_refused() {
    for (name, text) in
        [("a.json", "{\"a\": {\"b\": 1, \"c\": 2}}"), ("a.yaml", "a:\n  b: 1\n  c: 2\n")]
    {
        for inner in ["/a/b", "/a/d"] {
            let edits = [edit(inner, "5"), edit("/a", "{\"x\": 1}")];
            let format = Bootstrap.format(name.as_ref());
            let error = document::set(&make_source(name, text), format, &edits).unwrap_err();
            let message = "this is to be changed, and what it is in to be replaced as a whole";
            assert_eq!(error.what, message);
        }
    }
}

#[test]
fn settings_of_one_new_object_do_not_undo_each_other() {
    let proxy = r#"{"routes":[{"handle":[{"handler":"reverse_proxy"}]}]}"#;
    let settings = [("origin_keepalive", "5"), ("origin_keepalive_timeout", "7s")];
    let set = settle("caddy.json", &caddy(proxy, ""), &settings).unwrap();
    let parts = [
        "\"max_idle_conns_per_host\": 5",
        "\"idle_timeout\": \"7s\"",
        "\"probe_interval\": \"30s\"",
    ];
    must_have(&set, &parts);
}

#[test]
fn a_log_of_the_users_stays_where_it_is() {
    let logged = r#"{"listen":[":80"],"logs":{}},"b":{"listen":[":81"]}"#;
    let logging = r#","logging":{"logs":{"default":{"exclude":["admin.api"]}}}"#;
    let before = caddy(logged, logging);
    let on = settle("caddy.json", &before, &[("access_log", "on")]).unwrap();
    let parts = [
        r#""logs":{}},"b""#,
        r#""b":{"listen":[":81"], "logs": {"default_logger_name": "weir"}}"#,
        r#""exclude":["admin.api", "http.log.access.weir"]"#,
    ];
    must_have(&on, &parts);
    let off = settle("caddy.json", &on, &[("access_log", "off")]).unwrap();
    assert!(off.contains(r#""exclude":["admin.api"]"#), "{off}");
    assert!(!off.contains("\"logs\":{}"), "{off}");

    let user_log = ", accessLog: [{name: mine}]";
    assert_eq!(switch_on(user_log, user_log), chains(user_log, user_log));
    let second = switch_on(user_log, "");
    assert!(
        second.starts_with(chains(user_log, "").split("statPrefix: a}").next().unwrap()),
        "{second}"
    );
    assert_eq!(second.matches("access.log").count(), 1, "{second}");
    let off = settle("envoy.yaml", &chains(user_log, user_log), &[("access_log", "off")]);
    assert_eq!(off, Ok(chains("", "")));
    // What the listener logs goes with it.
    let logging = listener("accessLog: [{name: mine}], ");
    let off = settle("envoy.yaml", &logging, &[("access_log", "off")]);
    assert_eq!(off, Ok(listener("")));
}

#[test]
fn a_cluster_goes_on_speaking_what_it_speaks() {
    let clusters =
        |cluster: &str| format!("static_resources: {{clusters: [{{name: a, {cluster}}}]}}\n");
    let settings = [("origin_keepalive_timeout", "7s"), ("origin_keepalive_requests", "9")];
    let set = |cluster: &str| settle("envoy.yaml", &clusters(cluster), &settings);
    let http2 = set("http2ProtocolOptions: {max_concurrent_streams: 3}, common_http_protocol_options: {idle_timeout: 5s, max_headers_count: 4}").unwrap();
    let parts = [
        "explicit_http_config: {http2_protocol_options: {max_concurrent_streams: 3}}",
        "idle_timeout: 7s",
        "max_requests_per_connection: 9",
        "max_headers_count: 4",
    ];
    must_have(&http2, &parts);
    let http1 = set("type: STATIC").unwrap();
    must_have(&http1, &["explicit_http_config: {http_protocol_options: {}}"]);
    let error = set("protocol_selection: USE_DOWNSTREAM_PROTOCOL").unwrap_err();
    let message = "/etc/proxy/envoy.yaml:1:31: `origin_keepalive_timeout` would change which protocol is spoken here";
    assert_eq!(error, message);
    // Without such an object the cluster says it itself, and no longer at a level that writes nothing.
    let options =
        "common_http_protocol_options: {max_requests_per_connection: 1, idle_timeout: 5s}";
    let unlimited = [("origin_keepalive_requests", "unlimited")];
    assert_eq!(
        settle("envoy.yaml", &clusters(options), &unlimited).unwrap(),
        clusters("common_http_protocol_options: {idle_timeout: 5s}")
    );
    // An object that is there already is in either spelling.
    let there = "typedExtensionProtocolOptions: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {useDownstreamProtocolConfig: {}}}";
    let output = set(there).unwrap();
    assert!(!output.contains("explicit_http_config"), "{output}");
}

/// Tries every row of the catalog: values at other places stay as they are.
#[test]
fn rows_leave_alone_what_is_not_theirs() {
    let catalog = Catalog::builtin();
    for name in all().filter(|name| !["many.yaml", "front-bom.yaml"].contains(name)) {
        let users = Users::new(name);
        let before = users.read();
        let kind = match users.dialect.name() {
            "Envoy" => ProxyKind::Envoy,
            _ => ProxyKind::Caddy,
        };
        for row in catalog.parameters(kind) {
            let tried = "on off 7 7s 4k gzip exact unlimited TLSv1_3";
            for level in tried.split(' ').filter_map(|level| row.check(level).ok()) {
                let wanted = [WantedSetting { row, level: &level }];
                // What has no place, or is shared with others, is refused.
                let Ok(after) = document::change(&before, users.dialect, &wanted) else {
                    continue;
                };
                let context = format!("{name}: {} = {level}", row.id);
                let [before, after] = [&before, &after].map(|it| leaves(it, users.dialect));
                for leaf in before.iter().filter(|(at, _)| !is_owned(row, at)) {
                    assert!(after.contains(leaf), "{context}: {leaf:?} is gone");
                }
            }
        }
    }
}

fn leaves(source: &Source, dialect: &'static dyn Dialect) -> Vec<(String, serde_json::Value)> {
    fn collect(at: &str, value: serde_json::Value, into: &mut Vec<(String, serde_json::Value)>) {
        match value {
            serde_json::Value::Object(map) => map
                .into_iter()
                .for_each(|(key, value)| collect(&format!("{at}/{key}"), value, into)),
            serde_json::Value::Array(list) => list
                .into_iter()
                .enumerate()
                .for_each(|(index, value)| collect(&format!("{at}/{index}"), value, into)),
            value => into.push((at.to_owned(), value)),
        }
    }
    let mut leaves = Vec::new();
    let format = dialect.format(&source.files[0].path);
    collect("", document::value(source, format).unwrap(), &mut leaves);
    leaves
}

/// Returns true if a place is one that some level of a row writes to, or within such a place.
fn is_owned(row: &Parameter, at: &str) -> bool {
    // Without a log, those of the user's go too.
    let is_log = row.id == "access_log";
    let mut places = row
        .writes
        .iter()
        .filter_map(|write| write.at.as_deref())
        .map(|at| at.split("/0/").next().filter(|_| is_log).unwrap_or(at));
    places.any(|place| plain(at).contains(&plain(place)))
}

fn plain(text: &str) -> String {
    text.replace('_', "").to_lowercase()
}

fn set_connections(before: &str, level: &str) -> String {
    let settings = [("max_active_downstream_connections", level)];
    settle("envoy.yaml", before, &settings).unwrap()
}

fn clusters_with(thresholds: &str) -> String {
    format!(
        "static_resources: {{clusters: [{{name: a, circuit_breakers: {{thresholds: [{thresholds}]}}}}]}}\n"
    )
}

fn set_limits(thresholds: &str) -> String {
    let settings = [("max_connections", "7"), ("max_requests", "8")];
    settle("envoy.yaml", &clusters_with(thresholds), &settings).unwrap()
}

fn encoder(inner: &str) -> String {
    caddy(&format!("{{\"routes\":[{{\"handle\":[{{\"handler\":\"encode\",{inner}}}]}}]}}"), "")
}

fn edit(at: &str, value: &str) -> document::Edit {
    document::Edit { at: document::Pointer::parse(at), value: Some(value.to_owned()) }
}

fn manager(more: &str) -> String {
    format!(
        "{{filters: [{{typed_config: {{\"@type\": a.HttpConnectionManager, statPrefix: a{more}}}}}]}}"
    )
}

fn chains(first: &str, second: &str) -> String {
    let (first, second) = (manager(first), manager(second));
    format!("static_resources: {{listeners: [{{filterChains: [{first}, {second}]}}]}}\n")
}

fn switch_on(first: &str, second: &str) -> String {
    settle("envoy.yaml", &chains(first, second), &[("access_log", "on")]).unwrap()
}

fn listener(log: &str) -> String {
    let chain = manager("");
    format!("static_resources: {{listeners: [{{{log}filterChains: [{chain}]}}]}}\n")
}
