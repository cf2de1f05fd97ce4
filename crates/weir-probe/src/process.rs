//! Processes: their CPU time, their children, their limits, and the detection of reused process ids.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use rustix::io::Errno;

use crate::{ProbeError, read_text};

/// CPU time of one thread, with a file kept open for repeated reading.
///
/// The figure is the first field of `/proc/PID/task/TID/schedstat`: nanoseconds on a CPU, user and system together
/// (kernel Documentation/scheduler/sched-stats.rst). It is exact if the thread is not running. For a thread that is
/// running on another CPU the kernel has counted up to the last scheduler tick, so the figure may lack some
/// milliseconds, which the next reading includes.
#[derive(Debug)]
pub struct ThreadCpu {
    file: File,
    path: PathBuf,
    last_ns: u64,
}

impl ThreadCpu {
    /// Opens a thread of this process, by its kernel thread id (`gettid`).
    ///
    /// # Errors
    /// Fails if there is no such thread, or the kernel was built without `CONFIG_SCHED_INFO`.
    pub fn of_own_thread(tid: u32) -> Result<ThreadCpu, ProbeError> {
        let path = PathBuf::from(format!("/proc/self/task/{tid}/schedstat"));
        let file = File::open(&path).map_err(|e| ProbeError::read(&path, e))?;
        let mut thread = ThreadCpu { file, path, last_ns: 0 };
        thread.read_ns()?;
        Ok(thread)
    }

    /// Returns the nanoseconds on a CPU since the thread began. A thread that has ended keeps its last figure.
    ///
    /// # Errors
    /// Fails if the kernel refuses the read, or its text is not a number.
    pub fn read_ns(&mut self) -> Result<u64, ProbeError> {
        match self.reading() {
            Ok(ns) => {
                self.last_ns = ns;
                Ok(ns)
            }
            Err(ProbeError::Read { source, .. }) if is_gone(&source) => Ok(self.last_ns),
            Err(error) => Err(error),
        }
    }

    fn reading(&self) -> Result<u64, ProbeError> {
        // Three 64-bit numbers in decimal at most.
        let mut buffer = [0_u8; 64];
        let length =
            self.file.read_at(&mut buffer, 0).map_err(|e| ProbeError::read(&self.path, e))?;
        let text = &buffer[..length];
        leading_number(text).ok_or_else(|| ProbeError::malformed(&self.path, text))
    }
}

/// Returns the memory of a process in bytes: its proportional set size (Pss in proc_pid_smaps_rollup(5)), in which a
/// page that several processes share counts once for all of them together. The sum over a proxy's processes is thus the
/// memory of the proxy. Takes the kernel milliseconds if there is much memory.
///
/// # Errors
/// Fails if the process has ended, may not be inspected, or the kernel has no roll-up (before Linux 4.14).
pub fn memory_bytes(pid: u32) -> Result<u64, ProbeError> {
    let path = PathBuf::from(format!("/proc/{pid}/smaps_rollup"));
    let text = read_text(&path)?;
    pss_bytes(&text).ok_or_else(|| ProbeError::malformed(&path, &text))
}

/// Parses `Pss:  123 kB`.
fn pss_bytes(smaps: &str) -> Option<u64> {
    let line = smaps.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kibibytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// CPU time of one process: of all its threads, including those that have ended.
///
/// It is the process's CPU clock (clock_getcpuclockid(3)), nanoseconds in user and system together. Short-lived threads
/// are included, and so is the time that a running thread has used since the scheduler last updated its count.
#[derive(Debug)]
pub struct ProcessCpu {
    pid: u32,
    clock: ClockId,
    last_ns: u64,
}

impl ProcessCpu {
    /// Opens the clock of a process.
    ///
    /// # Errors
    /// Fails if there is no such process.
    pub fn open(pid: u32) -> Result<ProcessCpu, ProbeError> {
        let raw = i32::try_from(pid).map_err(|_| ProbeError::Gone { pid })?;
        let clock =
            clock_getcpuclockid(Pid::from_raw(raw)).map_err(|_| ProbeError::Gone { pid })?;
        let mut process = ProcessCpu { pid, clock, last_ns: 0 };
        process.last_ns = process.reading().ok_or(ProbeError::Gone { pid })?;
        Ok(process)
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the nanoseconds on a CPU. Takes a system call. The figure never falls: a process that ended keeps its
    /// last one, see [`ProcessId::is_alive`].
    pub fn read_ns(&mut self) -> u64 {
        self.last_ns = self.reading().unwrap_or(0).max(self.last_ns);
        self.last_ns
    }

    fn reading(&self) -> Option<u64> {
        let time = self.clock.now().ok()?;
        let seconds_ns = u64::try_from(time.tv_sec()).ok()?.checked_mul(1_000_000_000)?;
        seconds_ns.checked_add(u64::try_from(time.tv_nsec()).ok()?)
    }
}

/// Identity of a process, distinct from a later one with the same number.
///
/// Linux reuses process numbers; number and start time together are unique until the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// The process number.
    pub pid: u32,
    /// Start time, in clock ticks since boot (field 22 of `/proc/PID/stat`, proc(5)).
    pub start_ticks: u64,
}

impl ProcessId {
    /// Returns the identity of the process that has this number now.
    ///
    /// # Errors
    /// [`ProbeError::Gone`] if there is none.
    pub fn of(pid: u32) -> Result<ProcessId, ProbeError> {
        let start_ticks = Stat::read(pid)?.start_ticks;
        Ok(ProcessId { pid, start_ticks })
    }

    /// Returns the identity of this process.
    ///
    /// # Errors
    /// Fails if `/proc` is not mounted.
    pub fn own() -> Result<ProcessId, ProbeError> {
        ProcessId::of(std::process::id())
    }

    /// Returns true if the process still runs. A zombie does not.
    pub fn is_alive(self) -> bool {
        Stat::read(self.pid).is_ok_and(|stat| {
            stat.start_ticks == self.start_ticks && !matches!(stat.state, 'Z' | 'X')
        })
    }
}

/// The fields of `/proc/PID/stat` that are used here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    parent: u32,
    /// Process group; 0 for a group of another PID namespace.
    group: u32,
    start_ticks: u64,
}

impl Stat {
    fn read(pid: u32) -> Result<Stat, ProbeError> {
        let path = format!("/proc/{pid}/stat");
        let text = std::fs::read(&path).map_err(refused(pid, &path))?;
        let text = String::from_utf8_lossy(&text);
        Stat::parse(&text).ok_or_else(|| ProbeError::malformed(&path, text.as_bytes()))
    }

    fn parse(text: &str) -> Option<Stat> {
        // The second field is the program's name in parentheses and may itself hold spaces and
        // parentheses, so fields are counted from the last one.
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        Some(Stat {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            // Field 22 of the line, of which five are behind.
            start_ticks: fields.nth(16)?.parse().ok()?,
        })
    }
}

/// Returns the process group of a process: the id of its leader.
///
/// # Errors
/// [`ProbeError::Gone`] if there is no such process.
pub fn group(pid: u32) -> Result<u32, ProbeError> {
    Ok(Stat::read(pid)?.group)
}

/// Returns the children of a process, ascending.
///
/// # Errors
/// [`ProbeError::Gone`] if there is no such process.
pub fn children(pid: u32) -> Result<Vec<u32>, ProbeError> {
    let folder = format!("/proc/{pid}/task");
    let tasks = std::fs::read_dir(&folder).map_err(refused(pid, &folder))?;
    let mut pids = Vec::new();
    for task in tasks.flatten() {
        match std::fs::read_to_string(task.path().join("children")) {
            Ok(text) => {
                let numbers = text.split_ascii_whitespace();
                pids.extend(numbers.filter_map(|child| child.parse::<u32>().ok()));
            }
            // Built without CONFIG_PROC_CHILDREN, or the thread has just ended.
            Err(_) => return children_by_scan(pid),
        }
    }
    pids.sort_unstable();
    Ok(pids)
}

/// Returns the parent of a process; `None` if the process has ended.
pub fn parent(pid: u32) -> Option<u32> {
    Stat::read(pid).ok().map(|stat| stat.parent)
}

/// Finds the children of a process by reading the parent of every process.
fn children_by_scan(parent: u32) -> Result<Vec<u32>, ProbeError> {
    let entries = std::fs::read_dir("/proc").map_err(|e| ProbeError::read("/proc", e))?;
    let mut pids: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| Stat::read(pid).is_ok_and(|stat| stat.parent == parent))
        .collect();
    pids.sort_unstable();
    Ok(pids)
}

/// Returns the arguments of a process, joined by blanks; empty for a kernel thread. A process may rewrite them: nginx's
/// master shows `nginx: master process` and then its command line.
///
/// # Errors
/// [`ProbeError::Gone`] if there is no such process.
pub fn command_line(pid: u32) -> Result<String, ProbeError> {
    let path = format!("/proc/{pid}/cmdline");
    let bytes = std::fs::read(&path).map_err(refused(pid, &path))?;
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    Ok(text.trim_end().to_owned())
}

/// Returns the soft and hard limit of open descriptors of a process; `u64::MAX` is unlimited.
///
/// # Errors
/// Fails if there is no such process, or it belongs to another user.
pub fn nofile(pid: u32) -> Result<(u64, u64), ProbeError> {
    let path = format!("/proc/{pid}/limits");
    let text = std::fs::read_to_string(&path).map_err(refused(pid, &path))?;
    parse_nofile(&text).ok_or_else(|| ProbeError::malformed(&path, text))
}

pub(crate) fn parse_nofile(limits: &str) -> Option<(u64, u64)> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut fields = line.split_ascii_whitespace();
    Some((parse_limit(fields.next()?)?, parse_limit(fields.next()?)?))
}

fn parse_limit(text: &str) -> Option<u64> {
    if text == "unlimited" { Some(u64::MAX) } else { text.parse().ok() }
}

/// Converts an error from reading a file of a process.
fn refused(pid: u32, path: &str) -> impl FnOnce(io::Error) -> ProbeError + '_ {
    move |error| {
        if is_gone(&error) { ProbeError::Gone { pid } } else { ProbeError::read(path, error) }
    }
}

/// Returns true if an error means that the process or thread has ended: its folder in `/proc` is gone, or a file of it
/// is still open but has no process any more.
fn is_gone(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    number == Some(Errno::SRCH.raw_os_error()) || number == Some(Errno::NOENT.raw_os_error())
}

/// Parses the decimal number at the beginning of a text, which must be followed by another character.
fn leading_number(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&text[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_the_proportional_set() {
        let text = "00400000-7fff rollup\nRss:  2000 kB\nPss:  1500 kB\nPss_Dirty: 7 kB\n";
        assert_eq!(pss_bytes(text), Some(1500 * 1024));
        assert_eq!(pss_bytes("Rss: 1 kB\n"), None);
        let bytes = memory_bytes(std::process::id()).expect("this kernel sums up");
        assert!(bytes > 100 << 10, "{bytes}");
    }

    #[test]
    fn a_program_may_have_blanks_and_parentheses_in_its_name() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 98765 1 2 3";
        let stat = Stat::parse(line).unwrap();
        let numbers = (stat.parent, stat.group, stat.start_ticks);
        assert_eq!((stat.state, numbers), ('S', (7, 42, 98_765)));
        assert_eq!(Stat::parse("42 (a) S 7"), None);
    }

    #[test]
    fn limits_may_be_unlimited() {
        let text = "Limit  Soft Limit  Hard Limit  Units\n\
                    Max processes             1  2  processes\n\
                    Max open files            1024                 unlimited            files\n";
        assert_eq!(parse_nofile(text), Some((1024, u64::MAX)));
        assert_eq!(parse_nofile("Max processes 1 2 processes"), None);
    }

    #[test]
    fn a_schedstat_that_was_cut_short_is_no_number() {
        assert_eq!(leading_number(b"123456789 5 6\n"), Some(123_456_789));
        assert_eq!(leading_number(b"123"), None);
        assert_eq!(leading_number(b""), None);
        assert_eq!(leading_number(b"x 1"), None);
        assert_eq!(leading_number(b"99999999999999999999999 1"), None);
    }

    #[test]
    fn both_ways_to_find_children_agree() {
        let mut sleep = std::process::Command::new("sleep");
        let mut child = sleep.arg("60").spawn().unwrap();
        let pid = std::process::id();
        let (listed, scanned) = (children(pid).unwrap(), children_by_scan(pid).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(listed.contains(&child.id()), "{listed:?}");
        assert!(scanned.contains(&child.id()), "{scanned:?}");
    }
}
