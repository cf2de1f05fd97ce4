//! Closed loops in which nobody was busy. The connections are then the limit, and the rate shows how long a response
//! takes, not how much a proxy carries.

use weir_model::record::TrialRecord;
use weir_model::study::{LoadSpec, Metric};
use weir_parameters::Catalog;

use crate::blocks::LoadData;
use crate::evidence::evidence;
use crate::findings::{Basis, Caveat, Comparison, IdleLoad, Verdict};
use crate::outcomes::sum;
use crate::validity::BUSY;

/// Share of the proxy's CPUs used by others from which on responses may well have waited for them: a fifth, as for
/// steal.
const CROWDED: f64 = 0.2;

/// Idle arms of a closed load.
pub(crate) struct Idle {
    /// Flags by arm of the study: true if neither its proxy nor generator nor origin was busy.
    arms: Vec<bool>,
    /// Figures of the idle arms.
    load: IdleLoad,
}

impl Idle {
    /// Finds the idle arms under a load; `None` in an open loop, or if somebody was busy under every arm.
    pub(crate) fn of(data: &LoadData<'_>, load: &LoadSpec) -> Option<Idle> {
        if load.is_open() {
            return None;
        }
        let shares_by_arm: Vec<Option<[f64; 2]>> =
            (0..data.study.arms.len()).map(|arm| everybody_idle(data, arm)).collect();
        let [busiest, others] = shares_by_arm
            .iter()
            .flatten()
            .copied()
            .reduce(|one, other| [0, 1].map(|i| one[i].max(other[i])))?;
        // Of each arm: what is so of one is not of another that answers faster.
        let means: Vec<f64> = (0..shares_by_arm.len())
            .filter(|arm| shares_by_arm[*arm].is_some())
            .map(|arm| mean_s(data, arm))
            .collect();
        let shortest = means.iter().copied().fold(f64::INFINITY, f64::min);
        let longest = means.iter().copied().fold(0.0, f64::max);
        Some(Idle {
            arms: shares_by_arm.iter().map(Option::is_some).collect(),
            load: IdleLoad {
                connections: load.asking(),
                response_s: (shortest, longest),
                busiest,
                others: (others >= CROWDED).then_some(others),
            },
        })
    }

    /// Returns true if every arm was idle.
    fn is_of_all(&self) -> bool {
        self.arms.iter().all(|is_idle| *is_idle)
    }

    /// Returns the figures of the load if every arm was idle.
    pub(crate) fn into_load(self) -> Option<IdleLoad> {
        self.is_of_all().then_some(self.load)
    }

    /// Withdraws the equivalence of two idle arms: they carry the same because their connections allow no more. Adds
    /// the explanation to the reason for two idle arms that differ.
    pub(crate) fn doubt(&self, data: &LoadData<'_>, comparison: &mut Comparison) {
        let both_idle = [&comparison.arm, &comparison.against].into_iter().all(|name| {
            let index = data.study.arms.iter().position(|arm| arm.name == *name);
            index.is_some_and(|index| self.arms[index])
        });
        let is_rate = matches!(comparison.metric, Metric::Rate | Metric::ReceivedBytes);
        let is_valid = comparison.verdict != Verdict::Invalid;
        if !is_rate || !is_valid || !both_idle {
            return;
        }
        // If every arm was idle, the load has the figures.
        let figures = (!self.is_of_all()).then(|| self.load.clone());
        if comparison.verdict == Verdict::Equivalent {
            comparison.verdict = Verdict::Inconclusive;
            comparison.because = Basis::ConnectionsLimit(figures).into();
        } else {
            comparison.because.caveats.push(Caveat::ConnectionsLimit(figures));
        }
    }
}

/// Returns the mean response time of an arm, seconds. With connections that are always busy, their number divided by
/// this time is the rate (Little 1961, Operations Research 9).
fn mean_s(data: &LoadData<'_>, arm: usize) -> f64 {
    let (mut count, mut all_ns) = (0.0, 0.0);
    for trial in data.usable_of(arm) {
        let responses = trial.response_time.count as f64;
        count += responses;
        all_ns += responses * trial.response_time.mean;
    }
    all_ns / f64::max(count, 1.0) / 1e9
}

/// Returns the share of its time that the busiest of proxy, generator and origin used while the arm had the load, and
/// the share of the proxy's CPUs that others used, 0..1. `None` if one of the three was busy, or may have been.
fn everybody_idle(data: &LoadData<'_>, arm: usize) -> Option<[f64; 2]> {
    let spec = &data.study.arms[arm];
    if !data.sees_process(spec) {
        return None;
    }
    let kind = data.study.proxy_of(spec).kind;
    let cpus = spec.cpus(&data.header.cpus).cpus().len() as f64;
    // Where nobody knows how many threads share the work, one may have all of it.
    let workers = Catalog::builtin()
        .workers(kind, &spec.settings)
        .map_or(1.0, |workers| workers as f64)
        .clamp(1.0, cpus.max(1.0));
    let (mut used, mut of_others, mut count) = ([0.0; 3], 0.0, 0.0);
    for trial in data.usable_of(arm) {
        let [proxy, not_idle, peer, others] = shares(trial, data)?;
        of_others += others;
        used[0] += proxy / workers;
        used[1] += not_idle;
        used[2] += peer;
        count += 1.0;
    }
    let busiest = used.into_iter().map(|used| used / count).reduce(f64::max)?;
    (busiest < BUSY).then(|| [busiest, of_others / count])
}

/// Returns the number of CPUs that the proxy's processes used, the share of its CPUs' time that was not idle, the share
/// that the busier one of generator and origin used of its own, and the share of the proxy's CPUs that others used.
fn shares(trial: &TrialRecord, data: &LoadData<'_>) -> Option<[f64; 4]> {
    let slices = evidence(trial, data.header).slices?;
    let (_, peer) = slices.peer?;
    let cpus_used = sum([trial], |slice| slice.proxy_cpu_ns) / slices.whole_ns;
    // What other processes take is nobody's work here, as far as meters tell it.
    let others_ns =
        sum([trial], |slice| slice.held_up.proxy.map_or(0, |held_up| held_up.others_ns));
    // Idle time comes in ticks: one more than was counted is possible.
    let not_idle = 1.0 - slices.of_proxy(slices.proxy_idle_ns + others_ns);
    Some([cpus_used, not_idle, peer, slices.of_proxy(others_ns)])
}
