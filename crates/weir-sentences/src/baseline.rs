//! Sentences about a run and the baseline that is kept.

use weir_history::BaselineFindings;

use crate::numbers;
use crate::runs::describe_runs;

/// Returns the verdict on a run.
pub fn describe_verdict(found: &BaselineFindings) -> String {
    let verdict = describe_runs(&found.runs);
    if found.is_decline {
        return format!(
            "{verdict} It is worse than the first runs of the baseline, though not than the newest: it declines slowly."
        );
    }
    verdict
}

/// Says that a run was added.
pub fn describe_kept(folder: &str, kept: usize, most: usize) -> String {
    let runs = numbers::counted(kept as u64, "run");
    format!("The baseline {folder} keeps this run: it now has {runs}, of at most {most}.")
}

/// Says that a run was not added, and why.
pub fn explain_left_out(folder: &str, is_complete: bool, is_valid: bool) -> String {
    let why = if !is_complete {
        "it did not end as planned"
    } else if !is_valid {
        "all its figures are INVALID"
    } else {
        "it is worse; --renew accepts it and begins the baseline anew"
    };
    format!("The baseline {folder} does not keep this run: {why}.")
}
