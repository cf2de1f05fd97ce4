//! Settings put into force, and nothing else touched.

use std::process::Command;

use proptest::prelude::*;
use weir_configuration::{Source, Wanted, haproxy};
use weir_parameters::Parameter;

use super::{NAMES, Users, text as named};
use crate::support::{checked, free_address, has, prefix, row, source, surroundings, text, write};

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

/// How connections are ended: three options that contradict each other, and none of them.
fn mode() -> Parameter {
    row(
        r#"{"choice": ["keep-alive", "server-close", "close", "default"]}"#,
        r#"{"directive": {"name": "option http-keep-alive", "context": "defaults"}}"#,
        r#"[{"context": "defaults", "text": "option http-keep-alive", "only": ["keep-alive"]},
            {"context": "defaults", "text": "option http-server-close", "only": ["server-close"]},
            {"context": "defaults", "text": "option httpclose", "only": ["close"]}]"#,
    )
}

/// An option that is written with `no` when it is off.
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

fn set(source: &Source, row: &Parameter, level: &str) -> Source {
    haproxy::change(source, &[Wanted { row, level }]).unwrap_or_else(|e| panic!("{e}"))
}

/// The lines that are not in both, with what they were and what they are.
fn difference(before: &Source, after: &Source) -> Vec<String> {
    let lines =
        |source: &Source| -> Vec<String> { text(source).lines().map(str::to_owned).collect() };
    let (before, after) = (lines(before), lines(after));
    let start = before
        .iter()
        .zip(&after)
        .take_while(|(a, b)| a == b)
        .count();
    let rest = before[start..]
        .iter()
        .rev()
        .zip(after[start..].iter().rev());
    let end = rest.take_while(|(a, b)| a == b).count();
    let gone = before[start..before.len() - end]
        .iter()
        .map(|line| format!("-{line}"));
    let come = after[start..after.len() - end]
        .iter()
        .map(|line| format!("+{line}"));
    gone.chain(come).collect()
}

fn changes(name: &str, row: &Parameter, level: &str) -> Vec<String> {
    let before = Users::new(name).read();
    difference(&before, &set(&before, row, level))
}

#[test]
fn only_the_argument_changes() {
    assert_eq!(
        changes("many", &integer("global", "nbthread {value}"), "4"),
        ["-    nbthread    2", "+    nbthread    4"]
    );
    let expected = ["-  maxconn 20000", "+  maxconn 7"];
    assert_eq!(
        changes("from", &integer("global", "maxconn {value}"), "7"),
        expected
    );
    let tabs = ["-\ttimeout\tconnect\t5s", "+\ttimeout\tconnect\t7s"];
    assert_eq!(changes("tabs", &duration("timeout connect"), "7s"), tabs);
}

#[test]
fn what_is_so_already_is_left() {
    let none: [&str; 0] = [];
    assert_eq!(
        changes("from", &integer("global", "maxconn {value}"), "20000"),
        none
    );
    assert_eq!(changes("quoted", &duration("timeout client"), "30s"), none);
    assert_eq!(
        changes("debian", &duration("timeout connect"), "5s"),
        none,
        "5000 says that"
    );
    assert_eq!(changes("many", &dontlognull(), "on"), none);
}

#[test]
fn proxies_that_say_otherwise_are_changed_too() {
    let source = set(
        &Users::new("many").read(),
        &duration("timeout server"),
        "9s",
    );
    assert!(text(&source).contains("    timeout server          9s   # the reports are slow\n"));
    assert!(text(&source).contains("    balance leastconn\n    timeout server 9s\n"));
    let source = set(
        &Users::new("from").read(),
        &duration("timeout server"),
        "9s",
    );
    assert_eq!(text(&source).matches("timeout server 9s").count(), 3);
}

#[test]
fn what_is_missing_goes_beside_its_like() {
    assert_eq!(
        changes("many", &duration("timeout tunnel"), "1h"),
        ["+    timeout tunnel 1h"]
    );
    let after = set(
        &Users::new("many").read(),
        &duration("timeout tunnel"),
        "1h",
    );
    assert!(text(&after).contains("    timeout check           10s\n    timeout tunnel 1h\n"));
    // Of three `defaults`, those that need it: `long` has it of `base`.
    let after = set(&Users::new("from").read(), &duration("timeout queue"), "3s");
    let expected = named("from")
        .replace(
            "client 30s\n  timeout server 30s\n",
            "client 30s\n  timeout server 30s\n  timeout queue 3s\n",
        )
        .replace("server 10m\n", "server 10m\n  timeout queue 3s\n");
    assert_eq!(text(&after), expected);
    // No `defaults`: into the proxies.
    let after = set(&Users::new("bare").read(), &duration("timeout queue"), "3s");
    assert_eq!(
        text(&after)
            .matches("  timeout server 30s\n  timeout queue 3s\n")
            .count(),
        2
    );
    let after = set(
        &Users::new("bare").read(),
        &integer("global", "nbthread {value}"),
        "2",
    );
    assert!(text(&after).starts_with("global\n  nbthread 2\n\nlisten web\n"));
}

/// `timeout client` in a backend would only bring a warning.
#[test]
fn keywords_go_to_the_side_that_has_them() {
    let before = source(
        "a.cfg",
        "frontend f\n bind :80\n default_backend b\n\nbackend b\n server s 127.0.0.1:1\n",
    );
    let after = set(&before, &duration("timeout client"), "3s");
    assert!(text(&after).contains(" default_backend b\n timeout client 3s\n\nbackend b\n server"));
    let after = set(&before, &duration("timeout connect"), "3s");
    assert!(text(&after).contains(" server s 127.0.0.1:1\n timeout connect 3s\n"));
    assert!(!text(&after).contains("default_backend b\n timeout"));
}

#[test]
fn a_line_without_an_end_stays_so() {
    let before = source("a.cfg", "global\r\n  maxconn 1\r\n  nbthread 1");
    let after = set(&before, &integer("global", "tune.maxaccept {value}"), "5");
    assert_eq!(
        text(&after),
        "global\r\n  maxconn 1\r\n  nbthread 1\r\n  tune.maxaccept 5"
    );
    let off = row(
        r#"{"choice": ["on", "off"]}"#,
        r#"{"directive": {"name": "nbthread", "context": "global"}}"#,
        r#"[{"context": "global", "text": "nbthread 1", "only": ["on"]}]"#,
    );
    assert_eq!(text(&set(&before, &off, "off")), "global\r\n  maxconn 1");
}

#[test]
fn options_that_contradict_each_other_take_turns() {
    // In the `defaults`, which hold whatever `.if` says, and in all branches.
    let after = set(&Users::new("macros").read(), &mode(), "close");
    assert_eq!(text(&after).matches("option httpclose\n").count(), 4);
    let after = set(&Users::new("many").read(), &mode(), "keep-alive");
    assert!(!text(&after).contains("option http-server-close"));
    assert!(
        text(&after)
            .contains("    option                  dontlognull\n    option http-keep-alive\n")
    );
    let after = set(&Users::new("many").read(), &mode(), "default");
    assert!(!text(&after).contains("http-keep-alive\n") && !text(&after).contains("close"));
    let off = set(&Users::new("many").read(), &dontlognull(), "off");
    assert!(
        text(&off).contains("    no option                  dontlognull\n"),
        "{}",
        text(&off)
    );
    assert_eq!(text(&set(&off, &dontlognull(), "on")), named("many"));
}

#[test]
fn a_comment_outlives_its_statement() {
    let before = source(
        "a.cfg",
        "defaults\n  option httpclose # for the old clients\n",
    );
    let after = set(&before, &mode(), "default");
    assert_eq!(text(&after), "defaults\n  # for the old clients\n");
}

#[test]
fn bind_lines_get_options() {
    let after = set(
        &Users::new("tabs").read(),
        &integer("bind", "maxconn {value}"),
        "5",
    );
    assert!(text(&after).contains("\tbind\t:80\tname\tweb\tmaxconn\t5\n"));
    let after = set(&Users::new("many").read(), &flag("bind", "tfo"), "on");
    assert!(text(&after).contains("    bind :8080,:8081 tfo\n"));
    assert_eq!(
        text(&set(&after, &flag("bind", "tfo"), "off")),
        named("many")
    );
    // The name of a listener is no option.
    let before = source("a.cfg", "listen a\n bind :80 name tfo # tfo\n");
    assert_eq!(
        text(&set(&before, &flag("bind", "tfo"), "off")),
        text(&before)
    );
    let after = set(&before, &flag("bind", "tfo"), "on");
    assert_eq!(text(&after), "listen a\n bind :80 name tfo tfo # tfo\n");
}

#[test]
fn servers_get_options_on_few_lines() {
    let row = integer("server", "pool-max-conn {value}");
    let after = set(&Users::new("many").read(), &row, "100");
    let text = text(&after);
    assert!(text.contains("default-server inter 3s fall 3 rise 2 maxconn 100 pool-max-conn 100\n"));
    assert!(
        text.contains("weight 10 cookie a\n"),
        "it has it of default-server"
    );
    assert!(
        text.contains("weight 20 cookie b pool-max-conn 100\n"),
        "it said otherwise"
    );
    assert!(text.contains("127.0.0.1:5001 check cookie app1 pool-max-conn 100\n"));

    let cfg = "defaults\n default-server inter 1s\nbackend b\n server s 127.0.0.1:1\n server t 127.0.0.1:2\n";
    let after = set(&source("a.cfg", cfg), &row, "9");
    let expected = cfg.replace("inter 1s", "inter 1s pool-max-conn 9");
    assert_eq!(crate::support::text(&after), expected);
}

#[test]
fn a_context_of_another_proxy_is_refused() {
    let row = integer("http", "keepalive {value}");
    let before = Users::new("many").read();
    let error = haproxy::change(
        &before,
        &[Wanted {
            row: &row,
            level: "1",
        }],
    )
    .unwrap_err();
    assert!(
        error
            .what
            .contains("`http`, which haproxy.cfg does not have"),
        "{error}"
    );
}

fn rows() -> Vec<(Parameter, Vec<&'static str>)> {
    vec![
        (integer("global", "nbthread {value}"), vec!["1", "2", "3"]),
        (integer("global", "maxconn {value}"), vec!["100", "5000"]),
        (integer("frontend", "maxconn {value}"), vec!["100", "5000"]),
        (integer("backend", "fullconn {value}"), vec!["100", "5000"]),
        (duration("timeout client"), vec!["5s", "250ms"]),
        (duration("timeout server"), vec!["5s", "1m"]),
        (duration("timeout http-keep-alive"), vec!["1s", "2s"]),
        (
            mode(),
            vec!["keep-alive", "server-close", "close", "default"],
        ),
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
    let rows = rows();
    for name in NAMES {
        let users = Users::new(name);
        // Unoptimized, each row takes its time there.
        let step = if name == "large" { 5 } else { 1 };
        let wanted: Vec<_> = rows
            .iter()
            .step_by(step)
            .map(|(row, levels)| Wanted {
                row,
                level: levels[0],
            })
            .collect();
        let changed = haproxy::change(&users.read(), &wanted).unwrap_or_else(|e| panic!("{e}"));
        let again = haproxy::change(&changed, &wanted).unwrap();
        assert_eq!(again, changed, "{name}: what is in force is changed again");
        let prefix = prefix();
        let address = free_address();
        let copy =
            haproxy::adapt(&changed, &surroundings(prefix.path(), address, address)).unwrap();
        let main = write(&copy, prefix.path());
        checked(
            name,
            Command::new(HAPROXY)
                .args(["-c", "-q", "-L", "lb1", "-f"])
                .arg(main),
        );
    }
}

proptest! {
    /// Set to one level, to another and back: the bytes are those of the first, whatever the row.
    #[test]
    fn there_and_back_is_nowhere(
        name in prop::sample::select(&NAMES[..13]),
        which in 0usize..13,
        first in 0usize..4,
        second in 0usize..4,
    ) {
        let rows = rows();
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

    /// Any text is read or refused with a place in it, never anything else.
    #[test]
    fn any_text_is_read_or_refused(text in "(global|frontend a| bind :80|[ \"'\\\\#.ifend$\n\r\t]{0,6}|é){0,20}") {
        let source = source("a.cfg", &text);
        match haproxy::change(&source, &[Wanted { row: &mode(), level: "close" }]) {
            Ok(changed) => prop_assert!(haproxy::Tree::parse(&changed).is_ok()),
            Err(error) => prop_assert!(error.line <= text.lines().count().max(1)),
        }
    }
}
