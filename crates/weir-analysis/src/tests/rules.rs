//! Tests of the table of rules: each just at and just beyond its limits, in both uses.

use std::collections::BTreeSet;

use weir_model::load::{Censored, ErrorCount, ErrorKind, LeftOut};
use weir_model::record::{ConnectionCounts, LostNode, Observation, Peer, Validity, ValidityReason};

use crate::evidence::{Due, Evidence, Hop, Overflows, Slices};
use crate::validity::{RULES, Reason, Use, judge};

use Validity::{Invalid as I, Suspect as S};

type ExpectedReasons = &'static [(&'static str, Validity)];

/// 100,000 responses, and a trial of a second on one CPU, of which a fifth is not measured.
fn quiet() -> Evidence<'static> {
    Evidence {
        is_open: true,
        answered: Some(100_000),
        completed: Some(100_000),
        slices: Some(Slices {
            count: 1.0,
            whole_ns: 1e9,
            measured_ns: 8e8,
            late_ns: 0.0,
            proxy_cpus: 1.0,
            proxy_steal_ns: 0.0,
            proxy_idle_ns: 0.0,
            throttled_ns: 0.0,
            proxy_throttled_ns: 0.0,
            others_ns: Some(0.0),
            peer: None,
            median_ns: None,
        }),
        ..Evidence::default()
    }
}

fn reasons_of(used: Use, evidence: &Evidence<'_>) -> Vec<(&'static str, Validity)> {
    let reasons = judge(used, evidence);
    reasons.iter().map(|found| (found.reason.rule(), found.reason.validity)).collect()
}

fn with(change: impl FnOnce(&mut Evidence<'static>)) -> Evidence<'static> {
    let mut evidence = quiet();
    change(&mut evidence);
    evidence
}

fn sliced(change: impl FnOnce(&mut Slices)) -> Evidence<'static> {
    with(|e| change(e.slices.as_mut().unwrap()))
}

fn errors(kind: ErrorKind, errno: Option<i32>, count: u64) -> Evidence<'static> {
    let words = "as it was said".to_owned();
    let error = ErrorCount { kind, words, errno, count };
    with(|e| e.errors = vec![error].leak())
}

fn idle(busy: f64, ns: f64) -> Evidence<'static> {
    sliced(|s| (s.peer, s.proxy_idle_ns) = (Some((Peer::Origin, busy)), ns))
}

fn median(ns: f64, measured_ns: f64) -> Evidence<'static> {
    sliced(|s| (s.median_ns, s.measured_ns) = (Some(ns), measured_ns))
}

/// Numbers of sent, queued and dropped requests out of 100,000 that were due.
fn due(sent: u64, queued: u64, dropped: u64) -> Evidence<'static> {
    let due = 100_000;
    let schedule = Due { due, sent, queued, dropped };
    with(|e| e.schedule = Some(schedule))
}

/// Dispatch lag in percent of the response time.
fn lag(p50: u64, p99: u64) -> Evidence<'static> {
    with(|e| e.lag = vec![(0.5, p50, 100), (0.99, p99, 100)])
}

/// Dispatch lag as in `lag`, with a claimed resolution of 100 µs.
fn resolved(p50: u64, p99: u64) -> Evidence<'static> {
    Evidence { resolution_ns: 100_000, ..lag(p50, p99) }
}

fn censored(in_flight: u64, queued: u64) -> Evidence<'static> {
    let censored = Censored { in_flight, queued, oldest_ns: 1 };
    with(|e| e.censored = Some(censored))
}

fn overflows(seen: u64, opened: u64) -> Evidence<'static> {
    let overflows = Overflows { seen, opened, responses: 100_000 };
    with(|e| e.overflows = Some(overflows))
}

fn of_thousand(open_at_start: u64, open_at_end: u64, lost: u64) -> Option<ConnectionCounts> {
    let (wanted, opened) = (1000, open_at_start + lost);
    Some(ConnectionCounts {
        wanted,
        open_at_start,
        open_at_end,
        opened,
        ..ConnectionCounts::default()
    })
}

fn held(open_at_start: u64, open_at_end: u64, lost: u64) -> Evidence<'static> {
    with(|e| e.held = of_thousand(open_at_start, open_at_end, lost))
}

fn hop(redirected_bytes: u64, tcp_bytes: u64, refused: u64) -> Evidence<'static> {
    let (name, redirected, tcp, sockets) = ("inbound", 1, 1, 10);
    Hop { name, redirected_bytes, tcp_bytes, redirected, tcp, refused, sockets }.into()
}

/// A name, the evidence, and the expected reasons in a study and of a load test.
type Row = (&'static str, Evidence<'static>, ExpectedReasons, ExpectedReasons);

#[rustfmt::skip]
fn of_requests() -> Vec<Row> {
    use ErrorKind::{Connect, Receive, Unexpected, Unsolicited};
    const FAILED: ExpectedReasons = &[("failures", S)];
    const LOST: ExpectedReasons = &[("failures", I)];
    const NO_PORT: Option<i32> = Some(99);
    static LEFT_OUT: [LeftOut; 1] = [LeftOut { what: String::new(), lines: 100, first: 1 }];
    vec![
        ("10 % of a trace left out", with(|e| e.recorded = Some((900, &LEFT_OUT))), &[], &[]),
        ("more of it", with(|e| e.recorded = Some((899, &LEFT_OUT))), &[], &[("trace-left-out", S)]),
        ("quiet", quiet(), &[], &[]),
        ("nothing", with(|e| e.answered = Some(0)), &[], &[("nothing-answered", I)]),
        ("one", with(|e| e.answered = Some(1)), &[], &[]),
        ("nothing asked", with(|e| e.answered = None), &[], &[]),
        ("0.1 % failed", with(|e| e.unexpected = 100), &[], &[]),
        ("more failed", with(|e| e.unexpected = 101), &[], FAILED),
        ("5 % failed", with(|e| e.unexpected = 5000), &[], FAILED),
        ("more than 5 % failed", with(|e| e.unexpected = 5001), &[], LOST),
        ("0.1 % errors", errors(Receive, Some(104), 100), &[], &[]),
        ("more errors", errors(Receive, Some(104), 101), &[], FAILED),
        ("less than 5 % errors", errors(Receive, None, 5263), &[], FAILED),
        ("5 % errors", errors(Receive, None, 5264), &[], LOST),
        // They are complete all the same: of 100,000 requests, not of more.
        ("0.1 % wrong", errors(Unexpected, None, 100), &[], &[]),
        ("more wrong", errors(Unexpected, None, 101), &[], FAILED),
        ("all wrong, and so by status", Evidence { unexpected: 100_000, ..errors(Unexpected, None, 100_000) }, &[], LOST),
        ("0.1 % answered with bytes too many", errors(Unsolicited, None, 100), &[], &[]),
        ("more of these", errors(Unsolicited, None, 101), &[], FAILED),
        ("more than 5 % of these", errors(Unsolicited, None, 5001), &[], LOST),
        ("no port once", errors(Connect, NO_PORT, 1), &[("ports-exhausted", S)], &[("ports-exhausted", S)]),
        ("another error", errors(Connect, Some(111), 1), &[], &[]),
        ("no port for 5 %", errors(Connect, NO_PORT, 5263), &[("ports-exhausted", S)], &[("failures", S), ("ports-exhausted", S)]),
        ("no port for more", errors(Connect, NO_PORT, 5264), &[("ports-exhausted", I)], &[("failures", I), ("ports-exhausted", I)]),
    ]
}

#[rustfmt::skip]
fn of_cpus_and_hops() -> Vec<Row> {
    const STOPPED: ExpectedReasons = &[("generator-stopped", S)];
    vec![
        ("5 % stolen, and a tick", sliced(|s| s.proxy_steal_ns = 6e7), &[], &[]),
        ("more stolen", sliced(|s| s.proxy_steal_ns = 6.1e7), &[("proxy-steal", S)], &[]),
        ("20 % stolen", sliced(|s| s.proxy_steal_ns = 2.1e8), &[("proxy-steal", S)], &[]),
        ("more than 20 % stolen", sliced(|s| s.proxy_steal_ns = 2.2e8), &[("proxy-steal", I)], &[]),
        ("1 % of the generator stolen", with(|e| e.steal = Some(0.01)), &[], &[]),
        ("more of the generator stolen", with(|e| e.steal = Some(0.011)), &[], &[("steal", S)]),
        ("more than 5 % of it stolen", with(|e| e.steal = Some(0.051)), &[("steal", S)], &[("steal", S)]),
        ("more than 20 % of it stolen", with(|e| e.steal = Some(0.21)), &[("steal", I)], &[("steal", I)]),
        ("1 % held back by a quota", sliced(|s| (s.throttled_ns, s.proxy_throttled_ns) = (1e7, 1e7)), &[], &[]),
        ("more held back", sliced(|s| s.throttled_ns = 1.1e7), &[("throttled", S)], &[]),
        ("more than 20 % held back", sliced(|s| s.throttled_ns = 2.1e8), &[("throttled", I)], &[]),
        ("the proxy held back", sliced(|s| s.proxy_throttled_ns = 9e8), &[("proxy-throttled", S)], &[]),
        ("10 % of the generator stolen", with(|e| e.steal = Some(0.10)), &[("steal", S)], &[("steal", S)]),
        ("more than 10 % of it stolen", with(|e| e.steal = Some(0.11)), &[("steal", S)], &[("steal", I)]),
        ("5 % of others, and a tick", sliced(|s| s.others_ns = Some(6e7)), &[], &[]),
        ("more of others", sliced(|s| s.others_ns = Some(6.1e7)), &[("proxy-crowded", S)], &[]),
        ("all of others", sliced(|s| s.others_ns = Some(1e9)), &[("proxy-crowded", S)], &[]),
        ("5 % of others, by samples", with(|e| e.crowd = Some(0.05)), &[], &[]),
        ("more of others, by samples", with(|e| e.crowd = Some(0.051)), &[("proxy-crowded", S)], &[]),
        ("a fifth idle, and a tick", idle(0.8, 2.1e8), &[], &[]),
        ("more idle", idle(0.8, 2.2e8), &[("proxy-not-limit", S)], &[]),
        ("idle, and so are the others", idle(0.79, 9e8), &[], &[]),
        ("as long as what is not measured", median(2e8, 8e8), &[], &[]),
        ("longer", median(2.01e8, 8e8), &[("slice-too-short", S)], &[]),
        ("all is measured", median(1e9, 1e9), &[], &[]),
        ("5 % late", sliced(|s| s.late_ns = 5e7), &[], &[]),
        ("later", sliced(|s| s.late_ns = 5.1e7), &[("late-counters", S)], &[]),
        ("half a slice late", sliced(|s| s.late_ns = 5e8), &[("late-counters", S)], &[]),
        ("later than half", sliced(|s| s.late_ns = 5.1e8), &[("late-counters", I)], &[]),
        ("a thread stood still for 1 %, and 50 ms", with(|e| e.gap = Some((60_000_000, 1e9))), &[], &[]),
        ("for longer", with(|e| e.gap = Some((61_000_000, 1e9))), &[], STOPPED),
        ("for 10 %", with(|e| e.gap = Some((150_000_000, 1e9))), &[], STOPPED),
        ("for more", with(|e| e.gap = Some((151_000_000, 1e9))), &[], &[("generator-stopped", I)]),
        ("half by TCP", hop(500, 500, 0), &[], &[]),
        ("more by TCP", hop(499, 501, 0), &[("bypass-idle", S)], &[]),
        ("one byte past TCP", hop(1, u64::MAX, 0), &[("bypass-idle", S)], &[]),
        ("nothing past TCP", hop(0, 5, 0), &[("bypass-idle", I)], &[]),
        ("nothing at all", hop(0, 0, 0), &[("bypass-idle", I)], &[]),
        ("a socket without a place", hop(1, 0, 1), &[("bypass-refused", S)], &[]),
        ("most without a place", hop(1, 0, 1000), &[("bypass-refused", S)], &[]),
    ]
}

#[rustfmt::skip]
fn of_generator_and_connections() -> Vec<Row> {
    const RATE: ExpectedReasons = &[("offered-rate", S)];
    const WRONG_RATE: ExpectedReasons = &[("offered-rate", I)];
    const LAG: ExpectedReasons = &[("dispatch-lag", S)];
    const LATE: ExpectedReasons = &[("dispatch-lag", I)];
    const APART: ExpectedReasons = &[("start-spread", S)];
    const HELD: ExpectedReasons = &[("held-connections", S)];
    const CLOSED: ExpectedReasons = &[("held-connections", I)];
    vec![
        ("0.1 % not offered", due(99_900, 0, 0), &[], &[]),
        ("more not offered", due(99_899, 0, 0), RATE, RATE),
        ("1 % not offered", due(99_000, 0, 0), RATE, RATE),
        ("more than 1 % not offered", due(98_999, 0, 0), WRONG_RATE, WRONG_RATE),
        ("more than 1 % too many", due(101_001, 0, 0), WRONG_RATE, WRONG_RATE),
        ("half found no connection", due(50_000, 50_000, 0), &[], &[]),
        ("none did", due(0, 100_000, 0), &[], &[]),
        ("5 ms apart", with(|e| e.start_spread = Some((5_000_000, 9_000_000))), &[], &[]),
        ("more apart", with(|e| e.start_spread = Some((5_000_001, 0))), APART, APART),
        ("a second apart", with(|e| e.start_spread = Some((1_000_000_000, 0))), APART, APART),
        ("a node was lost", with(|e| e.lost_nodes = vec![LostNode::default()]), &[("node-lost", I)], &[]),
        ("0.1 % left out", due(99_900, 0, 100), &[], &[]),
        ("more left out", due(99_899, 0, 101), &[], &[("dropped", S)]),
        ("all left out", due(0, 0, 100_000), &[], &[("dropped", S)]),
        ("a quarter late", lag(25, 25), &[], &[]),
        ("more at p50", lag(26, 0), LAG, LAG),
        ("more at p99", lag(0, 26), LAG, LAG),
        ("half", lag(50, 50), LAG, LAG),
        ("more than half at p50", lag(51, 26), LATE, LATE),
        ("more than half at p99", lag(26, 51), LATE, LATE),
        ("100 µs late of nothing", resolved(100_000, 100_000), &[], &[]),
        ("more", resolved(100_001, 0), LAG, LAG),
        ("twice as late at p99", resolved(0, 200_000), LAG, LAG),
        ("later", resolved(0, 200_001), LATE, LATE),
        ("8 threads for each CPU", with(|e| e.threads = Some((16, 2))), &[], &[]),
        ("more threads", with(|e| e.threads = Some((17, 2))), &[], &[("threads-crowded", S)]),
        ("a thousand", with(|e| e.threads = Some((1000, 2))), &[], &[("threads-crowded", S)]),
        ("100 responses", with(|e| e.timed = Some(100)), &[], &[]),
        ("fewer responses", with(|e| e.timed = Some(99)), &[], &[("few-responses", S)]),
        ("5 responses", with(|e| e.timed = Some(5)), &[], &[("few-responses", S)]),
        ("a few responses", with(|e| e.timed = Some(4)), &[], &[("few-responses", I)]),
        ("one response", with(|e| e.timed = Some(1)), &[], &[("few-responses", I)]),
        ("95 % busy", with(|e| e.generator_busy = Some(0.95)), &[], &[]),
        ("busier", with(|e| e.generator_busy = Some(0.96)), &[("generator-busy", S)], &[("generator-busy", S)]),
        ("80 % of what it can", with(|e| e.capacity = Some((80.0, 100.0))), &[], &[]),
        ("nearer", with(|e| e.capacity = Some((81.0, 100.0))), &[], &[("near-self-capacity", S)]),
        ("all ended", censored(0, 0), &[], &[]),
        ("one never ended", censored(1, 0), &[], &[("censored", S)]),
        ("one never began", censored(0, 1), &[], &[("censored", S)]),
        ("1 % never ended", censored(1000, 10), &[], &[("censored", S)]),
        ("more never ended", censored(1000, 11), &[], &[("censored", S)]),
        ("0.1 % of receives waited", with(|e| e.starved = Some((100, 100_000))), &[], &[]),
        ("more waited", with(|e| e.starved = Some((101, 100_000))), &[("generator-starved", S)], &[("generator-starved", S)]),
        ("0.1 % found a queue full", overflows(100, 1000), &[], &[]),
        ("more found it full", overflows(101, 1000), &[("listen-overflows", S)], &[("listen-overflows", S)]),
        ("of which few can be ours", overflows(1000, 100), &[], &[]),
        ("0.1 % missing", with(|e| e.asking = of_thousand(999, 0, 0)), &[], &[]),
        ("more missing", with(|e| e.asking = of_thousand(998, 0, 0)), &[("connections-missing", S)], &[("connections-missing", S)]),
        ("5 % missing", with(|e| e.asking = of_thousand(950, 0, 0)), &[("connections-missing", S)], &[("connections-missing", S)]),
        ("more than 5 % missing", with(|e| e.asking = of_thousand(949, 0, 0)), &[("connections-missing", S)], &[("connections-missing", I)]),
        ("held", held(999, 999, 1), &[], &[]),
        ("never opened", held(998, 1000, 0), HELD, HELD),
        ("closed", held(1000, 998, 0), HELD, HELD),
        ("opened again", held(1000, 1000, 2), HELD, HELD),
        ("5 % opened again", held(1000, 1000, 50), HELD, HELD),
        ("more opened again", held(1000, 1000, 51), CLOSED, CLOSED),
        ("more never opened", held(949, 949, 0), CLOSED, CLOSED),
    ]
}

#[test]
fn every_rule_speaks_beyond_its_limits_and_not_at_them() {
    let mut covered = BTreeSet::new();
    let table = [of_requests(), of_cpus_and_hops(), of_generator_and_connections()];
    for (name, evidence, in_study, of_load) in table.concat() {
        for (used, expected) in [(Use::Study, in_study), (Use::Load, of_load)] {
            assert_eq!(reasons_of(used, &evidence), expected, "{name}, {used:?}");
            for Reason { reason, .. } in judge(used, &evidence) {
                let json = serde_json::to_value(&reason).unwrap();
                assert_eq!(json["rule"], reason.rule());
                assert_eq!(serde_json::from_value::<ValidityReason>(json).unwrap(), reason);
            }
            covered.extend(expected.iter().map(|(rule, _)| *rule));
        }
    }
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(covered, rules, "each has a row that fails without it");
    assert_eq!(rules.len(), RULES.len(), "each has a name of its own");
}

#[test]
fn what_is_not_known_is_no_reason_to_doubt() {
    for used in [Use::Study, Use::Load] {
        assert_eq!(reasons_of(used, &Evidence::default()), []);
    }
}

#[test]
fn reasons_name_the_flow_and_the_most_frequent_error() {
    let errors = [("Connection refused (os error 111)", 7), ("x", 2)].map(|(words, count)| {
        ErrorCount { kind: ErrorKind::Connect, words: words.to_owned(), errno: None, count }
    });
    let evidence =
        Evidence { name: Some("main"), answered: Some(0), errors: &errors, ..Evidence::default() };
    let reason = &judge(Use::Load, &evidence)[0].reason;
    assert_eq!(reason.subject.as_deref(), Some("main"));
    let error = Some(errors[0].clone());
    assert_eq!(reason.observation, Observation::NothingAnswered { error });
}

#[test]
fn the_manual_lists_the_rules_of_a_load_test() {
    let manual = include_str!("../../../../docs/load.md");
    for rule in &RULES {
        let limits = rule.limits[Use::Load as usize];
        let begin = format!("| `{}` |", rule.name);
        let row = manual.lines().find(|line| line.starts_with(&begin));
        if limits.suspect.is_infinite() {
            assert_eq!(row, None, "{} is of studies alone", rule.name);
            continue;
        }
        let cells: Vec<&str> = row.unwrap_or_default().split('|').map(str::trim).collect();
        let expected = match rule.name {
            "nothing-answered" => [String::new(), "always".to_owned()],
            "few-responses" => {
                [limits.suspect, limits.invalid].map(|l| format!("below {}", 1.0 / l))
            }
            "start-spread" => [format!("{} ms", limits.suspect), String::new()],
            "threads-crowded" => [format!("{}", limits.suspect), String::new()],
            _ => [limits.suspect, limits.invalid].map(|limit| match limit {
                f64::INFINITY => String::new(),
                0.0 => "any".to_owned(),
                share => format!("{} %", (share * 1e4).round() / 1e2),
            }),
        };
        assert_eq!(cells.get(3..5), Some(&expected.each_ref().map(|s| &**s)[..]), "{}", rule.name);
    }
}
