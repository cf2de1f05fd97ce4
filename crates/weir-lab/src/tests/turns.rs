//! Tests of arms that are measured one after the other, on a simulated host.

use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_analysis::findings::Verdict;
use weir_model::flow::ArrivalsSpec;
use weir_model::record::{Outcome, Phase, Record, RunHeader};
use weir_model::study::{ControllerSpec, Study};
use weir_proposers::budget::{SWITCH, length_of};
use weir_proposers::{
    Announcement, Capacity, Plan, Proposer, Turns, claiming_search, longest_search,
};
use weir_simulation::{ArmModel, Model, SICK};

use super::bench::{self, Bench, reports};
use super::capacity;
use crate::{Event, LabError, Summary};

/// Makes a study of three arms, one of which is quicker by a quarter, on a host that drifts.
fn make_bench(rounds: u32, instance_sd: f64) -> Bench {
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
    let bench = make_bench(12, 0.002);
    assert_eq!(run(&bench, &mut |_| {}).unwrap().outcome, Outcome::Complete);
    let read = bench.read();
    let order: Vec<(&str, u32)> = read.trials().map(|trial| (&*trial.arm, trial.block)).collect();
    let first = [("stock", 0), ("same", 0), (SICK, 0), (SICK, 1), ("same", 1), ("stock", 1)];
    assert_eq!(order[..6], first);
    assert_eq!(order.len(), 36, "and no pilot: {order:?}");
    let parts = read.parts_in("closed", Phase::counts);
    assert!(parts.map(|part| part.arms.len()).all(|arms| arms == 1));
    let findings = weir_analysis::analyze(&read);
    let load = &findings.loads[0];
    let [sick, same] = [SICK, "same"]
        .map(|arm| load.comparisons.iter().find(|comparison| comparison.arm == arm).unwrap());
    assert_eq!((sick.n, sick.merged, sick.verdict), (12, 1, Verdict::Better), "{sick:?}");
    assert!((sick.ratio / 1.25 - 1.0).abs() < 0.01, "{sick:?}");
    assert!(!matches!(same.verdict, Verdict::Better | Verdict::Worse), "{same:?}");
    for report in reports(&read, &findings) {
        assert!(report.contains("1.25"), "{report}");
    }
}

/// An arm runs loads until it has worked far longer than putting it into force takes.
#[test]
fn an_arm_has_several_loads_in_a_turn() {
    // Long stretches: each load has its own rounds, and the arm that has the last stretch stays for the next load.
    for (seconds, changes) in [(24, 13), (24 * 60, 25)] {
        let mut bench = make_bench(6, 0.001);
        bench.study.loads =
            ["one", "other"].map(|name| bench::load(name, ArrivalsSpec::Closed, seconds)).into();
        bench.study.loads[1].connections = 9;
        run(&bench, &mut |_| {}).unwrap();
        let read = bench.read();
        let [one, other] = ["one", "other"].map(|load| {
            let trials = read.trials().filter(|trial| trial.load == load);
            trials.map(|trial| (trial.block, &*trial.arm)).collect::<Vec<_>>()
        });
        assert_eq!(one, other, "{seconds}");
        assert_eq!(one.len(), 18, "{seconds}");
        let mut arms: Vec<&str> = read.trials().map(|trial| &*trial.arm).collect();
        arms.dedup();
        assert_eq!(arms.len(), changes, "{seconds}: {arms:?}");
        let ends = read.records.iter().filter_map(|record| match record {
            Record::LoadEnd(end) => Some((&*end.load, end.blocks)),
            _ => None,
        });
        assert_eq!(ends.collect::<Vec<_>>(), [("one", 6), ("other", 6)]);
    }
}

/// Differences between stretches are in the interval, however long a stretch is.
#[test]
fn what_differs_between_stretches_widens_the_intervals() {
    let [quiet, noisy] = [0.001, 0.03].map(|instance_sd| {
        let bench = make_bench(12, instance_sd);
        run(&bench, &mut |_| {}).unwrap();
        let findings = weir_analysis::analyze(&bench.read());
        let (low, high) = findings.loads[0].comparisons[1].interval;
        (high / low).ln()
    });
    assert!(noisy > 0.02 && noisy > quiet * 4.0, "{quiet} {noisy}");
}

#[test]
fn a_run_that_was_stopped_within_a_round_goes_on_with_whole_rounds() {
    let bench = make_bench(8, 0.001);
    let summary = run(&bench, &mut |event| {
        if matches!(event, Event::Announced(Announcement::AloneTurn { stretch: 8, .. })) {
            bench.options().stop.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(summary.unwrap().outcome, Outcome::Interrupted);
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

fn searches(header: &RunHeader, _: u32) -> Box<dyn Proposer> {
    Box::new(Capacity::new(header, None).in_turn())
}

/// Searches arms in turn; `stop` has the turn and the event in it at which the run is stopped.
fn search(bench: &Bench, stop: Option<(u32, u32)>) -> Summary {
    let mut at = (0, 0);
    let study = (&bench.study, "");
    let summary = crate::ask(study, &bench.options(), &mut searches, &mut |event| {
        at = match event {
            Event::Announced(Announcement::AloneTurn { stretch, .. }) => (stretch, 0),
            Event::Announced(Announcement::Bracket { .. }) => (at.0, at.1 + 1),
            _ => return,
        };
        if stop == Some(at) {
            bench.options().stop.store(true, Ordering::Relaxed);
        }
    });
    summary.unwrap()
}

#[test]
fn an_arm_is_searched_to_its_end_before_the_next_one_and_never_again() {
    let arms = [("stock", 2000.0), ("same", 2000.0), ("other", 1500.0)];
    for stop in [None, Some((1, 2)), Some((2, 0)), Some((2, 3)), Some((3, 1))] {
        let bench = capacity::make_bench(&arms, "p99 < 30ms", 5);
        let mut summary = search(&bench, stop);
        if stop.is_some() {
            assert_eq!(summary.outcome, Outcome::Interrupted, "{stop:?}");
            bench.options().stop.store(false, Ordering::Relaxed);
            let again = crate::ask_again(&bench.options(), &mut searches, &mut |_| {});
            summary = again.unwrap();
        }
        assert_eq!(summary.outcome, Outcome::Complete, "{stop:?}");
        let run = bench.read();
        let mut order: Vec<&str> = run.trials().map(|trial| &*trial.arm).collect();
        order.dedup();
        assert_eq!(order, ["stock", "other", "same"], "{stop:?}");
        let records = capacity::read_capacities(&run);
        assert_eq!(records.len(), 3, "{stop:?}");
        for record in records {
            let services = arms.iter().find(|(arm, _)| *arm == record.answer.arm);
            let truth = capacity::capacity(services.expect("an arm").1);
            // Holds of 5 s succeed at rates that do not last.
            let is_near = 0.95 * record.answer.low <= truth && truth <= 1.03 * record.answer.high;
            assert!(capacity::has_claim(record) && is_near, "{stop:?} {truth}: {record:?}");
        }
        let findings = weir_analysis::analyze(&run);
        let ratio = &findings.capacity.expect("capacities").ratios[1];
        assert_eq!(ratio.verdict, Verdict::Worse, "{ratio:?}");
    }
}

/// The time that the first arm leaves goes to the arms after it, and no more than that.
#[test]
fn each_arm_in_turn_has_its_share_of_the_budget() {
    let arms = [("stock", 2000.0), ("other", 1500.0)];
    let mut bench = capacity::make_bench(&arms, "p99 < 30ms", 5);
    // No interval is ever narrow enough.
    bench.study.search.precision = 0.001;
    let budget = Duration::from_secs(160);
    bench.study.budget = Some(budget);
    let took = search(&bench, None).took;
    assert!(took <= budget, "{took:?}");
    let run = bench.read();
    let records = capacity::read_capacities(&run);
    for record in &records {
        let share = 50.0..80.0;
        assert!(share.contains(&record.answer.seconds.1), "{record:?}");
    }
    assert_eq!(records.len(), 2);
}

#[test]
fn the_time_of_searches_in_turn_has_the_time_until_arms_are_in_force() {
    let arms = [("stock", 2000.0), ("other", 1500.0)];
    let beside = capacity::make_bench(&arms, "p99 < 30ms", 5).study;
    let mut in_turn = beside.clone();
    in_turn.proxy.controller =
        Some(ControllerSpec { is: "ingress-nginx".to_owned(), ..ControllerSpec::default() });
    let times = [longest_search, claiming_search, length_of];
    for time in times {
        let time: fn(&Study) -> Duration = time;
        assert_eq!(time(&in_turn), time(&beside) + SWITCH * 2);
    }
}
