//! Limits of connections and descriptors: of a worker, a process and the host.

use super::numbers::OF_ITS_OWN;
use super::rounded;
use super::shape::Shape;
use super::sources::{CORE, FS_SYSCTL, LIMITS_CONF, RLIMIT};
use crate::configuration::Statement;
use crate::evidence::{Calculation, Evidence, FileEvidence, HostEvidence};
use crate::facts::FileLine;
use crate::finding::{Finding, Room, Then};
use crate::problem::DescriptorProblem;
use crate::shell::quoted;

pub(super) fn rules(shape: &Shape<'_>, found: &mut Vec<Finding>) {
    found.extend(worker_connections(shape));
    found.extend(nofile(shape));
    found.extend(above_nofile(shape));
    found.extend(not_taken(shape));
    found.extend(above_nr_open(shape));
    found.extend(file_max(shape));
    found.extend(limits_conf(shape));
}

/// Returns the number of simultaneous clients that worker_connections allows.
pub(super) fn room(shape: &Shape<'_>) -> Option<Room> {
    let (workers, connections) = (shape.workers?, shape.worker_connections?);
    let usable = match shape.nofile() {
        Some((soft, _)) => connections.min(soft),
        None => connections,
    };
    let per = shape.connections_per_client();
    Some(Room::Clients {
        amount: workers.saturating_mul(usable) / per,
        workers,
        connections: usable,
        is_capped: usable < connections,
        connections_per_client: per,
    })
}

fn worker_connections(shape: &Shape<'_>) -> Option<Finding> {
    let clients = shape.facts.asked.connections?;
    let (workers, connections) = (shape.workers?.max(1), shape.worker_connections?);
    let needed = clients.checked_mul(shape.connections_per_client())?;
    if workers.saturating_mul(connections) >= needed {
        return None;
    }
    let value = rounded(needed.div_ceil(workers));
    let configuration = shape.configuration?;
    let set = configuration.events("worker_connections");
    let change = match (set, configuration.main("events")) {
        (Some(set), _) => Some(set.replace_with(&format!("worker_connections {value}"))),
        (None, Some(events)) => Some(format!(
            "sed -i '{}s/events *{{/events {{ worker_connections {value};/' {}",
            events.line,
            quoted(&events.file)
        )),
        _ => None,
    };
    let room = workers.saturating_mul(connections) / shape.connections_per_client();
    let problem = DescriptorProblem::WorkerConnectionsTooFew { room, clients };
    Some(
        Finding::error(problem, CORE)
            .evidence(shape.setting("worker_connections", set))
            .evidence(Calculation::WorkerConnections { workers, connections, clients, needed })
            .change_nginx(change),
    )
}

/// Returns the number of descriptors that each worker needs for the clients of the load.
fn needed_each(shape: &Shape<'_>) -> Option<u64> {
    let clients = shape.facts.asked.connections?;
    // A client of static files takes a connection and the file's own descriptor.
    let all = clients.checked_mul(2)?;
    Some(all.div_ceil(shape.workers?.max(1)) + OF_ITS_OWN)
}

/// Returns the command that gives workers enough descriptors: the same for all findings, so that following one does not
/// contradict another.
fn set_rlimit(shape: &Shape<'_>) -> Option<String> {
    let configuration = shape.configuration?;
    let needed = needed_each(shape).unwrap_or(0);
    let value = rounded(needed.max(shape.worker_connections? + OF_ITS_OWN));
    let text = format!("worker_rlimit_nofile {value}");
    match configuration.main("worker_rlimit_nofile") {
        Some(set) => Some(set.replace_with(&text)),
        None => Some(configuration.main("events")?.precede_with(&text)),
    }
}

/// Returns the lowest hard limit of a worker, and the worker's process id, if `worker_rlimit_nofile` is higher and not
/// in force: nginx may not raise a hard limit.
fn hard_limit(shape: &Shape<'_>) -> Option<(u64, u32)> {
    let wanted = shape.configuration?.main("worker_rlimit_nofile")?.number()?;
    let workers = &shape.facts.proxy.as_ref()?.workers;
    workers
        .iter()
        .filter_map(|worker| {
            let (soft, hard) = worker.nofile?;
            (soft < wanted && hard < wanted).then_some((hard, worker.pid))
        })
        .min()
}

/// Adds commands that give workers more descriptors: by nginx's own setting or, if a hard limit keeps that from taking
/// effect, by the limit of whatever starts nginx.
fn raised(finding: Finding, shape: &Shape<'_>) -> Finding {
    let Some(((hard, pid), proxy)) = hard_limit(shape).zip(shape.facts.proxy.as_ref()) else {
        return finding.change_nginx(set_rlimit(shape));
    };
    let wanted = needed_each(shape).unwrap_or(0);
    let set = shape.configuration.and_then(|all| all.main("worker_rlimit_nofile"));
    let value = rounded(wanted.max(set.and_then(Statement::number).unwrap_or(0)));
    finding.evidence(HostEvidence::HardLimit { pid, hard }).change(match &proxy.unit {
        Some(unit) if !proxy.own_root => format!(
            "# systemctl edit {}: LimitNOFILE={value} below [Service], then restart it",
            quoted(unit)
        ),
        _ if proxy.own_root => format!(
            "# start the container of process {} with a limit of {value} open files \
             (docker run --ulimit nofile={value}; a pod has that of its container runtime), \
             or with the capability SYS_RESOURCE",
            proxy.master
        ),
        _ => format!(
            "# start nginx (process {}) with a hard limit of {value} open files: \
             ulimit -Hn {value}, as root",
            proxy.master
        ),
    })
}

fn nofile(shape: &Shape<'_>) -> Option<Finding> {
    let needed = needed_each(shape)?;
    let (limit, evidence) = shape.nofile()?;
    if limit >= needed {
        return None;
    }
    let finding = Finding::error(DescriptorProblem::DescriptorsTooFew { limit, needed }, RLIMIT)
        .evidence(evidence)
        .evidence(Calculation::Descriptors {
            clients: shape.facts.asked.connections?,
            workers: shape.workers?,
            of_its_own: OF_ITS_OWN,
            needed,
        });
    Some(raised(finding, shape))
}

fn above_nofile(shape: &Shape<'_>) -> Option<Finding> {
    let connections = shape.worker_connections?;
    let (limit, evidence) = shape.nofile()?;
    let set = shape.configuration?.events("worker_connections");
    if connections <= limit {
        return None;
    }
    let problem = DescriptorProblem::WorkerConnectionsAboveDescriptors { connections, limit };
    let finding = Finding::warning(problem, CORE)
        .evidence(shape.setting("worker_connections", set))
        .evidence(evidence);
    Some(raised(finding, shape))
}

fn not_taken(shape: &Shape<'_>) -> Option<Finding> {
    let directive = shape.configuration?.main("worker_rlimit_nofile")?;
    shape.facts.proxy.as_ref()?;
    let (limit, evidence) = shape.nofile()?;
    let set = directive.number()?;
    if limit >= set {
        return None;
    }
    let finding = Finding::warning(DescriptorProblem::RlimitNotTaken { set, limit }, RLIMIT)
        .evidence(directive)
        .evidence(evidence);
    Some(if hard_limit(shape).is_some() {
        raised(finding, shape)
    } else {
        finding.then(Then::Again)
    })
}

fn above_nr_open(shape: &Shape<'_>) -> Option<Finding> {
    let nr_open = shape.facts.sysctl("fs.nr_open")?;
    let directive =
        shape.configuration.and_then(|configuration| configuration.main("worker_rlimit_nofile"));
    let unit = shape.facts.unit_limit.as_ref();
    let (set, evidence): (u64, Evidence) = match (directive, unit) {
        (Some(directive), _) if directive.number()? > nr_open => {
            (directive.number()?, directive.into())
        }
        (_, Some(unit)) if unit.soft? > nr_open && unit.soft? != u64::MAX => {
            (unit.soft?, FileEvidence::UnitLimit(unit.clone()).into())
        }
        _ => return None,
    };
    Some(
        Finding::warning(DescriptorProblem::DescriptorsAboveNrOpen { set, nr_open }, FS_SYSCTL)
            .evidence(evidence)
            .evidence_all(shape.facts.live("fs.nr_open"))
            .change_sysctl("fs.nr_open", &rounded(set).to_string()),
    )
}

fn file_max(shape: &Shape<'_>) -> Option<Finding> {
    let most = shape.facts.sysctl("fs.file-max")?;
    let files = shape.facts.open_files?;
    let needed = shape.facts.asked.connections?.checked_mul(2)?.saturating_add(files);
    if most >= needed {
        return None;
    }
    Some(
        Finding::error(DescriptorProblem::FileMaxTooLow { most, needed }, FS_SYSCTL)
            .evidence_all(shape.facts.live("fs.file-max"))
            .evidence(HostEvidence::OpenFiles { files })
            .evidence_all(shape.facts.winning_line("fs.file-max"))
            .change_sysctl("fs.file-max", &rounded(needed.saturating_mul(2)).to_string()),
    )
}

fn limits_conf(shape: &Shape<'_>) -> Option<Finding> {
    // A line about another user's sessions was not meant for nginx.
    let user = shape
        .configuration
        .and_then(|all| all.main("user"))
        .and_then(Statement::argument)
        .unwrap_or("nobody");
    let names = ["*", "root", "nginx", "www-data", user];
    let lines: Vec<&FileLine> = shape
        .facts
        .limit_lines
        .iter()
        .filter(|line| names.contains(&line.text.split(' ').next().unwrap_or_default()))
        .collect();
    lines.first()?;
    let unit = shape.facts.unit_limit.as_ref()?.unit.clone();
    let workers = shape.nofile().map(|(limit, evidence)| HostEvidence::WorkersLimit {
        limit,
        evidence: Box::new(evidence),
    });
    Some(
        Finding::warning(DescriptorProblem::LimitsConfNotForServices { unit }, LIMITS_CONF)
            .evidence_all(lines.into_iter().cloned().map(FileEvidence::Line))
            .evidence_all(workers)
            .change_nginx(set_rlimit(shape)),
    )
}
