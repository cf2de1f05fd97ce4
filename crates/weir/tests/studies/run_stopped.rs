//! Tests of runs that are interrupted, killed or broken: the cause is named, the measurements are kept, nothing is left
//! running, and the run can be resumed.

use std::convert::identity;
use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use weir_model::record::{Outcome, Record};
use weir_probe::process::children;
use weir_record::Run;
use weir_testkit::program::{HasAll, Running, wait_until, within};
use weir_testkit::sandbox::{self, Sandbox, kill, outcomes};

use crate::run_proxies::{PROXIES, of_arms, study};

const BLOCKS: usize = 20;

/// Returns a study of 20 blocks of 200 ms, by the same proxies, so that a slow test finds those that it knows.
fn short() -> String {
    let load = "- {name: closed, closed: true, connections: 4, duration: 4s}";
    sandbox::study("{kind: nginx, settings: {worker_processes: 1}}", load, "")
}

/// Returns a study of 20 blocks of half a second of all five proxies, with new instances after ten of them.
fn long() -> String {
    let load = "- {name: closed, closed: true, connections: 4, duration: 10s}\n";
    study(load, "{slice: 50ms, at-least: 6, instances: 2}")
}

/// Starts a run, and waits until some blocks are recorded, far from the last.
fn begin(sandbox: &Sandbox, study: &str) -> Running {
    let mut run = sandbox.run(study);
    let arms = if study == long() { PROXIES.len() } else { 2 };
    sandbox.await_trials(&mut run, 2 * arms);
    run
}

/// Resumes a run of `arms` whose first session ended early, and completes it.
fn resumes(sandbox: &Sandbox, arms: usize) -> Run {
    let before = Run::read(&sandbox.run_folder()).expect("the records are whole");
    let measured = before.trials().count();
    within(measured, 2 * arms..arms * BLOCKS);
    // What is measured already is not promised again: all of it would be 2 s for every arm and what
    // belongs to it.
    let ended = sandbox.resume().with_code(0);
    let promised = ended.stderr.split("What remains takes about ").nth(1);
    let seconds = promised.and_then(|text| text.split(" s").next()?.parse::<usize>().ok());
    let fits = seconds.is_some_and(|seconds| (1..4 * arms).contains(&seconds));
    assert!(fits, "{promised:?}");
    sandbox.assert_clean();
    let run = sandbox.records();
    assert!(!run.truncated);
    assert_eq!(run.outcome(), Some(Outcome::Complete));
    // Nothing that was there has changed.
    let first_trials: Vec<_> = run.trials().take(measured).collect();
    assert_eq!(first_trials, before.trials().collect::<Vec<_>>());
    let complete = run.blocks("closed").into_iter().filter(|(_, trials)| trials.len() == arms);
    assert_eq!(complete.count(), BLOCKS);
    let sessions: Vec<_> = run.trials().map(|trial| trial.session).collect();
    assert!(sessions.is_sorted(), "{sessions:?}");
    assert_eq!((sessions[0], sessions[sessions.len() - 1]), (0, 1));
    samples_go_on(sandbox);
    for trial in run.trials() {
        // That it is the right one was seen when the run was read. On a busy machine an arm may have answered
        // nothing in a block.
        let tag = &trial.response_time.tag;
        let count: u64 = run.histogram(&trial.response_time).iter().map(|(_, count)| count).sum();
        assert_eq!(count, trial.response_time.count, "{tag}");
    }
    run
}

/// Checks that the samples of both sessions are complete and in order.
fn samples_go_on(sandbox: &Sandbox) {
    let samples = sandbox.records().samples.rows;
    let times: Vec<u64> = samples
        .iter()
        .filter(|sample| sample.row.table == "host")
        .map(|sample| sample.row.at_ns)
        .collect();
    assert!(times.len() > 2 && times.is_sorted(), "{times:?}");
}

/// Resumes a run of all five proxies, and checks that all of them were there in both sessions.
fn resumes_with_five(sandbox: &Sandbox, ends: &[Outcome]) {
    let run = resumes(sandbox, PROXIES.len());
    assert_eq!(outcomes(&run), ends);
    let mut arms: Vec<&str> = of_arms(&run).into_keys().collect();
    arms.sort_by_key(|arm| PROXIES.iter().position(|name| name == arm));
    assert_eq!(arms, PROXIES);
    let samples = sandbox.records().samples.rows;
    for arm in PROXIES {
        // What lines of logs are is known of every proxy; what else, of each another.
        let mut rows = samples.iter().map(|sample| &sample.row);
        let tells_more = rows
            .any(|row| row.table == "proxy" && row.arm == arm && !row.keys[0].starts_with("log."));
        assert!(tells_more, "{arm} tells nothing");
    }
    for session in [0, 1] {
        within(
            run.records
                .iter()
                .filter(|record| matches!(record, Record::Proxy(p) if p.session == session))
                .count(),
            PROXIES.len()..,
        );
    }
}

#[test]
fn an_interrupted_run_of_five_proxies_goes_on() {
    let sandbox = Sandbox::new();
    let run = begin(&sandbox, &long());
    // As timeout(1) may: one wish.
    run.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(5));
    run.signal(Signal::TERM);
    let reason = "Interrupted. Continue with: weir run --resume ";
    let ended = run.end().with_code(130).says(&[reason]);
    sandbox.assert_clean();
    ended.stdout.has("the run was interrupted");
    sandbox.read("report.md").has("haproxy");
    assert_eq!(sandbox.records().outcome(), Some(Outcome::Interrupted));
    resumes_with_five(&sandbox, &[Outcome::Interrupted, Outcome::Complete]);
    let run = sandbox.records();
    let blocks = run.blocks("closed");
    let numbers: Vec<_> = blocks.into_keys().map(|(block, _)| block).collect();
    assert_eq!(numbers, (0..BLOCKS as u32).collect::<Vec<_>>());
}

#[test]
fn a_killed_run_leaves_none_of_five_proxies_and_goes_on() {
    let sandbox = Sandbox::new();
    let run = begin(&sandbox, &long());
    let proxies = sandbox.proxies();
    assert_eq!(sandbox.masters().len(), PROXIES.len());
    // Two processes each of nginx and HAProxy, three of httpd, one of the others.
    assert_eq!(proxies.len(), 9);
    run.signal(Signal::KILL);
    assert_eq!(run.end().code, None);
    sandbox.await_end_of(&proxies);
    wait_until("the end of all processes", || sandbox.proxies().is_empty());
    let killed = Run::read(&sandbox.run_folder()).expect("whole lines but perhaps the last");
    assert_eq!(killed.outcome(), None);
    resumes_with_five(&sandbox, &[Outcome::Complete]);
}

/// Uses a limit on the size of files in place of a disk that fills up: the kernel's error differs, but everything after
/// it is the same.
#[test]
fn a_run_that_cannot_be_written_on_ends_and_goes_on_when_it_can() {
    let sandbox = Sandbox::new();
    let quiet = short().replace("{worker", "{access_log: off, worker");
    sandbox.write("study.yaml", &quiet);
    // 32 times 512 bytes (POSIX ulimit) hold some blocks of 20.
    let ended = sandbox.run_behind("trap '' XFSZ; ulimit -f 32").with_code(1);
    sandbox.assert_clean();
    let reason = "what was recorded is in a run";
    ended.says(&["weir: cannot write a run/", "File too large", reason]);
    let run = resumes(&sandbox, 2);
    assert_eq!(outcomes(&run).last(), Some(&Outcome::Complete));
}

#[test]
fn a_run_that_is_interrupted_before_it_has_measured_anything() {
    let sandbox = Sandbox::new();
    let mut run = sandbox.run(&short().replace("slice: 50ms", "slice: auto"));
    run.wait_until("the pilot", |run| run.stderr().contains("a pilot of all arms"));
    run.signal(Signal::INT);
    let ended = run.end().with_code(130).says(&["weir run --resume "]);
    sandbox.assert_clean();
    assert!(ended.stdout.contains("Nothing was measured"));
    let run = sandbox.records();
    assert_eq!(run.outcome(), Some(Outcome::Interrupted));
    assert_eq!(run.trials().count(), 0);
}

/// Returns the id of an arm's first process, by the records so far.
fn first_process(sandbox: &Sandbox, arm: &str) -> u32 {
    let text = fs::read_to_string(sandbox.run_folder().join("records.jsonl")).expect("records");
    let mut pids =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).filter_map(|record| {
            match record {
                Record::Proxy(proxy) if proxy.arm == arm => Some(proxy.pid),
                _ => None,
            }
        });
    pids.next().expect("its number is recorded")
}

/// Kills one of an arm's processes, and checks that the run ends with its name and with these words. nginx's worker is
/// named by its id.
#[test]
fn a_process_that_is_killed_in_the_middle_ends_the_run_and_is_named() {
    // httpd's parent starts another child, HAProxy's master ends with its worker, and says so.
    type Row = (&'static str, fn(u32) -> u32, &'static str);
    let rows: [Row; 7] = [
        ("haproxy", identity, "master process"),
        ("envoy", identity, "master process"),
        ("caddy", identity, "master process"),
        ("httpd", identity, "master process"),
        ("httpd", first_worker, "worker process"),
        ("haproxy", first_worker, "exited with code 137"),
        ("nginx", first_worker, "(process "),
    ];
    for (arm, pid_of, words) in rows {
        let sandbox = Sandbox::new();
        let run = begin(&sandbox, &long());
        let pid = pid_of(first_process(&sandbox, arm));
        kill(pid);
        let named = format!("arm `{arm}`: the ");
        let ended = run.end().with_code(1).says(&[&named, words, "ended during the run"]);
        sandbox.assert_clean();
        if arm == "nginx" {
            ended.says(&[&format!("(process {pid}) ended during the run")]);
        }
        let run = sandbox.records();
        assert_eq!(run.outcome(), Some(Outcome::Failed));
        within(run.trials().count(), 2 * PROXIES.len()..);
    }
}

fn first_worker(master: u32) -> u32 {
    children(master).expect("it lives")[0]
}

#[test]
fn while_a_run_is_being_written_nobody_else_may() {
    let sandbox = Sandbox::new();
    let run = begin(&sandbox, &short());
    // However long the other one takes to start, this one is still writing.
    run.signal(Signal::STOP);
    sandbox.resume().refused_in_a_line(&["another weir is writing to a run", "\nhint: "]);
    run.signal(Signal::CONT);
    run.signal(Signal::TERM);
    run.end().with_code(130);
    sandbox.assert_clean();
}
