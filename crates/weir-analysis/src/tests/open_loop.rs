//! Tests of response times: only in the open loop, only at equal rates, only with enough requests.

use weir_model::record::{HeldUp, PilotRecord, Record, TrialRecord, Validity};
use weir_model::study::{Metric, StudyArrivals};
use weir_record::{Run, RunWriter};
use weir_stats::SplitMix64;

use super::comparison;
use crate::analyze;
use crate::findings::{Basis, Caveat, Comparison, HeadlineReason, Needed, Verdict};
use crate::fixture::{Moment, build_header, build_trials, run_with_times, three_arms};

/// Exponential response times with mean 300 µs, half of that for the change; `count` per trial.
fn exponential(count: usize) -> impl FnMut(&TrialRecord, &mut SplitMix64) -> Vec<u64> {
    move |trial, rng| {
        let mean = if trial.arm == "keepalive" { 150e3 } else { 300e3 };
        (0..count).map(|_| (-mean * (1.0 - rng.unit()).ln()) as u64 + 1).collect()
    }
}

fn as_intended(_: Moment<'_>) -> f64 {
    10_000.0
}

#[test]
fn quantiles_are_compared_over_groups_that_are_large_enough() {
    let header = build_header(three_arms());
    let trials = build_trials(&header, "open", 60, as_intended);
    let (_folder, run) = run_with_times(&header, trials, exponential(400));
    let findings = analyze(&run);
    let load = &findings.loads[1];
    assert_eq!(load.rate_intended, Some(10_000.0));
    assert_eq!(load.metrics, [Metric::ResponseP50, Metric::ResponseP99, Metric::CpuPerRequest]);

    // 400 requests a block: one is enough for the median, three make the 1,000 of the p99.
    for (metric, merged, n) in [(Metric::ResponseP50, 1, 60), (Metric::ResponseP99, 3, 20)] {
        let change = comparison(&findings, 1, metric, "keepalive");
        assert_eq!((change.merged, change.n), (merged, n), "{change:?}");
        assert_eq!(change.verdict, Verdict::Better, "shorter is better: {change:?}");
        let (low, high) = change.interval;
        assert!(low <= 0.5 && 0.5 <= high && high / low < 1.3, "{change:?}");
        let same = comparison(&findings, 1, metric, "stock-again");
        assert!(!matches!(same.verdict, Verdict::Better | Verdict::Worse), "{same:?}");
    }

    let arm = &load.arms[0];
    assert_eq!(arm.samples, 60 * 400);
    // ln 2 and ln 100 times the mean.
    assert!((arm.response_ns[0] as f64 / 207_944.0 - 1.0).abs() < 0.02, "{:?}", arm.response_ns);
    assert!((arm.response_ns[2] as f64 / 1_381_551.0 - 1.0).abs() < 0.05, "{:?}", arm.response_ns);
    let curve = &arm.percentile_curve;
    assert!(curve.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1), "{curve:?}");
    assert_eq!(curve.last(), Some(&(24_000.0, arm.response_ns[4])));
    assert_eq!(curve.first().map(|(x, _)| *x), Some(1.0));
}

#[test]
fn the_tail_has_two_names_and_an_interval() {
    let header = build_header(three_arms());
    let trials = build_trials(&header, "open", 40, as_intended);
    // In every tenth block an eighth of the requests waits for 4 to 8 ms.
    let (_folder, run) = run_with_times(&header, trials, |trial, rng| {
        let held_up = trial.block % 10 == 0;
        (0..1500)
            .map(|number| {
                if held_up && number % 8 == 0 {
                    4_000_000 + (4e6 * rng.unit()) as u64
                } else {
                    (-3e5 * (1.0 - rng.unit()).ln()) as u64 + 1
                }
            })
            .collect()
    });
    let arm = &analyze(&run).loads[1].arms[0];
    let [p99, p999] = &arm.tails[..] else {
        panic!("two: {:?}", arm.tails);
    };
    // Of 300 us times ln 100 without hold-ups; 1.25 % of all requests were held up.
    let typical = p99.typical_ns.unwrap() as f64;
    assert!((typical / 1_381_551.0 - 1.0).abs() < 0.1, "{p99:?}");
    assert!(p99.pooled_ns.unwrap() > 4_000_000, "{p99:?}");
    let (low, high) = p99.interval_ns.unwrap();
    assert!(low < 2_000_000 && high.unwrap() > 5_000_000, "{p99:?}");
    assert_eq!((p999.quantile, p999.typical_ns), (0.999, None));
    assert!(p999.interval_ns.is_some());
}

#[test]
fn slices_in_which_the_machine_stood_still_are_left_out_unless_they_are_an_arms() {
    let header = build_header(three_arms());
    // Every so many trials of each arm, 60 of two slices.
    for (every, left_out, more_often_of) in [
        ([4, 4, 4], true, None),
        ([4, 5, 4], true, None),
        ([1, 1, 1], false, None),
        ([100, 100, 3], false, Some("keepalive")),
        ([3, 3, 100], false, Some("stock")),
    ] {
        let mut recorded = build_trials(&header, "open", 60, as_intended);
        for trial in &mut recorded {
            let arm = header.study.arms.iter().position(|arm| arm.name == trial.arm);
            for slice in &mut trial.slices {
                slice.held_up.proxy = Some(HeldUp::default());
                slice.stood_still = trial.block % every[arm.unwrap_or(0)] == 0;
            }
        }
        let (_folder, run) = run_with_times(&header, recorded, exponential(1000));
        let hold_ups = analyze(&run).loads[1].hold_ups.clone().unwrap();
        assert_eq!(hold_ups.left_out, left_out, "{every:?} {hold_ups:?}");
        assert_eq!(hold_ups.more_often_of.as_deref(), more_often_of, "{every:?} {hold_ups:?}");
    }
}

/// Compares the p99 in a run of so many blocks with so many requests each.
fn compare_p99(blocks: u32, count: usize) -> Comparison {
    let header = build_header(three_arms());
    let recorded = build_trials(&header, "open", blocks, as_intended);
    let (_folder, run) = run_with_times(&header, recorded, exponential(count));
    comparison(&analyze(&run), 1, Metric::ResponseP99, "keepalive").clone()
}

#[test]
fn a_short_run_shows_its_tail_and_claims_what_its_requests_allow() {
    // Blocks, requests in each; replicates, requests in each, verdict, its basis, and if the requests are few.
    for (blocks, count, n, requests, verdict, basis, is_few) in [
        (12, 500, 6, 1_000, Verdict::Better, Basis::ExcludesOne, false),
        (12, 400, 6, 800, Verdict::Better, Basis::ExcludesOne, true),
        (12, 50, 6, 100, Verdict::Better, Basis::ExcludesOne, true),
        (12, 40, 6, 80, Verdict::Inconclusive, Basis::FewRequests, false),
    ] {
        let p99 = compare_p99(blocks, count);
        let outcome = (p99.n, p99.requests, p99.verdict);
        assert_eq!(outcome, (n, Some(requests), verdict), "{count}: {p99:?}");
        assert_eq!(p99.because.basis, basis, "{p99:?}");
        assert_eq!(p99.because.caveats.contains(&Caveat::FewRequests), is_few, "{p99:?}");
        if basis == Basis::ExcludesOne {
            assert!(p99.interval.1 < 1.0, "{p99:?}");
        }
        assert!(p99.ratio > 0.2 && p99.ratio < 0.9, "{p99:?}");
    }
    let needed = compare_p99(12, 40).because.needed;
    // A quarter of twelve blocks of six tenths of a second.
    let Some(Needed::Requests { seconds, times_rate }) = needed else { panic!("{needed:?}") };
    assert!((seconds - 1.8).abs() < 0.1 && times_rate == 1.25, "{needed:?}");
}

#[test]
fn a_study_whose_quantile_has_too_few_requests_or_no_figures_is_not_valid() {
    let mut run_header = build_header(three_arms());
    run_header.study.objective.metric = Metric::ResponseP99;
    let reason = HeadlineReason::Comparison {
        load: "open".to_owned(),
        arm: "stock-again".to_owned(),
        metric: Metric::ResponseP99,
    };
    for (count, validity, basis) in [
        (500, Validity::Valid, None),
        (40, Validity::Suspect, Some(Basis::FewRequests)),
        (0, Validity::Invalid, Some(Basis::FewAnswers)),
    ] {
        let recorded = build_trials(&run_header, "open", 12, as_intended);
        let (_folder, run) = run_with_times(&run_header, recorded, exponential(count));
        let findings = analyze(&run);
        let headline = &findings.headline;
        assert_eq!(headline.validity, validity, "{headline:?}");
        let is_comparison = headline.reason.as_ref() == Some(&reason);
        assert_eq!(is_comparison, basis.is_some(), "{headline:?}");
        let comparison = findings.loads[1].comparison("stock-again", Metric::ResponseP99).unwrap();
        let headline_basis = is_comparison.then(|| comparison.because.basis.clone());
        assert_eq!(headline_basis, basis);
    }
}

/// Comparisons of median and rate, and the number of used blocks, if the change leaves a share of its requests
/// unanswered in some of its blocks.
fn overloaded(share: f64, is_bad: fn(u32) -> bool) -> (Comparison, Comparison, u32) {
    let header = build_header(three_arms());
    let mut trials = build_trials(&header, "open", 40, as_intended);
    for trial in &mut trials {
        let bad = trial.arm == "keepalive" && is_bad(trial.block);
        for slice in &mut trial.slices {
            slice.due = 800;
            slice.queued = if bad { (share * 800.0) as u64 } else { 0 };
            slice.sent = slice.due - slice.queued;
            slice.completed = slice.sent;
            trial.censored.queued += slice.queued;
        }
    }
    let (_folder, run) = run_with_times(&header, trials, |trial, rng| {
        let answered = trial.slices.iter().map(|slice| slice.sent).sum();
        (0..answered).map(|_| (-3e5 * (1.0 - rng.unit()).ln()) as u64 + 1).collect()
    });
    let findings = analyze(&run);
    let [p50, rate] = [Metric::ResponseP50, Metric::Rate]
        .map(|metric| comparison(&findings, 1, metric, "keepalive").clone());
    (p50, rate, findings.loads[1].blocks_used)
}

#[test]
fn overload_is_an_outcome() {
    let (p50, rate, used) = overloaded(0.6, |_| true);
    assert_eq!(used, 40, "no block is thrown away for it");
    assert_eq!((p50.verdict, p50.ratio), (Verdict::Worse, f64::INFINITY));
    assert_eq!(rate.verdict, Verdict::Worse, "{rate:?}");
    assert!((rate.ratio - 0.4).abs() < 0.01, "{rate:?}");
    // Where most is answered the median is longer, and no more.
    let (p50, rate, _) = overloaded(0.3, |_| true);
    assert!((1.3..3.0).contains(&p50.ratio), "{p50:?}");
    assert_eq!((p50.verdict, rate.verdict), (Verdict::Worse, Verdict::Worse));
    // Its typical blocks are as good as the baseline's.
    let (_, rate, used) = overloaded(1.0, |block| block % 10 == 0);
    assert_eq!((rate.verdict, used), (Verdict::Inconclusive, 40), "{rate:?}");
    assert_eq!(rate.because.basis, Basis::Stalls, "{rate:?}");
    let (p50, rate, _) = overloaded(1.0, |block| block % 5 < 2);
    for found in [p50, rate] {
        assert!(matches!(found.verdict, Verdict::Inconclusive | Verdict::Worse), "{found:?}");
    }
}

#[test]
fn histograms_that_were_not_kept_leave_the_rest_standing() {
    let header = build_header(three_arms());
    let trials = build_trials(&header, "open", 20, as_intended);
    let (_folder, run) = run_with_times(&header, trials, |_, _| Vec::new());
    let findings = analyze(&run);
    let p50 = comparison(&findings, 1, Metric::ResponseP50, "keepalive");
    assert_eq!(p50.verdict, Verdict::Invalid, "{p50:?}");
    let arm = &findings.loads[1].arms[0];
    assert_eq!((arm.samples, arm.percentile_curve.len()), (0, 0));
}

#[test]
fn a_rate_given_as_a_share_is_the_pilots() {
    let mut header = build_header(three_arms());
    header.study.loads[1].arrivals = StudyArrivals::ShareOfSlowest(0.6);
    let folder = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(folder.path(), &header, "").unwrap();
    let pilot = PilotRecord {
        load: "open".to_owned(),
        slice_ns: 250_000_000,
        wanted_ns: None,
        rate: Some(12_000.0),
        late_rates: Vec::new(),
        residues: Vec::new(),
    };
    writer.append(&Record::Pilot(pilot)).unwrap();
    for trial in build_trials(&header, "open", 8, as_intended) {
        writer.append(&Record::Trial(Box::new(trial))).unwrap();
    }
    let findings = analyze(&Run::read(folder.path()).unwrap());
    let load = &findings.loads[1];
    assert_eq!((load.rate_intended, load.slice_ns), (Some(12_000.0), 250_000_000));
    assert!(!findings.complete);
}
