//! Tests of the analysis on runs whose truth is known.

mod bypass;
mod evidence;
mod generators;
mod growth;
mod headline;
mod open_loop;
mod replicates;
mod rules;
mod size;
mod stood_still;

use weir_model::record::{Observation, Validity, ValidityReason};
use weir_model::study::{ArmRole, Metric};

use crate::analyze;
use crate::findings::{Basis, Comparison, Findings, Needed, Verdict};
use crate::fixture::{
    Moment, arm, build_header, build_trials, normal, run, run_with_times, three_arms,
};

fn comparison<'a>(
    findings: &'a Findings,
    load: usize,
    metric: Metric,
    arm: &str,
) -> &'a Comparison {
    let mut all = findings.loads[load].comparisons.iter();
    all.find(|c| c.metric == metric && c.arm == arm).unwrap()
}

/// Rates of 20,000 per second with noise of this standard deviation; 2.6 times as much for arm 2.
fn world(noise: f64) -> impl FnMut(Moment<'_>) -> f64 {
    move |moment| {
        let effect = if moment.arm == 2 { 2.6 } else { 1.0 };
        20_000.0 * effect * (noise * normal(moment.rng)).exp()
    }
}

#[test]
fn an_arm_that_answers_nothing_in_a_third_of_the_blocks_has_lost_about_that() {
    let header = build_header(three_arms());
    let mut usual = world(0.02);
    let all = build_trials(&header, "closed", 60, |moment| match moment {
        Moment { arm: 1, block, .. } if block % 3 == 0 => 0.0,
        Moment { arm: 1, .. } => usual(Moment { arm: 0, ..moment }),
        other => usual(other),
    });
    let (_folder, run) = run(&header, all);
    let findings = analyze(&run);
    let stalls = comparison(&findings, 0, Metric::Rate, "stock-again");
    assert_eq!(stalls.verdict, Verdict::Worse);
    assert!((stalls.pooled - 2.0 / 3.0).abs() < 0.02, "{stalls:?}");
    assert!((0.3..0.8).contains(&stalls.ratio), "{stalls:?}");
    let (low, high) = stalls.interval;
    assert!(low <= stalls.pooled && stalls.pooled <= high, "{stalls:?}");
}

#[test]
fn equal_arms_on_a_quiet_machine_are_equivalent() {
    let header = build_header(three_arms());
    let (_folder, run) = run(&header, build_trials(&header, "closed", 60, world(0.02)));
    let findings = analyze(&run);
    let same = comparison(&findings, 0, Metric::Rate, "stock-again");
    assert_eq!(same.verdict, Verdict::Equivalent, "{same:?}");
    assert!(same.minimum_detectable < 0.02);
    assert_eq!(same.p_holm, same.p, "there is one change beside it");
}

#[test]
fn a_drift_of_the_machine_falls_out() {
    let header = build_header(three_arms());
    // From 10,000 to 40,000 per second over the run; whoever came first would lose by far.
    let (_folder, run) = run(
        &header,
        build_trials(&header, "closed", 40, |moment| {
            10_000.0 + 30_000.0 * moment.index as f64 / 240.0
        }),
    );
    for name in ["stock-again", "keepalive"] {
        let findings = analyze(&run);
        let comparison = findings.loads[0].comparisons.iter().find(|c| c.arm == name).unwrap();
        assert!((comparison.ratio - 1.0).abs() < 1e-3, "{comparison:?}");
        assert_eq!(comparison.verdict, Verdict::Equivalent, "{comparison:?}");
    }
}

#[test]
fn invalid_blocks_are_out_before_their_outcome_is_looked_at() {
    let header = build_header(three_arms());
    let mut all = build_trials(&header, "closed", 40, |moment| {
        // In every fourth block the change looks ten times as good …
        let lucky = moment.arm == 2 && moment.block % 4 == 0;
        20_000.0 * if lucky { 10.0 } else { 1.0 } * (0.01 * normal(moment.rng)).exp()
    });
    for trial in all.iter_mut().filter(|trial| trial.block % 4 == 0) {
        // … and half of the CPU time belonged to somebody else.
        trial
            .slices
            .iter_mut()
            .for_each(|slice| slice.proxy_steal_ns = crate::fixture::SLICE_NS / 2);
    }
    let (_folder, run) = run(&header, all);
    let findings = analyze(&run);
    let load = &findings.loads[0];
    assert_eq!((load.blocks, load.blocks_used), (40, 30));
    let change = comparison(&findings, 0, Metric::Rate, "keepalive");
    assert_eq!((change.n, change.verdict), (30, Verdict::Equivalent), "{change:?}");
    assert!(load.arms[2].rate_completed < 25_000.0, "figures leave them out as well");
    let [reason] = &load.reasons[..] else {
        panic!("one reason: {:?}", load.reasons);
    };
    assert_eq!((reason.reason.rule(), reason.trials, reason.of), ("proxy-steal", 30, 120));
    assert_eq!(reason.arms, ["stock", "stock-again", "keepalive"]);
}

#[test]
fn autocorrelated_blocks_widen_the_interval() {
    let header = build_header(three_arms());
    let [independent, wandering] = [0.0, 0.9].map(|persistence: f64| {
        let (mut state, mut last) = (0.0, 0);
        let trials = build_trials(&header, "closed", 200, |moment| {
            if moment.block != last {
                last = moment.block;
                state = persistence * state + 0.05 * normal(moment.rng);
            }
            let drift = if moment.arm == 2 { state } else { 0.0 };
            20_000.0 * (drift + 0.01 * normal(moment.rng)).exp()
        });
        let (_folder, run) = run(&header, trials);
        comparison(&analyze(&run), 0, Metric::Rate, "keepalive").clone()
    });
    assert!(wandering.autocorrelation > 0.7, "{wandering:?}");
    assert_eq!((independent.n, wandering.n), (200, 200));
    let [wide, narrow] = [&wandering, &independent].map(|c| (c.interval.1 / c.interval.0).ln());
    assert!(wide > 5.0 * narrow, "{wandering:?} {independent:?}");
}

#[test]
fn five_blocks_claim_nothing_and_six_may() {
    let header = build_header(three_arms());
    for (blocks, want) in [(5, Verdict::Inconclusive), (6, Verdict::Better)] {
        let (_folder, run) = run(&header, build_trials(&header, "closed", blocks, world(0.01)));
        let findings = analyze(&run);
        let change = comparison(&findings, 0, Metric::Rate, "keepalive");
        assert_eq!(change.verdict, want, "{change:?}");
    }
}

#[test]
fn several_changes_are_corrected_together() {
    let mut arms = three_arms();
    arms.extend((0..8).map(|k| arm(&format!("idle-{k}"), ArmRole::Change, 0)));
    let header = build_header(arms);
    // Six blocks reach p = 0.031 for one change; among nine that is not enough.
    let (_folder, run) = run(&header, build_trials(&header, "closed", 6, world(0.01)));
    let findings = analyze(&run);
    let change = comparison(&findings, 0, Metric::Rate, "keepalive");
    assert_eq!((change.p, change.p_holm), (0.03125, 9.0 * 0.03125));
    assert_eq!(change.verdict, Verdict::Inconclusive, "{change:?}");
    assert_eq!(change.because.basis, Basis::LargeP);
    // Three more blocks of six tenths of a second, of three arms, would be eleven arms' of 2.2 s.
    let needed = change.because.needed.clone();
    let Some(Needed::Replicates { replicates: 9, comparisons: 9, seconds }) = needed else {
        panic!("{needed:?}");
    };
    assert!((seconds - 6.6).abs() < 0.1, "{seconds}");
    let same = comparison(&findings, 0, Metric::Rate, "stock-again");
    assert_eq!(same.p_holm, (9.0 * same.p).min(1.0));
    // What would show is what the corrected test shows.
    let [of_nine, of_one] = [header.study.arms.len(), 3].map(|arms| {
        let mut few = header.clone();
        few.study.arms.truncate(arms);
        let (_folder, run) =
            crate::fixture::run(&few, build_trials(&few, "closed", 60, world(0.05)));
        let findings = analyze(&run);
        comparison(&findings, 0, Metric::Rate, "stock-again").minimum_detectable
    });
    assert!(of_nine > 1.2 * of_one, "{of_nine} {of_one}");
}

#[test]
fn a_resumed_run_goes_on_where_it_stopped() {
    let header = build_header(three_arms());
    let mut all = build_trials(&header, "closed", 10, world(0.01));
    let mut second = build_trials(&header, "closed", 10, world(0.01));
    for trial in &mut second {
        trial.session = 1;
        trial.block += 9;
    }
    // The first session was killed within block 9, whose number the second one used again.
    all.pop();
    all.extend(second);
    let (_folder, run) = run(&header, all);
    let load = &analyze(&run).loads[0];
    assert_eq!((load.blocks, load.blocks_used), (20, 19));
    let times: Vec<f64> = load.arms[0].over_time.iter().map(|(seconds, _, _)| *seconds).collect();
    assert_eq!(times.len(), 20);
    assert!(times.windows(2).all(|w| w[0] < w[1]), "{times:?}");
}

/// The median is missing, not the shortest of all.
#[test]
fn a_block_without_an_answer_has_no_median_over_time() {
    let header = build_header(three_arms());
    let trials = build_trials(&header, "open", 10, |_| 10_000.0);
    let (_folder, run) = run_with_times(&header, trials, |trial, _| match trial.block {
        4 => Vec::new(),
        _ => vec![300; 100],
    });
    let load = &analyze(&run).loads[1];
    let medians = load.arms[0].over_time.iter().map(|(.., median)| *median);
    let want = (0..10).map(|block| (block != 4).then_some(300));
    assert!(medians.eq(want), "{:?}", load.arms[0].over_time);
}

#[test]
fn trials_are_judged_anew_whatever_was_recorded_of_them() {
    let header = build_header(three_arms());
    let mut all = build_trials(&header, "closed", 10, world(0.01));
    all[4].validity.push(ValidityReason {
        validity: Validity::Invalid,
        subject: None,
        observation: Observation::ProxySteal { share: 0.9 },
    });
    let (_folder, run) = run(&header, all);
    let load = &analyze(&run).loads[0];
    assert_eq!((load.blocks_used, &load.reasons[..]), (10, &[][..]));
}
