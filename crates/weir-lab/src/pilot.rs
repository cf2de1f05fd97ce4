//! The choice of the slice: which length gives the narrowest interval for the same time?
//!
//! Short slices put the two sides of a comparison close together, so that the machine's bursts of
//! noise hit both or fall out as outliers; each costs its discarded first part, and tells less
//! about slow effects. What is best depends on the machine, so it is tried: the first two arms
//! (the baseline and, where the study has one, its twin) take turns for a few seconds with each
//! candidate, and the spread of the log ratios of neighbouring slices says how wide the interval
//! would be after a minute.

use std::time::Duration;

use weir_model::record::{PilotCandidate, SliceRecord};
use weir_stats::qn;

use crate::cell::Block;

/// Lengths that are tried, in this order: what has most often been best comes first.
pub(crate) const CANDIDATES_MS: [u64; 5] = [100, 50, 250, 500, 1000];

/// How long each is tried at least.
pub(crate) const TRY: Duration = Duration::from_secs(4);

/// Blocks that each is tried for at least.
pub(crate) const AT_LEAST_BLOCKS: u32 = 4;

/// A challenger must promise an interval narrower by this factor: the first candidate has experience
/// on its side.
const CLEARLY_NARROWER: f64 = 0.85;

/// How sure that promise must be, as a quantile of the normal distribution: one-sided 99 %, because
/// several candidates have their chance.
const SURE: f64 = 2.326;

/// What the pilot compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Completed rate, in a closed loop.
    Rate,
    /// CPU time per request, in an open loop, where the rate is given.
    CpuPerRequest,
}

impl Quantity {
    fn of(self, slice: &SliceRecord) -> f64 {
        match self {
            Quantity::Rate => slice.completed as f64 / slice.measured_ns.max(1) as f64,
            Quantity::CpuPerRequest => slice.proxy_cpu_ns as f64 / slice.completed_whole as f64,
        }
    }
}

/// Log ratios of neighbouring slices of the two arms: two for each block.
pub(crate) fn log_ratios(block: &Block, quantity: Quantity) -> Vec<f64> {
    let [a, b] = &block[..] else {
        return Vec::new();
    };
    // ABBA: the first slices of both arms are neighbours, and so are the second ones.
    let pairs = a.slices.iter().zip(&b.slices);
    pairs
        .map(|(a, b)| (quantity.of(b) / quantity.of(a)).ln())
        .filter(|ratio| ratio.is_finite())
        .collect()
}

/// Whether responses fit into a slice: those to requests that were sent in the arm's slice before are
/// over when the measured part begins. Otherwise what is measured is a queue that fills and empties.
pub(crate) fn fits(slice: Duration, discard: f64, response: Option<Duration>) -> bool {
    response.is_some_and(|response| response <= slice.mul_f64(discard))
}

/// The mean time that the requests of some blocks took; `None`: nothing was answered.
pub(crate) fn mean_response_time(blocks: &[Block]) -> Option<Duration> {
    let times = blocks.iter().flatten().map(|trial| &trial.response_time);
    let (sum_ns, count) = times.fold((0.0, 0), |(sum, count), times| {
        (sum + times.mean * times.count as f64, count + times.count)
    });
    (count > 0).then(|| Duration::from_nanos((sum_ns / count as f64) as u64))
}

/// What a candidate promises. `fits`: see [`fits`].
pub(crate) fn judge(
    slice: Duration,
    blocks: u32,
    log_ratios: &[f64],
    fits: bool,
) -> PilotCandidate {
    // Qn is robust against bursts; a handful of values has no spread to speak of.
    let sd = qn(log_ratios)
        .filter(|sd| *sd > 0.0)
        .unwrap_or(f64::INFINITY);
    let per_minute = 60.0 / (2.0 * slice.as_secs_f64());
    PilotCandidate {
        slice_ns: slice.as_nanos() as u64,
        blocks,
        too_short: !fits,
        // JSON has no infinity.
        sd_log_ratio: sd.min(f64::from(f32::MAX)),
        half_width_per_minute: (1.96 * sd / per_minute.sqrt()).min(f64::from(f32::MAX)),
    }
}

/// The candidate to take: of those that responses fit into, or else the longest.
pub(crate) fn choose(candidates: &[PilotCandidate]) -> Option<&PilotCandidate> {
    let fitting = candidates.iter().filter(|candidate| !candidate.too_short);
    let best = fitting.reduce(|best, challenger| {
        let limit = best.half_width_per_minute * CLEARLY_NARROWER;
        if at_worst(challenger) < limit {
            challenger
        } else {
            best
        }
    });
    best.or_else(|| candidates.iter().max_by_key(|candidate| candidate.slice_ns))
}

/// The half-width that a candidate may really have: the spread of few values comes out too small as
/// easily as too large. A standard deviation of n values is known to about 1/√(2(n−1)) of itself.
fn at_worst(candidate: &PilotCandidate) -> f64 {
    let pairs = 2.0 * f64::from(candidate.blocks);
    candidate.half_width_per_minute * (1.0 + SURE / (2.0 * (pairs - 1.0).max(1.0)).sqrt())
}

/// Whether trying still longer slices is a waste: the last two were both worse than the best.
pub(crate) fn settled(candidates: &[PilotCandidate]) -> bool {
    let fitting: Vec<PilotCandidate> = candidates
        .iter()
        .filter(|c| !c.too_short)
        .cloned()
        .collect();
    let Some(best) = choose(&fitting) else {
        return false;
    };
    let worse = |c: &PilotCandidate| c.half_width_per_minute > best.half_width_per_minute;
    fitting.len() >= 3 && fitting.iter().rev().take(2).all(worse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(ms: u64, half_width: f64) -> PilotCandidate {
        PilotCandidate {
            slice_ns: ms * 1_000_000,
            blocks: 10,
            sd_log_ratio: 0.1,
            too_short: false,
            half_width_per_minute: half_width,
        }
    }

    #[test]
    fn a_challenger_must_be_clearly_narrower() {
        let near = [candidate(100, 0.02), candidate(50, 0.018)];
        assert_eq!(choose(&near).map(|c| c.slice_ns), Some(100_000_000));
        let clear = [
            candidate(100, 0.02),
            candidate(50, 0.018),
            candidate(250, 0.01),
        ];
        assert_eq!(choose(&clear).map(|c| c.slice_ns), Some(250_000_000));
        // Four blocks are eight pairs: their spread may be a third too small by chance alone.
        let mut few = candidate(250, 0.014);
        few.blocks = 4;
        let lucky = [candidate(100, 0.02), few];
        assert_eq!(choose(&lucky).map(|c| c.slice_ns), Some(100_000_000));
    }

    #[test]
    fn responses_must_fit_into_the_part_that_is_not_measured() {
        let ms = Duration::from_millis;
        assert!(fits(ms(100), 0.2, Some(ms(20))));
        assert!(!fits(ms(100), 0.2, Some(ms(21))));
        assert!(!fits(ms(100), 0.2, None), "nothing was answered");
        let too_short = |ms, half_width| PilotCandidate {
            too_short: true,
            ..candidate(ms, half_width)
        };
        let mut tried = vec![too_short(100, 0.01), too_short(50, 0.01)];
        tried.push(too_short(250, 0.02));
        assert!(!settled(&tried));
        assert_eq!(choose(&tried).map(|c| c.slice_ns), Some(250_000_000));
        tried.push(candidate(500, 0.05));
        assert_eq!(choose(&tried).map(|c| c.slice_ns), Some(500_000_000));
    }

    #[test]
    fn longer_slices_are_not_tried_when_two_were_worse() {
        let mut tried = vec![candidate(100, 0.02), candidate(50, 0.03)];
        assert!(!settled(&tried));
        tried.push(candidate(250, 0.04));
        assert!(settled(&tried));
    }

    #[test]
    fn the_promise_follows_from_spread_and_number() {
        let ratios: Vec<f64> = (0..40).map(|i| f64::from(i) / 400.0).collect();
        let short = judge(Duration::from_millis(50), 20, &ratios, true);
        let long = judge(Duration::from_millis(200), 20, &ratios, true);
        assert!((long.half_width_per_minute / short.half_width_per_minute - 2.0).abs() < 1e-9);
    }
}
