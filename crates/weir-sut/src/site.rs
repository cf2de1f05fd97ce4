//! What a proxy serves, and where.

use std::net::SocketAddr;
use std::path::Path;

use weir_configuration::Ask;
use weir_model::study::ProxyRole;

use crate::Certificate;

/// What a proxy serves, and where.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// What it does with a request.
    pub role: &'a ProxyRole,
    /// Where it is asked in clear.
    pub listen: SocketAddr,
    /// Where it is asked over TLS, if it is.
    pub tls: Option<TlsListener<'a>>,
    /// The origin server; needed by a reverse proxy alone.
    pub origin: Option<SocketAddr>,
    /// Sizes in bytes of the files that a proxy serves beside the one of its role, each at
    /// [`weir_model::study::file_target`].
    pub sizes: &'a [u64],
    /// Whether it is to log every request for [`crate::RequestLog`].
    pub request_log: bool,
    /// The user's own configuration, of which a copy is to serve; `None`: weir writes one.
    pub own: Option<Own<'a>>,
}

/// A configuration of the user's.
#[derive(Debug, Clone, Copy)]
pub struct Own<'a> {
    /// Its main file.
    pub file: &'a Path,
    /// What loads ask of it, and where the copy is asked for that.
    pub asks: &'a [Ask],
}

/// Where a proxy is asked over TLS.
#[derive(Debug, Clone, Copy)]
pub struct TlsListener<'a> {
    /// The address.
    pub listen: SocketAddr,
    /// What it shows to clients.
    pub certificate: &'a Certificate,
}

impl<'a> Site<'a> {
    /// A site in clear, with the file of its role alone.
    pub fn new(role: &'a ProxyRole, listen: SocketAddr, origin: Option<SocketAddr>) -> Site<'a> {
        Site {
            role,
            listen,
            tls: None,
            origin,
            sizes: &[],
            request_log: false,
            own: None,
        }
    }
}
