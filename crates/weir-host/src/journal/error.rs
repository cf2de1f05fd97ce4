//! What keeps weir from changing a setting, or from putting it back.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_files::NotOurs;

use super::key::{Key, in_words, put_back_command, quoted};
use super::settings::SettingError;

/// Name and version of the format.
pub(super) const FORMAT: &str = "weir-journal/1";

/// The weir that has the settings of a host in hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holder {
    /// Its process number.
    pub pid: u32,
    /// Since when, as RFC 3339 has it, in UTC.
    pub since: String,
    /// What for, in its own words.
    pub purpose: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Holder {
            pid,
            since,
            purpose,
        } = self;
        write!(f, "process {pid}, since {since}, for {purpose}")
    }
}

/// What keeps weir from changing a setting, or from putting it back.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another weir changes settings of this host, and lives.
    #[error(
        "another weir is using the settings of this host: {}",
        .0.as_ref().map_or_else(|| "it has not yet said which".to_owned(), Holder::to_string)
    )]
    Held(Option<Holder>),
    /// An earlier weir was killed before it could put its changes back.
    #[error("an earlier weir has left {}", count(*.0))]
    Left(usize),
    /// The kernel refused something to do with the journal's files.
    #[error("cannot {action} {}: {error}", path.display())]
    Io {
        /// What was tried: `create`, `write`, `read`, …
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The kernel's words.
        error: io::Error,
    },
    /// The journal cannot be believed. Nothing was changed.
    #[error("{}:{line}: the journal is damaged: {words}", path.display())]
    Damaged {
        /// The journal's file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        words: String,
    },
    /// Others could have written the journal. Nothing was changed.
    #[error("the journal of changed settings cannot be trusted: {0}")]
    NotOurs(#[from] NotOurs),
    /// The journal is about a setting that weir does not change. Nothing was changed.
    #[error("{}:{line}: {key} is not a setting of weir's catalog or of the study", path.display())]
    Unlisted {
        /// The journal's file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The setting.
        key: Key,
    },
    /// A setting was to be changed for which neither the catalog nor the study has a row.
    #[error("{0} is not a setting of weir's catalog or of the study")]
    NoRow(Key),
    /// Another version of weir wrote the journal. Nothing was changed.
    #[error("{}: the journal's format is {found}, and this weir knows {FORMAT}", path.display())]
    Format {
        /// The journal's file.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// There is no such setting.
    #[error("there is no setting {0} here")]
    Absent(Key),
    /// The kernel refused to tell or to take a value.
    #[error("cannot {action} {key}: {words}")]
    Refused {
        /// What was tried: `read`, or ``set to `…` ``.
        action: String,
        /// The setting.
        key: Key,
        /// The kernel's words.
        words: String,
    },
    /// The kernel took a value and made another of it. The value before was written again.
    #[error("{key} was set to `{value}` and became `{found}`")]
    NotTaken {
        /// The setting.
        key: Key,
        /// What it was given.
        value: String,
        /// What was read back.
        found: String,
    },
    /// Somebody else has changed a setting that weir has changed. It was left alone.
    #[error(
        "somebody else has changed {key}: it was `{before}`, weir gave it {}, and it is `{found}` now",
        in_words(given)
    )]
    Differs {
        /// The setting.
        key: Key,
        /// Its value before weir.
        before: String,
        /// What weir gave it, or had announced.
        given: Vec<String>,
        /// Its value now.
        found: String,
    },
    /// A value was to be given that the journal has not been told of.
    #[error("{key} was not announced to be given `{value}`")]
    NotAnnounced {
        /// The setting.
        key: Key,
        /// The value.
        value: String,
    },
}

impl JournalError {
    /// What to do about it, where that can be said.
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
                format!(
                    "its value before is set by: {}",
                    put_back_command(key, before)
                )
            }
            _ => return None,
        })
    }

    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
        let path = path.to_owned();
        move |error| JournalError::Io {
            action,
            path,
            error,
        }
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
