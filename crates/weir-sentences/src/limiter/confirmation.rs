//! Sentences about attempts to confirm a limit.

use weir_model::record::ConfirmationRecord;
use weir_model::study::{Reduction, TakenFrom};

/// Returns the name of the resource that is reduced, with its owner.
pub(super) fn name_reduced_resource(from: TakenFrom) -> &'static str {
    match from {
        TakenFrom::Generator => "the generator's CPU time",
        TakenFrom::Proxy => "the proxy's CPU time",
        TakenFrom::Origin => "the origin server's CPU time and speed",
    }
}

/// Formats a ratio to what was carried before: `24 % less`, `1 % more`.
fn format_change(ratio: f64) -> String {
    let percent = (100.0 * (ratio - 1.0)).round();
    let direction = if percent > 0.0 { "more" } else { "less" };
    format!("{:.0} % {direction}", percent.abs())
}

/// Formats an interval of such ratios, the higher one first: `20 to 27 %` if both are less, `3 % more to 2 % less`
/// otherwise.
fn format_changes(high: f64, low: f64) -> String {
    if high <= 1.0 {
        format!("{:.0} to {:.0} %", 100.0 * (1.0 - high), 100.0 * (1.0 - low))
    } else {
        format!("{} to {}", format_change(high), format_change(low))
    }
}

/// Returns a sentence about an arm that had less of a resource: `Confirmed: with 25 % less of the proxy's CPU time it
/// carries 24 % less (20 to 27 %).`
fn describe_reduction(taken: Reduction, confirmation: &ConfirmationRecord) -> String {
    let named = if confirmation.confirmed { "Confirmed" } else { "Not confirmed" };
    let whose = name_reduced_resource(taken.from);
    let carries = match confirmation.ratio {
        Some((ratio, (low, high))) => {
            format!("it carries {} ({})", format_change(ratio), format_changes(high, low))
        }
        None => "nothing is answered".to_owned(),
    };
    format!("{named}: with {} % less of {whose} {carries}.", taken.percent)
}

/// Returns a sentence about an attempt to confirm a limit by changing a parameter or reducing a resource.
pub(super) fn describe(confirmation: &ConfirmationRecord) -> String {
    if let (Some(taken), "") = (confirmation.taken, &*confirmation.why_not) {
        return describe_reduction(taken, confirmation);
    }
    let levels: Vec<String> =
        confirmation.turned.iter().map(|(id, level)| format!("{id} at {level}")).collect();
    let turned = levels.join(" and ");
    if !confirmation.why_not.is_empty() {
        return if turned.is_empty() {
            format!("Not confirmed: {}.", confirmation.why_not)
        } else {
            format!("Not confirmed by {turned}: {}.", confirmation.why_not)
        };
    }
    let carries = match confirmation.ratio {
        Some((ratio, (low, high))) => {
            let (what, as_much) = match confirmation.metric.response_quantile() {
                Some(q) => (format!("the p{:.0} of its response time is", 100.0 * q), "long"),
                None => ("it carries".to_owned(), "much"),
            };
            format!("{what} {ratio:.2} times as {as_much} ({low:.2} to {high:.2})")
        }
        None => "it answers requests that fail without it".to_owned(),
    };
    if confirmation.confirmed {
        format!("Confirmed: with {turned} {carries}.")
    } else {
        format!("Not confirmed: with {turned} {carries}.")
    }
}
