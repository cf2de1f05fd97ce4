//! Measures how long the CPU quota of a control group kept its tasks from running, versions 1 and 2
//! (Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/sched-bwc.rst).

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Mount point of control groups; hosts with both versions mount the second below `unified`.
pub(crate) const MOUNT: &str = "/sys/fs/cgroup";

/// Returns the groups of a process that have a CPU quota, including those above its own: each of them limits it. Empty
/// if there are none, or if the kernel does not provide them.
pub fn bounded_groups(pid: u32) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    bounded_below(Path::new(MOUNT), &text)
}

/// Finds the groups with a quota, from the text of /proc/PID/cgroup. A container sees its own group as the root,
/// whatever path /proc reports.
fn bounded_below(mount: &Path, text: &str) -> Vec<PathBuf> {
    let mut groups = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let tops = match controllers {
            "" => [mount.to_owned(), mount.join("unified")],
            named if named.split(',').any(|name| name == "cpu") => {
                [mount.join(named), mount.join("cpu")]
            }
            _ => continue,
        };
        let path = Path::new(path.trim_start_matches('/'));
        for top in tops {
            let folders = path.ancestors().map(|group| top.join(group));
            groups.extend(folders.filter(|group| is_bounded(group)));
        }
    }
    groups.sort();
    groups.dedup();
    groups
}

/// Returns true if a group has a quota: a number in `cpu.max` (version 2) or `cpu.cfs_quota_us` (version 1).
pub(crate) fn is_bounded(group: &Path) -> bool {
    ["cpu.max", "cpu.cfs_quota_us"].iter().any(|name| {
        let text = fs::read_to_string(group.join(name)).unwrap_or_default();
        let quota = text.split_ascii_whitespace().next();
        quota.is_some_and(|quota| quota.parse::<u64>().is_ok())
    })
}

/// Reads repeatedly how long groups were throttled.
#[derive(Debug, Default)]
pub struct ThrottleReader {
    stats: Vec<File>,
}

impl ThrottleReader {
    /// Opens the counters of some groups; one that is gone is left out.
    pub fn open<'a>(groups: impl IntoIterator<Item = &'a PathBuf>) -> ThrottleReader {
        let stats = groups.into_iter();
        ThrottleReader {
            stats: stats.filter_map(|group| File::open(group.join("cpu.stat")).ok()).collect(),
        }
    }

    /// Returns the time that the groups were throttled since they were created, summed over CPUs, nanoseconds. Reads
    /// nothing if no group has a quota.
    pub fn read_ns(&self) -> u64 {
        self.stats.iter().map(throttled_ns).sum()
    }
}

fn throttled_ns(stat: &File) -> u64 {
    let mut buffer = [0; 1024];
    let length = stat.read_at(&mut buffer, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&buffer[..length]);
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .find_map(|(name, value)| {
            let value: u64 = value.trim().parse().ok()?;
            match name {
                "throttled_usec" => Some(value * 1000),
                "throttled_time" => Some(value),
                _ => None,
            }
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_of_a_group_and_of_those_above_it_are_found_and_read() {
        let mount = std::env::temp_dir().join(format!("weir-throttle-{}", std::process::id()));
        for (group, name, text) in [
            ("pod", "cpu.max", "50000 100000\n"),
            ("pod", "cpu.stat", "usage_usec 9\nnr_periods 8\nnr_throttled 3\nthrottled_usec 70\n"),
            ("pod/own", "cpu.max", "max 100000\n"),
            ("pod/own", "cpu.stat", "nr_throttled 3\nthrottled_usec 5\n"),
            ("cpu,cpuacct/old", "cpu.cfs_quota_us", "20000\n"),
            ("cpu,cpuacct/old", "cpu.stat", "nr_periods 1\nthrottled_time 400\n"),
            ("cpu,cpuacct/free", "cpu.cfs_quota_us", "-1\n"),
        ] {
            let group = mount.join(group);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join(name), text).unwrap();
        }

        for (text, expected) in [
            ("0::/pod/own\n", (1, 70_000)),
            ("4:cpu,cpuacct:/old\n0::/pod/own\n", (2, 70_400)),
            ("4:cpu,cpuacct:/free\n3:memory:/pod\n0::/elsewhere\n", (0, 0)),
        ] {
            let groups = bounded_below(&mount, text);
            assert_eq!((groups.len(), ThrottleReader::open(&groups).read_ns()), expected, "{text}");
        }
        fs::remove_dir_all(&mount).unwrap();
    }
}
