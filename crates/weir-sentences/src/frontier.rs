//! Sentences about what arms carry for what they cost.

use weir_analysis::findings::{FrontierArm, FrontierFindings, Privilege};

use crate::names::join_names;

/// Says which arms are worth their cost, and what that can be said of.
pub fn describe(found: &FrontierFindings) -> String {
    let (dominated, left): (Vec<&FrontierArm>, Vec<&FrontierArm>) =
        found.arms.iter().partition(|arm| arm.dominated_by.is_some());
    let measures = "rate, CPU time, memory and privileges";
    if dominated.is_empty() {
        return format!(
            "No arm is dominated: none is shown to be no better than another in any of {measures}."
        );
    }
    let is = if dominated.len() == 1 { "is" } else { "are" };
    let choice = match &left[..] {
        [only] => format!("Only {} is left.", only.arm),
        _ => format!("The choice is among {}.", join_arms(&left)),
    };
    format!(
        "{} {is} dominated: another arm is no worse in any of {measures}, and better in one of them. {choice}",
        join_arms(&dominated),
    )
}

fn join_arms(arms: &[&FrontierArm]) -> String {
    let names: Vec<String> = arms.iter().map(|arm| arm.arm.clone()).collect();
    join_names(&names)
}

/// Names a permission or a program that a setting needs.
pub fn name_privilege(privilege: Privilege) -> &'static str {
    match privilege {
        Privilege::Launcher => "a launcher",
        Privilege::NetworkSettings => "kernel settings of its network namespace",
        Privilege::HostSettings => "kernel settings of the host",
        Privilege::Bpf => "eBPF (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN)",
    }
}
