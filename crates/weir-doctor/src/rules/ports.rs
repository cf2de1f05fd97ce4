//! Local ports for connections to origin servers. The addresses and ports of both ends form a tuple, which TIME_WAIT
//! keeps occupied.

use std::collections::BTreeSet;

use super::numbers::{KEPT, REUSED_AFTER_S, TIME_WAIT_S, WIDEST};
use super::shape::{BEFORE_KEEPALIVE, LocalPorts, Pass, Shape, field, is_upgrade, variable};
use super::sources::IP_SYSCTL;
use crate::configuration::Statement;
use crate::evidence::{Calculation, HostEvidence};
use crate::finding::{Finding, Room};
use crate::problem::PortProblem;

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
    let held_s = find_held_seconds(shape, &unkept);
    let amount = ((ports * origins) as f64 / held_s) as u64;
    Some(Room::OriginConnections { amount, ports, origins, held_s })
}

/// Returns the number of origin addresses of the pass that has the fewest: all requests may go there.
fn fewest_origins(passes: &[&Pass<'_>]) -> Option<u64> {
    passes.iter().map(|pass| pass.origins.len() as u64).filter(|count| *count > 0).min()
}

/// Returns the seconds for which a tuple is occupied after its connection has ended.
fn find_held_seconds(shape: &Shape<'_>, passes: &[&Pass<'_>]) -> f64 {
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
    let held_s = find_held_seconds(shape, &unkept);
    let (demand, tuples) = (per_second * held_s, ports.count() * origins);
    if demand <= tuples as f64 {
        return None;
    }
    let problem = PortProblem::OriginPortsRunOut {
        requests_per_second: per_second,
        connections_per_second: (tuples as f64 / held_s) as u64,
    };
    let finding = Finding::error(problem, IP_SYSCTL)
        .evidence_all(unkept.iter().map(|pass| pass.placed.statement))
        .evidence(Calculation::OccupiedTuples {
            connections_per_second: per_second,
            held_s,
            tuples: demand as u64,
        })
        .evidence(Calculation::Tuples { ports: ports.figures(), origins, tuples })
        .evidence_all(shape.facts.live("net.ipv4.tcp_tw_reuse"));
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
    let remark = "behind this `map`, whose variable is used elsewhere too: \
                  a `map` of its own for `Connection`, which has `\"\" \"\"` instead";
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
        Finding::error(PortProblem::OriginPortsTooFew { clients, tuples }, IP_SYSCTL)
            .evidence(Calculation::PortsForOrigins { ports: ports.figures(), origins })
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
    // Writing to it replaces what was reserved before.
    let reserved: Vec<String> = shape
        .facts
        .sysctls
        .get("net.ipv4.ip_local_reserved_ports")
        .filter(|list| !list.is_empty())
        .cloned()
        .into_iter()
        .chain(inside.iter().map(u64::to_string))
        .collect();
    let exposed = listens
        .iter()
        .filter(|listen| listen.port.is_some_and(|port| inside.contains(&u64::from(port))));
    let problem = PortProblem::ListenPortInRange { ports: inside.iter().copied().collect() };
    Some(
        Finding::warning(problem, IP_SYSCTL)
            .evidence_all(exposed.map(|listen| listen.statement))
            .evidence(HostEvidence::UnreservedPorts { low: ports.low, high: ports.high })
            .change_sysctl("net.ipv4.ip_local_reserved_ports", &reserved.join(",")),
    )
}
