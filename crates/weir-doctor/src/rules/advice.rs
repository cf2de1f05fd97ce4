//! Widespread tuning advice that does not, or no longer, have the effect it is given for.

use super::shape::Shape;
use super::sources::{FS_SYSCTL, IP_SYSCTL, LISTEN_2, TCP_7};
use super::{counted, figure};
use crate::commands::quoted;
use crate::facts::SysctlLine;
use crate::finding::{Finding, Severity};

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

/// Compares fs.file-max with the kernel's own value: a file is about 1 KiB, and files may take a tenth of the memory
/// (`files_maxfiles_init` in fs/file_table.c).
fn file_max(shape: &Shape<'_>) -> Option<Finding> {
    let line = shape.facts.winning_line("fs.file-max")?;
    let value: u64 = line.value.parse().ok()?;
    let kernel_value = shape.facts.memory_bytes? / 1024 / 10;
    let lowers = value < kernel_value;
    let (severity, title) = if lowers {
        (
            Severity::Warning,
            format!(
                "fs.file-max {} is below the kernel's own value, about {}",
                figure(value),
                figure(kernel_value)
            ),
        )
    } else {
        (Severity::Note, format!("fs.file-max {} is seldom what limits a proxy", figure(value)))
    };
    Some(
        Finding::text_new("file-max-advice", severity, title)
            .evidence(line.evidence())
            .evidence(format!(
                "memory {} MiB: the kernel's own value is about {}",
                figure(shape.facts.memory_bytes? >> 20),
                figure(kernel_value)
            ))
            .evidence_all(
                shape
                    .facts
                    .open_files
                    .map(|open| format!("fs.file-nr: {} open now", figure(open))),
            )
            .why(
                "The kernel lets open files take a tenth of the memory, at about 1 KiB each. Numbers in \
                 guides come from small machines. A proxy reaches its own limit first, RLIMIT_NOFILE; and fs.file-max belongs to no namespace, so no container can set it.",
                FS_SYSCTL,
            )
            .change(comment_out(line)),
    )
}

fn fin_timeout(shape: &Shape<'_>) -> Option<Finding> {
    let line = shape.facts.winning_line("net.ipv4.tcp_fin_timeout")?;
    Some(
        Finding::text_warning("fin-timeout-advice",
            "tcp_fin_timeout does not shorten TIME_WAIT",
        )
        .evidence(line.evidence())
        .evidence_all(
            shape
                .facts
                .time_wait
                .map(|now| format!("{} in TIME_WAIT now", counted(now, "socket"))),
        )
        .why(
            "It limits FIN_WAIT_2 of sockets that no process has any more. TIME_WAIT is 60 s in Linux, \
             fixed (TCP_TIMEWAIT_LEN). To have fewer sockets in TIME_WAIT, keep connections to the origin.",
            IP_SYSCTL,
        )
        .change(comment_out(line)),
    )
}

fn tw_reuse(shape: &Shape<'_>) -> Option<Finding> {
    let line = shape.facts.winning_line("net.ipv4.tcp_tw_reuse")?;
    if line.value != "1" {
        return None;
    }
    let timestamps = shape.facts.sysctl("net.ipv4.tcp_timestamps");
    let inert = timestamps == Some(0);
    let severity = if inert { Severity::Warning } else { Severity::Note };
    let title = if inert {
        "tcp_tw_reuse does nothing without tcp_timestamps"
    } else {
        "tcp_tw_reuse works for outgoing connections only, such as those to the origin"
    };
    let finding = Finding::text_new("tw-reuse-advice", severity, title)
        .evidence(line.evidence())
        .evidence_all(
            timestamps
                .filter(|_| inert)
                .map(|_| "net.ipv4.tcp_timestamps = 0".to_owned()),
        )
        .why(
            "A new outgoing connection may take over a tuple in TIME_WAIT when timestamps show that it \
             is safe. Connections from clients are not touched. The default, 2, does it on loopback.",
            IP_SYSCTL,
        );
    Some(if inert { finding.change_sysctl("net.ipv4.tcp_timestamps", "1") } else { finding })
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
        Finding::text_note("socket-buffers-inert",
            "net.core buffer sizes do nothing for nginx's TCP sockets",
        )
        .evidence_all(lines.iter().map(|line| line.evidence()))
        .evidence("no listen directive has rcvbuf= or sndbuf=")
        .why(
            "The maxima limit what a program requests by SO_RCVBUF and SO_SNDBUF. nginx requests nothing unless listen says so, and TCP has defaults of its own. Such sockets are resized automatically, up to the third number of tcp_rmem and tcp_wmem.",
            TCP_7,
        )
        .change("sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem   # these limit nginx's buffers"),
    )
}

fn syn_backlog(shape: &Shape<'_>) -> Option<Finding> {
    let line = shape.facts.winning_line("net.ipv4.tcp_max_syn_backlog")?;
    let cookies = shape.facts.sysctl("net.ipv4.tcp_syncookies")?;
    if cookies == 0 {
        return None;
    }
    let title = "tcp_max_syn_backlog is ignored while SYN cookies are on";
    Some(
        Finding::text_note("syn-backlog-inert", title)
        .evidence(line.evidence())
        .evidence(format!("net.ipv4.tcp_syncookies = {cookies}"))
        .why(
            "With SYN cookies there is no such limit on connections that are being opened. The queue that overflows first under a normal load is the accept queue: backlog= and somaxconn.",
            LISTEN_2,
        ),
    )
}

/// Reports settings that the kernel's documentation says have no effect.
fn no_effect(shape: &Shape<'_>) -> Option<Finding> {
    let keys = ["net.ipv4.tcp_low_latency", "net.ipv4.tcp_fack", "net.ipv4.udp_wmem_min"];
    let lines: Vec<&SysctlLine> =
        keys.into_iter().filter_map(|key| shape.facts.winning_line(key)).collect();
    lines.first()?;
    let mut finding = Finding::text_warning("sysctl-without-effect",
        "settings that the kernel accepts and ignores",
    )
    .evidence_all(lines.iter().map(|line| line.evidence()))
    .why(
        "The names are left so that old files do not fail; the kernel's documentation says that they \
         have no effect.",
        IP_SYSCTL,
    );
    for line in lines {
        finding = finding.change(comment_out(line));
    }
    Some(finding)
}

fn accept_mutex(shape: &Shape<'_>) -> Option<Finding> {
    let set = shape.configuration?.events("accept_mutex")?;
    if set.argument() != Some("on") {
        return None;
    }
    Some(
        Finding::text_note("accept-mutex-advice",
            "accept_mutex is off by default since nginx 1.11.3",
        )
        .evidence(set.evidence())
        .why(
            "Workers take turns accepting, so a new connection may wait for the next turn. It was meant to avoid waking all workers for one connection, which EPOLLEXCLUSIVE and reuseport \
             prevent without turns.",
            "https://nginx.org/en/docs/ngx_core_module.html#accept_mutex",
        )
        .change_nginx([set.replace_with("accept_mutex off")]),
    )
}
