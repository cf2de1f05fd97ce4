//! Sentences about the growth of an arm's resources with the rate.

use weir_analysis::findings::{GrowthFindings, Shape, UnknownGrowth};
use weir_limits::{Absent, Divisor, Resource};
use weir_stats::growth::{LEAST_LEVELS, LEAST_POINTS};

use crate::limiter::describe_input;
use crate::names::join_names;
use crate::numbers::with_unit;

/// Returns the answer in a sentence about the resources that are known, and one about the others.
pub fn describe(found: &GrowthFindings) -> String {
    let known_sentence = describe_known(found);
    let reasons = list_unknown(found);
    let whose = if known_sentence.is_none() { format!(" of {}", found.arm) } else { String::new() };
    let unknown_sentence =
        (!reasons.is_empty()).then(|| format!("Not known{whose}: {}.", reasons.join("; ")));
    known_sentence.into_iter().chain(unknown_sentence).collect::<Vec<_>>().join(" ")
}

/// Returns the sentence about the resources that are known; `None` if there are none.
fn describe_known(found: &GrowthFindings) -> Option<String> {
    let shapes = [
        (Shape::Linear, "grows linearly with the rate", "grow linearly with the rate"),
        (Shape::Constant, "does not grow", "do not grow"),
        (
            Shape::Curve,
            "grows, but not along a straight line",
            "grow, but not along a straight line",
        ),
    ];
    let plain = shapes.into_iter().filter_map(|(shape, one, many)| clause(found, shape, one, many));
    let bends = found.known().into_iter().filter_map(|growth| {
        let bend = growth.bend?;
        let (at, (low, high)) = bend.at;
        let [at, low, high] = [at, low, high].map(|rate| with_unit(rate, ""));
        let [before, after] =
            [bend.before, bend.after].map(|slope| with_unit(slope, &growth.unit));
        Some(format!(
            "the growth of {} bends at {at} requests/s ({low} to {high}): 1,000 requests/s more take {before} below it \
             and {after} above it",
            resource_name(growth.resource)
        ))
    });
    let clauses: Vec<String> = plain.chain(bends).collect();
    let [low, high] = [found.rates.0, found.rates.1].map(|rate| with_unit(rate, ""));
    (!clauses.is_empty())
        .then(|| format!("{}, from {low} to {high} requests/s: {}.", found.arm, clauses.join("; ")))
}

/// Returns the clause about the resources that grow in this way; `None` if there are none.
fn clause(found: &GrowthFindings, shape: Shape, one: &str, many: &str) -> Option<String> {
    let quantities = found.known().into_iter().filter(|growth| growth.shape == shape);
    let names: Vec<String> =
        quantities.map(|growth| resource_name(growth.resource).to_owned()).collect();
    match names.len() {
        0 => None,
        1 if names[0] != "connections" => Some(format!("{} {one}", names[0])),
        _ => Some(format!("{} {many}", join_names(&names))),
    }
}

/// Lists the unknown resources with their reasons; resources with the same reason share an entry.
fn list_unknown(found: &GrowthFindings) -> Vec<String> {
    let mut reasons: Vec<(&UnknownGrowth, Vec<String>)> = Vec::new();
    for growth in &found.resources {
        let Some(reason) = &growth.why_unknown else {
            continue;
        };
        let name = resource_name(growth.resource).to_owned();
        match reasons.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    let entries = reasons.iter();
    entries.map(|(reason, names)| format!("{} ({})", join_names(names), why(reason))).collect()
}

/// Returns the name of a resource in a sentence.
fn resource_name(resource: Resource) -> &'static str {
    match resource {
        Resource::Cpu => "CPU time",
        Resource::Memory => "memory",
        Resource::Network => "network traffic",
        Resource::Connections => "connections",
    }
}

/// Returns the reason why the shape of a growth is unknown.
fn why(reason: &UnknownGrowth) -> String {
    match reason {
        UnknownGrowth::InTurns => {
            "rates take turns in the same processes, so no sample belongs to one rate".to_owned()
        }
        UnknownGrowth::Absent(absent) => why_absent(absent),
        UnknownGrowth::TooFewWindows(known) => format!(
            "{known} windows can be used, and {LEAST_POINTS} at {LEAST_LEVELS} different rates are needed"
        ),
        UnknownGrowth::Varies => "it varies more than it grows over these rates".to_owned(),
    }
}

/// Returns the reason why a quantity is unknown, with the names of its tables and columns.
fn why_absent(absent: &Absent) -> String {
    match absent {
        Absent::Missing { column, why } => format!("{column} cannot be read: {why}"),
        Absent::NotSampled(column) => format!("no sample has {column}"),
        Absent::SampledOnce(column) => format!("no sample has {column} twice"),
        Absent::WentBack(column) => format!("{column} went back within the window"),
        Absent::CameOrWent(table) => format!("rows of {table} came or went within the window"),
        Absent::Clock(table) => format!("the times of samples of {table} do not ascend"),
        Absent::NotGiven(input) => format!("weir does not see {}", describe_input(input)),
        Absent::OfNothing(divisor) => {
            let name = match divisor {
                Divisor::Requests => "the number of requests",
                Divisor::Quantity(name) | Divisor::Columns(name) => name,
            };
            format!("{name} is zero, so there is no share of it")
        }
    }
}
