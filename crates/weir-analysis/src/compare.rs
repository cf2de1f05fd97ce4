//! From blocks to verdicts: log ratios that may be taken for independent, and one arm against another by
//! them, with estimate, interval, p, verdict, and why.

use hdrhistogram::Histogram;
use weir_model::record::TrialRecord;
use weir_model::study::{ArmRole, Compare, Metric, Objective};
use weir_record::Run;
use weir_stats::verdict::LEAST_REPLICATES;
use weir_stats::{
    Evidence, Outcome, SignedRank, autocorrelation, autocorrelation_critical, hodges_lehmann, holm,
    minimum_detectable, qn, sd, verdict,
};

use crate::blocks::LoadData;
use crate::findings::{Comparison, Verdict};
use crate::outcomes::{Answers, cpu_per_request, rate, received_per_second, sum};

/// The log ratio of a block in which only one arm has a figure: beyond all others, and finite, so that
/// ranks and their averages can be taken of it.
const WORST: f64 = 1e3;
/// A log ratio from which on there is no bound.
const UNBOUNDED: f64 = 1e2;

/// Compares the arms under one load.
pub(crate) struct Comparer<'a> {
    pub(crate) data: &'a LoadData<'a>,
    pub(crate) values: Values<'a>,
    /// Kept from load to load: it has tables that can be used again.
    pub(crate) tests: &'a mut SignedRank,
}

/// Why there is nothing to compare, in half a sentence.
struct NotComparable(String);

/// What was compared under a load.
#[derive(Default)]
pub(crate) struct Compared {
    /// Each arm with the one in its `against`, by metric, then by arm.
    pub(crate) comparisons: Vec<Comparison>,
    /// Every pair, where the study asks for them, by metric, then by arm.
    pub(crate) pairs: Vec<Comparison>,
}

/// What the replicates of one comparison are, or why there are none.
type Drawn = Result<(Replicates, Option<GroupSize>), NotComparable>;

impl<'a> Comparer<'a> {
    pub(crate) fn new(
        run: &Run,
        data: &'a LoadData<'a>,
        tests: &'a mut SignedRank,
    ) -> Comparer<'a> {
        let values = Values::new(run, data);
        Comparer {
            data,
            values,
            tests,
        }
    }

    /// Compares everything that is to be compared.
    pub(crate) fn compare(&mut self) -> Compared {
        let mut compared = Compared::default();
        for metric in self.data.metrics() {
            match self.data.study.compare {
                Compare::Against => compared.comparisons.extend(self.against(metric)),
                Compare::Pairs => {
                    let pairs = self.pairs(metric);
                    compared.comparisons.extend(self.among(&pairs, metric));
                    compared.pairs.extend(pairs);
                }
            }
        }
        compared
    }

    /// Each arm with the one that it is compared with: one family.
    fn against(&mut self, metric: Metric) -> Vec<Comparison> {
        let arms = &self.data.study.arms;
        let each = arms.iter().enumerate().skip(1);
        let mut family: Vec<Comparison> = each
            .map(|(arm, spec)| self.estimate(metric, (arm, spec.against)))
            .collect();
        correct(&mut family, self.data);
        self.judge_all(&mut family);
        family
    }

    /// Every arm but the A/A arm with every one before it: one family.
    fn pairs(&mut self, metric: Metric) -> Vec<Comparison> {
        let arms = self.data.study.arms.iter().enumerate();
        let of_pairs = arms.filter(|(_, arm)| arm.role != ArmRole::SameAsBaseline);
        let arms: Vec<usize> = of_pairs.map(|(index, _)| index).collect();
        let mut family = Vec::new();
        for (place, &arm) in arms.iter().enumerate() {
            for &against in &arms[..place] {
                family.push(self.estimate(metric, (arm, against)));
            }
        }
        holm_over(&mut family.iter_mut().filter(is_valid).collect::<Vec<_>>());
        self.judge_all(&mut family);
        family
    }

    /// Each arm with the one that it is compared with, taken from the pairs: a verdict is the same
    /// wherever it stands. The A/A arm is in no pair and is compared by itself.
    fn among(&mut self, pairs: &[Comparison], metric: Metric) -> Vec<Comparison> {
        let arms = &self.data.study.arms;
        let tests = pairs.iter().filter(is_valid).count();
        let each = arms.iter().enumerate().skip(1).map(|(index, arm)| {
            let against = &arms[arm.against].name;
            let is_it = |pair: &&Comparison| pair.arm == arm.name && pair.against == *against;
            if let Some(pair) = pairs.iter().find(is_it) {
                return pair.clone();
            }
            let mut own = self.estimate(metric, (index, arm.against));
            own.p_holm = (own.p * tests.max(1) as f64).min(1.0);
            self.judge_all(std::slice::from_mut(&mut own));
            own
        });
        each.collect()
    }

    /// Everything but the verdict, which needs the comparisons made beside this one.
    fn estimate(&mut self, metric: Metric, (arm, against): (usize, usize)) -> Comparison {
        let mut comparison = blank(self.data, metric, arm, against);
        let (drawn, size) = match self.draw(metric, arm, against) {
            Ok(drawn) => drawn,
            Err(NotComparable(why)) => {
                comparison.because = why;
                return comparison;
            }
        };
        let d = &drawn.log_ratios;
        let estimate = hodges_lehmann(d);
        let confidence = self.data.study.objective.confidence;
        let interval = self.tests.interval(d, confidence);
        let p = self.tests.p_two_sided(d);
        let (Some(estimate), Some(interval), Some(p)) = (estimate, interval, p) else {
            comparison.because = "the metric was not recorded".to_owned();
            return comparison;
        };
        comparison.n = d.len() as u32;
        comparison.merged = drawn.merged;
        comparison.autocorrelation = drawn.autocorrelation;
        comparison.ratio = ratio(estimate);
        comparison.interval = (ratio(interval.low), ratio(interval.high));
        comparison.pooled = drawn.pooled;
        comparison.confidence = interval.confidence;
        comparison.p = p;
        comparison.p_holm = p;
        // Qn is zero when half of the replicates are equal; then the plain one says more.
        let spread = qn(d).filter(|qn| *qn > 0.0).or(sd(d));
        if let Some(spread) = spread {
            let least = minimum_detectable(spread, d.len());
            comparison.minimum_detectable = match least {
                least if least > UNBOUNDED => f64::INFINITY,
                least => least,
            };
        }
        comparison.verdict = Verdict::Inconclusive;
        comparison.because = caveats(&drawn, size.as_ref());
        comparison
    }

    /// The replicates of `metric`, from the blocks in which both arms are usable.
    fn draw(&mut self, metric: Metric, arm: usize, against: usize) -> Drawn {
        let data = self.data;
        let unseen = [arm, against].map(|index| &data.study.arms[index]);
        let unseen = unseen.into_iter().find(|arm| !data.sees_process(arm));
        if let (Metric::CpuPerRequest, Some(unseen)) = (metric, unseen) {
            return Err(NotComparable(format!(
                "weir did not start the proxy of {} and does not see its CPU time",
                unseen.name
            )));
        }
        let blocks = data.usable_pairs(arm, against);
        if blocks.is_empty() {
            return Err(NotComparable(match data.blocks.len() {
                0 => "nothing was measured".to_owned(),
                n => format!("none of {n} blocks was valid for both arms"),
            }));
        }
        let values = &self.values;
        let size = match metric.response_quantile().is_some() {
            true => Some(quantile_groups(values, metric, &blocks, (arm, against))?),
            false => None,
        };
        let least = size.as_ref().map_or(1, |size| size.blocks);
        let ratio = |group: &[usize]| {
            values.value(metric, arm, group) / values.value(metric, against, group)
        };
        let pooled = ratio(&blocks);
        let drawn = replicates(&blocks, least, |group| ratio(group).ln());
        if drawn.log_ratios.is_empty() {
            let why = "in no block did either arm answer enough requests for it";
            return Err(NotComparable(why.to_owned()));
        }
        Ok((Replicates { pooled, ..drawn }, size))
    }

    /// Verdicts and their reasons; leaves what is not comparable as it is.
    fn judge_all(&self, family: &mut [Comparison]) {
        let valid = family.iter_mut().filter(is_valid);
        valid.for_each(|comparison| judge(comparison, &self.data.study.objective));
    }
}

fn quantile_groups(
    values: &Values<'_>,
    metric: Metric,
    blocks: &[usize],
    (arm, against): (usize, usize),
) -> Result<GroupSize, NotComparable> {
    let (wanted, least) = samples_wanted(metric);
    let requests = values
        .samples(arm, blocks)
        .min(values.samples(against, blocks));
    let size = group_size(requests, blocks.len(), wanted);
    if size.samples < least {
        return Err(NotComparable(format!(
            "only {} requests in a replicate, fewer than the {least} that the quantile needs",
            size.samples
        )));
    }
    Ok(size)
}

/// A comparison of which nothing is known yet.
fn blank(data: &LoadData<'_>, metric: Metric, arm: usize, against: usize) -> Comparison {
    let arms = &data.study.arms;
    Comparison {
        metric,
        arm: arms[arm].name.clone(),
        against: arms[against].name.clone(),
        n: 0,
        merged: 1,
        autocorrelation: 0.0,
        ratio: f64::NAN,
        pooled: f64::NAN,
        interval: (f64::NAN, f64::NAN),
        confidence: 0.0,
        p: 1.0,
        p_holm: 1.0,
        minimum_detectable: f64::NAN,
        verdict: Verdict::Invalid,
        because: String::new(),
    }
}

/// What a reader should know beside the verdict, to be appended to its reason.
fn caveats(drawn: &Replicates, size: Option<&GroupSize>) -> String {
    let mut text = String::new();
    if let Some(size) = size.filter(|size| size.samples < size.wanted) {
        text += &format!(
            "; about {} requests behind each quantile, {} would be better",
            size.samples, size.wanted
        );
    }
    if drawn.correlated {
        text += "; neighbouring replicates still follow from one another, so the interval may be too narrow";
    }
    text
}

/// Holm's correction over the changes that were compared on one metric. The A/A arm answers another
/// question (is the lab sound?) and does not weigh on them, but it must not cry wolf more readily
/// than they do: its p is corrected as that of one of them (Bonferroni).
fn correct(family: &mut [Comparison], data: &LoadData<'_>) {
    let is_change = |c: &Comparison| {
        let arm = data.study.arms.iter().find(|arm| arm.name == c.arm);
        arm.is_some_and(|arm| arm.role == ArmRole::Change)
    };
    let valid = family.iter_mut().filter(is_valid);
    let (mut changes, same): (Vec<_>, Vec<_>) = valid.partition(|c| is_change(c));
    holm_over(&mut changes);
    for comparison in same {
        comparison.p_holm = (comparison.p * changes.len().max(1) as f64).min(1.0);
    }
}

fn is_valid(comparison: &(impl std::borrow::Borrow<Comparison> + ?Sized)) -> bool {
    comparison.borrow().verdict != Verdict::Invalid
}

/// Holm's correction over one family.
fn holm_over(family: &mut [&mut Comparison]) {
    let p: Vec<f64> = family.iter().map(|comparison| comparison.p).collect();
    for (comparison, corrected) in family.iter_mut().zip(holm(&p)) {
        comparison.p_holm = corrected;
    }
}

fn judge(comparison: &mut Comparison, objective: &Objective) {
    let evidence = Evidence {
        interval: comparison.interval,
        confidence: comparison.confidence,
        p: comparison.p_holm,
        n: comparison.n as usize,
    };
    let outcome = verdict(
        &evidence,
        objective.band,
        objective.confidence,
        comparison.metric.higher_is_better(),
    );
    comparison.verdict = match outcome {
        Outcome::Inconclusive => Verdict::Inconclusive,
        _ if comparison.is_contradicted(objective.band) => Verdict::Inconclusive,
        Outcome::Better => Verdict::Better,
        Outcome::Worse => Verdict::Worse,
        Outcome::Equivalent => Verdict::Equivalent,
    };
    let reason = comparison.reason(objective);
    comparison.because.insert_str(0, &reason);
}

/// The ratio of a logarithm, 0 or infinite where there is no bound.
fn ratio(log: f64) -> f64 {
    match log {
        log if log > UNBOUNDED => f64::INFINITY,
        log if log < -UNBOUNDED => 0.0,
        log => log.exp(),
    }
}

/// The replicates of one comparison.
pub(crate) struct Replicates {
    /// ln(arm / against), in order of time; finite.
    pub(crate) log_ratios: Vec<f64>,
    /// arm / against over all blocks taken together.
    pub(crate) pooled: f64,
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
            .filter(|d| !d.is_nan())
            .map(|d| d.clamp(-WORST, WORST))
            .collect();
        let autocorrelation = autocorrelation(&log_ratios).unwrap_or(0.0);
        let correlated = autocorrelation > autocorrelation_critical(log_ratios.len());
        if !correlated || blocks.len() / (2 * size) < LEAST_REPLICATES {
            return Replicates {
                log_ratios,
                pooled: f64::NAN,
                merged: size as u32,
                autocorrelation,
                correlated,
            };
        }
        size *= 2;
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
        Values { data, responses }
    }

    /// Requests behind the response-time quantiles of `arm` in `blocks`: those that were due, answered or not.
    pub(crate) fn samples(&self, arm: usize, blocks: &[usize]) -> u64 {
        self.due(arm, blocks).max(self.answered(arm, blocks))
    }

    fn answered(&self, arm: usize, blocks: &[usize]) -> u64 {
        let buckets = blocks.iter().flat_map(|block| &self.responses[arm][*block]);
        buckets.map(|(_, count)| count).sum()
    }

    /// Requests that were due in measured time. Where that was not recorded, those that were answered
    /// there and those that never ended, wherever they were due.
    fn due(&self, arm: usize, blocks: &[usize]) -> u64 {
        let trials = self.trials(arm, blocks);
        match sum(trials.clone(), |slice| slice.due) as u64 {
            0 => self.answered(arm, blocks) + Answers::of(trials, self.data.study).never,
            due => due,
        }
    }

    /// `metric` of `arm` over `blocks` taken together; zero or not a number when nothing is known.
    pub(crate) fn value(&self, metric: Metric, arm: usize, blocks: &[usize]) -> f64 {
        match metric {
            Metric::Rate => rate(self.trials(arm, blocks), self.data.study),
            Metric::ReceivedBytes => received_per_second(self.trials(arm, blocks), self.data.study),
            Metric::CpuPerRequest => cpu_per_request(self.trials(arm, blocks), self.data.study),
            Metric::ResponseP50 => self.times(arm, blocks).quantile(0.5),
            Metric::ResponseP99 => self.times(arm, blocks).quantile(0.99),
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

    /// Response times of all requests that were due in some blocks.
    pub(crate) fn times(&self, arm: usize, blocks: &[usize]) -> Times {
        let buckets = blocks.iter().flat_map(|block| &self.responses[arm][*block]);
        let mut buckets: Buckets = buckets.copied().collect();
        buckets.sort_unstable();
        let answers = Answers::of(self.trials(arm, blocks), self.data.study);
        Times {
            buckets,
            good: answers.good_share(),
            due: self.samples(arm, blocks),
        }
    }
}

/// Response times of requests that were due. One that was not answered, or not as it should be, took for
/// ever. That wrong answers take as long as right ones is assumed: histograms do not tell them apart.
pub(crate) struct Times {
    /// (nanoseconds, count) of those that were answered, ascending.
    pub(crate) buckets: Buckets,
    /// Share of these that are right.
    pub(crate) good: f64,
    /// All.
    pub(crate) due: u64,
}

impl Times {
    /// Right answers in one of the counts.
    fn good(&self, count: u64) -> f64 {
        count as f64 * self.good
    }

    /// Nanoseconds; infinite where it falls among those that were not answered, not a number where nothing
    /// was due.
    pub(crate) fn quantile(&self, quantile: f64) -> f64 {
        if self.due == 0 {
            return f64::NAN;
        }
        // A request at least, as hdrhistogram has it; and of a rank that is whole but for rounding, that one.
        let rank = (quantile * self.due as f64 - 1e-6).max(1e-6);
        let mut seen = 0;
        let reaches = self.buckets.iter().find(|(_, count)| {
            seen += count;
            self.good(seen) >= rank
        });
        reaches.map_or(f64::INFINITY, |(ns, _)| *ns as f64)
    }

    /// The share that took longer than this, 0..1; not a number where nothing was due.
    pub(crate) fn beyond(&self, ns: f64) -> f64 {
        let within = self
            .buckets
            .iter()
            .take_while(|(time, _)| *time as f64 <= ns);
        let within: u64 = within.map(|(_, count)| count).sum();
        1.0 - self.good(within) / self.due as f64
    }
}

/// An empty histogram with the bounds that weir records with: 1 ns to 1 h, 3 digits.
pub(crate) fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3)
        .expect("constant bounds that the crate accepts")
}
