//! The kernel's settings and counters.

use std::collections::BTreeMap;

use super::source::Source;
use crate::facts::{Facts, Reading};

/// Names of the sysctls that the rules read.
const SYSCTLS: &str = "fs.file-max, fs.nr_open, net.core.somaxconn, net.ipv4.ip_local_port_range, \
     net.ipv4.ip_local_reserved_ports, net.ipv4.ip_unprivileged_port_start, \
     net.ipv4.tcp_abort_on_overflow, net.ipv4.tcp_max_syn_backlog, net.ipv4.tcp_max_tw_buckets, \
     net.ipv4.tcp_mem, net.ipv4.tcp_syncookies, net.ipv4.tcp_timestamps, net.ipv4.tcp_tw_reuse, \
     net.netfilter.nf_conntrack_count, net.netfilter.nf_conntrack_max, \
     net.netfilter.nf_conntrack_tcp_timeout_time_wait";

pub(super) fn read(source: &mut Source, facts: &mut Facts) {
    facts.kernel = kernel(source);
    for name in SYSCTLS.split(", ") {
        if let Some(value) = sysctl(source, name) {
            facts.sysctls.insert(name.to_owned(), value);
        }
    }
    source.looked(Reading::Sysctls { count: facts.sysctls.len() });
    counters(source, facts);
    facts.open_files = source
        .text("/proc/sys/fs/file-nr")
        .and_then(|text| text.split_ascii_whitespace().next()?.parse().ok());
    facts.cpus_online =
        source.text("/sys/devices/system/cpu/online").and_then(|text| count_cpus(&text));
    facts.memory_bytes = source.text("/proc/meminfo").and_then(|text| memory(&text));
}

fn kernel(source: &mut Source) -> Option<String> {
    let release = source.text("/proc/sys/kernel/osrelease")?;
    Some(release.trim().to_owned())
}

/// Returns the live value of a sysctl, runs of blanks replaced by single ones.
pub(super) fn sysctl(source: &mut Source, name: &str) -> Option<String> {
    let text = source.text(&path_of(name))?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    Some(words.join(" "))
}

/// Returns the path under /proc/sys of a dotted name; dots within a component are written as slashes (sysctl.d(5)).
pub(super) fn path_of(name: &str) -> String {
    let path: String = name
        .chars()
        .map(|letter| match letter {
            '.' => '/',
            '/' => '.',
            other => other,
        })
        .collect();
    format!("/proc/sys/{path}")
}

/// Reads the counters of this thread's network namespace.
fn counters(source: &mut Source, facts: &mut Facts) {
    // `/proc/net` is that of the process's first thread, which may be in another namespace.
    let folder = if source.is_real() { "/proc/thread-self/net" } else { "/proc/net" };
    match source.text(&format!("{folder}/netstat")) {
        Some(text) => {
            facts.counters = group(&text, "TcpExt:");
            source.looked(Reading::Counters);
        }
        None => source.unread("TcpExt counters", format!("there is no {folder}/netstat")),
    }
    facts.time_wait = source.text(&format!("{folder}/sockstat")).and_then(|text| time_wait(&text));
}

/// Parses the counters of one group: a line of names, then a line of numbers.
fn group(text: &str, name: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    let (names, numbers) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    names
        .split_ascii_whitespace()
        .zip(numbers.split_ascii_whitespace())
        .filter_map(|(name, number)| Some((name.to_owned(), number.parse().ok()?)))
        .collect()
}

/// Returns the number after `tw` in the line `TCP:`.
fn time_wait(sockstat: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_ascii_whitespace();
    words.find(|&word| word == "tw")?;
    words.next()?.parse().ok()
}

fn memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the number of CPUs in a list such as `0-3,8`.
pub(super) fn count_cpus(list: &str) -> Option<u64> {
    list.trim()
        .split(',')
        .map(|part| -> Option<u64> {
            match part.split_once('-') {
                None => part.parse::<u64>().ok().map(|_| 1),
                Some((first, last)) => {
                    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
                    last.checked_sub(first)?.checked_add(1)
                }
            }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_lists_and_tables_are_read() {
        assert_eq!(count_cpus("0-3,8\n"), Some(5));
        assert_eq!(count_cpus("0"), Some(1));
        assert_eq!(count_cpus("3-0"), None);
        assert_eq!(time_wait("TCP: inuse 5 orphan 0 tw 12 alloc 6 mem 1"), Some(12));
        assert_eq!(memory("MemTotal:       16384 kB\n"), Some(16_777_216));
        let counted = group("TcpExt: A B\nTcpExt: 1 2\n", "TcpExt:");
        assert_eq!(counted["B"], 2);
        assert_eq!(
            path_of("net.ipv4.conf.eth0/1.rp_filter"),
            "/proc/sys/net/ipv4/conf/eth0.1/rp_filter"
        );
    }
}
