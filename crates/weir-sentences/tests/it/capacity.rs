//! Tests of capacities, on records of made-up searches.

use std::time::Duration;

use tempfile::TempDir;
use weir_model::limit::Limit;
use weir_model::record::*;
use weir_model::study::{Arm, ArmRole, Study, StudyArrivals};
use weir_record::Run;

use weir_analysis::capacity::{
    Capacity, CapacityFindings, Counted, CurvePoint, RanOut, RatioReason,
};
use weir_analysis::findings::Verdict;
use weir_analysis::fixture::{arm, run_with_records};
use weir_sentences::capacity::{because, carries, details, of_record};

use super::AnalyzedRun;

mod ends;

/// Capacity of the made-up server: M/M/1, so its p99 is ln(100) / (capacity - rate).
const SERVER: f64 = 5_000.0;
const LIMIT_S: f64 = 0.03;
/// Rate at which the p99 reaches the limit: 4,846.5 requests/s.
const CAPACITY: f64 = SERVER - 4.605_17 / LIMIT_S;

fn build_header(arms: Vec<Arm>) -> RunHeader {
    let load = weir_model::fixture::load("closed", StudyArrivals::Closed);
    weir_model::fixture::header(Study {
        loads: vec![load],
        capacity: Limit::parse_all("p99 < 30ms, errors < 1%").expect("limits"),
        ..weir_model::fixture::study(arms)
    })
}

/// A trial at a rate, with the share of its requests that break the limit.
fn build_trial(arm: &str, block: u32, rate: f64, seconds: u64) -> TrialRecord {
    let due = (rate * seconds as f64) as u64;
    let completed = (rate.min(SERVER) * seconds as f64) as u64;
    let bad = if rate < SERVER { (-(SERVER - rate) * LIMIT_S).exp() } else { 1.0 };
    let sockets = SocketCounts { in_use: 60, orphans: 0, time_wait: rate as u64 };
    let slice = SliceRecord {
        measured_ns: seconds * 1_000_000_000,
        offered: due,
        due,
        sent: due,
        completed,
        completed_whole: completed,
        // 180 µs of CPU time for each request, on one CPU.
        proxy_cpu_ns: completed * 180_000,
        proxy_cpus_idle_ns: seconds * 1_250_000_000 - completed * 180_000,
        origin_requests: completed,
        origin_connects: completed / 4,
        sockets_after: Some(sockets),
        ..SliceRecord::default()
    };
    TrialRecord {
        rate_intended: Some(rate),
        slices: vec![slice],
        status_classes: [0, 0, completed, 0, 0, 0],
        bad: vec![bad, 0.0],
        ..weir_model::fixture::trial("closed", arm, block)
    }
}

/// Response times of the server at the rate of a trial: each answered request has a quantile of its own.
fn times(trial: &TrialRecord) -> Vec<u64> {
    let spare = (SERVER - trial.rate_intended.unwrap_or(0.0)).max(1.0);
    let count = trial.slices[0].completed;
    (0..count)
        .map(|of| (of as f64 + 0.5) / count as f64)
        .map(|share| (-(1.0 - share).ln() / spare * 1e9) as u64)
        .collect()
}

fn step(arm: &str, stage: SearchStage, blocks: (u32, u32), between: Option<(f64, f64)>) -> Record {
    Record::Bracket(BracketRecord {
        arm: arm.to_owned(),
        load: "closed".to_owned(),
        stage,
        first_block: blocks.0,
        blocks: blocks.1,
        seconds: f64::from(blocks.0 + blocks.1) * 5.0,
        between,
        held: None,
        passed_s: None,
    })
}

pub(crate) fn build_record(arm: &str, end: CapacityEnd) -> CapacityRecord {
    CapacityRecord {
        answer: CapacityAnswer {
            arm: arm.to_owned(),
            load: "closed".to_owned(),
            limits: Limit::parse_all("p99 < 30ms, errors < 1%").expect("limits"),
            confidence: 0.95,
            low: 4_750.0,
            high: 4_880.0,
            scatter: Some(0.016),
            verified: 4_750.0,
            held_s: 65.0,
            broke: Some(ObservedRecord { rate: 4_900.0, seconds: 4.0 }),
            saturated: SERVER,
            seconds: (60.0, 125.0),
            connections: 50,
            ..CapacityAnswer::default()
        },
        end,
    }
}

const RATES: [f64; 12] = [
    500.0, 1_000.0, 2_000.0, 3_000.0, 4_000.0, 4_500.0, 5_500.0, 4_700.0, 4_750.0, 4_800.0,
    4_860.0, 4_940.0,
];

/// A search of one arm with its trials: a ramp, a ladder, a burst, and a trial that held.
fn searched(others: Vec<Record>) -> (TempDir, Run) {
    let mut trials: Vec<TrialRecord> =
        RATES.iter().zip(0..).map(|(rate, block)| build_trial("stock", block, *rate, 1)).collect();
    trials.push(build_trial("stock", 12, 8_000.0, 1));
    trials.extend((13..26).map(|block| build_trial("stock", block, 4_750.0, 1)));
    let mut closed = build_trial("stock", 26, 9_999.0, 1);
    closed.rate_intended = None;
    let mut records = vec![
        step("stock", SearchStage::Ramp, (0, 7), Some((4_500.0, 5_500.0))),
        step("stock", SearchStage::Dwell, (7, 5), Some((4_750.0, 4_880.0))),
        step("stock", SearchStage::Burst, (12, 1), Some((4_750.0, 4_880.0))),
        step("stock", SearchStage::Hold, (13, 13), Some((4_750.0, 4_880.0))),
    ];
    records.extend(others);
    let header = build_header(vec![arm("stock", ArmRole::Baseline, 0)]);
    run_with_records(&header, trials, |trial, _| times(trial), &records)
}

fn analyze_search(others: Vec<Record>) -> (AnalyzedRun, Capacity) {
    let (_folder, run) = searched(others);
    let findings = AnalyzedRun::of(&run);
    let arm = findings.capacity.as_ref().expect("capacities").arms[0].clone();
    (findings, arm)
}

fn ended(change: impl FnOnce(&mut CapacityRecord)) -> Vec<Record> {
    let mut record = build_record("stock", CapacityEnd::Found);
    change(&mut record);
    vec![Record::Capacity(record)]
}

#[test]
fn what_a_search_found_is_told_with_what_its_trials_show() {
    let (findings, arm) = analyze_search(ended(|_| {}));
    assert!(arm.claimed && (arm.answer.low..arm.answer.high).contains(&CAPACITY));
    assert_eq!((arm.unit.as_str(), arm.answer.held_s), ("requests/s", 65.0));
    assert_eq!(
        carries(&arm),
        "stock carries 4,750 to 4,880 requests/s within p99 < 30ms and errors < 1% (95 %): 4,750/s held for 65 s, 4,900/s \
         broke after 4.0 s."
    );
    assert_eq!(details(&arm, &findings.limiters)[0], "p99 < 30ms decides.");
    assert!(findings.answer().starts_with(&carries(&arm)));
    // Nothing of a comparison.
    assert!(findings.loads.is_empty() && findings.matrices.is_empty());
    assert_eq!(findings.headline.validity, Validity::Valid, "{:?}", findings.headline);
    let json = serde_json::to_value(&*findings).unwrap();
    let part = &json["capacity"]["arms"][0];
    assert_eq!(
        (&part["low"], &part["high"], &part["unit"]),
        (&4750.0.into(), &4880.0.into(), &"requests/s".into())
    );
    assert_eq!(part["limits"][1], "errors < 1%");
    let again: CapacityFindings = serde_json::from_value(json["capacity"].clone()).unwrap();
    assert_eq!(Some(again), findings.capacity);
}

#[test]
fn the_curve_is_of_short_trials_and_grows_from_its_knee_on() {
    let (_, arm) = analyze_search(ended(|_| {}));
    let rates: Vec<f64> = arm.curve.iter().map(|point| point.rate).collect();
    assert!(rates.is_sorted());
    // Neither the burst nor the closed loop; 4,700 and 4,750 differ by more than 1 %.
    assert_eq!((arm.curve.len(), arm.trials.len()), (12, 12));
    let [hold] = &arm.holds[..] else {
        panic!("{:?}", arm.holds);
    };
    assert_eq!((hold.rate, hold.trials, hold.seconds), (4_750.0, 13, 13.0));
    for point in arm.curve.iter().filter(|point| point.rate < SERVER) {
        let p99 = 4.605 / (SERVER - point.rate) * 1e9;
        let measured = point.p99.unwrap() as f64;
        assert!((measured / p99 - 1.0).abs() < 0.025, "{point:?}: {p99}");
        assert_eq!(point.holds, point.rate < CAPACITY, "{point:?}");
    }
    // The least is 1.02 ms at 500/s, twice which is met at 2,750/s.
    let knee = arm.knee.unwrap();
    assert!((2_650.0..2_850.0).contains(&knee), "{knee}");
}

#[test]
fn trials_of_one_rate_are_pooled_and_not_averaged() {
    let header = build_header(vec![arm("stock", ArmRole::Baseline, 0)]);
    let trials = vec![build_trial("stock", 0, 200.0, 5), build_trial("stock", 1, 201.0, 5)];
    let (_folder, run) = run_with_records(
        &header,
        trials,
        |trial, _| {
            let slow = if trial.block == 1 { 30 } else { 0 };
            (0..1_000).map(|index| if index < slow { 100_000_000 } else { 1_000_000 }).collect()
        },
        &[],
    );
    let capacity = AnalyzedRun::of(&run).findings.capacity.unwrap();
    let [point] = &capacity.arms[0].curve[..] else {
        panic!("{:?}", capacity.arms[0].curve);
    };
    // 30 of 2,005 are slow. The mean of both p99s would be 50 ms.
    assert_eq!((point.trials, point.p90.unwrap() / 100_000), (2, 10));
    assert!(point.p99.unwrap() > 99_000_000, "{point:?}");
}

#[test]
fn what_grew_is_told_at_low_rates_at_the_edge_and_above() {
    let (findings, arm) = analyze_search(ended(|_| {}));
    for (what, expected) in [
        (Counted::ProxyCpu, [180e3; 3]),
        (Counted::OriginConnects, [0.25; 3]),
        (Counted::TimeWait, [2_000.0, 4_860.0, 5_500.0]),
        (Counted::ProxyCpuShare, [0.21, 0.857, 0.895]),
    ] {
        let row = arm.grows.iter().find(|row| row.what == what).unwrap();
        for (value, expected) in [row.low, row.edge, row.above].into_iter().zip(expected) {
            assert!((value.unwrap() / expected - 1.0).abs() < 0.03, "{row:?}: {expected}");
        }
    }
    assert!(matches!(arm.ran_out, Some(RanOut::CpuTime { used }) if (0.85..0.86).contains(&used)));
    assert!(findings.answer().contains("86 % of its CPUs: CPU time runs out first"));
    assert!(!arm.grows.iter().any(|row| row.what == Counted::Reconnects));
    // Without an edge there is nothing to hold the rest against.
    let (_, none) =
        analyze_search(ended(|record| (record.answer.low, record.answer.high) = (0.0, 0.0)));
    assert!(none.grows.is_empty() && none.ran_out.is_none());
}

#[test]
fn a_search_that_did_not_end_tells_how_far_it_came() {
    let (_, arm) = analyze_search(Vec::new());
    assert_eq!((arm.claimed, arm.end, arm.answer.low), (false, None, 4_750.0));
    let carried = "is not claimed: the search did not end. 4,800/s was carried for 1.0 s, 4,860/s broke after 1.0 s. Resume";
    assert!(carries(&arm).contains(carried), "{}", carries(&arm));
    let mut held = step("stock", SearchStage::Hold, (90, 1), Some((4_500.0, 5_000.0)));
    if let Record::Bracket(step) = &mut held {
        step.held = Some(ObservedRecord { rate: 4_500.0, seconds: 65.0 });
    }
    let (_, arm) = analyze_search(vec![held]);
    let so_far = "So far stock carries 4,500 to 5,000 requests/s within p99 < 30ms and errors < 1%: 4,500/s held for 65 s";
    assert!(carries(&arm).starts_with(so_far), "{}", carries(&arm));
    let words = of_record(&build_record("stock", CapacityEnd::Found));
    assert!(words.contains("4,750 to 4,880 requests/s"), "{words}");
}

#[test]
fn arms_are_compared_by_the_ratio_of_their_capacities() {
    #[derive(PartialEq)]
    enum Ends {
        Interval,
        Bracket,
        Capped,
    }
    use Ends::{Bracket, Capped, Interval};
    use RatioReason::{AboveOne, BelowOne};
    // Ends of the arm's answer against 4,000 to 4,200, its ratio, and the verdict with a band of 10 %.
    type Case = ((f64, f64), Ends, f64, Verdict, RatioReason);
    let (within, open) = (RatioReason::WithinBand { band: 0.1 }, RatioReason::Open { band: 0.1 });
    let unclaimed = RatioReason::Unclaimed { arm: "e".to_owned() };
    let endless = RatioReason::NoUpperEnd { arm: "f".to_owned() };
    let cases: [Case; 9] = [
        ((8_000.0, 8_400.0), Interval, 2.0, Verdict::Better, AboveOne),
        ((3_000.0, 3_100.0), Interval, 0.744, Verdict::Worse, BelowOne),
        ((4_050.0, 4_250.0), Interval, 1.012, Verdict::Equivalent, within),
        ((3_500.0, 5_000.0), Interval, 1.021, Verdict::Inconclusive, open.clone()),
        ((0.0, 0.0), Interval, f64::NAN, Verdict::Invalid, unclaimed),
        ((8_000.0, 8_400.0), Capped, f64::NAN, Verdict::Invalid, endless),
        ((6_000.0, 9_000.0), Bracket, 1.793, Verdict::Better, AboveOne),
        ((1_000.0, 3_900.0), Bracket, 0.482, Verdict::Worse, BelowOne),
        ((3_900.0, 6_000.0), Bracket, 1.180, Verdict::Inconclusive, open),
    ];
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let mut arms = vec![arm("stock", ArmRole::Baseline, 0)];
    arms.extend(names.map(|name| arm(name, ArmRole::Change, 0)));
    let mut header = build_header(arms);
    header.study.objective.band = 0.1;
    let stock = ("stock", (4_000.0, 4_200.0), &Interval);
    let changes = cases.iter().zip(names).map(|((ends, kind, ..), name)| (name, *ends, kind));
    let records = std::iter::once(stock).chain(changes).map(|(name, (low, high), kind)| {
        let ceiling = CeilingRecord { of: CeilingOf::Generator, rate: 9_000.0 };
        let usual = build_record(name, CapacityEnd::Found);
        let answer = CapacityAnswer {
            low,
            high,
            verified: low,
            is_bracket: *kind == Bracket,
            ceiling: (*kind == Capped).then_some(ceiling),
            ..usual.answer
        };
        Record::Capacity(CapacityRecord { answer, ..usual })
    });
    let records: Vec<Record> = records.collect();
    let (_folder, run) = run_with_records(&header, Vec::new(), |_, _| Vec::new(), &records);
    let findings = AnalyzedRun::of(&run);
    let ratios = &findings.capacity.as_ref().unwrap().ratios;
    for ((_, kind, wanted, verdict, reason), ratio) in cases.iter().zip(ratios) {
        let is_near = (ratio.ratio - wanted).abs() < 0.001 || wanted.is_nan();
        assert!(is_near && ratio.verdict == *verdict, "{ratio:?}");
        assert_eq!(ratio.ratio.is_nan(), wanted.is_nan(), "{ratio:?}");
        assert_eq!((&ratio.because, ratio.family), (reason, 4), "{ratio:?}");
        // A bracket has no p, and neither has what is not compared.
        let has_p = because(ratio).contains("; p is ");
        let says_p = !matches!(verdict, Verdict::Equivalent | Verdict::Invalid);
        assert_eq!(has_p, *kind == Interval && says_p, "{ratio:?}");
    }
    // Two intervals of 4.9 %: 4.9 % × √2 between them, and p at its edge is that of the interval.
    let (low, high) = ratios[0].interval;
    assert!(((high / low).ln() - 0.0488 * 2_f64.sqrt()).abs() < 0.001, "{low} {high}");
    assert!(ratios[0].p < 1e-6 && ratios[0].p_holm > ratios[0].p);
    assert!(findings.answer().starts_with("a carries 2.00 times as much as stock (1.93 to 2.07)."));
}

#[test]
fn each_point_tells_the_limit_that_it_broke_most() {
    let header = build_header(vec![arm("stock", ArmRole::Baseline, 0)]);
    // What is allowed is 1 % of either.
    let cases = [
        ([0.005, 0.0], (0, true)),
        ([0.02, 0.0], (0, false)),
        ([0.02, 0.05], (1, false)),
        ([0.0, 0.009], (1, true)),
    ];
    let trials = cases.iter().zip(0..).map(|((bad, _), block)| TrialRecord {
        bad: bad.to_vec(),
        ..build_trial("stock", block, 100.0 * f64::from(block + 1), 1)
    });
    let (_folder, run) = run_with_records(&header, trials.collect(), |trial, _| times(trial), &[]);
    let capacity = AnalyzedRun::of(&run).findings.capacity.unwrap();
    let limits: Vec<(usize, bool)> =
        capacity.arms[0].curve.iter().map(|point| (point.limit, point.holds)).collect();
    assert_eq!(limits, cases.map(|(_, wanted)| wanted));
}

#[test]
fn a_pause_between_slices_is_no_part_of_the_rate() {
    let mut paused = build_trial("stock", 0, 1_000.0, 5);
    paused.slices.push(SliceRecord { measured_ns: 5_000_000_000, ..SliceRecord::default() });
    paused.rate_intended = Some(500.0);
    let header = build_header(vec![arm("stock", ArmRole::Baseline, 0)]);
    let (_folder, run) = run_with_records(&header, vec![paused], |_, _| vec![1_000_000; 9], &[]);
    let capacity = AnalyzedRun::of(&run).findings.capacity.unwrap();
    let rates: Vec<CurvePoint> = capacity.arms[0].curve.clone();
    assert_eq!(rates.iter().map(|point| point.rate).collect::<Vec<_>>(), [1_000.0]);
}
