//! Validity of the result of one load test: its report becomes evidence for the rules of `validity`.

use std::collections::BTreeSet;

use weir_model::load::{Arrivals, Lifetime};
use weir_model::load_report::{
    FlowResults, GeneratorReport, LoadGenerator, LoadReport, TimeReport,
};
use weir_model::record::{ConnectionCounts, GeneratorStart, ValidityReason};

use crate::blocks::{Lag, RECEIVE};
use crate::evidence::{Due, Evidence, Overflows};
use crate::validity::{Use, judge};

/// Claimed resolution of response times up to some hundred microseconds, nanoseconds.
const RESOLUTION_NS: u64 = 100_000;

/// Returns the reasons to doubt a result; empty if it is VALID.
pub fn load_validity(report: &LoadReport) -> Vec<ValidityReason> {
    evidence(report)
        .into_iter()
        .flat_map(|evidence| judge(Use::Load, &evidence))
        .map(|found| found.reason)
        .collect()
}

/// Collects the evidence about all flows together and about each by itself; if there is only one flow, as one entry.
fn evidence(report: &LoadReport) -> Vec<Evidence<'_>> {
    let flows = figures(report);
    let overall = of_all(report, flows.iter().any(|flow| !flow.is_held()));
    let generators = report.generators.iter().map(|one| of_generator(report, one));
    let mut all = of_flows(overall, &flows);
    all.extend(generators);
    all
}

fn of_flows<'a>(of_all: Evidence<'a>, flows: &[Figures<'a>]) -> Vec<Evidence<'a>> {
    match flows {
        [alone] => vec![alone.evidence(of_all)],
        several => {
            let of_each_flow = several
                .iter()
                .map(|flow| flow.evidence(Evidence { name: flow.name, ..Evidence::default() }));
            std::iter::once(of_all).chain(of_each_flow).collect()
        }
    }
}

/// Returns the largest share of the measured time for which a thread was busy; `None` if nothing was measured. Time
/// spent spinning does not count.
fn busiest(cpu_ns: &[u64], spun_ns: &[u64], report: &LoadReport) -> Option<f64> {
    let seconds = report.phases.sustain + report.phases.ramp_up;
    let spun = spun_ns.iter().chain(std::iter::repeat(&0));
    let busiest = cpu_ns.iter().zip(spun).map(|(cpu, spun)| cpu.saturating_sub(*spun)).max();
    (seconds > 0.0).then(|| busiest.unwrap_or(0) as f64 / 1e9 / seconds)
}

/// Returns the longest time for which a thread of a generator did not return to its loop, and the measured time,
/// nanoseconds. `None` in results from before it was recorded.
fn gap(generator: &GeneratorReport, report: &LoadReport) -> Option<(u64, f64)> {
    let longest = generator.longest_gap_ns.iter().copied().max()?;
    Some((longest, report.phases.sustain * 1e9))
}

/// Collects the evidence about one of several generators and its host.
fn of_generator<'a>(report: &'a LoadReport, one: &'a LoadGenerator) -> Evidence<'a> {
    let cpus: Option<BTreeSet<u32>> = one.cpus.iter().copied().collect();
    let is_open = report.results.rates.intended.is_some();
    // With a limit on requests the schedule ends before the last second does.
    let is_scheduled = is_open && report.results.load.requests.is_none();
    Evidence {
        name: Some(&one.start.host),
        is_open,
        threads: cpus.map(|cpus| (one.cpus.len() as u64, cpus.len() as u64)),
        generator_busy: busiest(&one.cpu_ns, &one.generator.spun_ns, report)
            .filter(|_| one.completed > 0),
        steal: Some(one.generator.steal),
        gap: gap(&one.generator, report),
        schedule: is_scheduled.then_some(Due {
            due: one.due,
            sent: one.dispatch_lag.count,
            queued: one.queued,
            dropped: one.dropped,
        }),
        lag: lag(&one.dispatch_lag, &one.response_time, is_open),
        resolution_ns: RESOLUTION_NS,
        ..Evidence::default()
    }
}

/// Collects the evidence about the generator and its host, independent of flows. If there are several generators, their
/// own evidence stands with each of them.
fn of_all(report: &LoadReport, is_asking: bool) -> Evidence<'_> {
    let (counts, generator) = (&report.results.counts, &report.generator);
    let is_alone = report.generators.is_empty();
    let starts = report.generators.iter().map(|one| one.start.clone());
    let cpus: Option<BTreeSet<u32>> = report.results.load.cpus.iter().copied().collect();
    let threads = report.generator_cpu_ns.len().max(1);
    let at_once = cpus.as_ref().map_or(threads, |cpus| cpus.len().min(threads));
    let capacity = generator.self_capacity.map(|each| each * at_once as f64);
    let receives = counts.completed_whole.max(counts.received_bytes / RECEIVE);
    Evidence {
        is_open: report.results.rates.intended.is_some(),
        answered: is_asking.then_some(counts.completed_whole),
        errors: &report.results.errors,
        threads: cpus.filter(|_| is_alone).map(|cpus| (threads as u64, cpus.len() as u64)),
        generator_busy: busiest(&report.generator_cpu_ns, &generator.spun_ns, report)
            .filter(|_| counts.completed_whole > 0 && is_alone),
        capacity: capacity.map(|most| (report.results.rates.offered, most)),
        steal: is_alone.then_some(generator.steal),
        gap: gap(generator, report).filter(|_| is_alone),
        start_spread: GeneratorStart::spread_ns(&starts.collect::<Vec<_>>()),
        starved: Some((generator.starved, receives)),
        overflows: Some(Overflows {
            seen: generator.listen_overflows,
            opened: counts.connects,
            responses: counts.completed_whole,
        }),
        ..Evidence::default()
    }
}

/// Results of a flow, or of the whole report if it has only one.
struct Figures<'a> {
    name: Option<&'a str>,
    results: &'a FlowResults,
}

fn figures(report: &LoadReport) -> Vec<Figures<'_>> {
    if report.flows.is_empty() {
        vec![Figures { name: None, results: &report.results }]
    } else {
        let flows = report.flows.iter();
        flows.map(|flow| Figures { name: Some(&flow.name), results: &flow.results }).collect()
    }
}

impl<'a> Figures<'a> {
    fn is_held(&self) -> bool {
        self.results.load.arrivals == Arrivals::Held
    }

    /// Adds the evidence about the flow.
    fn evidence(&self, known: Evidence<'a>) -> Evidence<'a> {
        let results = self.results;
        let (load, counts) = (&results.load, &results.counts);
        let is_open = load.arrivals != Arrivals::Closed;
        // Where somebody said which codes are right, what is wrong is among the errors.
        let bad = results.statuses.iter().filter(|s| s.status >= 400 && !load.status_expected);
        let connections = ConnectionCounts {
            wanted: u64::from(load.connections),
            open_at_start: counts.connected,
            open_at_end: counts.open_at_end,
            opened: counts.connected + counts.lost,
            ..ConnectionCounts::default()
        };
        // Where each request opens one, none is open at the start.
        let is_kept = load.lifetime != Lifetime::Request;
        // With a limit on requests the schedule ends before the last second does.
        let is_scheduled = results.rates.intended.is_some() && load.requests.is_none();
        Evidence {
            timed: Some(results.response_time.count).filter(|_| counts.completed_whole > 0),
            completed: Some(counts.completed_whole),
            unexpected: bad.map(|status| status.count).sum(),
            errors: &results.errors,
            censored: Some(results.censored),
            schedule: is_scheduled.then_some(Due {
                due: counts.due,
                sent: results.dispatch_lag.count,
                queued: counts.queued,
                dropped: counts.dropped,
            }),
            recorded: match &load.arrivals {
                Arrivals::Trace { arrivals, left_out, .. } => Some((*arrivals, left_out)),
                _ => None,
            },
            lag: lag(&results.dispatch_lag, &results.response_time, is_open),
            resolution_ns: RESOLUTION_NS,
            asking: (is_kept && !self.is_held()).then_some(connections),
            held: self.is_held().then_some(connections),
            ..known
        }
    }
}

/// Returns dispatch lag and response times at two quantiles; nothing in a closed loop.
fn lag(lag: &TimeReport, response: &TimeReport, is_open: bool) -> Lag {
    if is_open && response.count > 0 {
        [0.5, 0.99].map(|quantile| (quantile, at(lag, quantile), at(response, quantile))).to_vec()
    } else {
        Vec::new()
    }
}

/// Returns a quantile in nanoseconds; 0 if there is none.
fn at(times: &TimeReport, wanted: f64) -> u64 {
    times.quantiles.iter().find(|(quantile, _)| *quantile >= wanted).map_or(0, |&(_, ns)| ns)
}
