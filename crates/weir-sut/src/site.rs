//! Task and addresses of a proxy.

use std::net::SocketAddr;
use std::path::Path;

use weir_configuration::Ask;
use weir_model::study::ProxyRole;

use crate::Certificate;

/// Task and addresses of a proxy.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// Role of the proxy: its handling of a request.
    pub role: &'a ProxyRole,
    /// Address for requests in clear.
    pub listen: SocketAddr,
    /// Listener for requests over TLS, if there is one.
    pub tls: Option<TlsListener<'a>>,
    /// Address of the origin server; only a reverse proxy needs it.
    pub origin: Option<SocketAddr>,
    /// Sizes in bytes of the files that a proxy serves beside the one of its role, each at
    /// [`weir_model::study::file_target`].
    pub sizes: &'a [u64],
    /// True if the proxy is to log every request for [`crate::RequestLog`].
    pub request_log: bool,
    /// The user's own configuration, a copy of which is to serve; `None` if weir writes one.
    pub own: Option<UserConfiguration<'a>>,
}

/// A configuration of the user's.
#[derive(Debug, Clone, Copy)]
pub struct UserConfiguration<'a> {
    /// Path of the main file.
    pub file: &'a Path,
    /// Requests of the loads, with the addresses to which the copy's requests are sent.
    pub asks: &'a [Ask],
}

/// TLS listener of a proxy.
#[derive(Debug, Clone, Copy)]
pub struct TlsListener<'a> {
    /// Address of the listener.
    pub listen: SocketAddr,
    /// Certificate that the listener shows to clients.
    pub certificate: &'a Certificate,
}

impl<'a> Site<'a> {
    /// Creates a site in clear, with the file of its role alone.
    pub fn new(role: &'a ProxyRole, listen: SocketAddr, origin: Option<SocketAddr>) -> Site<'a> {
        Site { role, listen, tls: None, origin, sizes: &[], request_log: false, own: None }
    }
}
