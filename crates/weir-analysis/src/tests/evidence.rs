//! Tests of the evidence from a trial, the end of a continuous trial, and a load test's report.

use std::collections::BTreeSet;

use serde_json::json;
use weir_model::fixture::load;
use weir_model::load::{Arrivals, ErrorCount, ErrorKind, Lifetime};
use weir_model::load_report::{FlowReport, LoadReport, StatusCount};
use weir_model::record::{
    ArmConnections, ConnectionCounts, GeneratorStart, LoadBlocks, LostNode, PartRecord, Phase,
    RunHeader, SliceRecord, TrialRecord, Validity, ValidityReason,
};
use weir_model::study::{LoadSpec, StudyArrivals};
use weir_stats::SplitMix64;

use crate::blocks::{Part, holds};
use crate::connections::is_with;
use crate::fixture::{SLICE_NS, build_header, build_trial, load_report, slice, three_arms};
use crate::validity::{RULES, Use, judge};
use crate::{load_validity, validity};

use Validity::{Invalid as I, Suspect as S};

type ExpectedReasons = &'static [(&'static str, Validity)];

const FAILED: ExpectedReasons = &[("failures", S)];

fn error(errno: i32, count: u64) -> Vec<ErrorCount> {
    vec![ErrorCount {
        kind: ErrorKind::Connect,
        words: format!("it failed (os error {errno})"),
        errno: Some(errno),
        count,
    }]
}

fn each_slice(trial: &mut TrialRecord, change: impl Fn(&mut SliceRecord)) {
    trial.slices.iter_mut().for_each(change);
}

/// A load, a change to a trial of two slices at 10,000 per second or to its run, and the expected reasons.
type TrialRow = (&'static str, fn(&mut TrialRecord, &mut RunHeader), ExpectedReasons);

/// A slice is 100 ms, of which 80 are measured.
#[rustfmt::skip]
const TRIALS: &[TrialRow] = &[
    ("closed", |_, _| {}, &[]),
    ("open", |_, _| {}, &[]),
    // What the arm did is an outcome.
    ("closed", |t, _| t.errors = error(111, 106), &[]),
    ("closed", |t, _| t.status_classes = [0, 0, 0, 0, 0, 2000], &[]),
    ("open", |t, _| { each_slice(t, |s| (s.completed, s.completed_whole) = (0, 0)); t.censored.queued = 2000; }, &[]),
    ("open", |t, _| t.slices.clear(), &[]),
    ("closed", |t, _| t.errors = error(99, 1), &[("ports-exhausted", S)]),
    ("closed", |t, _| t.errors = error(99, 200), &[("ports-exhausted", I)]),
    // One tick of 10 ms, then 5 % beyond it.
    ("closed", |t, _| t.slices[0].proxy_steal_ns = 10_000_000, &[]),
    ("closed", |t, _| t.slices[0].proxy_steal_ns = 20_000_000, &[]),
    ("closed", |t, _| t.slices[0].proxy_steal_ns = 30_000_000, &[("proxy-steal", S)]),
    ("closed", |t, _| t.slices[0].proxy_steal_ns = 60_000_000, &[("proxy-steal", I)]),
    ("closed", |t, _| t.slices[0].generator_steal_ns = 20_000_000, &[]),
    ("closed", |t, _| t.slices[0].generator_steal_ns = 30_000_000, &[("steal", S)]),
    ("open", |t, _| t.slices[0].generator_steal_ns = 60_000_000, &[("steal", I)]),
    ("closed", |t, _| each_slice(t, |s| s.throttled_ns = SLICE_NS / 50), &[("throttled", S)]),
    ("open", |t, _| t.slices[0].proxy_throttled_ns = SLICE_NS, &[("proxy-throttled", S)]),
    // 800 were due in the 80 ms of each slice that are measured, and not recorded as such in old runs.
    ("open", |t, _| t.slices[0].offered += 500, &[]),
    ("open", |t, _| each_slice(t, |s| (s.due, s.sent) = (800, 800)), &[]),
    ("open", |t, _| each_slice(t, |s| (s.due, s.sent) = (800, 799)), &[("offered-rate", S)]),
    ("open", |t, _| each_slice(t, |s| (s.due, s.sent, s.queued) = (800, 500, 292)), &[("offered-rate", S)]),
    ("open", |t, _| each_slice(t, |s| (s.due, s.sent, s.queued) = (800, 500, 291)), &[("offered-rate", I)]),
    ("open", |t, _| each_slice(t, |s| (s.due, s.sent, s.queued, s.dropped) = (800, 500, 200, 100)), &[]),
    // Lateness is judged of all arms together.
    ("open", |t, _| t.dispatch_lag.p99 = 201_000, &[]),
    ("open", |t, _| each_slice(t, |s| s.generator_cpu_ns = SLICE_NS * 96 / 100), &[("generator-busy", S)]),
    // The proxy was busy as well.
    ("closed", |t, _| each_slice(t, |s| s.generator_cpu_ns = SLICE_NS * 96 / 100), &[]),
    // Generator and origin share a CPU: together they use 75 %, then 85 % of it; with one each, neither.
    ("closed", |t, _| each_slice(t, |s| s.proxy_cpus_idle_ns = SLICE_NS * 3 / 10), &[]),
    ("closed", |t, _| each_slice(t, idle), &[("proxy-not-limit", S)]),
    ("open", |t, _| each_slice(t, idle), &[]),
    ("closed", |t, h| { each_slice(t, idle); h.cpus.origin = "2".parse().unwrap(); }, &[]),
    // A tick of idle time that was not counted is a tenth of a slice here.
    ("closed", |t, _| own_cpu(t, 86), &[]),
    ("closed", |t, _| own_cpu(t, 84), &[("proxy-crowded", S)]),
    ("open", |t, _| own_cpu(t, 20), &[("proxy-crowded", S)]),
    // What is measured of an arm that is alone is all of its time.
    ("closed", |t, _| { own_cpu(t, 84); t.phase = Phase::Observation; }, &[]),
    ("closed", |t, h| { own_cpu(t, 20); h.cpus.proxy = h.cpus.generator.clone(); }, &[]),
    // The same number on another host is another CPU.
    ("closed", |t, h| { own_cpu(t, 20); h.cpus.proxy = h.cpus.generator.clone(); h.places.proxy = Some("web1".to_owned()); }, &[("proxy-crowded", S)]),
    ("closed", |t, h| { each_slice(t, idle); h.places.origin = Some("app1".to_owned()); }, &[]),
    ("closed", |t, _| t.response_time.p50 = 20_000_000, &[]),
    ("closed", |t, _| t.response_time.p50 = 20_100_000, &[("slice-too-short", S)]),
    // Its rate is given.
    ("open", |t, _| t.response_time.p50 = 20_100_000, &[]),
    ("closed", |t, _| each_slice(t, |s| s.late_ns = SLICE_NS * 5 / 100), &[]),
    ("closed", |t, _| each_slice(t, |s| s.late_ns = SLICE_NS * 6 / 100), &[("late-counters", S)]),
    ("open", |t, _| each_slice(t, |s| s.late_ns = SLICE_NS * 6 / 100), &[("late-counters", S)]),
    ("closed", |t, _| each_slice(t, |s| s.late_ns = SLICE_NS * 51 / 100), &[("late-counters", I)]),
];

fn idle(slice: &mut SliceRecord) {
    slice.proxy_cpus_idle_ns = SLICE_NS * 3 / 10;
    slice.generator_cpu_ns += SLICE_NS / 10;
}

/// Sets the proxy's own CPU time, in percent of a slice.
fn own_cpu(trial: &mut TrialRecord, percent: u64) {
    each_slice(trial, |slice| slice.proxy_cpu_ns = SLICE_NS * percent / 100);
}

#[test]
fn trials_are_judged_by_what_their_records_say() {
    for (row, (load, change, expected)) in TRIALS.iter().enumerate() {
        let mut header = build_header(three_arms());
        let slices = vec![slice(0, 10_000.0), slice(1, 10_000.0)];
        let mut trial = build_trial(load, "stock", 0, slices);
        change(&mut trial, &mut header);
        let reasons = validity(&trial, &header);
        let rules: Vec<_> = reasons.iter().map(|r| (r.rule(), r.validity)).collect();
        assert_eq!(&rules[..], *expected, "row {row}: {reasons:?}");
    }
}

fn counts(wanted: u64, open_at_start: u64, open_at_end: u64, opened: u64) -> ConnectionCounts {
    ConnectionCounts { wanted, open_at_start, open_at_end, opened, ..ConnectionCounts::default() }
}

/// 50 connections that send requests and 1,000 that are held, to the arm `a`, and 10,000 responses.
fn sample_part() -> PartRecord {
    PartRecord {
        first_block: 10,
        blocks: 5,
        session: 1,
        arms: vec![ArmConnections {
            arm: "a".to_owned(),
            asking: counts(50, 50, 50, 50),
            held: counts(1000, 1000, 1000, 1000),
            ..ArmConnections::default()
        }],
        ..PartRecord::default()
    }
}

fn start(after_ns: u64) -> GeneratorStart {
    GeneratorStart { after_ns, ..GeneratorStart::default() }
}

type PartChange = fn(&mut PartRecord, &mut LoadSpec, &mut [u64; 3]);

/// A change to a continuous trial, its load, or to responses, bytes and connections to the origin; the expected reasons
/// for the trials of `a`.
#[rustfmt::skip]
const PARTS: &[(PartChange, ExpectedReasons)] = &[
    (|_, _, _| {}, &[]),
    (|p, _, _| p.arms[0].held = counts(0, 0, 0, 0), &[]),
    (|p, _, _| p.arms[0].held = counts(1000, 990, 990, 990), &[("held-connections", S)]),
    (|p, _, _| p.arms[0].held = counts(1000, 1000, 990, 1000), &[("held-connections", S)]),
    (|p, _, _| p.arms[0].held = counts(1000, 1000, 1000, 1010), &[("held-connections", S)]),
    (|p, _, _| p.arms[0].held = counts(1000, 900, 900, 900), &[("held-connections", I)]),
    (|p, _, _| p.arms[0].held = counts(1000, 1000, 1000, 1100), &[("held-connections", I)]),
    (|p, _, _| p.arms[0].asking = counts(50, 40, 40, 40), &[("connections-missing", S)]),
    (|p, _, _| p.arms[0].asking = counts(0, 0, 0, 0), &[]),
    // Each request opens its own.
    (|p, l, _| { p.arms[0].asking = counts(50, 0, 0, 40); l.lifetime = Lifetime::Request; }, &[]),
    (|p, _, _| { p.arms[0].asking = counts(50, 0, 0, 40); p.arms[0].arm = "b".to_owned(); }, &[]),
    (|p, _, _| p.starts = [0, 5_000_000].map(start).to_vec(), &[]),
    (|p, _, _| p.starts = [0, 5_100_000, 100].map(start).to_vec(), &[("start-spread", S)]),
    (|p, _, _| p.lost_nodes = vec![LostNode::default()], &[("node-lost", I)]),
    (|p, _, _| p.starved = 50, &[("generator-starved", S)]),
    (|p, _, seen| { p.starved = 50; seen[0] = 1_000_000; }, &[]),
    // Of large responses each brings many.
    (|p, _, seen| { p.starved = 50; seen[1] = 10_000 << 20; }, &[]),
    // Nobody opened one: they are another's. Then one in a thousand, and more.
    (|p, _, _| p.listen_overflows = 500, &[]),
    (|p, _, seen| { p.listen_overflows = 500; seen[2] = 10; }, &[]),
    (|p, _, seen| { p.listen_overflows = 500; seen[2] = 11; }, &[("listen-overflows", S)]),
    (|p, _, _| { p.listen_overflows = 500; p.arms[0].asking.opened = 1050; }, &[("listen-overflows", S)]),
    // An arm's own count is no reason to doubt; the rest is.
    (|p, _, seen| { p.listen_overflows = 500; p.arms[0].listen_overflows = Some(500); seen[2] = 900; }, &[]),
    (|p, _, seen| { p.listen_overflows = 600; p.arms[0].listen_overflows = Some(500); seen[2] = 900; }, &[("listen-overflows", S)]),
];

#[test]
fn continuous_trials_are_judged_by_their_ends() {
    for (row, (change, expected)) in PARTS.iter().enumerate() {
        let (mut part, mut load) = (sample_part(), load("l", StudyArrivals::Closed));
        let mut totals = [10_000, 0, 0];
        change(&mut part, &mut load, &mut totals);
        let [responses, received_bytes, origin_connects] = totals;
        let part = Part {
            part: &part,
            load: &load,
            responses,
            received_bytes,
            origin_connects,
            lag: Vec::new(),
            generators: Vec::new(),
        };
        let reasons = judge(Use::Study, &part.evidence("a"));
        let rules = reasons.iter().map(|r| (r.reason.rule(), r.reason.validity));
        assert_eq!(&rules.collect::<Vec<_>>()[..], *expected, "row {row}: {reasons:?}");
    }
}

#[test]
fn blocks_belong_to_the_part_of_their_session() {
    for (session, block, expected) in
        [(1, 10, true), (1, 14, true), (1, 15, false), (1, 9, false), (0, 12, false)]
    {
        let mut trial = build_trial("closed", "a", block, Vec::new());
        trial.session = session;
        assert_eq!(holds(&sample_part(), &trial), expected, "{session} {block}");
    }
}

/// The generator's troubles in a trial are compared with the answers of all loads that shared it.
#[test]
fn the_blocks_of_other_loads_of_a_trial_count_among_its_answers() {
    let shared = PartRecord {
        with: vec![LoadBlocks { load: "other".to_owned(), first_block: 3, blocks: 2 }],
        ..sample_part()
    };
    for (load, session, block, wanted) in [
        ("other", 1, 3, true),
        ("other", 1, 4, true),
        ("other", 1, 5, false),
        ("other", 0, 3, false),
        ("third", 1, 3, false),
        ("closed", 1, 3, false),
    ] {
        let mut trial = build_trial(load, "a", block, Vec::new());
        trial.session = session;
        assert_eq!(is_with(&shared, &trial), wanted, "{load} {session} {block}");
        assert!(!is_with(&sample_part(), &trial), "{load}: shared with none");
    }
}

/// Makes a flow of the report.
fn flow(report: &LoadReport, name: &str) -> FlowReport {
    let mut flow = serde_json::to_value(report).unwrap();
    flow["name"] = name.into();
    serde_json::from_value(flow).unwrap()
}

fn statuses(report: &mut LoadReport, status: u16, count: u64) {
    report.results.statuses = vec![StatusCount { status, count }];
}

/// Sets the generator's lateness, at p50 and at p99.
fn late(report: &mut LoadReport, [half, tail]: [u64; 2]) {
    report.results.dispatch_lag.quantiles = vec![(0.5, half), (0.99, tail)];
}

/// Sets a median response time of 92 µs, and a p99 of 200 µs.
fn fast(report: &mut LoadReport) {
    report.results.response_time.quantiles = vec![(0.5, 92_000), (0.99, 200_000)];
}

/// Makes the load hold its 100 connections without requests.
fn hold(report: &mut LoadReport) {
    report.results.load.arrivals = Arrivals::Held;
    (report.results.rates.intended, report.results.counts.due) = (None, 0);
    (report.results.counts.offered, report.results.counts.completed_whole) = (0, 0);
    report.results.response_time.count = 0;
}

/// Splits the load into two equal flows, of which the second is changed.
fn two(report: &mut LoadReport, change: fn(&mut LoadReport)) {
    let first = flow(report, "main");
    let mut changed = report.clone();
    change(&mut changed);
    report.flows = vec![first, flow(&changed, "other")];
    report.results.errors = changed.results.errors;
}

type ReportChange = fn(&mut LoadReport);

/// Makes the load a recorded trace of a log of 100 lines, of which `lines` are not sent.
fn recorded(report: &mut LoadReport, lines: u64) {
    let left_out = json!([{"what": "no request", "lines": lines, "first": 1}]);
    let trace = json!({"file": "a", "arrivals": 100 - lines, "length_ns": 1, "left_out": left_out});
    report.results.load.arrivals = serde_json::from_value(json!({ "trace": trace })).unwrap();
}

/// Changes to the report of an open loop of 10,000/s on 100 connections for 10 s, and the expected reasons.
#[rustfmt::skip]
const REPORTS: &[(ReportChange, ExpectedReasons)] = &[
    (|_| {}, &[]),
    (|r| { r.results.counts.completed_whole = 0; r.results.errors = error(111, 100_000); }, &[("nothing-answered", I), ("failures", I)]),
    (hold, &[]),
    (|r| { hold(r); r.results.counts.lost = 50; r.results.counts.open_at_end = 50; }, &[("held-connections", I)]),
    (|r| { hold(r); r.results.counts.connected = 99; }, &[("held-connections", S)]),
    (|r| r.results.errors = error(111, 101), FAILED),
    (|r| r.results.errors = error(99, 1), &[("ports-exhausted", S)]),
    (|r| statuses(r, 399, 1000), &[]),
    (|r| statuses(r, 400, 1000), FAILED),
    // What is wrong is among the errors then.
    (|r| { statuses(r, 400, 1000); r.results.load.status_expected = true; }, &[]),
    (|r| r.results.dispatch_lag.count -= 101, &[("offered-rate", S)]),
    (|r| { r.results.dispatch_lag.count -= 50_000; r.results.load.requests = Some(50_000); }, &[]),
    (|r| { r.results.dispatch_lag.count -= 50_000; r.results.counts.dropped = 50_000; }, &[("dropped", S)]),
    (|r| { r.results.dispatch_lag.count -= 50_000; r.results.counts.queued = 50_000; }, &[]),
    (|r| recorded(r, 10), &[]),
    (|r| recorded(r, 11), &[("trace-left-out", S)]),
    (|r| late(r, [300_000, 400_000]), &[("dispatch-lag", S)]),
    (|r| late(r, [0, 1_010_000]), &[("dispatch-lag", I)]),
    (|r| { late(r, [600_000, 0]); r.results.response_time.count = 0; }, &[("few-responses", I)]),
    (|r| { late(r, [600_000, 0]); r.results.load.arrivals = Arrivals::Closed; }, &[]),
    // Of a fast server: what nobody notices, what is a coarse figure, and ticks of a millisecond.
    (|r| { fast(r); late(r, [58_000, 100_000]); }, &[]),
    (|r| { fast(r); late(r, [101_000, 101_000]); }, &[("dispatch-lag", S)]),
    (|r| { fast(r); late(r, [0, 201_000]); }, &[("dispatch-lag", I)]),
    (|r| { fast(r); late(r, [500_000, 990_000]); }, &[("dispatch-lag", I)]),
    (|r| r.results.response_time.count = 99, &[("few-responses", S)]),
    (|r| r.results.response_time.count = 1, &[("few-responses", I)]),
    (|r| r.generator_cpu_ns = vec![0; 8], &[]),
    (|r| r.generator_cpu_ns = vec![0; 9], &[("threads-crowded", S)]),
    (|r| { r.generator_cpu_ns = vec![0; 16]; r.results.load.cpus = vec![Some(0), Some(1)]; }, &[]),
    (|r| { r.generator_cpu_ns = vec![0; 16]; r.results.load.cpus = vec![None]; }, &[]),
    // Awake for arrivals is not busy.
    (|r| { r.generator_cpu_ns = vec![11_500_000_000]; r.generator.spun_ns = vec![200_000_000]; }, &[]),
    (|r| r.generator_cpu_ns = vec![1, 11_500_000_000], &[("generator-busy", S)]),
    (|r| r.generator_cpu_ns = vec![6_000_000_000; 2], &[]),
    // No time was measured, so there is no share of it.
    (|r| (r.phases.ramp_up, r.phases.sustain) = (0.0, 0.0), &[]),
    (|r| r.generator.self_capacity = Some(12_000.0), &[("near-self-capacity", S)]),
    (|r| { r.generator.self_capacity = Some(12_000.0); r.generator_cpu_ns = vec![1, 1]; }, &[("near-self-capacity", S)]),
    (|r| { (r.generator.self_capacity, r.results.load.cpus) = (Some(12_000.0), vec![Some(0), Some(1)]); r.generator_cpu_ns = vec![1, 1]; }, &[]),
    (|r| r.generator.steal = 0.02, &[("steal", S)]),
    (|r| r.generator.starved = 101, &[("generator-starved", S)]),
    (|r| { r.generator.starved = 101; r.results.counts.received_bytes = 100_000 << 20; }, &[]),
    (|r| { r.generator.listen_overflows = 200; r.results.counts.connects = 200; }, &[("listen-overflows", S)]),
    (|r| r.generator.listen_overflows = 200, &[]),
    (|r| r.results.censored.in_flight = 1, &[("censored", S)]),
    (|r| r.results.counts.connected = 90, &[("connections-missing", I)]),
    // None is open at the start.
    (|r| { r.results.counts.connected = 0; r.results.load.lifetime = Lifetime::Request; }, &[]),
    // Of several flows the one is named, and what is the generator's is said once.
    (|r| { r.generator.steal = 0.02; two(r, |_| {}); }, &[("steal", S)]),
    (|r| two(r, |r| r.results.errors = error(111, 101)), FAILED),
    (|r| two(r, |r| { hold(r); r.results.counts.lost = 2; }), &[("held-connections", S)]),
];

#[test]
fn load_tests_are_judged_by_their_reports() {
    for (row, (change, expected)) in REPORTS.iter().enumerate() {
        let mut report = load_report();
        change(&mut report);
        let reasons = load_validity(&report);
        let rules: Vec<_> = reasons.iter().map(|r| (r.rule(), r.validity)).collect();
        assert_eq!(&rules[..], *expected, "row {row}: {reasons:?}");
        if !report.flows.is_empty() && rules[0].0 != "steal" {
            assert_eq!(reasons[0].subject.as_deref(), Some("other"), "row {row}: {reasons:?}");
        }
    }
}

/// Events that a study and a load test may both measure: numbers out of 100,000 requests at 10,000 per second, and of
/// 1,000 connections that send requests and 1,000 that are held.
struct Happened {
    errors: Vec<ErrorCount>,
    /// Responses with an unexpected status.
    bad: u64,
    /// Requests in excess of the schedule.
    off: u64,
    /// Dispatch lag in percent of the median response time.
    lag: u64,
    /// Use of the generator's CPU in percent.
    busy: u64,
    starved: u64,
    overflows: u64,
    missing: u64,
    lost: u64,
}

impl Happened {
    fn any(rng: &mut SplitMix64) -> Happened {
        let shares = [50, 500, 20_000];
        Happened {
            errors: [error(111, pick(rng, &shares)), error(99, pick(rng, &shares))].concat(),
            bad: pick(rng, &shares),
            off: pick(rng, &[500, 5_000]),
            lag: pick(rng, &[20, 40, 60]),
            busy: pick(rng, &[90, 97]),
            starved: pick(rng, &[10, 500]),
            overflows: pick(rng, &[10, 500]),
            missing: pick(rng, &[2, 4, 50, 60]),
            lost: pick(rng, &[2, 4, 50, 60]),
        }
    }

    fn in_a_load_test(&self) -> Vec<ValidityReason> {
        let mut report = load_report();
        report.results.errors.clone_from(&self.errors);
        statuses(&mut report, 500, self.bad);
        report.results.dispatch_lag.count += self.off;
        late(&mut report, [self.lag * 10_000, 0]);
        report.generator_cpu_ns = vec![self.busy * 120_000_000];
        report.generator.starved = self.starved;
        report.generator.listen_overflows = self.overflows;
        report.results.counts.connects = 500;
        (report.results.load.connections, report.results.counts.connected) =
            (1000, 1000 - self.missing);
        let mut held = load_report();
        hold(&mut held);
        (held.results.load.connections, held.results.counts.connected) = (1000, 1000);
        held.results.counts.open_at_end = 1000 - self.lost;
        report.flows = vec![flow(&report, "main"), flow(&held, "held")];
        load_validity(&report)
    }

    /// Reasons in a study: 10 s measured of 12.5, on a CPU of the proxy's own.
    fn in_a_study(&self) -> Vec<ValidityReason> {
        let mut trial = build_trial("open", "stock", 0, vec![slice(0, 10_000.0)]);
        let slice = &mut trial.slices[0];
        slice.measured_ns = 10_000_000_000;
        (slice.due, slice.sent, slice.completed_whole) = (100_000, 100_000 + self.off, 100_000);
        let whole_ns = 12_500_000_000;
        (slice.proxy_cpu_ns, slice.generator_cpu_ns) = (whole_ns, whole_ns / 100 * self.busy);
        trial.errors.clone_from(&self.errors);
        trial.status_classes = [0, 0, 100_000, 0, 0, self.bad];
        let mut part = sample_part();
        (part.starved, part.listen_overflows) = (self.starved, self.overflows);
        let open = 1000 - self.missing;
        part.arms[0].asking = counts(1000, open, 1000, open);
        part.arms[0].held = counts(1000, 1000, 1000 - self.lost, 1000);
        let part = Part {
            part: &part,
            load: &load("open", StudyArrivals::Closed),
            responses: 100_000,
            received_bytes: 0,
            origin_connects: 500,
            lag: vec![(0.5, self.lag, 100), (0.99, 0, 400)],
            generators: Vec::new(),
        };
        let of_part = judge(Use::Study, &part.evidence("a")).into_iter();
        let mut reasons = validity(&trial, &build_header(three_arms()));
        reasons.extend(of_part.map(|found| found.reason));
        reasons
    }
}

/// Returns 0 in most cases, else one of the values.
fn pick(rng: &mut SplitMix64, values: &[u64]) -> u64 {
    match rng.unit() {
        unit if unit < 0.7 => 0,
        _ => values[(rng.unit() * values.len() as f64) as usize],
    }
}

/// Rules with the same limits in both uses give the same verdict on the same evidence.
#[test]
fn a_trial_and_a_load_test_with_the_same_evidence_get_the_same_verdict() {
    let agreed = RULES.iter().filter(|rule| rule.limits[0] == rule.limits[1]);
    // Of several generators each has its own evidence.
    let agreed: Vec<&str> =
        agreed.filter(|rule| rule.name != "start-spread").map(|rule| rule.name).collect();
    let mut rng = SplitMix64::new(6);
    let mut rules = BTreeSet::new();
    for round in 0..2000 {
        let happened = Happened::any(&mut rng);
        let [in_a_study, in_a_load_test] = [happened.in_a_study(), happened.in_a_load_test()].map(
            |reasons| -> BTreeSet<(&str, Validity)> {
                reasons
                    .iter()
                    .map(|reason| (reason.rule(), reason.validity))
                    .filter(|(rule, _)| agreed.contains(rule))
                    .collect()
            },
        );
        assert_eq!(in_a_study, in_a_load_test, "round {round}");
        rules.extend(in_a_study.into_iter().map(|(rule, _)| rule));
    }
    assert!(agreed.iter().all(|rule| rules.contains(*rule)), "{rules:?}");
}
