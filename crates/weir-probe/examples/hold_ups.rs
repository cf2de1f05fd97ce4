//! What the meter of hold-ups sees on a CPU, and what it costs.
//!
//! ```text
//! hold_ups [CPU [SECONDS]]
//! ```
//!
//! A loop counts on the CPU, 50 ms with the meter and 50 ms without, in the order ABBA. The cost is the difference of
//! the medians of loops per CPU time, so other processes do not matter much.

use std::io::{self, Write};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use weir_probe::{HoldUpMeter, keep_to};

fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Loops per nanosecond of CPU time.
fn speed() -> f64 {
    let (begun, used) = (ns(ClockId::Monotonic), ns(ClockId::ThreadCPUTime));
    let mut rounds = 0_u64;
    while ns(ClockId::Monotonic) < begun + 50_000_000 {
        (0..10_000_u64).for_each(|number| {
            std::hint::black_box(number);
        });
        rounds += 1;
    }
    rounds as f64 / (ns(ClockId::ThreadCPUTime) - used) as f64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let cpu: u32 = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(20), |text| text.parse())?;
    keep_to(None, &[cpu])?;
    let set = cpu.to_string().parse()?;
    let mut speeds = [Vec::new(), Vec::new()];
    let (mut longest_ns, mut count) = (0, 0);
    for round in 0..seconds * 20 {
        let with = matches!(round % 4, 1 | 2);
        let mut meter = match with {
            true => Some(HoldUpMeter::start([cpu])?),
            false => None,
        };
        speeds[usize::from(with)].push(speed());
        if let Some(meter) = &mut meter {
            meter.turn(ns(ClockId::Monotonic));
            let seen = meter.held_up(&set).unwrap_or_default();
            longest_ns = seen.longest_ns.max(longest_ns);
            count += seen.above_1_ms;
        }
    }
    let [without, with] = speeds.map(|mut speeds| {
        speeds.sort_by(f64::total_cmp);
        speeds[speeds.len() / 2]
    });
    let per_s = count as f64 * 2.0 / seconds as f64;
    let longest = Duration::from_nanos(longest_ns);
    let cost = (1.0 - with / without) * 100.0;
    writeln!(
        io::stdout(),
        "CPU {cpu}: {per_s:.2} hold-ups above 1 ms in a second, the longest {longest:.1?}; the meter takes {cost:.2} % of it"
    )?;
    Ok(())
}
