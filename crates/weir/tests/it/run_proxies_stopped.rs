//! Runs with five proxies that are interrupted, killed or broken: whoever is at fault is named, nobody
//! is left behind, and the run goes on.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use weir_model::record::{Outcome, Record};
use weir_probe::process::children;

use crate::place::Place;
use crate::program::{HasAll, Running, wait_until};
use crate::run_proxies::{PROXIES, of_arms, study};

/// 20 blocks of half a second, and new instances after ten of them.
fn long() -> String {
    let load = "- {name: closed, closed: true, connections: 4, duration: 10s}\n";
    study(load, "{slice: 50ms, at-least: 6, instances: 2}")
}

/// Waits until the first blocks are recorded.
fn await_blocks(place: &Place, run: &mut Running) {
    run.wait_until("two blocks", |_| {
        place.records_with(r#""record":"trial""#) >= 2 * PROXIES.len()
    });
}

/// Process numbers of the arms' first processes, by the records so far.
fn first_process(place: &Place, arm: &str) -> u32 {
    let text = fs::read_to_string(place.run_folder().join("records.jsonl")).expect("records");
    let named = format!(r#""arm":"{arm}""#);
    let line = text
        .lines()
        .find(|line| line.contains(r#""record":"proxy""#) && line.contains(&named));
    let number = line.and_then(|line| line.split(r#""pid":"#).nth(1));
    let digits = number.map(|rest| rest.split([',', '}']).next().unwrap_or_default());
    digits
        .and_then(|pid| pid.parse().ok())
        .expect("its number is recorded")
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("not zero");
    kill_process(pid, Signal::KILL).expect("a process of this test's");
}

/// One of an arm's processes is killed, and the run ends with its name and with these words.
fn dies(arm: &str, pid_of: impl Fn(u32) -> u32, words: &str) {
    let place = Place::new();
    let mut run = place.run(&long());
    await_blocks(&place, &mut run);
    kill(pid_of(first_process(&place, arm)));
    let ended = run.end().with_code(1);
    place.assert_clean();
    ended.stderr.has_all(&[
        &*format!("arm `{arm}`: the "),
        words,
        "ended during the run",
    ]);
    let run = place.records();
    assert_eq!(run.outcome(), Some(Outcome::Failed));
    assert!(run.trials().count() >= 2 * PROXIES.len());
}

#[test]
fn a_proxy_that_is_killed_in_the_middle_ends_the_run_and_is_named() {
    for arm in ["haproxy", "envoy", "caddy", "httpd"] {
        dies(arm, |first| first, "master process");
    }
}

/// httpd's parent starts another child, HAProxy's master ends with its worker, and says so.
#[test]
fn a_worker_that_is_killed_in_the_middle_ends_the_run_and_is_named() {
    let worker = |first| children(first).expect("it lives")[0];
    dies("httpd", worker, "worker process");
    dies("haproxy", worker, "exited with code 137");
}

#[test]
fn an_interrupted_run_of_five_proxies_goes_on_with_five() {
    let place = Place::new();
    let mut run = place.run(&long());
    await_blocks(&place, &mut run);
    run.signal(Signal::INT);
    run.end().with_code(130);
    place.assert_clean();
    goes_on(&place, &[Outcome::Interrupted, Outcome::Complete]);
}

#[test]
fn a_killed_run_leaves_none_of_five_proxies_and_goes_on() {
    let place = Place::new();
    let mut run = place.run(&long());
    await_blocks(&place, &mut run);
    let proxies = place.proxies();
    assert_eq!(place.masters().len(), PROXIES.len());
    // Two processes each of nginx and HAProxy, three of httpd, one of the others.
    assert_eq!(proxies.len(), 9);
    run.signal(Signal::KILL);
    assert_eq!(run.end().code, None);
    place.await_end_of(&proxies);
    wait_until("the end of all processes", || place.proxies().is_empty());
    goes_on(&place, &[Outcome::Complete]);
}

/// The run is resumed to its end, with all proxies in both sessions.
#[track_caller]
fn goes_on(place: &Place, outcomes: &[Outcome]) {
    place.resume().with_code(0);
    place.assert_clean();
    let run = place.records();
    let ends = run.records.iter().filter_map(|record| match record {
        Record::End(end) => Some(end.outcome),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), outcomes);
    let mut arms: Vec<&str> = of_arms(&run).into_keys().collect();
    arms.sort_by_key(|arm| PROXIES.iter().position(|name| name == arm));
    assert_eq!(arms, PROXIES);
    for (_, trials) in run.blocks("closed") {
        assert_eq!(trials.len(), PROXIES.len());
    }
    assert_eq!(run.blocks("closed").len(), 20);
    let started = |session| {
        let of = |record: &&Record| matches!(record, Record::Proxy(p) if p.session == session);
        run.records.iter().filter(of).count()
    };
    assert!(started(0) >= PROXIES.len() && started(1) >= PROXIES.len());
}
