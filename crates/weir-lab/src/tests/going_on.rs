//! Tests of runs that are interrupted and resumed: nothing is lost, and nothing is measured twice.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_model::load::RequestSpec;
use weir_model::record::{Outcome, Phase, Record, TrialRecord};
use weir_model::request::WeightedRequest;
use weir_model::study::StudyArrivals;
use weir_proposers::Announcement;
use weir_simulation::Model;

use super::bench::{Bench, load, reports};
use crate::Event;

/// Makes a study of a closed loop, then an open one at a share of its rate, with pilots.
fn make_bench() -> Bench {
    let mut bench = Bench::new(&["stock", "same", "other"], 6, Model::default());
    bench.study.blocks.slice = None;
    let share = StudyArrivals::ShareOfSlowest(0.5);
    bench.study.loads.push(load("open", share, 6));
    bench
}

/// Returns the number of blocks in which every arm has a trial, and the numbers of all blocks.
fn blocks(bench: &Bench, load: &str) -> (usize, Vec<u32>) {
    let run = bench.read();
    let blocks = run.blocks(load);
    let whole_blocks = blocks.values().filter(|trials| trials.len() == 3).count();
    (whole_blocks, blocks.keys().map(|(block, _)| *block).collect())
}

#[test]
fn a_run_that_is_stopped_anywhere_goes_on_to_the_same_end() {
    let complete = make_bench();
    complete.findings();
    let wanted = ["closed", "open"].map(|load| blocks(&complete, load).0);
    assert!(wanted.iter().all(|blocks| *blocks >= 10), "{wanted:?}");
    for stop_at in [0, 1, 2, 9, 14] {
        let bench = make_bench();
        let mut events = 0;
        let summary = bench.run(&mut |event, stop| {
            let counts = match event {
                Event::Announced(Announcement::PilotBegun { .. }) => stop_at == 0,
                Event::Block { .. } => true,
                _ => false,
            };
            events += u32::from(counts);
            if counts && events > stop_at {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert_eq!(summary.unwrap().outcome, Outcome::Interrupted, "{stop_at}");
        let before: Vec<TrialRecord> = bench.read().trials().cloned().collect();
        assert_eq!(bench.resume().unwrap().outcome, Outcome::Complete, "{stop_at}");
        let after: Vec<TrialRecord> = bench.read().trials().cloned().collect();
        assert_eq!(after[..before.len()], before, "{stop_at}: records stay");
        for (load, wanted) in ["closed", "open"].into_iter().zip(wanted) {
            let (whole, mut numbers) = blocks(&bench, load);
            assert_eq!(whole, wanted, "{stop_at}: {load}");
            numbers.dedup();
            assert!(numbers.len() >= wanted, "{stop_at}: no number is used twice");
        }
        // What is finished is not run again.
        assert!(bench.resume().is_err(), "{stop_at}");
    }
}

#[test]
fn pilots_stand_in_the_records_by_their_phase_and_are_no_figures() {
    let bench = make_bench();
    let findings = bench.findings();
    let run = bench.read();
    let mut arms: Vec<&String> = run
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Trial(trial) if trial.phase == Phase::Pilot => Some(&trial.arm),
            _ => None,
        })
        .collect();
    // Two loads that are not alike, and so short that their pilots have a block each.
    assert_eq!(arms.len(), 2 * 3);
    arms.sort_unstable();
    arms.dedup();
    assert_eq!(arms, ["other", "same", "stock"], "all go through the same");
    assert!(run.trials().all(|trial| trial.phase == Phase::Measurement));
    let counted: u32 = findings.loads.iter().map(|load| load.blocks).sum();
    let whole_blocks = ["closed", "open"].map(|load| blocks(&bench, load).0 as u32);
    assert_eq!(counted, whole_blocks.iter().sum::<u32>());
}

#[test]
fn the_rate_of_an_open_loop_follows_from_the_closed_one_and_is_kept() {
    let bench = make_bench();
    bench.findings();
    let run = bench.read();
    let pilot = run.pilot("open").unwrap();
    let rate = pilot.rate.unwrap();
    // One worker of half a millisecond carries about 2,000/s.
    assert!((900.0..1100.0).contains(&rate), "{rate}");
    let mut open = run.trials().filter(|trial| trial.load == "open");
    assert!(open.all(|trial| trial.rate_intended == Some(rate)));
    let mut closed = run.trials().filter(|trial| trial.load == "closed");
    assert!(closed.all(|trial| trial.rate_intended.is_none()));
    let pilot = run.pilot("closed").unwrap();
    assert_eq!(pilot.slice_ns, Duration::from_millis(50).as_nanos() as u64);
    assert_eq!(pilot.residues.len(), 3);
    assert!(pilot.residues.iter().all(|residue| residue.ns > 1_000_000), "{pilot:?}");
}

#[test]
fn a_simulated_run_has_a_report_in_every_format() {
    let bench = make_bench();
    let findings = bench.findings();
    let run = bench.read();
    for text in reports(&run, &findings) {
        let rate = run.pilot("open").and_then(|pilot| pilot.rate).unwrap();
        let rate = format!("{}", rate as u64);
        // Thousands may be told apart.
        let bare = text.replace(',', "");
        for said in ["closed", "open", "other", "equivalent", &rate] {
            assert!(bare.contains(said), "{said}:\n{text}");
        }
    }
}

#[test]
fn a_run_whose_files_have_changed_does_not_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
    let name = file.path().display().to_string();
    let mut bench = Bench::new(&["stock", "other"], 6, Model::default());
    let spec = RequestSpec::get(&format!("/{{{{line:{name}}}}}"));
    bench.study.loads[0].main.requests = vec![WeightedRequest::single(spec)];
    bench.study.proxy.executable = Some(file.path().to_owned());
    std::fs::write(file.path(), "a\nb\n").unwrap();
    let stopped = bench.run(&mut |event, stop| {
        let is_block = matches!(event, Event::Block { .. });
        stop.fetch_or(is_block, Ordering::Relaxed);
    });
    assert_eq!(stopped.unwrap().outcome, Outcome::Interrupted);
    std::fs::write(file.path(), "a\nc\n").unwrap();
    let refused = bench.resume().unwrap_err().to_string();
    assert!(refused.contains(&format!("{name} has changed")), "{refused}");
    std::fs::write(file.path(), "a\nb\n").unwrap();
    // It is the proxy's program too, which others could have written now.
    std::fs::set_permissions(file.path(), Permissions::from_mode(0o777)).unwrap();
    let refused = bench.resume().unwrap_err().to_string();
    let why = "others could have written a program that it starts: ";
    assert!(refused.contains(&format!("{why}{name} ")), "{refused}");
    std::fs::set_permissions(file.path(), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(bench.resume().unwrap().outcome, Outcome::Complete);
}
