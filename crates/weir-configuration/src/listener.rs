//! Where a configuration listens, for messages.

use std::path::PathBuf;

/// One address that a proxy is asked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The user's file.
    pub file: PathBuf,
    /// Line where it begins in the file, counted from 1.
    pub line: usize,
    /// The address as the user wrote it.
    pub address: String,
    /// Its port; `None` for a path, or where the configuration does not say.
    pub port: Option<u16>,
    /// Whether it is asked over TLS.
    pub tls: bool,
}
