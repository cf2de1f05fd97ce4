//! Workers and the CPUs that they may use.

use super::numbers::MANY_PER_SECOND;
use super::shape::Shape;
use super::sources::{CGROUP, LISTEN, WORKERS};
use crate::evidence::{Evidence, HostEvidence};
use crate::finding::Finding;
use crate::problem::CpuProblem;

pub(super) fn rules(shape: &Shape<'_>, found: &mut Vec<Finding>) {
    found.extend(above(shape));
    found.extend(below(shape));
    found.extend(reuseport(shape));
}

/// Returns the CPU time that the workers can have, in CPUs, and its evidence.
fn cpus(shape: &Shape<'_>) -> Option<(f64, Vec<HostEvidence>)> {
    let facts = shape.facts;
    let mut evidence = Vec::new();
    let mut least = f64::INFINITY;
    if let Some(cpus) = facts.cpus_online {
        least = least.min(cpus as f64);
        evidence.push(HostEvidence::CpusOnline { cpus });
    }
    if let Some(cpus) = facts.cpus_allowed {
        least = least.min(cpus as f64);
        evidence.push(HostEvidence::CpusAllowed { cpus });
    }
    if let Some(cpus) = facts.cgroup.cpus {
        least = least.min(cpus);
        evidence.push(HostEvidence::CpuQuota { cpus });
    }
    least.is_finite().then_some((least, evidence))
}

fn set_workers(shape: &Shape<'_>, count: u64) -> Option<String> {
    let configuration = shape.configuration?;
    let text = format!("worker_processes {count}");
    match configuration.main("worker_processes") {
        Some(set) => Some(set.replace_with(&text)),
        None => Some(configuration.main("events")?.precede_with(&text)),
    }
}

fn setting(shape: &Shape<'_>) -> Option<Evidence> {
    let set = shape.configuration?.main("worker_processes");
    Some(shape.setting("worker_processes", set))
}

fn above(shape: &Shape<'_>) -> Option<Finding> {
    let workers = shape.workers?;
    let (cpus, evidence) = cpus(shape)?;
    if (workers as f64) <= cpus.ceil() {
        return None;
    }
    Some(
        Finding::warning(CpuProblem::WorkersAboveCpus { workers, cpus }, CGROUP)
            .evidence_all(setting(shape))
            .evidence_all(evidence)
            .change_nginx(set_workers(shape, cpus.ceil() as u64)),
    )
}

fn below(shape: &Shape<'_>) -> Option<Finding> {
    let workers = shape.workers?;
    let (cpus, evidence) = cpus(shape)?;
    let usable = cpus.floor() as u64;
    if workers >= usable {
        return None;
    }
    Some(
        Finding::note(CpuProblem::WorkersBelowCpus { workers, cpus: usable }, WORKERS)
            .evidence_all(setting(shape))
            .evidence_all(evidence)
            .change_nginx(set_workers(shape, usable)),
    )
}

fn reuseport(shape: &Shape<'_>) -> Option<Finding> {
    let connections_per_second = shape.client_connections_per_second()?;
    let workers = shape.workers?;
    if connections_per_second < MANY_PER_SECOND || workers < 2 {
        return None;
    }
    let listens = super::backlog::find_listens(shape);
    let listen = listens
        .iter()
        .map(|one| one.statement)
        .find(|statement| !statement.arguments.iter().any(|w| w == "reuseport"))?;
    Some(
        Finding::note(CpuProblem::ListenersShared { workers, connections_per_second }, LISTEN)
            .evidence(listen)
            .change_nginx([listen.extend_with("reuseport")]),
    )
}
