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

use crate::measure::FinishedBlock;

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
pub(crate) fn log_ratios(block: &FinishedBlock, quantity: Quantity) -> Vec<f64> {
    let [a, b] = &block.arms[..] else {
        return Vec::new();
    };
    // ABBA: the first slices of both arms are neighbours, and so are the second ones.
    let pairs = a.slices.iter().zip(&b.slices);
    pairs
        .map(|(a, b)| (quantity.of(b) / quantity.of(a)).ln())
        .filter(|ratio| ratio.is_finite())
        .collect()
}

/// What a candidate promises.
pub(crate) fn judge(slice: Duration, blocks: u32, log_ratios: &[f64]) -> PilotCandidate {
    // Qn is robust against bursts; a handful of values has no spread to speak of.
    let sd = qn(log_ratios)
        .filter(|sd| *sd > 0.0)
        .unwrap_or(f64::INFINITY);
    let per_minute = 60.0 / (2.0 * slice.as_secs_f64());
    PilotCandidate {
        slice_ns: slice.as_nanos() as u64,
        blocks,
        // JSON has no infinity.
        sd_log_ratio: sd.min(f64::from(f32::MAX)),
        half_width_per_minute: (1.96 * sd / per_minute.sqrt()).min(f64::from(f32::MAX)),
    }
}

/// The candidate to take.
pub(crate) fn choose(candidates: &[PilotCandidate]) -> Option<&PilotCandidate> {
    candidates.iter().reduce(|best, challenger| {
        let limit = best.half_width_per_minute * CLEARLY_NARROWER;
        if at_worst(challenger) < limit {
            challenger
        } else {
            best
        }
    })
}

/// The half-width that a candidate may really have: the spread of few values comes out too small as
/// easily as too large. A standard deviation of n values is known to about 1/√(2(n−1)) of itself.
fn at_worst(candidate: &PilotCandidate) -> f64 {
    let pairs = 2.0 * f64::from(candidate.blocks);
    candidate.half_width_per_minute * (1.0 + SURE / (2.0 * (pairs - 1.0).max(1.0)).sqrt())
}

/// Whether trying still longer slices is a waste: the last two were both worse than the best.
pub(crate) fn settled(candidates: &[PilotCandidate]) -> bool {
    let Some(best) = choose(candidates) else {
        return false;
    };
    let worse = |c: &PilotCandidate| c.half_width_per_minute > best.half_width_per_minute;
    candidates.len() >= 3 && candidates.iter().rev().take(2).all(worse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(ms: u64, half_width: f64) -> PilotCandidate {
        PilotCandidate {
            slice_ns: ms * 1_000_000,
            blocks: 10,
            sd_log_ratio: 0.1,
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
    fn longer_slices_are_not_tried_when_two_were_worse() {
        let mut tried = vec![candidate(100, 0.02), candidate(50, 0.03)];
        assert!(!settled(&tried));
        tried.push(candidate(250, 0.04));
        assert!(settled(&tried));
    }

    #[test]
    fn the_promise_follows_from_spread_and_number() {
        let ratios: Vec<f64> = (0..40).map(|i| f64::from(i) / 400.0).collect();
        let short = judge(Duration::from_millis(50), 20, &ratios);
        let long = judge(Duration::from_millis(200), 20, &ratios);
        assert!((long.half_width_per_minute / short.half_width_per_minute - 2.0).abs() < 1e-9);
    }
}
