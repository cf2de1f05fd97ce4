//! One difference from several samples: the mean difference of an arm over all loads of a matrix.

use std::collections::BTreeMap;

use crate::clusters::{FARTHEST, LEAST_INSTANCES, PRIOR_FREEDOM};
use crate::signed_rank::Interval;
use crate::spread::qn;
use crate::student;

/// A sample among those that are pooled.
#[derive(Debug, Clone, Copy)]
pub struct Stratum<'a, C> {
    /// Estimate of the sample, in its unit.
    pub estimate: f64,
    /// Standard error of the estimate.
    pub error: f64,
    /// Replicates of the sample.
    pub sample: &'a [f64],
    /// Instance of each replicate, in order of time. Samples measured with the same instances share their numbers.
    pub instances: &'a [C],
}

/// The mean of the estimates of several samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    /// Mean, in the unit of the samples.
    pub value: f64,
    /// Interval of the mean.
    pub interval: Interval,
    /// Two-sided p of a true value of 0.
    pub p: f64,
}

/// Pools samples, each with the same weight. The true values of samples may differ: only the distances of replicates
/// from the estimate of their own sample vary. They are added up by instance (Liang & Zeger, Biometrika 73, 1986), with
/// the products of neighbours if these are autocorrelated (Newey & West, Econometrica 55, 1987). If a sample has too
/// few instances, their errors are assumed to be the same in all samples. `None` without a sample, or with one that has
/// no replicates.
pub fn pooled<C: Ord + Copy>(strata: &[Stratum<'_, C>], confidence: f64) -> Option<Pooled> {
    let count = strata.len() as f64;
    let mut sums: BTreeMap<C, f64> = BTreeMap::new();
    let (mut lost, mut fewest) = (0.0, usize::MAX);
    for stratum in strata {
        let limit = FARTHEST * qn(stratum.sample)?;
        let weight = 1.0 / (count * stratum.sample.len() as f64);
        for (x, instance) in stratum.sample.iter().zip(stratum.instances) {
            let away = (x - stratum.estimate).clamp(-limit, limit);
            *sums.entry(*instance).or_default() += weight * away;
        }
        let runs = stratum.instances.chunk_by(|a, b| a == b);
        let shares = runs.map(|run| run.len() as f64 / stratum.sample.len() as f64);
        lost += shares.clone().map(|share| share * share).sum::<f64>() / count;
        fewest = fewest.min(shares.count());
    }
    let value = strata.iter().map(|stratum| stratum.estimate).sum::<f64>() / count;
    let (error, freedom) = if fewest < LEAST_INSTANCES {
        let errors: f64 = strata.iter().map(|stratum| stratum.error).sum();
        (errors / count, PRIOR_FREEDOM)
    } else {
        let sums: Vec<f64> = sums.into_values().collect();
        let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
        let products: f64 = sums.windows(2).map(|pair| pair[0] * pair[1]).sum();
        // Each sample's own estimate takes one of its instances; more of them where they differ in size.
        let share = 1.0 - lost;
        let error = ((squares + products.max(0.0)) / share).sqrt();
        (error, ((sums.len() as f64 * share).round() as u32).max(1))
    };
    let half = student::quantile(1.0 - confidence, freedom) * error;
    let interval = Interval { low: value - half, high: value + half, confidence };
    let p = student::two_sided(value / error, freedom);
    value.is_finite().then_some(Pooled { value, interval, p })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimate, SignedRank, SplitMix64, benjamini_hochberg};

    const BLOCKS: usize = 12;
    const CELLS: usize = 100;

    /// Differences of the blocks under a load, and their instances.
    type Cell = (Vec<f64>, Vec<(usize, usize)>);

    /// A matrix without any difference: ten trials of ten cells, which have eight instances in common.
    fn matrix(rng: &mut SplitMix64, instance_sd: f64) -> Vec<Cell> {
        let mut normal = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        let mut cells = Vec::new();
        for trial in 0..10 {
            let offsets: Vec<f64> = (0..8).map(|_| instance_sd * normal()).collect();
            for _ in 0..CELLS / 10 {
                let sample = (0..BLOCKS).map(|block| offsets[block * 8 / BLOCKS] + 0.03 * normal());
                let instances = (0..BLOCKS).map(|block| (trial, block * 8 / BLOCKS));
                cells.push((sample.collect(), instances.collect()));
            }
        }
        cells
    }

    #[test]
    fn a_hundred_cells_without_a_difference_show_none() {
        for instance_sd in [0.0, 0.014] {
            let mut rng = SplitMix64::new(31);
            let mut tests = SignedRank::new();
            let (mut each, mut controlled, mut covered) = (0, 0, 0);
            const RUNS: usize = 100;
            for _ in 0..RUNS {
                let cells = matrix(&mut rng, instance_sd);
                let estimates: Vec<Estimate> = cells
                    .iter()
                    .map(|(sample, instances)| {
                        let clusters: Vec<usize> = instances.iter().map(|of| of.1).collect();
                        Estimate::of(&mut tests, sample, &clusters, 0.95).unwrap()
                    })
                    .collect();
                let p: Vec<f64> = estimates.iter().map(|estimate| estimate.p).collect();
                each += usize::from(p.iter().any(|p| *p <= 0.05));
                controlled += usize::from(benjamini_hochberg(&p).iter().any(|p| *p <= 0.05));
                let strata: Vec<Stratum<'_, _>> = cells
                    .iter()
                    .zip(&estimates)
                    .map(|((sample, instances), estimate)| Stratum {
                        estimate: estimate.value,
                        error: estimate.error,
                        sample,
                        instances,
                    })
                    .collect();
                let all = pooled(&strata, 0.95).unwrap();
                covered += usize::from(all.interval.low <= 0.0 && 0.0 <= all.interval.high);
            }
            assert!(each > 80, "one by one: {each}");
            // 5 % and twice the standard error.
            assert!(controlled <= 9, "{controlled}");
            assert!(covered >= 90, "{covered}");
        }
    }

    #[test]
    fn few_instances_are_the_same_in_all_samples() {
        let sample = [0.10, 0.11, 0.09, 0.10];
        let stratum = Stratum { estimate: 0.1, error: 0.015, sample: &sample, instances: &[1; 4] };
        let all = pooled(&[stratum; 50], 0.95).unwrap();
        let half = student::quantile(0.05, PRIOR_FREEDOM) * 0.015;
        assert!((all.interval.high - 0.1 - half).abs() < 1e-9, "{all:?}");
        assert_eq!(pooled::<usize>(&[], 0.95), None);
    }
}
