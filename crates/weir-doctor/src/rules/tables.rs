//! The kernel's own tables: tracked connections, TIME_WAIT, memory of TCP.

use super::numbers::{FEW_TIME_WAIT, USUAL_TIME_WAIT};
use super::rounded;
use super::shape::Shape;
use super::sources::{CONNTRACK, IP_SYSCTL};
use crate::evidence::{Calculation, HostEvidence};
use crate::finding::{Finding, Severity};
use crate::problem::TableProblem;
use crate::shell::quoted;

/// Page size in bytes, the unit of tcp_mem.
fn page() -> u64 {
    rustix::param::page_size() as u64
}

pub(super) fn rules(shape: &Shape<'_>, found: &mut Vec<Finding>) {
    found.extend(conntrack(shape));
    found.extend(tw_buckets(shape));
    found.extend(tcp_memory(shape));
}

fn conntrack(shape: &Shape<'_>) -> Option<Finding> {
    const HELD: &str = "net.netfilter.nf_conntrack_tcp_timeout_time_wait";
    let most = shape.facts.sysctl("net.netfilter.nf_conntrack_max")?;
    let entries = shape.facts.sysctl("net.netfilter.nf_conntrack_count")?;
    // Nothing is tracked until a rule needs it.
    if entries == 0 || most == 0 {
        return None;
    }
    let held_s = shape.facts.sysctl(HELD).or_else(|| shape.kernel_default(HELD))?;
    let open = shape.facts.asked.connections.unwrap_or(0) * shape.connections_per_client();
    let connections_per_second = shape.client_connections_per_second().unwrap_or(0.0)
        + shape.origin_connections_per_second().unwrap_or(0.0);
    let ended = (connections_per_second * held_s as f64) as u64;
    let needed = open.saturating_add(ended);
    let nearly = entries >= most - most / 10;
    if needed <= most && !nearly {
        return None;
    }
    let severity = if needed > most { Severity::Error } else { Severity::Warning };
    let problem = TableProblem::ConntrackFull { entries, most, needed };
    Some(
        Finding::new(problem, severity, CONNTRACK)
            .evidence_all(shape.facts.live("net.netfilter.nf_conntrack_count"))
            .evidence_all(shape.facts.live("net.netfilter.nf_conntrack_max"))
            .evidence(Calculation::TrackedConnections {
                open,
                connections_per_second,
                held_s,
                needed,
            })
            .change_sysctl(
                "net.netfilter.nf_conntrack_max",
                &rounded(needed.max(most + 1)).to_string(),
            ),
    )
}

fn tw_buckets(shape: &Shape<'_>) -> Option<Finding> {
    const BUCKETS: &str = "net.ipv4.tcp_max_tw_buckets";
    const OVERFLOWS: &str = "TCPTimeWaitOverflow";
    let sockets = shape.facts.sysctl(BUCKETS)?;
    let overflows = shape.facts.counters.get(OVERFLOWS).copied().unwrap_or(0);
    let line = shape.facts.winning_line(BUCKETS);
    if overflows == 0 && (line.is_none() || sockets >= FEW_TIME_WAIT) {
        return None;
    }
    let now = shape.facts.time_wait.map(|entries| HostEvidence::TimeWaitEntries { entries });
    Some(
        Finding::warning(TableProblem::TimeWaitCutShort { sockets }, IP_SYSCTL)
            .evidence_all(shape.facts.live(BUCKETS))
            .evidence_all(line)
            .evidence(HostEvidence::Counter { name: OVERFLOWS, count: overflows })
            .evidence_all(now)
            .change_sysctl(BUCKETS, USUAL_TIME_WAIT),
    )
}

fn tcp_memory(shape: &Shape<'_>) -> Option<Finding> {
    const MEMORY: &str = "net.ipv4.tcp_mem";
    let [_, _, pages] = shape.facts.sysctl_numbers(MEMORY)[..] else {
        return None;
    };
    let line = shape.facts.winning_line(MEMORY);
    let page_bytes = page();
    let clients = shape.facts.asked.connections.unwrap_or(0);
    // A page for each direction is the least that a connection with data in it holds.
    let needed = clients * shape.connections_per_client() * 2;
    let bytes = pages.saturating_mul(page_bytes);
    let is_more_than_all =
        line.is_some() && shape.facts.memory_bytes.is_some_and(|memory| bytes > memory);
    let severity = if needed > pages {
        Severity::Error
    } else if is_more_than_all {
        Severity::Warning
    } else {
        return None;
    };
    let finding =
        Finding::new(TableProblem::TcpMem { pages, needed, clients }, severity, IP_SYSCTL)
            .evidence_all(shape.facts.live(MEMORY))
            .evidence_all(line)
            .evidence(Calculation::TcpMemory { pages, page_bytes })
            .evidence_all(shape.facts.memory_bytes.map(|bytes| HostEvidence::Memory { bytes }));
    Some(match line {
        Some(line) => finding.change(format!(
            "sed -i '{}s/^/# /' {}   # and reboot: the kernel's own values come back",
            line.line,
            quoted(&line.file)
        )),
        None => finding,
    })
}
