//! Verdicts on intervals, by one rule for all metrics.

/// Minimum number of replicates for a claim: the exact test of five cannot reach p = 0.05.
pub const LEAST_REPLICATES: usize = 6;

/// Returns the number of replicates from which on a difference can be shown at all among this many `comparisons`: the
/// exact test of n replicates has no p below 2^(1 - n), which Holm's correction multiplies by the number of
/// comparisons.
pub fn least_replicates(comparisons: usize, confidence: f64) -> usize {
    let most = (1.0 - confidence + 1e-12) / comparisons.max(1) as f64;
    LEAST_REPLICATES.max((1.0 - most.log2()).ceil() as usize)
}

/// Statistical evidence about one ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Interval of the ratio.
    pub interval: (f64, f64),
    /// Actual confidence of the interval.
    pub confidence: f64,
    /// p of the test against a ratio of 1, corrected for the other comparisons.
    pub p: f64,
    /// Number of replicates.
    pub n: usize,
}

/// Verdict on a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Better, by more than chance explains.
    Better,
    /// Worse, by more than chance explains.
    Worse,
    /// The whole interval lies in the band of irrelevant differences.
    Equivalent,
    /// None of the other verdicts.
    Inconclusive,
}

/// Applies the rule for verdicts. `band` is the half-width of the band around 1 in which a difference does not matter
/// (0.02: 0.98 to 1.02, ends included); `confidence` is the requested one.
///
/// - Fewer than [`LEAST_REPLICATES`]: inconclusive, whatever the values.
/// - Interval inside the band with the requested confidence: equivalent, even when it excludes 1. A
///   difference that is certain and does not matter is one that does not matter.
/// - Interval without 1 and corrected p at most 1 - confidence: better or worse.
/// - Else inconclusive.
pub fn verdict(evidence: &Evidence, band: f64, confidence: f64, higher_is_better: bool) -> Outcome {
    let (low, high) = evidence.interval;
    if evidence.n < LEAST_REPLICATES {
        return Outcome::Inconclusive;
    }
    // Confidences are compared as typed (0.95), not as rounded by the arithmetic before.
    let sure = evidence.confidence >= confidence - 1e-12;
    if sure && low >= 1.0 - band && high <= 1.0 + band {
        return Outcome::Equivalent;
    }
    if evidence.p > 1.0 - confidence + 1e-12 {
        return Outcome::Inconclusive;
    }
    match (low > 1.0, high < 1.0) {
        (true, _) if higher_is_better => Outcome::Better,
        (_, true) if !higher_is_better => Outcome::Better,
        (false, false) => Outcome::Inconclusive,
        _ => Outcome::Worse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(interval: (f64, f64), p: f64, n: usize, higher_is_better: bool) -> Outcome {
        let evidence = Evidence { interval, confidence: 0.955, p, n };
        verdict(&evidence, 0.02, 0.95, higher_is_better)
    }

    #[test]
    fn the_least_replicates_follow_from_the_comparisons() {
        let table = [(0, 6), (1, 6), (2, 7), (6, 8), (10, 9), (28, 11)];
        for (comparisons, least) in table {
            assert_eq!(least_replicates(comparisons, 0.95), least, "{comparisons}");
            let p = comparisons.max(1) as f64 * 0.5_f64.powi(least as i32 - 1);
            assert!(p <= 0.05, "{comparisons}");
        }
        assert_eq!(least_replicates(1, 0.99), 8);
    }

    #[test]
    fn the_four_outcomes() {
        assert_eq!(say((1.1, 1.2), 0.01, 30, true), Outcome::Better);
        assert_eq!(say((1.1, 1.2), 0.01, 30, false), Outcome::Worse);
        assert_eq!(say((0.8, 0.9), 0.01, 30, true), Outcome::Worse);
        assert_eq!(say((0.8, 0.9), 0.01, 30, false), Outcome::Better);
        assert_eq!(say((0.99, 1.01), 0.8, 30, true), Outcome::Equivalent);
        assert_eq!(say((0.9, 1.01), 0.2, 30, true), Outcome::Inconclusive);
    }

    #[test]
    fn the_edges_of_the_rule() {
        assert_eq!(say((1.005, 1.01), 0.001, 30, true), Outcome::Equivalent, "certain, and small");
        assert_eq!(say((0.98, 1.02), 0.9, 30, true), Outcome::Equivalent, "the band's own ends");
        assert_eq!(
            say((1.01, 1.03), 0.001, 30, true),
            Outcome::Better,
            "beyond the band on one side"
        );
        assert_eq!(say((1.1, 1.2), 0.01, 5, true), Outcome::Inconclusive, "five replicates");
        assert_eq!(say((0.99, 1.01), 1.0, 5, true), Outcome::Inconclusive, "five replicates");
        assert_eq!(say((1.1, 1.2), 0.06, 30, true), Outcome::Inconclusive, "not after correction");
        assert_eq!(say((1.1, 1.2), 1.0 - 0.95, 30, true), Outcome::Better, "p at the level itself");
        let unsure = Evidence { interval: (0.99, 1.01), confidence: 0.9375, p: 1.0, n: 6 };
        assert_eq!(verdict(&unsure, 0.02, 0.95, true), Outcome::Inconclusive);
    }
}
