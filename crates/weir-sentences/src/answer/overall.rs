//! The answer about a change by several figures: what both arms carry, and how long they take at one rate.

use weir_analysis::findings::{
    Comparison, Findings, LoadFindings, OverallFindings, Verdict, WorstCase,
};
use weir_model::study::{Arm, Metric, Study};

use super::{append_notes, describe_unbounded};
use crate::names::{capitalize, join_names};
use crate::numbers;

/// Returns the answer: a line about all figures, and one for each load.
pub(super) fn describe(study: &Study, findings: &Findings, arms: [&Arm; 2]) -> String {
    let measured = findings.loads.iter().filter(|load| load.blocks > 0);
    let lines = measured.map(|load| {
        let metrics = match load.rate_intended {
            None => &[Metric::Rate][..],
            Some(_) => &[Metric::ResponseP50, Metric::ResponseP99],
        };
        let comparisons: Vec<&Comparison> =
            metrics.iter().filter_map(|metric| load.comparison(&arms[1].name, *metric)).collect();
        let clauses = if comparisons.iter().all(|one| one.verdict == Verdict::Invalid) {
            format!("{} has no valid figures", arms[1].name)
        } else {
            let sentences =
                comparisons.iter().map(|one| describe_comparison(study, load, one, arms));
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
    let overall = findings.overall.iter().map(|overall| {
        let sentence = format!("{}.", describe_overall(study, overall));
        capitalize(study, &sentence)
    });
    let lines: Vec<String> = overall.chain(lines).collect();
    if findings.loads.iter().all(|load| load.blocks == 0) {
        "Nothing was measured.".to_owned()
    } else {
        lines.join("\n")
    }
}

/// Returns the verdict on all figures, and, where nothing is claimed, by how much the change may be worse.
fn describe_overall(study: &Study, overall: &OverallFindings) -> String {
    let OverallFindings { arm, against, verdict, cases } = overall;
    match verdict {
        Verdict::Worse => {
            let better = match figures_with(cases, Verdict::Better) {
                better if better.is_empty() => String::new(),
                better => format!(", and better in {better}"),
            };
            format!(
                "{arm} is worse than {against} in {}{better}",
                figures_with(cases, Verdict::Worse)
            )
        }
        Verdict::Better => {
            let figures = figures_with(cases, Verdict::Better);
            format!("{arm} is better than {against} in {figures}, and nothing of it is worse")
        }
        Verdict::Equivalent => {
            let band = numbers::level(study.objective.band);
            format!("{arm} is as good as {against}, within {band}")
        }
        Verdict::Inconclusive => {
            let bounds: Vec<String> =
                cases.iter().map(|case| describe_bound(study, case)).collect();
            format!(
                "{arm} cannot be called worse or better than {against}; by the intervals ({}), it may be worse by up to: {}",
                numbers::level(study.objective.confidence),
                bounds.join(", ")
            )
        }
        Verdict::Invalid => format!("{arm} could not be compared with {against}"),
    }
}

/// Returns the names of the figures with this verdict.
fn figures_with(cases: &[WorstCase], verdict: Verdict) -> String {
    let names = cases.iter().filter(|case| case.verdict == verdict).map(describe_figure);
    join_names(&names.collect::<Vec<_>>())
}

/// Returns the name of a figure that decides, with its load.
fn describe_figure(case: &WorstCase) -> String {
    let figure = match case.metric {
        Metric::ResponseP50 => "p50",
        Metric::ResponseP99 => "p99",
        _ => "rate",
    };
    format!("{figure} (load {})", case.load)
}

/// Returns by how much a figure may be worse.
fn describe_bound(study: &Study, case: &WorstCase) -> String {
    let figure = describe_figure(case);
    match case.by {
        _ if case.verdict == Verdict::Invalid => format!("{figure} unknown"),
        None => format!("{figure} without bound"),
        Some(by) if by < study.objective.band => {
            format!("{figure} {}", numbers::level(study.objective.band))
        }
        // Nobody thinks of 9,311 %.
        Some(by) if by >= 1.0 => format!("{figure} {} times as much", times_rounded_up(1.0 + by)),
        Some(by) => format!("{figure} {:.0} %", (by * 100.0 - 1e-9).ceil()),
    }
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

/// Formats a factor, rounded up because it is a bound: `2.4`, `95`.
fn times_rounded_up(factor: f64) -> String {
    let step = if factor < 10.0 { 0.1 } else { 1.0 };
    numbers::rate((factor / step - 1e-9).ceil() * step)
}
