//! The choice of the slice, and what every arm goes through before it is measured.
//!
//! Short slices put the two sides of a comparison close together, so that the machine's bursts of noise hit
//! both or fall out as outliers, and longer ones are no quieter: on shared machines the spread of the log
//! ratios hardly falls with their length. What speaks against a short one is its arm's residue: what is still
//! on its way when the load moves on takes CPU time from the next arm for about twice as long as it takes by
//! itself. So all arms, and not only some, get a few slices each under the load, and the slice is the
//! shortest whose first part, which is not measured, outlasts twice the residue of the slowest.

use std::time::Duration;

use weir_analysis::samples_wanted;
use weir_model::record::{Residue, TrialRecord};
use weir_model::study::{LoadSpec, Metric, Study};

use crate::cell::Block;

/// The slice that a pilot has, which is also that of a study that discards nothing.
pub(crate) const OF_PILOT: Duration = Duration::from_millis(100);

/// Lengths of slices, milliseconds. Between 50 and 100 they are close to each other: a saturated proxy with some dozens
/// of connections has a residue of about 4 ms, and 50 ms allow 5.
const LENGTHS_MS: [u64; 9] = [50, 60, 75, 100, 200, 500, 1000, 2000, 4000];

/// Share of the loads that it is for that a pilot may take; it has a block in any case.
const SHARE: f64 = 0.05;
/// Blocks of a pilot at most: every arm has two slices in each.
const MOST_BLOCKS: u32 = 4;

/// Unmeasured time that a residue takes, in residues.
const OUTLASTS: u32 = 2;

/// Blocks of the pilot for a load.
pub(crate) fn blocks(study: &Study, load: &LoadSpec) -> u32 {
    let block = OF_PILOT * 2 * study.arms.len() as u32;
    let fit = load.duration.mul_f64(SHARE).as_secs_f64() / block.as_secs_f64();
    (fit as u32).clamp(1, MOST_BLOCKS)
}

/// How long what an arm has in flight stays behind, for each arm of some blocks: the mean of the service time, which
/// in a closed loop is the response time. By Little's law (Little 1961) the requests in flight of an arm that has its
/// CPU to itself are done after that. Where one in ten takes more than twice as long, half of what it takes, so that
/// it too is over when `OUTLASTS` residues are. The smallest over the blocks, and no higher quantile, because the
/// machine's hold-ups, which pass, are not to make slices long.
pub(crate) fn residues(blocks: &[Block]) -> Vec<Residue> {
    let of = |trial: &TrialRecord| {
        let times = match trial.service_time.count {
            0 => &trial.response_time,
            _ => &trial.service_time,
        };
        (times.mean as u64).max(times.p90 / u64::from(OUTLASTS))
    };
    let mut residues: Vec<Residue> = Vec::new();
    for trial in blocks.iter().flatten() {
        let ns = of(trial);
        match residues.iter_mut().find(|known| known.arm == trial.arm) {
            Some(known) => known.ns = known.ns.min(ns),
            None => residues.push(Residue {
                arm: trial.arm.clone(),
                ns,
            }),
        }
    }
    residues
}

/// The shortest slice, at least `least`, whose unmeasured part, a share of it, outlasts twice the longest residue; else
/// the longest.
pub(crate) fn choose(residues: &[Residue], discard: f64, least: Duration) -> Duration {
    let slowest = residues.iter().map(|residue| residue.ns).max().unwrap_or(0);
    let wanted = Duration::from_nanos(slowest) * OUTLASTS;
    let mut lengths = LENGTHS_MS.map(Duration::from_millis).into_iter();
    let fits = |length: &Duration| *length >= least && length.mul_f64(discard) >= wanted;
    let [.., longest] = LENGTHS_MS;
    // A study that discards nothing has said so.
    match discard > 0.0 {
        true => lengths.find(fits).unwrap_or(Duration::from_millis(longest)),
        false => OF_PILOT,
    }
}

/// The shortest slice whose blocks have requests enough for their p99 at the lowest `rate` that it is for, and no longer
/// than the pilot's. The shorter a block is, the fewer of them have a moment in which the machine stood still
/// (docs/statistics.md has figures). A closed loop, which has no rate, needs none.
pub(crate) fn least_slice(rate: Option<f64>, discard: f64) -> Duration {
    let wanted = samples_wanted(Metric::ResponseP99) as f64;
    let lengths = LENGTHS_MS.map(Duration::from_millis).into_iter();
    let mut shorter = lengths.filter(|length| *length < OF_PILOT);
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

    #[test]
    fn the_slice_outlasts_twice_the_residue_of_the_slowest_arm() {
        let block = |number, times: [(&str, u64, u64); 2]| -> Block {
            let arms = times.into_iter();
            arms.map(|(arm, service_ms, response_ms)| {
                let mut trial = trial("l", arm, number);
                trial.service_time.mean = service_ms as f64 * 1e6;
                trial.service_time.p90 = 3 * service_ms / 2 * 1_000_000;
                trial.service_time.count = service_ms;
                // One in ten of the slow ones takes four times as long as the mean.
                trial.response_time.mean = response_ms as f64 * 1e6 / 2.0;
                trial.response_time.p90 = response_ms * 2_000_000;
                trial
            })
            .collect()
        };
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
            let residues = residues(&[
                block(0, [("a", 20_000, 20_000), ("b", 20_000, 20_000)]),
                block(1, times),
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
        let least = |rate| least_slice(rate, 0.2).as_millis();
        assert_eq!(least(None), 0, "a closed loop has no rate");
        for (rate, ms) in [
            (20_000.0, 50),
            (12_500.0, 50),
            (12_000.0, 60),
            (10_000.0, 75),
            (8_000.0, 100),
            (100.0, 100),
        ] {
            assert_eq!(least(Some(rate)), ms, "{rate}");
        }
    }
}
