//! The answer about two servers that weir did not start: what both carry, and how long they take at one rate.

use weir_analysis::findings::{Comparison, Findings, LoadFindings, Verdict};
use weir_model::study::{Arm, Metric, Study};

use super::{append_notes, describe_unbounded};
use crate::names::capitalize;
use crate::numbers;

/// Returns the answer, a line for each load.
pub(super) fn describe_servers(study: &Study, findings: &Findings, servers: [&Arm; 2]) -> String {
    let measured = findings.loads.iter().filter(|load| load.blocks > 0);
    let lines = measured.map(|load| {
        let metrics = match load.rate_intended {
            None => &[Metric::Rate][..],
            Some(_) => &[Metric::ResponseP50, Metric::ResponseP99],
        };
        let comparisons: Vec<&Comparison> = metrics
            .iter()
            .filter_map(|metric| load.comparison(&servers[1].name, *metric))
            .collect();
        let clauses = if comparisons.iter().all(|one| one.verdict == Verdict::Invalid) {
            format!("{} has no valid figures", servers[1].name)
        } else {
            let sentences =
                comparisons.iter().map(|one| describe_comparison(study, load, one, servers));
            sentences.collect::<Vec<_>>().join(", and ")
        };
        let text = match load.rate_intended {
            Some(rate) => {
                format!("at {} {}", numbers::with_unit(rate, "requests/s"), clauses)
            }
            None => clauses,
        };
        append_notes(study, load, format!("{}.", capitalize(study, &text)))
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { "Nothing was measured.".to_owned() } else { lines.join("\n") }
}

/// Returns "new carries 0.69 times as much as old (95 % interval 0.67 to 0.71)", or another clause for the metric and
/// the verdict.
fn describe_comparison(
    study: &Study,
    load: &LoadFindings,
    comparison: &Comparison,
    [old, new]: [&Arm; 2],
) -> String {
    let (old, new) = (old.name.as_str(), new.name.as_str());
    if let Some(text) = describe_unbounded(comparison, (new, old)) {
        return text;
    }
    let (what, carries) = match comparison.metric {
        Metric::ResponseP50 => ("median response time", "takes"),
        Metric::ResponseP99 => ("0.99 quantile of the response time", "takes"),
        _ if load.idle.is_some() => ("rate", "answers"),
        _ => ("rate", "carries"),
    };
    let is_time = comparison.metric.response_quantile().is_some();
    let confidence = numbers::level(study.objective.confidence);
    let interval = format!("{confidence} interval {}", numbers::interval(comparison.interval));
    let ratio = comparison.ratio;
    match (comparison.verdict, is_time) {
        (Verdict::Better | Verdict::Worse, true) => {
            format!("the {what} of {new} is {ratio:.2} times that of {old} ({interval})")
        }
        (Verdict::Better | Verdict::Worse, false) => {
            format!("{new} {carries} {ratio:.2} times as much as {old} ({interval})")
        }
        (Verdict::Equivalent, true) => {
            let band = numbers::level(study.objective.band);
            format!("the {what} of {new} is that of {old}, within {band}")
        }
        (Verdict::Equivalent, false) => {
            let band = numbers::level(study.objective.band);
            format!("{new} {carries} as much as {old}, within {band}")
        }
        (Verdict::Inconclusive, true) => format!(
            "no difference of the {what} could be shown: that of {new} is {ratio:.2} times that of {old} ({interval})"
        ),
        (Verdict::Inconclusive, false) => format!(
            "no difference of the {what} could be shown: {new} {carries} {ratio:.2} times as much as {old} ({interval})"
        ),
        (Verdict::Invalid, _) => format!("{new} has no valid figures of the {what}"),
    }
}
