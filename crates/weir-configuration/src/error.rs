//! What can be wrong with a user's configuration, and where.

use std::path::{Path, PathBuf};

/// What is wrong, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}:{column}: {what}", file.display())]
pub struct ConfigurationError {
    /// The user's file.
    pub file: PathBuf,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What is wrong, with the name of what it is about.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl ConfigurationError {
    /// An error at byte `at` of a file's text, without a hint.
    pub fn at(file: &Path, text: &str, at: usize, what: impl Into<String>) -> ConfigurationError {
        let before = text.get(..at).unwrap_or(text);
        let line_begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        // An editor shows no column for a byte order mark.
        let in_line = before[line_begin..].trim_start_matches('\u{feff}');
        ConfigurationError {
            file: file.to_owned(),
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: in_line.chars().count() + 1,
            what: what.into(),
            hint: None,
        }
    }

    /// The same error with what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> ConfigurationError {
        ConfigurationError {
            hint: Some(hint.into()),
            ..self
        }
    }
}
