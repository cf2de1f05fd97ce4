//! Rules that decide if a measurement may be used, by what happened around it, before anybody looks at its outcome.
//!
//! There is one table of rules, [`RULES`], for the trials of a study and for `weir load`. [`Evidence`] holds the facts
//! about either: `evidence` and `blocks` fill it from a run's records, `load` from a load test's result. The lab judges
//! each trial as it records it; the analysis judges again, so that improved rules also apply to old runs.

use weir_model::load::ErrorCount;
use weir_model::record::ValidityReason;

use crate::evidence::Evidence;

mod grade;
mod table;

pub(crate) use grade::Reason;
pub use grade::{Limits, Rule, Use};
pub use table::RULES;

/// Share of its CPUs from which on generator or origin count as busy. Not higher, because the kernel's work on their
/// behalf (softirq) is not in the CPU time of their threads.
pub(crate) const BUSY: f64 = 0.80;
/// Longest standstill of a generator's thread that is tolerated on a machine with other work, nanoseconds.
const GAP_NS: f64 = 5e7;
/// Lateness of the generator, of the response time, above which a figure is suspect.
pub(crate) const LAG: f64 = 0.25;
/// Limit just below 1 for a share of bytes: only all bytes together exceed it.
const BYPASSED: f64 = 1.0 - f64::EPSILON;

/// Returns every reason to doubt the measurement; empty if it is VALID.
pub(crate) fn judge(used: Use, evidence: &Evidence<'_>) -> Vec<Reason> {
    let reasons = RULES.iter().filter_map(|rule| {
        let (size, observation) = (rule.observe)(evidence)?;
        let validity = rule.limits[used as usize].grade(size)?;
        let subject = evidence.name.map(str::to_owned);
        Some(Reason { reason: ValidityReason { validity, subject, observation }, size })
    });
    reasons.collect()
}

/// Counts the errors of a kind.
fn count(evidence: &Evidence<'_>, is_such: fn(&ErrorCount) -> bool) -> u64 {
    evidence.errors.iter().filter(|error| is_such(error)).map(|error| error.count).sum()
}

/// Returns the most frequent error.
fn most_frequent_error(evidence: &Evidence<'_>) -> Option<ErrorCount> {
    evidence.errors.iter().max_by_key(|error| error.count).cloned()
}

/// Returns the share `part / of`; 0 of nothing.
fn share(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}
