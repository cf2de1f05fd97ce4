//! Verdicts on the study's absolute limit, for each arm by itself.
//!
//! A limit applies to a share: if the p99 is limited, at most one in a hundred of all requests that were due may take
//! longer. So that share is estimated, by block, and every request that was not answered is beyond every limit. The
//! interval of the quantile beside it is Woodruff's ("Confidence Intervals for Medians and Other Position Measures",
//! JASA 47, 1952): the quantiles at the ends of the interval of the share.

use std::time::Duration;

use weir_stats::clusters::of_instances;
use weir_stats::verdict::LEAST_REPLICATES;
use weir_stats::{Interval, share_interval};

use crate::blocks::LoadData;
use crate::compare::Comparer;
use crate::findings::{Holding, LimitFindings, LimitReason};
use crate::outcomes::Answers;
use crate::replicates::samples_wanted;
use crate::values::Values;

/// Returns the findings of all arms under a load; empty if the study has no limit, or the load does not give its
/// metric.
pub(crate) fn limits(comparer: &Comparer<'_>) -> Vec<LimitFindings> {
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
            let mut findings = blank(data, arm, limit);
            judge(&mut findings, comparer, arm, quantile);
            findings
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
        verdict: Holding::Invalid,
        because: LimitReason::NotRecorded,
    }
}

fn judge(found: &mut LimitFindings, comparer: &Comparer<'_>, arm: usize, quantile: f64) {
    let (data, values) = (comparer.data, &comparer.values);
    let blocks: Vec<usize> =
        (0..data.blocks.len()).filter(|block| data.usable(*block, arm).is_some()).collect();
    if blocks.is_empty() {
        found.because = match data.blocks.len() {
            0 => LimitReason::NothingMeasured,
            blocks => LimitReason::NoValidBlock { blocks: blocks as u32 },
        };
        return;
    }
    let (requests, confidence) = (values.samples(arm, &blocks), data.study.objective.confidence);
    let Some(estimate) = pooled(values, arm, &blocks, quantile, confidence) else {
        return;
    };
    let share = share_beyond(values, arm, &blocks, found.limit_ns as f64, confidence);
    (found.value_ns, found.interval_ns) = estimate;
    (found.n, found.confidence) = (blocks.len() as u32, confidence);
    (found.verdict, found.because) = conclude(share, blocks.len(), 1.0 - quantile);
    if requests < samples_wanted(data.study.objective.metric) {
        found.verdict = Holding::NotShown;
        found.because = LimitReason::FewRequests { requests };
    }
    let lost = Answers::of(data.usable_of(arm), data.study).bad_share();
    if found.verdict == Holding::DoesNotHold && lost > 1.0 - quantile {
        found.because = LimitReason::Unanswered { share: lost };
    }
}

/// Returns the quantile of all requests of an arm in some blocks, in nanoseconds, and its interval; infinite if it
/// falls on a request that was not answered.
pub(crate) fn pooled(
    values: &Values<'_>,
    arm: usize,
    blocks: &[usize],
    quantile: f64,
    confidence: f64,
) -> Option<(f64, (f64, f64))> {
    let all = values.times(arm, blocks);
    let value = all.quantile(quantile);
    let share = share_beyond(values, arm, blocks, value, confidence)?;
    // The share beyond the value is 1 - quantile up to the histogram's grain.
    let (low, high) = (1.0 - share.high, 1.0 - share.low);
    Some((value, (all.quantile(low.max(0.0)), all.quantile(high.min(1.0)))))
        .filter(|(value, _)| !value.is_nan())
}

/// Returns the interval of the share of requests that took longer than `ns`.
fn share_beyond(
    values: &Values<'_>,
    arm: usize,
    blocks: &[usize],
    ns: f64,
    confidence: f64,
) -> Option<Interval> {
    let shares = blocks.iter().map(|block| values.times(arm, &[*block]).beyond(ns));
    let shares: Vec<f64> = shares.collect();
    let instances: Vec<usize> = blocks.iter().map(|block| values.data.instances[*block]).collect();
    let requests = values.samples(arm, blocks) as f64;
    share_interval(&shares, &of_instances(&instances), requests, confidence)
}

fn conclude(beyond: Option<Interval>, blocks: usize, allowed: f64) -> (Holding, LimitReason) {
    let Some(share) = beyond.filter(|_| blocks >= LEAST_REPLICATES) else {
        return (Holding::NotShown, LimitReason::FewBlocks);
    };
    let verdict = match () {
        () if share.high <= allowed => Holding::Holds,
        () if share.low > allowed => Holding::DoesNotHold,
        () => Holding::NotShown,
    };
    (verdict, LimitReason::TookLonger { share: (share.low, share.high) })
}
