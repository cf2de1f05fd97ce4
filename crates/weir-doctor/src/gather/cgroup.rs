//! Limits of CPU time and memory set by the proxy's control group, versions 1 and 2
//! (Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/sched-bwc.rst).

use super::source::Source;
use crate::facts::{Cgroup, Facts, Reading};

/// Limits of version 1 above this value mean unlimited.
const NO_LIMIT: u64 = 1 << 60;

pub(super) fn read(source: &mut Source, facts: &mut Facts) {
    let process =
        facts.proxy.as_ref().map_or_else(|| "self".to_owned(), |proxy| proxy.master.to_string());
    let Some(text) = source.text(&format!("/proc/{process}/cgroup")) else {
        return source.unread("control groups", format!("there is no /proc/{process}/cgroup"));
    };
    let mut bounds = Cgroup::default();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        for folder in folders(source, controllers, path) {
            tighten(source, &folder, &mut bounds);
        }
    }
    source.looked(Reading::ControlGroups);
    facts.cgroup = bounds;
}

/// Returns the folders of the group and of its ancestors. A container sees its own group as the root, whatever path
/// /proc reports.
fn folders(source: &Source, controllers: &str, path: &str) -> Vec<String> {
    let tops = match controllers {
        "" => vec!["/sys/fs/cgroup".to_owned()],
        named => {
            let names = named.split(',').filter(|name| !name.contains('='));
            std::iter::once(named)
                .chain(names)
                .map(|name| format!("/sys/fs/cgroup/{name}"))
                .collect()
        }
    };
    let mut all = Vec::new();
    for top in tops {
        let mut ancestor = path.trim_end_matches('/');
        loop {
            let folder = format!("{top}{ancestor}");
            if source.exists(&folder) && !all.contains(&folder) {
                all.push(folder);
            }
            match ancestor.rfind('/') {
                Some(end) => ancestor = &ancestor[..end],
                None => break,
            }
        }
    }
    all
}

fn tighten(source: &mut Source, folder: &str, bounds: &mut Cgroup) {
    // Version 2: `max 100000` has one number and no quota.
    if let [quota, period] = parse_numbers(source.text(&format!("{folder}/cpu.max")))[..] {
        lower_cpus(bounds, quota, period);
    }
    let quota = parse_numbers(source.text(&format!("{folder}/cpu.cfs_quota_us")));
    let period = parse_numbers(source.text(&format!("{folder}/cpu.cfs_period_us")));
    if let ([quota], [period]) = (&quota[..], &period[..]) {
        lower_cpus(bounds, *quota, *period);
    }
    for name in ["memory.max", "memory.limit_in_bytes"] {
        if let [limit] = parse_numbers(source.text(&format!("{folder}/{name}")))[..]
            && limit < NO_LIMIT
        {
            bounds.memory_bytes = Some(bounds.memory_bytes.map_or(limit, |old| old.min(limit)));
        }
    }
}

fn parse_numbers(text: Option<String>) -> Vec<u64> {
    let words = text.unwrap_or_default();
    words.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn lower_cpus(bounds: &mut Cgroup, quota: u64, period: u64) {
    if period > 0 {
        let cpus = quota as f64 / period as f64;
        bounds.cpus = Some(bounds.cpus.map_or(cpus, |old| old.min(cpus)));
    }
}
