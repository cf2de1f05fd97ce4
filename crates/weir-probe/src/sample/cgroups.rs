//! The table `cgroups`: control groups of processes, versions 1 and 2.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::Whose;
use super::rows::{Counter, Rows, Why, absent};
use super::source::{Files, Source, named, number, pressure};
use super::told::PodFiles;
use crate::throttle::{MOUNT, is_bounded};

/// Memory limits of version 1 from this value on mean unlimited (`PAGE_COUNTER_MAX`, rounded to pages of any size).
const NO_LIMIT: u64 = 1 << 62;

/// Controllers of version 1 that provide counters.
const CONTROLLERS: [&str; 3] = ["cpu", "cpuacct", "memory"];

/// Control groups of a set of processes.
#[derive(Debug)]
pub(super) struct Groups(Vec<Group>);

/// A control group, identified by its path below the mounts. Version 1 has a folder for each controller.
#[derive(Debug)]
struct Group {
    path: String,
    /// True if no quota applies to this group itself: the host's CPU controller has no such group. Quotas above it have
    /// groups of their own.
    is_unbounded: bool,
    cpu_max: Option<Source>,
    cpu_stat: Option<Source>,
    cpu_usage: Option<Source>,
    cpu_quota: Option<Source>,
    cpu_period: Option<Source>,
    cpu_pressure: Option<Source>,
    memory: Option<Source>,
    memory_most: Option<Source>,
    oom: Option<Source>,
}

impl Groups {
    /// Opens the groups of these processes, and those above that have a quota.
    pub(super) fn of(pids: &[u32]) -> Groups {
        let texts =
            pids.iter().filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/cgroup")).ok());
        Groups::below(Path::new(MOUNT), texts)
    }

    /// Opens the group of a pod's container, which sees its own group as the root.
    pub(super) fn of_pod(told: &PodFiles) -> Groups {
        let mount = Path::new(MOUNT);
        let folders = CONTROLLERS
            .map(|name| mount.join(name))
            .into_iter()
            .chain([mount.to_owned()])
            .collect();
        let files = Files::PodFiles(told.clone());
        Groups(vec![Group::open(&files, "/".to_owned(), &folders)])
    }

    fn below(mount: &Path, texts: impl Iterator<Item = String>) -> Groups {
        let mut folders: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
        for text in texts {
            for (tops, path) in text.lines().filter_map(|line| hierarchy(mount, line)) {
                let group_path = Path::new(path.trim_start_matches('/'));
                for (top, (depth, above)) in tops.iter().flat_map(|top| {
                    group_path.ancestors().enumerate().map(move |ancestor| (top, ancestor))
                }) {
                    let folder = top.join(above);
                    let is_own = depth == 0 && above != Path::new("") && folder.is_dir();
                    if is_own || is_bounded(&folder) {
                        let path = format!("/{}", above.display());
                        folders.entry(path).or_default().insert(folder);
                    }
                }
            }
        }
        let groups =
            folders.into_iter().map(|(path, folders)| Group::open(&Files::Here, path, &folders));
        Groups(groups.collect())
    }

    pub(super) fn read(&mut self, whose: &Whose, rows: &mut Rows<'_>) {
        for group in &mut self.0 {
            let values = group.read();
            rows.of(whose, "cgroups", vec![group.path.clone()], &values);
        }
    }
}

/// Parses a line of /proc/PID/cgroup. Returns the folders where its controllers may be mounted, and the path below
/// them. Hosts with both versions mount the second below `unified`.
fn hierarchy<'a>(mount: &Path, line: &'a str) -> Option<(Vec<PathBuf>, &'a str)> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let tops = match controllers {
        "" => vec![mount.to_owned(), mount.join("unified")],
        named => {
            let ours = named.split(',').filter(|name| CONTROLLERS.contains(name));
            let ours: Vec<&str> = ours.collect();
            let joined = (!ours.is_empty()).then(|| mount.join(named));
            joined.into_iter().chain(ours.iter().map(|name| mount.join(name))).collect()
        }
    };
    Some((tops, path))
}

impl Group {
    fn open(files: &Files, path: String, folders: &BTreeSet<PathBuf>) -> Group {
        let is_controlled =
            open_first(files, folders, &["cpu.max", "cpu.stat", "cpu.cfs_quota_us"]).is_some();
        Group {
            path,
            is_unbounded: !is_controlled && matches!(files, Files::Here),
            cpu_max: open_first(files, folders, &["cpu.max"]),
            cpu_stat: open_first(files, folders, &["cpu.stat"]),
            cpu_usage: open_first(files, folders, &["cpuacct.usage"]),
            cpu_quota: open_first(files, folders, &["cpu.cfs_quota_us"]),
            cpu_period: open_first(files, folders, &["cpu.cfs_period_us"]),
            cpu_pressure: open_first(files, folders, &["cpu.pressure"]),
            memory: open_first(files, folders, &["memory.current", "memory.usage_in_bytes"]),
            memory_most: open_first(files, folders, &["memory.max", "memory.limit_in_bytes"]),
            oom: open_first(files, folders, &["memory.events", "memory.oom_control"]),
        }
    }

    fn read(&mut self) -> [(&'static str, Counter); 9] {
        let (quota, period) = self.quota();
        let stat = read(&mut self.cpu_stat, "cpu.stat", |text| Some(text.to_owned()));
        let is_unbounded = self.is_unbounded;
        let throttled_us = find_in_stat(&stat, is_unbounded, |text| {
            named(text, "throttled_usec").or_else(|| Some(named(text, "throttled_time")? / 1000))
        });
        let throttled = find_in_stat(&stat, is_unbounded, |text| named(text, "nr_throttled"));
        let usage = match &mut self.cpu_usage {
            Some(usage) => usage.parsed(|text| Some(number(text, 0)? / 1000)),
            None if is_unbounded => Err("the group has no cpu.stat".into()),
            None => find_in_stat(&stat, is_unbounded, |text| named(text, "usage_usec")),
        };
        let memory = read(&mut self.memory, "memory controller", |text| number(text, 0));
        let most = read(&mut self.memory_most, "memory controller", limit);
        [
            ("quota_us", quota),
            ("period_us", period),
            ("throttled", throttled),
            ("throttled_us", throttled_us),
            ("usage_us", usage),
            ("memory_bytes", memory),
            ("memory_most_bytes", most.and_then(|most| most.map_or_else(absent, Ok))),
            ("pressure_cpu_us", read(&mut self.cpu_pressure, "cpu.pressure", pressure)),
            ("oom_kills", read(&mut self.oom, "memory controller", |text| named(text, "oom_kill"))),
        ]
    }

    /// Returns quota and period; the quota is absent if unlimited.
    fn quota(&mut self) -> (Counter, Counter) {
        if let Some(both) = &mut self.cpu_max {
            let quota = both.parsed(|text| Some(number(text, 0)));
            return (
                quota.and_then(|quota| quota.map_or_else(absent, Ok)),
                both.parsed(|text| number(text, 1)),
            );
        }
        // -1 is none.
        let quota = read(&mut self.cpu_quota, "cpu controller", |text| Some(number(text, 0)));
        let period = read(&mut self.cpu_period, "cpu controller", |text| number(text, 0));
        (quota.and_then(|quota| quota.map_or_else(absent, Ok)), period)
    }
}

/// Parses `max` (`Some(None)`) or a number; a very large one is unlimited, too.
fn limit(text: &str) -> Option<Option<u64>> {
    match text.trim() {
        "max" => Some(None),
        bytes => Some(Some(bytes.parse().ok()?).filter(|bytes| *bytes < NO_LIMIT)),
    }
}

fn find_in_stat(
    stat: &Result<String, Why>,
    is_unbounded: bool,
    find: impl Fn(&str) -> Option<u64>,
) -> Counter {
    if is_unbounded {
        return Ok(0);
    }
    let text = stat.as_ref().map_err(Why::clone)?;
    find(text).ok_or_else(|| "its cpu.stat does not have it".into())
}

fn open_first(files: &Files, folders: &BTreeSet<PathBuf>, names: &[&str]) -> Option<Source> {
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| files.exists(path))
        .map(|path| files.open(path))
}

fn read<T>(
    source: &mut Option<Source>,
    name: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Why> {
    source.as_mut().ok_or_else(|| Why::from(format!("the group has no {name}")))?.parsed(parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files in the format of real kernels: a group with a quota, one below it without, and one of version 1.
    const FILES: [(&str, &str); 15] = [
        ("pod/cpu.max", "50000 100000\n"),
        ("pod/cpu.stat", "usage_usec 9\nnr_periods 8\nnr_throttled 3\nthrottled_usec 70\n"),
        ("pod/own/cpu.max", "max 100000\n"),
        ("pod/own/cpu.stat", "usage_usec 5\nnr_throttled 0\nthrottled_usec 0\n"),
        ("pod/own/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\n"),
        ("pod/own/memory.current", "4096\n"),
        ("pod/own/memory.max", "max\n"),
        ("pod/own/memory.events", "low 0\nhigh 0\nmax 2\noom 1\noom_kill 1\n"),
        ("cpu,cpuacct/old/cpu.cfs_quota_us", "20000\n"),
        ("cpu,cpuacct/old/cpu.cfs_period_us", "100000\n"),
        ("cpu,cpuacct/old/cpu.stat", "nr_periods 1\nnr_throttled 2\nthrottled_time 400000\n"),
        ("cpu,cpuacct/old/cpuacct.usage", "7000\n"),
        ("memory/old/memory.usage_in_bytes", "8192\n"),
        ("memory/old/memory.limit_in_bytes", "9223372036854771712\n"),
        ("memory/old/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"),
    ];

    /// Reads paths and values of the groups named by /proc/PID/cgroup. Values are in the order of the table, -1 if
    /// absent.
    fn read_all(mount: &Path, text: &str) -> Vec<(String, [i64; 9])> {
        let groups = Groups::below(mount, [text.to_owned()].into_iter());
        groups
            .0
            .into_iter()
            .map(|mut group| {
                let values = group.read();
                (group.path, values.map(|(_, value)| value.map_or(-1, u64::cast_signed)))
            })
            .collect()
    }

    #[test]
    fn groups_of_both_versions_are_read_with_those_above_that_bound_them() {
        let mount = std::env::temp_dir().join(format!("weir-groups-{}", std::process::id()));
        for (name, text) in FILES {
            let path = mount.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let wanted = [
            ("/pod".to_owned(), [50_000, 100_000, 3, 70, 9, -1, -1, -1, -1]),
            ("/pod/own".to_owned(), [-1, 100_000, 0, 0, 5, 4096, -1, 11, 1]),
        ];
        assert_eq!(read_all(&mount, "0::/pod/own\n"), wanted);
        let text = "4:cpu,cpuacct:/old\n3:memory:/old\n1:name=systemd:/x\n";
        let wanted = [("/old".to_owned(), [20_000, 100_000, 2, 400, 7, 8192, -1, -1, 4])];
        assert_eq!(read_all(&mount, text), wanted);
        // The CPU controller has it in its root, where nothing is held back.
        let text = "4:cpu,cpuacct:/\n3:memory:/old\n";
        let wanted = [("/old".to_owned(), [-1, -1, 0, 0, -1, 8192, -1, -1, 4])];
        fs::remove_dir_all(mount.join("cpu,cpuacct/old")).unwrap();
        assert_eq!(read_all(&mount, text), wanted);
        fs::remove_dir_all(&mount).unwrap();
    }
}
