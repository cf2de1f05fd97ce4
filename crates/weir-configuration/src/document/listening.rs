//! Where a document has its program listen.

use super::pointer::Pointer;

/// A place where a document has its program listen.
pub(super) struct Listening {
    /// The value that says where.
    pub(super) at: Pointer,
    /// What it belongs to: addresses of one server share what it does.
    pub(super) server: Pointer,
    /// The address as messages have it.
    pub(super) address: String,
    pub(super) port: Option<u16>,
    pub(super) tls: bool,
    pub(super) udp: bool,
}
