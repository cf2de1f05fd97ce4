//! Arms whose settings were not in force, or had no effect.

use weir_analysis::findings::{Ineffective, InertArm, MisreadArm};
use weir_parameters::Counter;

use crate::names::metric_words;

/// Returns the reasons why an arm's levels change nothing, as a clause.
pub fn explain_inert(inert: &InertArm) -> String {
    let reasons: Vec<&str> = inert.levels.iter().map(|level| &*level.why).collect();
    reasons.join("; ")
}

/// Returns a sentence about an arm that was read as equal to another and differs from it.
pub fn describe_misread(misread: &MisreadArm) -> String {
    let ids: Vec<&str> = misread.levels.iter().map(|level| &*level.id).collect();
    let (values, were) = match ids.len() {
        1 => ("value", "was"),
        _ => ("values", "were"),
    };
    format!(
        "The {values} of {} {were} read as equal in {} and {}, but the arms differ by {:.2} times in the {} (load \
         {}): the reading is wrong or something else differs.",
        ids.join(", "),
        misread.arm,
        misread.against,
        misread.ratio,
        metric_words(misread.metric),
        misread.load
    )
}

/// Returns a sentence about a change that did not take effect.
pub fn describe_ineffective(change: &Ineffective) -> String {
    let Ineffective { arm, id, level, .. } = change;
    format!("{id} = {level} did not take effect in {arm}: {}.", explain_ineffective(change))
}

/// Returns both values of the counter that shows if a change took effect, as a clause.
pub fn explain_ineffective(change: &Ineffective) -> String {
    let (value, other, what) = match change.counter {
        Counter::OriginConnections => (
            format!("{:.3}", change.value),
            format!("{:.3}", change.other),
            "connections to the origin server per request",
        ),
        Counter::ResumedHandshakes => (
            format!("{:.1} %", change.value * 100.0),
            format!("{:.1} %", change.other * 100.0),
            "of the handshakes resumed",
        ),
        Counter::ReceivedBytes => (
            format!("{:.0}", change.value),
            format!("{:.0}", change.other),
            "bytes received per response",
        ),
    };
    let because = match &change.because {
        Some(hindrance) => {
            format!(": {} is {}, and {}", hindrance.id, hindrance.level, hindrance.because)
        }
        None => String::new(),
    };
    format!("{value} {what}, and {other} in {}{because}", change.against)
}
