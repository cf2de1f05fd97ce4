//! Values of metrics over groups of blocks, and response times of all requests that were due.

use std::ops::Range;

use weir_model::limit::Limit;
use weir_model::record::TrialRecord;
use weir_model::study::{Metric, Study};
use weir_record::Run;

use crate::blocks::LoadData;
use crate::findings::HoldUpFindings;
use crate::hold_ups;
use crate::outcomes::{Answers, cpu_per_request, rate, received_per_second, sum};

/// Values of metrics over groups of blocks.
pub(crate) struct Values<'a> {
    pub(crate) data: &'a LoadData<'a>,
    /// Findings of the meters about the slices of an open loop.
    pub(crate) hold_ups: Option<HoldUpFindings>,
    /// Response-time buckets (value in nanoseconds, count) of usable trials, by arm and block. Kept sparse: dense ones
    /// would take a quarter of a megabyte each. Empty in the closed loop.
    responses: Vec<Vec<Buckets>>,
    /// Buckets without the slices in which the machine stood still, by arm and block; `None` if the trial has no such
    /// slices or they are not left out.
    undisturbed: Vec<Vec<Option<Buckets>>>,
}

type Buckets = Vec<(u64, u64)>;

/// Calls `of` for every arm and block, and collects the results by arm.
fn collect_by_arm<T>(
    arms: Range<usize>,
    blocks: Range<usize>,
    of: impl Fn(usize, usize) -> T,
) -> Vec<Vec<T>> {
    arms.map(|arm| blocks.clone().map(|block| of(block, arm)).collect()).collect()
}

impl<'a> Values<'a> {
    pub(crate) fn new(run: &Run, data: &'a LoadData<'a>) -> Values<'a> {
        let hold_ups = hold_ups::seen(data);
        let left_out = hold_ups.as_ref().is_some_and(|seen| seen.left_out);
        let arms = 0..if data.open { data.study.arms.len() } else { 0 };
        let blocks = 0..data.blocks.len();
        Values {
            data,
            hold_ups,
            responses: collect_by_arm(arms.clone(), blocks.clone(), |block, arm| {
                let trial = data.usable(block, arm);
                trial.map_or(&[][..], |trial| run.histogram(&trial.response_time)).to_vec()
            }),
            undisturbed: collect_by_arm(arms, blocks, |block, arm| {
                let trial = data.usable(block, arm).filter(|_| left_out)?;
                run.undisturbed(trial).map(<[_]>::to_vec)
            }),
        }
    }

    /// Returns true if slices in which the machine stood still are left out of typical p99s.
    fn leaves_out(&self) -> bool {
        self.hold_ups.as_ref().is_some_and(|seen| seen.left_out)
    }

    /// Returns those of the blocks in which each of the arms has a value of the metric.
    pub(crate) fn telling(
        &self,
        metric: Metric,
        arms: &[usize],
        mut blocks: Vec<usize>,
    ) -> Vec<usize> {
        if metric == Metric::ResponseP99 && self.leaves_out() {
            blocks.retain(|block| {
                arms.iter().all(|arm| hold_ups::has_undisturbed(self.data, *block, *arm))
            });
        }
        blocks
    }

    /// Returns the response times that a metric is computed from.
    pub(crate) fn times_of(&self, metric: Metric, arm: usize, blocks: &[usize]) -> Times {
        let all = self.times(arm, blocks);
        if metric != Metric::ResponseP99 || !self.leaves_out() {
            return all;
        }
        let mut buckets: Buckets = blocks
            .iter()
            .flat_map(|block| match &self.undisturbed[arm][*block] {
                Some(undisturbed) => undisturbed,
                None => &self.responses[arm][*block],
            })
            .copied()
            .collect();
        buckets.sort_unstable();
        let due = self
            .trials(arm, blocks)
            .flat_map(|trial| &trial.slices)
            .filter(|slice| !slice.stood_still)
            .map(|slice| slice.due);
        let answered: u64 = buckets.iter().map(|(_, count)| count).sum();
        Times { due: due.sum::<u64>().max(answered), buckets, ..all }
    }

    /// Returns the number of requests behind the response-time quantiles of `arm` in `blocks`: those that were due,
    /// answered or not.
    pub(crate) fn samples(&self, arm: usize, blocks: &[usize]) -> u64 {
        self.due(arm, blocks).max(self.answered(arm, blocks))
    }

    fn answered(&self, arm: usize, blocks: &[usize]) -> u64 {
        blocks.iter().flat_map(|block| &self.responses[arm][*block]).map(|(_, count)| count).sum()
    }

    /// Returns the number of requests that were due in measured time. If that was not recorded, the requests that were
    /// answered in it and all that never ended, whenever they were due.
    fn due(&self, arm: usize, blocks: &[usize]) -> u64 {
        let trials = self.trials(arm, blocks);
        match sum(trials.clone(), |slice| slice.due) as u64 {
            0 => self.answered(arm, blocks) + Answers::of(trials, self.data.study).never,
            due => due,
        }
    }

    /// Returns `metric` of `arm` over `blocks` taken together; zero or NaN if nothing is known.
    pub(crate) fn value(&self, metric: Metric, arm: usize, blocks: &[usize]) -> f64 {
        match metric {
            Metric::Rate => rate(self.trials(arm, blocks), self.data.study),
            Metric::ReceivedBytes => received_per_second(self.trials(arm, blocks), self.data.study),
            Metric::CpuPerRequest => cpu_per_request(self.trials(arm, blocks), self.data.study),
            Metric::ResponseP50 => self.times_of(metric, arm, blocks).quantile(0.5),
            Metric::ResponseP99 => self.times_of(metric, arm, blocks).quantile(0.99),
        }
    }

    fn trials<'b>(
        &self,
        arm: usize,
        blocks: &'b [usize],
    ) -> impl Iterator<Item = &'a TrialRecord> + Clone + use<'a, 'b> {
        let data = self.data;
        blocks.iter().filter_map(move |block| data.usable(*block, arm))
    }

    /// Returns the response times of all requests that were due in some blocks.
    pub(crate) fn times(&self, arm: usize, blocks: &[usize]) -> Times {
        let buckets = blocks.iter().flat_map(|block| &self.responses[arm][*block]);
        let mut buckets: Buckets = buckets.copied().collect();
        buckets.sort_unstable();
        let answers = Answers::of(self.trials(arm, blocks), self.data.study);
        Times { buckets, good: answers.good_share(), due: self.samples(arm, blocks) }
    }
}

/// Response times of requests that were due. A request that was not answered, or not as it should be, counts as
/// infinitely long. Wrong answers are assumed to take as long as right ones, because histograms do not tell them apart.
pub(crate) struct Times {
    /// Response times of answered requests, (nanoseconds, count), ascending.
    pub(crate) buckets: Buckets,
    /// Share of the answers that are right.
    pub(crate) good: f64,
    /// Number of requests that were due.
    pub(crate) due: u64,
}

/// Returns the share of the requests due in a trial that broke each limit of its study's capacity objective, in the
/// objective's order. `buckets` are the trial's response times, (nanoseconds, count), ascending.
pub fn bad_shares(trial: &TrialRecord, buckets: Vec<(u64, u64)>, study: &Study) -> Vec<f64> {
    if study.capacity.is_empty() {
        return Vec::new();
    }
    let answers = Answers::of([trial], study);
    let answered: u64 = buckets.iter().map(|(_, count)| count).sum();
    let times = Times {
        buckets,
        good: answers.good_share(),
        due: (sum([trial], |slice| slice.due) as u64).max(answered),
    };
    let shares = study.capacity.iter().map(|limit| match limit {
        Limit::Quantile(_, time) => times.beyond(time.as_nanos() as f64),
        Limit::Mean(time) => {
            // As weir_search::Bound::bad_of_mean has it.
            let (mean, limit) = (trial.response_time.mean, time.as_nanos() as f64);
            (-limit / mean.max(1.0)).exp().max(answers.bad_share())
        }
        Limit::Errors(_) => answers.bad_share(),
    });
    // Where nothing was due nothing is bad.
    shares.map(|bad| if bad.is_finite() { bad } else { 0.0 }).collect()
}

impl Times {
    /// Returns the number of right answers in a count of answers.
    fn good(&self, count: u64) -> f64 {
        count as f64 * self.good
    }

    /// Returns a quantile in nanoseconds; infinite if it falls among requests that were not answered, NaN if nothing
    /// was due.
    pub(crate) fn quantile(&self, quantile: f64) -> f64 {
        if self.due == 0 {
            return f64::NAN;
        }
        // A request at least, as hdrhistogram has it; and of a rank that is whole but for rounding, that one.
        let rank = (quantile * self.due as f64 - 1e-6).max(1e-6);
        let mut passed = 0;
        let reaches = self.buckets.iter().find(|(_, count)| {
            passed += count;
            self.good(passed) >= rank
        });
        reaches.map_or(f64::INFINITY, |(ns, _)| *ns as f64)
    }

    /// Returns the share of requests that took longer than `ns`, 0..1; NaN if nothing was due.
    pub(crate) fn beyond(&self, ns: f64) -> f64 {
        let within = self.buckets.iter().take_while(|(time, _)| *time as f64 <= ns);
        let within: u64 = within.map(|(_, count)| count).sum();
        1.0 - self.good(within) / self.due as f64
    }
}
