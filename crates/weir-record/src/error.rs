//! Errors of run folders, with the path and the kernel's message.

use std::io;
use std::path::{Path, PathBuf};

use weir_model::record::FORMAT;

/// Error when reading or writing a run folder.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A system call failed.
    #[error("cannot {action} {}: {error}", path.display())]
    Io {
        /// Operation that failed: `create`, `write`, `read`, …
        action: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error from the kernel.
        error: io::Error,
    },
    /// The folder for a new run is not empty.
    #[error("{} exists and is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// The folder holds no run.
    #[error("{} is not a run folder: it has no {}", .0.display(), crate::HEADER_FILE)]
    NotARun(PathBuf),
    /// Others could have written the programs that would be started.
    #[error("the run cannot go on, since others could have written what it starts: {0}")]
    NotOurs(#[from] weir_files::NotOurs),
    /// Others could write what a new run is to keep, or have it written elsewhere.
    #[error("a run cannot be kept there: {0}")]
    OpenToOthers(#[source] weir_files::NotOurs),
    /// Another process is writing to the run.
    #[error("another weir is writing to {}", .0.display())]
    Busy(PathBuf),
    /// The run was written in a format that this version of weir does not know.
    #[error("{} has format `{found}`; this weir reads `{FORMAT}`", path.display())]
    UnknownFormat {
        /// Path of the header.
        path: PathBuf,
        /// Format that the header states.
        found: String,
    },
    /// A line is malformed.
    #[error("{}:{line}: {message}", path.display())]
    Corrupt {
        /// Path of the file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Description of the defect.
        message: String,
    },
    /// A record was refused because it could not be read back, for example because of a figure that is not a number.
    #[error("refused to write a record that could not be read back: {0}")]
    Unreadable(String),
    /// A tag contains a character that the log format cannot quote.
    #[error("`{0}` cannot be a tag: it holds a comma, white space or a line end")]
    BadTag(String),
    /// A histogram could not be encoded.
    #[error("cannot encode the histogram `{tag}`: {message}")]
    Encode {
        /// Tag of the histogram.
        tag: String,
        /// Message of the encoder.
        message: String,
    },
    /// The path of a file to be written leads out of the run folder.
    #[error("`{0}` is not a path inside the run folder")]
    Outside(String),
}

impl RecordError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordError {
        move |error| RecordError::Io { action, path: path.to_owned(), error }
    }

    /// Returns true if a run that had begun could not be continued because writing failed, for example because a disk
    /// is full.
    pub fn is_of_writing(&self) -> bool {
        match self {
            RecordError::Io { action, .. } => ["create", "write", "flush"].contains(action),
            _ => false,
        }
    }

    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RecordError::Io { error, .. } => match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some("free some space, or choose a folder on another file system")
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("choose a folder that you may write to")
                }
                _ => None,
            },
            RecordError::NotEmpty { .. } => {
                Some("choose a folder that does not exist yet, or resume the run that is in it")
            }
            RecordError::NotOurs(_) => Some(
                "move the run to a folder of yours that nobody else may write to (chmod go-w), if you trust it",
            ),
            RecordError::OpenToOthers(_) => Some(
                "choose a folder of yours with --out, to which nobody else may write (chmod go-w)",
            ),
            RecordError::Busy { .. } => Some("wait for it to end, or stop it"),
            RecordError::Corrupt { .. } => Some(
                "the run was damaged or mixed with another: restore the file from a copy, or measure again",
            ),
            RecordError::UnknownFormat { .. } => Some("use the weir that wrote it, or a newer one"),
            _ => None,
        }
    }
}
