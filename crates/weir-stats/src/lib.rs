//! Intervals, exact tests, verdicts: pure functions that know no HTTP.
//!
//! A replicate here is one paired difference, for weir the relative difference of two arms in one block ([`relative`]),
//! which for small ones is `ln(arm / against)`. Machines that share their host
//! are noisy in bursts, so nothing assumes a normal distribution: estimates and intervals come from Walsh averages
//! ([`walsh`]), their confidence and the p of the test from the exact distribution of the signed ranks when signs are
//! flipped at random ([`signed_rank`]), and the spread from pairwise differences ([`spread`]). If both tails are far
//! out, the median and its sign test replace them. Correlation of replicates of one instance, or of one moment, is
//! derived from the differences between them ([`clusters`]). [`estimate`] combines these; [`spending`] limits the
//! claims that may be made before the end of a study.
//!
//! Nothing here keeps time, reads files or draws numbers that a seed does not fix. Functions of a sample return `None`
//! when it is empty or holds a value that is not finite.

#![warn(missing_docs)]

pub mod change;
pub mod clusters;
pub mod design;
mod difference;
pub mod estimate;
pub mod growth;
mod median;
pub mod monitor;
pub mod multiplicity;
mod normal;
pub mod plane;
pub mod pooled;
pub mod prediction;
pub mod relative;
pub mod scaling;
mod selection;
pub mod share;
pub mod signed_rank;
pub mod spending;
pub mod spread;
mod student;
pub mod trend;
pub mod verdict;
pub mod walsh;

pub use change::{change_point, excursions};
pub use design::{SplitMix64, block_order};
pub use difference::difference;
pub use estimate::Estimate;
pub use monitor::{Monitored, monitor};
pub use multiplicity::{benjamini_hochberg, holm};
pub use normal::cdf as normal_cdf;
pub use relative::{ratio_of, relative_difference};
pub use share::share_interval;
pub use signed_rank::{Interval, SignedRank};
pub use spending::{chance_to_decide, critical_of, critical_values, level_of};
pub use spread::{autocorrelation, autocorrelation_critical, power, qn, rank_autocorrelation, sd};
pub use student::{quantile as student_quantile, two_sided as student_two_sided};
pub use trend::{Slope, slope_of};
pub use verdict::{Evidence, Outcome, least_replicates, verdict};
pub use walsh::hodges_lehmann;

/// Returns the sample in ascending order; `None` when it is empty or holds a value that is not finite.
fn ascending(sample: &[f64]) -> Option<Vec<f64>> {
    if sample.is_empty() || !sample.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}
