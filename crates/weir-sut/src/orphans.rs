//! Processes of proxies whose weir, or whose main process, has ended.
//!
//! Workers outlive a master that was killed, and nothing names their owner any more: their parent is another process,
//! and their command line says only what they are. They are recognised by either of these:
//!
//! * They run a program that was noted in the prefix ([`PROGRAM_FILE`]), and hold a file below the prefix open for
//!   writing.
//! * Their number and their start time were noted in the prefix ([`PROCESSES_FILE`]). The kernel hides program and
//!   files of a process that is not dumpable (proc(5), prctl(2)): one whose program has capabilities of its own or may
//!   not be read, or one that has become another user. Such a program also outlives a weir that is killed, since the
//!   kernel takes the death signal from it (prctl(2), PR_SET_PDEATHSIG).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weir_probe::{ProcessId, process};

use crate::processes::{descendants, living};

/// Name of the file in a prefix that names the program that runs there.
pub(crate) const PROGRAM_FILE: &str = "program";

/// Name of the file in a prefix that lists the processes that were started there. The first one leads the group of all
/// of them.
pub(crate) const PROCESSES_FILE: &str = "processes";

/// Number of characters of a program's name that the kernel keeps (TASK_COMM_LEN, proc_pid_comm(5)).
const NAME_LENGTH: usize = 15;

/// Mask `O_ACCMODE` of open(2), under which 0 means read only.
const ACCESS_MODE: u32 = 3;

/// Returns the processes that run a prefix's program and write below the prefix. Only weir's user may write there, and
/// weir starts no other process of that program there than its proxy's, so they certainly belong to the proxy.
pub(crate) fn writers_below(prefix: &Path) -> Vec<ProcessId> {
    let programs = read_programs(prefix);
    find_processes(|process| {
        program_of(process.pid).is_some_and(|program| programs.contains(&program))
            && writes_below(process.pid, prefix) == Some(true)
    })
}

/// Returns the processes of a group that write below a prefix, or do not show whether they do, whatever they run:
/// processes started by a script are in the script's group.
pub(crate) fn writers_of_group(prefix: &Path, group: u32) -> Vec<ProcessId> {
    find_processes(|process| {
        is_of_group(process, group) && writes_below(process.pid, prefix) != Some(false)
    })
}

/// Returns all processes that an ended weir has left below a prefix. `has_numbers` is true if its noted process numbers
/// are still valid; they are not after a boot, or in another container.
pub(crate) fn left_below(prefix: &Path, has_numbers: bool) -> Vec<ProcessId> {
    let mut processes = writers_below(prefix);
    if has_numbers {
        let noted = read_noted(prefix);
        let alive = noted.iter().filter(|process| process.is_alive());
        let below = alive.clone().flat_map(|process| living(descendants(process.pid)));
        let hidden = noted.first().map(|leader| hidden_of_group(prefix, *leader));
        let more: Vec<ProcessId> = alive.copied().chain(below).collect();
        for process in more.into_iter().chain(hidden.into_iter().flatten()) {
            if !processes.contains(&process) {
                processes.push(process);
            }
        }
    }
    processes
}

/// Notes the processes of a prefix for [`left_below`].
pub(crate) fn note(file: &Path, processes: &[ProcessId]) -> io::Result<()> {
    weir_files::write(
        file,
        processes
            .iter()
            .map(|process| format!("{} {}\n", process.pid, process.start_ticks))
            .collect::<String>(),
    )
}

fn read_noted(prefix: &Path) -> Vec<ProcessId> {
    let text = fs::read_to_string(prefix.join(PROCESSES_FILE)).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let (pid, start_ticks) = line.split_once(' ')?;
            Some(ProcessId { pid: pid.parse().ok()?, start_ticks: start_ticks.parse().ok()? })
        })
        .collect()
}

/// Returns processes that were started in a group after they were last noted, and do not show their program. A group
/// keeps its leader's number as long as it has a member (setpgid(2)), so the group is the same unless the number is
/// another process's by now. The processes also have the name of a program of the prefix.
fn hidden_of_group(prefix: &Path, leader: ProcessId) -> Vec<ProcessId> {
    let is_another_s = ProcessId::of(leader.pid).is_ok_and(|now| now != leader);
    if is_another_s {
        return Vec::new();
    }
    let programs = read_programs(prefix);
    let names: Vec<String> = programs.iter().filter_map(|path| name_of(path)).collect();
    find_processes(|process| {
        let comm = fs::read_to_string(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
        process.start_ticks >= leader.start_ticks
            && is_of_group(process, leader.pid)
            && names.iter().any(|name| name == comm.trim_end())
            && writes_below(process.pid, prefix).is_none()
    })
}

/// Returns the kernel's name for a process that runs a program.
fn name_of(program: &Path) -> Option<String> {
    let name = program.file_name()?.to_str()?;
    Some(name.chars().take(NAME_LENGTH).collect())
}

fn is_of_group(process: ProcessId, group: u32) -> bool {
    process::group(process.pid).is_ok_and(|current| current == group)
}

fn read_programs(prefix: &Path) -> Vec<PathBuf> {
    let programs = fs::read_to_string(prefix.join(PROGRAM_FILE)).unwrap_or_default();
    programs.lines().map(PathBuf::from).collect()
}

/// Returns the processes of this machine that satisfy `is_meant`.
fn find_processes(is_meant: impl Fn(ProcessId) -> bool) -> Vec<ProcessId> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| ProcessId::of(pid).ok())
        .filter(|process| is_meant(*process))
        // Its number may have become another's between two looks.
        .filter(|process| process.is_alive())
        .collect()
}

/// Returns the program that a process runs, by its real path. The kernel marks a program that was replaced on the disk
/// meanwhile (proc_pid_exe(5)); the mark is removed.
pub(crate) fn program_of(pid: u32) -> Option<PathBuf> {
    let link = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let path = link.to_string_lossy();
    Some(PathBuf::from(path.strip_suffix(" (deleted)").unwrap_or(&path)))
}

/// Returns true if a process has a file below a folder open for writing; `None` if it does not show its files.
fn writes_below(pid: u32, folder: &Path) -> Option<bool> {
    let Ok(folder) = fs::canonicalize(folder) else {
        return Some(false);
    };
    let descriptors = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
        descriptors => descriptors.into_iter().flatten(),
    };
    Some(descriptors.flatten().any(|descriptor| {
        let is_below = fs::read_link(descriptor.path()).is_ok_and(|file| file.starts_with(&folder));
        is_below && is_for_writing(pid, &descriptor.file_name().to_string_lossy())
    }))
}

/// Returns true if a descriptor is open for writing, by the octal flags in `/proc/PID/fdinfo` (proc(5)).
fn is_for_writing(pid: u32, descriptor: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & ACCESS_MODE != 0)
}
