//! Limits of connections and descriptors: of a worker, a process and the host.

use super::numbers::OF_ITS_OWN;
use super::shape::Shape;
use super::sources::{CORE, FS_SYSCTL, LIMITS_CONF, RLIMIT};
use super::{counted, figure, limit, rounded};
use crate::commands::quoted;
use crate::configuration::Statement;
use crate::facts::LimitLine;
use crate::finding::{Finding, Room, Then};

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
    let (workers, each) = (shape.workers?.max(1), shape.worker_connections?);
    let needed = clients.checked_mul(shape.connections_per_client())?;
    if workers.saturating_mul(each) >= needed {
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
    let evidence = shape.said("worker_connections", set);
    let title = format!(
        "nginx has room for {} clients, {} are needed",
        figure(workers.saturating_mul(each) / shape.connections_per_client()),
        figure(clients)
    );
    Some(
        Finding::text_error("worker-connections-too-few", title)
        .evidence(evidence)
        .evidence(format!(
            "{} × {} = {} connections; {} clients take {}",
            counted(workers, "worker"),
            figure(each),
            figure(workers.saturating_mul(each)),
            figure(clients),
            figure(needed)
        ))
        .why(
            "A worker counts every connection against worker_connections, those to origin servers and \
             to FastCGI, uwsgi, SCGI and memcached too: a client whose request is being answered takes two. When \
             connections run out a worker stops accepting, and clients wait in the accept queue.",
            CORE,
        )
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
    let evidence = format!("/proc/{pid}/limits: hard limit {}", limit(hard));
    finding.evidence(evidence).change(match &proxy.unit {
        Some(unit) if !proxy.own_root => format!(
            "# systemctl edit {}: LimitNOFILE={value} below [Service], then restart it",
            quoted(unit)
        ),
        _ if proxy.own_root => format!(
            "# start the container of process {} with a limit of {value} open files (docker run --ulimit \
             nofile={value}; a pod has that of its container runtime), or with the capability SYS_RESOURCE",
            proxy.master
        ),
        _ => format!(
            "# start nginx (process {}) with a hard limit of {value} open files: ulimit -Hn {value}, as root",
            proxy.master
        ),
    })
}

fn nofile(shape: &Shape<'_>) -> Option<Finding> {
    let needed = needed_each(shape)?;
    let (soft, evidence) = shape.nofile()?;
    if soft >= needed {
        return None;
    }
    let finding = Finding::text_error("descriptors-too-few",
        format!(
            "a worker may open {} descriptors and would need {}",
            figure(soft),
            figure(needed)
        ),
    )
    .evidence(evidence)
    .evidence(format!(
        "{} clients × 2 descriptors / {} + {OF_ITS_OWN} of its own = {}",
        figure(shape.facts.asked.connections?),
        counted(shape.workers?, "worker"),
        figure(needed)
    ))
    .why(
        "Every connection takes a descriptor, and so does every file that is sent. Above the soft \
         limit accept(2) and socket(2) fail: \"Too many open files\". nginx sets its workers' limit \
         to worker_rlimit_nofile, whatever the shell or the unit gave it, if it is privileged to.",
        RLIMIT,
    );
    Some(raised(finding, shape))
}

fn above_nofile(shape: &Shape<'_>) -> Option<Finding> {
    let connections = shape.worker_connections?;
    let (soft, evidence) = shape.nofile()?;
    let set = shape.configuration?.events("worker_connections");
    if connections <= soft {
        return None;
    }
    let setting = shape.said("worker_connections", set);
    let title = format!(
        "worker_connections {} cannot be reached: a worker has {} descriptors",
        figure(connections),
        figure(soft)
    );
    let finding = Finding::text_warning("worker-connections-above-descriptors", title)
        .evidence(setting)
        .evidence(evidence)
        .why(
            "Every connection takes a descriptor. nginx starts with no more than a warning; connections above the limit cannot be opened.",
            CORE,
        );
    Some(raised(finding, shape))
}

fn not_taken(shape: &Shape<'_>) -> Option<Finding> {
    let set = shape.configuration?.main("worker_rlimit_nofile")?;
    shape.facts.proxy.as_ref()?;
    let (soft, evidence) = shape.nofile()?;
    let wanted = set.number()?;
    if soft >= wanted {
        return None;
    }
    let title = format!(
        "worker_rlimit_nofile {} is not in force: workers have {}",
        figure(wanted),
        figure(soft)
    );
    let finding = Finding::text_warning("rlimit-not-taken", title)
        .evidence(set.evidence())
        .evidence(evidence)
        .why(
            "Either nginx has not been reloaded since, or it may not raise its hard limit \
             (CAP_SYS_RESOURCE, which containers often lack): then it logs an alert \
             \"setrlimit(RLIMIT_NOFILE) failed\" and keeps the limit that it had.",
            RLIMIT,
        );
    Some(if hard_limit(shape).is_some() {
        raised(finding, shape)
    } else {
        finding.then(Then::Again)
    })
}

fn above_nr_open(shape: &Shape<'_>) -> Option<Finding> {
    let nr_open = shape.facts.sysctl("fs.nr_open")?;
    let set =
        shape.configuration.and_then(|configuration| configuration.main("worker_rlimit_nofile"));
    let unit = shape.facts.unit_limit.as_ref();
    let (wanted, evidence) = match (set, unit) {
        (Some(set), _) if set.number()? > nr_open => (set.number()?, set.evidence()),
        (_, Some(unit)) if unit.soft? > nr_open && unit.soft? != u64::MAX => {
            (unit.soft?, unit.evidence.clone()?)
        }
        _ => return None,
    };
    let title = format!(
        "a limit of {} descriptors is refused: fs.nr_open is {}",
        figure(wanted),
        figure(nr_open)
    );
    Some(
        Finding::text_warning("descriptors-above-nr-open", title)
        .evidence(evidence)
        .evidence(format!("fs.nr_open = {nr_open}"))
        .why(
            "fs.nr_open is the most that any process may have, including root's: setrlimit(2) fails above \
             it, and the process keeps the limit that it had.",
            FS_SYSCTL,
        )
        .change_sysctl("fs.nr_open", &rounded(wanted).to_string()),
    )
}

fn file_max(shape: &Shape<'_>) -> Option<Finding> {
    let most = shape.facts.sysctl("fs.file-max")?;
    let open = shape.facts.open_files?;
    let needed = shape.facts.asked.connections?.checked_mul(2)?;
    if most >= needed.saturating_add(open) {
        return None;
    }
    Some(
        Finding::text_error("file-max-too-low",
            format!(
                "the host may open {} files and would need {}",
                figure(most),
                figure(needed + open)
            ),
        )
        .evidence(format!("fs.file-max = {most}"))
        .evidence(format!("fs.file-nr: {} open now", figure(open)))
        .evidence_all(shape.facts.winning_evidence("fs.file-max"))
        .why(
            "fs.file-max bounds all processes of the host together, containers included: it belongs \
             to no namespace. Processes with CAP_SYS_ADMIN are exempt, nginx's workers are not.",
            FS_SYSCTL,
        )
        .change_sysctl("fs.file-max", &rounded(2 * (needed + open)).to_string()),
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
    let all = shape.facts.limit_lines.iter();
    let lines: Vec<&LimitLine> = all
        .filter(|line| {
            let whom = line.text.split(' ').next().unwrap_or_default();
            names.contains(&whom)
        })
        .collect();
    lines.first()?;
    let unit = shape.facts.unit_limit.as_ref()?;
    let name = &unit.unit;
    let title = format!("nofile in limits.conf does not reach {name}");
    let mut finding = Finding::text_warning("limits-conf-not-for-services", title).evidence_all(
        lines.iter().map(|line| format!("{}:{}: {}", line.file, line.line, line.text)),
    );
    if let Some((soft, evidence)) = shape.nofile() {
        finding = finding.evidence(format!("{evidence} (workers: {})", limit(soft)));
    }
    Some(
        finding
            .why(
                "limits.conf is read by pam_limits at login. A service is started by systemd, which uses LimitNOFILE= of its unit; for nginx's workers, set worker_rlimit_nofile.",
                LIMITS_CONF,
            )
            .change_nginx(set_rlimit(shape)),
    )
}
