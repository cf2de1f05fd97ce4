//! TLS for the load engine, without IO.
//!
//! A [`Connector`] is created before the trial: it has read all files and holds the settings common to all connections
//! of one flow. It begins a [`Session`] for each connection; the engine passes received bytes to the session and gets
//! plaintext, passes plaintext and gets bytes to be sent.
//!
//! ```text
//! Session::begin ─► ClientHello ─► network
//! network ─► Input ─► Session::next ─► Established | Plaintext | Closed | Nothing
//!                                └────► bytes that must be sent
//! plaintext ─► Session::send ─► network
//! ```
//!
//! # Division of work
//!
//! rustls makes the handshake ([`rustls::client::UnbufferedClientConnection`]). After it, rustls would copy every
//! record's plaintext into a `Vec` of its own, and build every record that is sent in another. The load engine takes
//! the traffic keys instead, by the interface that rustls has for kernel TLS ([`rustls::kernel`]), and decrypts records
//! in the receive buffer and encrypts them in the send buffer (`records`): no allocation and no copy per request.
//! rustls still derives the keys of key updates and keeps session tickets.
//!
//! rustls gets one record at a time, so that no record after the handshake's last reaches it.
//!
//! # Resumption
//!
//! Each thread and flow has its own store, so nothing is shared and no thread ever waits for a lock. TLS 1.3 tickets
//! are used once (RFC 8446 appendix C.4: clients SHOULD NOT use one again), the newest first. If there is none, the
//! handshake is a full one: [`Negotiated::resumed`] contains the actual result, and the report shows the actual share
//! beside the requested one. Servers send one or two tickets with each connection, so the share is reached except by
//! the first connections, and by those that are closed after one response, before the server's tickets have arrived.
//! TLS 1.2 sessions are used repeatedly, as intended by RFC 5077 §3.
//!
//! A full handshake is that of a new client: the group that the server preferred on another connection is not used. A
//! server that wants another group than the first requests it each time, as shown by [`Negotiated::retried`].
//!
//! # Checks that are not made
//!
//! Certificate revocation is not checked. A chain that was verified is not verified again by the same thread as long as
//! the server sends the same bytes: the outcome would be the same, and the CPU time would be taken from the load. The
//! handshake's signature is verified each time, as every client must.

mod connector;
mod error;
mod files;
mod handshake;
mod names;
mod negotiated;
mod open;
mod records;
mod session;
#[cfg(test)]
mod tests;
mod tickets;
mod verify;

pub use connector::Connector;
pub use error::{SetupError, TlsError, TlsErrorKind};
pub use negotiated::{Cipher, EarlyData, Group, Negotiated};
pub use session::{Input, Received, Session};
