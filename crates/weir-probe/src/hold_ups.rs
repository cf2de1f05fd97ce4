//! Measures times in which a CPU was held up: the hypervisor, or the firmware below it, ran something else, or an
//! unrelated process ran.
//!
//! A timer interrupt on each CPU is due every [`PERIOD`]; a late one indicates a hold-up. The timer belongs to a
//! software event (`cpu-clock`, perf_event_open(2)), and a BPF program at the tracepoint `hrtimer_expire_entry` adds up
//! its lateness (`bpf/hold_ups.bpf.c`). No thread is woken, and neither the scheduler nor the arms' load delay it: a
//! thread is late whenever the kernel is busy with packets, and would measure the arm instead of the machine. Steal
//! time (proc_stat(5)) is useless: many hypervisors leave it at 0.
//!
//! The lateness of an interrupt is the rest of the hold-up after its due time: a hold-up of length `L` is measured as
//! longer than `t` with a probability of `(L - t) / PERIOD`, and always from `PERIOD + t` on.
//!
//! Another program, at the tracepoint `sched_switch`, adds up the time in which other processes have the CPU. Kernel
//! threads are not included: their work may be the arm's own (`ksoftirqd`, `kworker`, `kswapd`). The ones that scan
//! memory periodically (`kdamond`, `khugepaged`, `ksmd`) are included.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::time::Duration;

use aya::maps::{HashMap, PerCpuArray};
use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent};
use aya::programs::{PerfEvent, Program, RawTracePoint};
use aya::{Btf, Ebpf, EbpfLoader};
use weir_model::quantity::CpuSet;
use weir_model::record::HeldUp;

use crate::ProbeError;

/// Time between two interrupts. Each takes some 20 µs of a virtual machine's CPU, so all take less than one per cent.
pub const PERIOD: Duration = Duration::from_micros(2_500);
/// Minimum lateness of an interrupt that counts as a hold-up: timers of an undisturbed CPU are late by some
/// microseconds. Other processes that have the CPU for longer than this hold it up, too.
pub const LEAST: Duration = Duration::from_micros(200);

/// Compiled object of `bpf/hold_ups.bpf.c`.
const PROGRAMS: &[u8] = aya::include_bytes_aligned!("bpf/hold_ups.bpf.o");
/// Kernel function that such a timer calls.
const TIMER: &str = "perf_swevent_hrtimer";

/// Link of a process in the initial PID namespace (include/uapi/linux/nsfs.h, PROC_PID_INIT_INO).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// `struct counts` of the BPF object: interrupts, hold-ups, nanoseconds late, nanoseconds of others, and two times.
type Counts = [u64; 6];
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Meters of CPUs. They run until this is dropped.
#[derive(Default)]
pub struct HoldUpMeter {
    programs: Option<Ebpf>,
    cpus: BTreeMap<u32, MeterCounts>,
    own: BTreeSet<u32>,
    knows_own: bool,
}

/// Counts of a CPU's meter up to the last turn, and between the last two.
#[derive(Debug, Default)]
struct MeterCounts {
    all: Counts,
    latest: HeldUp,
}

impl std::fmt::Debug for HoldUpMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HoldUpMeter").field(&self.cpus).finish()
    }
}

impl HoldUpMeter {
    /// Starts meters on these CPUs, in addition to any others.
    ///
    /// # Errors
    /// Fails without root or CAP_BPF, CAP_PERFMON and CAP_SYSLOG, on a kernel without BTF and perf events, or if a CPU
    /// is not online.
    pub fn watch(&mut self, cpus: impl IntoIterator<Item = u32>) -> Result<(), ProbeError> {
        let refused =
            |error| ProbeError::read("how late timer interrupts are", io::Error::other(error));
        for cpu in cpus {
            if self.cpus.contains_key(&cpu) {
                continue;
            }
            let programs = match self.programs.take() {
                Some(programs) => programs,
                None => load().map_err(refused)?,
            };
            let programs = self.programs.insert(programs);
            start(programs, cpu).map_err(refused)?;
            self.cpus.insert(cpu, MeterCounts::default());
        }
        Ok(())
    }

    /// Sets the processes that belong to the run; their children belong to it, too. Any other process that has a CPU
    /// holds it up. `None`: not all are known, so the time of others is not counted. Without meters it does nothing.
    ///
    /// # Errors
    /// Fails if the kernel does not accept the processes; the time of others is not counted then.
    pub fn belong(&mut self, processes: Option<BTreeSet<u32>>) -> Result<(), ProbeError> {
        let Some(programs) = &mut self.programs else {
            return Ok(());
        };
        self.knows_own = false;
        let Some(now) = processes else {
            return Ok(());
        };
        tell(programs, &self.own, &now).map_err(|error| {
            ProbeError::read("which processes have CPUs", io::Error::other(error))
        })?;
        self.own = now;
        self.knows_own = true;
        Ok(())
    }

    /// Ends an interval and begins the next.
    pub fn turn(&mut self) {
        let Some(programs) = &self.programs else {
            return;
        };
        let counts = programs.map("counts").map(PerCpuArray::<_, Counts>::try_from);
        let Some(Ok(rows)) = counts.map(|map| map.and_then(|map| map.get(&0, 0))) else {
            return;
        };
        for (&cpu, seen) in &mut self.cpus {
            let Some(&now) = rows.get(cpu as usize) else {
                continue;
            };
            let [times, late_ns, others_ns] = [1, 2, 3].map(|field| now[field] - seen.all[field]);
            seen.latest =
                HeldUp { times, late_ns, others_ns: if self.knows_own { others_ns } else { 0 } };
            seen.all = now;
        }
    }

    /// Returns the hold-ups of these CPUs in the last complete interval, all together; `None` if one of them is not
    /// watched, or no interrupt has come yet.
    pub fn held_up(&self, cpus: &CpuSet) -> Option<HeldUp> {
        cpus.cpus()
            .iter()
            .map(|cpu| {
                self.cpus.get(cpu).filter(|counts| counts.all[0] > 0).map(|counts| counts.latest)
            })
            .reduce(|sum, held_up| Some(sum?.and(held_up?)))
            .flatten()
    }
}

/// Loads the programs, without starting any timer.
fn load() -> Result<Ebpf, Cause> {
    let btf = Btf::from_sys_fs()?;
    let least_ns = LEAST.as_nanos() as u64;
    let mut programs = EbpfLoader::new()
        .btf(Some(&btf))
        .override_global("wanted", &address(TIMER)?, true)
        .override_global("least_ns", &least_ns, true)
        .load(PROGRAMS)?;
    let expired: &mut RawTracePoint = program(&mut programs, "expired")?.try_into()?;
    expired.load()?;
    expired.attach("hrtimer_expire_entry")?;
    let tick: &mut PerfEvent = program(&mut programs, "tick")?.try_into()?;
    tick.load()?;
    // Programs know processes by their numbers there; elsewhere nothing would be the run's.
    if fs::read_link("/proc/self/ns/pid")?.as_os_str() == FIRST_NAMESPACE {
        let switched: &mut RawTracePoint = program(&mut programs, "switched")?.try_into()?;
        switched.load()?;
        switched.attach("sched_switch")?;
    }
    Ok(programs)
}

/// Updates the map of processes that belong to the run.
fn tell(programs: &mut Ebpf, before: &BTreeSet<u32>, now: &BTreeSet<u32>) -> Result<(), Cause> {
    let map = programs.map_mut("own").ok_or("the object lacks a map")?;
    let mut processes: HashMap<_, u32, u8> = HashMap::try_from(map)?;
    for gone in before.difference(now) {
        processes.remove(gone)?;
    }
    for new in now.difference(before) {
        processes.insert(new, 1, 0)?;
    }
    Ok(())
}

/// Starts the timer of a CPU.
fn start(programs: &mut Ebpf, cpu: u32) -> Result<(), Cause> {
    let tick: &mut PerfEvent = program(programs, "tick")?.try_into()?;
    tick.attach(
        PerfEventConfig::Software(SoftwareEvent::CpuClock),
        PerfEventScope::AllProcessesOneCpu { cpu },
        SamplePolicy::Period(PERIOD.as_nanos() as u64),
        false,
    )?;
    Ok(())
}

fn program<'a>(programs: &'a mut Ebpf, name: &str) -> Result<&'a mut Program, Cause> {
    Ok(programs.program_mut(name).ok_or("the object lacks a program")?)
}

/// Returns the address of a kernel function (proc_kallsyms(5)).
fn address(function: &str) -> Result<u64, Cause> {
    for line in BufReader::new(File::open("/proc/kallsyms")?).lines() {
        let line = line?;
        let mut words = line.split_ascii_whitespace();
        let (address, name) = (words.next(), words.nth(1));
        if name == Some(function) {
            let address = u64::from_str_radix(address.unwrap_or_default(), 16)?;
            // Hidden from whoever may not know (kernel.kptr_restrict).
            return Some(address)
                .filter(|address| *address != 0)
                .ok_or("its address is hidden".into());
        }
    }
    Err(format!("the kernel has no {function}").into())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use rustix::process::Pid;

    use super::*;

    /// Starts meters on these CPUs; `None` without the privileges.
    fn meter(cpus: [u32; 1]) -> Option<HoldUpMeter> {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let mut lines = status.lines();
        let held = u64::from_str_radix(
            lines.find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim(),
            16,
        )
        .unwrap();
        // capabilities(7): CAP_SYSLOG, CAP_PERFMON, CAP_BPF.
        let is_allowed = [34, 38, 39].iter().all(|bit| held & 1 << bit != 0);
        let mut meter = HoldUpMeter::default();
        match meter.watch(cpus) {
            Ok(()) => Some(meter),
            Err(error) => {
                assert!(!is_allowed || Btf::from_sys_fs().is_err(), "{error:?}");
                eprintln!("skipped: {error}");
                None
            }
        }
    }

    #[test]
    fn what_other_processes_take_of_a_cpu_is_seen_and_what_the_run_takes_is_not() {
        let Some(mut meter) = meter([0]) else {
            return;
        };
        let script = ["-c", "while :; do :; done"];
        let mut both = [(); 2].map(|()| Command::new("sh").args(script).spawn().unwrap());
        for process in &both {
            crate::keep_to(Some(Pid::from_child(process)), &[0]).unwrap();
        }
        let ids = both.each_ref().map(Child::id);
        let cpu: CpuSet = "0".parse().unwrap();
        // One of them, none, and the other one. Whatever else runs on the machine is seen each time.
        let is_seen = (0..20).any(|_| {
            let [before, own, after] = [&ids[..1], &ids, &ids[1..]].map(|own| {
                meter.belong(Some(own.iter().copied().collect())).unwrap();
                meter.turn();
                std::thread::sleep(Duration::from_millis(200));
                meter.turn();
                meter.held_up(&cpu).unwrap().others_ns / 1_000_000
            });
            before > own + 25 && after > own + 25
        });
        meter.belong(None).unwrap();
        meter.turn();
        std::thread::sleep(Duration::from_millis(50));
        meter.turn();
        let unknown = meter.held_up(&cpu).unwrap();
        both.iter_mut().for_each(|process| {
            process.kill().unwrap();
            process.wait().unwrap();
        });
        assert!(is_seen);
        assert_eq!(unknown.others_ns, 0);
    }

    #[test]
    fn interrupts_come_on_a_cpu_and_cpus_that_are_not_watched_are_unknown() {
        let first: CpuSet = "0".parse().unwrap();
        let Some(mut meter) = meter([0]) else {
            return;
        };
        meter.watch([0]).unwrap();
        meter.turn();
        let mut before = meter.cpus[&0].all[0];
        for _ in 0..2 {
            std::thread::sleep(100 * PERIOD);
            meter.turn();
            let interrupts = meter.cpus[&0].all[0] - before;
            // A machine that stands still has fewer; another test may have a meter too.
            assert!((20..=1000).contains(&interrupts), "{interrupts} interrupts");
            before += interrupts;
        }
        let held_up = meter.held_up(&first).unwrap();
        assert!(held_up.late_ns >= held_up.times * LEAST.as_nanos() as u64);
        assert_eq!(meter.held_up(&"1000".parse().unwrap()), None);
        assert_eq!(meter.held_up(&"0,1000".parse().unwrap()), None);
    }
}
