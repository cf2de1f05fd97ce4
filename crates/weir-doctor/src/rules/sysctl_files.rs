//! Lines of sysctl files whose keys the kernel does not have, or whose values it refuses or has not taken.

use std::collections::BTreeSet;

use super::advice::comment_out;
use super::shape::Shape;
use super::sources::{IP_SYSCTL, SYSCTL_D, TCP_7};
use crate::facts::SysctlLine;
use crate::finding::Finding;

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

fn without(finding: Finding, lines: &[&SysctlLine]) -> Finding {
    let evidence = lines.iter().map(|line| line.evidence());
    let changes = lines.iter().map(|line| comment_out(line));
    changes.fold(finding.evidence_all(evidence), Finding::change)
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
    let title = format!("this kernel has no sysctl `{}`", first.key);
    let mut finding = Finding::text_warning("sysctl-no-such-name", title);
    finding = without(finding, &lines);
    if let Some(real) = first.key.strip_prefix("sys.") {
        finding = finding.evidence(format!(
            "the name is `{real}`: /proc/sys/ is its folder, not a part of the name"
        ));
    }
    Some(finding.why(
        "systemd-sysctl skips unknown names and logs this at debug level only, so nobody learns that the line has no effect.",
        SYSCTL_D,
    ))
}

/// Returns true for a line below /etc, which an administrator wrote; files below /usr/lib come with packages.
fn is_administrators(line: &SysctlLine) -> bool {
    line.file.starts_with("/etc/")
}

fn tw_recycle(shape: &Shape<'_>) -> Option<Finding> {
    let lines: Vec<&SysctlLine> = shape.facts.lines_of(RECYCLE).collect();
    let first = lines.first()?;
    let title = if first.exists {
        "tcp_tw_recycle breaks clients behind NAT"
    } else {
        "tcp_tw_recycle was removed in Linux 4.12"
    };
    let mut finding = without(Finding::text_warning("tw-recycle-advice", title), &lines);
    if first.exists {
        finding = finding.change(format!("sysctl -w {RECYCLE}=0"));
    }
    Some(finding.why(
        "It refused connections whose timestamps went backwards, as those of several hosts behind one address do, and was removed. Nothing replaces it: keep connections instead.",
        TCP_7,
    ))
}

const RANGE: &str = "net.ipv4.ip_local_port_range";

/// Reports a range such as `1024 65000` that a shell has split, so that only the lower end is set.
fn half_a_range(shape: &Shape<'_>) -> Option<Finding> {
    let line = shape.facts.winning_line(RANGE)?;
    if line.value.split(' ').count() != 1 {
        return None;
    }
    let live = shape.facts.sysctls.get(RANGE);
    let title = "the port range has one number: its upper end is left as it was";
    Some(
        Finding::text_warning("port-range-half", title)
            .evidence(line.evidence())
            .evidence_all(live.map(|live| format!("{RANGE} = {live}")))
            .why(
                "The setting is two numbers. Unquoted in a shell, the second is lost: write \
             net.ipv4.ip_local_port_range='1024 65535'.",
                IP_SYSCTL,
            )
            .change_sysctl(RANGE, &format!("{} 65535", line.value)),
    )
}

fn privileged_range(shape: &Shape<'_>) -> Option<Finding> {
    let line = shape.facts.winning_line(RANGE)?;
    let low: u64 = line.value.split(' ').next()?.parse().ok()?;
    let first = shape.facts.sysctl("net.ipv4.ip_unprivileged_port_start")?;
    if low >= first {
        return None;
    }
    Some(
        Finding::text_warning("port-range-privileged",
            format!("a port range from {low} is refused: ports below {first} are privileged"),
        )
        .evidence(line.evidence())
        .evidence(format!("net.ipv4.ip_unprivileged_port_start = {first}"))
        .why(
            "The range must not reach below ip_unprivileged_port_start; the kernel refuses it, and the old range stays in force.",
            IP_SYSCTL,
        )
        .change_sysctl(RANGE, &format!("{first} 65535")),
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
    Some(
        Finding::text_note("port-range-parity",
            "both ends of the port range are even, or both odd",
        )
        .evidence(line.evidence())
        .evidence(format!("{RANGE} = {low} {high}"))
        .why(
            "The kernel looks for ports of one parity first for connect(2), of the other for bind(2); its \
             documentation advises one even and one odd end, so that there are as many of both.",
            IP_SYSCTL,
        )
        .change_sysctl(RANGE, &format!("{low} {}", if high < 65_535 { high + 1 } else { high - 1 })),
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
    let title = format!("{} is set twice: {} wins", first.key, winner.value);
    let mut finding = Finding::text_warning("sysctl-overridden", title);
    for (line, winner) in &lost {
        finding = finding
            .evidence(format!("{} (lost)", line.evidence()))
            .evidence(format!("{} (wins)", winner.evidence()));
    }
    let lines: BTreeSet<String> = lost.iter().map(|(line, _)| comment_out(line)).collect();
    finding = finding.why(
        "Files are applied in the order of their names, whatever folder they are in; the last line of a \
         key wins. A file of the same name in /etc hides those in /run and /usr/lib whole.",
        SYSCTL_D,
    );
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
    let title = format!("{} is {live}, not {} as its file says", first.key, first.value);
    let mut finding = Finding::text_warning("sysctl-not-live", title);
    for (line, live) in &all {
        finding = finding.evidence(format!("{}   live: {live}", line.evidence()));
    }
    Some(
        finding
            .why(
                "The file was written and not applied; or the kernel refused the value; or something \
                 changed it later; or the proxy's network namespace was made afterwards: new ones begin with the kernel's defaults, not with the host's settings.",
                SYSCTL_D,
            )
            .change("sysctl --system"),
    )
}

/// Reports /etc/sysctl.conf if systemd-sysctl(8) does not read it: that takes a link in sysctl.d.
fn not_read(shape: &Shape<'_>) -> Option<Finding> {
    let ignored: Vec<&SysctlLine> =
        shape.facts.sysctl_lines.iter().filter(|line| !line.applied).collect();
    ignored.first()?;
    Some(
        Finding::text_warning("sysctl-conf-not-read",
            "/etc/sysctl.conf is not read at boot by systemd",
        )
        .evidence_all(ignored.iter().map(|line| line.evidence()))
        .evidence("no file in sysctl.d leads to it")
        .why(
            "systemd-sysctl reads only the folders sysctl.d. Distributions that have it read \
             /etc/sysctl.conf do so by a link, /etc/sysctl.d/99-sysctl.conf. `sysctl --system` reads it \
             all the same, so that it seems to work until the next boot.",
            SYSCTL_D,
        )
        .change("ln -s ../sysctl.conf /etc/sysctl.d/99-sysctl.conf"),
    )
}
