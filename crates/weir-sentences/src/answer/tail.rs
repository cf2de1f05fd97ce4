//! Tails that the headline metric hides.

use weir_analysis::findings::{ArmFindings, Comparison, LoadFindings, NEVER_NS, Verdict};
use weir_model::study::{ArmRole, Metric, Study};

use super::find_role;
use crate::numbers::time;

/// Factor from which on a tail is named: it must be so many times as bad as the headline metric says, and as two equal
/// arms differ. Pooled high quantiles of equal arms differ by up to 1.7 times on a machine that stands still now and
/// then.
const MIN_FACTOR: f64 = 3.0;
/// Quantiles beyond the median, their indices in [`ArmFindings::response_ns`], and the number of requests that leaves
/// ten beyond them.
const QUANTILES: [(f64, usize, u64); 2] = [(0.9, 1, 100), (0.99, 2, 1_000)];

/// A high quantile of one arm compared with that of another.
struct Tail<'a> {
    arm: &'a ArmFindings,
    against: &'a ArmFindings,
    quantile: f64,
    place: usize,
    /// Ratio arm / against.
    ratio: f64,
}

/// Returns a sentence about the tail that is worst compared with the headline metric; `None` if none is much worse.
pub(super) fn describe_hidden_tail(study: &Study, load: &LoadFindings) -> Option<String> {
    let metric = study.objective.metric;
    let changes = load.comparisons.iter().filter(|found| {
        let is_change = find_role(study, &found.arm) == ArmRole::Change;
        is_change && found.metric == metric && found.verdict != Verdict::Invalid
    });
    let tails: Vec<Tail<'_>> =
        changes.filter_map(|found| find_hidden_tail(study, load, found)).collect();
    let worst = tails.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
    let [time_of_arm, time_of_other] =
        [worst.arm, worst.against].map(|arm| time(arm.response_ns[worst.place] as f64));
    let more_arms = match tails.len() - 1 {
        0 => String::new(),
        1 => "; so is that of one other arm".to_owned(),
        more => format!("; so are those of {more} other arms"),
    };
    Some(format!(
        "The tail of {} is far worse than that: its 0.{} quantile of the response time is {time_of_arm}, against \
         {time_of_other} of {} ({:.1} times){more_arms}.",
        worst.arm.arm,
        worst.quantile * 100.0,
        worst.against.arm,
        worst.ratio
    ))
}

/// Returns the quantile that is worst compared with the comparison's ratio; `None` if none is much worse.
fn find_hidden_tail<'a>(
    study: &Study,
    load: &'a LoadFindings,
    found: &Comparison,
) -> Option<Tail<'a>> {
    let (arm, against) = (find_figures(load, &found.arm)?, find_figures(load, &found.against)?);
    // How many times as long requests take, by the headline.
    let headline_ratio = match found.metric {
        Metric::ResponseP50 | Metric::ResponseP99 => found.ratio,
        Metric::Rate | Metric::ReceivedBytes => found.ratio.recip(),
        Metric::CpuPerRequest => 1.0,
    };
    let baseline = find_figures(load, &study.arms[0].name);
    let same = study
        .arms
        .iter()
        .find(|arm| arm.role == ArmRole::SameAsBaseline)
        .and_then(|arm| find_figures(load, &arm.name));
    let equals = same.zip(baseline);
    let tails = QUANTILES.iter().filter_map(|&(quantile, place, least)| {
        let ratio = quantile_ratio(arm, against, place, least)?;
        let chance = equals.and_then(|(same, baseline)| ratio_of_equals(same, baseline, place));
        let least = MIN_FACTOR * headline_ratio.max(1.0).max(chance.unwrap_or(1.0));
        (ratio >= least).then_some(Tail { arm, against, quantile, place, ratio })
    });
    tails.max_by(|a, b| a.ratio.total_cmp(&b.ratio))
}

fn find_figures<'a>(load: &'a LoadFindings, name: &str) -> Option<&'a ArmFindings> {
    load.arms.iter().find(|arm| arm.arm == name)
}

/// Returns a quantile of one arm divided by that of the other; `None` unless it is known for both.
fn quantile_ratio(
    arm: &ArmFindings,
    against: &ArmFindings,
    place: usize,
    least: u64,
) -> Option<f64> {
    let times = [arm, against].map(|arm| arm.response_ns[place]);
    let is_known = times.iter().all(|ns| (1..NEVER_NS).contains(ns));
    let is_enough = arm.samples.min(against.samples) >= least;
    (is_known && is_enough).then(|| times[0] as f64 / times[1] as f64)
}

/// Returns the factor, at least 1, by which the quantiles of two equal arms differ.
fn ratio_of_equals(same: &ArmFindings, baseline: &ArmFindings, place: usize) -> Option<f64> {
    let ratio = quantile_ratio(same, baseline, place, 0)?;
    Some(ratio.max(ratio.recip()))
}
