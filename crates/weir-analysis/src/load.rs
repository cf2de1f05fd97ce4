//! Whether the result of one load test may be believed.

use weir_model::load::Arrivals;
use weir_model::load_report::{LoadReport, TimeReport};
use weir_model::record::{Validity, ValidityReason};

use crate::validity::{DISPATCH_LAG, lag_seen};

/// The schedule must be met this closely; beyond, the load was not the one asked for.
const OFFERED_SUSPECT: f64 = 0.001;
const OFFERED_INVALID: f64 = 0.01;

/// In an open loop a thread that is this busy has no time left to be punctual.
const GENERATOR_BUSY: f64 = 0.95;

/// Share of failed requests beyond which the figures describe failures.
const FAILED_SUSPECT: f64 = 0.001;
const FAILED_INVALID: f64 = 0.05;

/// Reasons to doubt a result; none: VALID.
pub fn load_validity(report: &LoadReport) -> Vec<ValidityReason> {
    let rules = [
        answered,
        offered,
        generator_busy,
        dispatch_lag,
        failures,
        censored,
        connections,
    ];
    rules.iter().filter_map(|rule| rule(report)).collect()
}

fn reason(validity: Validity, rule: &str, seen: String) -> Option<ValidityReason> {
    Some(ValidityReason {
        validity,
        rule: rule.to_owned(),
        seen,
    })
}

fn graded(value: f64, suspect: f64, invalid: f64) -> Option<Validity> {
    match value {
        v if v > invalid => Some(Validity::Invalid),
        v if v > suspect => Some(Validity::Suspect),
        _ => None,
    }
}

fn answered(report: &LoadReport) -> Option<ValidityReason> {
    if report.counts.completed_whole > 0 {
        return None;
    }
    reason(
        Validity::Invalid,
        "nothing-answered",
        "not one response was complete".to_owned(),
    )
}

fn offered(report: &LoadReport) -> Option<ValidityReason> {
    // With a limit on requests the schedule ends before the last second does.
    let intended = report
        .rates
        .intended
        .filter(|_| report.load.requests.is_none())?;
    let due = report.counts.due as f64;
    // A thread counts whole requests: one may fall to either side of each bound.
    let grain = 2.0 * report.load.cpus.len() as f64 / due.max(1.0);
    let missing = (report.counts.offered as f64 / due.max(1.0) - 1.0).abs();
    let validity = graded(missing - grain, OFFERED_SUSPECT, OFFERED_INVALID)?;
    let seen = format!(
        "{:.1}/s offered of {intended:.1}/s intended",
        report.rates.offered
    );
    reason(validity, "offered-rate", seen)
}

fn generator_busy(report: &LoadReport) -> Option<ValidityReason> {
    report.rates.intended?;
    let seconds = report.phases.sustain + report.phases.ramp_up;
    let busiest = report.generator_cpu_ns.iter().max().copied().unwrap_or(0) as f64 / 1e9;
    let share = busiest / seconds;
    if share <= GENERATOR_BUSY {
        return None;
    }
    let seen = format!(
        "a thread of the generator used {:.0} % of its CPU",
        share * 100.0
    );
    reason(Validity::Suspect, "generator-busy", seen)
}

fn dispatch_lag(report: &LoadReport) -> Option<ValidityReason> {
    if report.load.arrivals == Arrivals::Closed || report.response_time.count == 0 {
        return None;
    }
    let at = |times: &TimeReport, wanted: f64| {
        let found = times
            .quantiles
            .iter()
            .find(|(quantile, _)| *quantile >= wanted);
        found.map_or(0, |&(_, ns)| ns)
    };
    let (quantile, lag, response) = [("p50", 0.5), ("p99", 0.99)]
        .map(|(name, q)| {
            (
                name,
                at(&report.dispatch_lag, q),
                at(&report.response_time, q),
            )
        })
        .into_iter()
        .max_by(|a, b| (a.1 * b.2.max(1)).cmp(&(b.1 * a.2.max(1))))?;
    let share = lag as f64 / response.max(1) as f64;
    let validity = graded(share, DISPATCH_LAG.suspect, DISPATCH_LAG.invalid)?;
    reason(validity, "dispatch-lag", lag_seen(quantile, lag, response))
}

fn failures(report: &LoadReport) -> Option<ValidityReason> {
    let bad: u64 = report
        .statuses
        .iter()
        .filter(|s| s.status >= 400)
        .map(|s| s.count)
        .sum();
    let errors: u64 = report.errors.iter().map(|error| error.count).sum();
    let all = report.counts.completed_whole + errors;
    let validity = graded(
        (bad + errors) as f64 / all.max(1) as f64,
        FAILED_SUSPECT,
        FAILED_INVALID,
    )?;
    let seen =
        format!("{errors} errors and {bad} responses of status 400 and above in {all} requests");
    reason(validity, "failures", seen)
}

fn censored(report: &LoadReport) -> Option<ValidityReason> {
    let censored = report.censored.in_flight + report.censored.queued;
    let all = report.counts.completed_whole + censored;
    let share = censored as f64 / all.max(1) as f64;
    // A closed loop that is stopped has every connection in flight; its drain waits for them.
    graded(share, 0.0, 0.01)?;
    let seen = format!("{censored} of {all} requests never ended; the quantiles leave them out");
    reason(Validity::Suspect, "censored", seen)
}

fn connections(report: &LoadReport) -> Option<ValidityReason> {
    let asked = u64::from(report.load.connections);
    if report.counts.connected >= asked {
        return None;
    }
    let seen = format!(
        "{} of {asked} connections could be opened",
        report.counts.connected
    );
    reason(Validity::Suspect, "connections", seen)
}
