//! State of the network and the hosts before the first trial, and what could not be measured of it.

use std::time::Duration;

use weir_model::record::{
    CardFacts, Carried, HeldUp, HostRecord, LinkRecord, RoundTrips, RunHeader, TripKind, Unmeasured,
};

use crate::number;
use crate::tree::{Block, Heading, Text, fact, fold};

/// Returns the facts. Empty for runs of older versions, which did not record them.
pub(super) fn blocks(header: &RunHeader) -> Vec<Block> {
    let Some(found) = &header.surroundings else {
        return Vec::new();
    };
    let mut facts: Vec<(String, Vec<Text>)> = found.links.iter().flat_map(link).collect();
    let several = found.hosts.len() > 1;
    for host in &found.hosts {
        facts.extend(about_host(host).into_iter().map(|(name, value)| {
            let name = if several { format!("{name}, {}", host.host) } else { name.to_owned() };
            fact(name, value)
        }));
    }
    let mut missing: Vec<_> = found.unmeasured.iter().map(|one| missing("", one)).collect();
    for host in &found.hosts {
        let host_name = if several { &*host.host } else { "" };
        missing.extend(host.facts.unmeasured.iter().map(|one| self::missing(host_name, one)));
    }
    let mut blocks = Vec::new();
    if !facts.is_empty() || !missing.is_empty() {
        blocks.push(Block::Heading(Heading::part("Before the first trial")));
    }
    if !facts.is_empty() {
        blocks.push(Block::Facts(facts));
    }
    if !missing.is_empty() {
        let summary = "Not known, and why".to_owned();
        blocks.push(fold(summary, vec![Block::Facts(missing)]));
    }
    blocks
}

fn missing(host: &str, one: &Unmeasured) -> (String, Vec<Text>) {
    match host {
        "" => fact(&*one.what, &*one.why),
        host => fact(format!("{}, {host}", one.what), &*one.why),
    }
}

/// Describes a link and its measured throughput.
fn link(link: &LinkRecord) -> Vec<(String, Vec<Text>)> {
    let from = match &link.host {
        Some(host) => format!("{} on {host}", link.from),
        None => link.from.to_string(),
    };
    let to = link.to.to_string();
    let mut path = vec![trips(&link.trips)];
    path.extend(link.mtu.map(|mtu| format!("path MTU {mtu}")));
    path.push(format!("at {}", link.peer));
    let directions = [(link.forth, &from, &to), (link.back, &to, &from)];
    let carried = directions.into_iter().filter_map(|(carried, from, to)| {
        Some(fact(format!("one connection, {from} to {to}"), bytes(&carried?)))
    });
    let path = fact(format!("{from} to {to}"), path.join(", "));
    std::iter::once(path).chain(carried).collect()
}

fn trips(trips: &RoundTrips) -> String {
    let kind = match trips.by {
        TripKind::Echo => "round trip",
        TripKind::Connect => "connect",
    };
    let [p50, p99] = [trips.p50_ns, trips.p99_ns].map(|ns| number::time(ns as f64));
    format!("{kind} p50 {p50}, p99 {p99} of {}", number::count(trips.count.into()))
}

fn bytes(carried: &Carried) -> String {
    let Carried { bytes_per_s, cpus } = *carried;
    format!("{} Gbit/s, took {cpus:.2} CPUs", number::gigabits(bytes_per_s))
}

/// Returns the facts about a host, with their names.
fn about_host(host: &HostRecord) -> Vec<(&'static str, String)> {
    let facts = &host.facts;
    let mut about = Vec::new();
    if let Some((ahead, error)) = host.clock {
        let side = if ahead < 0 { "behind" } else { "ahead of" };
        let [ahead, error] = [ahead.unsigned_abs(), error].map(|ns| number::time(ns as f64));
        about.push(("clock", format!("{ahead} {side} the generator's, ± {error}")));
    }
    let governors: Vec<String> =
        facts.governors.iter().map(|(name, cpus)| format!("{name} on CPU {cpus}")).collect();
    about.push(("frequency governor", governors.join(", ")));
    let cores: Vec<String> = facts.siblings.iter().map(|core| format!("CPU {core}")).collect();
    about.push(("threads of one core", cores.join("; ")));
    let nodes: Vec<String> =
        facts.nodes.iter().map(|(node, cpus)| format!("{node}: CPU {cpus}")).collect();
    about.push(("NUMA nodes", nodes.join("; ")));
    about.extend(facts.cards.iter().map(|one| ("network card", card(one))));
    let held_up = [
        ("proxy", facts.held_up.proxy),
        ("generator", facts.held_up.generator),
        ("origin", facts.held_up.origin),
    ]
    .into_iter()
    .filter_map(|(role, held)| {
        let HeldUp { late_ns, others_ns, .. } = held?;
        Some(format!("{role} {}", number::time(late_ns.saturating_add(others_ns) as f64)))
    });
    let held_up: Vec<String> = held_up.collect();
    if !held_up.is_empty() {
        let watched = number::length(Duration::from_nanos(facts.watched_ns));
        about.push(("CPUs held up", format!("{} in {watched}", held_up.join(", "))));
    }
    about.retain(|(_, value)| !value.is_empty());
    about
}

fn card(card: &CardFacts) -> String {
    let (receive, send) = card.queues;
    let mut parts = vec![format!(
        "{}, {} to receive, {send} to send",
        card.name,
        number::plural(receive.into(), "queue")
    )];
    let served = card.interrupts.as_ref();
    parts.extend(served.map(|cpus| format!("IRQs go to CPU {cpus}")));
    parts.extend(card.spreads.then(|| "packets are passed on (RPS)".to_owned()));
    parts.extend(card.node.map(|node| format!("at NUMA node {node}")));
    parts.join(", ")
}
