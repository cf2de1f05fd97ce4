//! Whose processes are looked at ([`weir_sut::trust`]), on a host or in a folder that stands for `/`.

pub(super) use weir_sut::trust::against_program;
use weir_sut::trust::is_own;

use super::source::Source;

/// Returns true for a process of root's or one's own, by all four of its user ids: a set-user-ID program that another user has
/// started is not.
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
    weir_sut::trust::user_ids(&status.unwrap_or_default())
}
