//! Files of a run folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of files and folders that are looked at in one run folder.
const MOST_ENTRIES: usize = 10_000;
/// Maximum depth of folders below a run folder.
const MOST_LEVELS: usize = 8;

/// A file in a run folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderFile {
    /// Path below the run folder.
    pub path: PathBuf,
    /// Length in bytes.
    pub bytes: u64,
    /// True if it is a regular file; false for links, FIFOs, sockets and devices.
    pub is_regular: bool,
}

/// Lists the files of a run folder by their paths. Links are listed, never followed.
///
/// # Errors
/// A folder cannot be read, or there are more files or levels than any run has.
pub fn files_in(dir: &Path) -> io::Result<Vec<FolderFile>> {
    let mut files = Vec::new();
    let mut waiting = vec![(PathBuf::new(), 0)];
    let mut entries_seen = 0;
    while let Some((below, level)) = waiting.pop() {
        for listed in fs::read_dir(dir.join(&below))? {
            let entry = listed?;
            entries_seen += 1;
            if entries_seen > MOST_ENTRIES || level > MOST_LEVELS {
                return Err(io::Error::other(format!(
                    "it has more than {MOST_ENTRIES} files or {MOST_LEVELS} levels, as no run has"
                )));
            }
            let metadata = entry.metadata()?;
            let path = below.join(entry.file_name());
            if metadata.is_dir() {
                waiting.push((path, level + 1));
            } else {
                let is_regular = metadata.is_file();
                files.push(FolderFile { path, bytes: metadata.len(), is_regular });
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}
