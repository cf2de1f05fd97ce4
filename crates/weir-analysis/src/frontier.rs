//! Costs of arms, and which arms are dominated: another one is shown to be no worse in rate, CPU time, memory and
//! privileges, and better in one of them.
//!
//! Rates and CPU times are judged by the verdicts of the run's comparisons. Where two arms were not compared, or the
//! comparison left it open, neither dominates the other.

use std::collections::BTreeMap;

use weir_limits::Role;
use weir_model::sample::Counters;
use weir_model::study::{Arm, ArmRole, Metric, Study};
use weir_parameters::Catalog;
use weir_record::Run;

use crate::findings::{
    Capacity, CapacityFindings, Comparison, Counted, FrontierArm, FrontierFindings, LoadFindings,
    Privilege, Ratio, Verdict,
};

/// Share by which one memory may exceed another that counts as the same.
const SAME_MEMORY: f64 = 0.02;
/// Share by which a memory must be less than another to count as less: resident memory depends on when it was read.
const LESS_MEMORY: f64 = 0.1;

/// Finds what the arms cost under each load whose arms were compared and that is no cell of a matrix.
pub(crate) fn find(run: &Run, loads: &[LoadFindings]) -> Vec<FrontierFindings> {
    let study = &run.header.study;
    let single = loads.iter().filter(|load| {
        let spec = study.loads.iter().find(|spec| spec.name == load.load);
        load.is_usable() && spec.is_some_and(|spec| spec.cell.is_none())
    });
    let memory_by_arm = memories(run);
    let frontiers = single.map(|load| {
        let arms = compared(study).filter_map(|arm| {
            let figures = load.arms.iter().find(|figures| figures.arm == arm.name)?;
            Some(FrontierArm {
                arm: arm.name.clone(),
                rate: figures.rate_completed,
                per_cpu: figures.cpu_per_request_ns.map(|ns| 1e9 / ns),
                memory: memory_by_arm.get(&*arm.name).copied(),
                needs: needs(study, arm),
                dominated_by: None,
            })
        });
        FrontierFindings { load: load.load.clone(), is_capacity: false, arms: arms.collect() }
            .judged(|one, other| Relation {
                // Where everything was answered, all arms carried the rate that was asked for.
                rate: if load.metrics.iter().any(|metric| is_rate(*metric)) {
                    verdict(load, is_rate, one, other)
                } else {
                    Some(Verdict::Equivalent)
                },
                cpu: verdict(load, |metric| metric == Metric::CpuPerRequest, one, other),
            })
    });
    frontiers.flatten().collect()
}

/// Finds what the arms of a search for capacities cost. CPU times at the capacity have no interval: one that is lower
/// does not make an arm better, but one that is higher makes it worse.
pub(crate) fn of_capacities(run: &Run, found: &CapacityFindings) -> Option<FrontierFindings> {
    let study = &run.header.study;
    let memory_by_arm = memories(run);
    let claimed: BTreeMap<&str, &Capacity> = study
        .arms
        .iter()
        .zip(&found.arms)
        .filter(|(_, capacity)| capacity.claimed)
        .map(|(arm, capacity)| (&*arm.name, capacity))
        .collect();
    let arms = compared(study).filter_map(|arm| {
        let capacity = claimed.get(&*arm.name)?;
        Some(FrontierArm {
            arm: arm.name.clone(),
            rate: (capacity.answer.low * capacity.answer.high).sqrt(),
            per_cpu: cpu_at_edge(capacity).map(|ns| 1e9 / ns),
            memory: memory_by_arm.get(&*arm.name).copied(),
            needs: needs(study, arm),
            dominated_by: None,
        })
    });
    let load = study.loads.first()?.name.clone();
    FrontierFindings { load, is_capacity: true, arms: arms.collect() }.judged(|one, other| {
        let times = [one, other].map(|arm| claimed.get(arm).and_then(|it| cpu_at_edge(it)));
        Relation {
            rate: of_ratio(&found.ratios, one, other),
            cpu: match times {
                [Some(one), Some(other)] if one <= other => Some(Verdict::Equivalent),
                _ => None,
            },
        }
    })
}

/// Returns the arms that are compared with others: all but the A/A arm.
fn compared(study: &Study) -> impl Iterator<Item = &Arm> {
    study.arms.iter().filter(|arm| arm.role != ArmRole::SameAsBaseline)
}

fn is_rate(metric: Metric) -> bool {
    matches!(metric, Metric::Rate | Metric::ReceivedBytes)
}

/// Verdicts on one arm beside another; `None` if they were not compared.
struct Relation {
    rate: Option<Verdict>,
    cpu: Option<Verdict>,
}

impl FrontierFindings {
    /// Sorts the arms and marks the dominated ones; `None` if there are fewer than two, or no CPU time is known.
    fn judged(mut self, relation: impl Fn(&str, &str) -> Relation) -> Option<FrontierFindings> {
        if self.arms.len() < 2 || self.arms.iter().all(|arm| arm.per_cpu.is_none()) {
            return None;
        }
        self.arms.sort_by(|a, b| {
            (a.needs.len(), &a.needs)
                .cmp(&(b.needs.len(), &b.needs))
                .then_with(|| b.rate.total_cmp(&a.rate))
        });
        let dominating: Vec<Option<String>> = self
            .arms
            .iter()
            .map(|arm| {
                let better = self.arms.iter().find(|other| {
                    other.arm != arm.arm && dominates(other, arm, &relation(&other.arm, &arm.arm))
                })?;
                Some(better.arm.clone())
            })
            .collect();
        for (arm, by) in self.arms.iter_mut().zip(dominating) {
            arm.dominated_by = by;
        }
        Some(self)
    }
}

/// Returns true if `one` is no worse than `other` in anything, and better in something.
fn dominates(one: &FrontierArm, other: &FrontierArm, relation: &Relation) -> bool {
    let all = [
        Standing::by_verdict(relation.rate),
        Standing::by_verdict(relation.cpu),
        Standing::by_memory(one.memory, other.memory),
        Standing::by_needs(&one.needs, &other.needs),
    ];
    !all.contains(&Standing::Open) && all.contains(&Standing::Better)
}

/// An arm beside another one in rate or in a cost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Better,
    Same,
    /// Worse, or it is not known.
    Open,
}

impl Standing {
    fn by_verdict(verdict: Option<Verdict>) -> Standing {
        match verdict {
            Some(Verdict::Better) => Standing::Better,
            Some(Verdict::Equivalent) => Standing::Same,
            _ => Standing::Open,
        }
    }

    fn by_memory(one: Option<u64>, other: Option<u64>) -> Standing {
        match (one, other) {
            (Some(one), Some(other)) => match one as f64 / other as f64 {
                share if share < 1.0 - LESS_MEMORY => Standing::Better,
                share if share <= 1.0 + SAME_MEMORY => Standing::Same,
                _ => Standing::Open,
            },
            (None, None) => Standing::Same,
            _ => Standing::Open,
        }
    }

    fn by_needs(one: &[Privilege], other: &[Privilege]) -> Standing {
        if !one.iter().all(|need| other.contains(need)) {
            Standing::Open
        } else if one.len() < other.len() {
            Standing::Better
        } else {
            Standing::Same
        }
    }
}

/// Returns the verdict on one arm against another by a metric, from whichever side they were compared.
fn verdict(
    load: &LoadFindings,
    is_wanted: impl Fn(Metric) -> bool,
    one: &str,
    other: &str,
) -> Option<Verdict> {
    let mut both =
        load.comparisons.iter().chain(&load.pairs).filter(|found| is_wanted(found.metric));
    both.find_map(|found: &Comparison| match (&*found.arm, &*found.against) {
        (arm, against) if (arm, against) == (one, other) => Some(found.verdict),
        (arm, against) if (arm, against) == (other, one) => Some(found.mirrored().verdict),
        _ => None,
    })
}

fn of_ratio(ratios: &[Ratio], one: &str, other: &str) -> Option<Verdict> {
    ratios.iter().find_map(|found| match (&*found.arm, &*found.against, found.verdict) {
        (arm, against, verdict) if (arm, against) == (one, other) => Some(verdict),
        (arm, against, Verdict::Better) if (arm, against) == (other, one) => Some(Verdict::Worse),
        (arm, against, Verdict::Worse) if (arm, against) == (other, one) => Some(Verdict::Better),
        (arm, against, verdict) if (arm, against) == (other, one) => Some(verdict),
        _ => None,
    })
}

/// Returns the CPU time of the proxy per request at the capacity, nanoseconds.
fn cpu_at_edge(capacity: &Capacity) -> Option<f64> {
    capacity.grows.iter().find(|row| row.what == Counted::ProxyCpu)?.edge
}

/// Returns what an arm needs beyond a program and its configuration.
fn needs(study: &Study, arm: &Arm) -> Vec<Privilege> {
    let scoped = Catalog::builtin().split(study.proxy_of(arm).kind, &arm.settings);
    let none = Catalog::builtin().launcher().and_then(|row| row.read_back(None));
    let all = [
        (Privilege::Launcher, scoped.launcher.is_some() && scoped.launcher != none),
        (Privilege::NetworkSettings, !scoped.netns.is_empty()),
        (Privilege::HostSettings, !scoped.host.is_empty()),
        (Privilege::Bpf, !scoped.bypassed.is_empty()),
    ];
    all.into_iter().filter(|(_, is_needed)| *is_needed).map(|(need, _)| need).collect()
}

/// Returns the highest resident memory of each arm's proxy, bytes, from all samples of the run.
fn memories(run: &Run) -> BTreeMap<&str, u64> {
    let mut by_moment: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    let Some(table) = Counters::builtin().table("processes") else {
        return BTreeMap::new();
    };
    let (Some(role), Some(resident)) = (
        table.keys().position(|key| key == "role"),
        table.values().position(|column| column == "resident_bytes"),
    ) else {
        return BTreeMap::new();
    };
    for row in run.samples.rows.iter().map(|sample| &sample.row) {
        let is_proxy = row.table == "processes"
            && row.keys.get(role).is_some_and(|name| name == Role::Proxy.name());
        if let Some(bytes) = row.values.get(resident).copied().flatten().filter(|_| is_proxy) {
            *by_moment.entry((&row.arm, row.at_ns)).or_default() += bytes;
        }
    }
    let mut highest: BTreeMap<&str, u64> = BTreeMap::new();
    for ((arm, _), bytes) in by_moment {
        let most = highest.entry(arm).or_default();
        *most = (*most).max(bytes);
    }
    highest
}

#[cfg(test)]
mod tests;
