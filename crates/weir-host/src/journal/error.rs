//! Errors that keep weir from changing a setting, or from putting it back.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_files::NotOurs;

use super::key::{Key, in_words, put_back_command, quoted};
use super::settings::SettingError;

/// Name and version of the journal's format.
pub(super) const FORMAT: &str = "weir-journal/1";

/// The weir process that holds the lock on a host's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holder {
    /// Process number of the holder.
    pub pid: u32,
    /// Time at which the lock was taken: RFC 3339, in UTC.
    pub since: String,
    /// Purpose in the holder's own words, such as its command line.
    pub purpose: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Holder { pid, since, purpose } = self;
        write!(f, "process {pid}, since {since}, for {purpose}")
    }
}

/// Error that keeps weir from changing a setting, or from putting it back.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another weir, which still runs, uses the settings of this host. None if it has not yet written who it is.
    #[error(
        "another weir is using the settings of this host: {}",
        .0.as_ref().map_or_else(|| "it has not yet said which".to_owned(), Holder::to_string)
    )]
    Held(Option<Holder>),
    /// An earlier weir was killed before it could put back this number of settings.
    #[error("an earlier weir has left {}", count(*.0))]
    Left(usize),
    /// The kernel refused an operation on the journal's files.
    #[error("cannot {action} {}: {error}", path.display())]
    Io {
        /// Action that was attempted: `create`, `write`, `read`, …
        action: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error from the kernel.
        error: io::Error,
    },
    /// The journal is damaged. Nothing was changed.
    #[error("{}:{line}: the journal is damaged: {words}", path.display())]
    Damaged {
        /// The journal's file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Description of the damage.
        words: String,
    },
    /// Other users could have written the journal. Nothing was changed.
    #[error("the journal of changed settings cannot be trusted: {0}")]
    NotOurs(#[from] NotOurs),
    /// The journal names a setting that weir does not change. Nothing was changed.
    #[error("{}:{line}: {key} is not a setting of weir's catalog or of the study", path.display())]
    Unlisted {
        /// The journal's file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The setting.
        key: Key,
    },
    /// The setting to be changed has no row in the catalog or the study.
    #[error("{0} is not a setting of weir's catalog or of the study")]
    NoRow(Key),
    /// Another version of weir wrote the journal. Nothing was changed.
    #[error("{}: the journal's format is {found}, and this weir knows {FORMAT}", path.display())]
    Format {
        /// The journal's file.
        path: PathBuf,
        /// Format that the file names.
        found: String,
    },
    /// There is no such setting.
    #[error("there is no setting {0} here")]
    Absent(Key),
    /// The kernel refused to read or to set a value.
    #[error("cannot {action} {key}: {words}")]
    Refused {
        /// Action that was attempted: `read`, or ``give the value `…` to``.
        action: String,
        /// The setting.
        key: Key,
        /// Error message of the kernel.
        words: String,
    },
    /// The kernel turned the value into another one. The previous value was written again.
    #[error("{key} was set to `{value}` and became `{found}`")]
    NotTaken {
        /// The setting.
        key: Key,
        /// Value that weir wrote.
        value: String,
        /// Value that was read back.
        found: String,
    },
    /// Somebody else has changed a setting that weir had changed. It was left alone.
    #[error(
        "somebody else has changed {key}: it was `{before}`, weir gave it {}, and it is `{found}` now",
        in_words(given)
    )]
    Differs {
        /// The setting.
        key: Key,
        /// Original value, from before weir changed the setting.
        before: String,
        /// Values that weir gave the setting, or had announced.
        given: Vec<String>,
        /// Current value of the setting.
        found: String,
    },
    /// The value to be given was not announced to the journal.
    #[error("{key} was not announced to be given `{value}`")]
    NotAnnounced {
        /// The setting.
        key: Key,
        /// The value.
        value: String,
    },
}

impl JournalError {
    /// Returns advice on what to do about the error; None if there is none.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            JournalError::Held { .. } => "wait until it has ended, or end it".to_owned(),
            JournalError::Left { .. } => {
                "`weir restore` puts them back; `weir restore --dry-run` shows them".to_owned()
            }
            JournalError::Damaged { path, .. } => format!(
                "set the settings named in the file to their `before` by hand, then remove {}",
                path.display()
            ),
            JournalError::NotOurs(NotOurs { path, .. }) => format!(
                "nothing was changed; check who may write there (ls -ld {}), remove that permission, and read the file before you run this again",
                quoted(&path.display().to_string())
            ),
            JournalError::Unlisted { path, .. } => format!(
                "nothing was changed; if a weir of yours has written it, set the settings named in the file to \
                 their `before` by hand, then remove {}",
                path.display()
            ),
            JournalError::Format { .. } => {
                "run `weir restore` of the version that wrote it".to_owned()
            }
            JournalError::Differs { key, before, .. } => {
                format!("its value before is set by: {}", put_back_command(key, before))
            }
            _ => return None,
        })
    }

    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
        let path = path.to_owned();
        move |error| JournalError::Io { action, path, error }
    }

    pub(super) fn reading(key: &Key) -> impl FnOnce(SettingError) -> JournalError {
        JournalError::setting(key, "read".to_owned())
    }

    pub(super) fn writing(key: &Key, value: &str) -> impl FnOnce(SettingError) -> JournalError {
        JournalError::setting(key, format!("give the value `{value}` to"))
    }

    fn setting(key: &Key, action: String) -> impl FnOnce(SettingError) -> JournalError {
        let key = key.clone();
        move |error| match error {
            SettingError::Absent => JournalError::Absent(key),
            SettingError::Refused(words) => JournalError::Refused { action, key, words },
        }
    }
}

fn count(settings: usize) -> String {
    let plural = if settings == 1 { "" } else { "s" };
    format!("{settings} setting{plural} that it had changed")
}
