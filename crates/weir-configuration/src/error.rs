//! The error type for a user's configuration.

use std::path::{Path, PathBuf};

use crate::place::line_and_column;

/// An error in a user's configuration: its description, its place, and a hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}:{column}: {what}", file.display())]
pub struct ConfigurationError {
    /// The user's file.
    pub file: PathBuf,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Description of the error, with the name of the part that it is about.
    pub what: String,
    /// Hint on how to fix the error.
    pub hint: Option<String>,
}

impl ConfigurationError {
    /// Creates an error at byte `at` of a file's text, without a hint.
    pub fn at(file: &Path, text: &str, at: usize, what: impl Into<String>) -> ConfigurationError {
        let (line, column) = line_and_column(text, at);
        ConfigurationError { file: file.to_owned(), line, column, what: what.into(), hint: None }
    }

    /// Returns the same error with a hint on how to fix it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> ConfigurationError {
        ConfigurationError { hint: Some(hint.into()), ..self }
    }
}
