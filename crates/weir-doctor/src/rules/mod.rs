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

/// Formats a number with thousands separators.
fn figure(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 worker`, `2 workers`.
pub(crate) fn counted(number: u64, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {word}{plural}", figure(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_people_read_them() {
        assert_eq!(figure(0), "0");
        assert_eq!(figure(999), "999");
        assert_eq!(figure(1_048_576), "1,048,576");
        assert_eq!(counted(1, "worker"), "1 worker");
        assert_eq!(counted(2, "worker"), "2 workers");
        assert_eq!(rounded(10_000), 16_384);
        assert_eq!(rounded(u64::MAX), u64::MAX);
    }
}
