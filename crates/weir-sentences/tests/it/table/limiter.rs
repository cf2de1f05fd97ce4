//! Sentences about the limiter of an arm.

use weir_analysis::findings::LimiterFindings;
use weir_analysis::fixture;
use weir_limits::{
    Absent, Answer, Certainty, Fact, Finding, NextLimit, Role, Rules, TurnDirection, Unknown,
};
use weir_model::limit::Limit;
use weir_model::record::{CapacityEnd, ConfirmationRecord, Record};
use weir_model::study::{Arm, Metric, Reduction, Settings, TakenFrom};
use weir_sentences::limiter::{describe, what_to_do};

use super::Row;
use crate::capacity::build_record;

pub(super) fn fact(value: f64, unit: &str) -> Fact {
    Fact { value, at_low_load: None, unit: unit.to_owned(), from: Vec::new(), read_of: None }
}

/// A finding by the first rule of a limiter.
pub(super) fn finding(limiter: &str) -> Finding {
    let rules = Rules::builtin().all();
    let rule = rules.iter().find(|rule| rule.limiter.value == limiter).expect("a limiter");
    Finding {
        limiter: limiter.to_owned(),
        role: Role::Proxy,
        says: rule.says.clone(),
        advice: rule.advice.clone(),
        certainty: Certainty::Strong,
        unjudged: Vec::new(),
        score: 0.0,
        evidence: Vec::new(),
        turn: Vec::new(),
        ways: Vec::new(),
        after: Vec::new(),
        behind: None,
        source: String::new(),
        doctor: Vec::new(),
    }
}

/// The arm `stock` with one finding.
fn named(finding: Finding) -> LimiterFindings {
    let mut limiter = fixture::limiter("stock");
    limiter.judgement.answer = Answer::Named;
    limiter.judgement.findings = vec![finding];
    limiter.evidence.quantities.insert("cpu".to_owned(), fact(0.983, "share"));
    limiter.evidence.quantities.insert("log_worker_connections".to_owned(), fact(300.0, ""));
    limiter
}

fn doubted(certainty: Certainty, limiters: &[&str]) -> String {
    let unjudged = limiters.iter().map(|name| (*name).to_owned()).collect();
    describe(&named(Finding { certainty, unjudged, ..finding("cpu") }))
}

fn with_turns(turns: &[(&str, TurnDirection)], pods: Option<&str>) -> String {
    let turn = turns.iter().map(|(parameter, _)| (*parameter).to_owned()).collect();
    let ways = turns.iter().map(|(_, way)| way.clone()).collect();
    let mut limiter = named(Finding { turn, ways, ..finding("cpu") });
    limiter.pods = pods.map(str::to_owned);
    describe(&limiter)
}

fn with_behind(behind: NextLimit) -> String {
    describe(&named(Finding { behind: Some(behind), ..finding("worker_connections") }))
}

fn next_resource(used: f64, at_rate: Option<f64>) -> String {
    with_behind(NextLimit::Resource { quantity: "cpu_all".to_owned(), used, at_rate })
}

/// Marks the CPU time as read in one of two hosts.
fn partly_read(mut limiter: LimiterFindings, pods: Option<&str>) -> String {
    let read = Fact { read_of: Some((1, 2)), ..fact(0.983, "share") };
    limiter.evidence.quantities.insert("cpu".to_owned(), read);
    limiter.pods = pods.map(str::to_owned);
    describe(&limiter)
}

fn calm() -> LimiterFindings {
    let mut limiter = fixture::limiter("stock");
    limiter.judgement.answer = Answer::NoLimitReached;
    limiter
}

/// Pods of which nothing could be read.
fn unread_pods(mut limiter: LimiterFindings) -> String {
    limiter.pods = Some("pods of Deployment default/proxy".to_owned());
    let absent = Absent::Missing { column: "cgroups.".to_owned(), why: "forbidden".to_owned() };
    limiter.evidence.absent.insert("throttled".to_owned(), absent);
    describe(&limiter)
}

pub(super) fn rows() -> Vec<Row> {
    use Certainty::{Likely, Weak};
    let up = ("worker_processes", TurnDirection::Up);
    let down = ("gzip_comp_level", TurnDirection::Down);
    let set = ("access_log", TurnDirection::To("off".to_owned()));
    let either = ("ssl_ciphers", TurnDirection::Either);
    let pods = Some("pods of Deployment default/proxy");
    let mut closed = calm();
    closed.stretch.rate = None;
    let mut unfilled = named(finding("cpu"));
    unfilled.evidence.quantities.clear();
    let mut contradicted = fixture::limiter("stock");
    contradicted.judgement.seen = vec![super::evidence::busy()];
    vec![
        ("Strong evidence", describe(&named(finding("cpu")))),
        ("Likely, and all limits could be judged", doubted(Likely, &[])),
        ("Likely, but another limit could not be judged", doubted(Likely, &["tls"])),
        ("Weak evidence, as two others could not be judged", doubted(Weak, &["tls", "crowded"])),
        (
            "Weak evidence, as four others could not be judged",
            doubted(Weak, &["tls", "crowded", "softirq", "time_wait"]),
        ),
        ("A value that is not known", describe(&unfilled)),
        ("A parameter to raise", with_turns(std::slice::from_ref(&up), None)),
        ("Three parameters to change", with_turns(&[down, set, either], None)),
        (
            "A parameter of pods, and one of the proxy in them",
            with_turns(&[("cpu_limit", TurnDirection::Up), up], pods),
        ),
        ("What to do about it", what_to_do(&named(finding("cpu"))).expect("it has a finding")),
        ("Another limiter comes next", with_behind(NextLimit::Limiter("accept_queue".to_owned()))),
        ("A resource comes next, above the requested rate", next_resource(0.8, Some(4_800.0))),
        ("A resource comes next, below the requested rate", next_resource(0.8, Some(3_000.0))),
        ("A resource comes next, at a rate that is not known", next_resource(1.3, None)),
        ("A resource that is hardly used comes next", next_resource(0.4, Some(9_000.0))),
        ("One of two hosts was read", partly_read(named(finding("cpu")), None)),
        ("One of two pods was read", partly_read(named(finding("cpu")), pods)),
        ("Nothing was used up", describe(&calm())),
        ("Nothing was used up in a closed loop", describe(&closed)),
        ("Nothing was used up in the pod that was read", partly_read(calm(), pods)),
        ("Nothing was used up, and no pod was read", unread_pods(calm())),
        ("No known resource was used up", describe(&fixture::limiter("stock"))),
        ("The evidence contradicts itself", describe(&contradicted)),
    ]
}

/// A limiter, the quantity that it lacks, and the sampler's reason.
type Lacking = (&'static str, &'static str, Option<&'static str>);

pub(super) fn unjudged_rows() -> Vec<Row> {
    let denied = Some("permission denied");
    let connections = ("worker_connections", "log_worker_connections", None);
    let limited = ("rate_limit", "log_limit_req", None);
    let compressed = ("compression", "compression_on", None);
    let header = ("header_buffer", "log_big_header", None);
    let origin = ("origin", "origin_thread", None);
    let lacking: [(&'static str, &[Lacking]); 9] = [
        ("Settings of the server, for one limit", &[limited]),
        (
            "Settings of the server, for one limit, with the reason",
            &[("rate_limit", "log_limit_req", Some("no `stats socket`"))],
        ),
        (
            "Settings of the server, for three of four limits",
            &[connections, limited, compressed, origin],
        ),
        ("Settings of the server, for four limits", &[connections, limited, compressed, header]),
        (
            "The server's host, for two limits",
            &[("quota", "throttled", denied), ("softirq", "cpu_softirq_busiest", denied)],
        ),
        ("The origin server", &[origin]),
        ("The time of the origin's responses", &[("origin", "origin_time", None)]),
        ("The generator's host", &[("generator", "generator_thread", None)]),
        ("Figures of the load", &[("network", "network_use", None)]),
    ];
    let mut low = fixture::limiter("shop");
    let missing = vec!["switches_per_request".to_owned()];
    low.judgement.unknown = vec![Unknown { limiter: "lock".to_owned(), missing }];
    low.evidence.quantities.insert("switches_per_request".to_owned(), fact(6.0, ""));
    let mut rows: Vec<Row> = lacking
        .into_iter()
        .map(|(case, lacking)| (case, describe(&fixture::unjudged(lacking))))
        .collect();
    rows.push(("A time at a low load", describe(&low)));
    rows.push(("No pod was read", unread_pods(fixture::limiter("stock"))));
    let pods = Some("pods of Deployment default/proxy");
    rows.push(("One of two pods was read", partly_read(fixture::unjudged(&[limited]), pods)));
    rows
}

/// A ratio and its interval.
type Ratio = (f64, (f64, f64));

fn confirmed(confirmed: bool, ratio: Option<Ratio>) -> ConfirmationRecord {
    ConfirmationRecord {
        arm: "stock".to_owned(),
        load: "open".to_owned(),
        limiter: "cpu".to_owned(),
        turned: Settings::from([("worker_processes".to_owned(), "4".to_owned())]),
        taken: None,
        metric: Metric::Rate,
        ratio,
        confirmed,
        why_not: String::new(),
        run: String::new(),
    }
}

fn reduced(is_confirmed: bool, from: TakenFrom, ratio: Option<Ratio>) -> ConfirmationRecord {
    ConfirmationRecord {
        turned: Settings::new(),
        taken: Some(Reduction { from, percent: 25 }),
        ..confirmed(is_confirmed, ratio)
    }
}

pub(super) fn confirmation_rows() -> Vec<Row> {
    let more = Some((1.92, (1.88, 1.97)));
    let same = Some((1.01, (0.98, 1.03)));
    let less = Some((0.76, (0.73, 0.8)));
    let raised = confirmed(true, more);
    let lower_p99 = Some((0.31, (0.28, 0.35)));
    let shorter = ConfirmationRecord { metric: Metric::ResponseP99, ..confirmed(true, lower_p99) };
    let both = [("backlog", "4096"), ("net.core.somaxconn", "4096")]
        .map(|(id, level)| (id.to_owned(), level.to_owned()));
    let answered = ConfirmationRecord { turned: Settings::from(both), ..confirmed(true, None) };
    let why_not = "the trial was INVALID".to_owned();
    let invalid = ConfirmationRecord { why_not: why_not.clone(), ..confirmed(false, None) };
    let impossible = ConfirmationRecord { turned: Settings::new(), ..invalid.clone() };
    let confirmations = [
        ("A parameter is confirmed", vec![raised.clone()]),
        ("A parameter is confirmed by the response time", vec![shorter]),
        ("Two parameters are confirmed, as requests failed without them", vec![answered]),
        ("A parameter is not confirmed", vec![confirmed(false, same)]),
        ("The trial of a parameter has no result", vec![invalid]),
        ("No trial could be made", vec![impossible]),
        ("Less CPU time of the proxy confirms it", vec![reduced(true, TakenFrom::Proxy, less)]),
        (
            "Less CPU time of the generator does not confirm it",
            vec![reduced(false, TakenFrom::Generator, same)],
        ),
        (
            "With a slower origin server nothing is answered",
            vec![reduced(false, TakenFrom::Origin, None)],
        ),
        ("Two trials", vec![raised, reduced(true, TakenFrom::Proxy, less)]),
    ];
    let rows = confirmations.into_iter().map(|(case, confirmations)| {
        (case, describe(&LimiterFindings { confirmations, ..named(finding("cpu")) }))
    });
    rows.collect()
}

/// Returns the answer of a search with a limiter of the first arm.
fn search(arms: Vec<Arm>, records: &[Record]) -> String {
    let mut header = fixture::build_header(arms);
    header.study.capacity = Limit::parse_all("p99 < 30ms").expect("a limit");
    let (_folder, run) = fixture::run_with_records(&header, Vec::new(), |_, _| Vec::new(), records);
    let mut findings = weir_analysis::analyze(&run);
    findings.limiters = vec![named(finding("cpu"))];
    weir_sentences::answer(&run.header.study, &findings)
}

pub(super) fn capacity_rows() -> Vec<Row> {
    let [first, _, other] = fixture::three_arms().try_into().expect("three");
    let ended = Record::Capacity(build_record("stock", CapacityEnd::Found));
    vec![
        ("One arm", search(vec![first.clone()], &[ended])),
        ("One arm, after a search that did not end", search(vec![first.clone()], &[])),
        ("Two arms: the report has the limiter of each", search(vec![first, other], &[])),
    ]
}
