//! The certificates that a configuration shows to clients.

use std::path::PathBuf;

use weir_model::record::SpotRecord;

/// A certificate that a configuration shows to the clients of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCertificate {
    /// Directive or option that names the certificate, and its place.
    pub spot: SpotRecord,
    /// Location of the certificate's text.
    pub pem: PemLocation,
}

/// Location of a certificate's text, in PEM (RFC 7468).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PemLocation {
    /// A file, or a folder of files.
    At(PathBuf),
    /// A file whose lines begin with the path of a certificate (HAProxy's `crt-list`).
    ListedIn(PathBuf),
    /// An authority that the proxy asks by itself, with a key of this type: `p256`.
    Automatic(String),
    /// The configuration itself, which contains this text.
    Text(String),
    /// Not known before a request comes, or made by the proxy itself.
    Unknown,
}
