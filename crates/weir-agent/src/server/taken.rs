//! Takes CPU time away from an arm while the arm has the load.
//!
//! A thread for each CPU is busy for a share of the time, which other processes on that CPU then lack. This method
//! needs no privilege and no control group, works the same for cgroup v1 and v2, and leaves nothing behind, however
//! weir ends: a quota would need root or a delegated group, and would go on to throttle after weir was killed. All
//! threads are busy at the same moments, so that a process with one thread cannot move to another CPU meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::time::{ClockId, clock_gettime};
use weir_model::quantity::CpuSet;
use weir_model::study::Reduction;

/// Period, nanoseconds; a CPU is busy for a part of each. It is shorter than a slice and longer than a scheduler's
/// period.
const PERIOD: u64 = 4_000_000;
/// Nice value of the busy threads. Competing processes share a CPU by the scheduler's weights; if this value is
/// permitted, the busy threads come first.
const FIRST: i32 = -20;
/// Value for "no arm": no arm has the load, or none from which time is taken.
const NOBODY: usize = usize::MAX;

/// Busy threads that take CPU time away; dropping this ends them.
#[derive(Debug, Default)]
pub(super) struct Taker {
    turn: Arc<Turn>,
    threads: Vec<JoinHandle<()>>,
}

/// The arm that has the load now.
#[derive(Debug)]
struct Turn {
    arm: AtomicUsize,
    has_ended: AtomicBool,
}

impl Default for Turn {
    fn default() -> Turn {
        Turn { arm: AtomicUsize::new(NOBODY), has_ended: AtomicBool::new(false) }
    }
}

impl Taker {
    /// Starts to take a percentage of CPU time from each arm, on the given CPUs.
    ///
    /// # Errors
    /// A thread cannot be started, or cannot be pinned to its CPU.
    pub(super) fn start(taken: &[Option<(CpuSet, u32)>]) -> std::io::Result<Taker> {
        let mut taker = Taker::default();
        let cpus: BTreeSet<u32> =
            taken.iter().flatten().flat_map(|(set, _)| set.cpus().to_vec()).collect();
        for cpu in cpus {
            let shares: Vec<u32> = taken
                .iter()
                .map(|taken| {
                    taken
                        .as_ref()
                        .filter(|(set, _)| set.cpus().contains(&cpu))
                        .map_or(0, |(_, percent)| (*percent).min(Reduction::MOST))
                })
                .collect();
            let turn = Arc::clone(&taker.turn);
            let (ready, is_ready) = sync_channel(1);
            let thread = std::thread::Builder::new().name(format!("less-{cpu}"));
            taker.threads.push(thread.spawn(move || {
                let pinned = weir_probe::keep_to(None, &[cpu]);
                let is_pinned = pinned.is_ok();
                // Whoever waits for this is there.
                let _ = ready.send(pinned);
                let _ = setpriority_process(None, FIRST);
                if is_pinned {
                    turn.serve(&shares);
                }
            })?);
            is_ready.recv().map_err(|_| std::io::Error::other("a thread has ended"))??;
        }
        Ok(taker)
    }

    /// Switches to the arm that has the load now; `None`: no arm has it.
    pub(super) fn turn_to(&self, arm: Option<usize>) {
        self.turn.arm.store(arm.unwrap_or(NOBODY), Ordering::Relaxed);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        self.turn.has_ended.store(true, Ordering::Relaxed);
        self.turn_to(None);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Turn {
    fn serve(&self, shares: &[u32]) {
        while !self.has_ended.load(Ordering::Relaxed) {
            let arm = self.arm.load(Ordering::Relaxed);
            match shares.get(arm) {
                Some(&percent @ 1..) => self.take(arm, u64::from(percent)),
                _ => std::thread::park(),
            }
        }
    }

    /// Keeps the CPU busy for this share of the time while the arm has the load. Time that other processes took from
    /// the share is made up for.
    fn take(&self, arm: usize, percent: u64) {
        let (since, before) = (crate::monotonic_ns(), own_cpu_ns());
        while self.has_turn(arm) {
            let now = crate::monotonic_ns();
            let end = now - now % PERIOD + PERIOD;
            let due = end.saturating_sub(since) * percent / 100;
            while self.has_turn(arm) && own_cpu_ns() - before < due {
                (0..200).for_each(|_| std::hint::spin_loop());
            }
            let remaining = end.saturating_sub(crate::monotonic_ns());
            std::thread::sleep(Duration::from_nanos(remaining));
        }
    }

    fn has_turn(&self, arm: usize) -> bool {
        self.arm.load(Ordering::Relaxed) == arm
    }
}

/// Returns the CPU time of the calling thread, nanoseconds.
fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the CPU time of the threads of this process that have this name, in ticks.
    fn ticks_of(name: &str) -> u64 {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let ticks = tasks.filter_map(|task| {
            let stat = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
            let mut fields = stat.split_once(&format!("({name}) "))?.1.split(' ').skip(11);
            let (user, system) = (fields.next()?, fields.next()?);
            Some(user.parse::<u64>().ok()? + system.parse::<u64>().ok()?)
        });
        ticks.sum()
    }

    #[test]
    fn it_is_busy_for_its_share_while_an_arm_has_the_load_and_not_else() {
        let all = weir_probe::allowed_cpus().unwrap();
        let cpu = all.cpus()[0];
        let cpu_set: CpuSet = cpu.to_string().parse().unwrap();
        let taker = Taker::start(&[None, Some((cpu_set, 30))]).unwrap();
        let name = format!("less-{cpu}");
        taker.turn_to(Some(0));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(ticks_of(&name), 0, "nothing is taken of the first arm");
        taker.turn_to(Some(1));
        let begun = std::time::Instant::now();
        // However busy the machine is, it gets there, and never has more than its share and a period's.
        while ticks_of(&name) < 20 {
            assert!(begun.elapsed() < Duration::from_secs(60), "in vain");
            std::thread::sleep(Duration::from_millis(5));
        }
        let most = begun.elapsed().as_secs_f64() * 100.0 * 0.3 + 2.0;
        assert!(ticks_of(&name) as f64 <= most, "{} {most}", ticks_of(&name));
        taker.turn_to(None);
        std::thread::sleep(Duration::from_millis(20));
        let then = ticks_of(&name);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(ticks_of(&name), then);
    }
}
