//! Whether the result of one load test may be believed.

use weir_model::load::{Arrivals, Censored, ErrorCount, ErrorKind, Lifetime};
use weir_model::load_report::{
    Counts, FlowReport, LoadReport, LoadShape, Rates, StatusCount, TimeReport,
};
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

/// Of what a generator thread has shown to be able to send, more than this leaves no doubt only when
/// something else is known to be full.
const NEAR_CAPACITY: f64 = 0.8;

/// Share of the generator's CPU time that the hypervisor took.
const STEAL_SUSPECT: f64 = 0.01;
const STEAL_INVALID: f64 = 0.1;

/// Receives that had to wait for a buffer, per response.
const STARVED_SUSPECT: f64 = 0.1;

/// The kernel's words for a connection that no port was left for (EADDRNOTAVAIL).
const NO_PORT: &str = "os error 99";

/// What is judged of a flow, or of all flows together.
struct Figures<'a> {
    name: Option<&'a str>,
    load: &'a LoadShape,
    rates: &'a Rates,
    counts: &'a Counts,
    statuses: &'a [StatusCount],
    errors: &'a [ErrorCount],
    censored: Censored,
    response_time: &'a TimeReport,
    dispatch_lag: &'a TimeReport,
}

/// Reasons to doubt a result; none: VALID.
pub fn load_validity(report: &LoadReport) -> Vec<ValidityReason> {
    let of_all = [
        answered,
        generator_busy,
        near_capacity,
        steal,
        starved,
        listen_queue,
    ];
    let of_each = [
        offered,
        dropped,
        dispatch_lag,
        failures,
        ports,
        censored,
        connections,
        held,
    ];
    let mut reasons: Vec<_> = of_all.iter().filter_map(|rule| rule(report)).collect();
    for figures in figures(report) {
        for rule in of_each {
            let Some(mut found) = rule(&figures) else {
                continue;
            };
            if let Some(name) = figures.name {
                found.seen = format!("{name}: {}", found.seen);
            }
            reasons.push(found);
        }
    }
    reasons
}

fn figures(report: &LoadReport) -> Vec<Figures<'_>> {
    if report.flows.is_empty() {
        return vec![Figures {
            name: None,
            load: &report.load,
            rates: &report.rates,
            counts: &report.counts,
            statuses: &report.statuses,
            errors: &report.errors,
            censored: report.censored,
            response_time: &report.response_time,
            dispatch_lag: &report.dispatch_lag,
        }];
    }
    report.flows.iter().map(Figures::of_flow).collect()
}

impl<'a> Figures<'a> {
    fn of_flow(flow: &'a FlowReport) -> Figures<'a> {
        Figures {
            name: Some(&flow.name),
            load: &flow.load,
            rates: &flow.rates,
            counts: &flow.counts,
            statuses: &flow.statuses,
            errors: &flow.errors,
            censored: flow.censored,
            response_time: &flow.response_time,
            dispatch_lag: &flow.dispatch_lag,
        }
    }
}

fn is_held(load: &LoadShape) -> bool {
    load.arrivals == Arrivals::Held
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
    let senders = figures(report).iter().any(|flow| !is_held(flow.load));
    if report.counts.completed_whole > 0 || !senders {
        return None;
    }
    reason(
        Validity::Invalid,
        "nothing-answered",
        "not one response was complete".to_owned(),
    )
}

fn offered(flow: &Figures<'_>) -> Option<ValidityReason> {
    // With a limit on requests the schedule ends before the last second does.
    let no_limit = flow.load.requests.is_none();
    let intended = flow.rates.intended.filter(|_| no_limit)?;
    let due = flow.counts.due as f64;
    // A thread counts whole requests: one may fall to either side of each bound.
    let grain = 2.0 * flow.load.cpus.len() as f64 / due.max(1.0);
    let sent = flow.counts.offered + flow.counts.dropped;
    let missing = (sent as f64 / due.max(1.0) - 1.0).abs();
    let validity = graded(missing - grain, OFFERED_SUSPECT, OFFERED_INVALID)?;
    let seen = format!(
        "{:.1}/s offered of {intended:.1}/s intended",
        flow.rates.offered
    );
    reason(validity, "offered-rate", seen)
}

/// What was left out is known, and the load was still not the one asked for.
fn dropped(flow: &Figures<'_>) -> Option<ValidityReason> {
    let share = flow.counts.dropped as f64 / flow.counts.due.max(1) as f64;
    let validity = graded(share, OFFERED_SUSPECT, f64::INFINITY)?;
    let seen = format!(
        "{} of {} requests found no idle connection and were left out",
        flow.counts.dropped, flow.counts.due
    );
    reason(validity, "dropped", seen)
}

/// CPU time of the busiest thread, as a share of the time it had.
fn busiest(report: &LoadReport) -> f64 {
    let seconds = report.phases.sustain + report.phases.ramp_up;
    let busiest = report.generator_cpu_ns.iter().max().copied().unwrap_or(0) as f64 / 1e9;
    busiest / seconds
}

/// A thread without time to spare is not punctual in an open loop, and in a closed one it is as
/// likely the limit as the server.
fn generator_busy(report: &LoadReport) -> Option<ValidityReason> {
    let share = busiest(report);
    if share <= GENERATOR_BUSY || report.counts.completed_whole == 0 {
        return None;
    }
    let open = report.rates.intended.is_some();
    let seen = format!(
        "a thread of the generator used {:.0} % of its CPU{}",
        share * 100.0,
        if open {
            ""
        } else {
            ": the server may be able to carry more"
        }
    );
    reason(Validity::Suspect, "generator-busy", seen)
}

/// A rate close to what the generator can do at all says little about the server.
fn near_capacity(report: &LoadReport) -> Option<ValidityReason> {
    let capacity = report.generator.self_capacity?;
    let threads = report.generator_cpu_ns.len().max(1) as f64;
    let share = report.rates.offered / (capacity * threads);
    let validity = graded(share, NEAR_CAPACITY, f64::INFINITY)?;
    let seen = format!(
        "{:.0}/s is {:.0} % of the {:.0}/s that this generator can send (weir load --calibrate)",
        report.rates.offered,
        share * 100.0,
        capacity * threads
    );
    reason(validity, "near-self-capacity", seen)
}

fn steal(report: &LoadReport) -> Option<ValidityReason> {
    let share = report.generator.steal;
    let validity = graded(share, STEAL_SUSPECT, STEAL_INVALID)?;
    let seen = format!(
        "the hypervisor took {:.1} % of the generator's CPU time",
        share * 100.0
    );
    reason(validity, "steal", seen)
}

/// Once costs a turn of the loop; every tenth response would be another load.
fn starved(report: &LoadReport) -> Option<ValidityReason> {
    let times = report.generator.starved;
    let share = times as f64 / report.counts.completed_whole.max(1) as f64;
    let validity = graded(share, STARVED_SUSPECT, f64::INFINITY)?;
    let seen = format!("received bytes had to wait for a buffer of the generator {times} times");
    reason(validity, "buffers", seen)
}

fn listen_queue(report: &LoadReport) -> Option<ValidityReason> {
    let times = report.generator.listen_overflows;
    let validity = graded(times as f64, 0.0, f64::INFINITY)?;
    let seen = format!(
        "a full listen queue on this host turned {times} connections away: they wait 1 s for \
         the next try"
    );
    reason(validity, "listen-queue", seen)
}

fn dispatch_lag(flow: &Figures<'_>) -> Option<ValidityReason> {
    if flow.load.arrivals == Arrivals::Closed || flow.response_time.count == 0 {
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
        .map(|(name, q)| (name, at(flow.dispatch_lag, q), at(flow.response_time, q)))
        .into_iter()
        .max_by(|a, b| (a.1 * b.2.max(1)).cmp(&(b.1 * a.2.max(1))))?;
    let share = lag as f64 / response.max(1) as f64;
    let validity = graded(share, DISPATCH_LAG.suspect, DISPATCH_LAG.invalid)?;
    reason(validity, "dispatch-lag", lag_seen(quantile, lag, response))
}

fn failures(flow: &Figures<'_>) -> Option<ValidityReason> {
    let bad: u64 = flow
        .statuses
        .iter()
        .filter(|s| s.status >= 400)
        .map(|s| s.count)
        .sum();
    // Where somebody said which codes are right, what is wrong is among the errors.
    let bad = if flow.load.status_expected { 0 } else { bad };
    let count = |counted: &dyn Fn(&&ErrorCount) -> bool| -> u64 {
        let errors = flow.errors.iter().filter(counted);
        errors.map(|error| error.count).sum()
    };
    let errors = count(&|_| true);
    // A response that is not as expected is complete all the same.
    let unanswered = count(&|error| error.kind != ErrorKind::Unexpected);
    let all = flow.counts.completed_whole + unanswered;
    let validity = graded(
        (bad + errors).min(all) as f64 / all.max(1) as f64,
        FAILED_SUSPECT,
        FAILED_INVALID,
    )?;
    let seen =
        format!("{errors} errors and {bad} responses of status 400 and above in {all} requests");
    reason(validity, "failures", seen)
}

fn censored(flow: &Figures<'_>) -> Option<ValidityReason> {
    let censored = flow.censored.in_flight + flow.censored.queued;
    let all = flow.counts.completed_whole + censored;
    let share = censored as f64 / all.max(1) as f64;
    // A closed loop that is stopped has every connection in flight; its drain waits for them.
    graded(share, 0.0, 0.01)?;
    let seen = format!("{censored} of {all} requests never ended; the quantiles leave them out");
    reason(Validity::Suspect, "censored", seen)
}

/// A connection that no port was left for is the generator's failure, not the server's.
fn ports(flow: &Figures<'_>) -> Option<ValidityReason> {
    let lacking = flow.errors.iter().filter(|e| e.words.contains(NO_PORT));
    let times: u64 = lacking.map(|error| error.count).sum();
    if times == 0 {
        return None;
    }
    let seen = format!(
        "{times} connections found no port left on this side: more own addresses (--source) or a \
         wider net.ipv4.ip_local_port_range are needed"
    );
    reason(Validity::Invalid, "ports", seen)
}

fn connections(flow: &Figures<'_>) -> Option<ValidityReason> {
    let asked = u64::from(flow.load.connections);
    // Where each request opens one, none is open at the start.
    if flow.counts.connected >= asked || flow.load.lifetime == Lifetime::Request {
        return None;
    }
    let seen = format!(
        "{} of {asked} connections could be opened",
        flow.counts.connected
    );
    reason(Validity::Suspect, "connections", seen)
}

/// Held connections that were closed were not held.
fn held(flow: &Figures<'_>) -> Option<ValidityReason> {
    let lost = flow.counts.lost;
    if !is_held(flow.load) || lost == 0 {
        return None;
    }
    let seen = format!(
        "the server closed {lost} of the {} held connections; {} were open at the end",
        flow.load.connections, flow.counts.open_at_end
    );
    reason(Validity::Suspect, "held", seen)
}
