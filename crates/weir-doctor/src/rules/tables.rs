//! The kernel's own tables: tracked connections, TIME_WAIT, memory of TCP.

use super::numbers::{FEW_TIME_WAIT, USUAL_TIME_WAIT};
use super::shape::Shape;
use super::sources::{CONNTRACK, IP_SYSCTL};
use super::{figure, rate, rounded};
use crate::commands::quoted;
use crate::facts::SysctlLine;
use crate::finding::{Finding, Severity};

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
    let count = shape.facts.sysctl("net.netfilter.nf_conntrack_count")?;
    // Nothing is tracked until a rule needs it.
    if count == 0 || most == 0 {
        return None;
    }
    let held = shape.facts.sysctl(HELD).or_else(|| shape.kernel_default(HELD))?;
    let open = shape.facts.asked.connections.unwrap_or(0) * shape.connections_per_client();
    let per_second = shape.client_connections_per_second().unwrap_or(0.0)
        + shape.origin_connections_per_second().unwrap_or(0.0);
    let ended = (per_second * held as f64) as u64;
    let needed = open.saturating_add(ended);
    let nearly = count >= most - most / 10;
    if needed <= most && !nearly {
        return None;
    }
    let (severity, title) = if needed > most {
        (
            Severity::Error,
            format!(
                "connection tracking has room for {} connections and would need {}",
                figure(most),
                figure(needed)
            ),
        )
    } else {
        (
            Severity::Warning,
            format!("connection tracking is nearly full: {} of {}", figure(count), figure(most)),
        )
    };
    Some(
        Finding::text_new("conntrack-full", severity, title)
            .evidence(format!("net.netfilter.nf_conntrack_count = {count}"))
            .evidence(format!("net.netfilter.nf_conntrack_max = {most}"))
            .evidence(format!(
                "{} open + {} new/s × {held} s in TIME_WAIT = {}",
                figure(open),
                rate(per_second),
                figure(needed)
            ))
            .why(
                "Every tracked connection has an entry, closed ones for \
                 nf_conntrack_tcp_timeout_time_wait seconds more. With the table full, packets of new \
                 connections are dropped: \"nf_conntrack: table full, dropping packet\". The value is \
                 the initial network namespace's to change.",
                CONNTRACK,
            )
            .change_sysctl(
                "net.netfilter.nf_conntrack_max",
                &rounded(needed.max(most + 1)).to_string(),
            ),
    )
}

fn tw_buckets(shape: &Shape<'_>) -> Option<Finding> {
    let most = shape.facts.sysctl("net.ipv4.tcp_max_tw_buckets")?;
    let overflows = shape.facts.counters.get("TCPTimeWaitOverflow").copied().unwrap_or(0);
    let line = shape.facts.winning_line("net.ipv4.tcp_max_tw_buckets");
    if overflows == 0 && (line.is_none() || most >= FEW_TIME_WAIT) {
        return None;
    }
    Some(
        Finding::text_warning("time-wait-cut-short",
            format!("TIME_WAIT is cut short above {} sockets", figure(most)),
        )
        .evidence(format!("net.ipv4.tcp_max_tw_buckets = {most}"))
        .evidence_all(line.map(SysctlLine::evidence))
        .evidence(format!("TcpExt: TCPTimeWaitOverflow {overflows}"))
        .evidence_all(shape.facts.time_wait.map(|now| format!("{} in TIME_WAIT now", figure(now))))
        .why(
            "Sockets beyond it are destroyed at once. Late segments of an old connection can then reach a new one, which TIME_WAIT exists to prevent. The kernel's documentation says \
             not to lower it.",
            IP_SYSCTL,
        )
        .change_sysctl("net.ipv4.tcp_max_tw_buckets", USUAL_TIME_WAIT),
    )
}

fn tcp_memory(shape: &Shape<'_>) -> Option<Finding> {
    let [_, _, most] = shape.facts.sysctl_numbers("net.ipv4.tcp_mem")[..] else {
        return None;
    };
    let line = shape.facts.winning_line("net.ipv4.tcp_mem");
    let memory = shape.facts.memory_bytes;
    let bytes = most.saturating_mul(page());
    let clients = shape.facts.asked.connections.unwrap_or(0);
    // A page for each direction is the least that a connection with data in it holds.
    let needed = clients * shape.connections_per_client() * 2;
    let is_more_than_all = line.is_some() && memory.is_some_and(|memory| bytes > memory);
    let (severity, title) = if needed > most {
        (
            Severity::Error,
            format!(
                "all TCP sockets together may buffer {} pages, {} clients need at least {}",
                figure(most),
                figure(clients),
                figure(needed)
            ),
        )
    } else if is_more_than_all {
        (
            Severity::Warning,
            "tcp_mem allows TCP more memory than there is: its unit is pages".to_owned(),
        )
    } else {
        return None;
    };
    let mut finding = Finding::text_new("tcp-mem", severity, title)
        .evidence(format!("net.ipv4.tcp_mem = {}", shape.facts.sysctls.get("net.ipv4.tcp_mem")?))
        .evidence_all(line.map(SysctlLine::evidence))
        .evidence(format!(
            "{} pages of {} bytes = {} MiB",
            figure(most),
            page(),
            figure(bytes >> 20)
        ))
        .why(
            "tcp_mem counts pages, not bytes, over all sockets. The kernel computes it at boot from the memory of the host; beyond the third number, sockets get no more memory. Values copied from elsewhere are nearly always worse.",
            IP_SYSCTL,
        );
    if let Some(memory) = memory {
        finding = finding.evidence(format!("memory: {} MiB", figure(memory >> 20)));
    }
    Some(match line {
        Some(line) => finding.change(format!(
            "sed -i '{}s/^/# /' {}   # and reboot: the kernel's own values come back",
            line.line,
            quoted(&line.file)
        )),
        None => finding,
    })
}
