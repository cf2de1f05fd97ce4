//! The certificates that a configuration shows to clients.

use std::path::PathBuf;

use weir_model::record::SpotRecord;

/// A certificate that a configuration shows to the clients of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCertificate {
    /// The directive or option that names it, and its place.
    pub spot: SpotRecord,
    /// The place of its text.
    pub pem: PemLocation,
}

/// The place of a certificate's text, in PEM (RFC 7468).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PemLocation {
    /// A file, or a folder of such.
    At(PathBuf),
    /// A file whose lines begin with the path of one (HAProxy's `crt-list`).
    ListedIn(PathBuf),
    /// Of an authority that the proxy asks by itself, with a key of this type: `p256`.
    Automatic(String),
    /// In the configuration itself.
    Text(String),
    /// Known when a request comes, or made by the proxy itself.
    Unknown,
}
