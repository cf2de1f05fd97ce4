//! Tests of capacity searches with a budget.

use std::time::Duration;

use weir_model::record::{CapacityEnd, CapacityRecord, Record};
use weir_proposers::Announcement;
use weir_record::Run;
use weir_simulation::{ArmModel, Distribution, Fault, TimeWait};

use super::bench::Bench;
use super::capacity::{forgetful, has_claim, make_bench, read_capacities};
use crate::Event;

#[test]
fn time_that_an_arm_with_a_claim_leaves_is_for_one_without() {
    let arms = [("stock", 2000.0), ("other", 2000.0)];
    for budget_s in [264, 270, 282] {
        let mut bench = make_bench(&arms, "p99 < 30ms", 30);
        let arm = forgetful(30_000.0);
        bench.model.arms.insert("other".to_owned(), arm);
        bench.study.budget = Some(Duration::from_secs(budget_s));
        bench.run(&mut |_, _| {}).unwrap();
        let run = bench.read();
        let records = read_capacities(&run);
        assert!(records.iter().all(|record| has_claim(record)), "{budget_s} s: {records:?}");
    }
}

#[test]
fn a_hold_without_which_nothing_narrows_a_claim_comes_before_dwells_of_others() {
    let mut bench = make_bench(&[("stock", 2000.0), ("other", 2000.0)], "p99 < 30ms", 65);
    bench.model.arms.insert("other".to_owned(), forgetful(60_000.0));
    bench.study.budget = Some(Duration::from_secs(444));
    bench.run(&mut |_, _| {}).unwrap();
    let run = bench.read();
    let records = read_capacities(&run);
    let record = records.iter().find(|record| record.answer.arm == "other").unwrap();
    // 60,000 ports for a minute each; a hold of 65 s may use a few more.
    assert!(record.answer.low <= 1020.0 && record.answer.high >= 1000.0, "{record:?}");
    assert!(record.answer.is_bracket && record.answer.high < 1.3 * record.answer.low, "{record:?}");
}

#[test]
fn a_budget_counts_the_closed_loops_before_a_search() {
    // Connections are doubled four times: 16 s. No interval is ever narrow enough.
    let mut bench = make_bench(&[("stock", 2000.0)], "p99 < 400ms", 5);
    let arm = ArmModel {
        service: Distribution::Exponential { mean_ns: 40e6 },
        workers: 64,
        ..ArmModel::default()
    };
    bench.model.arms.insert("stock".to_owned(), arm);
    bench.study.loads[0].main.connections = 4;
    bench.study.search.most_connections = Some(64);
    bench.study.search.precision = 0.001;
    let budget = Duration::from_secs(110);
    bench.study.budget = Some(budget);
    let took = bench.run(&mut |_, _| {}).unwrap().took;
    let run = bench.read();
    let record = read_capacities(&run)[0];
    assert_eq!(record.answer.connections, 64, "{record:?}");
    assert!(took <= budget, "{took:?}: {record:?}");
    assert!(took > budget - Duration::from_secs(40), "{took:?}: {record:?}");
}

fn copy_capacities(run: &Run) -> Vec<CapacityRecord> {
    read_capacities(run).into_iter().cloned().collect()
}

#[test]
fn the_budget_that_a_search_says_is_enough_is_longer_and_lets_it_answer() {
    for arms in [&[("stock", 2000.0)][..], &[("stock", 2000.0), ("other", 1500.0)]] {
        for budget_s in [30, 45] {
            let mut bench = make_bench(arms, "p99 < 30ms", 40);
            bench.study.budget = Some(Duration::from_secs(budget_s * arms.len() as u64));
            let took = bench.run(&mut |_, _| {}).unwrap().took;
            let short = copy_capacities(&bench.read());
            let enough_s = short
                .iter()
                .filter(|found| matches!(found.end, CapacityEnd::TooShort(_)))
                .filter_map(|found| found.answer.enough_s)
                .reduce(f64::max)
                .unwrap_or_else(|| panic!("none: {short:?}"));
            assert!(enough_s > took.as_secs_f64(), "{took:?}: {short:?}");
            let mut bench = make_bench(arms, "p99 < 30ms", 40);
            bench.study.budget = Some(Duration::from_secs_f64(enough_s));
            bench.run(&mut |_, _| {}).unwrap();
            let long = copy_capacities(&bench.read());
            assert!(long.iter().all(|found| found.answer.verified > 0.0), "{enough_s}: {long:?}");
        }
    }
}

type Spoil = Box<dyn Fn(&mut Bench)>;

fn stall_often(arm: &'static str) -> Spoil {
    Box::new(move |bench| {
        let arm = bench.model.arms.get_mut(arm).unwrap();
        let stalls = (1..40).map(|turn| 26.0 * f64::from(turn)..26.0 * f64::from(turn) + 13.0);
        arm.faults = stalls.map(Fault::Stall).collect();
    })
}

#[test]
fn a_budget_is_kept_whatever_a_search_has_to_ask_again() {
    let forgetful = TimeWait { per_request: 1.0, lasts_s: 60.0, room: 60_000.0, factor: 8.0 };
    let rows: [(&str, u64, u64, Spoil); 5] = [
        ("nothing", 5, 100, Box::new(|_| {})),
        ("stalls", 10, 100, stall_often("stock")),
        ("long stalls", 20, 120, stall_often("other")),
        (
            "a memory",
            20,
            120,
            Box::new(move |bench| {
                let arm = bench.model.arms.get_mut("stock").unwrap();
                arm.time_wait = Some(forgetful);
            }),
        ),
        (
            "a speed that changes",
            5,
            100,
            Box::new(|bench| {
                let steps = (1..200_u32).map(|turn| {
                    (15.0 * f64::from(turn), if turn.is_multiple_of(2) { 0.5 } else { 2.0 })
                });
                bench.model.machine.noise.steps = steps.collect();
            }),
        ),
    ];
    for (name, hold_s, each_s, spoil) in rows {
        for arms in
            [&[("stock", 2000.0), ("other", 1500.0)][..], &[("other", 1500.0), ("stock", 2000.0)]]
        {
            let mut bench = make_bench(arms, "p99 < 30ms", hold_s);
            spoil(&mut bench);
            let budget = Duration::from_secs(each_s * arms.len() as u64);
            bench.study.budget = Some(budget);
            let mut lefts = Vec::new();
            let summary = bench.run(&mut |event, _| {
                if let Event::Announced(Announcement::Bracket { bracket, left }) = event {
                    let passed = Duration::from_secs_f64(bracket.passed_s.unwrap_or(f64::MAX));
                    lefts.push(passed + *left);
                }
            });
            let took = summary.unwrap().took;
            let run = bench.read();
            let records = read_capacities(&run);
            assert!(took <= budget, "{name}: {took:?}: {records:?}");
            assert_eq!(records.len(), arms.len(), "{name}: each has an answer");
            let last = lefts.iter().max();
            assert!(last <= Some(&budget), "{name}: what is left is more than there is");
        }
    }
}

fn width((low, high): (f64, f64)) -> f64 {
    (high / low).ln()
}

#[test]
fn of_arms_whose_time_is_over_the_one_with_the_narrowest_claim_ends_first() {
    let mut pairs = 0;
    for budget_s in [300, 340, 380, 420] {
        let mut bench = make_bench(&[("stock", 2000.0), ("other", 1500.0)], "p99 < 30ms", 30);
        bench.study.search.precision = 0.001;
        bench.study.budget = Some(Duration::from_secs(budget_s));
        bench.run(&mut |_, _| {}).unwrap();
        let run = bench.read();
        let first = read_capacities(&run)[0];
        let other_between = run
            .records
            .iter()
            .take_while(|record| !matches!(record, Record::Capacity(_)))
            .filter_map(|record| match record {
                Record::Bracket(known) if known.arm != first.answer.arm => known.between,
                _ => None,
            })
            .last()
            .expect("something is known of the other arm");
        if first.end == CapacityEnd::Budget {
            let narrowest = width((first.answer.low, first.answer.high));
            assert!(
                narrowest <= width(other_between),
                "{budget_s} s: {first:?}, {other_between:?}"
            );
            pairs += 1;
        }
    }
    assert!(pairs >= 2, "{pairs}");
}
