//! Whose changes are given: those of the arm that was named, or of the one that came out best.

use weir_analysis::findings::{Comparison, Findings, LoadFindings, Verdict};
use weir_model::record::Validity;
use weir_model::study::{Arm, ArmRole, Metric, Study};

use crate::failure::Failure;

/// An arm and what the run says of it.
pub(super) struct Choice<'a> {
    pub(super) arm: &'a Arm,
    /// `better: 1.31 (1.27–1.35), VALID`, for each load that answers the study's question.
    pub(super) verdict: String,
}

impl<'a> Choice<'a> {
    /// The arm of this name.
    pub(super) fn named(
        study: &'a Study,
        findings: &Findings,
        name: &str,
    ) -> Result<Choice<'a>, Failure> {
        let arm = study.arms.iter().find(|arm| arm.name == name);
        let arm = arm.ok_or_else(|| unknown(study, name))?;
        Ok(Choice {
            verdict: words(study, findings, arm),
            arm,
        })
    }

    /// The arm that came out best: better under a load that answers the question, worse under none.
    /// A change that nothing speaks for is not given unasked.
    pub(super) fn best(study: &'a Study, findings: &Findings) -> Result<Choice<'a>, Failure> {
        let changes = study.arms.iter().filter(|arm| arm.role == ArmRole::Change);
        let started = changes.filter(|arm| study.proxy_of(arm).is_started());
        let gains = started.filter_map(|arm| Some((gain(study, findings, arm)?, arm)));
        let best = gains.max_by(|(a, _), (b, _)| a.total_cmp(b));
        match best {
            Some((_, arm)) => Ok(Choice {
                verdict: words(study, findings, arm),
                arm,
            }),
            None => Err(none_better(study, findings)),
        }
    }
}

/// The arm whose changes are printed unasked; `None` where no arm is better than the baseline.
pub(crate) fn best_arm<'a>(study: &'a Study, findings: &Findings) -> Option<&'a str> {
    let best = Choice::best(study, findings).ok()?;
    Some(&best.arm.name)
}

/// Loads that answer the study's question and may be used.
fn answering<'a>(study: &Study, findings: &'a Findings) -> impl Iterator<Item = &'a LoadFindings> {
    let metric = study.objective.metric;
    let loads = findings.loads.iter();
    loads.filter(move |load| load.metrics.contains(&metric) && load.validity != Validity::Invalid)
}

/// By how much an arm is better than the baseline, as a log ratio in the good direction: the least of
/// all loads that answer. `None` unless it is better under one and worse under none. An arm that is a
/// step has the gains of the steps before it too, and their losses, which its own must outweigh.
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

/// The arm, the one that it is compared with, and so on down to the baseline, which is not among them.
fn steps<'a>(study: &'a Study, arm: &'a Arm) -> impl Iterator<Item = &'a Arm> {
    // An arm is compared with one before it, so this ends.
    let all = std::iter::successors(Some(arm), move |arm| study.arms.get(arm.against));
    all.take_while(|arm| arm.role == ArmRole::Change)
}

/// Log ratio to the baseline, step by step.
fn to_baseline(study: &Study, load: &LoadFindings, metric: Metric, arm: &Arm) -> f64 {
    let ratio = |own: &Comparison| own.ratio.ln();
    steps(study, arm)
        .map(|step| load.comparison(&step.name, metric).map_or(f64::NAN, ratio))
        .sum()
}

/// Whether a step on the way from the baseline came out worse.
fn has_lost(study: &Study, load: &LoadFindings, metric: Metric, arm: &Arm) -> bool {
    let mut found = steps(study, arm).filter_map(|step| load.comparison(&step.name, metric));
    found.any(|own| own.verdict == Verdict::Worse)
}

/// What the run says of an arm, load by load.
fn words(study: &Study, findings: &Findings, arm: &Arm) -> String {
    match arm.role {
        ArmRole::Baseline => return "the baseline, which is compared with nothing".to_owned(),
        ArmRole::SameAsBaseline => return "the baseline once more".to_owned(),
        ArmRole::Change => {}
    }
    let metric = study.objective.metric;
    let loads: Vec<&LoadFindings> = findings
        .loads
        .iter()
        .filter(|load| load.metrics.contains(&metric))
        .collect();
    let is_one = loads.len() == 1;
    let each = loads.iter().map(|load| {
        let under = match is_one {
            true => String::new(),
            false => format!(" under load {}", load.load),
        };
        let validity = weir_report::words::validity(load.validity);
        match load.comparison(&arm.name, metric) {
            Some(own) => format!("{}{under}, {validity}", of(study, own)),
            None => format!("not compared{under}, {validity}"),
        }
    });
    let each: Vec<String> = each.collect();
    match each.is_empty() {
        true => "nothing was measured that answers the question".to_owned(),
        false => each.join("; "),
    }
}

/// `better: completed rate 1.31× (1.27–1.35) of baseline`.
fn of(study: &Study, own: &Comparison) -> String {
    use weir_report::{number, words};
    let verdict = own.verdict.word();
    match own.verdict {
        // The load's own validity stands behind it.
        Verdict::Invalid => own.because.clone(),
        _ => format!(
            "{verdict}: {} {} ({}) of {}",
            words::metric(own.metric),
            number::ratio(own.ratio),
            words::interval(own, study.objective.confidence),
            own.against
        ),
    }
}

/// Why no arm is given unasked.
fn none_better(study: &Study, findings: &Findings) -> Failure {
    if let Some(capacity) = &findings.capacity {
        let each = capacity.arms.iter();
        let each = each.map(|arm| format!("\n  {}", weir_analysis::capacity::carries(arm)));
        return Failure::failed(format!(
            "a run that searched for capacities recommends no settings; it found:{}",
            each.collect::<String>()
        ))
        .hint("--arm NAME prints an arm's changes");
    }
    let changes = study.arms.iter().filter(|arm| arm.role == ArmRole::Change);
    let each = changes.map(|arm| format!("\n  {}: {}", arm.name, words(study, findings, arm)));
    let each: String = each.collect();
    Failure::failed(format!(
        "no arm is better than the baseline{}{each}",
        if each.is_empty() { "" } else { ":" }
    ))
    .hint("--arm NAME prints an arm's changes anyway")
}

fn unknown(study: &Study, name: &str) -> Failure {
    let names: Vec<&str> = study.arms.iter().map(|arm| &*arm.name).collect();
    let distances = names
        .iter()
        .map(|known| (strsim::damerau_levenshtein(known, name), *known));
    // As far as a slip of the finger goes.
    let near = distances
        .min()
        .filter(|(distance, known)| *distance <= known.len().div_ceil(3));
    let failure = Failure::input(format!("the run has no arm named `{name}`"));
    match near {
        Some((_, near)) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint(format!("its arms are {}", names.join(", "))),
    }
}
