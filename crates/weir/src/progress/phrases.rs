//! Phrases about the phases of a run.

use std::time::Duration;

use weir_model::progress::{LoadInterval, LoadPhase, LoadState};
use weir_model::record::{LookRecord, PilotRecord};
use weir_model::study::Until;
use weir_report::{number, words};

/// Returns the words before an expected time.
pub(crate) fn about(until: Until) -> &'static str {
    match until {
        Until::Planned => "about",
        Until::Decided => "at most about",
    }
}

/// Rounds a length to whole seconds, at least one: no expected time is finer than that.
pub(crate) fn whole_seconds(length: Duration) -> Duration {
    Duration::from_secs(length.as_secs_f64().round().max(1.0) as u64)
}

/// Names loads that share a trial.
pub(super) fn together(loads: &[String]) -> String {
    match loads {
        [first, .., last] => format!("{first} to {last}, in turns"),
        _ => loads.concat(),
    }
}

/// Describes the pilot of a load.
pub(super) fn describe_pilot(load: &str, several: bool) -> String {
    if several { format!("{load}: a pilot of all arms") } else { format!("{load}: a pilot") }
}

/// Describes the choice of a pilot.
pub(super) fn describe_choice(pilot: &PilotRecord) -> String {
    let slice = number::length(Duration::from_nanos(pilot.slice_ns));
    let at = match (pilot.rate, &*pilot.late_rates) {
        (Some(rate), [highest, ..]) => format!(
            " at {}/s, as the generator itself is late at {}/s",
            number::rate(rate),
            number::rate(*highest)
        ),
        _ => String::new(),
    };
    let chosen = format!("{}: slices of {slice}{at}", pilot.load);
    match pilot.wanted_ns {
        None => chosen,
        Some(wanted) => format!(
            "{chosen}; its slowest arm needs {}, for which the load is too short",
            number::length(Duration::from_nanos(wanted))
        ),
    }
}

/// Describes the longest time of a search.
pub(crate) fn at_most(takes: Duration) -> String {
    let takes = number::length(whole_seconds(takes));
    format!("It takes {takes} at most")
}

/// Describes the decisions of an interim look, and the time needed for open comparisons.
pub(super) fn describe_look(look: &LookRecord, left: Duration, at_most: Duration) -> String {
    let decided = look.decided.iter().map(|decision| {
        if decision.is_given_up {
            format!("{} cannot be told from {} any more", decision.arm, decision.against)
        } else {
            format!("{} is {}", decision.arm, decision.verdict)
        }
    });
    let decided: Vec<String> = decided.collect();
    let decided =
        if decided.is_empty() { "nothing is decided".to_owned() } else { decided.join(", ") };
    let outlook = if look.is_done() {
        String::new()
    } else {
        format!(
            "; {} go on for about {}, {} at most",
            look.open.join(", "),
            number::length(whole_seconds(left)),
            number::length(whole_seconds(at_most))
        )
    };
    format!("{}: look {} after {} blocks: {decided}{outlook}", look.load, look.look, look.blocks)
}

/// Lists numbers: `12, 18 and 27`.
pub(crate) fn listed(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    weir_sentences::join_names(&numbers)
}

/// Describes the state of a load: `12 of 30 s · 2,000 of 2,000 responses/s · p99 202 µs · 3 in flight · 0 errors · 18 s
/// left`.
pub(super) fn load_line(
    state: &LoadState,
    (rate, p99): (Option<f64>, Option<u64>),
    before: u64,
    passed: Duration,
) -> String {
    let remaining = number::length(whole_seconds(Duration::from_secs_f64(state.left.max(0.0))));
    let [elapsed, length] =
        [state.elapsed, state.length].map(|seconds| number::count(seconds.max(0.0).round() as u64));
    let time = match (state.phase, state.requests) {
        (LoadPhase::Connecting, _) => {
            let open = number::plural(state.open, "connection");
            return format!("{open} open · about {remaining} left");
        }
        (LoadPhase::Draining, _) => {
            let in_flight = number::plural(state.in_flight, "request");
            return format!("{in_flight} still in flight · at most {remaining} left");
        }
        (_, Some(requests)) => {
            let completed = number::count(state.completed);
            format!("{completed} of {} requests", number::count(requests))
        }
        (LoadPhase::RampUp, None) => format!("ramp-up, {elapsed} of {length} s"),
        (LoadPhase::Measuring, None) => format!("{elapsed} of {length} s"),
    };
    let demand = rate.map_or(String::new(), |rate| format!(" of {}", number::asked(rate)));
    let tail = p99.map_or(String::new(), |ns| format!(" · p99 {}", number::time(ns as f64)));
    let rate = (state.completed - before) as f64 / passed.as_secs_f64().max(1e-9);
    format!(
        "{time} · {}{demand} responses/s{tail} · {} in flight · {} · {remaining} left",
        number::count(rate.round() as u64),
        number::count(state.in_flight),
        number::plural(state.errors, "error"),
    )
}

/// Describes an interval of a load: `10 to 20 s: 2,000/s · p50 0.1 ms · p99 0.2 ms · max 1 ms · 0 errors · VALID so
/// far`.
pub(super) fn interval_line(interval: &LoadInterval) -> String {
    let figures = &interval.interval;
    let times = &figures.response_time;
    let [p50, p99, p99_9, max] =
        [times.p50, times.p99, times.p99_9, times.max].map(|ns| number::time(ns as f64));
    let mut line = format!(
        "{:.0} to {:.0} s: {}/s · p50 {p50} · p99 {p99} · p99.9 {p99_9} · max {max} · {}",
        interval.at,
        interval.at + figures.seconds,
        number::rate(figures.rate),
        number::plural(figures.errors_total(), "error"),
    );
    line += &format!(" · {} so far", words::validity(interval.validity));
    for reason in &interval.reasons {
        line += &format!("; {}", reason.rule());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_of_a_load_are_grouped() {
        let state = |phase, requests| LoadState {
            phase,
            elapsed: 1800.2,
            left: 3.0,
            length: 3600.0,
            requests,
            completed: 1_500_000,
            errors: 1234,
            in_flight: 2000,
            open: 10_000,
        };
        use LoadPhase::{Connecting, Draining, Measuring};
        let tail = "12,000 of 12,500 responses/s · 2,000 in flight · 1,234 errors · 3 s left";
        #[rustfmt::skip]
        let cases = [
            (Connecting, None, "10,000 connections open · about 3 s left".to_owned()),
            (Measuring, None, format!("1,800 of 3,600 s · {tail}")),
            (Measuring, Some(2_000_000), format!("1,500,000 of 2,000,000 requests · {tail}")),
            (Draining, None, "2,000 requests still in flight · at most 3 s left".to_owned()),
        ];
        for (phase, requests, said) in cases {
            let passed = Duration::from_millis(500);
            let figures = (Some(12_500.0), None);
            let line = load_line(&state(phase, requests), figures, 1_494_000, passed);
            assert_eq!(line, said);
        }
    }
}
