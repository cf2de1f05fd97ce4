//! Tests of capacity searches on arms whose capacity is known by construction.

use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_model::limit::Limit;
use weir_model::load::Spacing;
use weir_model::record::{
    CapacityEnd, CapacityRecord, CeilingOf, Outcome, Record, SearchStage, TrialRecord,
};
use weir_model::study::DelaySpec;
use weir_proposers::{Announcement, CLOSED};
use weir_record::Run;
use weir_simulation::{ArmModel, Distribution, Errors, Fault, HoldUps, Model, TimeWait};

use super::bench::Bench;
use crate::Event;

/// Returns the rate that an M/M/1 server with so many services per second carries with a p99 of 30 ms.
pub(super) fn capacity(services: f64) -> f64 {
    services - 100_f64.ln() / 0.03
}

pub(super) fn exponential(services: f64) -> ArmModel {
    ArmModel {
        service: Distribution::Exponential { mean_ns: 1e9 / services },
        ..ArmModel::default()
    }
}

/// Makes an arm with `room` ports, of which each request takes one for a minute.
pub(super) fn forgetful(room: f64) -> ArmModel {
    ArmModel {
        time_wait: Some(TimeWait { per_request: 1.0, lasts_s: 60.0, room, factor: 8.0 }),
        ..exponential(2000.0)
    }
}

/// Makes a capacity study of arms with one worker each that serve so many requests per second; a rate has to hold for
/// `hold_s` seconds.
pub(super) fn make_bench(arms: &[(&str, f64)], limits: &str, hold_s: u64) -> Bench {
    let names: Vec<&str> = arms.iter().map(|(name, _)| *name).collect();
    let mut model = Model::default();
    for (name, services) in arms {
        model.arms.insert((*name).to_owned(), exponential(*services));
    }
    let mut bench = Bench::new(&names, 1, model);
    bench.study.capacity = Limit::parse_all(limits).unwrap();
    bench.study.search.hold = Duration::from_secs(hold_s);
    // As many as are ever in the queue: an open loop has no limit of its own.
    bench.study.loads[0].main.connections = 64;
    bench.study.loads[0].main.spacing = Spacing::Poisson { seed: 1 };
    bench
}

/// Returns true if a rate has held, and nothing ended the search early.
pub(super) fn has_claim(found: &CapacityRecord) -> bool {
    use CapacityEnd::{Budget, Found, Settled};
    matches!(found.end, Found | Settled | Budget) && found.answer.verified > 0.0
}

pub(super) fn read_capacities(run: &Run) -> Vec<&CapacityRecord> {
    run.records
        .iter()
        .filter_map(|record| match record {
            Record::Capacity(found) => Some(found),
            _ => None,
        })
        .collect()
}

#[test]
fn arms_are_searched_side_by_side_and_take_little_more_than_their_trials() {
    let arms = [("stock", 2000.0), ("other", 1500.0)];
    let bench = make_bench(&arms, "p99 < 30ms", 20);
    let mut promised = Duration::ZERO;
    let summary = bench.run(&mut |event, _| {
        if let Event::Takes { takes, .. } = event {
            promised = *takes;
        }
    });
    let took = summary.unwrap().took.as_secs_f64();
    let run = bench.read();
    let records = read_capacities(&run);
    assert_eq!(records.len(), 2);
    for (arm, services) in arms {
        let record = records.iter().find(|record| record.answer.arm == arm).unwrap();
        assert!(has_claim(record), "{record:?}");
        let truth = capacity(services);
        assert!(record.answer.low <= truth && truth <= record.answer.high, "{truth}: {record:?}");
        assert!(record.answer.high / record.answer.low < 1.25, "{record:?}");
        assert!(record.answer.fresh.is_none() && !record.answer.is_bracket, "{record:?}");
    }
    let trials: f64 = records.iter().map(|records| records.answer.seconds.1).sum();
    assert!(took < 1.15 * trials + 10.0, "{took} s for {trials} s of trials");
    let off = promised.as_secs_f64() / took;
    assert!((0.5..2.0).contains(&off), "{promised:?} promised, {took} s taken");
    // Dwells of both arms take turns, so that both meet the same minutes.
    let dwells = run.records.iter().filter_map(|record| match record {
        Record::Bracket(known) if known.stage == SearchStage::Dwell => Some(&*known.arm),
        _ => None,
    });
    let mut turns: Vec<&str> = dwells.collect();
    let all = turns.len();
    turns.dedup();
    assert!(all >= 12 && 2 * turns.len() > all, "{turns:?}");
}

/// Returns the number of an arm's trials at its first rate.
fn count_first(trials: &[&TrialRecord], arm: &str) -> usize {
    let rates: Vec<f64> = trials
        .iter()
        .filter(|trial| trial.arm == arm)
        .filter_map(|trial| trial.rate_intended)
        .collect();
    rates.iter().take_while(|rate| **rate == rates[0]).count()
}

#[test]
fn a_search_that_is_stopped_anywhere_loses_no_trial() {
    let arms = [("stock", 2000.0), ("other", 1500.0)];
    for stop_at in [1, 2, 5, 9, 12] {
        let bench = make_bench(&arms, "p99 < 30ms", 5);
        let mut brackets = 0;
        let summary = bench.run(&mut |event, stop| {
            brackets += u32::from(matches!(event, Event::Announced(Announcement::Bracket { .. })));
            if brackets > stop_at {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert_eq!(summary.unwrap().outcome, Outcome::Interrupted, "{stop_at}");
        let before: Vec<TrialRecord> = bench.read().trials().cloned().collect();
        assert_eq!(bench.resume().unwrap().outcome, Outcome::Complete);
        let run = bench.read();
        let after: Vec<&TrialRecord> = run.trials().collect();
        assert!(before.iter().eq(after[..before.len()].iter().copied()));
        // What is known already is not asked again.
        let closed = after.iter().filter(|trial| trial.rate_intended.is_none());
        assert_eq!(closed.count(), 2 * CLOSED.1 as usize, "{stop_at}");
        // A trial that was stopped is made again, whole.
        assert_eq!(
            (count_first(&after, "stock"), count_first(&after, "other")),
            (5, 5),
            "{stop_at}"
        );
        assert_eq!(read_capacities(&run).len(), 2, "{stop_at}");
        assert!(bench.resume().is_err(), "{stop_at}: it is complete");
    }
}

#[test]
fn why_nothing_is_carried_is_said() {
    let slow = ArmModel { service: Distribution::Fixed(50e6), ..ArmModel::default() };
    let failing = ArmModel { errors: Errors { share: 0.01, run: 1.0 }, ..exponential(2000.0) };
    for (arm, limits, floor) in
        [(slow, "p99 < 30ms", 0.99..=1.0), (failing, "p99 < 30ms, errors < 0.1%", 0.001..=0.03)]
    {
        let mut bench = make_bench(&[("stock", 2000.0)], limits, 5);
        bench.model.arms.insert("stock".to_owned(), arm);
        bench.run(&mut |_, _| {}).unwrap();
        let run = bench.read();
        let record = read_capacities(&run)[0];
        assert_eq!(record.end, CapacityEnd::Never, "{record:?}");
        assert!(floor.contains(&record.answer.floor), "{record:?}");
        assert!(record.answer.seconds.1 < 120.0, "{record:?}");
    }
}

#[test]
fn connections_that_let_no_more_through_are_told_or_raised() {
    let connections = Some(CeilingOf::Connections);
    for (workers, most, asked_over, ceiling, carries) in [
        // 10 carry 2,500/s, whoever could carry more.
        (20, None, 10, connections, 2300.0..=2501.0),
        (20, Some(39), 20, connections, 4600.0..=5001.0),
        // These rates are the arm's own.
        (20, Some(160), 40, None, 4600.0..=5050.0),
        (5, None, 10, None, 1160.0..=1265.0),
        // Twice as many show that these were enough.
        (8, Some(160), 20, None, 1880.0..=2020.0),
    ] {
        let mut bench = make_bench(&[("stock", 2000.0)], "p99 < 60ms", 5);
        // So many at a time, each for 4 ms.
        let arm = ArmModel { service: Distribution::Fixed(4e6), workers, ..ArmModel::default() };
        bench.model.arms.insert("stock".to_owned(), arm);
        bench.study.loads[0].main.connections = 10;
        bench.study.loads[0].main.spacing = Spacing::Even;
        bench.study.search.most_connections = most;
        bench.run(&mut |_, _| {}).unwrap();
        let run = bench.read();
        let record = read_capacities(&run)[0];
        let row = format!("{workers} workers, up to {most:?}: {record:?}");
        assert_eq!(record.answer.connections, asked_over, "{row}");
        assert_eq!(record.answer.ceiling.map(|ceiling| ceiling.of), ceiling, "{row}");
        assert!(record.answer.verified > 0.0 && carries.contains(&record.answer.low), "{row}");
    }
}

#[test]
fn what_the_origin_is_told_to_carry_is_not_taken_for_the_arms() {
    for (at_once, ceiling) in [(1, Some(CeilingOf::Origin)), (2, None)] {
        // 500/s for each that waits at the same time.
        let mut bench = make_bench(&[("stock", 500.0)], "p99 < 100ms", 5);
        bench.study.origin.delay = DelaySpec::Fixed(Duration::from_millis(2));
        bench.study.origin.concurrency = Some(at_once);
        bench.run(&mut |_, _| {}).unwrap();
        let run = bench.read();
        let record = read_capacities(&run)[0];
        assert_eq!(record.answer.ceiling.map(|it| it.of), ceiling, "{record:?}");
    }
}

#[test]
fn a_generator_that_is_too_weak_is_never_taken_for_the_arm() {
    type Weak = fn(&mut Model);
    let rows: [(&str, Weak); 2] = [
        ("late", |model| {
            model.generator.lag = Distribution::Fixed(40e6);
        }),
        ("out of CPU time", |model| {
            model.generator.cpu_ns = 1e6;
        }),
    ];
    for (name, weaken) in rows {
        let mut bench = make_bench(&[("stock", 5000.0)], "p99 < 30ms", 5);
        // So many that those of late requests are not what they wait for.
        bench.study.loads[0].main.connections = 640;
        weaken(&mut bench.model);
        bench.run(&mut |_, _| {}).unwrap();
        let run = bench.read();
        let record = read_capacities(&run)[0];
        let ceiling = record.answer.ceiling.map(|ceiling| ceiling.of);
        assert_eq!(ceiling, Some(CeilingOf::Generator), "{name}: {record:?}");
    }
}

#[test]
fn an_arm_that_does_not_come_back_is_not_asked_again_and_again() {
    let mut bench = make_bench(&[("stock", 2000.0)], "p99 < 30ms", 5);
    let arm = bench.model.arms.get_mut("stock").unwrap();
    arm.faults = vec![Fault::Refuse(12.0..1e9)];
    let took = bench.run(&mut |_, _| {}).unwrap().took;
    let run = bench.read();
    let record = read_capacities(&run)[0];
    assert!(matches!(record.end, CapacityEnd::Broken(_)), "{record:?}");
    assert!(took < Duration::from_secs(60), "{took:?}: {record:?}");
}

#[test]
fn what_does_not_last_is_told_from_what_does() {
    let mut bench = make_bench(&[("stock", 2000.0)], "p99 < 30ms", 65);
    let stock = forgetful(60_000.0);
    bench.model.arms.insert("stock".to_owned(), stock);
    let took = bench.run(&mut |_, _| {}).unwrap().took;
    let run = bench.read();
    let record = read_capacities(&run)[0];
    // 60,000 ports for a minute each.
    let lasts = 1000.0;
    assert!((lasts * 0.8..lasts * 1.1).contains(&record.answer.low), "{record:?}");
    assert!(record.answer.is_bracket && record.answer.high > lasts, "{record:?}");
    let fresh = record.answer.fresh.unwrap_or_else(|| panic!("{record:?}"));
    assert!((1300.0..2000.0).contains(&fresh.0), "{record:?}");
    assert!(took < Duration::from_secs(480), "{took:?}");
}

#[test]
fn a_server_that_stands_still_for_some_seconds_has_not_broken() {
    // Longer than the first rest, and than the time for which a rate is held.
    let mut bench = make_bench(&[("stock", 500.0)], "p99 < 50ms", 5);
    let arm = bench.model.arms.get_mut("stock").unwrap();
    arm.service = Distribution::Fixed(2e6);
    arm.faults = vec![Fault::Stall(25.0..38.0)];
    bench.study.loads[0].main.spacing = Spacing::Even;
    bench.run(&mut |_, _| {}).unwrap();
    let run = bench.read();
    let record = read_capacities(&run)[0];
    assert!(record.answer.verified > 0.0 && record.answer.rest_s > 0.0, "{record:?}");
    // A backlog of 1 % needs the 5 s of a hold to reach the limit.
    assert!(record.answer.low <= 506.0 && record.answer.high >= 495.0, "{record:?}");
}

#[test]
fn a_machine_that_stands_still_is_not_taken_for_the_arm() {
    // 60 to 90 ms, once in three seconds: more than a hundredth of the time, so no rate keeps a p99 below 30 ms.
    let (per_s, length_ns) = (0.33, (60e6, 90e6));
    for (meter_ns, is_known) in [(2.5e6, true), (0.0, false)] {
        let mut bench = make_bench(&[("stock", 2000.0)], "p99 < 30ms", 20);
        bench.model.machine.hold_ups = Some(HoldUps { per_s, length_ns, meter_ns });
        bench.run(&mut |_, _| {}).unwrap();
        let run = bench.read();
        let record = read_capacities(&run)[0];
        let truth = capacity(2000.0);
        let covers = record.answer.low > 0.8 * truth
            && record.answer.low <= truth
            && truth <= record.answer.high;
        assert_eq!(covers, is_known, "{record:?}");
    }
}

#[test]
fn what_an_arm_carries_whose_speed_changes_is_found() {
    let slower_by_turns: Vec<(f64, f64)> = (1..200)
        .map(|turn| (7.0 * f64::from(turn), if turn % 2 == 0 { 0.25 } else { 4.0 }))
        .collect();
    // Of M/M/1 that is four times slower for half of the time twice as many may be bad then.
    for (name, service, steps, truth) in [
        (
            "by turns",
            Distribution::Exponential { mean_ns: 500e3 },
            slower_by_turns,
            500.0 - 50_f64.ln() / 0.03,
        ),
        ("slower from then on", Distribution::Fixed(500e3), vec![(30.0, 1.0 / 0.85)], 1_700.0),
    ] {
        let mut bench = make_bench(&[("stock", 2000.0)], "p99 < 30ms", 65);
        if matches!(service, Distribution::Fixed(_)) {
            bench.study.loads[0].main.spacing = Spacing::Even;
        }
        bench.model.arms.insert("stock".to_owned(), ArmModel { service, ..ArmModel::default() });
        bench.model.machine.noise.steps = steps;
        bench.run(&mut |_, _| {}).unwrap();
        let run = bench.read();
        let record = read_capacities(&run)[0];
        assert!(record.answer.verified > 0.0, "{name}: {record:?}");
        assert!(
            record.answer.low <= truth && truth <= record.answer.high,
            "{name}, {truth}: {record:?}"
        );
        assert!(record.answer.high < 1.4 * record.answer.low, "{name}: {record:?}");
    }
}
