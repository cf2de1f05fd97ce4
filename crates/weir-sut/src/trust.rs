//! Trust in processes and programs by their owners. Anybody may call a process `nginx: master process`, and the user
//! who inspects a host is often root: no program of another user's is run, and no file is opened that another user's
//! process names.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;

/// Returns true for root and for the user of this process.
pub fn is_own(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

/// Returns the real, effective, saved and file system user in the text of `/proc/PID/status` (proc_pid_status(5)).
pub fn user_ids(status: &str) -> Vec<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let words = line.unwrap_or_default().split_ascii_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

/// Returns the reason why files and programs that a process names are not used; `None` if all four of its user ids are
/// root's or this user's. A set-user-ID program that another user has started is not trusted.
pub(crate) fn against_process(pid: u32) -> Option<String> {
    let users = user_ids(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default());
    match users.iter().find(|user| !is_own(**user)) {
        Some(user) => Some(format!("process {pid} is user {user}'s: run weir as that user")),
        None if users.is_empty() => Some(format!("process {pid} has ended")),
        None => None,
    }
}

/// Returns the reason why a program is not run; `None` if it and all folders above it belong to root or this user, and
/// nobody else may write to any of them.
pub fn against_program(program: &Path) -> Option<String> {
    let real = match fs::canonicalize(program) {
        Ok(real) => real,
        Err(error) => return Some(format!("{}: {error}", program.display())),
    };
    real.ancestors().find_map(|path| {
        let shown = path.display();
        match fs::symlink_metadata(path) {
            Err(error) => Some(format!("{shown}: {error}")),
            Ok(metadata) if !is_own(metadata.uid()) => {
                Some(format!("{shown} belongs to user {}", metadata.uid()))
            }
            Ok(metadata) if metadata.mode() & 0o022 != 0 => {
                Some(format!("others than its owner may write to {shown}"))
            }
            Ok(_) => None,
        }
    })
}
