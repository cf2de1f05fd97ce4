//! The figures of one arm for tables and plots beside the comparisons.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use weir_model::record::{QuantileSummary, SliceRecord, TrialRecord};
use weir_model::study::Metric;
use weir_record::{Run, empty_histogram};
use weir_stats::hodges_lehmann;
use weir_stats::verdict::LEAST_REPLICATES;

use crate::blocks::LoadData;
use crate::compare::Comparer;
use crate::connections;
use crate::counters;
use crate::evidence::evidence;
use crate::findings::{ArmFindings, NEVER_NS, TailFindings};
use crate::limits::pooled;
use crate::outcomes::{Answers, rate, received_per_second, sum};
use crate::replicates::{group_size, groups, samples_needed, samples_wanted};
use crate::values::{Times, Values};

/// Quantiles of [`ArmFindings::response_ns`], `service_ns` and `dispatch_lag_ns`.
pub(crate) const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];
/// Minimum number of requests beyond a quantile that has an interval.
const LEAST_BEYOND: f64 = 10.0;
/// Number of points of the percentile curve for each halving of the distance to 1, as wrk2 prints them.
const TICKS_PER_HALF_DISTANCE: u32 = 5;
/// Maximum number of points over time; more cannot be told apart in a plot.
const POINTS_OVER_TIME: usize = 300;

/// Returns the figures of all arms, in the order of the study.
pub(crate) fn arms(run: &Run, comparer: &Comparer<'_>) -> Vec<ArmFindings> {
    let data = comparer.data;
    let clock = Clock::of(data);
    (0..data.study.arms.len())
        .map(|arm| ArmFindings { tails: tails(comparer, arm), ..figures(run, data, arm, &clock) })
        .collect()
}

/// Returns the findings about an arm's high quantiles; nothing in a closed loop.
fn tails(comparer: &Comparer<'_>, arm: usize) -> Vec<TailFindings> {
    let (data, values) = (comparer.data, &comparer.values);
    let blocks = (0..data.blocks.len()).filter(|block| data.usable(*block, arm).is_some());
    let blocks: Vec<usize> = blocks.collect();
    if !data.open || blocks.is_empty() {
        return Vec::new();
    }
    let (samples, confidence) = (values.samples(arm, &blocks), data.study.objective.confidence);
    let tails = [0.99, 0.999].into_iter().filter_map(|quantile| {
        let (value, (low, high)) = pooled(values, arm, &blocks, quantile, confidence)?;
        let beyond = samples as f64 * (1.0 - quantile);
        let is_known = blocks.len() >= LEAST_REPLICATES && beyond >= LEAST_BEYOND;
        let typical = (quantile == 0.99).then(|| {
            let telling = values.telling(Metric::ResponseP99, &[arm], blocks.clone());
            typical_p99(values, arm, &telling)
        });
        Some(TailFindings {
            quantile,
            pooled_ns: finite_ns(value),
            interval_ns: finite_ns(low).filter(|_| is_known).map(|low| (low, finite_ns(high))),
            typical_ns: typical.flatten(),
        })
    });
    tails.collect()
}

fn finite_ns(ns: f64) -> Option<u64> {
    ns.is_finite().then_some(ns as u64)
}

/// Returns the pseudo-median of the p99s of groups of blocks; `None` if there are too few requests, or a typical p99
/// falls among requests that were not answered.
fn typical_p99(values: &Values<'_>, arm: usize, blocks: &[usize]) -> Option<u64> {
    let metric = Metric::ResponseP99;
    let samples = values.times_of(metric, arm, blocks).due;
    let wanted = samples_wanted(metric);
    let size = group_size(samples, blocks.len(), wanted, LEAST_REPLICATES);
    if samples * (size as u64) < samples_needed(metric) * blocks.len() as u64 {
        return None;
    }
    let p99s: Vec<f64> = groups(blocks, size)
        .map(|group| values.value(metric, arm, group).min(NEVER_NS as f64))
        .collect();
    // Half of the largest: the mean of one that was not answered and of one that was.
    hodges_lehmann(&p99s).filter(|ns| *ns < NEVER_NS as f64 / 4.0).map(|ns| ns as u64)
}

fn figures(run: &Run, data: &LoadData<'_>, arm: usize, clock: &Clock) -> ArmFindings {
    let trials: Vec<&TrialRecord> = data.usable_of(arm).collect();
    let seconds = total(&trials, |slice| slice.measured_ns) / 1e9;
    let response = merge(run, trials.iter().map(|trial| &trial.response_time));
    let service = merge(run, trials.iter().map(|trial| &trial.service_time));
    let dispatch_lag = merge(run, trials.iter().map(|trial| &trial.dispatch_lag));
    let answers = Answers::of(trials.iter().copied(), data.study);
    // Where it was not recorded what was due, what never ended is known.
    let due = match total(&trials, |slice| slice.due) as u64 {
        0 => response.len() + answers.never,
        due => due,
    };
    let buckets = response.iter_recorded();
    let times = Times {
        buckets: buckets
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect(),
        good: answers.good_share(),
        due: due.max(response.len()),
    };
    ArmFindings {
        arm: data.study.arms[arm].name.clone(),
        role: data.study.arms[arm].role,
        rate_completed: divide(total(&trials, |slice| slice.completed), seconds).unwrap_or(0.0),
        rate_offered: divide(total(&trials, |slice| slice.offered), seconds).unwrap_or(0.0),
        received_per_second: Some(received_per_second(trials.iter().copied(), data.study))
            .filter(|bytes| bytes.is_finite()),
        // What weir did not start has no process that it could ask.
        cpu_per_request_ns: divide(
            total(&trials, |slice| slice.proxy_cpu_ns),
            total(&trials, |slice| slice.completed_whole),
        )
        .filter(|_| data.sees_process(&data.study.arms[arm])),
        response_ns: QUANTILES.map(|quantile| match times.quantile(quantile) {
            time if time.is_nan() => 0,
            time if time.is_infinite() => NEVER_NS,
            time => time as u64,
        }),
        tails: Vec::new(),
        service_ns: quantiles(&service),
        dispatch_lag_ns: quantiles(&dispatch_lag),
        samples: response.len(),
        origin_connects_per_request: divide(
            total(&trials, |slice| slice.origin_connects),
            total(&trials, |slice| slice.origin_requests),
        ),
        connections: connections::together(run.parts(data.load), &data.study.arms[arm].name),
        counters: counters::of(run, data.load, &data.study.arms[arm].name),
        interrupts: interrupts(data, &trials),
        failures: answers.wrong + answers.failed,
        censored: answers.never,
        unanswered: answers.bad_share(),
        percentile_curve: percentile_curve(&response),
        over_time: over_time(data, arm, clock),
    }
}

fn total(trials: &[&TrialRecord], field: fn(&SliceRecord) -> u64) -> f64 {
    sum(trials.iter().copied(), field)
}

fn divide(value: f64, by: f64) -> Option<f64> {
    (by > 0.0).then(|| value / by)
}

/// Returns the share of the time of the proxy's CPUs that interrupts took; `None` if it was not recorded.
fn interrupts(data: &LoadData<'_>, trials: &[&TrialRecord]) -> Option<f64> {
    let all_ns: f64 = trials
        .iter()
        .filter_map(|trial| evidence(trial, data.header).slices)
        .map(|slices| slices.whole_ns * slices.proxy_cpus)
        .sum();
    let irq_ns = sum(trials.iter().copied(), |slice| slice.proxy_irq_ns);
    (irq_ns > 0.0).then(|| irq_ns / all_ns)
}

/// Returns the sum of the histograms behind some summaries; summaries without a kept histogram are left out. Values
/// above the range count at its end.
fn merge<'a>(run: &Run, summaries: impl Iterator<Item = &'a QuantileSummary>) -> Histogram<u64> {
    let mut all = empty_histogram();
    for (ns, count) in summaries.flat_map(|summary| run.histogram(summary)) {
        all.saturating_record_n(*ns, *count);
    }
    all
}

fn quantiles(histogram: &Histogram<u64>) -> [u64; 5] {
    QUANTILES.map(|quantile| histogram.value_at_quantile(quantile))
}

fn percentile_curve(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    if histogram.is_empty() {
        return Vec::new();
    }
    // Beyond one in `count` the curve would only repeat the largest value.
    let count = histogram.len() as f64;
    let mut curve: Vec<(f64, u64)> = histogram
        .iter_quantiles(TICKS_PER_HALF_DISTANCE)
        .map(|step| (1.0 / (1.0 - step.quantile_iterated_to()), step.value_iterated_to()))
        .take_while(|(x, _)| *x < count)
        .collect();
    curve.push((count, histogram.max()));
    curve
}

/// Start of each session on a common time axis: the sessions of a resumed run follow one another, although each counts
/// from its own beginning.
pub(crate) struct Clock(BTreeMap<u32, u64>);

impl Clock {
    pub(crate) fn of(data: &LoadData<'_>) -> Clock {
        let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
        for judged in data.blocks.iter().flatten().flatten() {
            let end = ends.entry(judged.trial.session).or_default();
            for slice in &judged.trial.slices {
                *end = (*end).max(slice.start_ns + slice.measured_ns);
            }
        }
        let mut begin = 0;
        let begins = ends.into_iter().map(|(session, end)| {
            begin += end;
            (session, begin - end)
        });
        Clock(begins.collect())
    }

    pub(crate) fn seconds(&self, trial: &TrialRecord) -> f64 {
        let within = trial.slices.first().map_or(0, |slice| slice.start_ns);
        (self.0.get(&trial.session).unwrap_or(&0) + within) as f64 / 1e9
    }
}

/// Returns the points over time, block after block. Includes INVALID blocks, because the plot shows why they are
/// invalid.
fn over_time(data: &LoadData<'_>, arm: usize, clock: &Clock) -> Vec<(f64, f64, Option<u64>)> {
    let trials: Vec<&TrialRecord> = data
        .blocks
        .iter()
        .filter_map(|block| block[arm].as_ref())
        .map(|judged| judged.trial)
        .collect();
    let per_point = trials.len().div_ceil(POINTS_OVER_TIME).max(1);
    trials
        .chunks(per_point)
        .map(|group| {
            let completed_rate = rate(group.iter().copied(), data.study);
            let mut medians: Vec<u64> = group
                .iter()
                .map(|trial| &trial.response_time)
                .filter(|times| !times.is_empty())
                .map(|times| times.p50)
                .collect();
            medians.sort_unstable();
            let rate = if completed_rate.is_finite() { completed_rate } else { 0.0 };
            (clock.seconds(group[0]), rate, medians.get(medians.len() / 2).copied())
        })
        .collect()
}
