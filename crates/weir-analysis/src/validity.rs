//! Rules that decide if a measurement may be used, by what happened around it, before anybody looks at its outcome.
//!
//! There is one table of rules, [`RULES`], for the trials of a study and for `weir load`. [`Evidence`] holds the facts
//! about either: `evidence` and `blocks` fill it from a run's records, `load` from a load test's result. The lab judges
//! each trial as it records it; the analysis judges again, so that improved rules also apply to old runs.

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

/// Share of its CPUs from which on generator or origin count as busy. Not higher, because the kernel's work on their
/// behalf (softirq) is not in the CPU time of their threads.
pub(crate) const BUSY: f64 = 0.80;
/// Longest standstill of a generator's thread that is tolerated on a machine with other work, nanoseconds.
const GAP_NS: f64 = 5e7;
/// Limit just below 1 for a share of bytes: only all bytes together exceed it.
const BYPASSED: f64 = 1.0 - f64::EPSILON;

/// Returns every reason to doubt the measurement; empty if it is VALID.
pub(crate) fn judge(used: Use, evidence: &Evidence<'_>) -> Vec<Reason> {
    let reasons = RULES.iter().filter_map(|rule| {
        let grade = Grade(rule.name, rule.limits[used as usize]);
        let mut reason = (rule.judge)(evidence, grade)?;
        if let Some(subject) = evidence.name {
            reason.reason.seen.insert_str(0, &format!("{subject}: "));
        }
        Some(reason)
    });
    reasons.collect()
}

/// Counts the errors of a kind.
fn count(evidence: &Evidence<'_>, is_such: fn(&ErrorCount) -> bool) -> u64 {
    evidence.errors.iter().filter(|error| is_such(error)).map(|error| error.count).sum()
}

/// Describes the most frequent error; empty without errors.
fn mostly(evidence: &Evidence<'_>) -> String {
    let most = evidence.errors.iter().max_by_key(|error| error.count);
    most.map_or(String::new(), |most| {
        format!(", {} times `{}`", names::count(most.count), most.words)
    })
}

/// Formats a share in percent.
fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p < 1.0 => format!("{p:.2} %"),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}
