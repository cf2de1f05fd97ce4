//! Tests of loads that differ only in their rate: they share trials, but each has its own results.

use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_model::record::{Outcome, Phase, Record, Validity};
use weir_model::study::{MatrixCell, StudyArrivals};
use weir_simulation::{Model, NOISES};

use super::bench::{Bench, load};
use crate::Event;

const RATES: [f64; 3] = [100.0, 400.0, 800.0];

/// Makes a matrix of three rates by two numbers of connections, 4.8 s each: 8 blocks with slices of 100 ms.
fn matrix() -> Bench {
    let mut bench = Bench::new(&["stock", "same", "other"], 1, Model::default());
    bench.study.blocks.at_least = 8;
    bench.study.loads.clear();
    for connections in [4, 8] {
        for rate in RATES {
            let name = format!("c{connections}-r{rate}");
            let mut cell = load(&name, StudyArrivals::Constant(rate), 1);
            cell.duration = Duration::from_millis(4800);
            cell.connections = connections;
            cell.cell = Some(MatrixCell { matrix: String::new(), connections, rate: Some(rate) });
            bench.study.loads.push(cell);
        }
    }
    bench
}

#[test]
fn each_load_of_a_shared_trial_is_judged_and_reported_as_its_own() {
    let bench = matrix();
    let findings = bench.findings();
    let run = bench.read();
    for (spec, found) in bench.study.loads.iter().zip(&findings.loads) {
        let (name, rate) = (&*spec.name, spec.rate().unwrap());
        assert_eq!((&*found.load, found.rate_intended), (name, Some(rate)));
        let blocks = (found.blocks, found.blocks_used, found.validity);
        assert_eq!(blocks, (8, 8, Validity::Valid), "{name}: {:?}", found.reasons);
        for trial in run.trials().filter(|trial| trial.load == name) {
            assert_eq!(trial.rate_intended, Some(rate), "{name}");
            let due: u64 = trial.slices.iter().map(|slice| slice.due).sum();
            // Two slices, 80 ms of each measured.
            assert!((due as f64 - rate * 0.16).abs() <= 2.0, "{name}: {due}");
            assert!(!run.histogram(&trial.response_time).is_empty(), "{name}");
        }
        // Eight instances, each with a block of every load of the same connections.
        let parts: Vec<_> = run.parts(name).collect();
        assert_eq!(parts.len(), 8, "{name}");
        for (number, part) in parts.iter().enumerate() {
            assert_eq!((part.first_block, part.blocks), (number as u32, 1));
            let with: Vec<&str> = part.with.iter().map(|with| &*with.load).collect();
            let siblings: Vec<String> = RATES
                .iter()
                .map(|rate| format!("c{}-r{rate}", spec.connections))
                .filter(|sibling| sibling != name)
                .collect();
            assert_eq!(with.len(), 2);
            assert!(siblings.iter().all(|sibling| with.contains(&&**sibling)), "{with:?}");
        }
    }
    // The loads of a round come in an order of its own.
    let order: Vec<&str> = run.trials().map(|trial| &*trial.load).collect();
    let rounds: Vec<&[&str]> = order.chunks(9).take(8).collect();
    assert!(rounds.windows(2).any(|pair| pair[0] != pair[1]), "{rounds:?}");
    let trials = run.records.iter().filter(|record| matches!(record, Record::Proxy(_)));
    assert_eq!(trials.count(), 3 * (8 + 7), "instances are renewed together");
}

#[test]
fn each_load_of_a_shared_trial_keeps_its_own_times_without_hold_ups() {
    let mut bench = matrix();
    let mut rows = NOISES.iter();
    let row = rows.find(|row| row.name == "open loop, hold-ups, meters");
    bench.model.machine.hold_ups = row.unwrap().model(1).machine.hold_ups;
    bench.findings();
    let run = bench.read();
    for rate in RATES {
        let split =
            run.trials().filter(|trial| trial.rate_intended == Some(rate)).filter_map(|trial| {
                let due: u64 = trial
                    .slices
                    .iter()
                    .filter(|slice| !slice.stood_still)
                    .map(|slice| slice.due)
                    .sum();
                let histogram = run.undisturbed(trial).filter(|_| due > 0)?;
                Some((histogram.iter().map(|(_, count)| count).sum::<u64>(), due))
            });
        let split: Vec<_> = split.collect();
        assert!(!split.is_empty(), "{rate}: none stood still");
        assert!(split.iter().all(|(kept, due)| kept == due), "{split:?}");
    }
}

#[test]
fn loads_that_share_a_trial_have_one_pilot() {
    let mut bench = matrix();
    bench.study.blocks.slice = None;
    bench.findings();
    let run = bench.read();
    let pilots = run.records.iter().filter_map(|record| match record {
        Record::Trial(trial) if trial.phase == Phase::Pilot => {
            Some((&*trial.load, trial.rate_intended))
        }
        _ => None,
    });
    let mut pilots: Vec<_> = pilots.collect();
    pilots.dedup();
    assert_eq!(pilots, [("c4-r100", Some(800.0)), ("c8-r100", Some(800.0))], "at the highest rate");
    for load in &bench.study.loads {
        assert_eq!(run.pilot(&load.name).unwrap().residues.len(), 3, "{}", load.name);
    }
}

#[test]
fn a_shared_trial_that_is_stopped_goes_on_to_the_same_end() {
    for stop_at in [0, 1, 4, 13, 23, 24, 31] {
        let bench = matrix();
        let mut blocks = 0;
        let stopped = bench.run(&mut |event, stop| {
            blocks += u32::from(matches!(event, Event::Block { .. }));
            stop.fetch_or(blocks > stop_at, Ordering::Relaxed);
        });
        assert_eq!(stopped.unwrap().outcome, Outcome::Interrupted, "{stop_at}");
        assert_eq!(bench.resume().unwrap().outcome, Outcome::Complete, "{stop_at}");
        let run = bench.read();
        for load in &bench.study.loads {
            let blocks = run.blocks(&load.name);
            let whole_blocks = blocks.values().filter(|trials| trials.len() == 3).count();
            assert_eq!(whole_blocks, 8, "{stop_at}: {}", load.name);
            let mut numbers: Vec<u32> = blocks.keys().map(|(block, _)| *block).collect();
            numbers.dedup();
            assert_eq!(numbers.len(), blocks.len(), "{stop_at}: no number is used twice");
        }
        let findings = weir_analysis::analyze(&run);
        assert!(findings.loads.iter().all(|load| load.validity == Validity::Valid), "{stop_at}");
    }
}

#[test]
fn loads_that_differ_in_more_than_their_rate_share_nothing() {
    type Change = fn(&mut Bench);
    #[rustfmt::skip]
    let cases: [(&str, Change, usize); 4] = [
        ("as it is", |_| {}, 2),
        ("of no matrix",
         |bench| { bench.study.loads.iter_mut().for_each(|load| load.cell = None); }, 6),
        ("one of another timeout",
         |bench| bench.study.loads[1].main.timeout = Duration::from_secs(1), 3),
        ("one of another matrix",
         |bench| bench.study.loads[1].cell.as_mut().unwrap().matrix = "other".to_owned(), 3),
    ];
    for (what, change, groups) in cases {
        let mut bench = matrix();
        change(&mut bench);
        assert_eq!(weir_proposers::budget::group_loads(&bench.study).len(), groups, "{what}");
    }
}
