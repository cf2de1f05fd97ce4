//! May this measurement be used? Judged by what happened around it, before anybody looks at its outcome.
//!
//! There is one table of rules, [`RULES`], for the trials of a study and for `weir load`. What is known of
//! either is [`Evidence`]: `evidence` and `blocks` fill it from a run's records, `load` from a load test's result. The lab
//! judges each trial as it records it; the analysis judges again, so that rules that got better also
//! apply to old runs.

use weir_model::load::ErrorCount;

use crate::evidence::Evidence;
use crate::names;

mod grade;
mod recorded;
mod table;

use grade::Grade;
pub(crate) use grade::Reason;
pub use grade::{Limits, Rule, Use};
pub use table::RULES;

/// From when on generator or origin count as busy. Not higher, because the kernel's work on their
/// behalf (softirq) is not in the CPU time of their threads.
pub(crate) const BUSY: f64 = 0.80;
/// What a thread of the generator may stand still for on a machine that has other work as well.
const GAP_NS: f64 = 5e7;
/// Less than everything: a limit that every byte is needed to pass.
const BYPASSED: f64 = 1.0 - f64::EPSILON;

/// Every reason to doubt what `evidence` is of; none: VALID.
pub(crate) fn judge(used: Use, evidence: &Evidence<'_>) -> Vec<Reason> {
    let each = RULES.iter().filter_map(|rule| {
        let grade = Grade(rule.name, rule.limits[used as usize]);
        let mut found = (rule.judge)(evidence, grade)?;
        if let Some(subject) = evidence.name {
            found.reason.seen.insert_str(0, &format!("{subject}: "));
        }
        Some(found)
    });
    each.collect()
}

/// Errors of a kind.
fn count(evidence: &Evidence<'_>, is_such: fn(&ErrorCount) -> bool) -> u64 {
    let such = evidence.errors.iter().filter(|error| is_such(error));
    such.map(|error| error.count).sum()
}

/// The most frequent error; empty without errors.
fn mostly(evidence: &Evidence<'_>) -> String {
    let most = evidence.errors.iter().max_by_key(|error| error.count);
    most.map_or(String::new(), |most| {
        format!(", {} times `{}`", names::count(most.count), most.words)
    })
}

/// A share in words.
fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p < 1.0 => format!("{p:.2} %"),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}
