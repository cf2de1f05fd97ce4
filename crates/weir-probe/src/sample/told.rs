//! Kernel files printed by a shell in a pod, for the readers of this host's files.
//!
//! No program of weir runs in the pod of another party's proxy: the shell of its image prints the files for each line
//! that it reads ([`SCRIPT`]), and its output replaces the files ([`PodFiles`]) until the next time. The shell ends
//! with its input.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::host::tick_ns;
use super::rows::Why;
use super::source::number;

/// Script for the shell of a pod (POSIX sh): for each line of its input it prints the files, each after a line `==>
/// PATH <==` in the format of head(1), and then [`END`]. head(1) costs one process for all of them; if the image has
/// none, the shell reads them itself. Counters of the quota come first: reading the rest uses CPU time of the same
/// quota.
pub const SCRIPT: &str = r#"
own() {
  for file; do
    [ -r "$file" ] || continue
    echo "==> $file <=="
    while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done < "$file"
  done
}
if command -v head > /dev/null; then print() { head -n 100000 "$@"; }; else print() { own "$@"; }; fi
group=/sys/fs/cgroup
while read -r line; do
  echo "==> shell <=="
  echo $$
  set -- /proc/[0-9]*/stat
  tasks=
  [ $# -gt 256 ] || tasks="/proc/[0-9]*/stat /proc/[0-9]*/schedstat /proc/[0-9]*/status /proc/[0-9]*/io /proc/[0-9]*/cgroup"
  print $group/cpu.stat $group/cpu.max $group/cpu.pressure $group/memory.current $group/memory.max $group/memory.events \
    $group/cpu/cpu.stat $group/cpu/cpu.cfs_quota_us $group/cpu/cpu.cfs_period_us $group/cpuacct/cpuacct.usage \
    $group/memory/memory.usage_in_bytes $group/memory/memory.limit_in_bytes $group/memory/memory.oom_control \
    /proc/net/netstat /proc/net/snmp /proc/net/sockstat /proc/net/dev /proc/net/stat/nf_conntrack /proc/net/softnet_stat \
    /proc/sys/net/ipv4/ip_local_port_range /proc/sys/net/netfilter/nf_conntrack_count \
    /proc/sys/net/netfilter/nf_conntrack_max /proc/sys/fs/file-nr \
    /proc/stat /proc/loadavg /proc/meminfo /proc/pressure/cpu /proc/pressure/memory /proc/pressure/io $tasks 2> /dev/null
  echo
  echo "==> end <=="
done
"#;

/// The line after a reading.
pub const END: &str = "==> end <==\n";

/// Reason for values that a pod's files do not contain.
pub(super) const NOT_TOLD: &str = "not read in a pod";

/// Tables that are missing for a pod that cannot be read.
pub const TABLES: [&str; 6] = ["cgroups", "network", "processes", "cpus", "host", "softnet"];

/// Files of a pod at one point in time. Clones share the same files.
#[derive(Debug, Clone, Default)]
pub struct PodFiles(Arc<Mutex<Texts>>);

#[derive(Debug, Default)]
struct Texts {
    files: BTreeMap<PathBuf, String>,
    /// Process id of the shell.
    shell: Option<u32>,
    /// Processes of the previous reading, with their start times.
    before: BTreeSet<(u32, u64)>,
}

impl Texts {
    fn of(&self, pid: u32, name: &str) -> Option<&String> {
        let path = PathBuf::from(format!("/proc/{pid}/{name}"));
        self.files.get(&path)
    }

    /// Returns all processes, with the part of `stat` after the name.
    fn processes(&self) -> impl Iterator<Item = (u32, &str)> {
        self.files.iter().filter_map(|(path, stat)| {
            let folder = path.parent()?.strip_prefix("/proc").ok()?;
            let pid = folder.to_str()?.parse().ok()?;
            let (_, rest) = stat.rsplit_once(')').filter(|_| path.ends_with("stat"))?;
            Some((pid, rest))
        })
    }
}

/// Returns the start time of a process in ticks: the 22nd field of `stat`.
fn started(stat: &str) -> u64 {
    number(stat, 19).unwrap_or(0)
}

impl PodFiles {
    /// Parses the shell's output, up to [`END`] or longer, and replaces the previous files.
    pub fn take(&self, printed: &str) {
        let mut texts = Texts::default();
        let mut path = String::new();
        for line in printed.lines() {
            match header(line) {
                Some("end") => break,
                Some(name) => name.clone_into(&mut path),
                None if path == "shell" => texts.shell = texts.shell.or(line.trim().parse().ok()),
                None if path.is_empty() => {}
                None => {
                    let text = texts.files.entry(PathBuf::from(&path)).or_default();
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        // head(1) has an empty line before the name of the next file.
        for text in texts.files.values_mut() {
            if text.ends_with("\n\n") {
                text.pop();
            }
        }
        let mut now = self.lock();
        let before = now.processes().map(|(pid, stat)| (pid, started(stat)));
        texts.before = before.collect();
        *now = texts;
    }

    /// Copies a file's text and returns its length; `None` if it was not printed.
    pub(super) fn copy(&self, path: &Path, to: &mut Vec<u8>) -> Option<usize> {
        let texts = self.lock();
        let text = texts.files.get(path)?;
        to.clear();
        to.extend_from_slice(text.as_bytes());
        Some(text.len())
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.lock().files.contains_key(path)
    }

    /// Returns the processes of the container with their folders. Excludes the shell and its children, processes of
    /// other containers, which a pod may show as well, and short-lived ones such as a probe of the kubelet.
    pub(super) fn processes(&self) -> BTreeMap<u32, PathBuf> {
        let texts = self.lock();
        let shell = texts.shell.unwrap_or(0);
        let group = texts.of(shell, "cgroup");
        let begun = texts
            .processes()
            .find(|(pid, _)| *pid == shell)
            .map_or(u64::MAX, |(_, stat)| started(stat));
        let second = 1_000_000_000 / tick_ns();
        texts
            .processes()
            .filter(|(pid, stat)| {
                let start = started(stat);
                let is_beside = *pid != shell && number(stat, 1) != Some(shell.into());
                let lasts =
                    start.saturating_add(second) <= begun || texts.before.contains(&(*pid, start));
                is_beside && texts.of(*pid, "cgroup") == group && lasts
            })
            .map(|(pid, _)| (pid, PathBuf::from(format!("/proc/{pid}"))))
            .collect()
    }

    /// Returns the reason why there are no processes.
    pub(super) fn no_processes(&self) -> Why {
        match self.lock().shell {
            Some(_) => "more than 256 processes can be seen in the pod".into(),
            None => NOT_TOLD.into(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Texts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the name in the line before a file.
fn header(line: &str) -> Option<&str> {
    let name = line.strip_prefix("==> ")?.strip_suffix(" <==")?;
    (name.starts_with('/') || ["shell", "end"].contains(&name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::sample::Sampler;

    /// Output of a pod with version 2 of control groups, shortened.
    const PRINTED: &str = "==> shell <==\n40\n==> /sys/fs/cgroup/cpu.stat <==\nusage_usec 900\nnr_periods 8\nnr_throttled 3\n\
        throttled_usec 70\n\n==> /sys/fs/cgroup/cpu.max <==\n10000 100000\n\n==> /sys/fs/cgroup/memory.max <==\nmax\n\n\
        ==> /proc/net/netstat <==\nTcpExt: ListenOverflows ListenDrops\nTcpExt: 5 6\n\n\
        ==> /proc/net/softnet_stat <==\n0000000a 1 2 0 0 0 0 0 0 3 0 0 00000000\n\n\
        ==> /proc/1/stat <==\n1 (nginx) S 0 1 1 0 -1 0 0 0 0 0 3 5 0 0 20 0 1 0 7 1\n\n\
        ==> /proc/9/stat <==\n9 (==> /x <==) S 1 1 1 0 -1 0 0 0 0 0 4 6 0 0 20 0 9 0 8 1\n\n\
        ==> /proc/30/stat <==\n30 (pause) S 0 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 8 1\n\n\
        ==> /proc/40/stat <==\n40 (sh) S 0 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 900 1\n\n\
        ==> /proc/41/stat <==\n41 (head) R 40 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 1\n\n\
        ==> /proc/50/stat <==\n50 (sleep) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 890 1\n\n==> /proc/50/cgroup <==\n0::/\n\n\
        ==> /proc/1/cgroup <==\n0::/\n\n==> /proc/9/cgroup <==\n0::/\n\n==> /proc/30/cgroup <==\n0::/../other\n\n\
        ==> /proc/40/cgroup <==\n0::/\n\n==> /proc/41/cgroup <==\n0::/\n\n==> end <==\n==> /proc/2/stat <==\n";

    /// Rows of a table by their keys, with the value of a column.
    fn rows(sampler: &mut Sampler, table: &str, column: &str) -> Vec<(String, Option<u64>)> {
        let counters = weir_model::sample::Counters::builtin();
        let values = counters.table(table).unwrap().values();
        let index = values.into_iter().position(|name| name == column).unwrap();
        sampler
            .read(7)
            .into_iter()
            .filter(|row| row.table == table)
            .map(|row| (row.keys.join(" "), row.values[index]))
            .collect()
    }

    #[test]
    fn files_of_a_pod_are_read_by_the_readers_of_this_hosts() {
        let pod_files = PodFiles::default();
        pod_files.take(PRINTED);
        let mut sampler = Sampler::of_pod(&pod_files, "", true);
        for (table, column, expected) in [
            ("cgroups", "throttled", vec![("proxy /", Some(3))]),
            ("cgroups", "quota_us", vec![("proxy /", Some(10_000))]),
            ("cgroups", "memory_bytes", vec![("proxy /", None)]),
            ("network", "listen_overflows", vec![("proxy", Some(5))]),
            ("network", "passive_opens", vec![("proxy", None)]),
            ("softnet", "dropped", vec![("0", Some(1))]),
            (
                "processes",
                "system_ns",
                vec![("proxy 1 nginx", Some(50_000_000)), ("proxy 9 ==> /x <==", Some(60_000_000))],
            ),
        ] {
            let table_rows = rows(&mut sampler, table, column);
            let values: Vec<_> = table_rows.iter().map(|(keys, value)| (&**keys, *value)).collect();
            assert_eq!(values, expected, "{table}.{column}");
        }
        // What is there the next time as well lives longer than a moment.
        pod_files.take(PRINTED);
        assert_eq!(rows(&mut sampler, "processes", "threads").len(), 3);
        // The node's counters are read in one pod of each node alone.
        let mut arm_sampler = Sampler::of_pod(&pod_files, "few", false);
        assert_eq!(rows(&mut arm_sampler, "softnet", "dropped"), []);
        assert!(arm_sampler.read(7).iter().all(|row| row.arm == "few"));
        let missing = arm_sampler.missing();
        let why = |table: &str, column: &str| {
            let row = missing.iter().find(|row| row.table == table && row.column == column);
            row.map(|row| row.why.clone()).unwrap_or_default()
        };
        assert!(why("network", "passive_opens").contains("/proc/net/snmp"));
        assert_eq!(why("listeners", ""), NOT_TOLD);
        assert_eq!(why("processes", "descriptors"), NOT_TOLD);
    }

    /// With head(1) and without, the shell prints this host's files, once for each line, and ends with its input.
    #[test]
    fn the_script_prints_for_each_line_and_ends_with_its_input() {
        for path in [None, Some("/nonexistent")] {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", SCRIPT]);
            command.envs(path.map(|path| ("PATH", path)));
            let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut to = shell.stdin.take().unwrap();
            let mut from = BufReader::new(shell.stdout.take().unwrap());
            let pod_files = PodFiles::default();
            for _ in 0..2 {
                to.write_all(b"\n").unwrap();
                let mut printed = String::new();
                while !printed.ends_with(END) {
                    assert!(from.read_line(&mut printed).unwrap() > 0, "{printed}");
                }
                pod_files.take(&printed);
                assert!(pod_files.has(Path::new("/proc/net/netstat")), "{path:?}: {printed}");
                assert!(pod_files.has(Path::new("/proc/stat")), "{path:?}");
            }
            drop(to);
            assert!(shell.wait().unwrap().success(), "{path:?}");
        }
    }
}
