//! Arms that changed while they were measured, or would have if they had been measured for longer.

use weir_analysis::findings::{FreshArms, PhaseChange, PhaseEvidence, TIME_WAIT_S};
use weir_model::study::Metric;

use crate::numbers;

/// Returns a sentence about the first change of an arm during the run, and the number of further ones; `None` without
/// a change.
pub(crate) fn describe_changes(changes: &[PhaseChange]) -> Option<String> {
    let (first, others) = changes.split_first()?;
    let figures = match first.metric {
        Metric::CpuPerRequest => format!(
            "{:.0} µs of CPU time per request before, {:.0} µs after",
            first.before / 1e3,
            first.after / 1e3
        ),
        _ => format!(
            "{} requests/s before, {} after",
            numbers::rate(first.before),
            numbers::rate(first.after)
        ),
    };
    let why = if first.evidence.is_empty() {
        String::new()
    } else {
        format!("; {}", describe_phase_evidence(&first.evidence))
    };
    let more = match others.len() {
        0 => String::new(),
        1 => " One more such change is in the report.".to_owned(),
        count => format!(" {count} more such changes are in the report."),
    };
    Some(format!(
        "{} changed at second {:.0} ({figures}{why}), so its figures over all blocks mix the two.{more}",
        first.arm, first.at_s
    ))
}

/// Returns the differences before and after a change, as clauses; empty if there are none.
pub fn describe_phase_evidence(evidence: &[PhaseEvidence]) -> String {
    evidence.iter().map(describe_evidence).collect::<Vec<_>>().join("; ")
}

fn describe_evidence(evidence: &PhaseEvidence) -> String {
    match evidence {
        PhaseEvidence::TimeWait { before, after, local_ports } => {
            let ports = match local_ports {
                Some(ports) => format!(
                    "; it has {} local ports, and connect(2) tries those of one parity first, so once half are \
                     taken it searches all of them",
                    numbers::count(*ports)
                ),
                None => String::new(),
            };
            format!(
                "its namespace kept {} ended connections in TIME_WAIT, {} before{ports}",
                numbers::count(*after),
                numbers::count(*before)
            )
        }
        PhaseEvidence::OriginConnections { before, after } => format!(
            "connections to the origin server were {after:.2} for each request, {before:.2} before"
        ),
        PhaseEvidence::Reconnections { before, after } => format!(
            "the generator opened {after:.2} connections again for each request, {before:.2} before"
        ),
    }
}

/// Returns a sentence about arms that were not measured for long enough to see them change.
pub fn describe_fresh_arms(fresh: &FreshArms) -> String {
    format!(
        "Arms were seen fresh: the load lasted {:.0} s, and ended connections keep their ports for {TIME_WAIT_S:.0} s \
         (up to {} in TIME_WAIT, {}); more than twice that long shows what they do later.",
        fresh.lasted_s,
        numbers::count(fresh.time_wait),
        fresh.arm
    )
}
