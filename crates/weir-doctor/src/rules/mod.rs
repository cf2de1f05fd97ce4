//! The rules. Each turns facts into findings; none reads anything or knows the others.

mod advice;
mod backlog;
pub(crate) mod cluster;
mod cpu;
mod descriptors;
mod http;
mod numbers;
mod ports;
mod serving;
mod shape;
mod sources;
mod sysctl_files;
mod tables;

use crate::facts::Facts;
use crate::finding::{Finding, Room};
use shape::Shape;

/// Applies all rules and returns their findings, rule by rule.
pub(crate) fn all(facts: &Facts) -> Vec<Finding> {
    let shape = Shape::of(facts);
    #[rustfmt::skip]
    let rules: [fn(&Shape<'_>, &mut Vec<Finding>); 8] = [
        descriptors::rules, ports::rules, backlog::rules, tables::rules, http::rules, cpu::rules,
        advice::rules, sysctl_files::rules,
    ];
    let mut findings = Vec::new();
    for rule in rules {
        rule(&shape, &mut findings);
    }
    findings
}

/// Returns the capacity that the settings allow.
pub(crate) fn room(facts: &Facts) -> Vec<Room> {
    let shape = Shape::of(facts);
    let mut room = Vec::new();
    room.extend(descriptors::room(&shape));
    room.extend(ports::room(&shape));
    room
}

/// Rounds up to a power of two: what people usually write, with some margin.
fn rounded(wanted: u64) -> u64 {
    wanted.max(1).checked_next_power_of_two().unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_to_round_stays() {
        assert_eq!(rounded(10_000), 16_384);
        assert_eq!(rounded(u64::MAX), u64::MAX);
    }
}
