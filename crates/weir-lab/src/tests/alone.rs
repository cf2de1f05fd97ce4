//! Tests of measuring baseline and winner one at a time, on a simulated host.

use std::sync::atomic::Ordering;

use weir_analysis::findings::{AloneChoice, AloneFindings, Findings, Holding};
use weir_model::record::{Outcome, Phase, Record, Validity};
use weir_proposers::Announcement;
use weir_simulation::{ArmModel, Grain, Model, SICK};

use super::bench::{Bench, reports};
use crate::Event;

/// Makes a model with a quick arm, whose requests take longer by `crowding` for every other running arm. The other arms
/// are not affected.
fn model(crowding: f64) -> Model {
    let mut model = Model::default();
    let sick = ArmModel { crowding, ..ArmModel::default().slower(0.8) };
    model.arms.insert(SICK.to_owned(), sick);
    model.others.instance_sd = 0.005;
    model.grain = Grain::Slices;
    model
}

fn make_bench(crowding: f64) -> Bench {
    let mut bench = Bench::new(&["stock", "same", SICK], 24, model(crowding));
    bench.check_alone = true;
    bench
}

fn alone(findings: &Findings) -> &AloneFindings {
    findings.alone.as_ref().expect("a check")
}

fn is_close(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() < 0.015
}

#[test]
fn an_arm_that_suffers_from_its_neighbours_does_not_keep_its_ratio() {
    for (crowding, together, alone_is, verdict) in [
        (0.0, 1.25, 1.25, Holding::Holds),
        // Two others run beside it.
        (0.05, 1.136, 1.25, Holding::DoesNotHold),
        (0.2, 0.893, 1.25, Holding::DoesNotHold),
    ] {
        let bench = make_bench(crowding);
        let findings = bench.findings();
        let check = alone(&findings);
        let judged = (&*check.arm, &*check.against, check.verdict);
        assert_eq!(judged, (SICK, "stock", verdict), "{crowding}: {check:?}");
        assert!(is_close(check.together.0, together), "{crowding}: {check:?}");
        assert!(is_close(check.alone.0, alone_is), "{crowding}: {check:?}");
        let answer = weir_sentences::answer(&bench.study, &findings);
        let sentences = weir_sentences::describe_alone(&bench.study, check);
        assert!(answer.contains(&sentences), "{answer}");
        let chosen = if crowding < 0.1 { AloneChoice::Best } else { AloneChoice::DiffersMost };
        assert_eq!(check.chosen, Some(chosen), "{check:?}");
    }
}

#[test]
fn stretches_are_of_one_arm_and_in_no_figure_of_the_plan() {
    let bench = make_bench(0.05);
    let findings = bench.findings();
    let run = bench.read();
    let without = Bench::new(&["stock", "same", SICK], 24, model(0.05));
    assert_eq!(findings.loads, without.findings().loads);
    let stretches: Vec<_> = run.parts_in("closed", Phase::is_alone).collect();
    let arms = stretches.iter().map(|part| match &part.arms[..] {
        [arm] => &*arm.arm,
        arms => panic!("{arms:?}"),
    });
    let arms: Vec<&str> = arms.collect();
    assert_eq!(arms[..4], ["stock", SICK, SICK, "stock"]);
    assert_eq!(arms.len() as u32, alone(&findings).n * 2);
    assert!(arms.len() >= 16, "{}", arms.len());
    let mut numbers: Vec<u32> = run.trials_in(Phase::is_alone).map(|trial| trial.block).collect();
    let last = run.trials().map(|trial| trial.block).max();
    assert!(numbers.first() > last.as_ref(), "numbers go on: {numbers:?}");
    numbers.dedup();
    assert_eq!(numbers.len(), run.trials_in(Phase::is_alone).count());
    // Each is a new instance.
    let pids = run.records.iter().filter_map(|record| match record {
        Record::Proxy(proxy) => Some((&*proxy.arm, proxy.pid)),
        _ => None,
    });
    let mut pids: Vec<(&str, u32)> = pids.collect();
    pids.sort_unstable();
    let all = pids.len();
    pids.dedup();
    assert_eq!(pids.len(), all);
}

#[test]
fn a_check_that_is_stopped_goes_on_where_it_was() {
    let replicates = alone(&make_bench(0.05).findings()).n;
    for stop_at in [1, 2, 5] {
        let bench = make_bench(0.05);
        let summary = bench.run(&mut |event, stop| {
            let is_it = matches!(event, Event::Announced(Announcement::AloneTurn { stretch, .. }) if *stretch == stop_at);
            stop.fetch_or(is_it, Ordering::Relaxed);
        });
        assert_eq!(summary.unwrap().outcome, Outcome::Interrupted, "{stop_at}");
        let run = bench.read();
        let before = run.trials_in(Phase::is_alone).count();
        let findings = weir_analysis::analyze(&run);
        let verdict = alone(&findings).verdict;
        assert!(matches!(verdict, Holding::Invalid | Holding::NotShown), "{verdict:?}");
        assert_eq!(bench.resume().unwrap().outcome, Outcome::Complete, "{stop_at}");
        let run = bench.read();
        assert!(run.trials_in(Phase::is_alone).count() > before);
        let findings = weir_analysis::analyze(&run);
        assert_eq!(alone(&findings).n, replicates, "{stop_at}");
        assert_eq!(alone(&findings).verdict, Holding::DoesNotHold, "{stop_at}");
    }
}

fn promised_s(bench: &Bench) -> f64 {
    let mut promised = Vec::new();
    bench
        .run(&mut |event, _| {
            if let Event::Takes { takes, .. } = event {
                promised.push(*takes);
            }
        })
        .unwrap();
    assert_eq!(promised.len(), 1, "once");
    promised[0].as_secs_f64()
}

#[test]
fn a_check_is_promised_and_said_in_every_report() {
    let without = promised_s(&Bench::new(&["stock", "same", SICK], 24, model(0.0)));
    let bench = make_bench(0.0);
    let with = promised_s(&bench);
    let before = weir_proposers::budget::length_of(&bench.study)
        + weir_proposers::alone::length_of_check(&bench.study);
    let promises = format!("{with} promised, {before:?} before");
    assert!((before.as_secs_f64() / with - 1.0).abs() < 0.1, "{promises}");
    let run = bench.read();
    let measured = run.trials_in(Phase::is_alone).count() as f64 * 0.2;
    assert!(with - without > measured, "{with} for {without}, and {measured} measured");
    assert!(with - without < measured * 1.8, "{with} for {without}, and {measured} measured");
    let findings = weir_analysis::analyze(&run);
    assert_eq!(findings.headline.validity, Validity::Valid);
    for text in reports(&run, &findings) {
        assert!(text.contains("One arm at a time"), "{text}");
    }
}
