//! Moments in which a CPU stood still: the hypervisor, or the firmware below it, ran something else.
//!
//! A timer interrupt on the CPU is due every [`PERIOD`]; one that comes late tells of a hold-up. It is the
//! kernel's software event `cpu-clock` (perf_event_open(2)) that leaves a time stamp in a ring buffer at each
//! interrupt: no thread is woken, and neither the scheduler nor the arms' load make it late. A thread with
//! ordinary priority is late whenever its CPU is busy, and would tell of the arm instead of the machine. Steal
//! (proc_stat(5)) is of no use: many hypervisors leave it at 0.
//!
//! How late an interrupt is, is the rest of the hold-up from when it was due on: one of length `L` is seen as
//! longer than `t` with a probability of `(L - t) / PERIOD`, and always from `PERIOD + t` on. So of hold-ups of
//! 1 ms three quarters are not seen as longer than 0.5 ms, and of 2 ms one quarter.
#![allow(unsafe_code, reason = "each block says why it is sound")]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use weir_model::quantity::CpuSet;
use weir_model::record::HeldUp;

use crate::ProbeError;

/// Time from one interrupt to the next. Each takes some 15 µs of a CPU of a virtual machine, so all take less
/// than one per cent.
pub const PERIOD: Duration = Duration::from_millis(2);

/// Bytes for time stamps, 16 for each: half a minute.
const RING_BYTES: usize = 1 << 18;
/// How late or early an interrupt may be that counts as punctual.
const PUNCTUAL_NS: u64 = 50_000;
/// From when on hold-ups are counted.
const COUNTED_NS: u64 = 1_000_000;

/// Meters of a set of CPUs.
#[derive(Debug, Default)]
pub struct HoldUpMeter {
    cpus: BTreeMap<u32, CpuMeter>,
}

impl HoldUpMeter {
    /// Starts to watch these CPUs.
    ///
    /// # Errors
    /// It takes CAP_PERFMON or kernel.perf_event_paranoid of 0 or less, and a kernel with perf events; or a CPU
    /// is not online.
    pub fn start(cpus: impl IntoIterator<Item = u32>) -> Result<HoldUpMeter, ProbeError> {
        let mut meter = HoldUpMeter::default();
        for cpu in cpus {
            if let Entry::Vacant(vacant) = meter.cpus.entry(cpu) {
                vacant.insert(CpuMeter::start(cpu)?);
            }
        }
        Ok(meter)
    }

    /// Ends a stretch of time at this moment of CLOCK_MONOTONIC and begins the next.
    pub fn turn(&mut self, now_ns: u64) {
        for cpu in self.cpus.values_mut() {
            cpu.read();
            cpu.latest = cpu.gaps.turn(now_ns);
        }
    }

    /// The worst of these CPUs in the stretch that ended last; `None` where one of them is not watched.
    pub fn held_up(&self, cpus: &CpuSet) -> Option<HeldUp> {
        let each = cpus.cpus().iter().map(|cpu| self.cpus.get(cpu));
        let each = each.map(|meter| meter.map(|meter| meter.latest));
        each.reduce(|sum, one| Some(sum?.and(one?))).flatten()
    }
}

/// The meter of one CPU.
#[derive(Debug)]
struct CpuMeter {
    /// Holds the event.
    _event: OwnedFd,
    ring: Ring,
    gaps: Gaps,
    latest: HeldUp,
}

impl CpuMeter {
    fn start(cpu: u32) -> Result<CpuMeter, ProbeError> {
        let refused = |error| ProbeError::read(format!("the timer of CPU {cpu}"), error);
        let event = open_event(cpu).map_err(refused)?;
        Ok(CpuMeter {
            ring: Ring::map(&event).map_err(|e| refused(e.into()))?,
            _event: event,
            gaps: Gaps::default(),
            latest: HeldUp::default(),
        })
    }

    fn read(&mut self) {
        let gaps = &mut self.gaps;
        self.ring.read(|time| match time {
            Some(ns) => gaps.interrupt(ns),
            None => gaps.last_ns = None,
        });
    }
}

/// What follows from the times of interrupts.
#[derive(Debug, Default)]
struct Gaps {
    last_ns: Option<u64>,
    held_up: HeldUp,
}

impl Gaps {
    /// How late an interrupt is that has not come, or comes now.
    fn late_ns(&self, now_ns: u64) -> u64 {
        let since = self.last_ns.map_or(0, |last| now_ns.saturating_sub(last));
        since.saturating_sub(PERIOD.as_nanos() as u64)
    }

    fn interrupt(&mut self, at_ns: u64) {
        let period_ns = PERIOD.as_nanos() as u64;
        let mut late_ns = self.late_ns(at_ns);
        // Punctual, and the one before is missing: the kernel leaves some out, of which it is not known how late
        // they were.
        if late_ns % period_ns < PUNCTUAL_NS || late_ns % period_ns > period_ns - PUNCTUAL_NS {
            late_ns = late_ns.saturating_sub(period_ns);
        }
        self.held_up.longest_ns = self.held_up.longest_ns.max(late_ns);
        self.held_up.above_1_ms += u64::from(late_ns > COUNTED_NS);
        self.last_ns = Some(at_ns);
    }

    /// What was seen up to now. A hold-up that goes on belongs to both stretches, and is counted where it ends.
    fn turn(&mut self, now_ns: u64) -> HeldUp {
        let mut ended = std::mem::take(&mut self.held_up);
        ended.longest_ns = ended.longest_ns.max(self.late_ns(now_ns));
        ended
    }
}

/// Opens the event on a CPU; it runs from then on.
fn open_event(cpu: u32) -> std::io::Result<OwnedFd> {
    // `struct perf_event_attr` of 112 bytes (PERF_ATTR_SIZE_VER5), as words.
    let mut attributes = [0_u64; 14];
    // type: PERF_TYPE_SOFTWARE; size.
    attributes[0] = 1 | (size_of_val(&attributes) as u64) << 32;
    // config stays 0, PERF_COUNT_SW_CPU_CLOCK; sample_period.
    attributes[2] = PERIOD.as_nanos() as u64;
    // sample_type: PERF_SAMPLE_TIME.
    attributes[3] = 1 << 2;
    // pinned, watermark, use_clockid.
    attributes[5] = 1 << 2 | 1 << 14 | 1 << 25;
    // wakeup_watermark: nobody waits.
    attributes[6] = u64::from(u32::MAX);
    // clockid, above sample_stack_user.
    attributes[11] = (libc::CLOCK_MONOTONIC as u64) << 32;
    /// PERF_FLAG_FD_CLOEXEC.
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
    let (any_process, no_group) = (-1, -1);
    // SAFETY: the kernel reads as many bytes of `attributes` as they say, while the call lasts.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            any_process,
            cpu,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    match opened {
        -1 => Err(std::io::Error::last_os_error()),
        // SAFETY: a descriptor that the kernel has just given, and that nobody else knows.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) }),
    }
}

/// The buffer that the kernel writes records to: a page about it, and the records.
#[derive(Debug)]
struct Ring {
    words: &'static [AtomicU64],
    /// Words of the first page.
    page: usize,
}

impl Ring {
    /// `data_head` and `data_tail` of `struct perf_event_mmap_page`, in words.
    const HEAD: usize = 128;
    const TAIL: usize = 129;
    /// PERF_RECORD_SAMPLE.
    const SAMPLE: u32 = 9;

    fn map(event: impl AsFd) -> rustix::io::Result<Ring> {
        let page = rustix::param::page_size();
        let length = page + RING_BYTES;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let anywhere = std::ptr::null_mut();
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { mmap(anywhere, length, access, MapFlags::SHARED, event, 0) }?;
        // SAFETY: the mapping is aligned to a page, as long as said, and stays until this is dropped. The
        // kernel writes to it meanwhile, which atomics allow for.
        let words = unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), length / 8) };
        Ok(Ring {
            words,
            page: page / 8,
        })
    }

    /// Hands on the time of each interrupt since the last call; `None` where some are missing.
    fn read(&self, mut tell: impl FnMut(Option<u64>)) {
        let records = &self.words[self.page..];
        let word = |byte: u64| {
            let place = (byte / 8) as usize % records.len();
            records[place].load(Ordering::Relaxed)
        };
        let head = self.words[Ring::HEAD].load(Ordering::Acquire);
        let mut tail = self.words[Ring::TAIL].load(Ordering::Relaxed);
        while tail < head {
            // type (32 bits), misc (16), size (16).
            let header = word(tail);
            tell((header as u32 == Ring::SAMPLE).then(|| word(tail + 8)));
            tail += (header >> 48).max(8);
        }
        self.words[Ring::TAIL].store(tail, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let start = self.words.as_ptr().cast_mut().cast();
        // SAFETY: the mapping that `map` made; nobody has its words any more. It cannot fail: address and
        // length are those of a mapping.
        let _ = unsafe { munmap(start, size_of_val(self.words)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn an_interrupt_that_comes_late_is_a_hold_up_of_the_stretch_in_which_the_cpu_stood_still() {
        // Times of interrupts and of the end of the stretch in tenths of milliseconds; the longest, and how many
        // above 1 ms.
        let rows: [(&[u64], u64, (u64, u64)); 7] = [
            (&[], 100, (0, 0)),
            (&[10, 30, 50, 70], 80, (0, 0)),
            (&[10, 30, 65, 70], 80, (15, 1)),
            (&[10, 38, 50, 70, 105], 110, (15, 1)),
            (&[10, 50, 70, 110], 115, (0, 0)),
            (&[10, 70, 110, 141], 150, (20, 2)),
            // It goes on.
            (&[10, 30], 90, (40, 0)),
        ];
        for (interrupts, end, (longest, count)) in rows {
            let mut gaps = Gaps::default();
            interrupts
                .iter()
                .for_each(|at| gaps.interrupt(at * MS / 10));
            let seen = HeldUp {
                longest_ns: longest * MS / 10,
                above_1_ms: count,
            };
            assert_eq!(gaps.turn(end * MS / 10), seen, "{interrupts:?}");
            // The next stretch begins with nothing, but for what goes on.
            let last = interrupts.last().copied().unwrap_or(end).max(end - 20);
            assert_eq!(gaps.turn(last * MS / 10).above_1_ms, 0);
        }
    }

    #[test]
    fn interrupts_come_on_a_cpu_and_cpus_that_are_not_watched_are_unknown() {
        // Not those that are allowed: another test keeps its thread to fewer for a while.
        let first: CpuSet = "0".parse().unwrap();
        let mut meter = match HoldUpMeter::start([0]) {
            Ok(meter) => meter,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        std::thread::sleep(100 * PERIOD);
        let mut seen = 0;
        for cpu in meter.cpus.values_mut() {
            let mut times = Vec::new();
            cpu.ring.read(|time| times.extend(time));
            assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
            // A machine that stands still has fewer.
            seen = seen.max(times.len());
        }
        assert!((20..=1000).contains(&seen), "{seen} interrupts");
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        meter.turn(now.tv_sec as u64 * 1000 * MS + now.tv_nsec as u64);
        assert!(meter.held_up(&first).is_some());
        assert_eq!(meter.held_up(&"1000".parse().unwrap()), None);
    }
}
