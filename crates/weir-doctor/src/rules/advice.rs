//! Widespread tuning advice that does not, or no longer, have the effect it is given for.

use super::shape::Shape;
use super::sources::{ACCEPT_MUTEX, FS_SYSCTL, IP_SYSCTL, LISTEN_2, TCP_7};
use crate::evidence::{Calculation, FileEvidence, HostEvidence};
use crate::facts::SysctlLine;
use crate::finding::{Finding, Severity};
use crate::problem::AdviceProblem;
use crate::shell::quoted;

pub(super) fn rules(shape: &Shape<'_>, found: &mut Vec<Finding>) {
    found.extend(file_max(shape));
    found.extend(fin_timeout(shape));
    found.extend(tw_reuse(shape));
    found.extend(socket_buffers(shape));
    found.extend(syn_backlog(shape));
    found.extend(no_effect(shape));
    found.extend(accept_mutex(shape));
}

/// Returns the command that comments a line out.
pub(super) fn comment_out(line: &SysctlLine) -> String {
    format!("sed -i '{}s/^/# /' {}", line.line, quoted(&line.file))
}

/// Adds lines as evidence, and the commands that comment them out.
pub(super) fn without(finding: Finding, lines: &[&SysctlLine]) -> Finding {
    let changes = lines.iter().map(|line| comment_out(line));
    changes.fold(finding.evidence_all(lines.iter().copied()), Finding::change)
}

/// Compares fs.file-max with the kernel's own value: a file is about 1 KiB, and files may take a tenth of the memory
/// (`files_maxfiles_init` in fs/file_table.c).
fn file_max(shape: &Shape<'_>) -> Option<Finding> {
    let line = shape.facts.winning_line("fs.file-max")?;
    let value: u64 = line.value.parse().ok()?;
    let kernel_value = shape.facts.memory_bytes? / 1024 / 10;
    let severity = if value < kernel_value { Severity::Warning } else { Severity::Note };
    let memory_bytes = shape.facts.memory_bytes?;
    let open_files = shape.facts.open_files.map(|files| HostEvidence::OpenFiles { files });
    Some(
        Finding::new(AdviceProblem::FileMaxAdvice { value, kernel_value }, severity, FS_SYSCTL)
            .evidence(line)
            .evidence(Calculation::FilesByMemory { memory_bytes, files: kernel_value })
            .evidence_all(open_files)
            .change(comment_out(line)),
    )
}

fn fin_timeout(shape: &Shape<'_>) -> Option<Finding> {
    let line = shape.facts.winning_line("net.ipv4.tcp_fin_timeout")?;
    let now = shape.facts.time_wait.map(|sockets| HostEvidence::TimeWaitSockets { sockets });
    Some(
        Finding::warning(AdviceProblem::FinTimeoutAdvice, IP_SYSCTL)
            .evidence(line)
            .evidence_all(now)
            .change(comment_out(line)),
    )
}

fn tw_reuse(shape: &Shape<'_>) -> Option<Finding> {
    const TIMESTAMPS: &str = "net.ipv4.tcp_timestamps";
    let line = shape.facts.winning_line("net.ipv4.tcp_tw_reuse")?;
    if line.value != "1" {
        return None;
    }
    let is_inert = shape.facts.sysctl(TIMESTAMPS) == Some(0);
    let severity = if is_inert { Severity::Warning } else { Severity::Note };
    let finding = Finding::new(AdviceProblem::TwReuseAdvice { is_inert }, severity, IP_SYSCTL)
        .evidence(line)
        .evidence_all(shape.facts.live(TIMESTAMPS).filter(|_| is_inert));
    Some(if is_inert { finding.change_sysctl(TIMESTAMPS, "1") } else { finding })
}

fn socket_buffers(shape: &Shape<'_>) -> Option<Finding> {
    let keys = [
        "net.core.rmem_max",
        "net.core.wmem_max",
        "net.core.rmem_default",
        "net.core.wmem_default",
    ];
    let lines: Vec<&SysctlLine> =
        keys.into_iter().filter_map(|key| shape.facts.winning_line(key)).collect();
    let configuration = shape.configuration?;
    let sets = configuration.all(&["listen"]).iter().any(|placed| {
        let mut words = placed.statement.arguments.iter();
        words.any(|word| word.starts_with("rcvbuf=") || word.starts_with("sndbuf="))
    });
    if lines.is_empty() || sets {
        return None;
    }
    Some(
        Finding::note(AdviceProblem::SocketBuffersInert, TCP_7)
            .evidence_all(lines)
            .evidence(FileEvidence::NoSocketBuffers)
            .change("sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem   # these limit nginx's buffers"),
    )
}

fn syn_backlog(shape: &Shape<'_>) -> Option<Finding> {
    let line = shape.facts.winning_line("net.ipv4.tcp_max_syn_backlog")?;
    if shape.facts.sysctl("net.ipv4.tcp_syncookies")? == 0 {
        return None;
    }
    Some(
        Finding::note(AdviceProblem::SynBacklogInert, LISTEN_2)
            .evidence(line)
            .evidence_all(shape.facts.live("net.ipv4.tcp_syncookies")),
    )
}

/// Reports settings that the kernel's documentation says have no effect.
fn no_effect(shape: &Shape<'_>) -> Option<Finding> {
    let keys = ["net.ipv4.tcp_low_latency", "net.ipv4.tcp_fack", "net.ipv4.udp_wmem_min"];
    let lines: Vec<&SysctlLine> =
        keys.into_iter().filter_map(|key| shape.facts.winning_line(key)).collect();
    lines.first()?;
    Some(without(Finding::warning(AdviceProblem::SysctlWithoutEffect, IP_SYSCTL), &lines))
}

fn accept_mutex(shape: &Shape<'_>) -> Option<Finding> {
    let set = shape.configuration?.events("accept_mutex")?;
    if set.argument() != Some("on") {
        return None;
    }
    Some(
        Finding::note(AdviceProblem::AcceptMutexAdvice, ACCEPT_MUTEX)
            .evidence(set)
            .change_nginx([set.replace_with("accept_mutex off")]),
    )
}
