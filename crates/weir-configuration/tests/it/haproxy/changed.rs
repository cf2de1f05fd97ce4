//! Settings put into force, and nothing else touched.

use std::process::Command;

use proptest::prelude::*;
use weir_configuration::{Source, Wanted, haproxy};
use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, LevelKind, Parameter};

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

/// Options that stand beside others in a list of `global`, and on the lines that say otherwise.
#[test]
fn options_of_lists_come_and_go_alone() {
    let catalog = Catalog::builtin();
    let changed = |text: &str, id: &str, level: &str| {
        let row = catalog.get(ProxyKind::Haproxy, id).unwrap();
        let after = set(&source("a.cfg", text), row, level);
        assert_eq!(set(&after, row, level), after, "{id}");
        after.files[0].text.clone()
    };
    let list = "global\n  ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets\n";
    for (id, level, expected) in [
        (
            "ssl_min_ver",
            "TLSv1.3",
            "ssl-min-ver TLSv1.3 no-tls-tickets",
        ),
        (
            "ssl_max_ver",
            "TLSv1.2",
            "ssl-min-ver TLSv1.2 no-tls-tickets ssl-max-ver TLSv1.2",
        ),
        (
            "ssl_prefer_server_ciphers",
            "off",
            "ssl-min-ver TLSv1.2 no-tls-tickets prefer-client-ciphers",
        ),
        (
            "ssl_prefer_server_ciphers",
            "on",
            "ssl-min-ver TLSv1.2 no-tls-tickets",
        ),
        ("ssl_session_tickets", "on", "ssl-min-ver TLSv1.2"),
        (
            "ssl_session_tickets",
            "off",
            "ssl-min-ver TLSv1.2 no-tls-tickets",
        ),
    ] {
        let expected = format!("global\n  ssl-default-bind-options {expected}\n");
        assert_eq!(changed(list, id, level), expected, "{id}: {level}");
    }
    // HAProxy refuses a list of nothing.
    let alone = "global\n  ssl-default-bind-options no-tls-tickets\n  maxconn 9\n";
    assert_eq!(
        changed(alone, "ssl_session_tickets", "on"),
        "global\n  maxconn 9\n"
    );
    let none = "global\n  maxconn 9\n";
    let with = "global\n  maxconn 9\n  ssl-default-bind-options no-tls-tickets\n";
    assert_eq!(changed(none, "ssl_session_tickets", "off"), with);
    let after = changed(named("tls"), "ssl_min_ver", "TLSv1.3");
    assert!(after.contains("alpn h2,http/1.1 ssl-min-ver TLSv1.3 strict-sni accept-proxy\n"));
    assert!(
        after.contains("verify optional\n"),
        "it says nothing itself"
    );
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
        let logs = |line: &str| line.trim_start().starts_with("log");
        let (_, proxies) = text(&off).split_once("\ndefaults").unwrap();
        assert!(!proxies.lines().any(logs), "{proxies}");
        assert_eq!(set(&off, row, "off"), off);
    }
    // Of two proxies with the same `defaults`, the one that has none gets one.
    let cfg = "defaults\n  mode http\nfrontend a\n  bind :80\n  log 127.0.0.1 local2\n  log-format \"%ci\"\n\
               frontend b\n  bind :81\n";
    let logged = "  log stdout format raw local0\n  option httplog\n  option dontlognull\n";
    let on = set(&source("a.cfg", cfg), row, "on");
    assert_eq!(text(&on), format!("{cfg}{logged}"));
    // What a row has written is a row's to change.
    let sampled = set(&on, row, "sampled");
    assert_eq!(
        text(&sampled),
        text(&on).replace("raw local0", "raw sample 1:10 local0")
    );
    assert_eq!(set(&sampled, row, "on"), on);
}

/// Levels of a row in the manner of those that studies have.
fn levels(row: &Parameter) -> Vec<String> {
    let some: Vec<String> = match &row.level {
        LevelKind::Switch => vec!["on".to_owned(), "off".to_owned()],
        LevelKind::Choice(levels) => levels.clone(),
        LevelKind::Integer { min, max, words } => {
            let numbers = [min.to_string(), max.to_string()];
            numbers.into_iter().chain(words.iter().cloned()).collect()
        }
        LevelKind::Size { min, max, .. } => vec![min.to_string(), max.to_string()],
        LevelKind::MediaTypes => vec!["text/html text/css".to_owned()],
        LevelKind::CipherList => vec!["HIGH".to_owned()],
        _ => vec!["1s".to_owned(), "20s".to_owned()],
    };
    some.iter().map(|level| row.check(level).unwrap()).collect()
}

/// Whether words begin with those of a row's text, whatever its level.
fn begins(row: &Parameter, words: &[&str], own: &[&str]) -> bool {
    let is_level = |word: &str| match &row.level {
        LevelKind::Choice(levels) => levels.iter().any(|level| level == word),
        _ => true,
    };
    let is_own = |(own, word): (&&str, &&str)| match own.starts_with('{') {
        true => is_level(word),
        false => own == word,
    };
    words.len() >= own.len() && own.iter().zip(words).all(is_own)
}

/// The words of a statement that are none of a row's.
fn foreign(row: &Parameter, statement: &haproxy::Statement<'_>) -> Vec<String> {
    let words: Vec<&str> = statement.words.iter().map(|word| &*word.text).collect();
    let mut owned = vec![false; words.len()];
    for write in &row.writes {
        let own: Vec<&str> = write.text.split_whitespace().collect();
        let own = &own[usize::from(own[0] == "no")..];
        let is_option = match write.context.name() {
            "bind" => words[0] == "bind",
            "server" => ["server", "server-template", "default-server"].contains(&words[0]),
            _ => false,
        };
        let is_listed = own[0].ends_with("-options") && [own[0], "bind"].contains(&words[0]);
        let from = usize::from(words[0] == "no");
        if is_option || is_listed {
            let own = &own[usize::from(is_listed)..];
            for at in 1..words.len() {
                if begins(row, &words[at..], own) {
                    owned[at..at + own.len()].fill(true);
                }
            }
        } else if begins(row, &words[from..], own) {
            owned.fill(true);
        }
    }
    // The keyword of a list goes with its last option.
    if words[0].ends_with("-options") && owned[1..].iter().all(|owned| *owned) {
        owned[0] = true;
    }
    let kept = words.iter().zip(owned).filter(|(_, owned)| !owned);
    kept.map(|(word, _)| (*word).to_owned()).collect()
}

/// Whatever row of the catalog is put into force: what is not its own stays as it is, in its order.
#[test]
fn rows_leave_alone_what_is_not_theirs() {
    let catalog = Catalog::builtin();
    let rest = |source: &Source, row: &Parameter, level: &str| -> Vec<Vec<String>> {
        let tree = haproxy::Tree::parse(source).unwrap();
        let statements = tree.sections.iter().flat_map(|section| &section.statements);
        // Without a log, those of the user's go too.
        let is_gone = |it: &&haproxy::Statement<'_>| {
            row.id == "access_log" && level == "off" && it.word(0) == "log"
        };
        let kept = statements.filter(|it| !is_gone(it));
        let words = kept.map(|statement| foreign(row, statement));
        words.filter(|words| !words.is_empty()).collect()
    };
    for name in &NAMES[..13] {
        let before = Users::new(name).read();
        for row in catalog.parameters(ProxyKind::Haproxy) {
            for level in levels(row) {
                let after = set(&before, row, &level);
                let what = format!("{name}: {} = {level}", row.id);
                assert_eq!(
                    rest(&after, row, &level),
                    rest(&before, row, &level),
                    "{what}"
                );
                assert_eq!(set(&after, row, &level), after, "{what}");
            }
        }
    }
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
