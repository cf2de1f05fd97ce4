//! What can be wrong with a user's configuration, and where.

use std::path::{Path, PathBuf};

use crate::place::line_and_column;

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
        let (line, column) = line_and_column(text, at);
        ConfigurationError {
            file: file.to_owned(),
            line,
            column,
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
