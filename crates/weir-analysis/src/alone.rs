//! Checks if the winner's ratio holds when the arms run one at a time.
//!
//! Side by side, arms share CPUs, caches, memory bandwidth and the kernel's tables, and resting arms have a cost
//! too. So the winner and the arm that it is compared with are measured again in stretches in which no other arm
//! runs, in the order A B B A. A pair of neighbouring stretches is a replicate: both are new instances. The ratio of
//! these pairs is compared with the ratio of the blocks, by the interval of the difference of their logarithms.

use std::collections::BTreeSet;

use weir_model::record::{Phase, Validity};
use weir_model::study::{ArmRole, Metric, Study};
use weir_record::Run;
use weir_stats::verdict::LEAST_REPLICATES;
use weir_stats::{
    Estimate, Interval, SignedRank, difference, hodges_lehmann, ratio_of, relative_difference,
};

use crate::blocks::LoadData;
use crate::findings::{
    AloneChoice, AloneFindings, AloneReason, Comparison, Holding, LoadFindings, Verdict,
};
use crate::headline;
use crate::names::find;
use crate::replicates::groups;
use crate::values::Values;

/// Share of an effect that may be missing or be too much if no difference is shown.
const SHARE_OF_EFFECT: f64 = 0.25;

/// The arm that is measured alone, with the arm that it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Name of the load under which it is measured.
    pub load: String,
    /// Name of the arm.
    pub arm: String,
    /// Name of the arm that it is compared with.
    pub against: String,
    /// Number of neighbouring blocks in each replicate of their comparison.
    pub merged: u32,
    /// Reason for the choice of this arm.
    pub why: AloneChoice,
}

/// Chooses the best arm by the objective's metric, under the first load that gives the metric. If no arm is better,
/// chooses the arm that the answer names first. `None` if no arm has a ratio.
pub fn choose(study: &Study, loads: &[LoadFindings]) -> Option<Choice> {
    let (load, found, why) = find_choice(study, loads)?;
    Some(Choice {
        load: load.load.clone(),
        arm: found.arm.clone(),
        against: found.against.clone(),
        merged: found.merged,
        why,
    })
}

fn find_choice<'a>(
    study: &Study,
    loads: &'a [LoadFindings],
) -> Option<(&'a LoadFindings, &'a Comparison, AloneChoice)> {
    let metric = study.objective.metric;
    let load = loads.iter().find(|load| load.metrics.contains(&metric) && load.is_usable())?;
    let comparisons: Vec<&Comparison> = ratios(load, metric).collect();
    let changes: Vec<&Comparison> = comparisons
        .iter()
        .copied()
        .filter(|c| find(study, &c.arm).is_some_and(|arm| arm.role == ArmRole::Change))
        .collect();
    let (found, why) = if let Some(best) = find_largest(&changes, Verdict::Better) {
        (best, AloneChoice::Best)
    } else if let Some(worst) = find_largest(&changes, Verdict::Worse) {
        (worst, AloneChoice::DiffersMost)
    } else {
        (*changes.first().or(comparisons.first())?, AloneChoice::First)
    };
    Some((load, found, why))
}

/// Finds the comparison with the given verdict whose ratio is furthest from 1.
fn find_largest<'a>(changes: &[&'a Comparison], wanted: Verdict) -> Option<&'a Comparison> {
    changes
        .iter()
        .copied()
        .filter(|c| c.verdict == wanted)
        .max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()))
}

/// Returns the comparisons on a metric that have a ratio.
fn ratios(load: &LoadFindings, metric: Metric) -> impl Iterator<Item = &Comparison> {
    let (of_metric, finite) = (
        move |c: &&Comparison| c.metric == metric && c.verdict != Verdict::Invalid,
        |c: &&Comparison| c.ratio.ln().is_finite(),
    );
    load.comparisons.iter().filter(of_metric).filter(finite)
}

/// Groups stretches (session and arm of each, in order of time) into pairs of indices: neighbours of one session with
/// different arms, each in at most one pair.
pub fn pairs(stretches: &[(u32, &str)]) -> Vec<(usize, usize)> {
    let (mut pairs, mut first) = (Vec::new(), 0);
    while first + 1 < stretches.len() {
        let ((session, arm), (next_session, next_arm)) = (stretches[first], stretches[first + 1]);
        let is_pair = session == next_session && arm != next_arm;
        if is_pair {
            pairs.push((first, first + 1));
        }
        first += if is_pair { 2 } else { 1 };
    }
    pairs
}

/// Returns the result of the check; `None` if none was requested.
pub(crate) fn check(
    run: &Run,
    loads: &[LoadFindings],
    tests: &mut SignedRank,
) -> Option<AloneFindings> {
    if !run.header.check_alone {
        return None;
    }
    let study = &run.header.study;
    let chosen = find_choice(study, loads);
    let in_turns = measured(run, loads).or(chosen.map(|(load, together, _)| (load, together)));
    let Some((load, together)) = in_turns else {
        return Some(without(study, AloneReason::NoRatio));
    };
    let mut findings = AloneFindings {
        load: load.load.clone(),
        arm: together.arm.clone(),
        against: together.against.clone(),
        chosen: chosen.filter(|(_, best, _)| best.arm == together.arm).map(|(.., why)| why),
        together: (together.ratio, together.interval),
        changed_side_by_side: !load.phases.is_empty(),
        ..without(study, AloneReason::NotReached)
    };
    let sample = replicates(run, &mut findings, together.merged);
    if run.trials_in(Phase::is_alone).next().is_some() {
        findings.because = AloneReason::NoPairs;
    }
    judge(study, &mut findings, together, sample, tests);
    Some(findings)
}

/// Returns the comparison of the arms that were measured alone and its load, even if today's rules would choose others.
fn measured<'a>(
    run: &Run,
    loads: &'a [LoadFindings],
) -> Option<(&'a LoadFindings, &'a Comparison)> {
    let study = &run.header.study;
    let load = loads
        .iter()
        .find(|load| run.trials_in(Phase::is_alone).any(|trial| trial.load == load.load))?;
    let arms: BTreeSet<&str> = run
        .trials_in(Phase::is_alone)
        .filter(|trial| trial.load == load.load)
        .map(|trial| &*trial.arm)
        .collect();
    let comparison = ratios(load, study.objective.metric)
        .find(|c| arms.contains(&*c.arm) && arms.contains(&*c.against))?;
    Some((load, comparison))
}

/// Returns findings without figures.
fn without(study: &Study, because: AloneReason) -> AloneFindings {
    let unknown = (f64::NAN, (f64::NAN, f64::NAN));
    AloneFindings {
        load: String::new(),
        metric: study.objective.metric,
        arm: String::new(),
        against: String::new(),
        chosen: None,
        n: 0,
        together: unknown,
        alone: unknown,
        change: unknown,
        tolerance: study.objective.band,
        validity: Validity::Invalid,
        verdict: Holding::Invalid,
        because,
        changed_side_by_side: false,
    }
}

/// Returns ln(arm / against) of each pair of stretches, in order of time. All values are finite.
fn replicates(run: &Run, found: &mut AloneFindings, merged: u32) -> Vec<f64> {
    let study = &run.header.study;
    let Some(spec) = study.loads.iter().find(|load| load.name == found.load) else {
        return Vec::new();
    };
    let data = LoadData::of_phases(run, spec, Phase::is_alone);
    let mut doubtful = [&found.arm, &found.against]
        .into_iter()
        .filter_map(|name| study.arms.iter().position(|arm| arm.name == *name));
    found.validity = if doubtful.any(|arm| headline::mostly_suspect(&data, arm)) {
        Validity::Suspect
    } else {
        Validity::Valid
    };
    let values = Values::new(run, &data);

    // Blocks of each stretch, with the session and the arm. Paired before they are judged: one that may not be used
    // takes its neighbour with it and no other.
    let mut stretches: Vec<((u32, &str), Vec<usize>)> = Vec::new();
    let mut last = None;
    for (block, &instance) in data.instances.iter().enumerate() {
        let Some(judged) = data.blocks[block].iter().flatten().next() else {
            continue;
        };
        if last.replace(instance) != Some(instance) {
            let whose = (judged.trial.session, &*judged.trial.arm);
            stretches.push((whose, Vec::new()));
        }
        if let Some((_, blocks)) = stretches.last_mut() {
            blocks.push(block);
        }
    }
    let whose: Vec<(u32, &str)> = stretches.iter().map(|(whose, _)| *whose).collect();
    pairs(&whose)
        .into_iter()
        .filter_map(|(first, second)| {
            let mut both = [first, second].map(|index| {
                let ((_, arm), blocks) = &stretches[index];
                typical_value(&values, found.metric, merged, arm, blocks)
            });
            if whose[first].1 == found.against {
                both.reverse();
            }
            let [arm, against] = both;
            Some(relative_difference(arm? / against?)).filter(|difference| !difference.is_nan())
        })
        .collect()
}

/// Returns the typical value of an arm in the usable blocks of a stretch.
fn typical_value(
    values: &Values<'_>,
    metric: Metric,
    merged: u32,
    arm: &str,
    blocks: &[usize],
) -> Option<f64> {
    let data = values.data;
    let arm = data.study.arms.iter().position(|known| known.name == arm)?;
    let usable: Vec<usize> =
        blocks.iter().copied().filter(|block| data.usable(*block, arm).is_some()).collect();
    if metric.response_quantile().is_none() {
        return Some(values.value(metric, arm, &usable));
    }
    let replicates = groups(&usable, merged.max(1) as usize);
    typical_of(replicates.map(|group| values.value(metric, arm, group)))
}

/// Returns the pseudo-median of times, computed on their logarithms. An infinite time counts as the longest.
fn typical_of(times: impl Iterator<Item = f64>) -> Option<f64> {
    let logs = times.map(f64::ln).filter(|log| !log.is_nan());
    let logs: Vec<f64> = logs.map(|log| log.clamp(-LARGEST, LARGEST)).collect();
    hodges_lehmann(&logs).map(f64::exp)
}

/// Logarithm that stands for an infinite ratio or time (nanoseconds); larger than any that occurs.
const LARGEST: f64 = 50.0;

/// Returns the ratio alone divided by the ratio side by side, with its interval, and the logarithm of the ratio side by
/// side.
fn change(found: &AloneFindings, alone: f64, together: f64) -> ((f64, (f64, f64)), f64) {
    let alone_log = log_figure(found.alone, alone);
    let side_by_side = log_figure(found.together, together);
    let change = difference(alone_log, side_by_side);
    let interval = (exp_unbounded(change.low), exp_unbounded(change.high));
    ((exp_unbounded(alone_log.0 - side_by_side.0), interval), side_by_side.0)
}

/// Returns a ratio and its interval on the logarithmic scale.
fn log_figure(figure: (f64, (f64, f64)), confidence: f64) -> (f64, Interval) {
    let (ratio, (low, high)) = figure;
    let [ratio, low, high] = [ratio, low, high].map(|value| value.ln().clamp(-LARGEST, LARGEST));
    (ratio, Interval { low, high, confidence })
}

/// Returns the ratio of a logarithm, infinite or 0 if the logarithm stands for that.
fn exp_unbounded(log: f64) -> f64 {
    if log > LARGEST / 2.0 {
        f64::INFINITY
    } else if log < -LARGEST / 2.0 {
        0.0
    } else {
        log.exp()
    }
}

/// Fills in the ratio alone, its change from the ratio side by side, and the verdict. Only arms whose ratio is bounded
/// get here.
fn judge(
    study: &Study,
    found: &mut AloneFindings,
    together: &Comparison,
    sample: Vec<f64>,
    tests: &mut SignedRank,
) {
    let objective = &study.objective;
    let instances: Vec<usize> = (0..sample.len()).collect();
    found.n = sample.len() as u32;
    if sample.is_empty() {
        found.validity = Validity::Invalid;
    }
    let Some(alone) = Estimate::of(tests, &sample, &instances, objective.confidence) else {
        return;
    };
    found.alone = (ratio_of(alone.value), alone.interval.ratios());
    let (change, log) = change(found, alone.interval.confidence, together.confidence);
    found.change = change;
    found.tolerance = objective.band.max((SHARE_OF_EFFECT * log.abs()).exp_m1());
    let (low, high) = found.change.1;
    let few = sample.len() < LEAST_REPLICATES;
    let unsure = change_is_unsure(&alone, together, objective.confidence);
    (found.verdict, found.because) = if few {
        (Holding::NotShown, AloneReason::FewPairs)
    } else if unsure {
        (Holding::NotShown, AloneReason::LowConfidence)
    } else if is_within(found.change.1, objective.band) {
        (Holding::Holds, AloneReason::WithinBand)
    } else if low > 1.0 || high < 1.0 {
        (Holding::DoesNotHold, AloneReason::Changed)
    } else if is_within(found.change.1, found.tolerance) {
        (Holding::Holds, AloneReason::WithinTolerance)
    } else {
        (Holding::NotShown, AloneReason::BeyondTolerance)
    };
}

/// Returns true if an interval of ratios does not leave the band around 1.
fn is_within((low, high): (f64, f64), band: f64) -> bool {
    low >= 1.0 / (1.0 + band) && high <= 1.0 + band
}

/// Returns true if an interval is less certain than the study demands. Compares confidences as typed (0.95), not as
/// rounded by the arithmetic before.
fn change_is_unsure(alone: &Estimate, together: &Comparison, asked: f64) -> bool {
    alone.interval.confidence.min(together.confidence) < asked - 1e-12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_paired_within_a_session_and_each_once() {
        let complete = [(0, "a"), (0, "b"), (0, "b"), (0, "a")];
        assert_eq!(pairs(&complete), [(0, 1), (2, 3)]);
        // One that an interruption has left alone is in no pair.
        let cut = [(0, "a"), (0, "b"), (0, "b"), (1, "b"), (1, "a"), (1, "a")];
        assert_eq!(pairs(&cut), [(0, 1), (3, 4)]);
        assert_eq!(pairs(&[(0, "a"), (0, "a"), (0, "b")]), [(1, 2)]);
        assert_eq!(pairs(&[(0, "a")]), []);
    }
    #[test]
    fn times_without_end_are_the_longest() {
        let finite = typical_of([1e6, 1e6, f64::NAN].into_iter()).unwrap();
        assert!((finite / 1e6 - 1.0).abs() < 1e-9, "{finite}");
        let open = typical_of([1e6, 1e6, f64::INFINITY, f64::INFINITY].into_iter()).unwrap();
        assert!(open > 1e12, "{open}");
        assert_eq!(typical_of([f64::NAN].into_iter()), None);
    }
}
