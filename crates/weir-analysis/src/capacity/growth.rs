//! Counts beside the response times that grew with the load.

use weir_model::record::{SliceRecord, SocketCounts, TrialRecord};

use super::curve::{AtRate, LOW, Trials, measured_s};
use super::{Capacity, Counted, Growth, RanOut};
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
    let (low, high) = (found.answer.low, found.answer.high);
    let lowest = trials.steady().map(|at| at.rate).fold(f64::NAN, f64::min);
    if !(low > 0.0 && high >= low && lowest < low) {
        return Vec::new();
    }
    let up_to = (LOW * low).max(lowest * (1.0 + AROUND)).min(low);
    let (begin, end) = (low * (1.0 - AROUND), high * (1.0 + AROUND));
    let loads = [
        select_rates(trials, |rate| rate <= up_to),
        select_rates(trials, |rate| (begin..=end).contains(&rate)),
        select_rates(trials, |rate| rate > end),
    ];
    let rows = ROWS.iter().map(|what| {
        let [low, edge, above] = [0, 1, 2].map(|index| {
            if loads[index].is_empty() {
                None
            } else {
                value(*what, data, arm, &loads[index]).filter(|value| value.is_finite())
            }
        });
        Growth { what: *what, low, edge, above }
    });
    rows.filter(|row| [row.low, row.edge, row.above].iter().any(is_telling)).collect()
}

fn select_rates<'a>(trials: &Trials<'a>, is_there: impl Fn(f64) -> bool) -> Vec<AtRate<'a>> {
    trials.steady().filter(|at| is_there(at.rate)).copied().collect()
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
    let seconds = measured_s(trials_of(all));
    let completed = count(all, |slice| slice.completed) / seconds;
    Some(match what {
        Counted::Rate => {
            all.iter().map(|at| at.rate * measured_s([at.trial].into_iter())).sum::<f64>() / seconds
        }
        Counted::Completed => completed,
        Counted::Unanswered => Answers::of(trials_of(all), data.study).bad_share(),
        Counted::ProxyCpu => cpu_ns(data, arm, all)?,
        Counted::ProxyCpuShare => {
            let cpus = data.study.arms[arm].cpus(&data.header.cpus).cpus().len();
            cpu_ns(data, arm, all)? * completed / 1e9 / cpus as f64
        }
        Counted::OriginCpu => per_request(all, |slice| slice.origin_cpu_ns),
        Counted::OriginConnects => {
            count(all, |slice| slice.origin_connects) / count(all, |slice| slice.origin_requests)
        }
        Counted::Reconnects => per_request(all, |slice| slice.reconnects),
        Counted::TimeWait => most(trials_of(all), |sockets| sockets.time_wait)?,
        Counted::Sockets => most(trials_of(all), |sockets| sockets.in_use)?,
    })
}

fn trials_of<'a>(all: &[AtRate<'a>]) -> impl Iterator<Item = &'a TrialRecord> + Clone {
    all.iter().map(|at| at.trial)
}

fn count(all: &[AtRate<'_>], field: fn(&SliceRecord) -> u64) -> f64 {
    sum(trials_of(all), field)
}

fn per_request(all: &[AtRate<'_>], field: fn(&SliceRecord) -> u64) -> f64 {
    count(all, field) / count(all, |slice| slice.completed_whole)
}

/// Returns the proxy's CPU time per request; `None` if weir does not see its process.
fn cpu_ns(data: &LoadData<'_>, arm: usize, all: &[AtRate<'_>]) -> Option<f64> {
    let is_seen = data.sees_process(&data.study.arms[arm]);
    is_seen.then(|| cpu_per_request(trials_of(all), data.study))
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

/// Finds the resource that ran out first, as far as these counts show it.
pub(super) fn ran_out(found: &Capacity) -> Option<RanOut> {
    // Where the generator or the origin has had enough, or nothing is known, this says nothing.
    if !found.claimed || found.answer.ceiling.is_some() {
        return None;
    }
    let row = found.grows.iter().find(|row| row.what == Counted::ProxyCpuShare)?;
    let used = row.edge.or(row.above)?;
    if used >= BUSY {
        Some(RanOut::CpuTime { used })
    } else if used < IDLE {
        Some(RanOut::NotCpuTime { used })
    } else {
        None
    }
}
