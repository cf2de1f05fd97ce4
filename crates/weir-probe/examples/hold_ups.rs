//! Measures the hold-ups of a CPU, the cost of the meter, and whether a thread that requests a wake-up each millisecond
//! observes the same hold-ups.
//!
//! ```text
//! hold_ups cost CPU SECONDS
//! chrt -f 50 hold_ups beside CPU SECONDS
//! ```
//!
//! The cost: a loop counts on the CPU, 50 ms with the meter and 50 ms without, in the order ABBA. The cost is the
//! difference of the medians of loops per CPU time, so other processes do not matter much.

use std::io::{self, Write};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use weir_probe::{HoldUpMeter, keep_to};

type Failure = Box<dyn std::error::Error>;

/// Nanoseconds per millisecond.
const MS: u64 = 1_000_000;
/// Length of a slice of time, nanoseconds.
const SLICE: u64 = 100 * MS;

fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Loops per nanosecond of CPU time.
fn speed() -> f64 {
    let (begun, used) = (ns(ClockId::Monotonic), ns(ClockId::ThreadCPUTime));
    let mut rounds = 0_u64;
    while ns(ClockId::Monotonic) < begun + 50 * MS {
        (0..10_000_u64).for_each(|number| {
            std::hint::black_box(number);
        });
        rounds += 1;
    }
    rounds as f64 / (ns(ClockId::ThreadCPUTime) - used) as f64
}

/// Measures the share of the CPU that the meter takes.
fn cost(cpu: u32, seconds: u64) -> Result<String, Failure> {
    let mut speeds = [Vec::new(), Vec::new()];
    for round in 0..seconds * 20 {
        let with = matches!(round % 4, 1 | 2);
        let mut meter = HoldUpMeter::default();
        meter.watch(with.then_some(cpu))?;
        speeds[usize::from(with)].push(speed());
        drop(meter);
    }
    let [without, with] = speeds.map(|mut speeds| {
        speeds.sort_by(f64::total_cmp);
        speeds[speeds.len() / 2]
    });
    let cost = (1.0 - with / without) * 100.0;
    Ok(format!("CPU {cpu}: the meter takes {cost:.2} % of it"))
}

/// Returns the longest lateness of this thread until `end`, in nanoseconds, with a wake-up requested each millisecond.
fn latest(end: u64) -> u64 {
    let mut worst = 0;
    loop {
        let due = ns(ClockId::Monotonic) + MS;
        std::thread::sleep(Duration::from_nanos(MS));
        let now = ns(ClockId::Monotonic);
        worst = worst.max(now.saturating_sub(due));
        if now >= end {
            return worst;
        }
    }
}

/// Counts the slices in which the thread, the meter or both were held up for more than 1 ms.
fn beside(cpu: u32, seconds: u64) -> Result<String, Failure> {
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
    let set = cpu.to_string().parse()?;
    let mut meter = HoldUpMeter::default();
    meter.watch([cpu])?;
    meter.turn();
    let (mut both, mut thread, mut only_meter) = (0, 0, 0);
    let mut lines = String::new();
    for _ in 0..seconds * 1000 * MS / SLICE {
        let late = latest(ns(ClockId::Monotonic) + SLICE);
        meter.turn();
        let meter_ns = meter.held_up(&set).unwrap_or_default().late_ns;
        both += u32::from(late > MS && meter_ns > MS);
        thread += u32::from(late > MS && meter_ns <= MS);
        only_meter += u32::from(late <= MS && meter_ns > MS);
        if late.max(meter_ns) > MS / 2 {
            lines += &format!(
                "  thread {:.2} ms, meter {:.2} ms\n",
                late as f64 / 1e6,
                meter_ns as f64 / 1e6
            );
        }
    }
    Ok(format!(
        "{lines}CPU {cpu}: slices held up for more than 1 ms: by both {both}, by the thread {thread}, by the meter {only_meter}"
    ))
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let cpu: u32 = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(20), |text| text.parse())?;
    keep_to(None, &[cpu])?;
    let output = match &*mode {
        "beside" => beside(cpu, seconds)?,
        _ => cost(cpu, seconds)?,
    };
    writeln!(io::stdout(), "{output}")?;
    Ok(())
}
