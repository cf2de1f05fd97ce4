//! Choice of the slice length by a pilot, in which every arm has the load before it is measured.
//!
//! Short slices put the two sides of a comparison close together, so that the machine's bursts of noise hit both or
//! become outliers. Longer slices are no quieter: on shared machines, the spread of the log ratios hardly falls with
//! their length. The limit for short slices is the arm's residue: requests that are still in flight when the load moves
//! on take CPU time from the next arm, for about twice as long as they would by themselves. Therefore all arms get a
//! few slices each under the load. The chosen slice is the shortest whose unmeasured first part outlasts twice the
//! residue of the slowest arm.
//!
//! The pilot also shows if the generator is punctual at the load's rate. Where it shares CPUs with the server it may not
//! be, and response times would be about the generator. A rate that may fall is then tried again at half.

use std::time::Duration;

use weir_analysis::{is_generator_late, samples_wanted};
use weir_model::record::{Residue, TrialRecord};
use weir_model::study::{LoadSpec, Metric, Study};

use crate::cell::Block;

/// Slice length of a pilot, and of a study that discards nothing.
pub(crate) const OF_PILOT: Duration = Duration::from_millis(100);

/// Possible lengths of slices, milliseconds. Between 50 and 100 they are close to each other: a saturated proxy with
/// some dozens of connections has a residue of about 4 ms, and 50 ms allow 5.
const LENGTHS_MS: [u64; 9] = [50, 60, 75, 100, 200, 500, 1000, 2000, 4000];

/// Maximum time of a pilot, as a share of its loads' time; it has a block in any case.
const SHARE: f64 = 0.05;
/// Maximum number of blocks of a pilot: every arm has two slices in each.
const MOST_BLOCKS: u32 = 4;

/// Factor from a rate at which the generator is late to the next one.
pub(crate) const FALL: f64 = 0.5;
/// Maximum number of times that a rate falls.
pub(crate) const MOST_FALLS: usize = 3;

/// Unmeasured time for a residue, as a multiple of it.
const OUTLASTS: u32 = 2;

/// Measurements of a pilot.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Residue of each arm.
    pub residues: Vec<Residue>,
    /// True if the generator was not punctual.
    pub is_late: bool,
}

impl Observed {
    pub(crate) fn in_blocks(blocks: &[Block]) -> Observed {
        let trials: Vec<&TrialRecord> = blocks.iter().flatten().collect();
        Observed { residues: find_residues(blocks), is_late: is_generator_late(&trials) }
    }
}

/// Returns the number of blocks of the pilot for a load.
pub(crate) fn blocks(study: &Study, load: &LoadSpec) -> u32 {
    let block = OF_PILOT * 2 * study.arms.len() as u32;
    let fit = load.duration.mul_f64(SHARE).as_secs_f64() / block.as_secs_f64();
    (fit as u32).clamp(1, MOST_BLOCKS)
}

/// Computes each arm's residue from some blocks: how long its requests in flight take after the load has moved on. It
/// is the mean of the service time, which in a closed loop is the response time. By Little's law (Little 1961), an arm
/// that has its CPU to itself finishes the requests in flight within that. If one request in ten takes more than twice
/// as long, the residue is half the time of that one, so that it too is over after `OUTLASTS` residues. The smallest
/// value over the blocks counts, and no higher quantile, because passing hold-ups of the machine should not lengthen
/// slices.
fn find_residues(blocks: &[Block]) -> Vec<Residue> {
    let mut residues: Vec<Residue> = Vec::new();
    for trial in blocks.iter().flatten() {
        let times = match trial.service_time.count {
            0 => &trial.response_time,
            _ => &trial.service_time,
        };
        let ns = (times.mean as u64).max(times.p90 / u64::from(OUTLASTS));
        match residues.iter_mut().find(|known| known.arm == trial.arm) {
            Some(known) => known.ns = known.ns.min(ns),
            None => residues.push(Residue { arm: trial.arm.clone(), ns }),
        }
    }
    residues
}

/// Returns the shortest slice, at least `least`, whose unmeasured part (the share `discard`) outlasts twice the longest
/// residue; if there is none, the longest slice.
pub(crate) fn choose(residues: &[Residue], discard: f64, least: Duration) -> Duration {
    let slowest = residues.iter().map(|residue| residue.ns).max().unwrap_or(0);
    let wanted = Duration::from_nanos(slowest) * OUTLASTS;
    let mut lengths = LENGTHS_MS.map(Duration::from_millis).into_iter();
    let [.., longest] = LENGTHS_MS;
    // A study that discards nothing has said so.
    if discard > 0.0 {
        lengths
            .find(|length| *length >= least && length.mul_f64(discard) >= wanted)
            .unwrap_or(Duration::from_millis(longest))
    } else {
        OF_PILOT
    }
}

/// Returns the shortest slice whose blocks have enough requests for their p99 at `rate`, the lowest that it is for, and
/// at most the pilot's slice. The shorter blocks are, the fewer of them contain a moment in which the machine stood
/// still (docs/statistics.md has figures). Zero for a closed loop, which has no rate.
pub(crate) fn least_slice(rate: Option<f64>, discard: f64) -> Duration {
    let wanted = samples_wanted(Metric::ResponseP99) as f64;
    let mut shorter =
        LENGTHS_MS.map(Duration::from_millis).into_iter().filter(|length| *length < OF_PILOT);
    match rate {
        None => Duration::ZERO,
        Some(rate) => shorter
            .find(|length| 2.0 * rate * length.as_secs_f64() * (1.0 - discard) >= wanted)
            .unwrap_or(OF_PILOT),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::fixture::trial;

    use super::*;

    fn make_block(number: u32, times: [(&str, u64, u64); 2]) -> Block {
        times
            .into_iter()
            .map(|(arm, service_ms, response_ms)| {
                let mut record = trial("l", arm, number);
                record.service_time.mean = service_ms as f64 * 1e6;
                record.service_time.p90 = 3 * service_ms / 2 * 1_000_000;
                record.service_time.count = service_ms;
                // One in ten of the slow ones takes four times as long as the mean.
                record.response_time.mean = response_ms as f64 * 1e6 / 2.0;
                record.response_time.p90 = response_ms * 2_000_000;
                record
            })
            .collect()
    }

    #[test]
    fn the_slice_outlasts_twice_the_residue_of_the_slowest_arm() {
        for (times, discard, wanted) in [
            ([("a", 1, 50), ("b", 5, 50)], 0.2, 50),
            ([("a", 1, 50), ("b", 6, 50)], 0.2, 60),
            ([("a", 1, 50), ("b", 7, 50)], 0.2, 75),
            ([("a", 1, 50), ("b", 10, 50)], 0.2, 100),
            ([("a", 1, 50), ("b", 11, 50)], 0.2, 200),
            // A closed loop has no service time of its own.
            ([("a", 0, 30), ("b", 0, 50)], 0.2, 500),
            ([("a", 0, 30), ("b", 0, 50)], 0.5, 200),
            ([("a", 0, 30), ("b", 0, 50)], 0.0, 100),
            ([("a", 0, 30), ("b", 0, 9_000)], 0.2, 4000),
        ] {
            let residues = find_residues(&[
                make_block(0, [("a", 20_000, 20_000), ("b", 20_000, 20_000)]),
                make_block(1, times),
            ]);
            assert_eq!(residues.len(), 2);
            for (rate, least) in [(None, 0), (Some(12_000.0), 60), (Some(2_000.0), 100)] {
                let least_ms = Duration::from_millis(wanted.max(least));
                let slice = choose(&residues, discard, least_slice(rate, discard));
                // Where nothing is discarded it is the pilot's.
                let length = if discard > 0.0 { least_ms } else { OF_PILOT };
                assert_eq!(slice, length, "{times:?} at {rate:?}");
            }
        }
    }

    #[test]
    fn the_slice_of_an_open_loop_has_the_requests_that_a_p99_needs() {
        assert_eq!(least_slice(None, 0.2).as_millis(), 0, "a closed loop has no rate");
        for (rate, ms) in [
            (20_000.0, 50),
            (12_500.0, 50),
            (12_000.0, 60),
            (10_000.0, 75),
            (8_000.0, 100),
            (100.0, 100),
        ] {
            assert_eq!(least_slice(Some(rate), 0.2).as_millis(), ms, "{rate}");
        }
    }
}
