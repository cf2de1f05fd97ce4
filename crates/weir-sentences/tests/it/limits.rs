//! Tests of limits that hold, do not hold, or are not shown to, for a single arm and for several; and of received
//! bytes.

use std::time::Duration;

use weir_model::load::Censored;
use weir_model::record::{RunHeader, TrialRecord, Validity};
use weir_model::study::{ArmRole, Metric};
use weir_stats::SplitMix64;

use weir_analysis::fixture::three_arms;
use weir_analysis::fixture::{Moment, arm, build_header, build_trials, run, run_with_times};

use super::{AnalyzedRun, comparison};
use weir_analysis::findings::{Holding, LimitFindings, Verdict};

/// Exponential response times, 1,600 in a trial; their p99 is ln 100 times the mean.
fn exponential(mean_ns: f64) -> impl FnMut(&TrialRecord, &mut SplitMix64) -> Vec<u64> {
    move |_, rng| (0..1600).map(|_| (-mean_ns * (1.0 - rng.unit()).ln()) as u64 + 1).collect()
}

fn as_intended(_: Moment<'_>) -> f64 {
    10_000.0
}

/// A study of one arm that has to stay within a millisecond.
fn alone() -> RunHeader {
    let mut header = build_header(vec![arm("nginx", ArmRole::Baseline, 0)]);
    header.study.objective.metric = Metric::ResponseP99;
    header.study.objective.within = Some(Duration::from_millis(1));
    header
}

fn of_alone(blocks: u32, mean_ns: f64, censored: u64) -> AnalyzedRun {
    let header = alone();
    let mut trials = build_trials(&header, "open", blocks, as_intended);
    for trial in &mut trials {
        trial.censored = Censored { in_flight: censored, ..Censored::default() };
    }
    let (_folder, run) = run_with_times(&header, trials, exponential(mean_ns));
    AnalyzedRun::of(&run)
}

fn only_limit(findings: &AnalyzedRun) -> &LimitFindings {
    assert_eq!(findings.loads[0].limits, [], "the closed load gives no p99");
    assert_eq!(findings.loads[1].limits.len(), 1);
    &findings.loads[1].limits[0]
}

#[test]
fn a_limit_is_judged_by_the_interval_not_by_the_estimate() {
    let p99 = 100_f64.ln();
    #[rustfmt::skip]
    let rows = [
        (0.5e6 / p99, Holding::Holds, "nginx stays within 1 ms (the 0.99 quantile"),
        (1.5e6 / p99, Holding::DoesNotHold, "nginx does not stay within 1 ms ("),
        (1e6 / p99, Holding::NotShown, "Whether nginx stays within 1 ms could not"),
    ];
    for (mean_ns, verdict, word) in rows {
        let findings = of_alone(60, mean_ns, 0);
        let limit = only_limit(&findings);
        assert_eq!(limit.verdict, verdict, "{limit:?}");
        assert!((limit.value_ns / (mean_ns * p99) - 1.0).abs() < 0.03, "{limit:?}");
        let (low, high) = limit.interval_ns;
        assert!(low <= mean_ns * p99 && mean_ns * p99 <= high && high / low < 1.1);
        assert!(findings.answer().contains(word), "{}", findings.answer());
        assert_eq!(findings.loads[1].validity, Validity::Valid);
    }
}

#[test]
fn requests_that_were_never_answered_are_beyond_every_limit() {
    // Beside the 1,600 that were answered in a block, 16 would be 1 %.
    for (lost, verdict) in [(12, Holding::Holds), (16, Holding::NotShown)] {
        let findings = of_alone(60, 1e5, lost);
        assert_eq!(only_limit(&findings).verdict, verdict, "{lost}");
    }
    let findings = of_alone(60, 1e5, 60);
    let limit = only_limit(&findings);
    assert_eq!(limit.verdict, Holding::DoesNotHold, "{limit:?}");
    let reason = weir_sentences::explain_limit(limit);
    assert_eq!(reason, "2.9 % of the requests were not answered");
    assert_eq!(limit.value_ns, f64::INFINITY);
    let why = "nginx does not stay within 1 ms (2.9 % of the requests were not answered)";
    assert!(findings.answer().to_lowercase().contains(why), "{}", findings.answer());
}

#[test]
fn too_little_is_not_shown_to_hold() {
    let findings = of_alone(4, 1e5, 0);
    let limit = only_limit(&findings);
    assert_eq!(limit.verdict, Holding::NotShown, "{limit:?}");
    let findings = of_alone(0, 1e5, 0);
    assert_eq!(only_limit(&findings).verdict, Holding::Invalid);
}

#[test]
fn a_limit_beside_a_comparison_is_for_every_arm() {
    let mut header = build_header(three_arms());
    header.study.objective.metric = Metric::ResponseP99;
    header.study.objective.within = Some(Duration::from_millis(1));
    let trials = build_trials(&header, "open", 60, as_intended);
    let (_folder, run) = run_with_times(&header, trials, exponential(1e5));
    let findings = AnalyzedRun::of(&run);
    let limits = &findings.loads[1].limits;
    assert_eq!(limits.len(), 3);
    assert!(limits.iter().all(|limit| limit.verdict == Holding::Holds));
    let answer = &findings.answer();
    assert!(answer.starts_with("stock stays within 1 ms") && answer.contains("; keepalive stays"));
    assert!(!answer.contains("stock-again stays"), "{answer}");
}

#[test]
fn bytes_that_arrive_after_a_slice_are_not_of_its_time() {
    let mut header = build_header(three_arms());
    header.study.objective.metric = Metric::ReceivedBytes;
    let mut trials =
        build_trials(
            &header,
            "closed",
            30,
            |moment| if moment.arm == 2 { 20_000.0 } else { 10_000.0 },
        );
    for slice in trials.iter_mut().flat_map(|trial| &mut trial.slices) {
        // What was in flight at the end of the slice still came in: a fifth more than its time had
        // room for.
        slice.completed_whole += slice.completed_whole / 5;
        slice.received_bytes = slice.completed_whole * 1_000_000;
    }
    let (_folder, run) = run(&header, trials);
    let findings = AnalyzedRun::of(&run);
    let load = &findings.loads[0];
    assert_eq!(load.metrics, [Metric::ReceivedBytes, Metric::CpuPerRequest]);
    assert_eq!(load.arms[0].received_per_second, Some(1e10));
    let change = comparison(&findings, 0, Metric::ReceivedBytes, "keepalive");
    assert!((change.ratio - 2.0).abs() < 1e-6, "{change:?}");
    assert_eq!(change.verdict, Verdict::Better);
    let answer = &findings.answer();
    assert!(
        answer.contains("keepalive makes nginx pass on 2.00 times as many bytes")
            || answer.contains("keepalive makes nginx pass on 2.00 times as many bytes"),
        "{answer}"
    );
}

#[test]
fn loads_of_an_arm_that_is_alone_are_put_together_by_what_came_out() {
    let mut header = alone();
    header.study.loads.remove(0);
    let open = header.study.loads[0].clone();
    for name in ["held", "crowded"] {
        let mut load = open.clone();
        load.name = name.to_owned();
        header.study.loads.push(load);
    }
    let all = ["open", "held", "crowded"]
        .map(|load| build_trials(&header, load, 60, as_intended))
        .concat();
    let (mut fast, mut slow) = (exponential(1e5), exponential(1e6));
    let (_folder, run) = run_with_times(&header, all, |trial, rng| match &*trial.load {
        "crowded" => slow(trial, rng),
        _ => fast(trial, rng),
    });
    let answer = AnalyzedRun::of(&run).answer();
    assert!(
        answer.starts_with("nginx stays within 1 ms under open (0.4")
            && answer.contains(" ms) and held (0.4")
            && answer.contains("; nginx does not stay within 1 ms under crowded (4."),
        "{answer}"
    );
}
