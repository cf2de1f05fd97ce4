//! Local ports for connections to origin servers. The addresses and ports of both ends form a tuple, which TIME_WAIT
//! keeps occupied.

use std::collections::BTreeSet;

use super::numbers::{KEPT, REUSED_AFTER_S, TIME_WAIT_S, WIDEST};
use super::shape::{BEFORE_KEEPALIVE, LocalPorts, Pass, Shape, field, is_upgrade, variable};
use super::sources::IP_SYSCTL;
use super::{counted, figure, rate};
use crate::configuration::Statement;
use crate::finding::{Finding, Room};

pub(super) fn rules(shape: &Shape<'_>, found: &mut Vec<Finding>) {
    let Some(ports) = shape.local_ports() else {
        return;
    };
    found.extend(time_wait(shape, &ports));
    found.extend(at_once(shape, &ports));
    found.extend(listening(shape, &ports));
}

/// Returns the rate of new connections to origin servers for which TIME_WAIT leaves tuples free.
pub(super) fn room(shape: &Shape<'_>) -> Option<Room> {
    let unkept = shape.unkept();
    let origins = fewest_origins(&unkept)?;
    let ports = shape.local_ports()?.count();
    let held_s = held_s(shape, &unkept);
    let amount = ((ports * origins) as f64 / held_s) as u64;
    Some(Room::OriginConnections { amount, ports, origins, held_s })
}

/// Returns the number of origin addresses of the pass that has the fewest: all requests may go there.
fn fewest_origins(passes: &[&Pass<'_>]) -> Option<u64> {
    passes.iter().map(|pass| pass.origins.len() as u64).filter(|count| *count > 0).min()
}

/// Seconds for which a tuple is occupied after its connection has ended.
fn held_s(shape: &Shape<'_>, passes: &[&Pass<'_>]) -> f64 {
    let timestamps = shape.facts.sysctl("net.ipv4.tcp_timestamps") != Some(0);
    let reused = match shape.facts.sysctl("net.ipv4.tcp_tw_reuse") {
        Some(1) => true,
        Some(2) => passes.iter().all(|pass| pass.is_loopback()),
        _ => false,
    };
    if reused && timestamps { REUSED_AFTER_S } else { TIME_WAIT_S }
}

fn time_wait(shape: &Shape<'_>, ports: &LocalPorts) -> Option<Finding> {
    let per_second = shape.origin_connections_per_second()?;
    let unkept = shape.unkept();
    let origins = fewest_origins(&unkept)?;
    let held = held_s(shape, &unkept);
    let (demand, tuples) = (per_second * held, ports.count() * origins);
    if demand <= tuples as f64 {
        return None;
    }
    let reuse = shape.facts.sysctls.get("net.ipv4.tcp_tw_reuse");
    let title = format!(
        "{} requests/s without keepalive to the origin run out of ports at {}/s",
        rate(per_second),
        figure((tuples as f64 / held) as u64)
    );
    let mut finding = Finding::text_error("origin-ports-run-out", title)
        .evidence_all(unkept.iter().map(|pass| pass.placed.statement.evidence()))
        .evidence(format!(
            "{}/s × {held} s in TIME_WAIT = {} tuples",
            rate(per_second),
            figure(demand as u64)
        ))
        .evidence(format!(
            "{} (net.ipv4.ip_local_port_range = {} {}) × {} = {} tuples",
            counted(ports.count(), "local port"),
            ports.low,
            ports.high,
            counted(origins, "origin address"),
            figure(tuples)
        ));
    if let Some(reuse) = reuse {
        finding = finding.evidence(format!("net.ipv4.tcp_tw_reuse = {reuse}"));
    }
    finding = finding.why(
        "The end that closes first keeps the pair of addresses and ports in TIME_WAIT for 60 s; this calculation assumes that it is nginx. The 60 s are fixed in Linux: tcp_fin_timeout is about \
         FIN_WAIT_2 and does not shorten them. With all tuples taken connect(2) fails: \"Cannot assign \
         requested address\". Kept connections avoid this; tcp_tw_reuse 1 lets outgoing connections take \
         over tuples after a second (2, the default, does so on loopback alone); a wider range and \
         more origin addresses help in proportion.",
        IP_SYSCTL,
    );
    Some(match keep(&unkept) {
        Some(commands) => finding.change_nginx(commands),
        None => finding
            .change_sysctl("net.ipv4.tcp_tw_reuse", "1")
            .change_sysctl("net.ipv4.ip_local_port_range", WIDEST),
    })
}

/// Returns commands that make the passes without kept connections keep them; `None` if one of them has no upstream
/// block to edit.
pub(super) fn keep(unkept: &[&Pass<'_>]) -> Option<Vec<String>> {
    let mut commands = Vec::new();
    let mut upstreams = BTreeSet::new();
    let mut locations = BTreeSet::new();
    for pass in unkept {
        let upstream = pass.upstream?;
        let statements = upstream.block.as_deref().unwrap_or_default();
        let set = statements.iter().find(|one| one.name == "keepalive");
        let last = (statements.iter()).rfind(|one| BEFORE_KEEPALIVE.contains(&&*one.name))?;
        if upstreams.insert(upstream.words()) && set.is_none_or(|set| set.number() == Some(0)) {
            commands.push(match set {
                Some(set) => set.replace_with(KEPT),
                None => last.follow_with(KEPT),
            });
        } else if let Some((set, method)) = pass.replaced_keepalive() {
            commands.extend([set.left_out(), method.follow_with(&set.written())]);
        }
        // What two of a location's places lack, one of them says for both.
        let location = pass.placed.within.iter().rfind(|it| it.name == "location");
        if location.is_some_and(|it| !locations.insert((it.file.clone(), it.line, it.words()))) {
            continue;
        }
        for command in speak_1_1(pass) {
            // Several locations may take the same line from their server.
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
    }
    Some(commands)
}

/// Returns the command that makes the `map` entry give an empty value instead of `close` to requests without an
/// upgrade. If the variable has other uses, which the edit would change, returns a remark instead.
pub(super) fn not_closing(pass: &Pass<'_>) -> Option<String> {
    let entry = pass.closes?;
    let remark = "behind this `map`, whose variable is used elsewhere too: a `map` of its own for `Connection`, which has `\"\" \"\"` instead";
    let value = field(&pass.placed, "connection")?.arguments.get(1)?;
    let (name, _) = variable(value.trim_start_matches('$'));
    Some(if uses_elsewhere(pass.placed.main, name) {
        format!("# {}:{}: {remark}", entry.file, entry.line)
    } else if entry.name.is_empty() {
        entry.edited("\"*[Cc]lose\"* *;/\"\";", "becomes `\"\" \"\";`")
    } else {
        entry.precede_with("\"\" \"\"")
    })
}

/// Returns true if a variable is used anywhere but in `Connection` headers and in the `map` that defines it.
fn uses_elsewhere(statements: &[Statement], name: &str) -> bool {
    statements.iter().any(|one| {
        let is_own = match &*one.name {
            "proxy_set_header" => {
                one.argument().is_some_and(|it| it.eq_ignore_ascii_case("connection"))
            }
            "map" => {
                one.arguments.get(1).is_some_and(|word| uses_variable(word, name))
                    && !one.arguments.first().is_some_and(|word| uses_variable(word, name))
            }
            _ => false,
        };
        (!is_own && one.arguments.iter().any(|word| uses_variable(word, name)))
            || uses_elsewhere(&one.entries, name)
            || uses_elsewhere(one.block.as_deref().unwrap_or_default(), name)
    })
}

fn uses_variable(word: &str, name: &str) -> bool {
    word.split('$').skip(1).any(|part| variable(part).0 == name)
}

/// Returns commands that make a location speak HTTP/1.1 with its origin servers and send no `Connection` header of its
/// own.
pub(super) fn speak_1_1(pass: &Pass<'_>) -> Vec<String> {
    let placed = &pass.placed;
    let mut commands = Vec::new();
    let mut missing = Vec::new();
    match placed.inherited("proxy_http_version").first() {
        Some(set) if set.argument() == Some("1.0") => {
            commands.push(set.replace_with("proxy_http_version 1.1"));
        }
        Some(_) => {}
        None => missing.push("proxy_http_version 1.1".to_owned()),
    }
    let fields = placed.inherited("proxy_set_header");
    match field(placed, "connection") {
        // Others of the map, which ask for an upgrade, stay as they are.
        Some(_) if pass.closes.is_some() => commands.extend(not_closing(pass)),
        Some(set)
            if set.arguments.get(1).is_some_and(|value| value.is_empty() || is_upgrade(value)) => {}
        Some(set) => commands.push(set.replace_with("proxy_set_header Connection \"\"")),
        // A field that is set in a location hides all that its server sets, so it goes beside them.
        None => match fields.first() {
            Some(other) => {
                commands.push(other.precede_with("proxy_set_header Connection \"\""));
            }
            None => missing.push("proxy_set_header Connection \"\"".to_owned()),
        },
    }
    if !missing.is_empty() {
        commands.push(placed.in_location().precede_with(&missing.join("; ")));
    }
    commands
}

/// Reports too few tuples for all connections open at once: kept connections occupy one each, too.
fn at_once(shape: &Shape<'_>, ports: &LocalPorts) -> Option<Finding> {
    let clients = shape.facts.asked.connections?;
    let passes: Vec<&Pass<'_>> = shape.passes.iter().collect();
    let origins = fewest_origins(&passes)?;
    let tuples = ports.count() * origins;
    if clients <= tuples {
        return None;
    }
    Some(
        Finding::text_error("origin-ports-too-few",
            format!(
                "{} clients may need as many connections to the origin; there are {} ports for them",
                figure(clients),
                figure(tuples)
            ),
        )
        .evidence(format!(
            "net.ipv4.ip_local_port_range = {} {}: {} × {}",
            ports.low,
            ports.high,
            counted(ports.count(), "local port"),
            counted(origins, "origin address")
        ))
        .why(
            "A connection is identified by the addresses and ports of both ends. From one address to one origin address there can be no more connections than local ports. If all clients have a \
             request in flight at once, each has a connection to an origin server.",
            IP_SYSCTL,
        )
        .change_sysctl("net.ipv4.ip_local_port_range", WIDEST),
    )
}

/// Reports a port that nginx listens at and that the kernel may give to an outgoing connection.
fn listening(shape: &Shape<'_>, ports: &LocalPorts) -> Option<Finding> {
    let listens = super::backlog::find_listens(shape);
    let inside: BTreeSet<u64> = listens
        .iter()
        .filter_map(|listen| Some(u64::from(listen.port?)))
        .filter(|&port| ports.contains(port))
        .collect();
    inside.first()?;
    let list: Vec<String> = inside.iter().map(u64::to_string).collect();
    // Writing to it replaces what was reserved before.
    let reserved: Vec<String> = shape
        .facts
        .sysctls
        .get("net.ipv4.ip_local_reserved_ports")
        .filter(|list| !list.is_empty())
        .cloned()
        .into_iter()
        .chain(list.clone())
        .collect();
    Some(
        Finding::text_warning("listen-port-in-range",
            format!(
                "port {} may be taken by an outgoing connection while nginx restarts",
                list.join(", ")
            ),
        )
        .evidence_all(
            listens
                .iter()
                .filter(|listen| {
        listen.port.is_some_and(|port| inside.contains(&u64::from(port)))
    })
                .map(|listen| listen.statement.evidence()),
        )
        .evidence(format!(
            "net.ipv4.ip_local_port_range = {} {}, and the port is not reserved",
            ports.low, ports.high
        ))
        .why(
            "The kernel gives ports of the range to outgoing connections. If one of them has a listener's port at the moment of a restart, bind(2) fails: \"Address already in use\".",
            IP_SYSCTL,
        )
        .change_sysctl("net.ipv4.ip_local_reserved_ports", &reserved.join(",")),
    )
}
