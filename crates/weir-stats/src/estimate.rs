//! Estimate of a difference with its precision, from its replicates in order of time and their clusters.

use crate::clusters::{BetweenClusters, together};
use crate::median::Median;
use crate::signed_rank::{Interval, SignedRank};
use crate::spread::{autocorrelation_critical, detectable_errors, qn, rank_autocorrelation, sd};
use crate::walsh::hodges_lehmann;

/// An estimate and its precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Hodges-Lehmann estimate, or the median, in the unit of the sample.
    pub value: f64,
    /// True if the value is the median: a few replicates in ten lie far out on both sides.
    pub is_median: bool,
    /// Interval of the value: that for independent replicates, exact if they are symmetric, widened according to the
    /// clusters.
    pub interval: Interval,
    /// Two-sided p of a true value of 0: the larger one of the exact test and of the clusters'. It is at most 1 - the
    /// requested confidence exactly if the interval excludes 0.
    pub p: f64,
    /// Standard error of the estimate: the larger one of independent replicates and of the clusters.
    pub error: f64,
    /// Standard error of the estimate of independent replicates.
    independent: f64,
    between: Option<BetweenClusters>,
    /// Lag-1 autocorrelation of the ranks.
    pub autocorrelation: f64,
    /// True if the autocorrelation is significantly above 0.
    pub correlated: bool,
}

impl Estimate {
    /// Estimates a sample in order of time, with `clusters` as in [`BetweenClusters::of`]. Replicates are compared by
    /// their ranks, so that an extreme one weighs no more than the largest of the others.
    pub fn of(
        tests: &mut SignedRank,
        sample: &[f64],
        clusters: &[usize],
        confidence: f64,
    ) -> Option<Estimate> {
        let autocorrelation = rank_autocorrelation(sample).unwrap_or(0.0);
        let correlated = autocorrelation > autocorrelation_critical(sample.len());
        let lag_1 = correlated.then_some(autocorrelation);
        // Of replicates that follow from one another, as many as seem to say where the middle is do not.
        let middle = Median::where_better(sample, confidence).filter(|_| !correlated);
        let (alone, between) = match &middle {
            None => {
                let alone = independent(tests, sample, confidence)?;
                let between = BetweenClusters::of(sample, clusters, alone.value, lag_1);
                (alone, between)
            }
            Some(middle) => {
                let alone = Independent {
                    value: middle.value,
                    interval: middle.interval,
                    p: middle.p,
                    error: middle.error,
                };
                let between = BetweenClusters::of_median(sample, clusters, middle, lag_1);
                (alone, between)
            }
        };
        let estimate = Estimate {
            value: alone.value,
            is_median: middle.is_some(),
            interval: alone.interval,
            p: alone.p,
            error: alone.error,
            independent: alone.error,
            between: None,
            autocorrelation,
            correlated,
        };
        Some(estimate.widened(between, confidence))
    }

    /// Adjusts the estimate for replicates of these `instances`, which are too few to estimate how much instances
    /// differ: prior knowledge from other proxies is used instead ([`BetweenClusters::with_prior`]). `confidence` must
    /// be the one requested before.
    pub fn with_few_instances(
        self,
        sample: &[f64],
        instances: &[usize],
        confidence: f64,
    ) -> Estimate {
        let between = BetweenClusters::with_prior(sample, instances, self.value, self.error);
        self.widened(between, confidence)
    }

    /// Estimates a sample at one of several looks. Instances in a short study are too short for their sums to contain
    /// the correlation between blocks, so neighbours are merged. At a look before the last the replicates are assumed
    /// to have the highest autocorrelation that so few leave possible ([`BetweenClusters::of_process`]), because a
    /// claim ends the study before it could be measured; the standard error stays.
    pub fn at_look(
        tests: &mut SignedRank,
        sample: &[f64],
        clusters: &[usize],
        confidence: f64,
        is_last: bool,
    ) -> Option<Estimate> {
        let mut estimate = Estimate::of(tests, sample, clusters, confidence)?;
        if estimate.correlated {
            estimate = Estimate::of(tests, sample, &together(clusters), confidence)?;
        }
        if is_last {
            return Some(estimate);
        }
        let lag_1 = estimate.autocorrelation;
        let between = BetweenClusters::of_process(estimate.independent, lag_1, sample.len());
        Some(Estimate { error: estimate.error, ..estimate.widened(between, confidence) })
    }

    /// Widens the interval according to these clusters.
    fn widened(self, between: Option<BetweenClusters>, confidence: f64) -> Estimate {
        let Some(between) = between else {
            return self;
        };
        // Ranks are whole, so their interval is a little surer than asked for, and the clusters' is made as sure; its p
        // is then held against the level asked for.
        let stricter = ((1.0 - confidence) / (1.0 - self.interval.confidence)).max(1.0);
        Estimate {
            interval: between.widen(self.value, self.interval),
            p: (between.p_two_sided(self.value) * stricter).min(1.0).max(self.p),
            error: between.error.max(self.error),
            between: Some(between),
            ..self
        }
    }

    /// Returns the smallest ratio change (0.03 is 3 %) that would be detected with 80 % power in a test at this
    /// two-sided `level`, for a sample of logarithms of ratios.
    pub fn minimum_detectable(&self, level: f64) -> f64 {
        let alone = detectable_errors(level) * self.independent;
        let between = self.between.map(|between| between.minimum_detectable(level));
        // Not a number with one replicate: then nothing can be said.
        between.map_or(alone, |between| between.max(alone)).exp_m1()
    }
}

/// A location with its precision for independent replicates.
struct Independent {
    value: f64,
    interval: Interval,
    p: f64,
    error: f64,
}

/// Returns the pseudo-median of independent replicates.
fn independent(tests: &mut SignedRank, sample: &[f64], confidence: f64) -> Option<Independent> {
    // Qn is zero when half of the replicates are equal; then the plain one says more.
    let spread = qn(sample).filter(|qn| *qn > 0.0).or(sd(sample));
    Some(Independent {
        value: hodges_lehmann(sample)?,
        interval: tests.interval_of_any(sample, confidence)?,
        p: tests.p_of_any(sample)?,
        error: spread.map_or(f64::NAN, |spread| spread / (sample.len() as f64).sqrt()),
    })
}
