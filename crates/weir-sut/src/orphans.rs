//! Processes of proxies whose weir, or whose main process, is gone.
//!
//! Workers outlive a master that was killed, and name nobody any more: their parent is another, their
//! command line says only what they are. What is left to know them by is the program that they run and
//! the files that they hold open.

use std::fs;
use std::path::{Path, PathBuf};

use weir_probe::{ProcessId, process};

/// Name of the file in a prefix that says which program runs there.
pub(crate) const PROGRAM_FILE: &str = "program";

/// `O_ACCMODE` of open(2), under which 0 is to read alone.
const ACCESS_MODE: u32 = 3;

/// The processes that run a prefix's program and write below it. Nobody but weir's user may write
/// there, and weir starts no other process of that program there than its proxy's, so there is no
/// doubt whose they are.
pub(crate) fn writers_below(prefix: &Path) -> Vec<ProcessId> {
    let programs = fs::read_to_string(prefix.join(PROGRAM_FILE)).unwrap_or_default();
    let programs: Vec<&Path> = programs.lines().map(Path::new).collect();
    let runs_one = |pid: u32| program_of(pid).is_some_and(|program| programs.contains(&&*program));
    writers(prefix, runs_one)
}

/// The processes of a group that write below a prefix, whatever they run: what a script has started
/// is of the group that the script was started in.
pub(crate) fn writers_of_group(prefix: &Path, group: u32) -> Vec<ProcessId> {
    let is_of_group = |pid: u32| process::group(pid).is_ok_and(|found| found == group);
    writers(prefix, is_of_group)
}

fn writers(prefix: &Path, is_meant: impl Fn(u32) -> bool) -> Vec<ProcessId> {
    let Ok(prefix) = fs::canonicalize(prefix) else {
        return Vec::new();
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| ProcessId::of(pid).ok())
        .filter(|process| is_meant(process.pid) && writes_below(process.pid, &prefix))
        // Its number may have become another's between two looks.
        .filter(|process| process.is_alive())
        .collect()
}

/// The program that a process runs, by its real path. One that was replaced on the disk meanwhile is
/// marked by the kernel (proc_pid_exe(5)).
pub(crate) fn program_of(pid: u32) -> Option<PathBuf> {
    let link = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let path = link.to_string_lossy();
    Some(PathBuf::from(
        path.strip_suffix(" (deleted)").unwrap_or(&path),
    ))
}

fn writes_below(pid: u32, folder: &Path) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    descriptors.flatten().any(|descriptor| {
        let is_below = fs::read_link(descriptor.path()).is_ok_and(|file| file.starts_with(folder));
        is_below && is_for_writing(pid, &descriptor.file_name().to_string_lossy())
    })
}

/// By the flags in `/proc/PID/fdinfo`, which are octal (proc(5)).
fn is_for_writing(pid: u32, descriptor: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}"));
    let text = text.unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & ACCESS_MODE != 0)
}
