//! Puts settings into force by path, and checks that nothing else is touched.

use proptest::prelude::*;
use weir_configuration::document::{self, Dialect};
use weir_configuration::{Source, WantedSetting};
use weir_envoy::language::Bootstrap;
use weir_parameters::Parameter;

use super::{Users, all, named, set};
use crate::languages::support::{make_source, must_have, row, text};

fn integer(context: &str, at: &str) -> Parameter {
    value(r#"{"integer": {"min": 0, "max": 1000000}}"#, context, at, "{value}")
}

fn duration(context: &str, at: &str) -> Parameter {
    let level = r#"{"duration": {"min": "1ms", "max": "24h", "step": "1ms"}}"#;
    value(level, context, at, r#"\"{seconds}s\""#)
}

fn value(level: &str, context: &str, at: &str, text: &str) -> Parameter {
    row(
        level,
        &format!(r#"{{"value": {{"context": "{context}", "at": "{at}"}}}}"#),
        &format!(r#"[{{"context": "{context}", "at": "{at}", "text": "{text}"}}]"#),
    )
}

/// Returns a row with a level that writes nothing.
fn optional(context: &str, at: &str, text: &str) -> Parameter {
    let mut row = value("\"switch\"", context, at, text);
    row.writes[0].only = vec!["on".to_owned()];
    row
}

fn change(source: &Source, dialect: &'static dyn Dialect, row: &Parameter, level: &str) -> Source {
    let wanted = [WantedSetting { row, level }];
    document::change(source, dialect, &wanted).unwrap_or_else(|e| panic!("{e}"))
}

fn changed(name: &str, row: &Parameter, level: &str) -> String {
    let users = Users::new(name);
    text(&change(&users.read(), users.dialect, row, level)).to_owned()
}

#[test]
fn only_the_value_changes() {
    let expected = named("front.yaml").replace("bytes: 32768 #", "bytes: 65536 #");
    let row = integer("listener", "/per_connection_buffer_limit_bytes");
    let after = changed("front.yaml", &row, "65536");
    assert!(after.contains("per_connection_buffer_limit_bytes: 65536 # 32 KiB\n"));
    // The other listener had none: its last line is that of its filter chain.
    let added = "              cluster: service1\n    per_connection_buffer_limit_bytes: 65536\n\n  clusters:";
    assert!(after.contains(added), "{after}");
    assert_eq!(
        after.replace("\n    per_connection_buffer_limit_bytes: 65536\n\n", "\n\n"),
        expected
    );

    let timeout = duration("cluster", "/connect_timeout");
    let after = changed("front.yaml", &timeout, "250ms");
    let expected = named("front.yaml")
        .replace("connect_timeout: 5s", "connect_timeout: 0.25s")
        .replace("connect_timeout: '1s'", "connect_timeout: '0.25s'");
    assert_eq!(after, expected);

    let dense = named("dense.json");
    let after = changed("dense.json", &timeout, "1s");
    assert_eq!(after, dense.replace("\"0.25s\"", "\"1s\""));
    assert_eq!(changed("dense.json", &timeout, "250ms"), dense);
}

#[test]
fn what_is_missing_is_made_in_the_documents_style() {
    let rows = [
        (
            "plain.json",
            overload_row(),
            "    },\n    \"overload_manager\": {\n        \"a\": {\n            \
                               \"b\": 7\n        }\n    }\n}\n\0",
        ),
        ("dense.json", overload_row(), "}, \"overload_manager\": {\"a\": {\"b\": 7}}}\0"),
        // Comments behind the last value stay there.
        (
            "front.yaml",
            overload_row(),
            "port_value: 443\noverload_manager:\n  a:\n    b: 7\n    # the end of the clusters\n\0",
        ),
        (
            "front-crlf.yaml",
            overload_row(),
            "port_value: 443\r\noverload_manager:\r\n  a:\r\n    b: 7\r\n",
        ),
        ("front.yaml", grpc_row(), "timeout: 0.25s, max_stream_duration: { grpc: 7 } }\n"),
        (
            "front.yaml",
            grpc_row(),
            "cluster: service2\n                  max_stream_duration:\n                    \
                                grpc: 7\n",
        ),
        (
            "tls.yaml",
            integer("bootstrap", "/admin/x"),
            "---\nadmin:\n    x: 7\nstatic_resources:\n",
        ),
        ("tls.yaml", integer("route", "/x"), "route: {cluster: app, x: 7,}\n"),
    ];
    for (name, row, part) in rows {
        // The end of the document is marked.
        must_have(changed(name, &row, "7") + "\0", &[part]);
    }
    let after = changed("tls.yaml", &integer("route", "/x"), "7");
    let count = after.matches(" x: 7").count();
    assert_eq!(count, 1, "both listeners share the filters");
}

#[test]
fn all_objects_of_a_context_are_changed() {
    let hcm = duration("hcm", "/stream_idle_timeout");
    let after = changed("anchors.yaml", &hcm, "5s");
    assert_eq!(
        after,
        named("anchors.yaml").replace("streamIdleTimeout: 30s", "streamIdleTimeout: 5s")
    );
    let idle = integer("transport", "/keep_alive/max_idle_conns_per_host");
    let enabled = "\"keep_alive\": {\"enabled\": true, \"max_idle_conns_per_host\": 5}";
    let flush = integer("reverse_proxy", "/flush_interval");
    let header = integer("server", "/max_header_bytes");
    for (name, row, part, times) in [
        ("pretty.json", flush, "\"flush_interval\": 5", 3),
        ("shop.json", header, "\"max_header_bytes\": 5", 2),
        ("tls.json", idle.clone(), enabled, 1),
        // Beside the user's, a transport that is new says which one it is.
        ("tls.json", idle, "\"protocol\": \"http\"", 2),
    ] {
        let after = changed(name, &row, "5");
        assert_eq!(after.matches(part).count(), times, "{after}");
    }
}

#[test]
fn an_anchors_value_changes_with_all_its_aliases() {
    let choice = "{\"choice\": [\"RANDOM\"]}";
    let policy = value(choice, "cluster", "/lb_policy", r#"\"{value}\""#);
    let breakers = integer("cluster", "/circuit_breakers/thresholds/0/max_connections");
    let before = named("anchors.yaml");
    for (row, level, from, to) in [
        (breakers, "9", "max_connections: 50", "max_connections: 9"),
        (policy, "RANDOM", "LEAST_REQUEST", "RANDOM"),
    ] {
        assert_eq!(changed("anchors.yaml", &row, level), before.replace(from, to));
    }
    // An alias alone becomes a value of its own.
    let at = "/static_resources/clusters/1/dns_refresh_rate";
    let refresh = set(&make_source("a.yaml", &before), at, Some("\"9s\""));
    let expected = before.replace("dns_refresh_rate: *connect", "dns_refresh_rate: 9s");
    assert_eq!(text(&refresh), expected);
}

#[track_caller]
fn must_become(name: &str, before: &str, at: &str, value: Option<&str>, after: &str) {
    assert_eq!(text(&set(&make_source(name, before), at, value)), after, "{before}");
}

#[test]
fn a_key_goes_with_its_line() {
    for (before, at, after) in [
        ("a: 1\nb: 2 # two\nc: 3\n", "/b", "a: 1\nc: 3\n"),
        ("a: 1\n# about c\nc:\n  d: 1\n  e: 2\n", "/c", "a: 1\n# about c\n"),
        ("l:\n- a: 1\n  b: 2\n", "/l/0/a", "l:\n- b: 2\n"),
        ("l:\n  a: 1\n", "/l/a", "l:\n  {}\n"),
        ("l: {a: 1, b: 2}\n", "/l/a", "l: {b: 2}\n"),
        ("l: {a: 1, b: 2}\n", "/l/b", "l: {a: 1}\n"),
        ("l: {a: 1}\n", "/l/a", "l: {}\n"),
        ("a: 1\n", "/x/y", "a: 1\n"),
        ("a: 1\r\nb: 2\r\n", "/b", "a: 1\r\n"),
        ("a: |\n  text\n  more\nb: 2", "/b", "a: |\n  text\n  more"),
    ] {
        must_become("a.yaml", before, at, None, after);
    }
    let json = "{\n  \"a\": 1,\n  \"b\": {\"c\": 2}\n}\n";
    for (at, after) in [
        ("/a", "{\n  \"b\": {\"c\": 2}\n}\n"),
        ("/b", "{\n  \"a\": 1\n}\n"),
        ("/b/c", "{\n  \"a\": 1,\n  \"b\": {}\n}\n"),
    ] {
        must_become("a.json", json, at, None, after);
    }
}

#[test]
fn kinds_of_values_replace_each_other() {
    #[rustfmt::skip]
    let rows = [
        ("a: 1 # c\n", "/a", "{\"b\": [1, {\"c\": 2}]}",
         "a:\n  b:\n    - 1\n    - c: 2 # c\n"),
        ("a:\n  b: 1\nc: 2\n", "/a", "5", "a: 5\nc: 2\n"),
        ("a:\n# x\nc: 2\n", "/a/b", "5", "a:\n  b: 5\n# x\nc: 2\n"),
        ("a:   'x y'\n", "/a", "\"it's\"", "a:   'it''s'\n"),
        ("a: x\n", "/a", "\"yes\"", "a: \"yes\"\n"),
        ("a: x\n", "/a", "\"12\"", "a: \"12\"\n"),
        ("a: \"x\"\n", "/a", "true", "a: true\n"),
        ("a: {}\n", "/a/b", "1", "a:\n  b: 1\n"),
        ("a: [1, {b: 1}]\n", "/a/1/c", "\"x\"", "a: [1, {b: 1, c: x}]\n"),
        ("- 1\n- a: 2\n  b: 3\n", "/1/c", "1", "- 1\n- a: 2\n  b: 3\n  c: 1\n"),
        ("a: 1", "/b", "1", "a: 1\nb: 1"),
        // Lists, braces and quotes are written as those that are there.
        ("l:\n- a: 1\n", "/m", "[{\"x\": 1, \"p\": [2, {\"z\": \"w\"}]}]",
         "l:\n- a: 1\nm:\n- p:\n  - 2\n  - z: w\n  x: 1\n"),
        ("l:\n  - a: 1\n", "/l/-", "{\"x\": 1, \"@type\": {\"p\": 2}}",
         "l:\n  - a: 1\n  - \"@type\":\n      p: 2\n    x: 1\n"),
        ("a: { b: 1 }\n", "/a/c", "{\"d\": [\"e\"]}", "a: { b: 1, c: { d: [e] } }\n"),
        ("a: {\"b\": 1}\n", "/a/c", "{\"d\": \"e\"}", "a: {\"b\": 1, \"c\": {\"d\": \"e\"}}\n"),
        ("{a}\n#", "/a/b", "77", "{a: {b: 77}}\n#"),
        ("{a }\n", "/a", "77", "{a: 77 }\n"),
        ("{x, a: }\n", "/a/b", "77", "{x, a: {b: 77} }\n"),
        ("{a}\n", "/c", "1", "{a, c: 1}\n"),
        ("\"a\": 1\n", "/b", "{\"d\": \"e\"}", "\"a\": 1\n\"b\":\n  \"d\": \"e\"\n"),
    ];
    for (before, at, value, after) in rows {
        must_become("a.yaml", before, at, Some(value), after);
    }
    #[rustfmt::skip]
    let rows = [
        ("{}", "/a/b", "1", "{\"a\": {\"b\": 1}}"),
        ("{\n\t\"a\": {}\n}\n", "/a/b", "1", "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n"),
        ("{\n\t\"a\": null\n}\n", "/a/b", "1", "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n"),
        ("{\n  \"a\": [1]\n}\n", "/b", "[2, 3]", "{\n  \"a\": [1],\n  \"b\": [2, 3]\n}\n"),
        ("{\n  \"a\": [\n    1\n  ]\n}\n", "/b", "[2]",
         "{\n  \"a\": [\n    1\n  ],\n  \"b\": [\n    2\n  ]\n}\n"),
        ("{\"a\":[1,{}]}", "/a/1/x~1y~0", "\"\\u00e9\"", "{\"a\":[1,{\"x/y~\": \"é\"}]}"),
    ];
    for (before, at, value, after) in rows {
        must_become("a.json", before, at, Some(value), after);
    }
}

#[test]
fn a_context_of_another_proxy_is_refused() {
    let users = Users::new("shop.json");
    let row = &integer("cluster", "/x");
    let wanted = [WantedSetting { row, level: "1" }];
    let error = document::change(&users.read(), users.dialect, &wanted).unwrap_err();
    let message = "`row` is written into `cluster`, which is no part of Caddy's configuration";
    assert_eq!(error.what, message);
}

fn list_rows(name: &str, dialect: &'static dyn Dialect) -> Vec<(Parameter, [&'static str; 2])> {
    let switch = ["off", "on"];
    let mut rows = match dialect.name() {
        "Envoy" => vec![
            (integer("listener", "/per_connection_buffer_limit_bytes"), ["32768", "65536"]),
            (duration("cluster", "/connect_timeout"), ["1s", "250ms"]),
            (integer("cluster", "/per_connection_buffer_limit_bytes"), ["1024", "4096"]),
            (duration("hcm", "/stream_idle_timeout"), ["5s", "30s"]),
            (duration("route", "/timeout"), ["1s", "15s"]),
            (optional("hcm", "/generate_request_id", "false"), switch),
            (optional("listener", "/enable_reuse_port", "true"), switch),
            (optional("bootstrap", "/stats_flush_interval", r#"\"9s\""#), switch),
        ],
        _ => vec![
            (integer("server", "/max_header_bytes"), ["4096", "8192"]),
            (integer("transport", "/keep_alive/max_idle_conns_per_host"), ["5", "500"]),
            (integer("reverse_proxy", "/flush_interval"), ["1", "2"]),
            (optional("server", "/strict_sni_host", "true"), switch),
            (optional("root", "/apps/http/grace_period", r#"\"9s\""#), switch),
            (optional("reverse_proxy", "/buffer_requests", "true"), switch),
        ],
    };
    // There a timeout is shared with a field that is none of the row's.
    rows.retain(|(row, _)| {
        name != "anchors.yaml" || row.writes[0].at.as_deref() != Some("/connect_timeout")
    });
    rows
}

#[test]
fn the_checkers_accept_all_changes_together() {
    for name in all() {
        let users = Users::new(name);
        let rows = list_rows(name, users.dialect);
        let wanted = rows.iter().map(|(row, [_, level])| WantedSetting { row, level });
        let wanted: Vec<_> = wanted.collect();
        let changed = document::change(&users.read(), users.dialect, &wanted).unwrap();
        let again = document::change(&changed, users.dialect, &wanted).unwrap();
        assert_eq!(again, changed, "{name}: what is in force is changed again");
        super::adapted::checked_copy(name, &changed, users.dialect);
    }
}

proptest! {
    /// Setting one level, another, and the first again gives the bytes of the first, for any row.
    #[test]
    fn there_and_back_is_nowhere(
        name in prop::sample::select(all().filter(|name| *name != "many.yaml").collect::<Vec<_>>()),
        which in 0usize..8,
        first in 0usize..2,
    ) {
        let users = Users::new(name);
        let rows = list_rows(name, users.dialect);
        let (row, levels) = &rows[which % rows.len()];
        // Other keys may stand behind this one in the user's file; from here on it is the last.
        let start = change(&users.read(), users.dialect, row, levels[1 - first]);
        let start = change(&start, users.dialect, row, levels[first]);
        let there = change(&start, users.dialect, row, levels[1 - first]);
        prop_assert_eq!(&change(&there, users.dialect, row, levels[1 - first]), &there);
        prop_assert_eq!(change(&there, users.dialect, row, levels[first]), start);
    }

    /// Any text is either read or refused with a place in it; a document that was read keeps its value when it is set
    /// again.
    #[test]
    fn any_text_is_read_or_refused(text in "(\\{|\\}|\\[|\\]|a|b|: ?|, |- |\n|  |\"|'|#|&x |\\*x|1|\\||é){0,24}") {
        for name in ["a.yaml", "a.json"] {
            let source = make_source(name, &text);
            let format = Bootstrap.format(name.as_ref());
            let edit = document::Edit { at: document::Pointer::parse("/a/b"), value: Some("77".into()) };
            match document::set(&source, format, std::slice::from_ref(&edit)) {
                Ok(once) => {
                    let twice = document::set(&once, format, &[edit]);
                    prop_assert_eq!(twice.as_ref(), Ok(&once), "{}", &once.files[0].text);
                }
                Err(error) => prop_assert!(error.line <= text.split('\n').count()),
            }
        }
    }
}

#[test]
fn an_item_that_a_row_names_comes_and_goes_with_its_list() {
    let writes = r#"[
        {"context": "hcm", "at": "/access_log/0/name", "text": "\"log\"", "only": ["on"]},
        {"context": "hcm", "at": "/access_log/0/typed_config/path", "text": "\"{logs}/a.log\"",
         "only": ["on"]}]"#;
    let effective = r#"{"value": {"context": "hcm", "at": "/access_log/0/name"}}"#;
    let row = crate::languages::support::row(r#""switch""#, effective, writes);
    let hcm = "\"@type\": a.HttpConnectionManager, \"stat_prefix\": web";
    let without = bootstrap_with(hcm);
    let with = set_level(&row, &without, "on");
    let log =
        r#""access_log": [{"name": "log", "typed_config": {"path": "/var/log/envoy/a.log"}}]"#;
    assert!(with.contains(log), "{with}");
    assert_eq!(set_level(&row, &with, "off"), without);
    let logged = bootstrap_with(&format!("{hcm}, access_log: [{{name: mine}}]"));
    assert_eq!(set_level(&row, &logged, "on"), logged, "the user's log keeps its file");
}

#[test]
fn several_keys_of_one_object_go_at_once() {
    let document = "{\"a\": 1, \"b\": {\"c\": 2, \"d\": 3}, \"e\": 4}\n";
    let block = "a: 1\nb:\n  c: 2 # two\n  d: 3\n# four\ne: 4\n";
    #[rustfmt::skip]
    let rows = [
        (&["/a", "/b/d"][..], "{\"b\": {\"c\": 2}, \"e\": 4}\n",
         "b:\n  c: 2 # two\n# four\ne: 4\n"),
        (&["/a", "/b"], "{\"e\": 4}\n", "e: 4\n"),
        // What is in `b` goes with it.
        (&["/b", "/b/c", "/e"], "{\"a\": 1}\n", "a: 1\n# four\n"),
        (&["/b/d", "/b/c", "/x", "/a/x"], "{\"a\": 1, \"b\": {}, \"e\": 4}\n",
         "a: 1\nb:\n  {}\n# four\ne: 4\n"),
        (&["/e", "/a"], "{\"b\": {\"c\": 2, \"d\": 3}}\n", "b:\n  c: 2 # two\n  d: 3\n# four\n"),
    ];
    for (gone, in_json, in_yaml) in rows {
        let edits: Vec<_> = gone
            .iter()
            .map(|at| document::Edit { at: document::Pointer::parse(at), value: None })
            .collect();
        for (name, before, expected) in [("a.json", document, in_json), ("a.yaml", block, in_yaml)]
        {
            let format = Bootstrap.format(name.as_ref());
            let after =
                document::set(&make_source(name, before), format, &edits).expect("taken out");
            assert_eq!(text(&after), expected, "{gone:?}");
        }
    }
}

fn overload_row() -> Parameter {
    integer("bootstrap", "/overload_manager/a/b")
}

fn grpc_row() -> Parameter {
    integer("route", "/max_stream_duration/grpc")
}

fn bootstrap_with(manager: &str) -> String {
    format!(
        "static_resources:\n  listeners:\n  - filter_chains:\n    - filters:\n      - typed_config: \
         {{{manager}}}\n"
    )
}

fn set_level(row: &Parameter, text: &str, level: &str) -> String {
    let source = crate::languages::support::make_source("envoy.yaml", text);
    let wanted = [weir_configuration::WantedSetting { row, level }];
    let changed = document::change(&source, &Bootstrap, &wanted).unwrap();
    changed.files[0].text.clone()
}
