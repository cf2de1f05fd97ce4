//! Counters at the start of every slice, read by the clock.
//!
//! An arm rests before its slices begin, so the scheduler's figures of its processes are exact then. The reader follows
//! the timeline by itself, since the load may be switched on another host.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, setpriority_process};
use rustix::thread::{sched_getaffinity, set_current_timer_slack};
use weir_model::quantity::CpuSet;
use weir_model::record::{HoldUps, SocketCounts};
use weir_origin::Origin;
use weir_probe::{
    CpuTimes, CpuTimesReader, HoldUpMeter, NetstatReader, ProbeError, ProcessCpu, ThreadCpu,
    ThrottleReader, bounded_groups,
};

use super::networks::MOST_ARMS;
use super::settings::HostSettings;
use super::taken::Taker;
use crate::message::{Failure, Reading, WatchEnd, WatchJob};

/// Nice value of the reading thread. Late readings are wrong readings, and a reading takes only some microseconds.
const PUNCTUAL: i32 = -20;

/// Longest sleep before the thread checks if it should stop.
const LOOK: Duration = Duration::from_millis(50);

/// Readers of all counters of one host.
pub(super) struct Watcher {
    proxies: Vec<Vec<ProcessCpu>>,
    /// Start of the rest, and the proxy's CPU time then, of each arm that rests; both in nanoseconds.
    resting: Vec<Option<(u64, u64)>>,
    /// Readers of each arm's namespace; empty if all arms share the host's.
    netstats: Vec<NetstatReader>,
    shared: Option<NetstatReader>,
    origin: Option<Arc<Origin>>,
    origin_threads: Vec<ThreadCpu>,
    /// Readers of the CPUs that proxies have; each distinct set has one.
    proxy_cpus: Vec<CpuTimesReader>,
    /// Index into `proxy_cpus` of each arm.
    cpus_of: Vec<usize>,
    generator_cpus: Option<CpuTimesReader>,
    /// Throttling of weir's own control groups.
    throttled: ThrottleReader,
    /// Throttling of those control groups of each arm's proxy that weir is not in.
    proxies_throttled: Vec<ThrottleReader>,
    held_up: Meters,
    settings: Option<Arc<HostSettings>>,
    slots: Vec<usize>,
}

impl Watcher {
    pub(super) fn open(
        job: &WatchJob,
        proxies: &[Vec<u32>],
        netstats: Vec<NetstatReader>,
        origin: Option<Arc<Origin>>,
        meter: SharedMeter,
    ) -> Result<Watcher, ProbeError> {
        let threads = origin.as_ref().map_or_else(Vec::new, |origin| origin.thread_ids().to_vec());
        let mut sets: Vec<&CpuSet> = Vec::new();
        let cpus_of = job
            .proxies
            .iter()
            .flatten()
            .map(|set| {
                sets.iter().position(|known| *known == set).unwrap_or_else(|| {
                    sets.push(set);
                    sets.len() - 1
                })
            })
            .collect();
        // A proxy that weir has not started may be any process.
        let are_known = !proxies.iter().any(Vec::is_empty);
        let pids = [std::process::id()].into_iter().chain(proxies.iter().flatten().copied());
        let held_up = Meters::start(job, &threads, are_known.then(|| pids.collect()), meter);
        let own_groups = bounded_groups(std::process::id());
        Ok(Watcher {
            proxies: proxies
                .iter()
                .map(|pids| pids.iter().copied().map(ProcessCpu::open).collect())
                .collect::<Result<_, _>>()?,
            resting: vec![None; proxies.len()],
            shared: if netstats.is_empty() && job.proxies.is_some() {
                Some(NetstatReader::open()?)
            } else {
                None
            },
            netstats,
            origin,
            origin_threads: threads
                .into_iter()
                .map(ThreadCpu::of_own_thread)
                .collect::<Result<_, _>>()?,
            proxy_cpus: sets.into_iter().map(CpuTimesReader::open).collect::<Result<_, _>>()?,
            cpus_of,
            throttled: ThrottleReader::open(&own_groups),
            proxies_throttled: proxies.iter().map(|pids| beside(&own_groups, pids)).collect(),
            held_up,
            generator_cpus: job.generator.as_ref().map(CpuTimesReader::open).transpose()?,
            settings: None,
            slots: job.slots.clone(),
        })
    }

    /// Sets the host settings to switch to each arm's values when its slice begins.
    pub(super) fn with_settings(self, settings: Option<Arc<HostSettings>>) -> Watcher {
        Watcher { settings, ..self }
    }

    /// Reads all counters. A counter that can no longer be read stands still; the end of its process is detected
    /// elsewhere, and ends the run.
    fn read(&mut self, slice: usize, arm: usize, before: usize, late_ns: u64) -> Reading {
        let slot = self.slots.get(arm).copied().unwrap_or(arm);
        let origin = self.origin.as_ref().map(|origin| origin.counters(slot));
        let proxy = self.times_of(arm);
        let previous = if self.cpus_of.get(arm) == self.cpus_of.get(before) {
            proxy
        } else {
            self.times_of(before)
        };
        let proxy_cpu_ns = self.proxy_cpu_ns(arm);
        let (rest_ns, rest_cpu_ns) = self.rested(arm, proxy_cpu_ns);
        Reading {
            slice,
            arm,
            proxy_cpu_ns,
            rest_ns,
            rest_cpu_ns,
            origin_requests: origin.map_or(0, |counters| counters.requests),
            origin_connects: origin.map_or(0, |counters| counters.connections),
            origin_cpu_ns: self
                .origin_threads
                .iter_mut()
                .map(|thread| thread.read_ns().unwrap_or(0))
                .sum(),
            proxy_steal_ns: proxy.steal_ns,
            proxy_idle_ns: proxy.idle_ns,
            proxy_irq_ns: proxy.irq_ns,
            left_irq_ns: previous.irq_ns,
            throttled_ns: self.throttled.read_ns(),
            proxy_throttled_ns: self.proxies_throttled.get(arm).map_or(0, ThrottleReader::read_ns),
            left_steal_ns: previous.steal_ns,
            left_idle_ns: previous.idle_ns,
            generator_steal_ns: times(&mut self.generator_cpus).steal_ns,
            sockets: self.sockets_of(arm),
            left_sockets: self.sockets_of(before),
            held_up: self.held_up.since_last(before),
            late_ns,
        }
    }

    /// Returns the CPU time of all processes of an arm's proxy.
    fn proxy_cpu_ns(&mut self, arm: usize) -> u64 {
        let proxies = self.proxies.get_mut(arm).map_or(&mut [][..], |all| all);
        proxies.iter_mut().map(ProcessCpu::read_ns).sum()
    }

    /// Marks the start of an arm's rest, after its last answers.
    fn rest(&mut self, arm: usize) {
        let cpu_ns = self.proxy_cpu_ns(arm);
        if let Some(resting) = self.resting.get_mut(arm) {
            *resting = Some((crate::monotonic_ns(), cpu_ns));
        }
    }

    /// Returns how long an arm has rested, and the CPU time that its proxy used in that time, both in nanoseconds;
    /// zeros if the arm has not rested.
    fn rested(&mut self, arm: usize, cpu_ns: u64) -> (u64, u64) {
        let since = self.resting.get_mut(arm).and_then(Option::take);
        since.map_or((0, 0), |(at_ns, before_ns)| {
            let rest_ns = crate::monotonic_ns().saturating_sub(at_ns);
            (rest_ns, cpu_ns.saturating_sub(before_ns))
        })
    }

    /// Counts the sockets of an arm's namespace, or of the host if all arms share it.
    fn sockets_of(&mut self, arm: usize) -> Option<SocketCounts> {
        self.netstats.get_mut(arm).or(self.shared.as_mut())?.sockets()
    }

    /// Reads the times of an arm's CPUs.
    fn times_of(&mut self, arm: usize) -> CpuTimes {
        let index = self.cpus_of.get(arm).copied();
        let reader = index.and_then(|index| self.proxy_cpus.get_mut(index));
        let read = reader.and_then(|reader| reader.read().ok());
        read.unwrap_or_default()
    }

    /// Returns the number of overflows of listen queues: in all namespaces together, and in each arm's.
    fn overflows(&mut self) -> (u64, Vec<u64>) {
        let arms: Vec<u64> =
            self.netstats.iter_mut().map(NetstatReader::listen_overflows).collect();
        let all = weir_probe::listen_overflows() + arms.iter().sum::<u64>();
        (all, arms)
    }

    fn memory(&self) -> Vec<u64> {
        self.proxies
            .iter()
            .map(|processes| {
                processes
                    .iter()
                    .map(|process| weir_probe::memory_bytes(process.pid()))
                    .sum::<Result<u64, _>>()
                    .unwrap_or(0)
            })
            .collect()
    }
}

/// Opens a reader of the CPU quotas that apply to some processes but not to weir.
fn beside(own: &[PathBuf], pids: &[u32]) -> ThrottleReader {
    let groups = pids.iter().flat_map(|&pid| bounded_groups(pid));
    let groups: BTreeSet<PathBuf> = groups.filter(|group| !own.contains(group)).collect();
    ThrottleReader::open(&groups)
}

/// Meter of hold-ups. It is kept after a watch, because it takes a while to start.
pub(super) type SharedMeter = Arc<Mutex<HoldUpMeter>>;

/// The meter of hold-ups, and the CPUs of each role.
struct Meters {
    meter: SharedMeter,
    proxies: Vec<CpuSet>,
    generator: Option<CpuSet>,
    origin: Option<CpuSet>,
}

impl Meters {
    /// Starts the meter. If that is not permitted, hold-ups stay unknown, and the records say so.
    fn start(
        job: &WatchJob,
        origin_threads: &[u32],
        own: Option<BTreeSet<u32>>,
        meter: SharedMeter,
    ) -> Meters {
        let threads = origin_threads.iter().filter_map(|&id| cpus_of_thread(id));
        let origin = CpuSet::new(threads.flatten().collect());
        let proxies = job.proxies.clone().unwrap_or_default();
        let all = proxies
            .iter()
            .chain(&job.generator)
            .chain(&origin)
            .flat_map(|set| set.cpus().iter().copied());
        {
            let mut meter = lock(&meter);
            let _ = meter.watch(all);
            let _ = meter.belong(own);
        }
        Meters { meter, generator: job.generator.clone(), origin, proxies }
    }

    /// Returns the hold-ups between the last two turns; this arm had the load then.
    fn since_last(&self, arm: usize) -> HoldUps {
        let meter = lock(&self.meter);
        let [proxy, generator, origin] =
            [self.proxies.get(arm), self.generator.as_ref(), self.origin.as_ref()]
                .map(|set| set.and_then(|set| meter.held_up(set)));
        HoldUps { proxy, generator, origin }
    }
}

/// Locks the meter, even after a panic of another thread, which leaves the counters intact.
pub(super) fn lock(meter: &SharedMeter) -> MutexGuard<'_, HoldUpMeter> {
    meter.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the CPUs that a thread of this process may run on.
fn cpus_of_thread(id: u32) -> Option<Vec<u32>> {
    let set = sched_getaffinity(Pid::from_raw(id as i32)).ok()?;
    let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
    Some(cpus.map(|cpu| cpu as u32).collect())
}

fn times(reader: &mut Option<CpuTimesReader>) -> CpuTimes {
    let read = reader.as_mut().and_then(|reader| reader.read().ok());
    read.unwrap_or_default()
}

/// Takes a reading at each time of the job and passes it to `tell`.
pub(super) fn run(
    job: &WatchJob,
    mut watcher: Watcher,
    stop: &AtomicBool,
    tell: &dyn Fn(&Reading),
) -> Result<WatchEnd, Failure> {
    if job.arms.len() > job.times.len() {
        return Err(Failure::other("a watch of more slices than it has times"));
    }
    // Not being allowed shows as readings that are late, which the end tells.
    let _ = setpriority_process(None, PUNCTUAL);
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
    let arms = job.slots.len();
    if arms > MOST_ARMS || job.arms.iter().any(|&arm| arm >= arms) {
        return Err(Failure::other(format!("a watch of {arms} arms")));
    }
    let taker = Taker::start(&job.taken)
        .map_err(|error| Failure::other(format!("cannot take time of CPUs away: {error}")))?;
    let (before, arms_before) = watcher.overflows();
    let mut end = WatchEnd::default();
    for (slice, &time) in job.times.iter().enumerate() {
        let at_ns = job.start_ns.saturating_add(time);
        if !sleep_until(at_ns, stop) {
            break;
        }
        let late_ns = crate::monotonic_ns().saturating_sub(at_ns);
        // The start is reported afterwards; the first slices are not measured.
        if slice > 0 {
            end.late_ns = end.late_ns.max(late_ns);
        }
        if let (Some(settings), Some(&arm)) = (&watcher.settings, job.arms.get(slice)) {
            settings.turn_to(job.slots[arm])?;
        }
        taker.turn_to(job.arms.get(slice).copied());
        lock(&watcher.held_up.meter).turn();
        match job.arms.get(slice) {
            Some(&arm) => {
                let before = slice.checked_sub(1).map_or(arm, |before| job.arms[before]);
                tell(&watcher.read(slice, arm, before, late_ns));
            }
            None => (0..arms).for_each(|arm| tell(&watcher.read(slice, arm, arm, late_ns))),
        }
        if let Some((before, at_ns)) = rests(job, slice) {
            if !sleep_until(job.start_ns.saturating_add(at_ns), stop) {
                break;
            }
            watcher.rest(before);
        }
        if slice + 1 == job.arms.len() {
            // Before the end, when all connections are still open. This slice is not measured.
            end.memory = watcher.memory();
        }
    }
    let (after, arms_after) = watcher.overflows();
    end.listen_overflows = after.saturating_sub(before);
    let pairs = arms_after.into_iter().zip(arms_before);
    end.arm_overflows = pairs.map(|(after, before)| after.saturating_sub(before)).collect();
    Ok(end)
}

/// Returns the arm that has the load before this slice and rests during it, and the start of its rest; `None` if no arm
/// starts to rest.
fn rests(job: &WatchJob, slice: usize) -> Option<(usize, u64)> {
    let (arm, before) = (job.arms.get(slice)?, job.arms.get(slice.checked_sub(1)?)?);
    let (begin, settled) = (job.times.get(slice)?, job.settled.get(slice)?);
    (arm != before && settled > begin).then_some((*before, *settled))
}

/// Sleeps until a time. Returns false if stopped before.
pub(super) fn sleep_until(at_ns: u64, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        match at_ns.saturating_sub(crate::monotonic_ns()) {
            0 => return true,
            remaining => std::thread::sleep(Duration::from_nanos(remaining).min(LOOK)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    const MS: u64 = 1_000_000;

    struct Ends(Child);

    impl Drop for Ends {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn wait_until(mut happened: impl FnMut() -> bool) {
        let begun = std::time::Instant::now();
        while !happened() {
            assert!(begun.elapsed() < Duration::from_secs(60), "in vain");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn child(script: &str) -> Ends {
        Ends(Command::new("sh").args(["-c", script]).spawn().unwrap())
    }

    /// Takes readings of two arms that have the load in turns. Rests begin `settle_ms` after a slice starts.
    fn readings(arms: [&Ends; 2], settle_ms: u64) -> Vec<Reading> {
        let cpus = weir_probe::allowed_cpus().unwrap();
        let times: Vec<u64> = (0..=6).map(|slice| slice * 100 * MS).collect();
        let job = WatchJob {
            start_ns: crate::monotonic_ns(),
            settled: times.iter().map(|begin| begin + settle_ms * MS).collect(),
            times,
            arms: vec![0, 1, 1, 0, 0, 1],
            slots: vec![0, 1],
            proxies: Some(vec![cpus.clone(), cpus]),
            generator: None,
            origin: false,
            taken: Vec::new(),
        };
        let pids = arms.map(|arm| vec![arm.0.id()]);
        let watcher = Watcher::open(&job, &pids, Vec::new(), None, SharedMeter::default()).unwrap();
        let all = std::sync::Mutex::new(Vec::new());
        run(&job, watcher, &AtomicBool::new(false), &|reading: &Reading| {
            all.lock().unwrap().push(*reading);
        })
        .unwrap();
        all.into_inner().unwrap()
    }

    #[test]
    fn what_an_arm_uses_while_it_rests_is_read_from_when_its_answers_have_ended() {
        let (busy, quiet) = (child("while :; do :; done"), child("exec sleep 600"));
        // What it takes to start is no rest's. On a busy machine both may not come to run for long.
        let stat = format!("/proc/{}/stat", quiet.0.id());
        wait_until(|| std::fs::read_to_string(&stat).is_ok_and(|text| text.contains("(sleep) S")));
        let mut all = Vec::new();
        wait_until(|| {
            all = readings([&busy, &quiet], 20);
            find_reading(&all, 0, 3).rest_cpu_ns > 0 && find_reading(&all, 0, 6).rest_cpu_ns > 0
        });
        // Readings may come late, but one after the other. Who rests until a slice does so since its own two,
        // 20 ms into the one before last, and was seen to before the last one.
        for (arm, slice) in [(0, 3), (1, 5)] {
            let least = read_at(&all, slice) - read_at(&all, slice - 1);
            let most = read_at(&all, slice + 1) - (slice as u64 - 2) * 100 * MS - 20 * MS;
            let rest_ns = find_reading(&all, arm, slice).rest_ns;
            assert!((least..=most).contains(&rest_ns), "{least} {rest_ns} {most}");
        }
        // Nothing between two slices of its own.
        let worked = find_reading(&all, 0, 3).proxy_cpu_ns - find_reading(&all, 0, 0).proxy_cpu_ns;
        assert!(find_reading(&all, 0, 3).rest_cpu_ns <= worked);
        let none = (0, 0);
        assert_eq!(rest_of(&all, 0, 4), none);
        assert!(rest_of(&all, 1, 5).1 < 2 * MS, "{:?}", rest_of(&all, 1, 5));
        // The first slice of an arm has no rest before it.
        assert_eq!(rest_of(&all, 1, 1), none);

        let all = readings([&busy, &quiet], 0);
        assert!(all.iter().all(|reading| reading.rest_ns == 0));
    }

    fn find_reading(all: &[Reading], arm: usize, slice: usize) -> Reading {
        let mut readings = all.iter().filter(|reading| reading.arm == arm);
        *readings.find(|reading| reading.slice == slice).unwrap()
    }

    fn read_at(all: &[Reading], slice: usize) -> u64 {
        let reading = all.iter().find(|reading| reading.slice == slice).unwrap();
        slice as u64 * 100 * MS + reading.late_ns
    }

    fn rest_of(all: &[Reading], arm: usize, slice: usize) -> (u64, u64) {
        let reading = find_reading(all, arm, slice);
        (reading.rest_ns, reading.rest_cpu_ns)
    }
}
