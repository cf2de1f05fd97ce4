//! Addresses on which a configuration listens, for messages.

use std::path::PathBuf;

/// One address on which a proxy listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// File of the user's that sets the address.
    pub file: PathBuf,
    /// Line on which the listener begins in the file, counted from 1.
    pub line: usize,
    /// The address as the user wrote it.
    pub address: String,
    /// Port; None for a path, or if the configuration does not say.
    pub port: Option<u16>,
    /// True if clients speak TLS to the listener.
    pub tls: bool,
}
