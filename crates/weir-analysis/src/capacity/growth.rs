//! Counts beside the response times that grew with the load.

use weir_model::record::{SliceRecord, SocketCounts, TrialRecord};

use super::curve::{AtRate, LOW, Trials, measured_s};
use super::{Capacity, Counted, Growth};
use crate::blocks::LoadData;
use crate::outcomes::{Answers, cpu_per_request, sum};

/// Margin around the interval of the capacity, as a share, that still belongs to the edge.
const AROUND: f64 = 0.01;
/// Share of its CPUs from which on a proxy counts as busy: the kernel needs the rest for interrupts.
const BUSY: f64 = 0.85;
/// Share of its CPUs below which a proxy has CPU time left.
const IDLE: f64 = 0.6;

/// Returns a row for each count that the trials have; nothing if the edge is not known.
pub(super) fn of(
    data: &LoadData<'_>,
    arm: usize,
    trials: &Trials<'_>,
    found: &Capacity,
) -> Vec<Growth> {
    let (low, high) = (found.low, found.high);
    let lowest = trials.steady().map(|at| at.rate).fold(f64::NAN, f64::min);
    if !(low > 0.0 && high >= low && lowest < low) {
        return Vec::new();
    }
    let up_to = (LOW * low).max(lowest * (1.0 + AROUND)).min(low);
    let (begin, end) = (low * (1.0 - AROUND), high * (1.0 + AROUND));
    let within = |is_there: &dyn Fn(f64) -> bool| -> Vec<AtRate<'_>> {
        trials.steady().filter(|at| is_there(at.rate)).copied().collect()
    };
    let loads = [
        within(&|rate| rate <= up_to),
        within(&|rate| (begin..=end).contains(&rate)),
        within(&|rate| rate > end),
    ];
    let rows = ROWS.iter().map(|what| {
        let [low, edge, above] = [0, 1, 2].map(|place| {
            if loads[place].is_empty() {
                None
            } else {
                value(*what, data, arm, &loads[place]).filter(|value| value.is_finite())
            }
        });
        Growth { what: *what, low, edge, above }
    });
    rows.filter(|row| [row.low, row.edge, row.above].iter().any(is_telling)).collect()
}

/// Returns true if a value is known and above 0. A count that is 0 everywhere was not kept or is of no interest.
fn is_telling(value: &Option<f64>) -> bool {
    value.is_some_and(|value| value > 0.0)
}

const ROWS: [Counted; 10] = [
    Counted::Rate,
    Counted::Completed,
    Counted::Unanswered,
    Counted::ProxyCpu,
    Counted::ProxyCpuShare,
    Counted::OriginCpu,
    Counted::OriginConnects,
    Counted::Reconnects,
    Counted::TimeWait,
    Counted::Sockets,
];

fn value(what: Counted, data: &LoadData<'_>, arm: usize, all: &[AtRate<'_>]) -> Option<f64> {
    let trials = || all.iter().map(|at| at.trial);
    let count = |field: fn(&SliceRecord) -> u64| sum(trials(), field);
    let per_request = |field| count(field) / count(|slice| slice.completed_whole);
    let completed = count(|slice| slice.completed) / measured_s(trials());
    let cpu_ns = || {
        let is_seen = data.sees_process(&data.study.arms[arm]);
        is_seen.then(|| cpu_per_request(trials(), data.study))
    };
    Some(match what {
        Counted::Rate => {
            all.iter().map(|at| at.rate * measured_s([at.trial].into_iter())).sum::<f64>()
                / measured_s(trials())
        }
        Counted::Completed => completed,
        Counted::Unanswered => Answers::of(trials(), data.study).bad_share(),
        Counted::ProxyCpu => cpu_ns()?,
        Counted::ProxyCpuShare => {
            cpu_ns()? * completed / 1e9 / data.header.cpus.proxy.cpus().len() as f64
        }
        Counted::OriginCpu => per_request(|slice| slice.origin_cpu_ns),
        Counted::OriginConnects => {
            count(|slice| slice.origin_connects) / count(|slice| slice.origin_requests)
        }
        Counted::Reconnects => per_request(|slice| slice.reconnects),
        Counted::TimeWait => most(trials(), |sockets| sockets.time_wait)?,
        Counted::Sockets => most(trials(), |sockets| sockets.in_use)?,
    })
}

fn most<'a>(
    trials: impl Iterator<Item = &'a TrialRecord>,
    of: fn(&SocketCounts) -> u64,
) -> Option<f64> {
    trials
        .flat_map(|trial| &trial.slices)
        .filter_map(|slice| slice.sockets_after.as_ref())
        .map(of)
        .max()
        .map(|most| most as f64)
}

/// Returns a sentence about the resource that ran out first, as far as these counts show it.
pub(super) fn ran_out(found: &Capacity) -> String {
    let at_edge = |what: Counted| {
        let row = found.grows.iter().find(|row| row.what == what)?;
        row.edge.or(row.above)
    };
    // Where the generator or the origin has had enough, or nothing is known, this says nothing.
    if !found.claimed || found.ceiling.is_some() {
        return String::new();
    }
    let percent = |share: f64| format!("{:.0} %", (share * 100.0).min(100.0));
    match at_edge(Counted::ProxyCpuShare) {
        Some(share) if share >= BUSY => format!(
            "At the edge the proxy uses {} of its CPUs: CPU time runs out first.",
            percent(share)
        ),
        Some(share) if share < IDLE => format!(
            "At the edge the proxy uses {} of its CPUs: something other than its CPU time runs out first.",
            percent(share)
        ),
        _ => String::new(),
    }
}
