//! Process trees of proxies, and how they are ended.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};
use weir_probe::{ProcessId, process};

use crate::ending::is_stopped;

/// Maximum time for a proxy to end in order before it is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Returns the time at which a proxy that is to end now is killed. Once the user wants weir to end, all of them together
/// have [`GRACE`], and each later one a moment.
pub(crate) fn kill_at() -> Instant {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let now = Instant::now();
    if is_stopped() { (*FIRST.get_or_init(|| now) + GRACE).max(now + MOMENT) } else { now + GRACE }
}

/// Time for a proxy to end in order after others have used up [`GRACE`].
const MOMENT: Duration = Duration::from_millis(300);

/// Interval at which ending processes are checked.
pub(crate) const POLL: Duration = Duration::from_millis(2);

/// Returns the processes below another one, children before grandchildren.
pub(crate) fn descendants(of: u32) -> Vec<u32> {
    let mut all = process::children(of).unwrap_or_default();
    let mut at = 0;
    while at < all.len() {
        all.extend(process::children(all[at]).unwrap_or_default());
        at += 1;
    }
    all
}

pub(crate) fn living(pids: Vec<u32>) -> impl Iterator<Item = ProcessId> {
    pids.into_iter().filter_map(|pid| ProcessId::of(pid).ok())
}

/// Ends processes that are not children of this one: SIGTERM to those without a parent among them, and SIGKILL to all
/// that are left after `grace`.
pub(crate) fn end_all(processes: &[ProcessId], grace: Duration) {
    let below: Vec<u32> = processes.iter().flat_map(|process| descendants(process.pid)).collect();
    for process in processes {
        if !below.contains(&process.pid) && process.is_alive() {
            signal(process.pid, Signal::TERM);
        }
    }
    wait_for(processes, grace);
    kill_all(processes);
}

/// Kills what is left of a proxy whose master has ended. Each process is checked first, since its number may be another
/// program's by now.
pub(crate) fn kill_all(processes: &[ProcessId]) {
    for process in processes.iter().filter(|process| process.is_alive()) {
        signal(process.pid, Signal::KILL);
    }
    wait_for(processes, GRACE);
    for process in processes {
        // Orphans come to this process when it is the first of its container; else there is
        // nobody of that number to wait for, which is an error without consequence.
        if let Some(pid) = raw_pid(process.pid) {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

fn wait_for(processes: &[ProcessId], at_most: Duration) {
    let deadline = Instant::now() + at_most;
    while processes.iter().any(|process| process.is_alive()) && Instant::now() < deadline {
        std::thread::sleep(POLL);
    }
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = raw_pid(pid) {
        // It may have ended in the meantime, which is what was wanted.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn raw_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
