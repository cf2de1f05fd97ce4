//! Traces that a run may leave on a host, read from the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use weir_host::journal;
use weir_testkit::sandbox::leads_below;

/// Folders of settings of the whole host that a run could change.
const FOLDERS: [&str; 2] = ["/proc/sys/fs", "/proc/sys/net/core"];

/// Files in these folders that are not settings, such as counters (Documentation/admin-guide/sysctl/fs.rst).
const NO_SETTINGS: &str = "aio-nr binfmt_misc dentry-state file-nr inode-nr inode-state";

/// State of a host before a run.
pub(crate) struct Snapshot {
    settings: BTreeMap<PathBuf, String>,
    links: BTreeSet<String>,
    named: BTreeSet<String>,
    mounts: String,
}

impl Snapshot {
    /// Records the state. `but` are settings that others may change meanwhile.
    pub(crate) fn take(but: &[PathBuf]) -> Snapshot {
        let mut settings = BTreeMap::new();
        for folder in FOLDERS {
            gather(Path::new(folder), &mut settings);
        }
        settings.retain(|path, _| !but.contains(path));
        Snapshot {
            settings,
            links: names("/sys/class/net"),
            named: names("/run/netns"),
            mounts: fs::read_to_string("/proc/self/mountinfo").expect("/proc"),
        }
    }

    fn changed(&self) -> Vec<String> {
        self.settings
            .iter()
            .filter_map(|(path, before)| {
                let now = fs::read_to_string(path).unwrap_or_default();
                let name = path.display();
                (now != *before).then(|| format!("{name}: {} -> {}", before.trim(), now.trim()))
            })
            .collect()
    }
}

/// Collects the settings below a folder; a missing folder has none.
fn gather(folder: &Path, into: &mut BTreeMap<PathBuf, String>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        if NO_SETTINGS.split(' ').any(|counter| name == *counter) {
            continue;
        }
        if path.is_dir() {
            // Counters of quotas, too.
            if !path.ends_with("quota") {
                gather(&path, into);
            }
        } else if let Ok(value) = fs::read_to_string(&path) {
            into.insert(path, value);
        }
    }
}

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Folders of a run on one host.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    /// Folder above all files of the run on this host.
    pub(crate) folder: PathBuf,
    pub(crate) temporary: PathBuf,
    pub(crate) journal: PathBuf,
}

/// Traces that are left of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Traces {
    pub(crate) settings: Vec<String>,
    pub(crate) processes: Vec<String>,
    pub(crate) namespaces: Vec<String>,
    links: Vec<String>,
    mounts: bool,
    pub(crate) folders: Vec<String>,
    locks: Vec<String>,
}

impl Traces {
    /// Looks for traces. `seen` are the network namespaces that the run's processes had.
    pub(crate) fn look(before: &Snapshot, grounds: &[Ground], namespaces: &Namespaces) -> Traces {
        let now = names("/sys/class/net");
        let named = names("/run/netns");
        let links = before.links.symmetric_difference(&now);
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("/proc");
        let folders = grounds.iter().map(|ground| names(&ground.temporary.to_string_lossy()));
        let held = grounds
            .iter()
            .filter(|ground| journal::pending(&ground.journal).is_ok_and(|pending| pending.held));
        let still = namespaces.still_there().into_iter();
        Traces {
            settings: before.changed(),
            processes: processes_of(grounds).into_iter().map(describe).collect(),
            namespaces: still.chain(named.difference(&before.named).cloned()).collect(),
            links: links.cloned().collect(),
            mounts: mounts != before.mounts,
            folders: folders.flatten().collect(),
            locks: held.map(|ground| ground.journal.display().to_string()).collect(),
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        *self == Traces::default()
    }

    /// Returns true if there are no processes, namespaces or locks left; files are not checked.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.processes.is_empty() && self.namespaces.is_empty() && self.locks.is_empty()
    }
}

impl fmt::Display for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [
            ("setting", &self.settings),
            ("process", &self.processes),
            ("namespace", &self.namespaces),
            ("link", &self.links),
            ("folder", &self.folders),
            ("lock", &self.locks),
        ];
        for (kind, list) in lists {
            for trace in list {
                write!(f, "\n    {kind} {trace}")?;
            }
        }
        if self.mounts {
            write!(f, "\n    mounts are others")?;
        }
        Ok(())
    }
}

/// Returns processes whose environment, executable, folder or open files are in these folders. Several are checked
/// because nginx writes its title over its environment, and others are started with relative paths.
pub(crate) fn processes_of(grounds: &[Ground]) -> Vec<u32> {
    pids().into_iter().filter(|pid| grounds.iter().any(|ground| belongs(*pid, ground))).collect()
}

fn belongs(pid: u32, ground: &Ground) -> bool {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mark = format!("TMPDIR={}", ground.temporary.display());
    let mut variables = environment.split(|&byte| byte == 0);
    let is_marked = variables.any(|variable| variable == mark.as_bytes());
    let mut open = tasks(pid).flat_map(|task| open(&task));
    is_marked
        || leads_below(&folder.join("exe"), &ground.folder)
        || leads_below(&folder.join("cwd"), &ground.folder)
        || open.any(|file| leads_below(&folder.join(file), &ground.folder))
}

fn describe(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state: String = stat.split_whitespace().skip(2).take(2).collect();
    format!("{pid} ({state}) {line}")
}

fn pids() -> Vec<u32> {
    let this_process = std::process::id();
    names("/proc")
        .into_iter()
        .filter_map(|name| name.parse().ok())
        .filter(|&pid| pid != this_process)
        .collect()
}

/// Returns the folders of a process's threads: each may have its own table of descriptors.
fn tasks(pid: u32) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|task| task.path())
}

/// Returns the paths of the open descriptors of a thread.
fn open(task: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(task.join("fd"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|descriptor| descriptor.path())
}

/// Returns the paths of a process's network namespaces: those of its threads, and those that it holds open.
fn namespace_files(pid: u32) -> impl Iterator<Item = PathBuf> {
    tasks(pid).flat_map(|task| std::iter::once(task.join("ns/net")).chain(open(&task)))
}

/// Returns the name of a network namespace; `None` if the file is something else.
fn namespace(file: &Path) -> Option<String> {
    let target = fs::read_link(file).ok()?.to_string_lossy().into_owned();
    target.starts_with("net:[").then_some(target)
}

/// Network namespaces of a run, held open so that no other gets the number of one that has ended.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    seen: BTreeSet<String>,
    _held: Vec<File>,
}

impl Namespaces {
    /// Collects the present namespaces of the run's processes, except the host's.
    pub(crate) fn of(grounds: &[Ground]) -> Namespaces {
        let host_namespaces: BTreeSet<String> =
            namespace_files(std::process::id()).filter_map(|file| namespace(&file)).collect();
        let mut namespaces = Namespaces::default();
        for path in processes_of(grounds).into_iter().flat_map(namespace_files) {
            if namespace(&path).as_ref().is_some_and(|name| !host_namespaces.contains(name) && !namespaces.seen.contains(name))
                && let Ok(file) = File::open(&path)
                // By what was opened: the path may stand for another by now.
                && let Some(name) = namespace(&reopened(&file))
            {
                namespaces.seen.insert(name);
                namespaces._held.push(file);
            }
        }
        namespaces
    }

    /// Returns the names of these namespaces that a process still uses.
    fn still_there(&self) -> Vec<String> {
        if self.seen.is_empty() {
            return Vec::new();
        }
        let there: BTreeSet<String> = pids()
            .into_iter()
            .flat_map(namespace_files)
            .filter_map(|file| namespace(&file))
            .collect();
        self.seen.intersection(&there).cloned().collect()
    }
}

fn reopened(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
