//! Sentences about what arms carry for what they cost.

use weir_analysis::findings::{FrontierFindings, Privilege};

use crate::names::join_names;

/// Says which arms are worth their cost, and what that can be said of.
pub fn describe(found: &FrontierFindings) -> String {
    let names = |is_dominated: bool| -> Vec<String> {
        let arms = found.arms.iter().filter(|arm| arm.dominated_by.is_some() == is_dominated);
        arms.map(|arm| arm.arm.clone()).collect()
    };
    let (left, dominated) = (names(false), names(true));
    let measures = "rate, CPU time, memory and privileges";
    if dominated.is_empty() {
        return format!(
            "No arm is dominated: none is shown to be no better than another in any of {measures}."
        );
    }
    let is = if dominated.len() == 1 { "is" } else { "are" };
    let choice = match &left[..] {
        [only] => format!("Only {only} is left."),
        _ => format!("The choice is among {}.", join_names(&left)),
    };
    format!(
        "{} {is} dominated: another arm is no worse in any of {measures}, and better in one of them. {choice}",
        join_names(&dominated),
    )
}

/// Names what somebody must be allowed, or have.
pub fn name_privilege(privilege: Privilege) -> &'static str {
    match privilege {
        Privilege::Launcher => "a launcher",
        Privilege::NetworkSettings => "kernel settings of its network namespace",
        Privilege::HostSettings => "kernel settings of the host",
        Privilege::Bpf => "eBPF (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN)",
    }
}
