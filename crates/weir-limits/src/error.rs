//! What is wrong with a file of `limits/`.

use serde_saphyr::{Location, Spanned};

/// A file of data that cannot be used, with the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct DataError {
    /// Name of the file.
    pub file: String,
    /// Line, counted from 1; 0 where the reader gave none.
    pub line: u64,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl DataError {
    pub(crate) fn at<T>(file: &str, place: &Spanned<T>, what: impl Into<String>) -> DataError {
        DataError::new(file, place.referenced, what.into())
    }

    fn new(file: &str, location: Location, what: String) -> DataError {
        DataError {
            file: file.to_owned(),
            line: location.line(),
            what,
        }
    }
}

/// Reads a file's YAML into a type.
pub(crate) fn read<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, DataError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let location = error.location().unwrap_or(Location::UNKNOWN);
        DataError::new(file, location, error.to_string())
    })
}
