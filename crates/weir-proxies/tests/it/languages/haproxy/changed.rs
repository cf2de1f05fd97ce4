//! Puts settings into force, and checks that nothing else is touched.

use proptest::prelude::*;
use weir_configuration::{Source, WantedSetting, diff};
use weir_haproxy::language as haproxy;
use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, Parameter};

use super::adapted::check;
use super::{Users, adaptable, small, text as named};
use crate::languages::support::{has, make_prefix, make_source, must_have, of_a_test, row, text};

const HAPROXY: &str = "/usr/sbin/haproxy";
const DURATION: &str = r#"{"duration": {"min": "1ms", "max": "24h", "step": "1ms"}}"#;

fn integer(context: &str, text: &str) -> Parameter {
    let name = text.split(" {").next().unwrap();
    row(
        r#"{"integer": {"min": 0, "max": 1000000}}"#,
        &format!(r#"{{"directive": {{"name": "{name}", "context": "{context}"}}}}"#),
        &format!(r#"[{{"context": "{context}", "text": "{text}"}}]"#),
    )
}

fn duration(name: &str) -> Parameter {
    row(
        DURATION,
        &format!(r#"{{"directive": {{"name": "{name}", "context": "defaults"}}}}"#),
        &format!(r#"[{{"context": "defaults", "text": "{name} {{value}}"}}]"#),
    )
}

/// Returns a row whose times are written without a unit.
fn milliseconds(name: &str) -> Parameter {
    row(
        DURATION,
        &format!(r#"{{"directive": {{"name": "{name}", "context": "defaults"}}}}"#),
        &format!(r#"[{{"context": "defaults", "text": "{name} {{milliseconds}}"}}]"#),
    )
}

/// Returns a row with three contradicting options for ending connections, and a level without any of them.
fn mode() -> Parameter {
    row(
        r#"{"choice": ["keep-alive", "server-close", "close", "default"]}"#,
        r#"{"directive": {"name": "option http-keep-alive", "context": "defaults"}}"#,
        r#"[{"context": "defaults", "text": "option http-keep-alive", "only": ["keep-alive"]},
            {"context": "defaults", "text": "option http-server-close", "only": ["server-close"]},
            {"context": "defaults", "text": "option httpclose", "only": ["close"]}]"#,
    )
}

/// Returns a row for an option that is written with `no` when it is off.
fn dontlognull() -> Parameter {
    row(
        "\"switch\"",
        r#"{"directive": {"name": "option dontlognull", "context": "defaults"}}"#,
        r#"[{"context": "defaults", "text": "option dontlognull", "only": ["on"]},
            {"context": "defaults", "text": "no option dontlognull", "only": ["off"]}]"#,
    )
}

fn flag(context: &str, name: &str) -> Parameter {
    row(
        "\"switch\"",
        &format!(r#"{{"listen_flag": {{"name": "{name}"}}}}"#),
        &format!(r#"[{{"context": "{context}", "text": "{name}", "only": ["on"]}}]"#),
    )
}

pub(super) fn set(source: &Source, row: &Parameter, level: &str) -> Source {
    haproxy::change(source, &[WantedSetting { row, level }]).unwrap_or_else(|e| panic!("{e}"))
}

fn difference(before: &Source, after: &Source) -> Vec<String> {
    let lines = diff(before, after);
    lines.lines().filter(|line| line.starts_with(['+', '-'])).skip(2).map(str::to_owned).collect()
}

#[test]
fn only_the_lines_that_must_change_do() {
    #[rustfmt::skip]
    let rows: [(_, _, _, &[&str]); 8] = [
        ("many", integer("global", "nbthread {value}"), "4",
         &["-    nbthread    2", "+    nbthread    4"]),
        ("from", integer("global", "maxconn {value}"), "7", &["-  maxconn 20000", "+  maxconn 7"]),
        ("tabs", duration("timeout connect"), "7s",
         &["-\ttimeout\tconnect\t5s", "+\ttimeout\tconnect\t7s"]),
        ("many", duration("timeout tunnel"), "1h", &["+    timeout tunnel          1h"]),
        // What is so already.
        ("from", integer("global", "maxconn {value}"), "20000", &[]),
        ("quoted", duration("timeout client"), "30s", &[]),
        // 5000 says that.
        ("debian", duration("timeout connect"), "5s", &[]),
        ("many", dontlognull(), "on", &[]),
    ];
    for (name, row, level, lines) in rows {
        let before = Users::new(name).read();
        let after = set(&before, &row, level);
        assert_eq!(difference(&before, &after), lines, "{name}: {}", row.id);
    }
}

#[test]
fn settings_go_where_users_would_write_them() {
    // The configuration, a row and its level, and a text that is there then so many times.
    #[rustfmt::skip]
    let rows = [
        // Proxies that say otherwise than their `defaults` are changed too.
        ("many", duration("timeout server"), "9s",
         "    timeout server          9000   # the reports are slow\n", 1),
        ("many", duration("timeout server"), "9s", "    balance leastconn\n    timeout server 9s\n", 1),
        ("many", duration("timeout client"), "2m", "    timeout client          2m\n", 1),
        ("debian", duration("timeout client"), "90s", "        timeout client  90000\n", 1),
        ("debian", duration("timeout queue"), "90s",
         "        timeout server  50000\n        timeout queue 90s\n\terrorfile 400", 1),
        ("debian", mode(), "keep-alive", "\toption\tdontlognull\n\toption\thttp-keep-alive\n", 1),
        ("debian", integer("frontend", "maxconn {value}"), "9",
         "\tbind *:80\n\tmaxconn 9\n\tdefault_backend app\n", 1),
        ("from", duration("timeout server"), "9s", "timeout server 9s", 3),
        // What is missing goes beside its like; without `defaults`, into the proxies.
        ("many", duration("timeout tunnel"), "1h",
         "    timeout check           10s\n    timeout tunnel          1h\n", 1),
        // In the unit of its like, where the row writes none.
        ("bare", milliseconds("timeout queue"), "3s", "  timeout server 30s\n  timeout queue 3s\n", 2),
        ("debian", milliseconds("timeout queue"), "3s", "  timeout queue 3000\n", 1),
        ("bare", duration("timeout queue"), "3s", "  timeout server 30s\n  timeout queue 3s\n", 2),
        // Options that contradict each other take turns, in the `defaults`, which hold whatever `.if`
        // says, and in all branches.
        ("macros", mode(), "close", "option httpclose\n", 4),
        ("many", mode(), "keep-alive", "option http-server-close", 0),
        ("many", mode(), "keep-alive",
         "    option                  dontlognull\n    option http-keep-alive\n", 1),
        ("many", mode(), "default", "http-keep-alive\n", 0),
        ("many", mode(), "default", "close", 0),
        ("many", dontlognull(), "off", "    no option                  dontlognull\n", 1),
        ("tabs", integer("bind", "maxconn {value}"), "5", "\tbind\t:80\tname\tweb\tmaxconn\t5\n", 1),
        ("many", flag("bind", "tfo"), "on", "    bind :8080,:8081 tfo\n", 1),
        // Servers get options on few lines: those that have them of `default-server` need none.
        ("many", pool(), "100",
         "default-server inter 3s fall 3 rise 2 maxconn 100 pool-max-conn 100\n", 1),
        ("many", pool(), "100", "weight 10 cookie a\n", 1),
        ("many", pool(), "100", "weight 20 cookie b pool-max-conn 100\n", 1),
        ("many", pool(), "100", "127.0.0.1:5001 check cookie app1 pool-max-conn 100\n", 1),
    ];
    for (name, row, level, words, times) in rows {
        let after = set(&Users::new(name).read(), &row, level);
        let after = text(&after);
        let count = after.matches(words).count();
        assert_eq!(count, times, "{name}: {words}\n{after}");
    }
    let threads = integer("global", "nbthread {value}");
    let after = set(&Users::new("bare").read(), &threads, "2");
    assert!(text(&after).starts_with("global\n  nbthread 2\n\nlisten web\n"));
    // Of three `defaults`, those that need it: `long` has it of `base`.
    let after = set(&Users::new("from").read(), &duration("timeout queue"), "3s");
    let (client, server) = ("client 30s\n  timeout server 30s\n", "server 10m\n");
    let queue = "  timeout queue 3s\n";
    let expected = named("from")
        .replace(client, &format!("{client}{queue}"))
        .replace(server, &format!("{server}{queue}"));
    assert_eq!(text(&after), expected);
    for (row, [there, back]) in
        [(dontlognull(), ["off", "on"]), (flag("bind", "tfo"), ["on", "off"])]
    {
        let after = set(&Users::new("many").read(), &row, there);
        assert_eq!(text(&set(&after, &row, back)), named("many"));
    }
}

#[test]
fn small_configurations_become_what_they_should() {
    let off = row(
        r#"{"choice": ["on", "off"]}"#,
        r#"{"directive": {"name": "nbthread", "context": "global"}}"#,
        r#"[{"context": "global", "text": "nbthread 1", "only": ["on"]}]"#,
    );
    let sides = "frontend f\n bind :80\n default_backend b\n\nbackend b\n server s 127.0.0.1:1\n";
    #[rustfmt::skip]
    let rows = [
        // `timeout client` in a backend would only bring a warning.
        (sides, duration("timeout client"), "3s",
         "frontend f\n bind :80\n timeout client 3s\n default_backend b\n\nbackend b\n server s 127.0.0.1:1\n"),
        (sides, duration("timeout connect"), "3s",
         "frontend f\n bind :80\n default_backend b\n\nbackend b\n timeout connect 3s\n server s 127.0.0.1:1\n"),
        // A line without an end stays so.
        ("global\r\n  maxconn 1\r\n  nbthread 1", integer("global", "tune.maxaccept {value}"), "5",
         "global\r\n  maxconn 1\r\n  nbthread 1\r\n  tune.maxaccept 5"),
        ("global\r\n  maxconn 1\r\n  nbthread 1", off, "off", "global\r\n  maxconn 1"),
        // A comment outlives its statement.
        ("defaults\n  option httpclose # for the old clients\n", mode(), "default",
         "defaults\n  # for the old clients\n"),
        // The name of a listener is no option.
        ("listen a\n bind :80 name tfo # tfo\n", flag("bind", "tfo"), "off",
         "listen a\n bind :80 name tfo # tfo\n"),
        ("listen a\n bind :80 name tfo # tfo\n", flag("bind", "tfo"), "on",
         "listen a\n bind :80 name tfo tfo # tfo\n"),
        ("defaults\n default-server inter 1s\nbackend b\n server s 127.0.0.1:1\n server t 127.0.0.1:2\n",
         integer("server", "pool-max-conn {value}"), "9",
         "defaults\n default-server inter 1s pool-max-conn 9\nbackend b\n server s 127.0.0.1:1\n \
          server t 127.0.0.1:2\n"),
    ];
    for (before, row, level, after) in rows {
        let changed = set(&make_source("a.cfg", before), &row, level);
        assert_eq!(text(&changed), after, "{before}");
    }
}

#[test]
fn a_context_of_another_proxy_is_refused() {
    let row = &integer("http", "keepalive {value}");
    let before = Users::new("many").read();
    let error = haproxy::change(&before, &[WantedSetting { row, level: "1" }]).unwrap_err();
    must_have(error, &["`http`, which haproxy.cfg does not have"]);
}

/// Covers options beside others in a list of `global`, and on lines that override the list.
#[test]
fn options_of_lists_come_and_go_alone() {
    let list = "global\n  ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets\n";
    #[rustfmt::skip]
    let rows = [
        ("ssl_min_ver", "TLSv1.3", "ssl-min-ver TLSv1.3 no-tls-tickets"),
        ("ssl_max_ver", "TLSv1.2", "ssl-min-ver TLSv1.2 no-tls-tickets ssl-max-ver TLSv1.2"),
        ("ssl_prefer_server_ciphers", "off",
         "ssl-min-ver TLSv1.2 no-tls-tickets prefer-client-ciphers"),
        ("ssl_prefer_server_ciphers", "on", "ssl-min-ver TLSv1.2 no-tls-tickets"),
        ("ssl_session_tickets", "on", "ssl-min-ver TLSv1.2"),
        ("ssl_session_tickets", "off", "ssl-min-ver TLSv1.2 no-tls-tickets"),
    ];
    for (id, level, expected) in rows {
        let expected = format!("global\n  ssl-default-bind-options {expected}\n");
        assert_eq!(set_by_id(list, id, level), expected, "{id}: {level}");
    }
    // HAProxy refuses a list of nothing.
    let alone = "global\n  ssl-default-bind-options no-tls-tickets\n  maxconn 9\n";
    let none = "global\n  maxconn 9\n";
    assert_eq!(set_by_id(alone, "ssl_session_tickets", "on"), none);
    let with = "global\n  maxconn 9\n  ssl-default-bind-options no-tls-tickets\n";
    assert_eq!(set_by_id(none, "ssl_session_tickets", "off"), with);
    let after = set_by_id(&named("tls"), "ssl_min_ver", "TLSv1.3");
    let bind = "alpn h2,http/1.1 ssl-min-ver TLSv1.3 strict-sni accept-proxy\n";
    // The last says nothing itself.
    must_have(after, &[bind, "verify optional\n"]);
}

#[test]
fn logs_of_the_users_stay_where_a_log_is_to_be() {
    let catalog = Catalog::builtin();
    let row = catalog.get(ProxyKind::Haproxy, "access_log").unwrap();
    for name in ["debian", "many", "kubernetes"] {
        let before = Users::new(name).read();
        for level in ["on", "sampled"] {
            assert_eq!(set(&before, row, level), before, "{name}: {level}");
        }
        let off = set(&before, row, "off");
        let (_, proxies) = text(&off).split_once("\ndefaults").unwrap();
        assert!(!proxies.lines().any(|line| line.trim_start().starts_with("log")), "{proxies}");
        assert_eq!(set(&off, row, "off"), off);
    }
    // One that is to log nothing logs nothing.
    let quiet = "defaults\n  log global\nfrontend status\n  bind :80\n  no log\n";
    for (level, gone) in [("on", ""), ("sampled", ""), ("off", "  log global\n")] {
        let after = set(&make_source("a.cfg", quiet), row, level);
        let expected = match gone {
            "" => quiet.to_owned(),
            gone => quiet.replace(gone, ""),
        };
        assert_eq!(text(&after), expected, "{level}");
    }
    // Of two proxies with the same `defaults`, the one that has none gets one.
    let cfg = "defaults\n  mode http\nfrontend a\n  bind :80\n  log 127.0.0.1 local2\n  log-format \"%ci\"\n\
               frontend b\n  bind :81\n";
    let logged = "  log stdout format raw local0\n  option httplog\n  option dontlognull\n";
    let on = set(&make_source("a.cfg", cfg), row, "on");
    assert_eq!(text(&on), format!("{cfg}{logged}"));
    // What a row has written is a row's to change.
    let sampled = set(&on, row, "sampled");
    let expected = text(&on).replace("raw local0", "raw sample 1:10 local0");
    assert_eq!(text(&sampled), expected);
    assert_eq!(set(&sampled, row, "on"), on);
}

fn list_rows() -> Vec<(Parameter, Vec<&'static str>)> {
    vec![
        (integer("global", "nbthread {value}"), vec!["1", "2", "3"]),
        (integer("global", "maxconn {value}"), vec!["100", "5000"]),
        (integer("frontend", "maxconn {value}"), vec!["100", "5000"]),
        (integer("backend", "fullconn {value}"), vec!["100", "5000"]),
        (duration("timeout client"), vec!["5s", "250ms"]),
        (duration("timeout server"), vec!["5s", "1m"]),
        (duration("timeout http-keep-alive"), vec!["1s", "2s"]),
        (mode(), vec!["keep-alive", "server-close", "close", "default"]),
        (dontlognull(), vec!["on", "off"]),
        (integer("bind", "backlog {value}"), vec!["128", "4096"]),
        (flag("bind", "defer-accept"), vec!["on", "off"]),
        (integer("server", "pool-max-conn {value}"), vec!["0", "100"]),
        (integer("server", "weight {value}"), vec!["1", "200"]),
    ]
}

#[test]
fn haproxy_accepts_all_changes_together() {
    if !has(HAPROXY) {
        return;
    }
    let rows = list_rows();
    for name in adaptable() {
        let users = Users::new(name);
        // Unoptimized, each row takes its time there.
        let step = if name == "large" { 5 } else { 1 };
        let wanted = rows.iter().step_by(step).map(|(row, levels)| (row, levels[0]));
        let wanted: Vec<_> = wanted.map(|(row, level)| WantedSetting { row, level }).collect();
        let changed = haproxy::change(&users.read(), &wanted).unwrap_or_else(|e| panic!("{e}"));
        let again = haproxy::change(&changed, &wanted).unwrap();
        assert_eq!(again, changed, "{name}: what is in force is changed again");
        let prefix = make_prefix();
        let copy = haproxy::adapt(&changed, &of_a_test(prefix.path())).unwrap();
        check(name, &copy, prefix.path());
    }
}

proptest! {
    /// Setting one level, another, and the first again gives the bytes of the first, for any row.
    #[test]
    fn there_and_back_is_nowhere(
        name in prop::sample::select(small().collect::<Vec<_>>()),
        which in 0usize..13,
        first in 0usize..4,
        second in 0usize..4,
    ) {
        let rows = list_rows();
        let (row, levels) = &rows[which];
        let (first, second) = (levels[first % levels.len()], levels[second % levels.len()]);
        // `60000` for `1m` stays as it is, and does not come back.
        let start = set(&Users::new(name).read(), row, second);
        let start = set(&start, row, first);
        let there = set(&start, row, second);
        prop_assert_eq!(set(&there, row, second), there.clone());
        // Three lines become one kind of line, and then none: which were there is forgotten.
        if first != "default" && second != "default" {
            prop_assert_eq!(set(&there, row, first), start);
        }
    }

    /// Any text is either read or refused with a place in it.
    #[test]
    fn any_text_is_read_or_refused(text in "(global|frontend a| bind :80|[ \"'\\\\#.ifend$\n\r\t]{0,6}|é){0,20}") {
        let source = make_source("a.cfg", &text);
        match haproxy::change(&source, &[WantedSetting { row: &mode(), level: "close" }]) {
            Ok(changed) => prop_assert!(haproxy::Tree::parse(&changed).is_ok()),
            Err(error) => prop_assert!(error.line <= text.lines().count().max(1)),
        }
    }
}

fn pool() -> Parameter {
    integer("server", "pool-max-conn {value}")
}

fn set_by_id(text: &str, id: &str, level: &str) -> String {
    let catalog = Catalog::builtin();
    let row = catalog.get(ProxyKind::Haproxy, id).unwrap();
    let after = set(&make_source("a.cfg", text), row, level);
    assert_eq!(set(&after, row, level), after, "{id}");
    after.files[0].text.clone()
}
