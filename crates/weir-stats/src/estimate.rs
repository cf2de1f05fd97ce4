//! Everything that is known of one difference, from its replicates in order of time and the clusters that they
//! come in.

use crate::clusters::BetweenClusters;
use crate::median::Median;
use crate::signed_rank::{Interval, SignedRank};
use crate::spread::{autocorrelation_critical, minimum_detectable, qn, rank_autocorrelation, sd};
use crate::walsh::hodges_lehmann;

/// An estimate and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Hodges-Lehmann estimate, or the median, in the unit of the sample.
    pub value: f64,
    /// Whether it is the median: a few replicates in ten lie far out on both sides.
    pub is_median: bool,
    /// Its interval: that of independent replicates, exact where they are symmetric, widened to what the clusters
    /// allow.
    pub interval: Interval,
    /// Two-sided p of a true value of 0: the larger one of the exact test and of the clusters'.
    pub p: f64,
    /// Standard error of the estimate: the larger one of independent replicates and of the clusters.
    pub error: f64,
    /// The smallest difference that would show with 80 % power at a level of 5 %.
    pub minimum_detectable: f64,
    /// Lag-1 autocorrelation of the ranks.
    pub autocorrelation: f64,
    /// Whether that is significantly above 0.
    pub correlated: bool,
}

impl Estimate {
    /// Of a sample in order of time, `clusters` as in [`BetweenClusters::of`]. Replicates are compared by their
    /// ranks, so that one which is beyond all bounds weighs no more than the largest of the others.
    pub fn of(
        tests: &mut SignedRank,
        sample: &[f64],
        clusters: &[usize],
        confidence: f64,
    ) -> Option<Estimate> {
        let value = hodges_lehmann(sample)?;
        let interval = tests.interval_of_any(sample, confidence)?;
        let p = tests.p_two_sided(sample)?;
        let autocorrelation = rank_autocorrelation(sample).unwrap_or(0.0);
        let correlated = autocorrelation > autocorrelation_critical(sample.len());
        let lag_1 = correlated.then_some(autocorrelation);
        // Qn is zero when half of the replicates are equal; then the plain one says more.
        let spread = qn(sample).filter(|qn| *qn > 0.0).or(sd(sample));
        let least = spread.map_or(f64::NAN, |spread| minimum_detectable(spread, sample.len()));
        // Of replicates that follow from one another, as many as seem to say where the middle is do not.
        let middle = Median::where_better(sample, confidence).filter(|_| !correlated);
        let (value, interval, p, least, between) = match &middle {
            None => {
                let between = BetweenClusters::of(sample, clusters, value, lag_1);
                (value, interval, p, least, between)
            }
            Some(middle) => {
                let between = BetweenClusters::of_median(sample, clusters, middle, lag_1);
                let least = minimum_detectable(middle.error, 1);
                (middle.value, middle.interval, middle.p, least, between)
            }
        };
        let independent = match &middle {
            None => spread.map_or(f64::NAN, |spread| spread / (sample.len() as f64).sqrt()),
            Some(middle) => middle.error,
        };
        let error = between.map_or(independent, |between| between.error.max(independent));
        let (interval, p, least) = match between {
            None => (interval, p, least),
            Some(between) => (
                between.widen(value, interval),
                between.p_two_sided(value).max(p),
                between.minimum_detectable().exp_m1().max(least),
            ),
        };
        Some(Estimate {
            value,
            is_median: middle.is_some(),
            interval,
            p,
            error,
            minimum_detectable: least,
            autocorrelation,
            correlated,
        })
    }
}
