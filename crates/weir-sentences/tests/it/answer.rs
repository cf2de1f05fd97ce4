//! The answer of studies that compare arms under loads.

use weir_analysis::findings::Verdict;
use weir_analysis::fixture::*;
use weir_model::record::Validity;
use weir_model::study::{ArmRole, LoadSpec, Metric};

use super::{AnalyzedRun, comparison, world};

#[test]
fn each_load_that_answers_has_a_line_of_the_answer() {
    let mut header = build_header(three_arms());
    header.study.loads.truncate(1);
    let first_load = header.study.loads[0].clone();
    header.study.loads.push(LoadSpec { name: "other".to_owned(), ..first_load });
    let mut all = build_trials(&header, "closed", 30, world(0.01));
    all.extend(build_trials(&header, "other", 30, world(0.01)));
    let (_folder, run) = run(&header, all);
    let answer = AnalyzedRun::of(&run).answer();
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(lines.len(), 2, "{answer}");
    assert!(lines[0].starts_with("Under the load closed: keepalive makes"));
    assert!(lines[1].starts_with("Under the load other: keepalive makes"));
}

#[test]
fn a_known_effect_is_found_and_nothing_else() {
    let header = build_header(three_arms());
    let (_folder, run) = run(&header, build_trials(&header, "closed", 60, world(0.12)));
    let findings = AnalyzedRun::of(&run);
    let load = &findings.loads[0];
    assert_eq!((load.blocks, load.blocks_used), (60, 60));
    assert_eq!((load.validity, load.reasons.len()), (Validity::Valid, 0));
    assert_eq!(load.metrics, [Metric::Rate, Metric::CpuPerRequest]);

    let keepalive = comparison(&findings, 0, Metric::Rate, "keepalive");
    let (low, high) = keepalive.interval;
    assert!(low < 2.6 && 2.6 < high && high / low < 1.15, "{keepalive:?}");
    assert_eq!((keepalive.verdict, keepalive.n, keepalive.merged), (Verdict::Better, 60, 1));
    assert!(keepalive.confidence >= 0.95 && keepalive.p < 1e-9);

    let cpu = comparison(&findings, 0, Metric::CpuPerRequest, "keepalive");
    assert_eq!(cpu.verdict, Verdict::Better, "less CPU time is better: {cpu:?}");
    assert!((cpu.ratio * 2.6 - 1.0).abs() < 0.05, "{cpu:?}");

    let same = comparison(&findings, 0, Metric::Rate, "stock-again");
    assert!(matches!(same.verdict, Verdict::Inconclusive | Verdict::Equivalent), "{same:?}");
    // sd of the mean of two slices against two: 0.12; 2.8 · 0.12 / √60.
    assert!((0.03..0.06).contains(&same.minimum_detectable), "{same:?}");

    assert!(findings.complete);
    let want = format!(
        "keepalive makes nginx carry {:.2} times as much (95 % interval {low:.2} to {high:.2}).",
        keepalive.ratio
    );
    assert_eq!(findings.answer(), want);
    let arms = &load.arms;
    assert!((arms[0].rate_completed - 20_000.0).abs() < 1000.0);
    assert_eq!(arms[2].origin_connects_per_request, Some(1.0));
    assert_eq!(arms[2].over_time.len(), 60);
}

#[test]
fn a_study_of_equal_arms_alone_answers_how_much_can_be_seen() {
    let header = build_header(three_arms()[..2].to_vec());
    let (_folder, run) = run(&header, build_trials(&header, "closed", 60, world(0.02)));
    let findings = AnalyzedRun::of(&run);
    let same = comparison(&findings, 0, Metric::Rate, "stock-again");
    let expected = format!("seen here from {:.1} % on", same.minimum_detectable * 100.0);
    assert!(findings.answer().contains("Two equal arms"), "{}", findings.answer());
    assert!(findings.answer().contains(&expected), "{}", findings.answer());
}

#[test]
fn runs_with_next_to_nothing_in_them_say_so() {
    let header = build_header(three_arms());
    let (_folder, empty) = run(&header, Vec::new());
    let findings = AnalyzedRun::of(&empty);
    assert_eq!(findings.answer(), "Nothing was measured that answers the question.");
    assert_eq!(findings.loads[0].validity, Validity::Invalid);
    let nothing = comparison(&findings, 0, Metric::Rate, "keepalive");
    assert_eq!((nothing.verdict, nothing.n), (Verdict::Invalid, 0));
    assert!(nothing.ratio.is_nan());
    assert_eq!(findings.reason(nothing), "nothing was measured");

    let (_folder, one) = run(&header, build_trials(&header, "closed", 1, world(0.1)));
    let findings = AnalyzedRun::of(&one);
    let single = comparison(&findings, 0, Metric::Rate, "keepalive");
    assert_eq!((single.verdict, single.n), (Verdict::Inconclusive, 1));
    let reason = findings.reason(single);
    assert!(reason.contains("too few"), "{reason}");

    // Killed within the only block: the last arm is missing.
    let mut cut = build_trials(&header, "closed", 1, world(0.1));
    cut.pop();
    let (_folder, cut) = run(&header, cut);
    let findings = AnalyzedRun::of(&cut);
    assert_eq!((findings.loads[0].blocks, findings.loads[0].blocks_used), (1, 0));
    let missing = comparison(&findings, 0, Metric::Rate, "keepalive");
    assert_eq!(missing.verdict, Verdict::Invalid);
}

#[test]
fn steps_of_a_cumulative_design_are_compared_with_the_step_before() {
    let mut arms = three_arms();
    arms.push(arm("and-log-off", ArmRole::Change, 2));
    let header = build_header(arms);
    let (_folder, run) = run(
        &header,
        build_trials(&header, "closed", 30, |moment| {
            [10_000.0, 10_000.0, 20_000.0, 22_000.0][moment.arm] * (0.01 * normal(moment.rng)).exp()
        }),
    );
    let findings = AnalyzedRun::of(&run);
    let step = comparison(&findings, 0, Metric::Rate, "and-log-off");
    assert_eq!(step.against, "keepalive");
    assert!((step.ratio - 1.1).abs() < 0.01, "{step:?}");
    assert!(findings.answer().contains("; and-log-off 1.10 times ("), "{}", findings.answer());
    assert!(findings.answer().contains("(each step against the one before it)"));
}

#[test]
fn arms_of_strata_are_no_steps() {
    let mut arms = three_arms();
    arms.push(arm("workers", ArmRole::Change, 0));
    arms.push(arm("workers-keepalive", ArmRole::Change, 3));
    arms.push(arm("workers-log-off", ArmRole::Change, 3));
    let header = build_header(arms);
    let (_folder, run) = run(
        &header,
        build_trials(&header, "closed", 30, |moment| {
            [1.0, 1.0, 2.0, 1.5, 3.0, 1.8][moment.arm]
                * 10_000.0
                * (0.01 * normal(moment.rng)).exp()
        }),
    );
    let answer = AnalyzedRun::of(&run).answer();
    assert!(
        answer.ends_with(" (each against the arm that differs from it in nothing else)."),
        "{answer}"
    );
}

#[test]
fn a_difference_between_equal_arms_is_a_warning() {
    let header = build_header(three_arms());
    let (_folder, run) = run(
        &header,
        build_trials(&header, "closed", 20, |moment| {
            20_000.0 * [1.0, 1.1, 1.0][moment.arm] + moment.rng.unit()
        }),
    );
    let answer = AnalyzedRun::of(&run).answer();
    assert!(answer.starts_with("keepalive makes no difference that could be shown."), "{answer}");
    assert!(answer.contains("The lab saw a difference between two equal arms"), "{answer}");
}

fn as_intended(_: Moment<'_>) -> f64 {
    10_000.0
}

#[test]
fn a_tail_that_the_headline_hides_is_named() {
    let mut run_header = build_header(three_arms());
    let change: fn(&str) -> bool = |arm| arm == "keepalive";
    let hidden = "The tail of keepalive is far worse than that: its 0.";
    // The share of the change's requests that take 60 ms; the median of all others is 0.2 ms.
    for (metric, slow, is_slow, words) in [
        (Metric::ResponseP50, 0.12, change, "90 quantile of the response time is 60"),
        (Metric::ResponseP50, 0.05, change, "99 quantile of the response time is 60"),
        (Metric::CpuPerRequest, 0.05, change, "99 quantile of the response time is 60"),
        // The headline says so itself; nobody is slow, or all are, or equal arms differ as much.
        (Metric::ResponseP99, 0.05, change, ""),
        (Metric::ResponseP50, 0.0, change, ""),
        (Metric::ResponseP50, 0.05, |_| true, ""),
        (Metric::ResponseP50, 0.05, |arm| arm != "stock", ""),
    ] {
        run_header.study.objective.metric = metric;
        let recorded = build_trials(&run_header, "open", 12, as_intended);
        let (_folder, run) = run_with_times(&run_header, recorded, |trial, rng| {
            let slow_share = if is_slow(&trial.arm) { slow } else { 0.0 };
            let draws = (0..400).map(|_| {
                if rng.unit() < slow_share {
                    60_000_000
                } else {
                    190_000 + (20_000.0 * rng.unit()) as u64
                }
            });
            draws.collect()
        });
        let sentence = AnalyzedRun::of(&run).answer();
        match words {
            "" => assert!(!sentence.contains("tail of"), "{sentence}"),
            words => assert!(sentence.contains(&format!("{hidden}{words}")), "{sentence}"),
        }
    }
}
