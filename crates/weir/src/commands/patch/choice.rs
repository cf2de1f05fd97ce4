//! Choice of the arm whose changes are printed: the named one, or the best.

use weir_analysis::findings::{Comparison, Findings, LoadFindings, Verdict};
use weir_model::record::Validity;
use weir_model::study::{Arm, ArmRole, Metric, Study};

use crate::failure::Failure;

/// An arm and its verdict.
pub(super) struct Choice<'a> {
    pub(super) arm: &'a Arm,
    /// `better: 1.31 (1.27–1.35), VALID`, for each load that answers the study's question.
    pub(super) verdict: String,
}

impl<'a> Choice<'a> {
    /// Returns the arm of this name.
    pub(super) fn named(
        study: &'a Study,
        findings: &Findings,
        name: &str,
    ) -> Result<Choice<'a>, Failure> {
        let arm =
            study.arms.iter().find(|arm| arm.name == name).ok_or_else(|| unknown(study, name))?;
        Ok(Choice { verdict: words(study, findings, arm), arm })
    }

    /// Returns the best arm: better under a load that answers the question, worse under none. A change without such
    /// evidence is printed only if it is named.
    pub(super) fn best(study: &'a Study, findings: &Findings) -> Result<Choice<'a>, Failure> {
        let best = study
            .arms
            .iter()
            .filter(|arm| arm.role == ArmRole::Change)
            .filter(|arm| study.proxy_of(arm).is_started())
            .filter_map(|arm| Some((gain(study, findings, arm)?, arm)))
            .max_by(|(a, _), (b, _)| a.total_cmp(b));
        match best {
            Some((_, arm)) => Ok(Choice { verdict: words(study, findings, arm), arm }),
            None => Err(none_better(study, findings)),
        }
    }
}

/// Returns the name of the arm whose changes are printed by default; `None` if no arm is better than the baseline.
pub(crate) fn best_arm<'a>(study: &'a Study, findings: &Findings) -> Option<&'a str> {
    let best = Choice::best(study, findings).ok()?;
    Some(&best.arm.name)
}

/// Returns the valid loads that answer the study's question.
fn answering<'a>(study: &Study, findings: &'a Findings) -> impl Iterator<Item = &'a LoadFindings> {
    let metric = study.objective.metric;
    findings
        .loads
        .iter()
        .filter(move |load| load.metrics.contains(&metric) && load.validity != Validity::Invalid)
}

/// Returns the gain of an arm over the baseline, as a log ratio that is positive if better: the least of all loads that
/// answer. `None` unless the arm is better under one and worse under none. An arm that is a step includes the gains of
/// the steps before it, and their losses, which its own gain must outweigh.
fn gain(study: &Study, findings: &Findings, arm: &Arm) -> Option<f64> {
    let metric = study.objective.metric;
    let sign = if metric.higher_is_better() { 1.0 } else { -1.0 };
    let mut least = f64::INFINITY;
    let mut is_better = false;
    for load in answering(study, findings) {
        let verdict = load.comparison(&arm.name, metric)?.verdict;
        let gain = sign * to_baseline(study, load, metric, arm);
        // A sum that is not known is no gain.
        let is_above = gain > 0.0;
        if verdict == Verdict::Worse || (has_lost(study, load, metric, arm) && !is_above) {
            return None;
        }
        is_better |= verdict == Verdict::Better && is_above;
        if gain.is_finite() {
            least = least.min(gain);
        }
    }
    is_better.then_some(least)
}

/// Returns the arm, the arm that it is compared with, and so on down to the baseline, which is excluded.
fn steps<'a>(study: &'a Study, arm: &'a Arm) -> impl Iterator<Item = &'a Arm> {
    // An arm is compared with one before it, so this ends.
    let all = std::iter::successors(Some(arm), move |arm| study.arms.get(arm.against));
    all.take_while(|arm| arm.role == ArmRole::Change)
}

/// Returns the log ratio to the baseline, summed over all steps; NaN if a step has no comparison.
fn to_baseline(study: &Study, load: &LoadFindings, metric: Metric, arm: &Arm) -> f64 {
    steps(study, arm)
        .map(|step| load.comparison(&step.name, metric))
        .map(|comparison| comparison.map_or(f64::NAN, |comparison| comparison.ratio.ln()))
        .sum()
}

/// Returns true if a step on the way from the baseline was worse.
fn has_lost(study: &Study, load: &LoadFindings, metric: Metric, arm: &Arm) -> bool {
    steps(study, arm)
        .filter_map(|step| load.comparison(&step.name, metric))
        .any(|comparison| comparison.verdict == Verdict::Worse)
}

/// Describes the verdict about an arm, load by load.
fn words(study: &Study, findings: &Findings, arm: &Arm) -> String {
    match arm.role {
        ArmRole::Baseline => return "the baseline, which is compared with nothing".to_owned(),
        ArmRole::SameAsBaseline => return "the baseline once more".to_owned(),
        ArmRole::Change => {}
    }
    let metric = study.objective.metric;
    let loads: Vec<&LoadFindings> =
        findings.loads.iter().filter(|load| load.metrics.contains(&metric)).collect();
    let is_one = loads.len() == 1;
    let verdicts = loads.iter().map(|load| {
        let under = if is_one { String::new() } else { format!(" under load {}", load.load) };
        let validity = weir_report::words::validity(load.validity);
        match load.comparison(&arm.name, metric) {
            Some(comparison) => {
                format!("{}{under}, {validity}", describe_comparison(study, comparison))
            }
            None => format!("not compared{under}, {validity}"),
        }
    });
    let verdicts: Vec<String> = verdicts.collect();
    if verdicts.is_empty() {
        "nothing was measured that answers the question".to_owned()
    } else {
        verdicts.join("; ")
    }
}

/// Describes a comparison: `better: completed rate 1.31× (1.27–1.35) of baseline`.
fn describe_comparison(study: &Study, own: &Comparison) -> String {
    use weir_report::{number, words};
    let verdict = own.verdict.word();
    match own.verdict {
        // The load's own validity stands behind it.
        Verdict::Invalid => weir_sentences::explain_verdict(own, &study.objective),
        _ => format!(
            "{verdict}: {} {} ({}) of {}",
            words::metric(own.metric),
            number::ratio(own.ratio),
            words::interval(own, study.objective.confidence),
            own.against
        ),
    }
}

/// Returns the failure that says why no arm is chosen by default.
fn none_better(study: &Study, findings: &Findings) -> Failure {
    if let Some(capacity) = &findings.capacity {
        let capacities = capacity
            .arms
            .iter()
            .map(|arm| format!("\n  {}", weir_sentences::capacity::carries(arm)));
        return Failure::failed(format!(
            "a run that searched for capacities recommends no settings; it found:{}",
            capacities.collect::<String>()
        ))
        .hint("--arm NAME prints an arm's changes");
    }
    let verdicts = study
        .arms
        .iter()
        .filter(|arm| arm.role == ArmRole::Change)
        .map(|arm| format!("\n  {}: {}", arm.name, words(study, findings, arm)));
    let verdicts: String = verdicts.collect();
    Failure::failed(format!(
        "no arm is better than the baseline{}{verdicts}",
        if verdicts.is_empty() { "" } else { ":" }
    ))
    .hint("--arm NAME prints an arm's changes anyway")
}

fn unknown(study: &Study, name: &str) -> Failure {
    let names: Vec<&str> = study.arms.iter().map(|arm| &*arm.name).collect();
    let distances = names.iter().map(|arm| (strsim::damerau_levenshtein(arm, name), *arm));
    // As far as a slip of the finger goes.
    let nearest = distances.min().filter(|(distance, known)| *distance <= known.len().div_ceil(3));
    let failure = Failure::input(format!("the run has no arm named `{name}`"));
    match nearest {
        Some((_, nearest)) => failure.hint(format!("did you mean `{nearest}`?")),
        None => failure.hint(format!("its arms are {}", names.join(", "))),
    }
}
