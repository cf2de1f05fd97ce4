//! Removal of a run folder: checked first, then renamed, then removed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use weir_files::{NotOurs, only_ours_named, open_regular};
use weir_record::{HEADER_FILE, RECORDS_FILE};

use crate::entry::{FolderProblem, RunEntry, RunState, is_being_written, read_entry};

/// Beginning of the name of a folder of runs that are being removed.
const REMOVED: &str = ".removed-";
/// File that makes a folder a baseline.
const BASELINE_MARKER: &str = ".weir-baseline";

/// A run that may be removed.
#[derive(Debug)]
pub struct Removable {
    /// The run.
    pub entry: RunEntry,
    path: PathBuf,
}

/// Reason why a folder is not removed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is not a run.
    #[error("it is no run: it has no {HEADER_FILE}")]
    NotARun,
    /// It is a symbolic link.
    #[error("it is a symbolic link; name the folder itself")]
    Link,
    /// A weir is writing to it.
    #[error("a weir is working on it")]
    Running,
    /// It is one of the runs of a baseline.
    #[error("a baseline keeps it; `--baseline DIR --keep N` removes old ones")]
    InBaseline,
    /// It may have left settings changed that are not restored yet.
    #[error("it did not end, and settings wait to be restored: call `weir restore` first")]
    Unrestored,
    /// It belongs to another user.
    #[error("it belongs to another user")]
    OtherOwner,
    /// Others could have written it.
    #[error("others could have written it: {0}")]
    NotOurs(#[from] NotOurs),
    /// The kernel refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Checks that a folder is a run that nobody needs. `awaits_restore` is true if a journal has settings or objects that
/// were not put back.
///
/// # Errors
/// The reason why it is not to be removed.
pub fn check_removal(
    path: &Path,
    weir_version: &str,
    awaits_restore: bool,
) -> Result<Removable, Refusal> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        return Err(Refusal::Link);
    }
    if path.join(HEADER_FILE).symlink_metadata().is_err() {
        return Err(Refusal::NotARun);
    }
    if metadata.uid() != geteuid().as_raw() {
        return Err(Refusal::OtherOwner);
    }
    only_ours_named(path)?;
    // The real path: `.` has no name, and no folder above.
    let real = fs::canonicalize(path)?;
    let is_in_baseline =
        real.parent().is_some_and(|above| above.join(BASELINE_MARKER).symlink_metadata().is_ok());
    if is_in_baseline {
        return Err(Refusal::InBaseline);
    }
    let entry = read_entry(&real, weir_version);
    if entry.problems.contains(&FolderProblem::Link) {
        return Err(Refusal::Link);
    }
    let records = open_regular(&real.join(RECORDS_FILE));
    if entry.state == RunState::Running || records.is_ok_and(|file| is_being_written(&file)) {
        return Err(Refusal::Running);
    }
    let has_end =
        matches!(entry.state, RunState::Complete | RunState::Interrupted | RunState::Failed);
    if awaits_restore && !has_end {
        return Err(Refusal::Unrestored);
    }
    Ok(Removable { entry, path: real })
}

/// Removes a run. Its folder is renamed into a hidden one first, where no list of runs looks, so that a half-removed
/// folder is never taken for a run. What a killed weir left of a removal is removed as well.
///
/// # Errors
/// The kernel refuses.
pub fn remove(run: &Removable) -> io::Result<()> {
    let above = run.path.parent().unwrap_or(Path::new("/"));
    let name = run.path.file_name().unwrap_or_default();
    let hidden = above.join(format!("{REMOVED}{}", std::process::id()));
    weir_files::make_folders(&hidden)?;
    fs::rename(&run.path, hidden.join(name))?;
    for entry in fs::read_dir(above)?.flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(REMOVED.as_bytes()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
