//! Tests of errors and their messages. The snapshots are the text for users.

use crate::{messages_of, read, with};

/// Renders the errors of a study.
fn refused(text: &str) -> String {
    match read(text) {
        Ok(study) => panic!("accepted: {study:?}"),
        Err(errors) => {
            for error in errors.errors() {
                assert_eq!(text.get(error.span.clone()), Some(error.text.as_str()));
            }
            errors.render(false)
        }
    }
}

/// Returns the message and the nearest name of each error in a study that is valid except for `rest`.
fn messages(rest: &str) -> Vec<String> {
    messages_of(&with(rest))
}

#[test]
fn a_file_with_eleven_different_errors_shows_eleven() {
    let text = "\
weir: 1
name: My Study
question: Which one?
proxy:
  kind: ngnix
  settings: {worker_processes: 1}
origin: {size: 1KiB, staus: 200}
loads:
  - name: open
    rate: 60% of slowest
    connections: 0
    duration: fast
    request: [GET, /]
arms:
  - name: no-gzip
    settings: {gzipp: off}
blocks: {at-least: 3}
objective: {metric: response-p9, band: 2%}
cpus: {proxy: 7, generator: 0, origin: 0}
";
    let errors = read(text).expect_err("eleven errors");
    assert_eq!(errors.errors().len(), 11, "{errors}");
    insta::assert_snapshot!(errors.render(false));
    insta::assert_snapshot!("errors_in_one_line_each", errors);
}

#[test]
fn arms_that_cannot_be_told_apart_or_cannot_be() {
    let text = with(
        "arms:
- {name: keepalive, settings: {origin_keepalive: 32}}
- {name: keepalive, settings: {origin_keepalive: 64}}
- {name: keepalive-again, settings: {origin_keepalive: 32, multi_accept: off}}
- {name: nothing, settings: {multi_accept: off}}
- {name: typo, settings: {keepalive_reqests: 100}}
- {name: level, settings: {access_log: bufered}}
- {name: too-many, settings: {worker_connections: 4096}}
- {name: same-as-baseline, settings: {tcp_nodelay: off}}
- {name: a/b, settings: {tcp_nopush: off}}
published: {source: s, metric: m, figures: {keepalive: 1, keepalife: 2}}",
    );
    insta::assert_snapshot!(refused(&text));
}

#[test]
fn arms_whose_names_differ_in_case_only_are_refused() {
    let text = with(
        "arms:
- {name: cache, settings: {origin_keepalive: 32}}
- {name: Cache, settings: {origin_keepalive: 64}}",
    );
    let words = refused(&text);
    let expected = "`Cache` and `cache` differ in upper and lower case only";
    assert!(words.contains(expected), "{words}");
}

fn with_external(rest: &str) -> String {
    let started = "{kind: nginx, settings: {worker_processes: 1}}";
    with(rest).replace(started, "{kind: external, address: \"192.0.2.7:80\"}")
}

#[test]
fn a_proxy_that_weir_does_not_start_has_no_settings_in_any_arm() {
    #[rustfmt::skip]
    let rows = [
        ("one-at-a-time: {rlimit_nofile: [2048, 4096]}", "rlimit_nofile"),
        ("factorial: {transport: [tcp, sockmap]}", "transport"),
        ("arms: [{name: a, settings: {launcher: onload}}]\nlaunchers: {onload: {prefix: onload}}",
         "launcher"),
        ("cumulative: [{name: a, settings: {net.core.somaxconn: 4096}}]", "net.core.somaxconn"),
    ];
    for (rest, id) in rows {
        let expected = format!("`{id}` is for a proxy that weir starts");
        assert_eq!(messages_of(&with_external(rest)), [expected], "{rest}");
    }
    let arm = "arms: [{name: a, proxy: {kind: external, address: \"192.0.2.7:80\"}, \
               settings: {transport: sockmap}}]";
    assert_eq!(messages(arm), ["`transport` is for a proxy that weir starts"]);
    // The other way round it is another's setting.
    let arm = "arms: [{name: a, proxy: nginx, settings: {transport: sockmap}}]";
    assert!(read(&with_external(arm)).is_ok());
}

#[test]
fn a_stratum_needs_an_arm_that_its_others_are_compared_with() {
    #[rustfmt::skip]
    let rows = [
        ("transport: [sockmap, sockmap-inbound]", "list the baseline's level of `transport` too"),
        ("net.core.somaxconn: [128, 4096]",
         "say in the proxy's `settings` what `net.core.somaxconn` is, and list that level too"),
    ];
    for (factors, hint) in rows {
        let sections = format!(
            "factorial: {{worker_processes: [1, 2], {factors}}}\nstratify: worker_processes"
        );
        let errors = read(&with(&sections)).expect_err(factors);
        let [error] = errors.errors() else {
            panic!("{errors}");
        };
        assert_eq!(
            error.message,
            "no arm has worker_processes=2 and the baseline's levels otherwise"
        );
        assert_eq!((&*error.text, error.hint.as_deref()), ("factorial", Some(hint)));
    }
    // What was refused may be the level that is missing.
    let refused = messages(
        "factorial: {worker_processes: [1, 2], transport: [tpc, sockmap]}\nstratify: worker_processes",
    );
    assert_eq!(refused.len(), 1, "{refused:?}");
}

#[test]
fn another_version_hides_nothing() {
    let text = with("whatever: 1").replace("weir: 1", "weir: 2");
    insta::assert_snapshot!(refused(&text));
}

#[test]
fn what_is_missing_is_said() {
    insta::assert_snapshot!(refused("title: nothing else\n"));
    assert_eq!(messages("weir: 1")[0], "the key `weir` is given twice");
}

#[test]
fn what_is_not_yaml_is_said_with_its_place() {
    insta::assert_snapshot!("not_a_study_broken", refused("weir: 1\nname: [a, b\nquestion: {\n"));
    insta::assert_snapshot!("not_a_study_empty", refused(""));
    insta::assert_snapshot!("not_a_study_a_list", refused("- just\n- a list\n"));
    insta::assert_snapshot!("not_a_study_two_documents", refused(&with("---\nweir: 1")));
}

#[test]
fn anchors_and_bombs_are_refused_at_once() {
    let mut bomb = with("a: &a [x, x, x, x, x, x, x, x, x]");
    for (one, other) in ["ab", "bc", "cd", "de", "ef", "fg"].iter().map(|p| p.split_at(1)) {
        let nine = [format!("*{one}"); 1].join(", ");
        bomb += &format!("{other}: &{other} [{}]\n", [nine.as_str(); 9].join(", "));
    }
    let errors = read(&bomb).expect_err("aliases");
    assert_eq!(errors.errors().len(), 7 + 6 * 9, "{errors}");
    let deep = with(&format!("a: {}{}", "[".repeat(5000), "]".repeat(5000)));
    assert_eq!(read(&deep).expect_err("depth").errors().len(), 1);
    let long = with(&"# comment\n".repeat(50_000));
    assert_eq!(read(&long).expect_err("size").errors().len(), 1);
}

#[rustfmt::skip]
static SECTIONS: &[(&str, &[&str])] = &[
    ("a/a: false", &["there is nothing to compare: the baseline is the only arm"]),
    ("a/a: yes", &["`yes` is not `true` or `false`"]),
    ("arms: []", &["expected a list of arms such as `{name: no-gzip, settings: {gzip: off}}`, found an empty list"]),
    ("arms: [{name: a, settings: {gzip: off}}]\nfactorial: {gzip: [on, off]}",
     &["a study can write its arms in one way only"]),
    ("arms: [{name: a, settings: {gzip: off}}]\nstratify: gzip", &["`stratify` is for a `factorial` study"]),
    ("factorial: {gzip: [on, off], sendfile: [on, off]}\nstratify: [gzip, sendfil]",
     &["`sendfil` is not a factor of this study [sendfile]"]),
    ("arms: [{name: a, proxy: haprxy}]",
     &["`haprxy` is not `nginx`, `haproxy`, `envoy`, `caddy`, `httpd` or `external` [haproxy]"]),
    ("arms: [{name: a, proxy: {kind: nginx, role: reverse-proxy}}]", &["a proxy has no key `role`"]),
    ("arms: [{name: a, proxy: {kind: nginx, port: 80}}]",
     &["`port` names a listener of a `configuration`, which is missing"]),
    ("arms: [{name: a, proxy: {kind: nginx, configuration: /a, stock: debian}}]",
     &["`stock` has no effect with a `configuration` of your own"]),
    ("arms: [{name: a, proxy: {kind: nginx, configuration: {file: /a}}}]",
     &["expected the path of the configuration's file, found a mapping"]),
    ("arms: [{name: a, proxy: {kind: nginx, address: 127.0.0.1:80}}]",
     &["`address` is for a proxy that weir does not start"]),
    ("arms: [{name: a, proxy: {kind: external, settings: {gzip: off}}}]",
     &["a proxy needs the key `address`", "`settings` is for a proxy that weir starts"]),
    ("arms: [{name: a, proxy: {kind: external, address: \"127.0.0.1:0\"}}]",
     &["127.0.0.1:0 has port 0, which no server has"]),
    ("arms: [{name: a, proxy: {kind: external, address: \"224.0.0.1:80\"}}]",
     &["224.0.0.1 is a multicast address, which no server has"]),
    ("cumulative: [{name: a, proxy: haproxy}]",
     &["a cumulative step keeps the changes of the steps before it, so it cannot use another proxy"]),
    ("arms: [{name: a, proxy: {kind: nginx, settings: {worker_processes: 1}}}]",
     &["arm `a` has the same settings as the baseline"]),
    ("arms: [{name: a, settings: {gzip: off}, setings: 1}]", &["an arm has no key `setings` [settings]"]),
    ("arms: [{name: a}]", &["an arm needs the key `settings`"]),
    ("arms: [{name: a, settings: {gzip: [off]}}]", &["`gzip` is `on` or `off`, found a list"]),
    ("one-at-a-time: {multi_accept: [off]}", &["`multi_accept` has only the baseline's level"]),
    ("one-at-a-time: {gzip: [off, off]}", &["the level `off` is listed twice"]),
    ("one-at-a-time: {gzipp: [off]}", &["unknown parameter `gzipp` [gzip]"]),
    ("factorial: {keepalive_requests: [1, 2, 3, 4, 5, 6, 7, 8, 9], gzip_comp_level: [2, 3, 4, 5, 6, 7, 8, 9]}",
     &["72 combinations are too many: at most 64 arms are allowed"]),
    ("arms: [{name: a, settings: {worker_rlimit_nofile: 512}}]",
     &["`worker_connections` 768 is above `worker_rlimit_nofile` 512: every connection takes a descriptor; nginx starts with no more than a warning and can never use the connections above the limit"]),
    ("origin: {status: 100}", &["`100` is not a whole number from 200 to 599"]),
    ("origin: {status: 204, size: 1k}", &["a response with status 204 has no body"]),
    ("origin: {address: 192.0.2.1:80}", &["`192.0.2.1:80` is not an address and a port of the proxies' own host"]),
    ("origin: {address: 127.0.0.1:80, size: 1k}", &["weir does not start the server at `address`, so it has no `size`"]),
    ("origin: {size: 9000GiB}", &["`9000GiB` is out of range: it is above 1 TiB"]),
    ("origin: {delay: {uniform: [5ms, 1ms]}}", &["expected two durations, the shorter first"]),
    ("origin: {delay: {gauss: 1ms}}", &["a delay has no key `gauss`"]),
    ("origin: {content_type: text/html}", &["an origin has no key `content_type` [content-type]"]),
    ("blocks: {slice: 1ms}", &["`1ms` is not a duration from 10ms to 10m"]),
    ("blocks: {discard: 95%}", &["`95%` is not a share from 0 % to below 90 %"]),
    ("blocks: {slice: 10s}", &["60s is too short for 12 blocks of 2 arms"]),
    ("objective: {metric: response-p50}", &["no open load measures this metric"]),
    ("objective: {confidence: 1}", &["`1` is not a share from 50 % to below 100 %"]),
    ("cpus: {proxy: 0-3, generator: 0}", &["`cpus` needs the key `origin`", "weir may not use CPU 2-3 on this machine"]),
    ("cpus: {proxy: one, generator: 0, origin: 0}", &["`one` is not a list of CPUs such as 0, 0-3 or 0,2-3"]),
    ("published: {source: s, metric: m, figures: {baseline: -1}}", &["`-1` is not a number above 0"]),
    ("baseline: my/base", &["`my/base` is not a valid name [my-base]"]),
];

#[test]
fn sections_say_what_they_want() {
    for &(rest, expected) in SECTIONS {
        assert_eq!(messages(rest), expected, "{rest}");
    }
}

#[rustfmt::skip]
static LOADS: &[(&str, &[&str])] = &[
    ("closed: false", &["a load needs `closed: true` or a `rate`"]),
    ("closed: true, rate: 5", &["a load is either closed or has a rate"]),
    ("timeout: 1s", &["a load needs `closed: true` or a `rate`"]),
    ("rate: 5, spin: soon", &["`soon` is not auto or a duration such as 60us or 0s"]),
    ("rate: 5, spin: 2s", &["`2s` is out of range: it is longer than 1s"]),
    ("rate: 0", &["`0` is out of range: a rate must be from 0.000001 to 1000000000"]),
    ("rate: fast", &["`fast` is not a rate in requests per second such as 500, 2.5k or 30k"]),
    ("rate: 60% of fastest", &["`60% of fastest` is not a rate"]),
    ("rate: 160% of slowest", &["`160% of slowest` is not a rate"]),
    ("rate: 60% of slowest", &["no closed load comes before this one"]),
    ("closed: true, timeout: 0", &["`0` is not a duration from 1ms to 24h"]),
    ("closed: true, request: {path: index.html}", &["`index.html` is not a path"]),
    ("closed: true, request: {path: /a b}", &["`/a b` is not a path"]),
    ("closed: true, request: {method: G T}", &["`G T` is not a method (RFC 9110 §9)"]),
    ("closed: true, request: {fields: {'a b': c}}", &["`a b` is not a valid header name (RFC 9110 §5.1)"]),
    ("closed: true, request: {fields: {Accept: \"a\\r\\nb: c\"}}",
     &["a header's value holds a control character (RFC 9110 §5.5)"]),
    ("closed: true, request: {fields: {Content-Length: 5}}", &["weir writes `Content-Length` itself"]),
    ("closed: true, name: Big", &["the key `name` is given twice"]),
    ("closed: true, request: {cookies: 1}", &["a request has no key `cookies`"]),
];

#[test]
fn loads_say_what_they_want() {
    for &(change, expected) in LOADS {
        let text = with("").replace("closed: true", change);
        assert_eq!(messages_of(&text), expected, "{change}");
    }
}

#[test]
fn columns_count_characters_and_files_are_named() {
    let errors = read(&with("é: {ö: 1}")).expect_err("unknown key");
    let error = &errors.errors()[0];
    assert_eq!((error.line, error.column, error.text.as_str()), (7, 1, "é"));
    let text = with("origin: {content-type: \"ä/ä\", sise: 1}");
    let errors = read(&text).expect_err("unknown key");
    assert_eq!(errors.to_string(), "study.yaml:7:31: an origin has no key `sise`");
}

#[test]
fn an_error_is_one_line_whatever_was_written() {
    let long = "x".repeat(500);
    let errors = read(&with(&format!("{long}: 1\n\"a\\nb\\e[31m\": 1"))).expect_err("two keys");
    let lines = errors.to_string();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(lines.lines().all(|line| line.len() < 120 && !line.contains('\u{1b}')));
}

#[test]
fn color_is_asked_for() {
    let errors = read("").expect_err("empty");
    assert!(errors.render(true).contains('\u{1b}'));
    assert!(!errors.render(false).contains('\u{1b}'));
}

#[test]
fn an_end_that_cannot_be_is_refused() {
    for (rest, why) in [
        ("until: bored", "`bored`"),
        ("budget: soon", "soon"),
        ("budget: 100d", "100d"),
        (
            "until: decided\nobjective: {metric: response-p99, within: 30ms}",
            "an objective with `within` is not decided early",
        ),
    ] {
        let text = with(rest);
        let report = refused(&text);
        assert!(report.contains(why), "{rest}: {report}");
    }
}
