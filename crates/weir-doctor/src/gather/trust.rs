//! Decides which users' processes are examined ([`weir_sut::trust`]), on a host or in a folder that is used as `/`.

pub(super) use weir_sut::trust::against_program;
use weir_sut::trust::is_own;

use super::source::Source;

/// Returns true for a process that belongs to root or to the caller by all four of its user ids. A set-user-ID program
/// that another user has started does not.
///
/// A folder that is used as `/` has no processes, only what was laid out there.
pub(super) fn has_process(source: &Source, pid: u32) -> bool {
    if !source.is_real() {
        return true;
    }
    let ids = user_ids(source, pid);
    !ids.is_empty() && ids.into_iter().all(is_own)
}

/// Returns the real, effective, saved and file system user ids of a process; empty if there is no such process.
pub(super) fn user_ids(source: &Source, pid: u32) -> Vec<u32> {
    let status = source.peek(&format!("/proc/{pid}/status"));
    weir_sut::trust::user_ids(&status.unwrap_or_default())
}
