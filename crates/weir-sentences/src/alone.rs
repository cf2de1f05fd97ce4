//! Sentences about the check that a ratio measured side by side holds when the arms run one at a time.

use weir_analysis::findings::{AloneChoice, AloneFindings, AloneReason, Holding};
use weir_model::study::{Metric, Study};
use weir_stats::verdict::LEAST_REPLICATES;

use crate::names::metric_words;
use crate::numbers;

/// Returns the result of the check, as sentences.
pub fn describe_alone(study: &Study, found: &AloneFindings) -> String {
    let AloneFindings { arm, against, .. } = found;
    let confidence = numbers::level(study.objective.confidence);
    let ratios = format!(
        "by {}, {arm} against {against} {} alone, {} side by side ({confidence} intervals)",
        metric_words(found.metric),
        format_ratio(found.alone),
        format_ratio(found.together)
    );
    match found.verdict {
        Holding::Holds => {
            format!("The ratio holds when only one arm runs at a time: {ratios}.")
        }
        Holding::DoesNotHold => format!(
            "The ratio does not hold when only one arm runs at a time: {ratios}. Arms on this host disturb each \
             other, so the figures above are not those of an arm alone."
        ),
        Holding::NotShown => format!(
            "Whether the ratio holds when only one arm runs at a time could not be shown: {ratios}; {}.",
            explain_alone(study, found)
        ),
        Holding::Invalid => {
            let ratio = if arm.is_empty() {
                "the ratio".to_owned()
            } else {
                format!("the ratio of {arm} to {against}")
            };
            let why = explain_alone(study, found);
            format!("Whether {ratio} holds alone was not measured: {why}.")
        }
    }
}

/// Returns the reason for the verdict, as a clause.
pub fn explain_alone(study: &Study, found: &AloneFindings) -> String {
    let band = study.objective.band;
    let (change, (low, high)) = found.change;
    let change = format!(
        "the ratio alone is {change:.3} times the one side by side (interval {low:.3} to {high:.3})"
    );
    let of_what = if found.tolerance > band { "a quarter of the effect" } else { "the band" };
    let tolerance = format!("{} ({of_what})", format_percent(found.tolerance));
    let reason = match found.because {
        AloneReason::NoRatio => "no arm has a ratio side by side".to_owned(),
        AloneReason::NotReached => "the run ended before it".to_owned(),
        AloneReason::NoPairs => "no two neighbouring stretches could both be used".to_owned(),
        AloneReason::FewPairs => format!(
            "only {} pairs of stretches; nothing is claimed from fewer than {LEAST_REPLICATES}",
            found.n
        ),
        AloneReason::LowConfidence => "too few replicates for this confidence".to_owned(),
        AloneReason::WithinBand => format!("{change}, within {}", format_percent(band)),
        AloneReason::Changed => change,
        AloneReason::WithinTolerance => {
            format!("{change}: no difference is shown, and none beyond {tolerance} is left")
        }
        AloneReason::BeyondTolerance => {
            format!("{change}: no difference is shown, but one beyond {tolerance} is possible")
        }
    };
    let changed = if found.changed_side_by_side {
        "; side by side an arm changed during the run, and alone every instance is new"
    } else {
        ""
    };
    format!("{reason}{changed}")
}

/// Returns the reason why an arm was chosen for the check, as a clause about "it".
pub fn explain_choice(choice: AloneChoice, metric: Metric) -> String {
    let metric = metric_words(metric);
    match choice {
        AloneChoice::Best => format!("it is the best arm by {metric}"),
        AloneChoice::DiffersMost => format!("no arm is better by {metric}, and it differs most"),
        AloneChoice::First => format!("no arm differs by {metric}, and it is the first"),
    }
}

/// Returns "1.250 times (1.200 to 1.300)".
fn format_ratio((ratio, (low, high)): (f64, (f64, f64))) -> String {
    format!("{ratio:.3} times ({low:.3} to {high:.3})")
}

fn format_percent(share: f64) -> String {
    format!("{} %", (share * 1e3).round() / 1e1)
}
