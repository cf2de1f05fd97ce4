//! Walsh averages: the means of all pairs of replicates, each with itself included.
//!
//! Their median is the Hodges-Lehmann estimate (Hodges & Lehmann, "Estimates of location based on
//! rank tests", Ann. Math. Statist. 34, 1963): nearly as precise as the mean when the noise is
//! normal, and hardly moved by bursts. Their order statistics bound the exact interval.

use crate::ascending;
use crate::selection::element;

/// Returns the number of Walsh averages of `n` replicates.
pub(crate) fn averages(n: usize) -> u64 {
    let n = n as u64;
    n * (n + 1) / 2
}

/// Returns the median of the Walsh averages, in the unit of the sample.
pub fn hodges_lehmann(sample: &[f64]) -> Option<f64> {
    Some(middle(&ascending(sample)?))
}

/// Returns the median of the Walsh averages of a sample in ascending order.
pub(crate) fn middle(sorted: &[f64]) -> f64 {
    let m = averages(sorted.len());
    0.5 * (average_of_rank(sorted, (m - 1) / 2) + average_of_rank(sorted, m / 2))
}

/// Returns the Walsh average of rank `k` (from 0) of a sample in ascending order.
pub(crate) fn average_of_rank(sorted: &[f64], k: u64) -> f64 {
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    element(k, low, high, |t| averages_up_to(sorted, t))
}

/// Returns the number of Walsh averages that are at most `t`. Rounding is monotone, so the pairs that count form a
/// staircase and one walk along its edge counts them.
pub(crate) fn averages_up_to(sorted: &[f64], t: f64) -> u64 {
    let mut count = 0;
    let mut end = sorted.len();
    for (i, &x) in sorted.iter().enumerate() {
        while end > i && 0.5 * x + 0.5 * sorted[end - 1] > t {
            end -= 1;
        }
        if end <= i {
            break;
        }
        count += (end - i) as u64;
    }
    count
}

/// Returns the number of Walsh averages that are below `t`.
pub(crate) fn averages_below(sorted: &[f64], t: f64) -> u64 {
    averages_up_to(sorted, t.next_down())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns all Walsh averages, in ascending order.
    pub(crate) fn naive(sample: &[f64]) -> Vec<f64> {
        let mut all: Vec<f64> = (0..sample.len())
            .flat_map(|i| (i..sample.len()).map(move |j| (i, j)))
            .map(|(i, j)| 0.5 * sample[i] + 0.5 * sample[j])
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn known_estimates() {
        assert_eq!(hodges_lehmann(&[3.0]), Some(3.0));
        assert_eq!(hodges_lehmann(&[1.0, 2.0]), Some(1.5));
        // Averages 1, 1.5, 2, 5.5, 6, 10: the outlier pulls the mean to 4.33 and this to 3.75.
        assert_eq!(hodges_lehmann(&[10.0, 1.0, 2.0]), Some(3.75));
        assert_eq!(hodges_lehmann(&[-1.0, 0.0, 1.0]), Some(0.0));
        assert_eq!(hodges_lehmann(&[]), None);
        assert_eq!(hodges_lehmann(&[1.0, f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn every_rank_is_the_one_that_listing_gives(
            sample in prop::collection::vec(prop_oneof![-5.0_f64..5.0, Just(0.0), Just(1.0)], 1..25)
        ) {
            let sorted = ascending(&sample).unwrap();
            for (k, want) in (0..).zip(naive(&sample)) {
                prop_assert_eq!(average_of_rank(&sorted, k), want);
            }
        }

        #[test]
        fn the_estimate_moves_with_the_sample(
            sample in prop::collection::vec(-5.0_f64..5.0, 1..25),
            shift in -3.0_f64..3.0,
        ) {
            let shifted: Vec<f64> = sample.iter().map(|x| x + shift).collect();
            let moved = hodges_lehmann(&shifted).unwrap() - hodges_lehmann(&sample).unwrap();
            prop_assert!((moved - shift).abs() < 1e-9);
        }
    }
}
