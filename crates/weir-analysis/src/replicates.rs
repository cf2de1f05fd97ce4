//! From blocks to replicates: log ratios that may be taken for independent.

use weir_model::record::TrialRecord;
use weir_model::study::Metric;
use weir_record::Run;
use weir_stats::verdict::LEAST_REPLICATES;
use weir_stats::{autocorrelation, autocorrelation_critical};

use crate::figures::{cpu_per_request, empty_histogram, rate, received_per_second};
use crate::gather::LoadData;

/// The replicates of one comparison.
pub(crate) struct Replicates {
    /// ln(arm / against), in order of time; finite.
    pub(crate) log_ratios: Vec<f64>,
    /// Neighbouring blocks in each.
    pub(crate) merged: u32,
    pub(crate) autocorrelation: f64,
    /// Still autocorrelated, with no blocks left to merge.
    pub(crate) correlated: bool,
}

/// Log ratios of groups of neighbouring `blocks`, at least `size` in each. Where they follow from
/// one another (lag-1 autocorrelation significantly above zero), an interval that takes them for
/// independent is too narrow: groups are doubled until that is over or fewer than
/// [`LEAST_REPLICATES`] would be left.
pub(crate) fn replicates(
    blocks: &[usize],
    mut size: usize,
    mut log_ratio: impl FnMut(&[usize]) -> f64,
) -> Replicates {
    loop {
        let log_ratios: Vec<f64> = groups(blocks, size)
            .map(&mut log_ratio)
            .filter(|d| d.is_finite())
            .collect();
        let autocorrelation = autocorrelation(&log_ratios).unwrap_or(0.0);
        let correlated = autocorrelation > autocorrelation_critical(log_ratios.len());
        if !correlated || blocks.len() / (2 * size) < LEAST_REPLICATES {
            return Replicates {
                log_ratios,
                merged: size as u32,
                autocorrelation,
                correlated,
            };
        }
        size *= 2;
    }
}

/// As many groups of neighbours as hold at least `size` blocks each, their sizes as even as can be.
fn groups(blocks: &[usize], size: usize) -> impl Iterator<Item = &[usize]> {
    let count = (blocks.len() / size).max(1);
    let edge = move |i: usize| i * blocks.len() / count;
    (0..count)
        .map(move |i| &blocks[edge(i)..edge(i + 1)])
        .filter(|group| !group.is_empty())
}

/// How many neighbouring blocks make a replicate of a response-time quantile.
pub(crate) struct GroupSize {
    pub(crate) blocks: usize,
    /// Requests of the arm with fewer, in a replicate on average.
    pub(crate) samples: u64,
    /// Requests that there should be.
    pub(crate) wanted: u64,
}

/// Requests wanted behind each quantile, and those below which it is not compared at all. For the
/// p99: 10,000 leave a hundred beyond it; with fewer than 1,000 it rests on fewer than ten.
pub(crate) fn samples_wanted(metric: Metric) -> (u64, u64) {
    match metric {
        Metric::ResponseP99 => (10_000, 1_000),
        _ => (1_000, 100),
    }
}

/// Groups large enough for `wanted` requests each, or, where the run is too short for that, the
/// largest that leave [`LEAST_REPLICATES`].
pub(crate) fn group_size(requests: u64, blocks: usize, wanted: u64) -> GroupSize {
    let per_block = requests / blocks.max(1) as u64;
    let enough = wanted.div_ceil(per_block.max(1)) as usize;
    let most = (blocks / LEAST_REPLICATES).max(1);
    let blocks = enough.clamp(1, most);
    GroupSize {
        blocks,
        samples: per_block * blocks as u64,
        wanted,
    }
}

/// Values of metrics over groups of blocks.
pub(crate) struct Values<'a> {
    data: &'a LoadData<'a>,
    /// By arm and block: the response-time buckets (value in nanoseconds, count) of a usable trial.
    /// Kept sparse: dense ones would take a quarter of a megabyte each. Empty in the closed loop.
    responses: Vec<Vec<Buckets>>,
    scratch: hdrhistogram::Histogram<u64>,
}

type Buckets = Vec<(u64, u64)>;

impl<'a> Values<'a> {
    pub(crate) fn new(run: &Run, data: &'a LoadData<'a>) -> Values<'a> {
        let buckets = |block: usize, arm: usize| -> Buckets {
            let trial = data.usable(block, arm);
            let histogram = trial.and_then(|trial| run.histogram(&trial.response_time.tag));
            let histogram = histogram.unwrap_or_else(empty_histogram);
            let recorded = histogram.iter_recorded();
            recorded
                .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
                .collect()
        };
        let all_blocks = |arm| (0..data.blocks.len()).map(|b| buckets(b, arm)).collect();
        let responses = match data.open {
            true => (0..data.study.arms.len()).map(all_blocks).collect(),
            false => Vec::new(),
        };
        Values {
            data,
            responses,
            scratch: empty_histogram(),
        }
    }

    /// Requests behind the response-time quantiles of `arm` in `blocks`.
    pub(crate) fn samples(&self, arm: usize, blocks: &[usize]) -> u64 {
        let buckets = blocks.iter().flat_map(|block| &self.responses[arm][*block]);
        buckets.map(|(_, count)| count).sum()
    }

    /// Completed requests per second of `arm` in `blocks`.
    pub(crate) fn rate(&self, arm: usize, blocks: &[usize]) -> f64 {
        rate(self.trials(arm, blocks))
    }

    /// `metric` of `arm` over `blocks` taken together; zero or not a number when nothing is known.
    pub(crate) fn value(&mut self, metric: Metric, arm: usize, blocks: &[usize]) -> f64 {
        match metric {
            Metric::Rate => self.rate(arm, blocks),
            Metric::ReceivedBytes => received_per_second(self.trials(arm, blocks)),
            Metric::CpuPerRequest => cpu_per_request(self.trials(arm, blocks)),
            Metric::ResponseP50 => self.quantile(arm, blocks, 0.5),
            Metric::ResponseP99 => self.quantile(arm, blocks, 0.99),
        }
    }

    fn trials<'b>(
        &self,
        arm: usize,
        blocks: &'b [usize],
    ) -> impl Iterator<Item = &'a TrialRecord> + Clone + use<'a, 'b> {
        let data = self.data;
        blocks
            .iter()
            .filter_map(move |block| data.usable(*block, arm))
    }

    fn quantile(&mut self, arm: usize, blocks: &[usize], quantile: f64) -> f64 {
        self.scratch.reset();
        for (value, count) in blocks.iter().flat_map(|block| &self.responses[arm][*block]) {
            self.scratch.saturating_record_n(*value, *count);
        }
        self.scratch.value_at_quantile(quantile) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_neighbours_and_leave_nobody_out() {
        let blocks: Vec<usize> = (0..11).collect();
        for size in 1..=12 {
            let groups: Vec<&[usize]> = groups(&blocks, size).collect();
            assert_eq!(groups.concat(), blocks, "size {size}");
            let least = groups.iter().map(|group| group.len()).min();
            assert!(least >= Some(size.min(11)), "size {size}: {groups:?}");
        }
        assert_eq!(groups(&[], 1).count(), 0);
    }

    #[test]
    fn groups_grow_until_the_quantile_has_its_samples() {
        let of = |requests, blocks| {
            let size = group_size(requests, blocks, 10_000);
            (size.blocks, size.samples)
        };
        assert_eq!(of(1_000_000, 100), (1, 10_000));
        assert_eq!(of(400_000, 100), (3, 12_000));
        assert_eq!(
            of(40_000, 100),
            (16, 6_400),
            "too short: six replicates are worth more"
        );
        assert_eq!(of(40_000, 4), (1, 10_000));
        assert_eq!(of(0, 0), (1, 0));
    }
}
