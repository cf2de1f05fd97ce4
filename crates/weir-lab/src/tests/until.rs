//! Tests of studies that are measured until everything is decided, and of studies with a budget.

use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_analysis::findings::{Basis, Verdict};
use weir_model::record::{LookRecord, Outcome, Record};
use weir_model::study::{Metric, StudyArrivals, Until};
use weir_proposers::Announcement;
use weir_record::Run;
use weir_simulation::Model;

use super::bench::{Bench, load};
use crate::Event;

/// Makes a study of arms that are faster than the baseline by the given factors, on a machine with 3 % of noise.
fn make_bench(arms: &[(&str, f64)], seconds: u64) -> Bench {
    let mut model = Model::default();
    model.machine.noise.white = 0.03;
    for (name, factor) in arms {
        let arm = model.others.slower(1.0 / factor);
        model.arms.insert((*name).to_owned(), arm);
    }
    let names = ["stock", "same"].into_iter();
    let names: Vec<&str> = names.chain(arms.iter().map(|(name, _)| *name)).collect();
    let mut bench = Bench::new(&names, seconds, model);
    bench.study.until = Until::Decided;
    bench
}

fn read_looks(run: &Run) -> Vec<&LookRecord> {
    run.records
        .iter()
        .filter_map(|record| match record {
            Record::Look(look) => Some(&**look),
            _ => None,
        })
        .collect()
}

/// Returns the number of blocks in which an arm has trials.
fn blocks(run: &Run, load: &str, arm: &str) -> usize {
    run.trials_of(load, arm).len()
}

#[test]
fn an_arm_that_is_decided_leaves_and_keeps_what_was_decided() {
    let bench = make_bench(&[("quick", 1.3), ("close", 1.02), ("slow", 0.7)], 48);
    let mut looked = Vec::new();
    let summary = bench.run(&mut |event, _| {
        if let Event::Announced(Announcement::Looked { look, left, at_most }) = event {
            looked.push((look.open.len(), *left, *at_most));
        }
    });
    assert_eq!(summary.unwrap().outcome, Outcome::Complete);
    let run = bench.read();
    let looks = read_looks(&run);
    assert_eq!(looks[0].planned, [12, 16, 22, 30, 40, 48], "of 48 s");
    let decided: Vec<(&str, &str)> =
        looks[0].decided.iter().map(|decision| (&*decision.arm, &*decision.verdict)).collect();
    assert_eq!(decided, [("quick", "better"), ("slow", "worse")]);
    assert_eq!(looks[0].open, ["stock", "same", "close"]);
    for (arm, least, most) in
        [("quick", 12, 12), ("slow", 12, 12), ("close", 16, 48), ("same", 16, 48)]
    {
        let count = blocks(&run, "closed", arm);
        assert!((least..=most).contains(&count), "{arm}: {count}");
    }
    assert_eq!(blocks(&run, "closed", "same"), blocks(&run, "closed", "close"));
    // Whoever has the records alone says what the run has said, and a block without arms that left is whole.
    let load = &weir_analysis::analyze(&run).loads[0];
    assert_eq!(load.blocks, load.blocks_used);
    for look in &looks {
        for decision in &look.decided {
            let comparison = load.comparison(&decision.arm, Metric::Rate).unwrap();
            let verdict = serde_json::to_value(comparison.verdict).unwrap();
            assert_eq!(verdict, *decision.verdict, "{decision:?}");
            let at = comparison.look.unwrap();
            assert_eq!((at.look, at.level), (look.look, look.level), "{decision:?}");
        }
    }
    assert_eq!(load.comparison("quick", Metric::Rate).unwrap().n, 12);
    // What is open takes less when arms have left, and no time is left when nothing is open.
    let (open, left, most) = looked[0];
    assert_eq!(open, 3);
    assert!(left <= most && most < Duration::from_secs(48), "{left:?} {most:?}");
    let last = looked.last().unwrap();
    assert_eq!((last.1, last.2), (Duration::ZERO, Duration::ZERO));
}

#[test]
fn every_look_is_stricter_than_the_end_and_shares_among_the_changes() {
    let bench = make_bench(&[("one", 1.0), ("other", 1.0)], 32);
    bench.findings();
    let run = bench.read();
    let looks = read_looks(&run);
    for look in &looks {
        assert_eq!(look.family, 2);
        assert!(look.confidence > 0.95 && look.confidence < 1.0, "{look:?}");
        assert!(look.level < 0.025 && look.level > 0.0005, "{look:?}");
    }
    let [first, .., last] = looks[..] else { panic!("{looks:?}") };
    assert!(first.at_end.1 > 2.0 * first.level, "{first:?}");
    assert!(!last.is_last || last.at_end.1 == last.level, "{last:?}");
}

#[test]
fn a_run_that_is_stopped_goes_on_with_the_same_looks() {
    for stop_at in [3, 12, 20] {
        let bench = make_bench(&[("close", 1.01)], 24);
        let mut block_count = 0;
        let summary = bench.run(&mut |event, stop| {
            block_count += u32::from(matches!(event, Event::Block { .. }));
            if block_count >= stop_at {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert_eq!(summary.unwrap().outcome, Outcome::Interrupted, "{stop_at}");
        let before = bench.read();
        let early = weir_analysis::analyze(&before);
        if stop_at < 12 {
            let comparison = early.loads[0].comparison("close", Metric::Rate).unwrap();
            assert_eq!(comparison.verdict, Verdict::Inconclusive);
            assert_eq!(comparison.because.basis, Basis::CutShort, "{comparison:?}");
        }
        assert_eq!(bench.resume().unwrap().outcome, Outcome::Complete);
        let run = bench.read();
        let looks = read_looks(&run);
        let planned = &looks[0].planned;
        assert_eq!(*planned, [12, 16, 22, 30, 40], "{stop_at}");
        for (place, look) in looks.iter().enumerate() {
            assert_eq!((look.blocks, look.look), (planned[place], place as u32 + 1), "{stop_at}");
            assert_eq!(look.planned, *planned, "{stop_at}");
        }
        let last = looks.last().unwrap();
        assert!(last.is_done(), "{stop_at}");
        assert_eq!(blocks(&run, "closed", "close") as u32, last.blocks, "{stop_at}");
    }
}

#[test]
fn a_budget_ends_a_run_that_takes_longer_and_its_last_look_spends_what_is_left() {
    for until in [Until::Planned, Until::Decided] {
        let mut bench = make_bench(&[("close", 1.01)], 24);
        bench.study.until = until;
        bench.study.loads.push(load("later", StudyArrivals::Closed, 24));
        let budget = Duration::from_secs(22);
        bench.study.budget = Some(budget);
        let (mut is_told, mut promised) = (false, None);
        let summary = bench
            .run(&mut |event, _| match event {
                Event::Announced(Announcement::TimeIsUp { .. }) => is_told = true,
                Event::Takes { takes, .. } => promised = Some(*takes),
                _ => {}
            })
            .unwrap();
        assert_eq!(promised, Some(budget), "{until:?}: no more than it may take");
        assert!(is_told, "{until:?}");
        assert!(summary.took <= Duration::from_secs(22), "{summary:?}");
        assert!(summary.took >= Duration::from_secs(16), "{summary:?}");
        assert_eq!(summary.outcome, Outcome::Complete);
        let run = bench.read();
        assert_eq!(blocks(&run, "later", "close"), 0, "{until:?}");
        let ends = run.records.iter().filter_map(|record| match record {
            Record::LoadEnd(end) => Some((&*end.load, end.blocks)),
            _ => None,
        });
        let measured = blocks(&run, "closed", "close") as u32;
        assert_eq!(ends.collect::<Vec<_>>(), [("closed", measured)], "{until:?}");
        if until == Until::Decided {
            let looks = read_looks(&run);
            let last = looks.last().unwrap();
            assert!(last.is_last && last.blocks == measured && measured < 40, "{last:?}");
            assert!(last.level > 0.03, "spends what is left: {last:?}");
        }
    }
}

#[test]
fn what_a_load_leaves_of_the_budget_goes_to_the_loads_after_it() {
    let mut bench = make_bench(&[("quick", 1.3)], 24);
    bench.study.loads.push(load("later", StudyArrivals::Closed, 24));
    bench.study.budget = Some(Duration::from_secs(60));
    bench.findings();
    let run = bench.read();
    let looks = read_looks(&run);
    let [closed, later] = ["closed", "later"].map(|name| {
        let of_load = looks.iter().find(|look| look.load == name);
        of_load.and_then(|look| look.planned.last()).copied().unwrap()
    });
    assert!((40..45).contains(&closed), "{closed}");
    assert!(later > 60, "{later}");
}
