//! The median with its exact test, for samples of which a few values in ten lie far out on both sides: there the
//! pseudo-median, which tolerates up to 29 % of such values, is hardly determined any more.

use crate::signed_rank::Interval;
use crate::walsh::{average_of_rank, averages};
use crate::{ascending, normal};

/// Maximum ratio of the median's interval to the pseudo-median's for the median to replace it.
const NARROWER: f64 = 0.8;
/// Minimum number of replicates: fewer say too little about their tails.
const LEAST: usize = 20;
/// Distance from the middle, in median distances, above which values belong to the tails.
const FAR: f64 = 6.0;
/// Probability of tails as uneven as these above which they count as even.
const EVEN: f64 = 0.1;

/// Median of a sample with its precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Median {
    pub(crate) value: f64,
    /// Exact interval for independent replicates: the values of ranks k and n - 1 - k (from 0) for the largest k with
    /// 2·P(B ≤ k) ≤ 1 - confidence, B binomial with n and 1/2.
    pub(crate) interval: Interval,
    /// Two-sided p of the sign test (Dixon & Mood, "The Statistical Sign Test", JASA 41, 1946); a zero counts for both
    /// sides, as it does for the interval.
    pub(crate) p: f64,
    /// Standard error for independent replicates, from the values around the middle.
    pub(crate) error: f64,
}

impl Median {
    /// Returns the median of a sample for which it is the better estimate. That is judged by the distances of values
    /// from the middle, not by the side on which they lie, so that tests by signs remain valid (Hogg, "Adaptive Robust
    /// Procedures", JASA 69, 1974). `None` if the pseudo-median is about as precise; if the tails are not alike, as for
    /// an arm that stalls now and then; or with fewer than 20 replicates.
    pub(crate) fn where_better(sample: &[f64], confidence: f64) -> Option<Median> {
        let sorted = ascending(sample).filter(|sorted| sorted.len() >= LEAST)?;
        let n = sorted.len();
        let value = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
        let mut distances: Vec<f64> = sorted.iter().map(|x| (x - value).abs()).collect();
        distances.sort_by(f64::total_cmp);
        let half = half_width(&distances);
        // Zero where many are equal.
        let is_narrower = half > 0.0 && half < NARROWER * half_width_of_averages(&distances);
        if !is_narrower || !tails_are_alike(&sorted, value, FAR * distances[n / 2]) {
            return None;
        }
        let mut k = 0;
        while 2.0 * at_most(k + 1, n) <= 1.0 - confidence {
            k += 1;
        }
        let [below, above] =
            [-1.0, 1.0].map(|side| sorted.iter().filter(|x| *x * side > 0.0).count());
        Some(Median {
            value,
            interval: Interval {
                low: sorted[k],
                high: sorted[n - 1 - k],
                confidence: 1.0 - 2.0 * at_most(k, n),
            },
            p: (2.0 * at_most(n - below.max(above), n)).min(1.0),
            error: half / normal::quantile(0.975),
        })
    }
}

/// Returns P(B ≤ k), B binomial with n and 1/2.
fn at_most(k: usize, n: usize) -> f64 {
    let mut log = -(n as f64) * 2.0_f64.ln();
    let mut sum = 0.0;
    for i in 0..=k.min(n) {
        sum += log.exp();
        log += ((n - i) as f64 / (i + 1) as f64).ln();
    }
    sum
}

/// Returns the half-width of the median's 95 % interval, if each distance (ascending) could have been on either side.
fn half_width(distances: &[f64]) -> f64 {
    let n = distances.len() as f64;
    quantile(distances, normal::quantile(0.975) / n.sqrt())
}

/// Returns the half-width of the pseudo-median's interval: of all averages of two values, on the same sides or not, as
/// many lie within as lie between the ranks of its interval, 4 z / √(12 n) of them.
fn half_width_of_averages(distances: &[f64]) -> f64 {
    let n = distances.len() as f64;
    let mut both: Vec<f64> = distances.iter().rev().map(|distance| -distance).collect();
    both.extend(distances);
    let share = (4.0 * normal::quantile(0.975) / (12.0 * n).sqrt()).min(1.0);
    let last = averages(both.len()) - 1;
    average_of_rank(&both, (0.5 * (1.0 + share) * last as f64) as u64)
}

fn quantile(ascending: &[f64], share: f64) -> f64 {
    let rank = (share.min(1.0) * ascending.len() as f64).ceil() as usize;
    ascending[rank.clamp(1, ascending.len()) - 1]
}

/// Returns true if the values farther than `far` from the middle are similarly many on both sides.
fn tails_are_alike(sorted: &[f64], middle: f64, far: f64) -> bool {
    let [below, above] =
        [-1.0, 1.0].map(|side| sorted.iter().filter(|x| side * (**x - middle) > far).count());
    2.0 * at_most(below.min(above), below + above) >= EVEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    /// Draws approximately normal values, a share of which is multiplied.
    fn draw_sample(rng: &mut SplitMix64, n: usize, share: f64, side: fn(f64) -> f64) -> Vec<f64> {
        (0..n)
            .map(|_| {
                let about_zero = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
                if rng.unit() < share { 40.0 * side(about_zero) } else { about_zero }
            })
            .collect()
    }

    #[test]
    fn it_takes_over_where_both_tails_are_far_out() {
        let mut rng = SplitMix64::new(3);
        assert!(count_better(&mut rng, 0.0, |x| x) < 20);
        let both = count_better(&mut rng, 0.35, |x| x);
        assert!(both > 80, "{both}");
        assert!(count_better(&mut rng, 0.35, f64::abs) < 5, "an arm that stalls");
        assert_eq!(Median::where_better(&[0.0; 60], 0.95), None);
        assert_eq!(Median::where_better(&[1.0; 3], 0.95), None);
    }

    fn count_better(rng: &mut SplitMix64, far: f64, side: fn(f64) -> f64) -> usize {
        (0..200)
            .filter(|_| {
                let sample = draw_sample(rng, 120, far, side);
                Median::where_better(&sample, 0.95).is_some()
            })
            .count()
    }

    #[test]
    fn it_covers_and_its_test_keeps_its_level() {
        let mut rng = SplitMix64::new(4);
        let (mut covered, mut rejected, mut studies) = (0, 0, 0);
        for _ in 0..1000 {
            let sample = draw_sample(&mut rng, 60, 0.35, |x| x);
            let Some(median) = Median::where_better(&sample, 0.95) else {
                continue;
            };
            studies += 1;
            covered += i32::from(median.interval.low <= 0.0 && 0.0 <= median.interval.high);
            rejected += i32::from(median.p <= 0.05);
            assert!(median.interval.confidence >= 0.95, "{median:?}");
            assert!(median.interval.low <= median.value && median.value <= median.interval.high);
        }
        assert!(studies > 500, "{studies}");
        assert!(covered * 100 >= studies * 94, "{covered} of {studies}");
        assert!(rejected * 100 <= studies * 6, "{rejected} of {studies}");
    }

    #[test]
    fn the_binomial_tail_is_exact() {
        for (k, n, wanted) in
            [(0, 5, 1.0 / 32.0), (1, 5, 6.0 / 32.0), (5, 5, 1.0), (0, 6, 1.0 / 64.0)]
        {
            assert!((at_most(k, n) - wanted).abs() < 1e-12, "{k} {n}");
        }
        assert!((at_most(1000, 2000) - 0.508_920).abs() < 1e-5, "{}", at_most(1000, 2000));
    }
}
