//! Whether arms stay within the study's absolute limit, each by itself.
//!
//! The replicates are groups of neighbouring blocks, as in comparisons, with the logarithm of the
//! quantile in place of a log ratio: their Hodges-Lehmann estimate and exact interval are those of
//! the quantile itself. An arm holds the limit when the upper end of the interval does.

use std::time::Duration;

use weir_model::record::TrialRecord;
use weir_model::study::Metric;
use weir_stats::hodges_lehmann;

use crate::blocks::{LoadData, failure_count};
use crate::compare::{Comparer, group_size, replicates, samples_wanted};
use crate::findings::{LimitFindings, LimitVerdict};

/// The findings of all arms under a load; none when the study has no limit, or the load does not
/// give the metric that it is for.
pub(crate) fn limits(comparer: &mut Comparer<'_>) -> Vec<LimitFindings> {
    let data = comparer.data;
    let objective = &data.study.objective;
    let (Some(limit), Some(quantile)) = (objective.within, objective.metric.response_quantile())
    else {
        return Vec::new();
    };
    if !data.metrics().contains(&objective.metric) {
        return Vec::new();
    }
    (0..data.study.arms.len())
        .map(|arm| {
            let mut found = blank(data, arm, limit);
            judge(&mut found, comparer, arm, quantile);
            found
        })
        .collect()
}

fn blank(data: &LoadData<'_>, arm: usize, limit: Duration) -> LimitFindings {
    LimitFindings {
        arm: data.study.arms[arm].name.clone(),
        metric: data.study.objective.metric,
        limit_ns: limit.as_nanos() as u64,
        value_ns: f64::NAN,
        interval_ns: (f64::NAN, f64::NAN),
        confidence: 0.0,
        n: 0,
        verdict: LimitVerdict::Invalid,
        because: String::new(),
    }
}

fn judge(found: &mut LimitFindings, comparer: &mut Comparer<'_>, arm: usize, quantile: f64) {
    let data = comparer.data;
    let blocks: Vec<usize> = (0..data.blocks.len())
        .filter(|block| data.usable(*block, arm).is_some())
        .collect();
    if blocks.is_empty() {
        found.because = match data.blocks.len() {
            0 => "nothing was measured".to_owned(),
            n => format!("none of {n} blocks was valid"),
        };
        return;
    }
    // Beyond that share the quantile is a request that never was answered: it is no number.
    let lost = lost(data, arm);
    if lost > 1.0 - quantile {
        found.verdict = LimitVerdict::DoesNotHold;
        found.because = format!("{:.1} % of the requests were not answered", lost * 100.0);
        return;
    }
    match estimate(comparer, arm, &blocks) {
        Ok(estimate) => conclude(found, estimate, data.study.objective.confidence),
        Err(why) => found.because = why,
    }
}

/// Requests of an arm that failed or never ended, as a share of all.
fn lost(data: &LoadData<'_>, arm: usize) -> f64 {
    let (mut lost, mut answered) = (0, 0);
    for trial in data.usable_of(arm) {
        lost += failure_count(trial, data.study) + unended(trial);
        answered += trial.slices.iter().map(|s| s.completed_whole).sum::<u64>();
    }
    lost as f64 / (lost + answered).max(1) as f64
}

fn unended(trial: &TrialRecord) -> u64 {
    trial.censored.in_flight + trial.censored.queued
}

struct Estimate {
    value_ns: f64,
    interval_ns: (f64, f64),
    confidence: f64,
    n: usize,
    caveat: &'static str,
}

/// The quantile over groups of `blocks`, or why there is none.
fn estimate(comparer: &mut Comparer<'_>, arm: usize, blocks: &[usize]) -> Result<Estimate, String> {
    let Comparer {
        data,
        values,
        tests,
    } = comparer;
    let metric: Metric = data.study.objective.metric;
    let (wanted, least) = samples_wanted(metric);
    let size = group_size(values.samples(arm, blocks), blocks.len(), wanted);
    if size.samples < least {
        return Err(format!(
            "only {} requests in a replicate, fewer than the {least} that the quantile needs",
            size.samples
        ));
    }
    let drawn = replicates(blocks, size.blocks, |group| {
        values.value(metric, arm, group).ln()
    });
    let sample = &drawn.log_ratios;
    let interval = tests.interval(sample, data.study.objective.confidence);
    let (Some(value), Some(interval)) = (hodges_lehmann(sample), interval) else {
        return Err("the metric was not recorded".to_owned());
    };
    Ok(Estimate {
        value_ns: value.exp(),
        interval_ns: (interval.low.exp(), interval.high.exp()),
        confidence: interval.confidence,
        n: sample.len(),
        caveat: match drawn.correlated {
            true => {
                "; neighbouring replicates still follow from one another, so the interval may be too narrow"
            }
            false => "",
        },
    })
}

fn conclude(found: &mut LimitFindings, estimate: Estimate, asked: f64) {
    let limit = found.limit_ns as f64;
    let (low, high) = estimate.interval_ns;
    let (verdict, why) = match () {
        () if estimate.confidence < asked => (
            LimitVerdict::NotShown,
            format!(
                "{} replicates reach a confidence of {:.1} % only",
                estimate.n,
                estimate.confidence * 100.0
            ),
        ),
        () if high <= limit => (
            LimitVerdict::Holds,
            "the whole interval lies within the limit".to_owned(),
        ),
        () if low > limit => (
            LimitVerdict::DoesNotHold,
            "the whole interval lies beyond the limit".to_owned(),
        ),
        () => (
            LimitVerdict::NotShown,
            "the interval reaches over the limit".to_owned(),
        ),
    };
    found.value_ns = estimate.value_ns;
    found.interval_ns = estimate.interval_ns;
    found.confidence = estimate.confidence;
    found.n = estimate.n as u32;
    found.verdict = verdict;
    found.because = why + estimate.caveat;
}
