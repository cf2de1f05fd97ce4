//! Whose processes and programs are looked at. Anybody may call a process `nginx: master process`, and
//! whoever examines a host is often root: nothing of another user's is run, and no file opened that
//! another user's process names.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;

use super::source::Source;

/// Whether a process is root's or one's own, by all four of its user ids (proc_pid_status(5)): a
/// set-user-ID program that another user has started is not.
///
/// A folder that stands for `/` has no processes, only what was laid out there.
pub(super) fn has_process(source: &Source, pid: u32) -> bool {
    if !source.is_real() {
        return true;
    }
    let ids = user_ids(source, pid);
    !ids.is_empty() && ids.into_iter().all(is_own)
}

/// Real, effective, saved and file system user of a process; none where there is no such process.
pub(super) fn user_ids(source: &Source, pid: u32) -> Vec<u32> {
    let status = source.peek(&format!("/proc/{pid}/status"));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let words = line.unwrap_or_default().split_ascii_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

fn is_own(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

/// Why a program is not run; `None`: it and all folders above it are root's or one's own, and nobody else
/// may write to any of them.
pub(super) fn against_program(program: &Path) -> Option<String> {
    let real = match fs::canonicalize(program) {
        Ok(real) => real,
        Err(error) => return Some(format!("{}: {error}", program.display())),
    };
    real.ancestors().find_map(|path| {
        let shown = path.display();
        match fs::symlink_metadata(path) {
            Err(error) => Some(format!("{shown}: {error}")),
            Ok(found) if !is_own(found.uid()) => {
                Some(format!("{shown} belongs to user {}", found.uid()))
            }
            Ok(found) if found.mode() & 0o022 != 0 => {
                Some(format!("others than its owner may write to {shown}"))
            }
            Ok(_) => None,
        }
    })
}
