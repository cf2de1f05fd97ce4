//! A running proxy: its processes, their CPU time, and their end.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Instant;

use rustix::process::Signal;
use weir_model::study::ProxyKind;
use weir_probe::{ProcessCpu, ProcessId, process};

use crate::orphans::{
    PROCESSES_FILE, PROGRAM_FILE, note, program_of, writers_below, writers_of_group,
};
use crate::processes::{POLL, descendants, kill_all, kill_at, living, signal};
use crate::{Configuration, SutError};

/// Number of lines of a log that are shown to people.
const TAIL_LINES: usize = 8;

/// A proxy that accepts connections. Dropping it ends its processes, as [`RunningProxy::stop`] does.
#[derive(Debug)]
pub struct RunningProxy {
    kind: ProxyKind,
    /// Process that was started: the proxy, or the launcher in front of it.
    child: Child,
    /// Number of the proxy's own first process.
    main: u32,
    program: PathBuf,
    address: SocketAddr,
    prefix: PathBuf,
    error_log: PathBuf,
    workers: Vec<ProcessId>,
    cpu: Vec<ProcessCpu>,
    ended: bool,
}

impl RunningProxy {
    /// Takes charge of a process right after it was spawned.
    pub(crate) fn new(child: Child, configuration: &Configuration, program: &Path) -> RunningProxy {
        RunningProxy {
            kind: configuration.kind(),
            main: child.id(),
            child,
            program: fs::canonicalize(program).unwrap_or_else(|_| program.to_owned()),
            address: configuration.listen(),
            prefix: configuration.prefix().to_owned(),
            error_log: configuration.error_log(),
            workers: Vec::new(),
            cpu: Vec::new(),
            ended: false,
        }
    }

    /// Notes the present processes, once all have started, except those that are about to end as expected, such as
    /// workers that a reload has replaced.
    pub(crate) fn note_processes_but(&mut self, leaving: &[u32]) -> Result<(), SutError> {
        self.main = self.find_main();
        self.note_real_programs();
        self.note_processes();
        let mut below = descendants(self.main);
        below.retain(|pid| !leaving.contains(pid));
        self.workers = below.iter().map(|&pid| ProcessId::of(pid)).collect::<Result<_, _>>()?;
        self.cpu = std::iter::once(self.main)
            .chain(below)
            .map(ProcessCpu::open)
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Returns the number of the proxy's own first process; its launcher may still run before it.
    pub fn find_main(&self) -> u32 {
        std::iter::once(self.child.id())
            .chain(descendants(self.child.id()))
            .find(|&pid| program_of(pid).as_ref() == Some(&self.program))
            .unwrap_or(self.child.id())
    }

    /// Notes all programs that run, for a search for what they left: a script or a launcher may become or start another
    /// program than the named one.
    fn note_real_programs(&self) {
        let started = std::iter::once(self.child.id()).chain(descendants(self.child.id()));
        let mut programs = vec![self.program.clone()];
        for program in started.filter_map(program_of) {
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
        let lines = programs.iter().map(|program| format!("{}\n", program.display()));
        // What is missing is a process that a later sweep might not find.
        let _ = weir_files::write(&self.prefix.join(PROGRAM_FILE), lines.collect::<String>());
    }

    /// Notes numbers and start times of processes too, for those that show nothing else.
    fn note_processes(&self) {
        let started = std::iter::once(self.child.id()).chain(descendants(self.child.id()));
        let processes: Vec<ProcessId> = living(started.collect()).collect();
        // As above.
        let _ = note(&self.prefix.join(PROCESSES_FILE), &processes);
    }

    /// Returns the present processes below the proxy's own first one.
    pub fn below(&self) -> Vec<u32> {
        descendants(self.find_main())
    }

    /// Counts the processes below the proxy's own first one.
    pub(crate) fn count_workers(&self) -> usize {
        self.below().len()
    }

    /// Returns the exit status of the process that was started, if it has ended.
    pub(crate) fn exit_status(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        self.ended = true;
        Some(status.to_string())
    }

    /// Returns the address that the proxy listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of the master process, or of the only one.
    pub fn master_pid(&self) -> u32 {
        self.main
    }

    /// Returns the process numbers of the workers, ascending.
    pub fn worker_pids(&self) -> Vec<u32> {
        self.workers.iter().map(|worker| worker.pid).collect()
    }

    /// Returns the CPU time of master and workers since they began, in nanoseconds. A process that ended keeps its last
    /// figure; [`RunningProxy::alive`] detects that.
    pub fn cpu_ns(&mut self) -> u64 {
        self.cpu.iter_mut().map(ProcessCpu::read_ns).sum()
    }

    /// Returns the soft limit of open descriptors of the first worker, or of the master without workers.
    ///
    /// # Errors
    /// The process has ended.
    pub fn nofile(&self) -> Result<u64, SutError> {
        let pid = self.workers.first().map_or(self.main, |worker| worker.pid);
        Ok(process::nofile(pid)?.0)
    }

    /// Returns the last lines of the proxy's error log; empty if there are none.
    pub fn error_log_tail(&self) -> String {
        tail(&self.error_log)
    }

    /// Checks that every process that was there at the start is still alive.
    ///
    /// # Errors
    /// [`SutError::Died`] with the first process that is not. A master process starts a new worker for one that died,
    /// so the proxy may still answer; its figures are worthless all the same.
    pub fn alive(&mut self) -> Result<(), SutError> {
        let died = |what, pid| SutError::Died {
            kind: self.kind,
            what,
            pid,
            address: self.address,
            words: tail(&self.error_log),
        };
        let ended = self.child.try_wait().ok().flatten().is_some();
        self.ended |= ended;
        if ended {
            return Err(died("master process", self.main));
        }
        match self.workers.iter().find(|worker| !worker.is_alive()) {
            Some(worker) => Err(died("worker process", worker.pid)),
            None => Ok(()),
        }
    }

    /// Ends master and workers: SIGTERM, and SIGKILL to those left after five seconds. Returns when none is left and
    /// all are reaped.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let started = self.child.id();
        // Workers may have been replaced since they were noted.
        let mut processes = self.workers.clone();
        processes.extend(living(descendants(started)));
        if !self.ended {
            signal(self.main, Signal::TERM);
            if started != self.main {
                signal(started, Signal::TERM);
            }
            let deadline = kill_at();
            while self.exit_status().is_none() && Instant::now() < deadline {
                std::thread::sleep(POLL);
            }
        }
        if !self.ended {
            processes.extend(living(descendants(started)));
            // As long as it is not waited for, its number stays its own.
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.ended = true;
        }
        let status = self.child.try_wait().ok().flatten();
        if !status.is_some_and(|status| status.success()) {
            // Killed by somebody else, perhaps before its workers were noted.
            processes.extend(writers_below(&self.prefix));
            processes.extend(writers_of_group(&self.prefix, started));
        }
        kill_all(&processes);
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the last lines of a file, without empty and repeated ones; empty if it cannot be read. nginx repeats itself
/// while it waits for a port.
pub(crate) fn tail(path: &Path) -> String {
    tail_of(path, |_| true)
}

/// Does the same as [`tail`], with only those lines for which `is_wanted` is true.
pub(crate) fn tail_of(path: &Path, is_wanted: impl Fn(&str) -> bool) -> String {
    let bytes = weir_files::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<&str> =
        text.lines().filter(|line| !line.trim().is_empty() && is_wanted(line)).collect();
    lines.dedup();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
