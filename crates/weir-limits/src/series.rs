//! Splits a window into pieces, from sample to sample, for display next to a judgement.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weir_model::sample::Counters;

use crate::derive::{QuantityValues, build_rate, each_key, value};
use crate::quantities::Quantities;
use crate::window::{Role, Window};

/// Maximum time between rows of the same sample: tables are read one after the other.
const SAME_NS: u64 = 50_000_000;
/// Share of a CPU above which a worker is shown; workers that never exceed it are left out.
const IDLE: f64 = 0.01;

/// A quantity over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Name of the quantity.
    pub quantity: String,
    /// Unit of the values, see [`crate::Quantity::unit`].
    pub unit: String,
    /// End of each piece, in seconds since the window began, and the value in the piece.
    pub points: Vec<(f64, f64)>,
}

/// A process of the proxy, or a thread of one that has several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worker {
    /// Name and id from the kernel: `nginx 4711`.
    pub name: String,
    /// End of each piece, in seconds since the window began, and the CPU time used per second in the piece.
    pub points: Vec<(f64, f64)>,
}

/// Returns the quantities to show over time, in the order of their file; those unknown in every piece are left out.
pub fn over_time(quantities: &Quantities, counters: &Counters, window: &Window<'_>) -> Vec<Series> {
    let pieces = split_at_samples(window);
    let series = quantities.all().iter().filter(|one| one.series).map(|one| Series {
        quantity: one.name.value.clone(),
        unit: one.unit.clone(),
        points: pieces
            .iter()
            .filter_map(|piece| {
                let level = value(&one.from, piece, counters, &QuantityValues::new()).ok()?;
                Some((seconds(window, piece), level))
            })
            .collect(),
    });
    series.filter(|one| !one.points.is_empty()).collect()
}

/// Returns the proxy's processes, or the threads of those that have several, the busiest first; idle ones are left out.
pub fn workers(counters: &Counters, window: &Window<'_>) -> Vec<Worker> {
    let [processes, threads] = ["processes", "threads"]
        .map(|table| build_rate(table, &["user_ns", "system_ns"], Role::Proxy, 1e-9));
    let mut by_task: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for piece in split_at_samples(window) {
        // Keys are role, number of the process, (that of the thread,) name.
        let threads = each_key(&threads, &piece, counters);
        let several: BTreeSet<&String> =
            threads.iter().filter_map(|(keys, _)| keys.get(1)).collect();
        let single = each_key(&processes, &piece, counters)
            .into_iter()
            .filter(|(keys, _)| keys.get(1).is_none_or(|pid| !several.contains(pid)));
        for (keys, cpus) in single.collect::<Vec<_>>().iter().chain(&threads) {
            if let [.., number, name] = &keys[..] {
                let points = by_task.entry(format!("{name} {number}")).or_default();
                points.push((seconds(window, &piece), *cpus));
            }
        }
    }
    let workers = by_task.into_iter().map(|(name, points)| Worker { name, points });
    let mut workers: Vec<Worker> =
        workers.filter(|one| one.points.iter().any(|(_, cpus)| *cpus > IDLE)).collect();
    workers.sort_by(|a, b| sum_cpus(b).total_cmp(&sum_cpus(a)));
    workers
}

fn sum_cpus(worker: &Worker) -> f64 {
    worker.points.iter().map(|(_, cpus)| cpus).sum()
}

/// Splits the window into pieces, each from one sample to the next.
fn split_at_samples<'a>(window: &Window<'a>) -> Vec<Window<'a>> {
    let rows = window.hosts.iter().flat_map(|host| &host.rows);
    let within = window.from_ns..=window.until_ns;
    let times: BTreeSet<u64> = rows.map(|row| row.at_ns).filter(|at| within.contains(at)).collect();
    let times: Vec<u64> = times.into_iter().collect();
    let samples: Vec<&[u64]> = times.chunk_by(|a, b| b - a <= SAME_NS).collect();
    let pieces = samples.windows(2).filter_map(|pair| {
        let [before, after] = pair else { return None };
        Some(Window { from_ns: *before.first()?, until_ns: *after.last()?, ..*window })
    });
    pieces.collect()
}

fn seconds(window: &Window<'_>, piece: &Window<'_>) -> f64 {
    piece.until_ns.saturating_sub(window.from_ns) as f64 / 1e9
}
