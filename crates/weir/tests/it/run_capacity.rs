//! `weir run` with studies that ask how much a server carries: servers whose capacity is known, that break, and a load
//! generator that is too weak; and searches that are interrupted and killed.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use weir_model::record::{CapacityEnd, CapacityRecord, CeilingOf, Outcome, Record, TrialRecord};
use weir_record::Run;

use crate::origin;
use crate::place::{self, Place, outcomes};
use crate::program::{Running, within};

/// A server that weir does not start, asked roughly: what a search needs for a p90 is little.
fn study(address: &str, limits: &str) -> String {
    let search = format!("{{capacity: '{limits}', precision: 15%, hold: 2s}}");
    place::study(
        &format!("{{kind: external, address: \"{address}\"}}"),
        "- {name: closed, closed: true, connections: 64, duration: 1s}",
        &format!("objective: {search}\n"),
    )
}

fn found(run: &Run) -> Vec<&CapacityRecord> {
    let records = run.records.iter().filter_map(|record| match record {
        Record::Capacity(found) => Some(found),
        _ => None,
    });
    records.collect()
}

fn await_brackets(place: &Place, run: &mut Running, count: usize) {
    let bracket = r#""record":"bracket""#;
    run.wait_until("some steps", |_| place.records_with(bracket) >= count);
}

#[test]
fn a_search_that_is_interrupted_and_killed_finds_what_a_server_carries() {
    let place = Place::new();
    // One request after the other, half a millisecond each.
    let (server, at) = origin::start("--delay 500us --concurrency 1");
    let mut run = place.run(&study(&at, "p90 < 50ms"));
    await_brackets(&place, &mut run, 3);
    run.signal(Signal::INT);
    let ended = run.end().with_code(130);
    ended.says(&["after a closed loop", "Interrupted. Go on with"]);
    let first = trials(&place.records());
    assert!(first.len() >= 3, "the closed loop is one");

    let mut run = Running::start(&mut place.weir(&["run", "--resume", "a run"]));
    await_brackets(&place, &mut run, 6);
    run.signal(Signal::KILL);
    assert_eq!(run.end().code, None);
    let second = trials(&Run::read(&place.run_folder()).expect("whole lines but perhaps the last"));

    place.resume().with_code(0).says(&["requests/s"]);
    let run = place.records();
    assert_eq!(outcomes(&run), [Outcome::Interrupted, Outcome::Complete]);
    let all = trials(&run);
    assert_eq!(all[..first.len()], first[..]);
    assert_eq!(all[..second.len()], second[..]);
    // What was measured is not measured again: the closed loop, and the first rate after it.
    let closed = all.iter().filter(|trial| trial.rate_intended.is_none());
    assert_eq!(closed.count(), 15);
    let rates: Vec<f64> = all.iter().filter_map(|trial| trial.rate_intended).collect();
    assert_eq!(rates.iter().filter(|rate| **rate == rates[0]).count(), 1);
    let [found] = found(&run)[..] else {
        panic!("one answer")
    };
    assert!(
        matches!(found.end, CapacityEnd::Found | CapacityEnd::Budget),
        "{found:?}"
    );
    // A queue of 50 ms is 100 requests: nearly all of the 2,000/s. What else runs here may take some.
    within(found.high, 1000.0..2200.0);
    within(found.saturated, 1000.0..2100.0);
    server.signal(Signal::TERM);
    server.end().with_code(0);
}

fn trials(run: &Run) -> Vec<TrialRecord> {
    run.trials().cloned().collect()
}

#[test]
fn a_server_that_dies_is_said_to_have_broken() {
    let place = Place::new();
    let (server, at) = origin::start("--delay 500us --concurrency 1");
    let mut run = place.run(&study(&at, "p90 < 50ms"));
    await_brackets(&place, &mut run, 3);
    server.signal(Signal::KILL);
    server.end();
    run.end().with_code(0);
    let run = place.records();
    let [found] = found(&run)[..] else {
        panic!("one answer")
    };
    let is_told = matches!(found.end, CapacityEnd::Broken(_) | CapacityEnd::Never);
    assert!(is_told && found.verified == 0.0, "{found:?}");
}

#[test]
fn a_generator_that_is_held_up_is_not_taken_for_the_server() {
    let place = Place::new();
    let (server, at) = origin::start("--size 100");
    let mut run = place.run(&study(&at, "p90 < 30ms"));
    run.wait_until("the begin", |_| place.records_with("session") > 0);
    let stopped = Duration::from_millis(120);
    // A stopped process sends nothing, whoever stopped it.
    while run.is_alive() && place.records_with(r#""record":"capacity""#) == 0 {
        run.signal(Signal::STOP);
        thread::sleep(stopped);
        run.signal(Signal::CONT);
        thread::sleep(stopped / 2);
    }
    run.end().with_code(0);
    let run = place.records();
    let [found] = found(&run)[..] else {
        panic!("one answer")
    };
    let ceiling = found.ceiling.map(|ceiling| ceiling.of);
    assert_eq!(ceiling, Some(CeilingOf::Generator), "{found:?}");
    server.signal(Signal::TERM);
    server.end().with_code(0);
}
