//! The answer of a study whose arms are different proxies. One proxy does not "make" another carry more, so these
//! sentences compare.

use weir_analysis::findings::{Comparison, LoadFindings, Verdict};
use weir_model::study::{Metric, Study};

use crate::names::{arm, capitalize, join_names};
use crate::{numbers, ranking};

/// Ranks the arms in a sentence if the study compares every pair; `None` in other studies.
pub(super) fn describe_ranking(study: &Study, load: &LoadFindings) -> Option<String> {
    let ranking = ranking::describe_ranking(study, load, study.objective.metric)?;
    Some(format!("{}.", capitalize(study, &ranking)))
}

/// Returns "HAProxy carries 1.31 times as much as nginx (95 % interval 1.27 to 1.35)". If nobody was busy, "answers
/// 1.31 times as many requests", because what the proxy can carry is then unknown.
pub(super) fn describe_effect(
    study: &Study,
    comparison: &Comparison,
    is_first: bool,
    is_idle: bool,
) -> String {
    let (subject, other) = name_arms(study, comparison);
    if let Some(text) = super::describe_unbounded(comparison, (&subject, &other)) {
        return text;
    }
    let ratio = comparison.ratio;
    let interval = numbers::interval(comparison.interval);
    let clause = match comparison.metric {
        Metric::Rate if is_idle => format!("answers {ratio:.2} times as many requests as {other}"),
        Metric::Rate => format!("carries {ratio:.2} times as much as {other}"),
        Metric::ReceivedBytes => format!("passes on {ratio:.2} times as many bytes as {other}"),
        Metric::CpuPerRequest => {
            format!("spends {ratio:.2} times the CPU time of {other} on a request")
        }
        Metric::ResponseP50 => {
            format!("has a median response time {ratio:.2} times as long as that of {other}")
        }
        Metric::ResponseP99 => {
            format!(
                "has a 0.99 quantile of the response time {ratio:.2} times as long as that of {other}"
            )
        }
    };
    let confidence = numbers::level(study.objective.confidence);
    if is_first {
        format!("{subject} {clause} ({confidence} interval {interval})")
    } else {
        format!("{subject} {clause} ({interval})")
    }
}

/// Returns "Envoy and Caddy are no different from nginx beyond 2 %", or that no difference could be shown. All
/// comparisons must have the same verdict.
pub(super) fn describe_no_difference(study: &Study, comparisons: &[&Comparison]) -> Option<String> {
    let first = comparisons.first()?;
    let (_, other) = name_arms(study, first);
    let names: Vec<String> = comparisons.iter().map(|c| name_arms(study, c).0).collect();
    let subject = join_names(&names);
    Some(match first.verdict {
        Verdict::Equivalent => {
            let band = numbers::level(study.objective.band);
            let verb = if comparisons.len() == 1 { "does" } else { "do" };
            format!("{subject} {verb} not differ from {other} beyond {band}")
        }
        _ => format!("{subject} could not be told from {other}"),
    })
}

/// Returns the names of an arm and of the one that it is compared with.
fn name_arms(study: &Study, comparison: &Comparison) -> (String, String) {
    let [name, against] = [&comparison.arm, &comparison.against].map(|name| arm(study, name));
    (name, against)
}
