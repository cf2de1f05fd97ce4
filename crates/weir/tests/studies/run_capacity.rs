//! Tests of `weir run` with studies of capacity: servers whose capacity is known, that break, and a load generator that
//! is too weak; and searches that are interrupted and killed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::Signal;
use weir_model::record::{CapacityEnd, CapacityRecord, CeilingOf, Outcome, Record, TrialRecord};
use weir_record::Run;
use weir_testkit::origin;
use weir_testkit::program::{Running, behind, in_three_tries, within};
use weir_testkit::sandbox::{self, Sandbox, outcomes};

/// Returns a study of a server that weir does not start, with low precision: a search needs little for a p90.
fn study(address: &str, limits: &str) -> String {
    let search = format!("{{capacity: '{limits}', precision: 15%, hold: 2s}}");
    sandbox::study(
        &format!("{{kind: external, address: \"{address}\"}}"),
        "- {name: closed, closed: true, connections: 64, duration: 1s}",
        &format!("objective: {search}\n"),
    )
}

fn read_answers(run: &Run) -> Vec<&CapacityRecord> {
    run.records
        .iter()
        .filter_map(|record| match record {
            Record::Capacity(answer) => Some(answer),
            _ => None,
        })
        .collect()
}

fn await_brackets(sandbox: &Sandbox, run: &mut Running, count: usize) {
    let bracket = r#""record":"bracket""#;
    run.wait_until("some steps", |_| sandbox.records_with(bracket) >= count);
}

#[test]
fn a_search_that_is_interrupted_and_killed_finds_what_a_server_carries() {
    let sandbox = Sandbox::new();
    // One request after the other, half a millisecond each.
    let (server, at) = origin::start("--delay 500us --concurrency 1");
    let mut run = sandbox.run(&study(&at, "p90 < 50ms"));
    await_brackets(&sandbox, &mut run, 3);
    run.signal(Signal::INT);
    run.end().with_code(130).says(&["after a closed loop", "Interrupted. Continue with"]);
    let first = trials(&sandbox.records());
    assert!(first.len() >= 15, "the closed loop is one");

    let mut run = Running::start(&mut sandbox.weir(&["run", "--resume", "a run"]));
    await_brackets(&sandbox, &mut run, 6);
    run.signal(Signal::KILL);
    assert_eq!(run.end().code, None);
    let second =
        trials(&Run::read(&sandbox.run_folder()).expect("whole lines but perhaps the last"));

    let run = Running::start(&mut sandbox.weir(&["run", "--resume", "a run"]));
    run.end_of_steps(" left\n").with_code(0).says(&["requests/s"]);
    refuses_sizes(&sandbox);
    let run = sandbox.records();
    assert_eq!(outcomes(&run), [Outcome::Interrupted, Outcome::Complete]);
    let all = trials(&run);
    assert_eq!(all[..first.len()], first[..]);
    assert_eq!(all[..second.len()], second[..]);
    // What was measured is not measured again: the closed loop, and the first rate after it.
    let closed = all.iter().filter(|trial| trial.rate_intended.is_none());
    // Fifteen blocks with all connections, and five with half of them if the machine had time for the generator.
    assert!(matches!(closed.count(), 15 | 20));
    let mut rates: Vec<f64> = all.iter().filter_map(|trial| trial.rate_intended).collect();
    rates.dedup();
    assert_eq!(rates.iter().filter(|rate| **rate == rates[0]).count(), 1);
    let answer = only_answer(&run);
    assert!(
        matches!(answer.end, CapacityEnd::Found | CapacityEnd::Settled | CapacityEnd::Budget),
        "{answer:?}"
    );
    // A queue of 50 ms is 100 requests: nearly all of the 2,000/s, and of less beside what else runs here. How near an
    // answer comes is looked at on the simulated host.
    within(answer.answer.saturated, 100.0..2100.0);
    within(answer.answer.high, 0.5 * answer.answer.saturated..2500.0);
    server.signal(Signal::TERM);
    server.end().with_code(0);
}

/// Asks for sizes that this run cannot give: its holds of two seconds are too short for samples.
fn refuses_sizes(sandbox: &Sandbox) {
    let size = |words: &[&str]| {
        Running::start(&mut sandbox.weir(&[&["size", "a run"], words].concat())).end()
    };
    size(&["--rate", "20k"]).with_code(2).says(&["long enough for samples"]);
    size(&["--rate", "0"]).with_code(2);
    size(&["--rate", "1k", "--arm", "nobody"]).with_code(2).says(&["no run has an arm `nobody`"]);
}

fn trials(run: &Run) -> Vec<TrialRecord> {
    run.trials().cloned().collect()
}

#[test]
fn connections_that_let_no_more_through_are_told_or_raised() {
    in_three_tries(connections_are_told_or_raised);
}

fn connections_are_told_or_raised() {
    // It answers after 80 ms, however many ask: 4 connections carry 50/s, and 50 carry 625/s.
    let (_server, at) = origin::start("--delay 80ms --size 10");
    let sandbox = Sandbox::new();
    let url = format!("http://{at}/");
    let words = ["capacity", &url, "-O", "p90 < 120ms", "--hold", "2s"];
    let few = ["-c", "4", "--precision", "15%", "--budget", "75s"];
    let search = Running::start(&mut sandbox.weir(&[&words[..], &few].concat()));
    search.end_of_steps(" left\n").with_code(0).says(&[
        " carries at least ",
        ". All 4 connections were busy, and half as many carried",
        "Try again with -c 16.",
    ]);

    let mut raised = Running::start(&mut sandbox.weir(&[&words[..], &["--out", "a run"]].concat()));
    let ramp = r#""stage":"ramp""#;
    raised.wait_until("a rate", |_| sandbox.records_with(ramp) > 0);
    raised.signal(Signal::INT);
    raised.end().with_code(130);
    let run = sandbox.records();
    let parts = run.records.iter().filter_map(|record| match record {
        Record::Part(part) => Some(part.arms[0].asking.wanted),
        _ => None,
    });
    let parts: Vec<u64> = parts.collect();
    assert_eq!(parts[..5], [50, 25, 50, 100, 200]);
    // What it goes on with is the most that it has tried.
    assert_eq!(parts.last(), parts.iter().max(), "{parts:?}");

    // There is no study to save: it is repeated as it was typed.
    let shown = sandbox.call("report 'a run' --format markdown").with_code(0);
    let (_, repeat) = shown.stdout.split_once("How to repeat it").expect("a section");
    assert!(repeat.contains("weir capacity http") && !repeat.contains("study.yaml"), "{repeat}");
}

#[test]
fn a_server_that_dies_is_said_to_have_broken() {
    let sandbox = Sandbox::new();
    let (server, at) = origin::start("--delay 500us --concurrency 1");
    let mut run = sandbox.run(&study(&at, "p90 < 50ms"));
    await_brackets(&sandbox, &mut run, 3);
    server.signal(Signal::KILL);
    server.end();
    run.end().with_code(0);
    let run = sandbox.records();
    let answer = only_answer(&run);
    let is_told = matches!(answer.end, CapacityEnd::Broken(_) | CapacityEnd::Never);
    assert!(is_told && answer.answer.verified == 0.0, "{answer:?}");
}

/// Returns the answer of a run that has one arm.
fn only_answer(run: &Run) -> &CapacityRecord {
    let [answer] = read_answers(run)[..] else { panic!("one answer") };
    answer
}

#[test]
fn a_generator_that_is_held_up_is_not_taken_for_the_server() {
    let sandbox = Sandbox::new();
    let (server, at) = origin::start("--size 100");
    let mut run = sandbox.run(&study(&at, "p90 < 30ms"));
    run.wait_until("the begin", |_| sandbox.records_with("session") > 0);
    let stopped = Duration::from_millis(120);
    // A stopped process sends nothing, whoever stopped it.
    while run.is_alive() && sandbox.records_with(r#""record":"capacity""#) == 0 {
        run.signal(Signal::STOP);
        thread::sleep(stopped);
        run.signal(Signal::CONT);
        thread::sleep(stopped / 2);
    }
    run.end().with_code(0);
    let records = sandbox.records();
    let answer = only_answer(&records);
    // On a machine that is busy besides, hold-ups spoil so much that nothing is claimed of anybody.
    let is_claimed = answer.answer.verified > 0.0 || answer.answer.high > 0.0;
    let ceiling = answer.answer.ceiling.map(|ceiling| ceiling.of);
    assert!(!is_claimed || ceiling == Some(CeilingOf::Generator), "{answer:?}");
    assert_ne!(ceiling, Some(CeilingOf::Connections), "{answer:?}");
    server.signal(Signal::TERM);
    server.end().with_code(0);
}

/// A control group whose processes have a fifth of a CPU; removed when this is dropped.
struct Quota(PathBuf);

impl Quota {
    /// Makes the group; `None` if this user is not allowed to.
    fn make() -> Option<Quota> {
        let name = format!("weir-test-{}", std::process::id());
        // Version 1 has a tree for each controller (kernel documentation, cgroup-v1 and cgroup-v2).
        let version_1 = Path::new("/sys/fs/cgroup/cpu");
        let (tree, file, text) = if version_1.is_dir() {
            (version_1, "cpu.cfs_quota_us", "20000")
        } else {
            (Path::new("/sys/fs/cgroup"), "cpu.max", "20000 100000")
        };
        let group = Quota(tree.join(name));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join(file), text).ok()?;
        Some(group)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_generator_with_a_quota_is_not_taken_for_the_server() {
    let Some(quota) = Quota::make() else { return };
    let sandbox = Sandbox::new();
    let (server, at) = origin::start("--size 100");
    let before = format!("echo $$ > {}/cgroup.procs", quota.0.display());
    let path = sandbox.write("study.yaml", &study(&at, "p90 < 30ms"));
    let line = format!("run {} --out '{}'", path.display(), sandbox.run_folder().display());
    Running::start(&mut behind(&before, &line)).end_of_steps(" left\n").with_code(0);
    let run = sandbox.records();
    let answer = only_answer(&run);
    let ceiling = answer.answer.ceiling.map(|ceiling| ceiling.of);
    assert_eq!(ceiling, Some(CeilingOf::Generator), "{answer:?}");
    server.signal(Signal::TERM);
    server.end().with_code(0);
}

/// Starts a server that answers after a millisecond, and never again once it has had more than `most` requests within a
/// second. It ends with this process. Returns its address.
fn fragile(most: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let window = Arc::new(Mutex::new((Instant::now(), 0)));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let window_of_thread = Arc::clone(&window);
            thread::spawn(move || serve(stream, most, &window_of_thread));
        }
    });
    address
}

fn serve(mut stream: TcpStream, most: usize, window: &Mutex<(Instant, usize)>) -> Option<()> {
    let mut request = [0; 1024];
    // A generator's request is one segment.
    while stream.read(&mut request).ok()? > 0 {
        let is_broken = {
            let mut current = window.lock().unwrap_or_else(PoisonError::into_inner);
            let (begun, count) = *current;
            *current = if begun.elapsed() > Duration::from_secs(1) && count <= most {
                (Instant::now(), 1)
            } else {
                (begun, count + 1)
            };
            current.1 > most
        };
        if !is_broken {
            thread::sleep(Duration::from_millis(1));
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
        }
    }
    Some(())
}

#[test]
fn a_server_that_breaks_above_a_rate_is_said_to_and_is_not_asked_on_and_on() {
    // The first request is the one that looks whether it answers at all.
    let at = fragile(400);
    let sandbox = Sandbox::new();
    let begun = Instant::now();
    sandbox.run(&study(&at, "p90 < 50ms")).end().with_code(0);
    assert!(begun.elapsed() < Duration::from_secs(45), "{begun:?}");
    let run = sandbox.records();
    let answer = only_answer(&run);
    // The closed loop may break it before it has answered anything.
    let is_told = matches!(answer.end, CapacityEnd::Broken(_) | CapacityEnd::Never);
    assert!(is_told && answer.answer.verified == 0.0, "{answer:?}");
}
