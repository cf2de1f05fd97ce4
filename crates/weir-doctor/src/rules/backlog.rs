//! Queues of listeners: the length passed to listen(2), the length that the kernel allows, and overflows counted so
//! far.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use super::numbers::{LONGEST_QUEUE, PAUSE_S};
use super::rounded;
use super::shape::Shape;
use super::sources::{IP_SYSCTL, LISTEN, LISTEN_2};
use crate::configuration::Statement;
use crate::evidence::{Calculation, Evidence, FileEvidence, HostEvidence};
use crate::facts::Listener;
use crate::finding::{Finding, Severity, Then};
use crate::problem::QueueProblem;

/// A listening address and its backlog.
pub(super) struct Listen<'a> {
    pub(super) statement: &'a Statement,
    pub(super) port: Option<u16>,
    /// IP address; `None` if the directive names none.
    ip: Option<IpAddr>,
    asked: u64,
    is_set: bool,
    /// True if this address serves requests of the load.
    is_serving: bool,
}

pub(super) fn rules(shape: &Shape<'_>, found: &mut Vec<Finding>) {
    let listens = find_listens(shape);
    found.extend(capped(shape, &listens));
    found.extend(inert(shape, &listens));
    found.extend(not_in_force(shape, &listens));
    found.extend(short(shape, &listens));
    found.extend(overflows(shape, &listens));
    found.extend(syn_queue(shape));
    found.extend(aborts(shape));
}

/// Returns the TCP listeners of the configuration, one for each address.
pub(super) fn find_listens<'a>(shape: &Shape<'a>) -> Vec<Listen<'a>> {
    let unset = shape.nginx_number("backlog");
    let Some((configuration, unset)) = shape.configuration.zip(unset) else {
        return Vec::new();
    };
    let mut listens: Vec<Listen<'a>> = Vec::new();
    // Addresses of servers that answer loads, and of those of TCP.
    let mut serving: BTreeSet<&str> = BTreeSet::new();
    let servers = shape.serving_servers();
    for placed in configuration.all(&["listen"]) {
        let statement = placed.statement;
        let address = statement.argument().unwrap_or_default();
        let is_udp = statement.arguments.iter().any(|word| word == "udp" || word == "quic");
        if address.starts_with("unix:") || is_udp || placed.is_in("mail") {
            continue;
        }
        if placed.is_in("stream")
            || placed.within.last().is_some_and(|it| servers.contains(&std::ptr::from_ref(*it)))
        {
            serving.insert(address);
        }
        let set = statement
            .arguments
            .iter()
            .find_map(|word| word.strip_prefix("backlog=")?.parse::<u32>().ok());
        match (listens.iter_mut().find(|one| one.statement.argument() == Some(address)), set) {
            // Several servers share the socket, and one of them says how it is opened.
            (Some(known), Some(backlog)) => {
                let backlog = u64::from(backlog);
                (known.asked, known.is_set, known.statement) = (backlog, true, statement);
            }
            (Some(_), None) => {}
            (None, set) => listens.push(Listen {
                statement,
                port: port(address),
                ip: address.parse().ok().map(|address: SocketAddr| address.ip()),
                asked: set.map_or(unset, u64::from),
                is_set: set.is_some(),
                is_serving: false,
            }),
        }
    }
    for listen in &mut listens {
        let address = listen.statement.argument().unwrap_or_default();
        listen.is_serving = serving.contains(address);
    }
    listens
}

/// Returns the port of `80`, `*:80`, `127.0.0.1:80` or `[::]:80`; an address alone means 80.
fn port(address: &str) -> Option<u16> {
    match address.rsplit_once(':') {
        _ if address.ends_with(']') => Some(80),
        Some((_, port)) => port.parse().ok(),
        None => Some(address.parse().unwrap_or(80)),
    }
}

/// Returns the kernel's state of the listener, if known; of several, the one with the shortest queue.
fn measured(shape: &Shape<'_>, listen: &Listen<'_>) -> Option<Listener> {
    let listeners = shape.facts.listeners.as_ref()?;
    // Another program may listen at the same port of another address.
    listeners
        .iter()
        .filter(|listener| {
            Some(listener.address.port()) == listen.port
                && listen.ip.is_none_or(|ip| ip == listener.address.ip())
        })
        .min_by_key(|listener| listener.backlog)
        .copied()
}

/// Returns the length of the queue now or, if that is unknown, the smaller of the backlog and somaxconn.
fn effective(shape: &Shape<'_>, listen: &Listen<'_>) -> u64 {
    let somaxconn = shape.facts.sysctl("net.core.somaxconn").unwrap_or(u64::MAX);
    measured(shape, listen)
        .map_or_else(|| listen.asked.min(somaxconn), |listener| u64::from(listener.backlog))
}

/// Returns the queue length that the present settings would give, if it is longer than that of the running nginx, which
/// was started under others.
fn pending(shape: &Shape<'_>, listen: &Listen<'_>) -> Option<u64> {
    shape.facts.proxy.as_ref()?;
    let settings = listen.asked.min(shape.facts.sysctl("net.core.somaxconn")?);
    let running = u64::from(measured(shape, listen)?.backlog);
    (running < settings).then_some(settings)
}

/// Returns the rate of new connections and their number during a pause, if more than `room`.
fn estimate_burst(shape: &Shape<'_>, room: u64) -> Option<(f64, u64)> {
    let per_second = shape.client_connections_per_second()?;
    let burst = per_second * PAUSE_S;
    (burst > room as f64).then_some((per_second, burst as u64))
}

/// Returns the backlog that all findings recommend, so that following one does not contradict another.
fn advised(shape: &Shape<'_>, listens: &[Listen<'_>]) -> u64 {
    let room = listens.iter().map(|one| effective(shape, one)).min();
    let burst = estimate_burst(shape, room.unwrap_or(u64::MAX)).map_or(0, |(_, burst)| burst);
    let clients = shape.facts.asked.connections.unwrap_or(0);
    let raised = shape
        .facts
        .winning_line("net.core.somaxconn")
        .and(shape.facts.sysctl("net.core.somaxconn"));
    let requested = listens.iter().map(|one| one.asked).max();
    let wanted = [rounded(burst), rounded(clients), requested.unwrap_or(0)];
    let most = wanted.into_iter().max().unwrap_or(0);
    most.min(LONGEST_QUEUE).max(raised.unwrap_or(0))
}

/// Returns commands that make every listener of the load request this backlog.
fn raise(listens: &[Listen<'_>], backlog: u64) -> Vec<String> {
    let low = listens.iter().filter(|one| one.is_serving && one.asked < backlog);
    let word = format!("backlog={backlog}");
    low.map(|one| {
        if one.is_set {
            one.statement.replace_word("backlog=[0-9]*", &word)
        } else {
            one.statement.extend_with(&word)
        }
    })
    .collect()
}

/// Adds the commands of [`raise`] and, if the kernel's bound is lower, raises that too.
fn raise_both(shape: &Shape<'_>, listens: &[Listen<'_>], finding: Finding) -> Finding {
    let backlog = advised(shape, listens);
    let finding = match shape.facts.sysctl("net.core.somaxconn") {
        Some(somaxconn) if somaxconn < backlog => {
            finding.change_sysctl("net.core.somaxconn", &backlog.to_string())
        }
        _ => finding,
    };
    match raise(listens, backlog) {
        // nginx calls listen(2) again at a reload only where backlog= has changed.
        commands if commands.is_empty() => finding.then(Then::Restart),
        commands => finding.change_nginx(commands),
    }
}

fn capped(shape: &Shape<'_>, listens: &[Listen<'_>]) -> Option<Finding> {
    let somaxconn = shape.facts.sysctl("net.core.somaxconn")?;
    let above: Vec<_> = listens.iter().filter(|one| one.asked > somaxconn).collect();
    let backlog = above.iter().map(|one| one.asked).max()?;
    let evidence = above.iter().map(|one| {
        if one.is_set {
            return one.statement.into();
        }
        let listen = one.statement.place();
        Evidence::from(FileEvidence::DefaultBacklog { listen, backlog: one.asked })
    });
    let raised = advised(shape, listens).max(backlog);
    Some(
        Finding::warning(QueueProblem::BacklogCapped { backlog, somaxconn }, LISTEN_2)
            .evidence_all(evidence)
            .evidence_all(shape.facts.live("net.core.somaxconn"))
            .evidence_all(shape.facts.winning_line("net.core.somaxconn"))
            .evidence_all(above.iter().filter_map(|one| measured(shape, one)))
            .change_sysctl("net.core.somaxconn", &raised.to_string())
            .then(Then::Restart),
    )
}

/// Reports a somaxconn that was raised by hand while no listener requests as much.
fn inert(shape: &Shape<'_>, listens: &[Listen<'_>]) -> Option<Finding> {
    let somaxconn = shape.facts.sysctl("net.core.somaxconn")?;
    let line = shape.facts.winning_line("net.core.somaxconn")?;
    let most = listens.iter().max_by_key(|one| one.asked)?;
    let backlog = most.asked;
    if somaxconn <= backlog {
        return None;
    }
    let default_backlog = shape.nginx_number("backlog")?;
    let listen = if most.is_set {
        most.statement.into()
    } else {
        Evidence::from(FileEvidence::BacklogUnset { listen: most.statement.place(), backlog })
    };
    let problem = QueueProblem::SomaxconnInert { somaxconn, backlog, default_backlog };
    Some(
        Finding::warning(problem, LISTEN)
            .evidence(line)
            .evidence(listen)
            .evidence_all(measured(shape, most))
            .change_nginx(raise(listens, advised(shape, listens))),
    )
}

/// Reports a listener that was opened under other settings.
fn not_in_force(shape: &Shape<'_>, listens: &[Listen<'_>]) -> Option<Finding> {
    let (listen, settings) = listens.iter().find_map(|one| Some((one, pending(shape, one)?)))?;
    let queue = effective(shape, listen);
    Some(
        Finding::warning(QueueProblem::BacklogNotInForce { queue, settings }, LISTEN_2)
            .evidence(listen.statement)
            .evidence_all(shape.facts.live("net.core.somaxconn"))
            .evidence_all(measured(shape, listen))
            .then(Then::Restart),
    )
}

fn short(shape: &Shape<'_>, listens: &[Listen<'_>]) -> Option<Finding> {
    let shortest =
        listens.iter().filter(|one| one.is_serving).min_by_key(|one| effective(shape, one))?;
    let queue = effective(shape, shortest);
    let burst = estimate_burst(shape, queue);
    let clients = shape.facts.asked.connections.unwrap_or(0);
    if burst.is_none() && pending(shape, shortest).is_some_and(|settings| settings >= clients) {
        // A restart is all that is missing, and another finding says so.
        return None;
    }
    let (severity, calculation) = match burst {
        Some((connections_per_second, connections)) => (
            Severity::Warning,
            Calculation::Burst { connections_per_second, pause_s: PAUSE_S, connections },
        ),
        None if clients > queue => (Severity::Note, Calculation::Reconnection { clients }),
        None => return None,
    };
    let connections_per_second = burst.map(|(per_second, _)| per_second);
    let problem = QueueProblem::BacklogShort { queue, connections_per_second, clients };
    let finding = Finding::new(problem, severity, LISTEN_2)
        .evidence(shortest.statement)
        .evidence_all(measured(shape, shortest))
        .evidence(calculation);
    Some(raise_both(shape, listens, finding))
}

fn overflows(shape: &Shape<'_>, listens: &[Listen<'_>]) -> Option<Finding> {
    let [overflows, drops] = ["ListenOverflows", "ListenDrops"]
        .map(|name| shape.facts.counters.get(name).copied().unwrap_or(0));
    if overflows == 0 {
        return None;
    }
    Some(
        Finding::warning(QueueProblem::ListenOverflows { overflows }, IP_SYSCTL)
            .evidence(HostEvidence::ListenCounters { overflows, drops })
            .evidence_all(listens.iter().filter_map(|one| measured(shape, one)))
            .change(
                "nstat -s ListenOverflows ListenDrops; sleep 10; nstat ListenOverflows ListenDrops",
            ),
    )
}

fn syn_queue(shape: &Shape<'_>) -> Option<Finding> {
    const DROPS: &str = "TCPReqQFullDrop";
    let dropped = shape.facts.counters.get(DROPS).copied()?;
    let cookies = shape.facts.sysctl("net.ipv4.tcp_syncookies")?;
    shape.facts.sysctl("net.ipv4.tcp_max_syn_backlog")?;
    if dropped == 0 && cookies != 0 {
        return None;
    }
    let severity = if dropped == 0 { Severity::Note } else { Severity::Warning };
    Some(
        Finding::new(QueueProblem::SynQueueDrops { dropped }, severity, LISTEN_2)
            .evidence(HostEvidence::Counter { name: DROPS, count: dropped })
            .evidence_all(shape.facts.live("net.ipv4.tcp_syncookies"))
            .evidence_all(shape.facts.live("net.ipv4.tcp_max_syn_backlog"))
            .change_sysctl("net.ipv4.tcp_syncookies", "1"),
    )
}

fn aborts(shape: &Shape<'_>) -> Option<Finding> {
    const ABORT: &str = "net.ipv4.tcp_abort_on_overflow";
    if shape.facts.sysctl(ABORT)? == 0 {
        return None;
    }
    Some(
        Finding::note(QueueProblem::AbortOnOverflow, IP_SYSCTL)
            .evidence_all(shape.facts.live(ABORT))
            .evidence_all(shape.facts.winning_line(ABORT))
            .change_sysctl(ABORT, "0"),
    )
}
