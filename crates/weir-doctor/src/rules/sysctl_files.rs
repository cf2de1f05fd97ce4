//! Lines of sysctl files whose keys the kernel does not have, or whose values it refuses or has not taken.

use std::collections::BTreeSet;

use super::advice::{comment_out, without};
use super::shape::Shape;
use super::sources::{IP_SYSCTL, SYSCTL_D, TCP_7};
use crate::evidence::FileEvidence;
use crate::facts::SysctlLine;
use crate::finding::Finding;
use crate::problem::SysctlFileProblem;

pub(super) fn rules(shape: &Shape<'_>, found: &mut Vec<Finding>) {
    found.extend(no_such_name(shape));
    found.extend(tw_recycle(shape));
    found.extend(half_a_range(shape));
    found.extend(privileged_range(shape));
    found.extend(even_range(shape));
    found.extend(overridden(shape));
    found.extend(not_live(shape));
    found.extend(not_read(shape));
}

const RECYCLE: &str = "net.ipv4.tcp_tw_recycle";

fn no_such_name(shape: &Shape<'_>) -> Option<Finding> {
    let lines: Vec<&SysctlLine> = shape
        .facts
        .sysctl_lines
        .iter()
        .filter(|line| {
            // Those of modules come and go with them.
            let of_module =
                line.key.starts_with("net.netfilter.") || line.key.starts_with("net.bridge.");
            !line.exists && line.key != RECYCLE && !of_module && is_administrators(line)
        })
        .collect();
    let first = lines.first()?;
    let problem = SysctlFileProblem::SysctlNoSuchName { name: first.key.clone() };
    let real = first.key.strip_prefix("sys.");
    let finding = without(Finding::warning(problem, SYSCTL_D), &lines);
    Some(finding.evidence_all(real.map(|name| FileEvidence::SysctlName { name: name.to_owned() })))
}

/// Returns true for a line below /etc, which an administrator wrote; files below /usr/lib come with packages.
fn is_administrators(line: &SysctlLine) -> bool {
    line.file.starts_with("/etc/")
}

fn tw_recycle(shape: &Shape<'_>) -> Option<Finding> {
    let lines: Vec<&SysctlLine> = shape.facts.lines_of(RECYCLE).collect();
    let first = lines.first()?;
    let problem = SysctlFileProblem::TwRecycleAdvice { exists: first.exists };
    let finding = without(Finding::warning(problem, TCP_7), &lines);
    Some(if first.exists { finding.change(format!("sysctl -w {RECYCLE}=0")) } else { finding })
}

const RANGE: &str = "net.ipv4.ip_local_port_range";

/// Reports a range such as `1024 65000` that a shell has split, so that only the lower end is set.
fn half_a_range(shape: &Shape<'_>) -> Option<Finding> {
    let line = shape.facts.winning_line(RANGE)?;
    if line.value.split(' ').count() != 1 {
        return None;
    }
    Some(
        Finding::warning(SysctlFileProblem::PortRangeHalf, IP_SYSCTL)
            .evidence(line)
            .evidence_all(shape.facts.live(RANGE))
            .change_sysctl(RANGE, &format!("{} 65535", line.value)),
    )
}

fn privileged_range(shape: &Shape<'_>) -> Option<Finding> {
    const UNPRIVILEGED: &str = "net.ipv4.ip_unprivileged_port_start";
    let line = shape.facts.winning_line(RANGE)?;
    let low: u64 = line.value.split(' ').next()?.parse().ok()?;
    let unprivileged = shape.facts.sysctl(UNPRIVILEGED)?;
    if low >= unprivileged {
        return None;
    }
    Some(
        Finding::warning(SysctlFileProblem::PortRangePrivileged { low, unprivileged }, IP_SYSCTL)
            .evidence(line)
            .evidence_all(shape.facts.live(UNPRIVILEGED))
            .change_sysctl(RANGE, &format!("{unprivileged} 65535")),
    )
}

fn even_range(shape: &Shape<'_>) -> Option<Finding> {
    let line = shape.facts.winning_line(RANGE)?;
    let [low, high] = shape.facts.sysctl_numbers(RANGE)[..] else {
        return None;
    };
    if low % 2 != high % 2 {
        return None;
    }
    let end = if high < 65_535 { high + 1 } else { high - 1 };
    Some(
        Finding::note(SysctlFileProblem::PortRangeParity, IP_SYSCTL)
            .evidence(line)
            .evidence_all(shape.facts.live(RANGE))
            .change_sysctl(RANGE, &format!("{low} {end}")),
    )
}

/// Reports a line that a later file overrides.
fn overridden(shape: &Shape<'_>) -> Option<Finding> {
    let lost: Vec<(&SysctlLine, &SysctlLine)> = shape
        .facts
        .sysctl_lines
        .iter()
        .filter(|line| line.applied && is_administrators(line))
        .filter_map(|line| {
            let winner = shape.facts.winning_line(&line.key)?;
            (winner.value != line.value).then_some((line, winner))
        })
        .collect();
    let (first, winner) = lost.first()?;
    let problem = SysctlFileProblem::SysctlOverridden {
        name: first.key.clone(),
        value: winner.value.clone(),
    };
    let evidence = lost.iter().flat_map(|&(line, winner)| {
        [FileEvidence::OverriddenLine(line.clone()), FileEvidence::WinningLine(winner.clone())]
    });
    let lines: BTreeSet<String> = lost.iter().map(|(line, _)| comment_out(line)).collect();
    let finding = Finding::warning(problem, SYSCTL_D).evidence_all(evidence);
    Some(lines.into_iter().fold(finding, Finding::change))
}

/// Reports a file that differs from the kernel's live value.
fn not_live(shape: &Shape<'_>) -> Option<Finding> {
    let facts = shape.facts;
    let keys: BTreeSet<&str> = facts
        .sysctl_lines
        .iter()
        .filter(|line| is_administrators(line) && line.applied)
        .map(|line| line.key.as_str())
        .collect();
    let unlike = keys.iter().filter_map(|key| {
        let line = facts.winning_line(key)?;
        let live = facts.sysctls.get(*key)?;
        // Half a range, and a range that is refused, have findings of their own.
        let explained = *key == RANGE && line.value.split(' ').count() == 1;
        (*live != line.value && !explained).then_some((line, live))
    });
    let all: Vec<(&SysctlLine, &String)> = unlike.collect();
    let (first, live) = all.first()?;
    let problem = SysctlFileProblem::SysctlNotLive {
        name: first.key.clone(),
        live: live.to_string(),
        in_file: first.value.clone(),
    };
    let evidence = all
        .iter()
        .map(|&(line, live)| FileEvidence::LineNotLive { line: line.clone(), live: live.clone() });
    Some(Finding::warning(problem, SYSCTL_D).evidence_all(evidence).change("sysctl --system"))
}

/// Reports /etc/sysctl.conf if systemd-sysctl(8) does not read it: that takes a link in sysctl.d.
fn not_read(shape: &Shape<'_>) -> Option<Finding> {
    let ignored: Vec<&SysctlLine> =
        shape.facts.sysctl_lines.iter().filter(|line| !line.applied).collect();
    ignored.first()?;
    Some(
        Finding::warning(SysctlFileProblem::SysctlConfNotRead, SYSCTL_D)
            .evidence_all(ignored)
            .evidence(FileEvidence::NoLinkToSysctlConf)
            .change("ln -s ../sysctl.conf /etc/sysctl.d/99-sysctl.conf"),
    )
}
