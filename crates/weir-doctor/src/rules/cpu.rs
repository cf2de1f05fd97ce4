//! Workers and the CPUs that they may use.

use super::numbers::MANY_PER_SECOND;
use super::shape::Shape;
use super::sources::{CGROUP, LISTEN, WORKERS};
use super::{counted, figure, rate};
use crate::finding::Finding;

pub(super) fn rules(shape: &Shape<'_>, found: &mut Vec<Finding>) {
    found.extend(above(shape));
    found.extend(below(shape));
    found.extend(reuseport(shape));
}

/// Returns the CPU time that the workers can have, in CPUs, and its evidence.
fn cpus(shape: &Shape<'_>) -> Option<(f64, Vec<String>)> {
    let facts = shape.facts;
    let mut evidence = Vec::new();
    let mut least = f64::INFINITY;
    if let Some(online) = facts.cpus_online {
        least = least.min(online as f64);
        evidence.push(format!("{} online", counted(online, "CPU")));
    }
    if let Some(allowed) = facts.cpus_allowed {
        least = least.min(allowed as f64);
        evidence.push(format!("{} allowed (Cpus_allowed_list)", counted(allowed, "CPU")));
    }
    if let Some(quota) = facts.cgroup.cpus {
        least = least.min(quota);
        evidence.push(format!("control group quota: {quota:.2} CPUs"));
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

fn said(shape: &Shape<'_>) -> Option<String> {
    let set = shape.configuration?.main("worker_processes");
    Some(shape.said("worker_processes", set))
}

fn above(shape: &Shape<'_>) -> Option<Finding> {
    let workers = shape.workers?;
    let (cpus, evidence) = cpus(shape)?;
    if (workers as f64) <= cpus.ceil() {
        return None;
    }
    Some(
        Finding::warning("workers-above-cpus",
            format!("{} share {cpus:.2} CPUs", counted(workers, "worker")),
        )
        .evidence_all(said(shape))
        .evidence_all(evidence)
        .why(
            "`auto` counts the CPUs that are online, not the quota. More workers use up the group's time before a period ends, and then all of them stand still until the next one: \
             pauses of tens of milliseconds that look like a slow network.",
            CGROUP,
        )
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
    let title = format!(
        "{} cannot use more than {} of {} CPUs",
        counted(workers, "worker"),
        figure(workers),
        figure(usable)
    );
    Some(
        Finding::note("workers-below-cpus", title)
        .evidence_all(said(shape))
        .evidence_all(evidence)
        .why(
            "A worker is one thread and runs on one CPU at a time. If the origin servers run on the same CPUs, this may be intended.",
            WORKERS,
        )
        .change_nginx(set_workers(shape, usable)),
    )
}

fn reuseport(shape: &Shape<'_>) -> Option<Finding> {
    let per_second = shape.client_connections_per_second()?;
    if per_second < MANY_PER_SECOND || shape.workers? < 2 {
        return None;
    }
    let listens = super::backlog::find_listens(shape);
    let listen = listens
        .iter()
        .map(|one| one.statement)
        .find(|statement| !statement.arguments.iter().any(|w| w == "reuseport"))?;
    Some(
        Finding::note("listeners-shared",
            format!(
                "{} share one accept queue at {} new connections/s",
                counted(shape.workers?, "worker"),
                rate(per_second)
            ),
        )
        .evidence(listen.evidence())
        .why(
            "Workers that share a socket accept unevenly. With reuseport each worker has its own socket and queue, and the kernel spreads connections \
             by a hash. Connections in the queue of a worker that is stuck then have to wait: measure both.",
            LISTEN,
        )
        .change_nginx([listen.extend_with("reuseport")]),
    )
}
