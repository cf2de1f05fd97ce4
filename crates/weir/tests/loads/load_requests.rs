//! Tests of `weir load` with several kinds of requests, slots, expectations and recorded arrivals: the requests that
//! the server got, and weir's judgement of the answers.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;
use weir_model::record::Observation;
use weir_sentences::validity::describe;
use weir_testkit::faulty::{After, Faulty, start_origin};
use weir_testkit::loads::{Server, only_error, reported};
use weir_testkit::program::{HasAll, run, weir, within};

const EMPTY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// SHA-256 of `abc` (FIPS 180-4, the first example).
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// Writes a file in a new folder, and returns the folder and the file's path.
fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("a file");
    (folder, path.display().to_string())
}

/// Returns `METHOD /target` of each request that came.
fn first_words(peer: &Faulty) -> Vec<String> {
    peer.texts()
        .into_iter()
        .map(|request| {
            let line = request.lines().next().unwrap_or_default();
            line.trim_end_matches(" HTTP/1.1").to_owned()
        })
        .collect()
}

fn count<T: Ord>(all: impl IntoIterator<Item = T>) -> BTreeMap<T, u64> {
    let mut counts = BTreeMap::new();
    for text in all {
        *counts.entry(text).or_default() += 1;
    }
    counts
}

#[test]
fn a_mix_is_sent_by_its_weights() {
    let peer = Faulty::answering(EMPTY);
    let (_folder, path) = file(
        "mix.yaml",
        "requests:\n- {path: /often, weight: 3}\n- {path: /cart, method: POST, content: 'a b', \
         fields: {Content-Type: text/plain}}\n",
    );
    let report = peer.reported(&format!("--request-set {path} -H X-All:1 -n 400 -c 4 -t 2"));
    assert_eq!(report.results.counts.completed_whole, 400);
    let counts = count(first_words(&peer));
    assert_eq!(counts.len(), 2, "{counts:?}");
    // Six standard deviations of the binomial distribution.
    let often = counts["GET /often"];
    within(often, 300 - 52..=300 + 52);
    for request in peer.texts() {
        assert!(request.contains("\r\nX-All: 1\r\n"), "{request}");
        if request.starts_with("POST /cart HTTP/1.1\r\n") {
            request.has("\r\nContent-Type: text/plain\r\n");
            request.has("\r\nContent-Length: 3\r\n");
            assert!(request.ends_with("\r\n\r\na b"), "{request}");
        }
    }
}

#[test]
fn slots_are_filled_in_for_every_request() {
    let peer = Faulty::answering(EMPTY);
    let (folder, path) = file("names.txt", "anna\nbert\ncarl\n");
    let mix = format!(
        "requests:\n- path: '/{{{{sequence}}}}?r={{{{random:1..6}}}}'\n  method: PUT\n  fields: \
         {{X-Line: '{{{{line:{path}}}}}', X-Pick: '{{{{pick:{path}}}}}'}}\n  content: \
         '{{{{sequence}}}} {{{{{{{{ {{{{random}}}}'\n"
    );
    let set = folder.path().join("mix.yaml");
    std::fs::write(&set, mix).unwrap();
    let line = format!("--request-set {} -n 300 -c 4 -t 2 {}", set.display(), peer.url());
    let report = reported(&line);
    assert_eq!(report.results.counts.completed_whole, 300);
    let (mut numbers, mut rolls) = (Vec::new(), BTreeSet::new());
    let (mut lines, mut picks) = (Vec::new(), BTreeSet::new());
    for request in peer.texts() {
        let (head, content) = request.split_once("\r\n\r\n").expect("a head");
        let target = head.split(' ').nth(1).expect("a target");
        let (number, roll) = target[1..].split_once("?r=").expect("both slots");
        let [line, pick] = ["X-Line: ", "X-Pick: "].map(|name| {
            let value = head.lines().find_map(|line| line.strip_prefix(name));
            value.expect("the field").to_owned()
        });
        let (again, random) = content.split_once(" {{ ").expect("braces");
        assert_eq!(again, number, "{request}");
        assert!(!random.is_empty() && !random.contains('{'), "{request}");
        numbers.push(number.parse::<u64>().expect("a number"));
        rolls.insert(roll.parse::<u8>().expect("a number"));
        lines.push(line);
        picks.insert(pick);
    }
    numbers.sort_unstable();
    let first = numbers[0];
    assert!(first <= 1, "{first}");
    assert_eq!(numbers, (first..first + 300).collect::<Vec<_>>());
    assert!(rolls.into_iter().eq(1..=6));
    let names = BTreeSet::from(["anna", "bert", "carl"].map(str::to_owned));
    assert_eq!(picks, names);
    let counts = count(lines);
    assert!(counts.values().all(|count| *count == 100), "{counts:?}");
}

/// Starts a server whose answers are given by the path: its first part is the status, the second the content, the third
/// a field.
fn obedient() -> Faulty {
    Faulty::requests(1, |victim| {
        let path = victim.request.split(' ').nth(1).unwrap_or_default();
        let mut words = path.trim_start_matches('/').split('/');
        let (status, content) = (words.next().unwrap_or("200"), words.next().unwrap_or(""));
        let tag = words.next().map(|tag| format!("ETag: {tag}\r\n"));
        let (tag, length) = (tag.unwrap_or_default(), content.len());
        let answer = format!(
            "HTTP/1.1 {status} Said\r\nX-Cache: MISS\r\n{tag}Content-Length: {length}\r\n\r\n{content}"
        );
        victim.send(answer.as_bytes());
        After::Keep
    })
}

/// Checks that all errors are unexpected answers.
#[track_caller]
fn unexpected(report: &LoadReport, words: &str, count: u64) {
    assert_eq!(only_error(report), (ErrorKind::Unexpected, words, count));
}

#[test]
fn answers_are_what_was_expected_or_counted_apart() {
    let peer = obedient();
    let hash = format!("sha256={ABC}");
    let wrong_hash = format!("sha256={}", ABC.replace('b', "c"));
    #[rustfmt::skip]
    let rows = [
        ("200/abc", "status=200", None),
        ("204", "status=2xx", None),
        ("304", "status=200,304", None),
        ("200/abc", "size=3", None),
        ("200/abc", &hash, None),
        ("200/abc", "field=x-cache", None),
        ("200/abc", "field=X-Cache:MISS", None),
        ("503/abc", "status=2xx", Some("status is not one of those expected")),
        ("200/abcd", "size=3", Some("content has another size than expected")),
        ("200/abc", &wrong_hash, Some("content has another SHA-256 than expected")),
        ("200/abc", "field=ETag", Some("an expected field is missing")),
        ("200/abc", "field=X-Cache:HIT", Some("an expected field has another value")),
    ];
    for (path, expect, words) in rows {
        for load in ["-n 40", "-R 200 -d 200ms"] {
            let line = format!("--expect {expect} {load} -c 4 -t 1 {}{path}", peer.url());
            let report = reported(&line);
            // The answers came, whatever they were.
            let done = report.results.statuses[0].count;
            let never = report.results.censored.queued + report.results.censored.in_flight;
            assert_eq!(done + never, 40, "{line}");
            assert_eq!(report.results.counts.completed_whole, done, "{line}");
            // The connection is none the worse.
            assert_eq!(report.results.counts.reconnects, 0, "{line}");
            match words {
                None => {
                    assert!(
                        report.results.errors.is_empty(),
                        "{line}: {:?}",
                        report.results.errors
                    );
                }
                Some(words) => {
                    unexpected(&report, words, done);
                    // Each request once, though its answer came.
                    let mut observations = report.validity.iter().map(|reason| &reason.observation);
                    let are_counted_once = observations.any(|observation| {
                        matches!(observation, Observation::Failures { requests, .. } if *requests == done)
                    });
                    assert!(are_counted_once, "{line}: {:?}", report.validity);
                }
            }
        }
    }
}

#[test]
fn each_request_of_a_mix_has_its_own_expectation() {
    let peer = obedient();
    let (_folder, path) = file(
        "mix.yaml",
        &format!(
            "requests:\n- {{path: /200/abc, expect: {{status: 2xx, size: 3, sha256: {ABC}, \
             fields: {{X-Cache: MISS}}}}}}\n- {{path: /404/abc, expect: {{status: [200, 404]}}}}\n\
             - {{path: /500/abc, expect: {{status: 2xx}}}}\n- {{path: /500}}\n"
        ),
    );
    let report = peer.reported(&format!("--request-set {path} -n 200 -c 4 -t 2"));
    let counts = count(first_words(&peer));
    assert_eq!(counts.len(), 4, "{counts:?}");
    let bad = counts["GET /500/abc"];
    unexpected(&report, "status is not one of those expected", bad);
    let all: u64 = report.results.statuses.iter().map(|status| status.count).sum();
    assert_eq!(all, 200);
}

#[test]
fn an_answer_is_not_judged_by_the_one_before_it() {
    #[rustfmt::skip]
    let rows = [
        ("fields: {ETag: '*'}", "/200/abc", "an expected field is missing"),
        ("fields: {ETag: x}", "/200/abc/y", "an expected field has another value"),
        (&format!("sha256: {ABC}"), "/200/abd/x", "content has another SHA-256 than expected"),
    ];
    for (right, wrong, words) in rows {
        let (_folder, path) = file(
            "mix.yaml",
            &format!(
                "requests:\n- {{path: /200/abc/x, expect: {{{right}}}}}\n\
                 - {{path: {wrong}, expect: {{{right}}}}}\n"
            ),
        );
        for pipeline in [1, 4] {
            let peer = obedient();
            let line = format!("--pipeline {pipeline} --request-set {path} -n 100 -c 1");
            let report = peer.reported(&line);
            let bad = count(first_words(&peer))[&format!("GET {wrong}")];
            assert!((1..100).contains(&bad), "{line}: {bad}");
            unexpected(&report, words, bad);
        }
    }
}

#[test]
fn a_log_is_repeated_with_its_methods_and_paths() {
    let peer = Faulty::answering(EMPTY);
    let text = [
        (1, "GET /a?b=1 HTTP/1.1"),
        (1, "DELETE /b HTTP/1.1"),
        (2, "GET /{{sequence}} HTTP/1.1"),
        (2, r"\x16\x03\x01"),
        (3, "HEAD /c HTTP/2.0"),
    ]
    .map(|(second, request)| {
        format!("192.0.2.1 - - [21/Nov/2026:13:00:0{second} +0000] \"{request}\" 200 5\n")
    });
    let (_folder, path) = file("access.log", &text.concat());
    let flags = "--trace-speed 10 -d 2s -H X-All:1 -c 1 -t 1";
    let report = peer.reported(&format!("--trace {path} {flags}"));
    let arrivals = serde_json::to_string(&report.results.load.arrivals).expect("it is told");
    arrivals.has("\"what\":\"not HTTP (a TLS handshake or other bytes)\",\"lines\":1,\"first\":4");
    let mut reasons = report.validity.iter().map(describe);
    assert!(
        reasons.any(|text| text.starts_with("1 of 5 lines of the trace are not sent: 1 not HTTP"))
    );
    let sent = ["GET /a?b=1", "DELETE /b", "GET /{{sequence}}", "HEAD /c"];
    assert_eq!(first_words(&peer), sent);
    peer.texts().iter().for_each(|request| request.has("\r\nX-All: 1\r\n"));
    assert_eq!((report.results.counts.due, report.results.counts.completed_whole), (4, 4));
    assert!(report.results.errors.is_empty(), "{:?}", report.results.errors);
}

#[test]
fn a_log_may_come_from_standard_input_and_says_what_it_does_not_send() {
    let origin = start_origin();
    let line = "[21/Nov/2026:13:00:01 +0000] \"POST http://a.test/x HTTP/1.1\"\n";
    let (_folder, path) = file("log", &format!("{line}{line}[21/Nov/2026:13:00:01 +0000] \"-\"\n"));
    let words = format!("load --trace - -c 1 {}", origin.url());
    let input = std::fs::File::open(path).expect("a file");
    let ended = weir(words.split(' ')).stdin(input).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    stderr.has("`-`: 1 of 3 lines are left out: 1 without a request (`-`) (first: 3)\n");
    stderr.has("`-`: requests by POST, PUT or PATCH: 2. A trace has no bodies");
    let stdout = String::from_utf8_lossy(&ended.stdout).into_owned();
    stdout.has("2 arrivals of - (1 of its 3 lines left out)");
    assert_eq!(origin.counters(0).requests, 2);
}

#[test]
fn what_a_browser_has_recorded_is_sent_as_it_was() {
    let peer = Faulty::answering(EMPTY);
    let entries = ["a.test", "a.test:80", "b.test"].map(|host| {
        format!(
            r#"{{"request": {{"method": "POST", "url": "http://{host}/a?b", "postData": {{"text": "{{{{x"}}, "headers":
               [{{"name": ":path", "value": "/"}}, {{"name": "Host", "value": "c"}}, {{"name": "Cookie", "value": "d"}}]}}}}"#
        )
    });
    let data_entry = r#"{"request": {"method": "GET", "url": "data:x"}}"#;
    let (_folder, path) = file("a.har", &har(&format!("{}, {data_entry}", entries.join(",\n"))));
    let line = format!("--request-set {path} -n 1 -c 1 -H Host:a.test");
    let ended = peer.load(&line).with_code(0);
    ended.stderr.has("a.har: requests to other hosts are left out: b.test (1)\n");
    ended.stderr.has("a.har: requests are left out: 1 not over HTTP (`data:`,");
    ended.stderr.has("a.har: Cookie and Authorization headers are sent as they were recorded\n");
    let [request] = &peer.texts()[..] else { panic!("one request") };
    request.has("POST /a?b HTTP/1.1\r\nCookie: d\r\nHost: a.test\r\n");
    assert!(request.ends_with("\r\n\r\n{{x"), "{request}");
    let ended = peer.load(&format!("--request-set {path}"));
    let hosts = "a.har: no request to 127.0.0.1, but to a.test (2), b.test (1)";
    ended.refused_in_a_line(&[hosts, "--to ADDRESS:PORT http://a.test/"]);
    let with_header = |name: &str, value: &str| {
        let request = r#""method": "GET", "url": "http://127.0.0.1/""#;
        format!(
            r#"{{"request": {{{request}}}}}, {{"request": {{{request}, "headers": [{{"name": "{name}", "value": "{value}"}}]}}}}"#
        )
    };
    for (entries, words) in [
        ("", "it has no requests"),
        (data_entry, "no request that can be sent: 1 not"),
        (&with_header("X-A", r"a\r\nX-B: c"), "entry 2: value of field `X-A` holds CR, LF or NUL"),
        (&with_header(r"X\nA", "b"), r"entry 2: field name `X\nA` is not a token"),
    ] {
        let (_folder, path) = file("a.har", &har(entries));
        peer.load(&format!("--request-set {path}")).refused_in_a_line(&["a.har: ", words]);
    }
}

/// Returns an HTTP archive of these entries.
fn har(entries: &str) -> String {
    format!("\u{feff}{{\"log\": {{\"entries\": [{entries}]}}}}")
}

#[test]
fn times_alone_repeat_the_request_of_the_command_line() {
    let peer = Faulty::answering(EMPTY);
    let (_folder, path) = file("times", "# when\n0.2\n0.1\n\n0.15\n");
    let line = format!("--trace {path} -m PUT -b x --expect status=200 -c 2 -t 1 {}p", peer.url());
    let report = reported(&line);
    assert!(first_words(&peer).iter().all(|line| line == "PUT /p"));
    // One that was due at the very end may have come too late.
    let done = report.results.counts.completed_whole;
    assert_eq!((report.results.counts.due, done + report.results.censored.queued), (3, 3));
    // The trial is over just after the last one.
    within(report.phases.sustain, 0.1..0.2);
}

#[test]
fn a_pause_that_is_longer_than_a_load_is_told_with_its_line() {
    let peer = Faulty::answering(EMPTY);
    let (_folder, path) = file("times", "0\n0.1\n200000\n");
    let (report, ended) = peer.report(&format!("--trace {path} -n 2 -c 1 -t 1"));
    let pause = "the trace takes 55.56h, of which 55.56h are a pause that ends at";
    for text in [&report.notes.concat(), &ended.stderr] {
        text.has(&format!(
            "{pause} {path}:3; without -d a load ends after 24h, and what is due later is not sent"
        ));
    }
}

#[test]
fn what_is_wrong_in_a_file_has_its_place() {
    let origin = start_origin();
    #[rustfmt::skip]
    let rows = [
        ("requests:\n- {pth: /}\n", ":2:4", "did you mean `path`?"),
        ("requests:\n- {path: /}\n- {path: /, weight: -1}\n", ":3:21", "weight"),
        ("requests:\n- {path: /}\n- {path: '/{{sequense}}'}\n", ":3:10",
         "did you mean `{{sequence}}`?"),
        ("requests:\n- {path: /, expect: {status: 99}}\n", ":2:30", "99"),
        ("requests:\n- {path: /, expect: {sha256: xyz}}\n", ":2:", "sha256"),
        ("requests:\n- {path: /, content-file: /nonexistent}\n", ":2:", "/nonexistent"),
        ("requests:\n- {path: /, weight: 1e308}\n", ":2:21", "a weight must be from 0.000001 to 1000000000"),
        ("requests:\n- {path: /, expect: {status: 7xx}}\n", ":2:30", "`7xx` is not a status code from 100 to 599"),
        ("requests: []\n", ":1:11", "an empty list"),
        ("requests:\n- {path: /\n", ":2:3", "this is not YAML"),
        ("requests:\n- {path: '/{{line:/nonexistent}}'}\n", ":2:10", "/nonexistent"),
    ];
    for (text, position, words) in rows {
        let (_folder, path) = file("mix.yaml", text);
        let ended = origin.load(&format!("--request-set {path}"));
        ended.refused(&[&format!("mix.yaml{position}"), words]);
    }
    #[rustfmt::skip]
    let rows = [
        ("hello\n", ":1:1", "expected a time in seconds or of RFC 3339"),
        ("0.1\n0.2\nsoon\n", ":3:1", "found `soon`"),
        ("0.1 x\n", ":1:1", "found `0.1 x`"),
        ("- - - [21/Nov/2026:13:00:01 +0000] \"GET / HTTP/1.1\" 200 0\n- - - [21/Nov\n", ":2:7",
         "expected a time such as [21/Nov/2026:13:00:01 +0000]"),
        ("{\"time\":1795266001}\n", ":1:1", "expected a key `request`"),
    ];
    for (text, position, words) in rows {
        let (_folder, path) = file("trace", text);
        let ended = origin.load(&format!("--trace {path}"));
        ended.refused_in_a_line(&["--trace ", &format!("/trace{position}: "), words]);
    }
    let (_folder, path) = file("trace", "{\"time\": 1, \"path\": \"/a\"}\n");
    let words = ["--trace: the trace has its own methods and paths", "\nhint: omit the method"];
    let line = format!("load --trace {path} {}own", origin.url());
    run(&line).refused_in_a_line(&words);
    let ended = origin.load(&format!("--trace {path} -m PUT"));
    ended.refused_in_a_line(&words);
    let script = "import http from 'k6/http'\nthresholds: { http_req_duration: ['p(99)<300'] }";
    let (_folder, path) = file("a.js", script);
    let hint = "hint: weir load --fail-if 'p99 > 300ms' http://HOST/";
    for option in ["--trace", "--request-set"] {
        let ended = origin.load(&format!("{option} {path}"));
        ended.refused_in_a_line(&["a.js` (k6): weir runs no scripts", hint]);
    }
    let (_folder, path) = file("trace", "");
    origin.load(&format!("--trace {path}")).refused_in_a_line(&["needs at least one line"]);
    origin.load("--trace /nonexistent").refused_in_a_line(&["/nonexistent", "No such"]);
    assert_eq!(origin.counters(0).requests, 0);
}

#[test]
fn expectations_that_nothing_can_meet() {
    let origin = start_origin();
    #[rustfmt::skip]
    let rows = [
        ("status", "--expect: `status` is not something that can be expected\nhint: "),
        ("status=20", "--expect: `20` is not a status code from 100 to 599"),
        ("status=7xx", "--expect: `7xx` is not a status code from 100 to 599"),
        ("status=200,status=999", "--expect: `status=999` is not a status code"),
        ("size=big", "--expect: `big` is not a size"),
        ("sha256=xyz", "--expect: `xyz` is not 64 hexadecimal digits"),
        ("colour=red", "--expect: `colour=red` is not something"),
        ("field=a(b", "--expect: `a(b` is not a valid header name"),
    ];
    for (expect, words) in rows {
        origin.load(&format!("--expect {expect}")).refused_in_a_line(&[words]);
    }
    let (_folder, path) = file("mix.yaml", "requests: [{path: /}]\n");
    let ended = origin.load(&format!("--request-set {path} --expect status=200"));
    ended.refused_in_a_line(&["--expect: with --request-set"]);
    origin.load(&format!("--request-set {path} -b x")).refused(&["cannot be used with"]);
    assert_eq!(origin.counters(0).requests, 0);
}
