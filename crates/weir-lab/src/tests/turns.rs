//! Arms that are measured one after the other, on a simulated host.

use std::sync::atomic::Ordering;

use weir_analysis::findings::Verdict;
use weir_model::record::{Outcome, Phase, Record, RunHeader};
use weir_simulation::{ArmModel, Model, SICK};

use super::bench::{Bench, reports};
use crate::plan::Plan;
use crate::proposer::Proposer;
use crate::turns::Turns;
use crate::{Event, LabError, Summary};

/// Three arms, one of which is quicker by a quarter, on a host that drifts.
fn bench(rounds: u32, instance_sd: f64) -> Bench {
    let mut model = Model::default();
    let sick = ArmModel::default().slower(0.8);
    model.arms.insert(SICK.to_owned(), sick);
    model.others.instance_sd = instance_sd;
    let mut bench = Bench::new(&["stock", "same", SICK], 24, model);
    bench.study.blocks.slice = None;
    bench.study.blocks.at_least = rounds;
    bench
}

fn proposer(header: &RunHeader, session: u32) -> Box<dyn Proposer> {
    let plan = Plan::new(&header.study, session, Box::new(|_, _| unreachable!()));
    Box::new(Turns::new(&header.study, plan))
}

fn run(bench: &Bench, events: &mut dyn FnMut(Event)) -> Result<Summary, LabError> {
    let study = (&bench.study, "");
    crate::ask(study, &bench.options(), &mut proposer, events)
}

#[test]
fn rounds_are_mirrored_and_each_is_a_replicate() {
    let bench = bench(12, 0.002);
    assert_eq!(run(&bench, &mut |_| {}).unwrap().outcome, Outcome::Complete);
    let read = bench.read();
    let order: Vec<(&str, u32)> = read
        .trials()
        .map(|trial| (&*trial.arm, trial.block))
        .collect();
    let first = [
        ("stock", 0),
        ("same", 0),
        (SICK, 0),
        (SICK, 1),
        ("same", 1),
        ("stock", 1),
    ];
    assert_eq!(order[..6], first);
    assert_eq!(order.len(), 36, "and no pilot: {order:?}");
    let parts = read.parts_in("closed", Phase::counts);
    assert!(parts.map(|part| part.arms.len()).all(|arms| arms == 1));
    let findings = weir_analysis::analyze(&read);
    let load = &findings.loads[0];
    let of = |arm: &str| {
        let mut all = load.comparisons.iter();
        all.find(|one| one.arm == arm).unwrap()
    };
    let found = of(SICK);
    assert_eq!(
        (found.n, found.merged, found.verdict),
        (12, 1, Verdict::Better),
        "{found:?}"
    );
    assert!((found.ratio / 1.25 - 1.0).abs() < 0.01, "{found:?}");
    let same = of("same");
    assert!(
        !matches!(same.verdict, Verdict::Better | Verdict::Worse),
        "{same:?}"
    );
    for report in reports(&read, &findings) {
        assert!(report.contains("1.25"), "{report}");
    }
}

/// What differs from stretch to stretch is in the interval, however long a stretch is.
#[test]
fn what_differs_between_stretches_widens_the_intervals() {
    let width = |instance_sd| {
        let bench = bench(12, instance_sd);
        run(&bench, &mut |_| {}).unwrap();
        let findings = weir_analysis::analyze(&bench.read());
        let found = findings.loads[0].comparisons[1].clone();
        (found.interval.1 / found.interval.0).ln()
    };
    let (quiet, noisy) = (width(0.001), width(0.03));
    assert!(noisy > 0.02 && noisy > quiet * 4.0, "{quiet} {noisy}");
}

#[test]
fn a_run_that_was_stopped_within_a_round_goes_on_with_whole_rounds() {
    let bench = bench(8, 0.001);
    let mut stop = |event: Event| {
        if matches!(event, Event::AloneTurn { stretch: 8, .. }) {
            bench.options().stop.store(true, Ordering::Relaxed);
        }
    };
    let summary = run(&bench, &mut stop).unwrap();
    assert_eq!(summary.outcome, Outcome::Interrupted);
    bench.options().stop.store(false, Ordering::Relaxed);
    let summary = crate::ask_again(&bench.options(), &mut proposer, &mut |_| {}).unwrap();
    assert_eq!(summary.outcome, Outcome::Complete);
    let read = bench.read();
    let findings = weir_analysis::analyze(&read);
    assert_eq!(findings.loads[0].comparisons[0].n, 8);
    let ends = read.records.iter().filter_map(|record| match record {
        Record::LoadEnd(end) => Some(end.blocks),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [8]);
}
