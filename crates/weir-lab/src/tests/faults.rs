//! Tests of the effect of faults on a run, with every scenario of the simulated host.

use std::collections::BTreeMap;

use weir_analysis::findings::{Findings, Verdict};
use weir_model::record::{Outcome, Record, TrialRecord, Validity};
use weir_model::study::Metric;
use weir_simulation::{ArmModel, Fault, Model, SICK, scenarios};

use super::bench::Bench;

/// Scenario, validity of the load, broken rules, and the verdict on the rate of the arm with an effect, if the scenario
/// decides it.
type Row = (&'static str, Validity, &'static [&'static str], Option<Verdict>);

/// Scenarios in which the run completes.
const ROWS: [Row; 21] = {
    use Validity::{Suspect, Valid};
    use Verdict::{Equivalent, Inconclusive, Worse};
    [
        ("quiet", Valid, &[], Some(Equivalent)),
        ("slower", Valid, &[], Some(Worse)),
        ("white noise", Valid, &[], Some(Inconclusive)),
        ("drift", Valid, &[], Some(Equivalent)),
        ("bursts", Valid, &[], None),
        ("step", Valid, &[], Some(Equivalent)),
        ("correlated noise", Valid, &[], Some(Equivalent)),
        ("an arm with noise of its own", Valid, &[], Some(Inconclusive)),
        ("instances that differ", Valid, &[], None),
        ("slow start", Valid, &[], Some(Worse)),
        ("leak", Valid, &[], Some(Worse)),
        ("errors in runs", Valid, &[], None),
        ("two modes", Valid, &[], None),
        ("stall", Valid, &[], Some(Inconclusive)),
        ("refusal", Valid, &[], None),
        ("generator held up", Valid, &[], None),
        ("generator late", Valid, &[], Some(Equivalent)),
        ("counters late", Suspect, &["late-counters"], None),
        ("steal", Suspect, &["proxy-steal"], None),
        ("two generators", Valid, &[], Some(Equivalent)),
        ("generators that start apart", Suspect, &["start-spread"], Some(Equivalent)),
    ]
};

fn build_models() -> BTreeMap<&'static str, Model> {
    scenarios(1).into_iter().collect()
}

fn make_bench(model: &Model) -> Bench {
    Bench::new(&["stock", "same", SICK], 12, model.clone())
}

fn rate_of(findings: &Findings, arm: &str) -> Verdict {
    let all = &findings.loads[0].comparisons;
    all.iter()
        .find(|comparison| comparison.arm == arm && comparison.metric == Metric::Rate)
        .expect("a comparison")
        .verdict
}

#[test]
fn every_scenario_is_judged_as_it_should_be() {
    let models = build_models();
    let ended = ["crash", "does not start"];
    assert_eq!(models.len(), ROWS.len() + ended.len(), "a row for each scenario");
    for (name, validity, rules, verdict) in ROWS {
        let findings = make_bench(&models[name]).findings();
        let load = &findings.loads[0];
        let mut broken: Vec<&str> =
            load.reasons.iter().map(|reason| reason.reason.rule()).collect();
        broken.sort_unstable();
        broken.dedup();
        assert_eq!((load.validity, &broken[..]), (validity, rules), "{name}");
        if let Some(verdict) = verdict {
            assert_eq!(rate_of(&findings, SICK), verdict, "{name}");
            assert_eq!(rate_of(&findings, "same"), same_verdict(name), "{name}");
        }
    }
}

/// Returns the expected verdict on the A/A arm: equivalent, unless the machine does not allow it.
fn same_verdict(scenario: &str) -> Verdict {
    match scenario {
        "white noise" => Verdict::Inconclusive,
        _ => Verdict::Equivalent,
    }
}

fn run_trials(model: &Model) -> Vec<TrialRecord> {
    let bench = make_bench(model);
    bench.findings();
    bench.read().trials().cloned().collect()
}

#[test]
fn the_same_seed_repeats_a_run_exactly() {
    let model = &build_models()["correlated noise"];
    let first = run_trials(model);
    assert_eq!(first, run_trials(model));
    assert_ne!(first, run_trials(&Model { seed: 2, ..model.clone() }));
}

#[test]
fn a_crash_is_named_and_what_was_measured_is_kept() {
    let crash = make_bench(&build_models()["crash"]);
    let error = crash.run(&mut |_, _| {}).unwrap_err();
    assert_eq!(error.to_string(), format!("arm `{SICK}`: it has ended by itself"));
    assert_eq!(error.broken_arm(), Some(SICK));
    let run = crash.read();
    assert_eq!(run.outcome(), Some(Outcome::Failed));
    let whole_blocks = run.blocks("closed").values().filter(|block| block.len() == 3).count();
    assert!((5..20).contains(&whole_blocks), "{whole_blocks} blocks before it, of 20");
}

#[test]
fn an_arm_that_does_not_start_leaves_no_run_behind() {
    let bench = make_bench(&build_models()["does not start"]);
    let error = bench.run(&mut |_, _| {}).unwrap_err();
    assert_eq!(error.to_string(), format!("arm `{SICK}`: no such directive"));
    assert!(error.is_refused());
    assert!(!bench.options().folder.exists());
}

#[test]
fn a_run_that_has_crashed_goes_on_when_its_arm_is_well_again() {
    let mut bench = make_bench(&build_models()["crash"]);
    bench.run(&mut |_, _| {}).unwrap_err();
    let recorded: Vec<_> = bench.read().trials().cloned().collect();
    bench.model = Model::default();
    assert_eq!(bench.resume().unwrap().outcome, Outcome::Complete);
    let run = bench.read();
    let all: Vec<_> = run.trials().cloned().collect();
    assert_eq!(all[..recorded.len()], recorded, "what was recorded stays");
    let whole_blocks = run.blocks("closed").values().filter(|block| block.len() == 3).count();
    assert_eq!(whole_blocks, 20);
    let sessions = run.records.iter().filter(|record| matches!(record, Record::Session(_)));
    assert_eq!(sessions.count(), 2);
}

#[test]
fn all_arms_that_refuse_are_an_error_of_the_load() {
    let crashing = ArmModel { faults: vec![Fault::Crash { at_s: 0.0 }], ..ArmModel::default() };
    let bench = make_bench(&Model { others: crashing, ..Model::default() });
    let error = bench.run(&mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("does not answer as it should"), "{error}");
}
