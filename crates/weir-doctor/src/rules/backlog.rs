//! Queues of listeners: the length passed to listen(2), the length that the kernel allows, and overflows counted so
//! far.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use super::numbers::{LONGEST_QUEUE, PAUSE_S};
use super::shape::Shape;
use super::sources::{IP_SYSCTL, LISTEN, LISTEN_2};
use super::{figure, rate, rounded};
use crate::configuration::Statement;
use crate::facts::{Listener, SysctlLine};
use crate::finding::{Finding, Severity, Then};

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

fn queue(listener: Listener) -> String {
    format!(
        "{} now: {} waiting, room for {} (sock_diag)",
        listener.address,
        figure(u64::from(listener.waiting)),
        figure(u64::from(listener.backlog))
    )
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
    let most = above.iter().map(|one| one.asked).max()?;
    let lines = shape.facts.winning_line("net.core.somaxconn");
    Some(
        Finding::text_warning("backlog-capped",
            format!(
                "a backlog of {} is capped at {} by net.core.somaxconn",
                figure(most),
                figure(somaxconn)
            ),
        )
        .evidence_all(above.iter().map(|one| if one.is_set {


one.statement.evidence()

} else {


format!("{} (backlog is {} unless set)", one.statement.evidence(), one.asked)

}))
        .evidence(format!("net.core.somaxconn = {somaxconn}"))
        .evidence_all(lines.map(SysctlLine::evidence))
        .evidence_all(above.iter().filter_map(|one| measured(shape, one)).map(queue))
        .why(
            "The accept queue holds the smaller of listen(2)'s backlog and somaxconn as it was when \
             listen(2) was called. A connection that finds it full is dropped, and its client tries \
             again after 1 s, 3 s, 7 s: a step in the response time that does not come from a slow proxy.",
            LISTEN_2,
        )
        .change_sysctl(
            "net.core.somaxconn",
            &advised(shape, listens).max(most).to_string(),
        )
        .then(Then::Restart),
    )
}

/// Reports a somaxconn that was raised by hand while no listener requests as much.
fn inert(shape: &Shape<'_>, listens: &[Listen<'_>]) -> Option<Finding> {
    let somaxconn = shape.facts.sysctl("net.core.somaxconn")?;
    let line = shape.facts.winning_line("net.core.somaxconn")?;
    let most = listens.iter().max_by_key(|one| one.asked)?;
    if somaxconn <= most.asked {
        return None;
    }
    let unset = shape.nginx_number("backlog")?;
    Some(
        Finding::text_warning("somaxconn-inert",
            format!(
                "net.core.somaxconn {} does nothing: nginx listens with a backlog of {}",
                figure(somaxconn),
                figure(most.asked)
            ),
        )
        .evidence(line.evidence())
        .evidence(if most.is_set {


most.statement.evidence()

} else {


format!(
                "{}: backlog is not set: {}",
                most.statement.evidence(),
                most.asked
            )

})
        .evidence_all(measured(shape, most).map(queue))
        .why(
            format!(
                "The accept queue holds the smaller of the two. nginx asks for {unset} on Linux unless \
                 its listen directive says backlog=, so raising somaxconn alone changes nothing above \
                 {unset}."
            ),
            LISTEN,
        )
        .change_nginx(raise(listens, advised(shape, listens))),
    )
}

/// Reports a listener that was opened under other settings.
fn not_in_force(shape: &Shape<'_>, listens: &[Listen<'_>]) -> Option<Finding> {
    let somaxconn = shape.facts.sysctl("net.core.somaxconn")?;
    let (listen, settings) = listens.iter().find_map(|one| Some((one, pending(shape, one)?)))?;
    Some(
        Finding::text_warning("backlog-not-in-force",
            format!(
                "the running nginx still has room for {} connections, and its settings now say {}: restart it",
                figure(effective(shape, listen)),
                figure(settings)
            ),
        )
        .evidence(listen.statement.evidence())
        .evidence(format!("net.core.somaxconn = {somaxconn}"))
        .evidence_all(measured(shape, listen).map(queue))
        .why(
            "listen(2) was called before the settings were changed, and a queue keeps the size that \
             it was opened with.",
            LISTEN_2,
        )
        .then(Then::Restart),
    )
}

fn short(shape: &Shape<'_>, listens: &[Listen<'_>]) -> Option<Finding> {
    let shortest =
        listens.iter().filter(|one| one.is_serving).min_by_key(|one| effective(shape, one))?;
    let room = effective(shape, shortest);
    let wanted = estimate_burst(shape, room);
    let clients = shape.facts.asked.connections.unwrap_or(0);
    if wanted.is_none() && pending(shape, shortest).is_some_and(|settings| settings >= clients) {
        // A restart is all that is missing, and another finding says so.
        return None;
    }
    let (severity, title, reckoning) = match (wanted, shape.facts.asked.connections) {
        (Some((per_second, burst)), _) => (
            Severity::Warning,
            format!(
                "the accept queue of {} is full after {:.0} ms at {} new connections/s",
                figure(room),
                room as f64 / per_second * 1e3,
                rate(per_second)
            ),
            format!(
                "{} connections/s × {PAUSE_S} s without an accept = {}",
                rate(per_second),
                figure(burst)
            ),
        ),
        (None, Some(clients)) if clients > room => (
            Severity::Note,
            format!(
                "{} clients that connect at once find room for {}",
                figure(clients),
                figure(room)
            ),
            format!("{} clients, for example when all reconnect after a restart", figure(clients)),
        ),
        _ => return None,
    };
    let finding = Finding::text_new("backlog-short", severity, title)
        .evidence(shortest.statement.evidence())
        .evidence_all(measured(shape, shortest).map(queue))
        .evidence(reckoning)
        .why(
            "Connections that come while no worker accepts wait in the accept queue; those beyond it \
             are dropped, and their clients try again after 1 s. It holds the smaller of backlog= and \
             net.core.somaxconn: raise both. A backlog bridges a burst; it does not make a worker \
             accept faster.",
            LISTEN_2,
        );
    Some(raise_both(shape, listens, finding))
}

fn overflows(shape: &Shape<'_>, listens: &[Listen<'_>]) -> Option<Finding> {
    let [overflows, drops] = ["ListenOverflows", "ListenDrops"]
        .map(|name| shape.facts.counters.get(name).copied().unwrap_or(0));
    if overflows == 0 {
        return None;
    }
    Some(
        Finding::text_warning("listen-overflows",
            format!(
                "{} connections have found an accept queue full since boot",
                figure(overflows)
            ),
        )
        .evidence(format!("TcpExt: ListenOverflows {overflows}, ListenDrops {drops}"))
        .evidence_all(listens.iter().filter_map(|one| measured(shape, one)).map(queue))
        .why(
            "The counter covers all listeners in this network namespace since boot; check whether it still grows. Each such client waits at least 1 s for its next SYN. \
             If the workers' CPUs are busy, add workers before you make the queue longer.",
            IP_SYSCTL,
        )
        .change("nstat -s ListenOverflows ListenDrops; sleep 10; nstat ListenOverflows ListenDrops"),
    )
}

fn syn_queue(shape: &Shape<'_>) -> Option<Finding> {
    let dropped = shape.facts.counters.get("TCPReqQFullDrop").copied()?;
    let cookies = shape.facts.sysctl("net.ipv4.tcp_syncookies")?;
    let backlog = shape.facts.sysctl("net.ipv4.tcp_max_syn_backlog")?;
    if dropped == 0 && cookies != 0 {
        return None;
    }
    let severity = match dropped {
        0 => Severity::Note,
        _ => Severity::Warning,
    };
    Some(
        Finding::text_new(
            "syn-queue-drops",
            severity,
            match dropped {
                0 => "SYN cookies are off: a full SYN queue drops connections".to_owned(),
                _ => format!("{} SYNs have been dropped by a full SYN queue", figure(dropped)),
            },
        )
        .evidence(format!("TcpExt: TCPReqQFullDrop {dropped}"))
        .evidence(format!("net.ipv4.tcp_syncookies = {cookies}"))
        .evidence(format!("net.ipv4.tcp_max_syn_backlog = {backlog}"))
        .why(
            "Without SYN cookies, connections that are being opened are bounded by \
             tcp_max_syn_backlog for each listener. With them a full queue is answered by cookies, \
             and nobody is turned away.",
            LISTEN_2,
        )
        .change_sysctl("net.ipv4.tcp_syncookies", "1"),
    )
}

fn aborts(shape: &Shape<'_>) -> Option<Finding> {
    if shape.facts.sysctl("net.ipv4.tcp_abort_on_overflow")? == 0 {
        return None;
    }
    Some(
        Finding::text_note("abort-on-overflow",
            "clients that find the accept queue full are reset at once",
        )
        .evidence("net.ipv4.tcp_abort_on_overflow = 1")
        .evidence_all(shape.facts.winning_evidence("net.ipv4.tcp_abort_on_overflow"))
        .why(
            "By default such a client tries again and gets through once a burst is over; with this it \
             sees \"Connection reset\".",
            IP_SYSCTL,
        )
        .change_sysctl("net.ipv4.tcp_abort_on_overflow", "0"),
    )
}
