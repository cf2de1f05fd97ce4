//! Findings of `weir doctor`: title, mechanism and evidence.

mod advice;
mod cluster;
mod cpus;
mod descriptors;
mod evidence;
mod http;
mod ports;
mod queues;
mod sysctl_files;
mod tables;

use weir_doctor::{Examination, LoadDemand, Problem, Reading, Room, Severity};

use crate::numbers::{count, counted, rounded_rate};

pub use evidence::evidence;

/// Returns the summary of a problem in one line.
pub fn title(problem: &Problem) -> String {
    match problem {
        Problem::Descriptor(problem) => descriptors::title(problem),
        Problem::Port(problem) => ports::title(problem),
        Problem::Queue(problem) => queues::title(problem),
        Problem::Table(problem) => tables::title(problem),
        Problem::Http(problem) => http::title(problem),
        Problem::Cpu(problem) => cpus::title(problem),
        Problem::Advice(problem) => advice::title(problem),
        Problem::SysctlFile(problem) => sysctl_files::title(problem),
        Problem::Cluster(problem) => cluster::title(problem),
    }
}

/// Returns the mechanism behind a problem.
pub fn mechanism(problem: &Problem) -> String {
    match problem {
        Problem::Descriptor(problem) => descriptors::mechanism(problem).to_owned(),
        Problem::Port(problem) => ports::mechanism(problem).to_owned(),
        Problem::Queue(problem) => queues::mechanism(problem),
        Problem::Table(problem) => tables::mechanism(problem).to_owned(),
        Problem::Http(problem) => http::mechanism(problem).to_owned(),
        Problem::Cpu(problem) => cpus::mechanism(problem).to_owned(),
        Problem::Advice(problem) => advice::mechanism(problem).to_owned(),
        Problem::SysctlFile(problem) => sysctl_files::mechanism(problem).to_owned(),
        Problem::Cluster(problem) => cluster::mechanism(problem).to_owned(),
    }
}

/// Returns the load to judge by: `1,000 connections, 20,000 requests/s`.
pub fn demand(asked: LoadDemand) -> String {
    let mut parts = Vec::new();
    if let Some(connections) = asked.connections {
        parts.push(counted(connections, "connection"));
    }
    if let Some(rate) = asked.rate {
        parts.push(format!("{} requests/s", rounded_rate(rate)));
    }
    if let Some(rate) = asked.connections_per_second {
        parts.push(format!("{} new connections/s", rounded_rate(rate)));
    }
    if parts.is_empty() {
        "none given; add --connections and --rate to check the settings for a load".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Returns whether the settings carry the load, and the number of findings of each severity.
pub fn verdict(examination: &Examination) -> String {
    let counts: Vec<String> =
        [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")]
            .into_iter()
            .map(|(severity, word)| (examination.count(severity), word))
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| counted(number as u64, word))
            .collect();
    let judged = match (examination.has_errors(), examination.asked.is_some()) {
        (true, _) => "these settings cannot carry it",
        (false, true) => "none of the settings that were checked would limit it",
        (false, false) => "no load given",
    };
    if counts.is_empty() {
        format!("{judged}; nothing to report")
    } else {
        format!("{judged}: {}", counts.join(", "))
    }
}

/// Returns a capacity that the settings allow, with its calculation.
pub fn room(room: &Room) -> String {
    match room {
        Room::Clients { amount, workers, connections, is_capped, connections_per_client } => {
            let capped = if *is_capped { ", capped by the descriptors" } else { "" };
            format!(
                "{} clients at once: {} × {} (worker_connections{capped}) / \
                 {connections_per_client} per client",
                count(*amount),
                counted(*workers, "worker"),
                count(*connections)
            )
        }
        Room::OriginConnections { amount, ports, origins, held_s } => format!(
            "{} new connections to origin servers per second: {} × {} / {held_s} s in TIME_WAIT",
            count(*amount),
            counted(*ports, "local port"),
            counted(*origins, "origin address")
        ),
        Room::TrackedConnections { amount, table } => {
            let connections = count(*amount);
            format!("{connections} tracked connections on a node: {}", cluster::table(table))
        }
    }
}

/// Returns a source that was read.
pub fn reading(reading: &Reading) -> String {
    match reading {
        Reading::Processes { master, workers } => {
            format!("nginx: master process {master}, {}", counted(*workers as u64, "worker"))
        }
        Reading::Configuration { file, files } => {
            format!("{file} ({})", counted(*files as u64, "file"))
        }
        Reading::Version { program, version } => format!("{program} -V: {version}"),
        Reading::Network => "the proxy's own network namespace".to_owned(),
        Reading::Sysctls { count } => format!("{count} sysctls"),
        Reading::Counters => "TcpExt counters since boot".to_owned(),
        Reading::Listeners => "listeners (sock_diag)".to_owned(),
        Reading::ControlGroups => "control group limits".to_owned(),
        Reading::SysctlFiles { assignments } => {
            format!("sysctl files, {}", counted(*assignments as u64, "assignment"))
        }
        Reading::LimitsConf => "limits.conf files".to_owned(),
        Reading::Unit { name } => format!("the unit {name}"),
        Reading::Pods { namespace, context, pods } => {
            let pods = counted(*pods as u64, "pod");
            format!("namespace {namespace} of context {context}: {pods}")
        }
        Reading::Nodes { names } => format!("nodes: {}", names.join(", ")),
    }
}
