//! Runs that are interrupted, killed or broken: what was measured is kept, nothing is left running,
//! and the run can go on.

use rustix::process::{Pid, Signal, kill_process};
use weir_model::record::{Outcome, Record};
use weir_record::Run;

use crate::place::Place;
use crate::program::{HasAll, Running};

/// 20 blocks of 200 ms, by the same proxies: a test that is late finds those that it has seen.
const STUDY: &str = "\
weir: 1
name: stopped
question: Is anything lost?
proxy:
  kind: nginx
  settings: {worker_processes: 1}
loads:
  - {name: closed, closed: true, connections: 4, duration: 4s}
blocks: {slice: 50ms, at-least: 6, instances: 1}
";

const BLOCKS: usize = 20;

/// Waits until some blocks are recorded, far from the last.
fn await_blocks(place: &Place, run: &mut Running) {
    run.wait_until("two blocks", |_| {
        place.records_with(r#""record":"trial""#) >= 4
    });
}

/// Ends of sessions, in order.
fn outcomes(run: &Run) -> Vec<Outcome> {
    let ends = run.records.iter().filter_map(|record| match record {
        Record::End(end) => Some(end.outcome),
        _ => None,
    });
    ends.collect()
}

/// Goes on with a run of which the first session ended early, to its end.
fn resumes(place: &Place) -> Run {
    let before = Run::read(&place.run_folder()).expect("the records are whole");
    let measured = before.trials().count();
    assert!((4..2 * BLOCKS).contains(&measured), "{measured}");
    // What is measured already is not promised again: all of it would be 4 s and what belongs to it.
    let ended = place.resume().with_code(0);
    let promised = ended.stderr.to_string();
    let promised = promised.split("What remains takes about ").nth(1);
    let seconds = promised.and_then(|text| text.split('s').next()?.parse::<u64>().ok());
    assert!(
        seconds.is_some_and(|seconds| (1..8).contains(&seconds)),
        "{promised:?}"
    );
    place.assert_clean();
    let run = place.records();
    assert!(!run.truncated);
    assert_eq!(run.outcome(), Some(Outcome::Complete));
    // Nothing that was there has changed.
    let kept: Vec<_> = run.trials().take(measured).collect();
    assert_eq!(kept, before.trials().collect::<Vec<_>>());
    let blocks = run.blocks("closed");
    let whole = blocks.values().filter(|trials| trials.len() == 2);
    assert_eq!(whole.count(), BLOCKS);
    let sessions: Vec<_> = run.trials().map(|trial| trial.session).collect();
    assert!(sessions.is_sorted(), "{sessions:?}");
    assert_eq!((sessions[0], sessions[sessions.len() - 1]), (0, 1));
    for trial in run.trials() {
        let tag = &trial.response_time.tag;
        let histogram = run.read_histogram(tag).expect("it can be decoded");
        assert_eq!(
            histogram.map(|h| h.len()),
            Some(trial.response_time.count),
            "{tag}"
        );
    }
    run
}

#[test]
fn an_interrupted_run_goes_on() {
    let place = Place::new();
    let mut run = place.run(STUDY);
    await_blocks(&place, &mut run);
    run.signal(Signal::INT);
    let ended = run.end().with_code(130);
    place.assert_clean();
    let words = "Interrupted. Go on with: weir run --resume ";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    ended.stdout.has_all(&["same-as-baseline"]);
    let interrupted = place.records();
    assert_eq!(interrupted.outcome(), Some(Outcome::Interrupted));
    let run = resumes(&place);
    assert_eq!(outcomes(&run), [Outcome::Interrupted, Outcome::Complete]);
    let numbers: Vec<_> = run
        .blocks("closed")
        .into_keys()
        .map(|(block, _)| block)
        .collect();
    assert_eq!(numbers, (0..BLOCKS as u32).collect::<Vec<_>>());
}

/// A limit on the size of files stands in for a disk that fills up: the kernel's answer is another
/// word, and everything after it is the same.
#[test]
fn a_run_that_cannot_be_written_on_ends_and_goes_on_when_it_can() {
    let place = Place::new();
    place.write(
        "study.yaml",
        &STUDY.replace("{worker", "{access_log: off, worker"),
    );
    // 32 times 512 bytes (POSIX ulimit) hold some blocks of 20.
    let ended = place.run_behind("trap '' XFSZ; ulimit -f 32").with_code(1);
    place.assert_clean();
    ended.stderr.has_all(&[
        "weir: cannot write a run/",
        "File too large",
        "what was recorded is in a run",
    ]);
    let run = resumes(&place);
    assert_eq!(outcomes(&run).last(), Some(&Outcome::Complete));
}

#[test]
fn a_run_that_is_interrupted_before_it_has_measured_anything() {
    let place = Place::new();
    let mut run = place.run(&STUDY.replace("slice: 50ms", "slice: auto"));
    run.wait_until("the pilot", |run| {
        run.stderr().contains("a pilot of all arms")
    });
    run.signal(Signal::INT);
    let ended = run.end().with_code(130);
    place.assert_clean();
    ended.stdout.has_all(&["Nothing was measured"]);
    ended.stderr.has_all(&["weir run --resume "]);
    let run = place.records();
    assert_eq!(run.outcome(), Some(Outcome::Interrupted));
    assert_eq!(run.trials().count(), 0);
}

#[test]
fn a_killed_run_leaves_no_proxy_and_goes_on() {
    let place = Place::new();
    let mut run = place.run(STUDY);
    await_blocks(&place, &mut run);
    let proxies = place.proxies();
    assert_eq!(proxies.len(), 4, "two masters, two workers");
    run.signal(Signal::KILL);
    assert_eq!(run.end().code, None);
    place.await_end_of(&proxies);
    let killed = Run::read(&place.run_folder()).expect("whole lines but perhaps the last");
    assert_eq!(killed.outcome(), None);
    assert_eq!(outcomes(&resumes(&place)), [Outcome::Complete]);
}

#[test]
fn a_worker_that_dies_ends_the_run_and_is_named() {
    let place = Place::new();
    let mut run = place.run(STUDY);
    await_blocks(&place, &mut run);
    let masters = place.masters();
    let worker = place
        .proxies()
        .into_iter()
        .find(|process| !masters.contains(&process.pid));
    let worker = worker.expect("a worker").pid;
    let pid = Pid::from_raw(worker.cast_signed()).expect("not zero");
    kill_process(pid, Signal::KILL).expect("a process of this test's");
    let ended = run.end().with_code(1);
    place.assert_clean();
    assert!(
        ended
            .stderr
            .contains(&format!("(process {worker}) ended during the run")),
        "{}",
        ended.stderr
    );
    let run = place.records();
    assert_eq!(run.outcome(), Some(Outcome::Failed));
    assert!(run.trials().count() >= 4);
}

#[test]
fn while_a_run_is_being_written_nobody_else_may() {
    let place = Place::new();
    let mut run = place.run(STUDY);
    await_blocks(&place, &mut run);
    place
        .resume()
        .refused_in_a_line(&["another weir is writing to a run", "\nhint: "]);
    run.signal(Signal::TERM);
    run.end().with_code(130);
    place.assert_clean();
}
