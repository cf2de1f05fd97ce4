//! Errors in a file of `limits/`.

use serde_saphyr::{Location, Spanned};

/// An error in a data file, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct DataError {
    /// Name of the file.
    pub file: String,
    /// Line, counted from 1; 0 if unknown.
    pub line: u64,
    /// Description of the error, and of valid input.
    pub what: String,
}

impl DataError {
    pub(crate) fn at<T>(file: &str, place: &Spanned<T>, what: impl Into<String>) -> DataError {
        DataError::new(file, place.referenced, what.into())
    }

    fn new(file: &str, location: Location, what: String) -> DataError {
        DataError { file: file.to_owned(), line: location.line(), what }
    }
}

/// Deserializes a YAML file.
pub(crate) fn read<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, DataError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let location = error.location().unwrap_or(Location::UNKNOWN);
        DataError::new(file, location, error.to_string())
    })
}
