//! What the replicates of a comparison are: groups of neighbouring blocks, and the instances that they are of.

use weir_model::study::Metric;
use weir_stats::clusters::{BLOCKS_FOR_CORRELATION, are_few, of_instances};
use weir_stats::relative_difference;
use weir_stats::verdict::LEAST_REPLICATES;

use crate::blocks::LoadData;

/// The replicates of one comparison.
pub(crate) struct Replicates {
    /// Relative differences of the arm to the one that it is compared with, in order of time; ±2 where only one of them
    /// has a figure.
    pub(crate) differences: Vec<f64>,
    /// Instance of the proxies that each is of.
    pub(crate) instances: Vec<usize>,
    /// What each belongs to: an instance, or a stretch of time.
    pub(crate) clusters: Vec<usize>,
    /// arm / against over all blocks taken together.
    pub(crate) pooled: f64,
    /// Neighbouring blocks in each.
    pub(crate) merged: u32,
}

impl Replicates {
    /// Returns true if there are too few instances to tell how much they differ.
    pub(crate) fn has_few_instances(&self) -> bool {
        are_few(&self.instances)
    }

    /// Returns true if clusters have too few replicates for their sums to have what correlated ones have in common.
    pub(crate) fn has_short_clusters(&self) -> bool {
        let count = self.clusters.chunk_by(|a, b| a == b).count();
        self.clusters.len() < BLOCKS_FOR_CORRELATION * count
    }
}

/// Relative differences of groups of neighbouring `blocks`, at least `size` in each.
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
    }
}

/// As many groups of neighbours as hold at least `size` blocks each, their sizes as even as can be.
pub(crate) fn groups(blocks: &[usize], size: usize) -> impl Iterator<Item = &[usize]> {
    let count = (blocks.len() / size).max(1);
    let edge = move |i: usize| i * blocks.len() / count;
    (0..count)
        .map(move |i| &blocks[edge(i)..edge(i + 1)])
        .filter(|group| !group.is_empty())
}

/// Requests that a replicate of a quantile needs; for other metrics none. Ten lie beyond a p99 of 1,000, and
/// what is compared is the typical one of many short times: longer replicates all have a moment in which the machine
/// stood still, short ones mostly have none (docs/statistics.md has figures).
pub(crate) fn samples_needed(metric: Metric) -> u64 {
    match metric {
        Metric::ResponseP99 => 1_000,
        Metric::ResponseP50 => 100,
        Metric::Rate | Metric::ReceivedBytes | Metric::CpuPerRequest => 0,
    }
}

/// How many neighbouring blocks make a replicate with `needed` of the `requests` in `blocks`. `Err`: there are so few
/// requests that even [`LEAST_REPLICATES`] groups have this many each alone.
pub(crate) fn group_size(requests: u64, blocks: usize, needed: u64) -> Result<usize, u64> {
    let per_block = requests / blocks.max(1) as u64;
    let enough = needed.div_ceil(per_block.max(1)).max(1) as usize;
    let most = (blocks / LEAST_REPLICATES).max(1);
    match enough <= most {
        true => Ok(enough),
        false => Err(per_block * most as u64),
    }
}
