//! Processes of a proxy whose master process is gone.
//!
//! nginx's workers outlive a master that was killed, and name nobody any more: their parent is
//! another, their command line says only what they are. What is left to know them by is the files
//! that they hold open.

use std::fs;
use std::path::Path;

use weir_probe::{ProcessId, process};

/// What an nginx calls itself in its command line (`ngx_setproctitle`), whatever its part.
const TITLE: &str = "nginx: ";

/// `O_ACCMODE` of open(2), under which 0 is to read alone.
const ACCESS_MODE: u32 = 3;

/// The processes of nginx that write below a folder of weir's, by its real path. Nobody but weir's
/// user may write there, and weir starts no other nginx there than its own, so there is no doubt
/// whose they are.
pub(crate) fn writers_below(folder: &Path) -> Vec<ProcessId> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| ProcessId::of(pid).ok())
        .filter(|process| is_nginx(process.pid) && writes_below(process.pid, folder))
        // Its number may have become another's between two looks.
        .filter(|process| process.is_alive())
        .collect()
}

fn is_nginx(pid: u32) -> bool {
    process::command_line(pid).is_ok_and(|line| line.starts_with(TITLE))
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
