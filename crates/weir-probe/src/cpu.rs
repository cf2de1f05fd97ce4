//! CPU times, including the time that the hypervisor took.

use std::fs::File;
use std::io;
use std::ops::Sub;
use std::os::unix::fs::FileExt;

use rustix::process::Pid;
use weir_model::quantity::CpuSet;

use crate::ProbeError;

const STAT: &str = "/proc/stat";

/// Buffer space for the line of a CPU: ten counters, enough even if each has twelve digits.
const LINE_BYTES: usize = 160;

/// Pins a thread of this process (`None`: the calling one) to these CPUs, and with it all threads and processes that it
/// starts from now on.
///
/// Numbers that sched_setaffinity(2) has no room for (1024 and above) are treated like CPUs that do not exist: the
/// others are used. CPUs are checked before a run, and one may go offline later; callers that accept any CPU then
/// ignore the error.
///
/// # Errors
/// `EINVAL`: none of the CPUs exists and is allowed. `ESRCH`: there is no such thread.
pub fn keep_to(thread: Option<Pid>, cpus: &[u32]) -> io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    cpus.iter()
        .map(|&cpu| cpu as usize)
        .filter(|cpu| *cpu < rustix::thread::CpuSet::MAX_CPU)
        .for_each(|cpu| set.set(cpu));
    Ok(rustix::thread::sched_setaffinity(thread, &set)?)
}

/// Times since boot, summed over a set of CPUs, in nanoseconds. Only differences of two readings are useful; the kernel
/// counts in clock ticks (10 ms), for each CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Time running anything: user, nice, system, interrupts.
    pub busy_ns: u64,
    /// Time idle, waiting for a disk or not.
    pub idle_ns: u64,
    /// Part of `busy_ns` spent on interrupts, hard and soft. Most of the network's work is there.
    pub irq_ns: u64,
    /// Time ready to run while the hypervisor gave the CPU to another guest.
    pub steal_ns: u64,
}

impl Sub for CpuTimes {
    type Output = CpuTimes;

    /// Returns the difference between two readings. The kernel's idle and iowait counters are known to step back now
    /// and then (proc(5)), so a difference is never below zero.
    fn sub(self, earlier: CpuTimes) -> CpuTimes {
        CpuTimes {
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
            idle_ns: self.idle_ns.saturating_sub(earlier.idle_ns),
            irq_ns: self.irq_ns.saturating_sub(earlier.irq_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
        }
    }
}

/// Reads [`CpuTimes`] of one set of CPUs repeatedly.
#[derive(Debug)]
pub struct CpuTimesReader {
    file: File,
    cpus: CpuSet,
    buffer: Vec<u8>,
    tick_ns: u64,
}

impl CpuTimesReader {
    /// Opens `/proc/stat` for a set of CPUs.
    ///
    /// # Errors
    /// Fails if `/proc` is not mounted, or one of the CPUs is not online.
    pub fn open(cpus: &CpuSet) -> Result<CpuTimesReader, ProbeError> {
        let file = File::open(STAT).map_err(|e| ProbeError::read(STAT, e))?;
        let highest = cpus.cpus().last().copied().unwrap_or(0) as usize;
        let mut reader = CpuTimesReader {
            file,
            cpus: cpus.clone(),
            // The sum over all CPUs comes first, then one line for each CPU that is online. What
            // follows, above all the counts of every interrupt, is not asked for.
            buffer: vec![0; (highest + 2) * LINE_BYTES],
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
        };
        reader.read()?;
        Ok(reader)
    }

    /// Reads the times so far. Takes some ten microseconds on a small machine: the kernel generates the whole file for
    /// every read.
    ///
    /// # Errors
    /// Fails if the kernel refuses the read, or a CPU went offline.
    pub fn read(&mut self) -> Result<CpuTimes, ProbeError> {
        let length =
            self.file.read_at(&mut self.buffer, 0).map_err(|e| ProbeError::read(STAT, e))?;
        sum_ticks(&self.buffer[..length], &self.cpus, self.tick_ns)
    }
}

/// Sums the lines of these CPUs. `stat` may be cut off after the last of them.
fn sum_ticks(stat: &[u8], cpus: &CpuSet, tick_ns: u64) -> Result<CpuTimes, ProbeError> {
    let mut wanted = cpus.cpus().iter().copied().peekable();
    let mut sum = CpuTimes::default();
    for line in stat.split_inclusive(|&byte| byte == b'\n') {
        let Some(&cpu) = wanted.peek() else { break };
        let Some((number, counters)) = split_cpu_line(line) else {
            continue;
        };
        if number != cpu {
            continue;
        }
        let Some([user, nice, system, idle, iowait, irq, softirq, steal]) = parse_ticks(counters)
        else {
            return Err(ProbeError::malformed(STAT, line));
        };
        // `guest` and `guest_nice` follow, and are already in `user` and `nice`.
        sum.busy_ns += (user + nice + system + irq + softirq) * tick_ns;
        sum.idle_ns += (idle + iowait) * tick_ns;
        sum.irq_ns += (irq + softirq) * tick_ns;
        sum.steal_ns += steal * tick_ns;
        wanted.next();
    }
    match wanted.next() {
        Some(cpu) => Err(ProbeError::CpuOffline { cpu }),
        None => Ok(sum),
    }
}

/// Splits the line of a CPU into its number and its counters; `None` for other lines, the sum over all CPUs, and a line
/// that was cut off.
fn split_cpu_line(line: &[u8]) -> Option<(u32, &str)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (number, counters) = line.strip_prefix("cpu")?.split_once(' ')?;
    Some((number.parse().ok()?, counters))
}

fn parse_ticks(counters: &str) -> Option<[u64; 8]> {
    let mut fields = counters.split_ascii_whitespace();
    let mut ticks = [0; 8];
    for tick in &mut ticks {
        *tick = fields.next()?.parse().ok()?;
    }
    Some(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = b"cpu  33 3 3 300 30 3 3 30 0 0\n\
        cpu0 11 1 1 100 10 1 1 10 7 7\n\
        cpu1 1000 1 1 100 10 1 1 10 0 0\n\
        cpu3 22 2 2 200 20 2 2 20 0 0\n\
        intr 5 6 7\n";

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn only_the_cpus_of_the_set_are_summed_and_guest_time_is_not_counted_twice() {
        let sum = sum_ticks(SAMPLE, &set("0,3"), 10).unwrap();
        let expected = CpuTimes {
            busy_ns: (15 + 30) * 10,
            idle_ns: (110 + 220) * 10,
            irq_ns: (2 + 4) * 10,
            steal_ns: (10 + 20) * 10,
        };
        assert_eq!(sum, expected);
    }

    #[test]
    fn a_cpu_that_is_offline_is_named() {
        let error = sum_ticks(SAMPLE, &set("0-2"), 10).unwrap_err();
        assert_eq!(error.to_string(), "CPU 2 is not online");
    }

    #[test]
    fn a_line_that_was_cut_off_does_not_count() {
        let cut = &SAMPLE[..SAMPLE.len() - b"0\nintr 5 6 7\n".len()];
        assert!(sum_ticks(cut, &set("3"), 10).is_err());
        assert!(sum_ticks(cut, &set("0-1"), 10).is_ok());
    }

    #[test]
    fn a_thread_runs_where_it_is_kept_and_numbers_without_a_cpu_are_left_out() {
        let allowed = crate::allowed_cpus().unwrap();
        let (first, no_room) = (allowed.cpus()[0], 1 << 20);
        keep_to(None, &[first, no_room]).unwrap();
        assert_eq!(crate::allowed_cpus().unwrap().cpus(), [first]);
        for none in [&[][..], &[no_room], &[1023]] {
            let error = keep_to(None, none).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{none:?}");
            assert_eq!(crate::allowed_cpus().unwrap().cpus(), [first], "{none:?}");
        }
        // Other tests may run on this thread after this one.
        keep_to(None, allowed.cpus()).unwrap();
    }

    #[test]
    fn a_counter_that_steps_back_is_no_time() {
        assert_eq!(cpu_times(9, 6, 1) - cpu_times(5, 7, 0), cpu_times(4, 0, 1));
    }

    fn cpu_times(busy_ns: u64, idle_ns: u64, steal_ns: u64) -> CpuTimes {
        CpuTimes { busy_ns, idle_ns, irq_ns: 0, steal_ns }
    }
}
