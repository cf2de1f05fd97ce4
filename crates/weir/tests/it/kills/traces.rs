//! What a run may leave on a host, looked for where the kernel shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, DirEntry, File};
use std::path::{Path, PathBuf};

use weir_host::journal;

/// Values of the whole host that a run could change.
const FOLDERS: [&str; 2] = ["/proc/sys/fs", "/proc/sys/net/core"];

/// Counters that stand among the settings (Documentation/admin-guide/sysctl/fs.rst), and what is no
/// setting at all.
const NO_SETTINGS: &str = "aio-nr binfmt_misc dentry-state file-nr inode-nr inode-state";

/// A host before a run.
pub(crate) struct Snapshot {
    settings: BTreeMap<PathBuf, String>,
    links: BTreeSet<String>,
    named: BTreeSet<String>,
    mounts: String,
}

impl Snapshot {
    /// `but` are settings that others may change meanwhile.
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
        let changed = |(path, before): (&PathBuf, &String)| {
            let now = fs::read_to_string(path).unwrap_or_default();
            let name = path.display();
            (now != *before).then(|| format!("{name}: {} -> {}", before.trim(), now.trim()))
        };
        self.settings.iter().filter_map(changed).collect()
    }
}

/// One that is not there as a folder has no settings.
fn gather(folder: &Path, into: &mut BTreeMap<PathBuf, String>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_setting = |entry: &DirEntry| {
        let name = entry.file_name();
        !NO_SETTINGS.split(' ').any(|counter| name == *counter)
    };
    for path in entries.filter(is_setting).map(|entry| entry.path()) {
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
    let name = |entry: DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(name).collect()
}

/// Where a run's own things are: one for each host that takes part.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    /// All of the host's files of the run are below.
    pub(crate) folder: PathBuf,
    pub(crate) temporary: PathBuf,
    pub(crate) journal: PathBuf,
}

/// What is left of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) settings: Vec<String>,
    pub(crate) processes: Vec<String>,
    pub(crate) namespaces: Vec<String>,
    links: Vec<String>,
    mounts: bool,
    pub(crate) folders: Vec<String>,
    locks: Vec<String>,
}

impl Left {
    /// `seen` are the network namespaces of the run's processes while they lived.
    pub(crate) fn look(before: &Snapshot, grounds: &[Ground], seen: &Namespaces) -> Left {
        let now = names("/sys/class/net");
        let named = names("/run/netns");
        let links = before.links.symmetric_difference(&now);
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("/proc");
        let folders = |ground: &Ground| names(&ground.temporary.to_string_lossy());
        let is_held = |ground: &&Ground| journal::pending(&ground.journal).is_ok_and(|p| p.held);
        let held = grounds.iter().filter(is_held);
        let still = seen.still_there().into_iter();
        Left {
            settings: before.changed(),
            processes: processes_of(grounds).into_iter().map(described).collect(),
            namespaces: still
                .chain(named.difference(&before.named).cloned())
                .collect(),
            links: links.cloned().collect(),
            mounts: mounts != before.mounts,
            folders: grounds.iter().flat_map(folders).collect(),
            locks: held
                .map(|ground| ground.journal.display().to_string())
                .collect(),
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        *self == Left::default()
    }

    /// Nothing that lives, as opposed to what is written somewhere.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.processes.is_empty() && self.namespaces.is_empty() && self.locks.is_empty()
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [
            ("setting", &self.settings),
            ("process", &self.processes),
            ("namespace", &self.namespaces),
            ("link", &self.links),
            ("folder", &self.folders),
            ("lock", &self.locks),
        ];
        for (what, list) in lists {
            for thing in list {
                write!(f, "\n    {what} {thing}")?;
            }
        }
        if self.mounts {
            write!(f, "\n    mounts are others")?;
        }
        Ok(())
    }
}

/// Processes whose environment, executable, folder or open files are of these grounds. nginx writes
/// its title over its environment, and others are started with relative paths, so no single one of them
/// will do.
pub(crate) fn processes_of(grounds: &[Ground]) -> Vec<u32> {
    let is_ours = |pid: &u32| grounds.iter().any(|ground| belongs(*pid, ground));
    pids().into_iter().filter(is_ours).collect()
}

fn belongs(pid: u32, ground: &Ground) -> bool {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let is_below = |name: PathBuf| {
        let target = fs::read_link(folder.join(name));
        target.is_ok_and(|target| target.starts_with(&ground.folder))
    };
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mark = format!("TMPDIR={}", ground.temporary.display());
    let mut variables = environment.split(|&byte| byte == 0);
    let is_marked = variables.any(|variable| variable == mark.as_bytes());
    let mut open = tasks(pid).flat_map(|task| open(&task));
    is_marked || is_below("exe".into()) || is_below("cwd".into()) || open.any(is_below)
}

fn described(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state: String = stat.split_whitespace().skip(2).take(2).collect();
    format!("{pid} ({state}) {line}")
}

fn pids() -> Vec<u32> {
    let own = std::process::id();
    let numbers = names("/proc").into_iter();
    let pids = numbers.filter_map(|name| name.parse().ok());
    pids.filter(|&pid| pid != own).collect()
}

/// The folders of a process's threads: the table of descriptors of each may be its own.
fn tasks(pid: u32) -> impl Iterator<Item = PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    tasks.flatten().flatten().map(|task| task.path())
}

/// What stands for the open descriptors of a thread.
fn open(task: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let open = fs::read_dir(task.join("fd")).into_iter().flatten();
    open.flatten().map(|descriptor| descriptor.path())
}

/// Files that stand for the network namespaces of a process: of its threads, and those that it holds.
fn namespace_files(pid: u32) -> impl Iterator<Item = PathBuf> {
    tasks(pid).flat_map(|task| std::iter::once(task.join("ns/net")).chain(open(&task)))
}

/// The name of a network namespace; `None` when the file stands for something else.
fn namespace(file: &Path) -> Option<String> {
    let target = fs::read_link(file).ok()?.to_string_lossy().into_owned();
    target.starts_with("net:[").then_some(target)
}

/// The network namespaces of a run, held so that no other gets the number of one that is gone.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    seen: BTreeSet<String>,
    _held: Vec<File>,
}

impl Namespaces {
    /// Those of the run's processes now, but the host's.
    pub(crate) fn of(grounds: &[Ground]) -> Namespaces {
        let own: BTreeSet<String> = namespace_files(std::process::id())
            .filter_map(|file| namespace(&file))
            .collect();
        let mut found = Namespaces::default();
        for path in processes_of(grounds).into_iter().flat_map(namespace_files) {
            let is_news = |name: &String| !own.contains(name) && !found.seen.contains(name);
            if namespace(&path).as_ref().is_some_and(is_news)
                && let Ok(file) = File::open(&path)
                // By what was opened: the path may stand for another by now.
                && let Some(name) = namespace(&held(&file))
            {
                found.seen.insert(name);
                found._held.push(file);
            }
        }
        found
    }

    /// Those that somebody else has.
    fn still_there(&self) -> Vec<String> {
        if self.seen.is_empty() {
            return Vec::new();
        }
        let files = pids().into_iter().flat_map(namespace_files);
        let there: BTreeSet<String> = files.filter_map(|file| namespace(&file)).collect();
        self.seen.intersection(&there).cloned().collect()
    }
}

fn held(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
