//! Replicates in clusters: blocks of one instance of a proxy share the instance's properties, and neighbours share the
//! conditions of the time.

use std::cmp::Ordering;

use crate::median::Median;
use crate::signed_rank::Interval;
use crate::spread::{MISSED, qn};
use crate::student;

/// Distance from the estimate, in robust standard deviations, to which larger distances of replicates are limited.
pub(crate) const FARTHEST: f64 = 3.0;
/// Number of correlated replicates that a cluster needs for its sum to contain most of their correlation.
pub const BLOCKS_FOR_CORRELATION: usize = 5;
/// Minimum number of instances from which their differences can be estimated.
pub(crate) const LEAST_INSTANCES: usize = 4;
/// Number of time intervals into which replicates are grouped if there are too few instances.
const STRETCHES: usize = 8;
/// Standard deviation between instances of one arm with equal settings, as a logarithm, used if too few were measured
/// to estimate it: 0.7 to 1.05 % of the rate in measurements of nginx (docs/statistics.md).
pub const INSTANCE_SD: f64 = 0.0105;
/// Degrees of freedom attributed to [`INSTANCE_SD`]: so few that twice as much is no surprise.
pub(crate) const PRIOR_FREEDOM: u32 = 4;
/// Number of standard errors above its estimate up to which an autocorrelation is considered possible: it is lower four
/// times in five.
const POSSIBLE: f64 = 0.84;
/// Maximum assumed autocorrelation.
const MOST: f64 = 0.97;
/// Minimum share of the variance left within autocorrelated replicates.
const LEAST_LEFT: f64 = 0.1;
/// Lag-1 autocorrelation above which clusters that are not adjacent are correlated, too.
const STRONGLY: f64 = 0.4;

/// Returns true if replicates of these instances, in order of time, are from too few to estimate how much instances
/// differ.
pub fn are_few(instances: &[usize]) -> bool {
    instances.chunk_by(|a, b| a == b).count() < LEAST_INSTANCES
}

/// Returns the clusters of replicates of these instances: the instances, or time intervals if there are too few.
pub fn of_instances(instances: &[usize]) -> Vec<usize> {
    let all = instances.len();
    if are_few(instances) {
        (0..all).map(|place| place * STRETCHES / all).collect()
    } else {
        instances.to_vec()
    }
}

/// Merges neighbouring clusters until each has [`BLOCKS_FOR_CORRELATION`] replicates; the remainder belongs to the
/// last.
pub(crate) fn together(clusters: &[usize]) -> Vec<usize> {
    let (all, least) = (clusters.len(), BLOCKS_FOR_CORRELATION);
    let (mut cluster, mut begin) = (0, 0);
    (0..all)
        .map(|place| {
            let is_edge = place > 0 && clusters[place] != clusters[place - 1];
            if is_edge && place - begin >= least && all - place >= least {
                (cluster, begin) = (cluster + 1, place);
            }
            cluster
        })
        .collect()
}

/// Precision of an estimate, derived from the differences between clusters of replicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BetweenClusters {
    /// Standard error of the estimate, in the unit of the sample.
    pub error: f64,
    /// Degrees of freedom of the error: clusters less one, or half of them or fewer.
    pub freedom: u32,
}

impl BetweenClusters {
    /// Computes the precision of the `estimate` of a sample in order of time whose replicates are in these `clusters`
    /// (numbers that are equal within a cluster, neighbours together). The distances of a cluster's replicates from the
    /// estimate are added up; the sums vary between independent clusters, whatever their replicates have in common
    /// (Liang & Zeger, "Longitudinal data analysis using generalized linear models", Biometrika 73, 1986, with the
    /// factor c / (c - 1) for few clusters). Each distance is limited to three Qn, as in Huber's estimate (Ann. Math.
    /// Statist. 35, 1964), so that one stall is not taken for a difference between instances; if most replicates are
    /// equal it is 0.
    ///
    /// If replicates are autocorrelated, with this `lag_1`, clusters are, too: products of neighbouring ones are added
    /// with the weight of one lag (Newey & West, Econometrica 55, 1987), at half the degrees of freedom, or three
    /// eighths if the autocorrelation is strong. `None` with fewer than two clusters.
    pub fn of(
        sample: &[f64],
        clusters: &[usize],
        estimate: f64,
        lag_1: Option<f64>,
    ) -> Option<BetweenClusters> {
        let limit = FARTHEST * qn(sample)?;
        let away = sample.iter().map(|x| (x - estimate).clamp(-limit, limit));
        BetweenClusters::of_parts(&away.collect::<Vec<f64>>(), clusters, lag_1)
    }

    /// Computes the precision of the median like [`BetweenClusters::of`], but from the side on which each replicate
    /// lies: the error of the median is increased by as much as sums of sides vary more than those of coin tosses.
    pub(crate) fn of_median(
        sample: &[f64],
        clusters: &[usize],
        median: &Median,
        lag_1: Option<f64>,
    ) -> Option<BetweenClusters> {
        let sides: Vec<f64> = sample
            .iter()
            .map(|x| match x.total_cmp(&median.value) {
                Ordering::Less => -1.0,
                Ordering::Equal => 0.0,
                Ordering::Greater => 1.0,
            })
            .collect();
        let of_sides = BetweenClusters::of_parts(&sides, clusters, lag_1)?;
        Some(BetweenClusters {
            error: median.error * of_sides.error * (sample.len() as f64).sqrt(),
            ..of_sides
        })
    }

    /// Computes the precision of the `estimate` of a sample whose replicates are from these `instances`, too few to
    /// estimate how much instances differ; `error` is the standard error without their differences. Prior knowledge
    /// from other proxies ([`INSTANCE_SD`]) counts like [`PRIOR_FREEDOM`] additional instances (Smyth, "Linear models
    /// and empirical Bayes methods", Stat. Appl. Genet. Mol. Biol. 3, 2004).
    pub(crate) fn with_prior(
        sample: &[f64],
        instances: &[usize],
        estimate: f64,
        error: f64,
    ) -> Option<BetweenClusters> {
        let limit = FARTHEST * qn(sample)?;
        let (mut squares, mut weights, mut count) = (0.0, 0.0, 0);
        let mut begin = 0;
        for run in instances.chunk_by(|a, b| a == b) {
            let replicates = sample.get(begin..begin + run.len())?;
            begin += run.len();
            let away = replicates.iter().map(|x| (x - estimate).clamp(-limit, limit));
            squares += (away.sum::<f64>() / replicates.len() as f64).powi(2);
            weights += (replicates.len() as f64 / sample.len() as f64).powi(2);
            count += 1;
        }
        let freedom = PRIOR_FREEDOM + (count - 1);
        // Both arms have an instance each.
        let of_prior = f64::from(PRIOR_FREEDOM) * 2.0 * INSTANCE_SD.powi(2);
        // One instance is where the estimate is.
        let measured = if count > 1 { squares } else { 0.0 };
        let variance = (of_prior + measured) / f64::from(freedom);
        Some(BetweenClusters { error: error.hypot((variance * weights).sqrt()), freedom })
    }

    /// Computes the precision of an estimate from `n` replicates whose ranks have this `lag_1` autocorrelation; `error`
    /// is the standard error for independent ones. Assumes the highest autocorrelation that so few replicates leave
    /// possible. A process of order 1 multiplies the variance of its mean by (1 + ρ) / (1 - ρ), and divides the number
    /// of replicates by as much. ρ is the autocorrelation without its bias (Marriott & Pope, "Bias in the estimation of
    /// autocorrelations", Biometrika 41, 1954) plus [`POSSIBLE`] standard errors. `None` with fewer than six.
    pub(crate) fn of_process(error: f64, lag_1: f64, n: usize) -> Option<BetweenClusters> {
        let n = Some(n as f64).filter(|n| *n >= 6.0)?;
        let unbiased = ((n * lag_1 + 1.0) / (n - 4.0)).clamp(0.0, MOST);
        let possible = (unbiased + POSSIBLE * ((1.0 - unbiased.powi(2)) / n).sqrt()).min(MOST);
        let fewer = (1.0 + possible) / (1.0 - possible);
        // Replicates that follow from one another are also too close to their own middle.
        let variance = fewer / (1.0 - fewer / n).max(LEAST_LEFT);
        Some(BetweenClusters {
            error: error * variance.sqrt(),
            freedom: ((n / fewer - 1.0).round() as u32).max(1),
        })
    }

    /// Computes the precision of a mean of parts whose true mean is 0.
    pub(crate) fn of_parts(
        parts: &[f64],
        clusters: &[usize],
        lag_1: Option<f64>,
    ) -> Option<BetweenClusters> {
        let mut remaining = parts;
        let runs = clusters.chunk_by(|a, b| a == b);
        let of_runs: Option<Vec<f64>> = runs
            .map(|run| {
                let (of_run, behind) = remaining.split_at_checked(run.len())?;
                remaining = behind;
                Some(of_run.iter().sum())
            })
            .collect();
        let sums = of_runs.filter(|sums| sums.len() > 1)?;
        let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
        let products: f64 = sums.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let count = sums.len() as u32;
        let equal = equal_clusters(clusters);
        let (products, freedom) = match lag_1 {
            Some(lag_1) => {
                let eighths = if lag_1 > STRONGLY { 3 } else { 4 };
                (products.max(0.0), (eighths * equal / 8).max(1))
            }
            None => (0.0, (equal - 1).max(1)),
        };
        let few = f64::from(count) / f64::from(count - 1);
        Some(BetweenClusters {
            error: (few * (squares + products)).sqrt() / parts.len() as f64,
            freedom,
        })
    }

    /// Widens `interval` of `estimate` on either side to the limits of Student's t for the clusters.
    pub fn widen(&self, estimate: f64, interval: Interval) -> Interval {
        let half = student::quantile(1.0 - interval.confidence, self.freedom) * self.error;
        Interval {
            low: interval.low.min(estimate - half),
            high: interval.high.max(estimate + half),
            ..interval
        }
    }

    /// Returns the two-sided p of an estimate whose true value is 0.
    pub fn p_two_sided(&self, estimate: f64) -> f64 {
        if self.error > 0.0 { student::two_sided(estimate / self.error, self.freedom) } else { 0.0 }
    }

    /// Returns the smallest difference detectable with 80 % power at a two-sided `level`.
    pub(crate) fn minimum_detectable(&self, level: f64) -> f64 {
        let [critical, power] =
            [level, 2.0 * MISSED].map(|tail| student::quantile(tail, self.freedom));
        // The root of an estimated variance is too small by so much on average (Holtzman, "The unbiased estimate of the
        // population variance and standard deviation", Am. J. Psychol. 63, 1950).
        let few = 1.0 + 0.25 / f64::from(self.freedom);
        (critical + power) * self.error * few
    }
}

/// Returns the number of clusters of equal size that would determine their variance as well as these, rounded: if sums
/// vary with the squares of the sizes, large ones dominate (Satterthwaite, "An approximate distribution of estimates of
/// variance components", Biometrics Bulletin 2, 1946).
fn equal_clusters(clusters: &[usize]) -> u32 {
    let sizes = clusters.chunk_by(|a, b| a == b).map(|run| run.len() as f64);
    let (mut squares, mut fourths) = (0.0, 0.0);
    for size in sizes {
        squares += size.powi(2);
        fourths += size.powi(4);
    }
    (squares * squares / fourths).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four clusters of two: sums about the estimate 0 are 2, -2, 2, -2.
    const CLUSTERS: [usize; 8] = [0, 0, 1, 1, 2, 2, 5, 5];

    #[test]
    fn what_clusters_share_is_seen_and_a_stall_is_not_theirs() {
        let shared = [1.5, 0.5, -0.5, -1.5, 1.4, 0.6, -0.6, -1.4];
        let unshared = [1.5, -1.5, 0.5, -0.5, 1.0, -1.0, 0.75, -0.75];
        // √(4/3 · 16) / 8.
        assert!((between(&shared).error - (64.0_f64 / 3.0).sqrt() / 8.0).abs() < 1e-12);
        assert_eq!((between(&unshared).error, between(&unshared).freedom), (0.0, 3), "none");
        let mut stall = unshared;
        stall[7] = -1000.0;
        assert!(between(&stall).error < 3.0, "{:?}", between(&stall));
        assert_eq!(BetweenClusters::of(&unshared, &[3; 8], 0.0, None), None);
        assert_eq!(
            BetweenClusters::of(&unshared[..4], &CLUSTERS, 0.0, None),
            None,
            "of another sample"
        );
    }

    fn between(sample: &[f64]) -> BetweenClusters {
        BetweenClusters::of(sample, &CLUSTERS, 0.0, None).unwrap()
    }

    #[test]
    fn clusters_of_other_sizes_are_known_as_well_as_fewer_equal_ones() {
        for (sizes, equal) in [
            (&[5; 8][..], 8),
            (&[12, 11, 11, 11], 4),
            (&[2, 2, 2, 2, 1, 1, 1, 1], 6),
            (&[10, 1, 1, 1], 1),
        ] {
            let clusters = sizes.iter().enumerate().flat_map(|(place, size)| vec![place; *size]);
            let clusters: Vec<usize> = clusters.collect();
            assert_eq!(equal_clusters(&clusters), equal, "{sizes:?}");
        }
    }

    #[test]
    fn clusters_that_follow_from_one_another_are_fewer() {
        let wave = [1.5, 0.5, 1.4, 0.6, -0.5, -1.5, -0.6, -1.4];
        let [alone, together, strong] = [None, Some(0.3), Some(0.5)]
            .map(|lag_1| BetweenClusters::of(&wave, &CLUSTERS, 0.0, lag_1).unwrap());
        // Products 4, -4 and 4 beside squares of 16.
        assert!((together.error / alone.error - 1.25_f64.sqrt()).abs() < 1e-12);
        assert_eq!((alone.freedom, together.freedom), (3, 2));
        assert_eq!(strong.freedom, 1);
    }

    #[test]
    fn short_clusters_are_taken_together_at_their_edges() {
        let twos = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6];
        assert_eq!(together(&twos), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(together(&[3; 4]), [0; 4]);
        let long = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1];
        assert_eq!(together(&long), long);
    }

    #[test]
    fn few_instances_differ_as_those_of_other_proxies_do() {
        let sample = [0.01, -0.01, 0.01, -0.01, 0.01, -0.01];
        let [one, three] = [[0; 6], [0, 0, 1, 1, 2, 2]]
            .map(|instances| BetweenClusters::with_prior(&sample, &instances, 0.0, 0.004).unwrap());
        // One instance: what two arms' instances differ by.
        let both = 2.0_f64.sqrt() * INSTANCE_SD;
        assert!((one.error - 0.004_f64.hypot(both)).abs() < 1e-12, "{one:?}");
        assert_eq!((one.freedom, three.freedom), (PRIOR_FREEDOM, PRIOR_FREEDOM + 2));
        // Three that are alike: less than a third of the variance is left.
        let alike = (4.0 * both.powi(2) / 6.0 / 3.0).sqrt();
        assert!((three.error - 0.004_f64.hypot(alike)).abs() < 1e-12, "{three:?}");
    }

    #[test]
    fn an_autocorrelation_that_is_possible_widens_and_more_replicates_rule_it_out() {
        let none = [12, 40, 400].map(|n| {
            BetweenClusters::of_process(1.0, -1.0 / f64::from(n as u32), n).unwrap().error
        });
        assert!(none.is_sorted_by(|a, b| a > b) && none[2] < 1.06, "{none:?}");
        let strong = BetweenClusters::of_process(1.0, 0.5, 12).unwrap();
        assert!(strong.error > 3.0 * none[0] && strong.freedom == 1, "{strong:?}");
        assert_eq!(BetweenClusters::of_process(1.0, 0.0, 5), None);
    }
}
