//! The tables `processes` and `threads`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, fstat, open};

use super::host::tick_ns;
use super::pace::Pace;
use super::rows::{Counter, Rows, Why, absent};
use super::source::{self, Source, leaving_room, number, unread};
use super::told::NOT_TOLD;
use super::{Tasks, Whose};
use crate::process::{children, parse_nofile};

/// Minimum time between searches for processes: without CONFIG_PROC_CHILDREN the whole of /proc is read.
const SEARCH: Duration = Duration::from_secs(5);

/// Number of threads above which the threads of a process are not read.
const MOST_THREADS: usize = 128;

/// Processes or threads of a place, as far as they are known.
#[derive(Debug)]
pub(super) struct TaskTable {
    tasks: Tasks,
    known: BTreeMap<u32, Task>,
    search: Pace,
}

/// A process or a thread.
#[derive(Debug)]
struct Task {
    files: Files,
    limits: Source,
    descriptors: Descriptors,
    io: Source,
    /// True for a process of a pod, whose shell does not print threads.
    is_told: bool,
    /// Threads of a process that has several.
    threads: BTreeMap<u32, Files>,
}

/// Files that processes and threads have in common.
#[derive(Debug)]
struct Files {
    folder: PathBuf,
    stat: Source,
    schedstat: Source,
    status: Source,
}

/// Fields of `stat` (proc_pid_stat(5)).
struct Stat {
    name: String,
    user_ns: u64,
    system_ns: u64,
    threads: u64,
    started_ticks: u64,
}

impl TaskTable {
    pub(super) fn open(tasks: Tasks) -> TaskTable {
        TaskTable { tasks, known: BTreeMap::new(), search: Pace::default() }
    }

    pub(super) fn read(&mut self, whose: &Whose, rows: &mut Rows<'_>) {
        let is_threads = matches!(self.tasks, Tasks::Threads(_));
        let present = match &self.tasks {
            // Those of a load come and go with each trial.
            Tasks::Threads(prefix) => Some(own_threads(prefix)),
            Tasks::Processes(roots) => self.search.every(SEARCH, || with_children(roots)),
            Tasks::PodFiles(told) => Some(told.processes()),
        };
        let files = match &self.tasks {
            Tasks::PodFiles(told) => source::Files::PodFiles(told.clone()),
            _ => source::Files::Here,
        };
        if let (Tasks::PodFiles(told), Some(present)) = (&self.tasks, &present)
            && present.is_empty()
        {
            rows.miss_table("processes", whose.role, &told.no_processes());
        }
        if let Some(present) = present {
            self.known.retain(|id, _| present.contains_key(id));
            for (id, folder) in present {
                self.known.entry(id).or_insert_with(|| Task::open(&files, folder));
            }
        }
        let before = self.known.len();
        // The CPU times of all first: what else is read may take long where all CPUs are busy, and is of the same moment.
        let mut stats: BTreeMap<u32, Stat> = (self.known.iter_mut())
            .filter_map(|(id, task)| Some((*id, task.files.stat()?)))
            .collect();
        // One that has ended has no row; the kernel says so of its files.
        self.known.retain(|&id, task| {
            let stat = stats.remove(&id);
            stat.map(|stat| task.read(id, stat, is_threads, whose, rows)).is_some()
        });
        if self.known.len() < before {
            self.search.hurry();
        }
    }
}

/// Returns these processes and all their descendants, with their folders.
fn with_children(roots: &[u32]) -> BTreeMap<u32, PathBuf> {
    let mut folders = BTreeMap::new();
    let mut pending = roots.to_vec();
    while let Some(pid) = pending.pop() {
        if folders.insert(pid, PathBuf::from(format!("/proc/{pid}"))).is_none() {
            pending.extend(children(pid).unwrap_or_default());
        }
    }
    folders
}

/// Returns the threads of this process whose names begin with `prefix`.
fn own_threads(prefix: &str) -> BTreeMap<u32, PathBuf> {
    threads(Path::new("/proc/self"))
        .filter_map(|(id, folder)| {
            let name = std::fs::read_to_string(folder.join("comm")).ok()?;
            name.starts_with(prefix).then_some((id, folder))
        })
        .collect()
}

fn threads(process: &Path) -> impl Iterator<Item = (u32, PathBuf)> {
    std::fs::read_dir(process.join("task")).into_iter().flatten().filter_map(|entry| {
        let entry = entry.ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))
    })
}

impl Task {
    fn open(files: &source::Files, folder: PathBuf) -> Task {
        Task {
            limits: files.open(folder.join("limits")),
            descriptors: Descriptors::open(files, &folder),
            io: files.open(folder.join("io")),
            is_told: matches!(files, source::Files::PodFiles(_)),
            files: Files::open(files, folder),
            threads: BTreeMap::new(),
        }
    }

    /// Adds the rows of the task.
    fn read(&mut self, id: u32, stat: Stat, is_thread: bool, whose: &Whose, rows: &mut Rows<'_>) {
        let [resident] = self.files.status.named(["VmRSS"]);
        let [mut wait, mut voluntary, mut involuntary] = self.files.waits();
        if !is_thread && stat.threads > 1 {
            [wait, voluntary, involuntary] = self.read_threads(id, whose, rows);
        }
        let values = [
            ("user_ns", Ok(stat.user_ns)),
            ("system_ns", Ok(stat.system_ns)),
            ("wait_ns", wait),
            ("voluntary", voluntary),
            ("involuntary", involuntary),
            ("descriptors", self.descriptors.count()),
            ("descriptors_most", self.limits.parsed(|text| Some(parse_nofile(text)?.0))),
            ("resident_bytes", resident.map(|kib| kib * 1024)),
            ("written_bytes", self.io.parsed(written)),
            ("threads", Ok(stat.threads)),
            ("started_ticks", Ok(stat.started_ticks)),
        ];
        rows.of(whose, "processes", vec![id.to_string(), stat.name], &values);
    }

    /// Adds the rows of its threads. Returns the sums of their waits.
    fn read_threads(&mut self, id: u32, whose: &Whose, rows: &mut Rows<'_>) -> [Counter; 3] {
        if self.is_told {
            rows.miss_table("threads", whose.role, NOT_TOLD);
            return [(); 3].map(|()| Err(NOT_TOLD.into()));
        }
        let present: BTreeMap<u32, PathBuf> = threads(&self.files.folder).collect();
        if present.len() > MOST_THREADS {
            let why = Why::from(format!("a process has {} threads", present.len()));
            rows.miss_table("threads", whose.role, &why);
            return [(); 3].map(|()| Err(why.clone()));
        }
        self.threads.retain(|id, _| present.contains_key(id));
        let mut sums = [(); 3].map(|()| Ok(0));
        for (thread, folder) in present {
            let files = self
                .threads
                .entry(thread)
                .or_insert_with(|| Files::open(&source::Files::Here, folder));
            let Some(stat) = files.stat() else {
                continue;
            };
            let waits = files.waits();
            let values = [
                ("user_ns", Ok(stat.user_ns)),
                ("system_ns", Ok(stat.system_ns)),
                ("wait_ns", waits[0].clone()),
            ];
            let keys = vec![id.to_string(), thread.to_string(), stat.name];
            rows.of(whose, "threads", keys, &values);
            for (sum, wait) in sums.iter_mut().zip(waits) {
                *sum = sum.clone().and_then(|sum| Ok(sum + wait?));
            }
        }
        sums
    }
}

impl Files {
    fn open(files: &source::Files, folder: PathBuf) -> Files {
        Files {
            stat: files.open(folder.join("stat")),
            schedstat: files.open(folder.join("schedstat")),
            status: files.open(folder.join("status")),
            folder,
        }
    }

    fn stat(&mut self) -> Option<Stat> {
        self.stat.parsed(|text| stat_of(text, tick_ns())).ok()
    }

    /// Returns the time that it was ready and did not run, and its voluntary and involuntary context switches.
    fn waits(&mut self) -> [Counter; 3] {
        let names = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
        let [voluntary, involuntary] = self.status.named(names);
        [self.schedstat.parsed(|text| number(text, 1)), voluntary, involuntary]
    }
}

/// Parses `42 (a name) S 1 …`: CPU times are the 14th and 15th field, the number of threads the 20th, the start the
/// 22nd.
fn stat_of(text: &str, tick_ns: u64) -> Option<Stat> {
    let (before, behind) = text.rsplit_once(')')?;
    let field = |place: usize| number(behind, place - 3);
    let is_alive = !behind.trim_start().starts_with(['Z', 'X']);
    is_alive.then_some(Stat {
        name: before.split_once('(')?.1.to_owned(),
        user_ns: field(14)? * tick_ns,
        system_ns: field(15)? * tick_ns,
        threads: field(20)?,
        started_ticks: field(22)?,
    })
}

/// Returns the number in the line `write_bytes: 4096`.
fn written(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("write_bytes:"))?;
    value.trim().parse().ok()
}

/// Counter of a task's open descriptors.
#[derive(Debug)]
struct Descriptors {
    path: PathBuf,
    folder: Result<File, Why>,
    pace: Pace,
}

impl Descriptors {
    fn open(files: &source::Files, task: &Path) -> Descriptors {
        let path = task.join("fd");
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let folder = match files {
            source::Files::PodFiles(_) => Err(NOT_TOLD.into()),
            source::Files::Here => open(&path, flags, Mode::empty())
                .map_err(io::Error::from)
                .and_then(leaving_room)
                .map(File::from)
                .map_err(|error| unread(&path, &error)),
        };
        Descriptors { folder, path, pace: Pace::default() }
    }

    /// Returns the number of descriptors. The folder's size is that number since Linux 6.2; before, they are counted
    /// one by one, now and then.
    fn count(&mut self) -> Counter {
        let folder = self.folder.as_ref().map_err(Why::clone)?;
        match fstat(folder).map(|found| found.st_size) {
            Ok(0) => {}
            Ok(size) => return Ok(size.unsigned_abs()),
            Err(error) => return Err(unread(&self.path, &error.into())),
        }
        let path = &self.path;
        let counted = self.pace.paced(|| std::fs::read_dir(path).map(Iterator::count));
        match counted {
            None => absent(),
            Some(counted) => Ok(counted.map_err(|error| unread(path, &error))? as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_parentheses_and_one_that_has_ended_is_not_read() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 3 5 0 0 20 0 9 0 98765 1 2 3";
        let stat = stat_of(line, 10).unwrap();
        let numbers = [stat.user_ns, stat.system_ns, stat.threads, stat.started_ticks];
        assert_eq!((&*stat.name, numbers), ("a) b (c", [30, 50, 9, 98_765]));
        assert!(stat_of(&line.replace(") S", ") Z"), 10).is_none());
    }
}
