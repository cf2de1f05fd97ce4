//! What is said of a run's phases.

use std::time::Duration;

use weir_model::record::{LookRecord, PilotRecord};
use weir_model::study::Until;
use weir_report::number;

/// How a promise of time begins.
pub(crate) fn about(until: Until) -> &'static str {
    match until {
        Until::Planned => "about",
        Until::Decided => "at most about",
    }
}

/// Nobody's promise is finer than that.
pub(crate) fn whole_seconds(length: Duration) -> Duration {
    Duration::from_secs(length.as_secs_f64().round().max(1.0) as u64)
}

/// Loads that share a trial, in short.
pub(super) fn together(loads: &[String]) -> String {
    match loads {
        [first, .., last] => format!("{first} to {last}, in turns"),
        _ => loads.concat(),
    }
}

/// What a pilot has chosen.
pub(super) fn chosen(pilot: &PilotRecord) -> String {
    let time = |ns| number::length(Duration::from_nanos(ns));
    let chosen = format!("{}: slices of {}", pilot.load, time(pilot.slice_ns));
    match pilot.wanted_ns {
        None => chosen,
        Some(wanted) => format!(
            "{chosen}; its slowest arm needs {}, for which the load is too short",
            time(wanted)
        ),
    }
}

/// How long a search takes at most.
pub(crate) fn at_most(takes: Duration) -> String {
    let takes = number::length(whole_seconds(takes));
    format!("It takes {takes} at most, if a rate that holds for seconds does not last")
}

/// What a look has decided, and how long what is open takes.
pub(super) fn looked(look: &LookRecord, left: Duration, at_most: Duration) -> String {
    let decided = look.decided.iter().map(|one| match one.is_given_up {
        true => format!("{} cannot be told from {} any more", one.arm, one.against),
        false => format!("{} is {}", one.arm, one.verdict),
    });
    let decided: Vec<String> = decided.collect();
    let decided = match decided.is_empty() {
        true => "nothing is decided".to_owned(),
        false => decided.join(", "),
    };
    let rest = match look.is_done() {
        true => String::new(),
        false => format!(
            "; {} go on for about {}, {} at most",
            look.open.join(", "),
            number::length(whole_seconds(left)),
            number::length(whole_seconds(at_most))
        ),
    };
    format!(
        "{}: look {} after {} blocks: {decided}{rest}",
        look.load, look.look, look.blocks
    )
}

/// `12, 18 and 27`.
pub(crate) fn listed(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    weir_analysis::listed(&numbers)
}
