//! Replicates of a comparison: groups of neighbouring blocks, with the instances that they belong to.

use weir_model::study::Metric;
use weir_stats::clusters::{BLOCKS_FOR_CORRELATION, are_few, of_instances};
use weir_stats::relative_difference;

use crate::blocks::LoadData;

/// The replicates of one comparison.
pub(crate) struct Replicates {
    /// Relative differences between the arm and the one that it is compared with, in order of time; ±2 if only one of
    /// them has a figure.
    pub(crate) differences: Vec<f64>,
    /// Instance of the proxies that each replicate belongs to.
    pub(crate) instances: Vec<usize>,
    /// Cluster that each replicate belongs to: an instance, or a stretch of time.
    pub(crate) clusters: Vec<usize>,
    /// Ratio arm / against over all blocks taken together.
    pub(crate) pooled: f64,
    /// Number of neighbouring blocks in each replicate.
    pub(crate) merged: u32,
    /// Approximate number of requests in each replicate, of the arm that has fewer; `None` if the metric is no
    /// quantile.
    pub(crate) requests: Option<u64>,
}

impl Replicates {
    /// Returns true if there are too few instances to tell how much they differ.
    pub(crate) fn has_few_instances(&self) -> bool {
        are_few(&self.instances)
    }

    /// Returns true if clusters have so few replicates that their sums do not show what correlated ones have in common.
    pub(crate) fn has_short_clusters(&self) -> bool {
        let count = self.clusters.chunk_by(|a, b| a == b).count();
        self.clusters.len() < BLOCKS_FOR_CORRELATION * count
    }
}

/// Returns the replicates of groups of neighbouring `blocks`, at least `size` in each.
pub(crate) fn replicates(
    data: &LoadData<'_>,
    blocks: &[usize],
    size: usize,
    mut ratio: impl FnMut(&[usize]) -> f64,
) -> Replicates {
    let (mut differences, mut instances) = (Vec::new(), Vec::new());
    for group in groups(blocks, size) {
        let difference = relative_difference(ratio(group));
        if !difference.is_nan() {
            differences.push(difference);
            instances.push(data.instances[group[group.len() / 2]]);
        }
    }
    Replicates {
        differences,
        clusters: of_instances(&instances),
        instances,
        pooled: ratio(blocks),
        merged: size as u32,
        requests: None,
    }
}

/// Splits blocks into as many groups of neighbours as hold at least `size` blocks each, with sizes as even as possible.
pub(crate) fn groups(blocks: &[usize], size: usize) -> impl Iterator<Item = &[usize]> {
    let count = (blocks.len() / size).max(1);
    (0..count)
        .map(move |i| &blocks[i * blocks.len() / count..(i + 1) * blocks.len() / count])
        .filter(|group| !group.is_empty())
}

/// Returns the number of requests that a replicate of a quantile should have; 0 for other metrics. Ten lie beyond a p99
/// of 1,000. The typical p99 of many short times is compared: longer replicates all contain a moment in which the
/// machine stood still, short ones mostly do not (docs/statistics.md has figures).
pub fn samples_wanted(metric: Metric) -> u64 {
    match metric {
        Metric::ResponseP99 => 1_000,
        Metric::ResponseP50 => 100,
        Metric::Rate | Metric::ReceivedBytes | Metric::CpuPerRequest => 0,
    }
}

/// Returns the number of requests below which a replicate has no such quantile: one lies beyond a p99 of 100. Between
/// this and [`samples_wanted`] the quantile of a replicate is a little low, in both arms alike. A short load needs more
/// replicates most of all, and intervals cover as they should (docs/statistics.md has figures).
pub fn samples_needed(metric: Metric) -> u64 {
    samples_wanted(metric) / 10
}

/// Returns the number of neighbouring blocks in a replicate, so that it has `wanted` of the `requests` in `blocks`;
/// fewer if there would be less than `replicates` of them otherwise.
pub(crate) fn group_size(requests: u64, blocks: usize, wanted: u64, replicates: usize) -> usize {
    let per_block = requests / blocks.max(1) as u64;
    let enough = wanted.div_ceil(per_block.max(1)).max(1) as usize;
    enough.min((blocks / replicates).max(1))
}
