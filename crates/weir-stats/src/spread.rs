//! Spread and autocorrelation of replicates, and the differences that these make detectable.

use crate::selection::element;
use crate::spending::critical_of;
use crate::{ascending, normal};

/// Probability of missing the smallest difference that counts as detectable: 80 % power.
pub(crate) const MISSED: f64 = 0.2;

/// Returns the standard deviation (denominator n - 1); needs two replicates.
pub fn sd(sample: &[f64]) -> Option<f64> {
    if sample.len() < 2 || !sample.iter().all(|x| x.is_finite()) {
        return None;
    }
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let squares: f64 = sample.iter().map(|x| (x - mean).powi(2)).sum();
    Some((squares / (n - 1.0)).sqrt())
}

/// Returns a robust standard deviation, which bursts hardly affect: Qn of Rousseeuw & Croux ("Alternatives to the
/// Median Absolute Deviation", JASA 88, 1993), about the first quartile of all pairwise differences, scaled to agree
/// with [`sd`] for normal noise, where it is 82 % as efficient (the median absolute deviation: 37 %). Needs two
/// replicates. Zero when more than about half of them are equal.
pub fn qn(sample: &[f64]) -> Option<f64> {
    let sorted = ascending(sample).filter(|sorted| sorted.len() >= 2)?;
    let n = sorted.len();
    let half = (n / 2 + 1) as u64;
    let k = half * (half - 1) / 2 - 1;
    let range = sorted[n - 1] - sorted[0];
    let quartile = element(k, 0.0, range, |t| differences_up_to(&sorted, t));
    Some(2.2219 * small_sample_factor(n) * quartile)
}

/// Returns the number of pairs that are at most `t` apart.
fn differences_up_to(sorted: &[f64], t: f64) -> u64 {
    let mut count = 0;
    let mut first = 0;
    for (i, x) in sorted.iter().enumerate() {
        while x - sorted[first] > t {
            first += 1;
        }
        count += (i - first) as u64;
    }
    count
}

/// Returns the factor that makes Qn unbiased for small normal samples (Croux & Rousseeuw, "Time-efficient algorithms
/// for two highly robust estimators of scale", COMPSTAT 1992).
fn small_sample_factor(n: usize) -> f64 {
    const UP_TO_NINE: [f64; 8] = [0.399, 0.994, 0.512, 0.844, 0.611, 0.857, 0.669, 0.872];
    match n {
        2..=9 => UP_TO_NINE[n - 2],
        _ if n % 2 == 1 => n as f64 / (n as f64 + 1.4),
        _ => n as f64 / (n as f64 + 3.8),
    }
}

/// Returns the lag-1 autocorrelation of a sample in order of time, -1..1; needs three replicates, and is zero when all
/// are equal.
pub fn autocorrelation(sample: &[f64]) -> Option<f64> {
    if sample.len() < 3 || !sample.iter().all(|x| x.is_finite()) {
        return None;
    }
    let mean = sample.iter().sum::<f64>() / sample.len() as f64;
    let squares: f64 = sample.iter().map(|x| (x - mean).powi(2)).sum();
    let products: f64 = sample.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    Some(if squares > 0.0 { products / squares } else { 0.0 })
}

/// Returns the lag-1 autocorrelation of a sample's ranks, equal values sharing theirs, as in the rank version of von
/// Neumann's ratio (Bartels, JASA 77, 1982): in AR(1) noise of 0.4 with three outliers in a hundred it detects an
/// autocorrelation that the values themselves hide.
pub fn rank_autocorrelation(sample: &[f64]) -> Option<f64> {
    let sorted = ascending(sample)?;
    autocorrelation(
        &sample
            .iter()
            .map(|x| {
                let below = sorted.partition_point(|other| other < x);
                (below + sorted.partition_point(|other| other <= x)) as f64
            })
            .collect::<Vec<f64>>(),
    )
}

/// Returns the critical value that the lag-1 autocorrelation of `n` independent replicates exceeds one time in ten
/// (one-sided: only positive autocorrelation makes intervals too narrow; one in ten, because overlooking one costs more
/// than a false alarm). Anderson, "Distribution of the serial correlation coefficient", Ann. Math. Statist. 13, 1942.
/// Infinite, and so never exceeded, for fewer than four replicates.
pub fn autocorrelation_critical(n: usize) -> f64 {
    if n < 4 {
        return f64::INFINITY;
    }
    let n = n as f64;
    (-1.0 + 1.2816 * (n - 2.0).sqrt()) / (n - 1.0)
}

/// Returns the smallest difference detected with 80 % power in a test at this two-sided `level` (0..1), in standard
/// errors: 1.96 + 0.84 at 5 %. A test that is corrected for m comparisons has the m-th part of the level.
pub(crate) fn detectable_errors(level: f64) -> f64 {
    critical_of(level) + critical_of(2.0 * MISSED)
}

/// Returns the chance that a ratio change of `effect` is detected at a two-sided `level` if `minimum_detectable` (both
/// 0.03 for 3 %) is detected with 80 %.
pub fn power(effect: f64, minimum_detectable: f64, level: f64) -> f64 {
    let share = effect.ln_1p() / minimum_detectable.ln_1p();
    normal::cdf(detectable_errors(level) * share - critical_of(level))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::SplitMix64;

    /// Draws approximately normal values: twelve uniforms minus six.
    fn draw_noise(n: usize, seed: u64) -> Vec<f64> {
        let mut rng = SplitMix64::new(seed);
        (0..n).map(|_| (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0).collect()
    }

    #[test]
    fn known_spreads() {
        let sample = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert!((sd(&sample).unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(sd(&[1.0]), None);
        assert_eq!(qn(&[1.0]), None);
        // n = 5: h = 3, k = 3; differences 1 1 2 2 3 4 5 6 7 8 (of 0 1 2 4 8): the third is 2.
        let want = 2.2219 * 0.844 * 2.0;
        assert!((qn(&[4.0, 0.0, 8.0, 1.0, 2.0]).unwrap() - want).abs() < 1e-12);
    }

    #[test]
    fn bursts_move_the_plain_one_and_not_the_robust_one() {
        let mut sample = draw_noise(200, 7);
        let quiet = (sd(&sample).unwrap(), qn(&sample).unwrap());
        assert!((quiet.0 - 1.0).abs() < 0.15 && (quiet.1 - 1.0).abs() < 0.15, "{quiet:?}");
        sample.iter_mut().step_by(20).for_each(|x| *x += 30.0);
        let loud = (sd(&sample).unwrap(), qn(&sample).unwrap());
        assert!(loud.0 > 5.0 && loud.1 < 1.3, "{loud:?}");
    }

    #[test]
    fn autocorrelation_tells_walks_from_noise() {
        assert_eq!(autocorrelation(&[1.0, 2.0]), None);
        assert_eq!(autocorrelation(&[5.0; 9]), Some(0.0));
        // Around 0: products 2 + 0 + 0 + 2 over squares 4 + 1 + 0 + 1 + 4.
        assert_eq!(autocorrelation(&[1.0, 2.0, 3.0, 4.0, 5.0]), Some(0.4));
        let noise = draw_noise(400, 3);
        let mut walk = noise.clone();
        for i in 1..walk.len() {
            walk[i] += 0.6 * walk[i - 1];
        }
        let critical = autocorrelation_critical(400);
        assert!(autocorrelation(&noise).unwrap() < critical);
        assert!(autocorrelation(&walk).unwrap() > 4.0 * critical);
    }

    #[test]
    fn independent_replicates_pass_the_critical_value_one_time_in_ten() {
        for n in [10, 40] {
            let over = (0..2000).filter(|seed| {
                let sample = draw_noise(n, 1000 + seed);
                autocorrelation(&sample).unwrap() > autocorrelation_critical(n)
            });
            let share = over.count() as f64 / 2000.0;
            assert!((0.07..0.13).contains(&share), "n = {n}: {share}");
        }
    }

    #[test]
    fn ranks_find_what_outliers_hide() {
        // AR(1) with 0.4, and three in a hundred a dozen deviations away.
        let [ranks, values] = [rank_autocorrelation, autocorrelation].map(share_found);
        assert!(ranks > 0.85 && values < 0.4, "{ranks} {values}");
        assert_eq!(
            rank_autocorrelation(&[1.0, 1e3, 2.0, -1e3]),
            rank_autocorrelation(&[3.0, 4.0, 3.5, 2.0])
        );
    }

    fn share_found(correlation: fn(&[f64]) -> Option<f64>) -> f64 {
        let over = (0..400).filter(|seed| {
            let mut sample = draw_noise(100, 5000 + seed);
            for i in 1..sample.len() {
                sample[i] += 0.4 * sample[i - 1];
            }
            let mut rng = SplitMix64::new(*seed);
            for x in sample.iter_mut().filter(|_| rng.unit() < 0.03) {
                *x += 12.0;
            }
            correlation(&sample).unwrap() > autocorrelation_critical(100)
        });
        over.count() as f64 / 400.0
    }

    #[test]
    fn what_can_be_seen_follows_from_the_level() {
        for (level, errors) in [(0.05, 2.801_585), (0.05 / 9.0, 3.614_543)] {
            let multiple = detectable_errors(level);
            assert!((multiple - errors).abs() < 1e-4, "{level}: {multiple}");
            for (effect, chance) in [(0.03, 0.8), (0.06, 0.9998), (0.0, level / 2.0)] {
                let computed = power(effect, 0.03, level);
                assert!((computed - chance).abs() < 2e-3, "{effect}: {computed}");
            }
        }
    }

    proptest! {
        #[test]
        fn qn_is_the_order_statistic_that_listing_gives(
            sample in prop::collection::vec(prop_oneof![-5.0_f64..5.0, Just(1.0)], 2..30)
        ) {
            let mut all = Vec::new();
            for (i, a) in sample.iter().enumerate() {
                all.extend(sample[..i].iter().map(|b| (a - b).abs()));
            }
            all.sort_by(f64::total_cmp);
            let h = sample.len() / 2 + 1;
            let want = 2.2219 * small_sample_factor(sample.len()) * all[h * (h - 1) / 2 - 1];
            prop_assert!((qn(&sample).unwrap() - want).abs() < 1e-12);
        }
    }
}
