//! A proxy that runs: its processes, their CPU time, and their end.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};
use weir_probe::{ProcessCpu, ProcessId, process};

use crate::SutError;
use crate::orphans::writers_below;

/// How long a proxy may take to end in order before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// How often processes that are about to end are looked at.
const POLL: Duration = Duration::from_millis(5);

/// Lines of a log that are shown to a person.
const TAIL_LINES: usize = 8;

/// A proxy that accepts connections. Dropping it ends its processes, as [`RunningProxy::stop`] does.
#[derive(Debug)]
pub struct RunningProxy {
    child: Child,
    address: SocketAddr,
    error_log: PathBuf,
    workers: Vec<ProcessId>,
    cpu: Vec<ProcessCpu>,
    ended: bool,
}

impl RunningProxy {
    /// Takes charge of a master process from the moment it was spawned.
    pub(crate) fn new(child: Child, address: SocketAddr, error_log: PathBuf) -> RunningProxy {
        RunningProxy {
            child,
            address,
            error_log,
            workers: Vec::new(),
            cpu: Vec::new(),
            ended: false,
        }
    }

    /// Notes the processes that are there now, once all workers are.
    pub(crate) fn note_processes(&mut self) -> Result<(), SutError> {
        let pids = process::children(self.child.id())?;
        self.workers = pids
            .iter()
            .map(|&pid| ProcessId::of(pid))
            .collect::<Result<_, _>>()?;
        self.cpu = std::iter::once(self.child.id())
            .chain(pids)
            .map(ProcessCpu::open)
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    /// How the master process ended, if it did.
    pub(crate) fn exit_status(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        self.ended = true;
        Some(status.to_string())
    }

    /// Address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Process number of the master process.
    pub fn master_pid(&self) -> u32 {
        self.child.id()
    }

    /// Process numbers of the workers, ascending.
    pub fn worker_pids(&self) -> Vec<u32> {
        self.workers.iter().map(|worker| worker.pid).collect()
    }

    /// CPU time of master and workers since they began, in nanoseconds. Exact while the proxy
    /// rests; see [`weir_probe::ThreadCpu`] for what it lacks while it works. Costs less
    /// than a microsecond per process.
    ///
    /// # Errors
    /// The kernel refused. A process that ended keeps its last figure; [`RunningProxy::alive`]
    /// finds that out.
    pub fn cpu_ns(&mut self) -> Result<u64, SutError> {
        let mut sum = 0;
        for process in &mut self.cpu {
            sum += process.read_ns()?;
        }
        Ok(sum)
    }

    /// Soft limit of open descriptors of the first worker, or of the master without workers.
    ///
    /// # Errors
    /// The process is gone.
    pub fn nofile(&self) -> Result<u64, SutError> {
        let pid = self
            .workers
            .first()
            .map_or(self.child.id(), |worker| worker.pid);
        Ok(process::nofile(pid)?.0)
    }

    /// The last lines of the proxy's error log; empty when it has nothing to say.
    pub fn error_log_tail(&self) -> String {
        tail(&self.error_log)
    }

    /// Whether every process that was there at the start still is.
    ///
    /// # Errors
    /// [`SutError::Died`] with the first that is not. A master process starts a new worker for one
    /// that died, so the proxy may still answer; its figures are worth nothing all the same.
    pub fn alive(&mut self) -> Result<(), SutError> {
        let died = |what, pid, log: &Path, address| SutError::Died {
            what,
            pid,
            address,
            words: tail(log),
        };
        if self.exit_status().is_some() {
            return Err(died(
                "master process",
                self.child.id(),
                &self.error_log,
                self.address,
            ));
        }
        match self.workers.iter().find(|worker| !worker.is_alive()) {
            Some(worker) => Err(died(
                "worker process",
                worker.pid,
                &self.error_log,
                self.address,
            )),
            None => Ok(()),
        }
    }

    /// Ends master and workers: SIGTERM, and SIGKILL to what is left after five seconds. Returns
    /// when none is left and all are reaped.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let master = self.child.id();
        // Workers may have been replaced since they were noted.
        let mut workers = self.workers.clone();
        workers.extend(living_children(master));
        if !self.ended {
            signal(master, Signal::TERM);
            let deadline = Instant::now() + GRACE;
            while self.exit_status().is_none() && Instant::now() < deadline {
                std::thread::sleep(POLL);
            }
        }
        if !self.ended {
            workers.extend(living_children(master));
            // As long as it is not waited for, its number stays its own.
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.ended = true;
        }
        let status = self.child.try_wait().ok().flatten();
        if !status.is_some_and(|status| status.success()) {
            // Killed by somebody else, perhaps before its workers were noted.
            workers.extend(self.orphans());
        }
        kill_all(&workers);
    }

    /// Processes that write below the prefix still.
    fn orphans(&self) -> Vec<ProcessId> {
        let prefix = self.error_log.ancestors().nth(2);
        let prefix = prefix.and_then(|prefix| fs::canonicalize(prefix).ok());
        prefix.map_or_else(Vec::new, |prefix| writers_below(&prefix))
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        self.end();
    }
}

/// Where a proxy of weir's under `prefix` leaves the number of its master process.
pub(crate) fn proxy_pid_file(prefix: &Path) -> PathBuf {
    prefix.join("nginx.pid")
}

/// Ends a master process that is not a child of this one, and its workers.
pub(crate) fn end_processes(master: u32, first: Signal, grace: Duration) {
    let Ok(id) = ProcessId::of(master) else {
        return;
    };
    let mut all = living_children(master);
    signal(master, first);
    wait_for(&[id], grace);
    all.extend(living_children(master));
    all.push(id);
    kill_all(&all);
}

/// The last lines of a file, without empty and repeated ones; empty when it cannot be read. nginx
/// repeats itself while it waits for a port.
pub(crate) fn tail(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines.dedup();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

fn living_children(master: u32) -> Vec<ProcessId> {
    let pids = process::children(master).unwrap_or_default();
    pids.into_iter()
        .filter_map(|pid| ProcessId::of(pid).ok())
        .collect()
}

/// Kills what is left of a proxy whose master is gone. Each is looked at first: its number may
/// be another program's by now.
pub(crate) fn kill_all(processes: &[ProcessId]) {
    for process in processes.iter().filter(|process| process.is_alive()) {
        signal(process.pid, Signal::KILL);
    }
    wait_for(processes, GRACE);
    for process in processes {
        // Orphans come to this process when it is the first of its container; else there is
        // nobody of that number to wait for, which is an error without consequence.
        if let Some(pid) = raw_pid(process.pid) {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

fn wait_for(processes: &[ProcessId], at_most: Duration) {
    let deadline = Instant::now() + at_most;
    while processes.iter().any(|process| process.is_alive()) && Instant::now() < deadline {
        std::thread::sleep(POLL);
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = raw_pid(pid) {
        // It may have ended in the meantime, which is what was wanted.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn raw_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
