//! TLS for the load engine, without IO.
//!
//! A [`Connector`] is made before the trial: it has read all files and knows all that connections of
//! one flow have in common. It begins a [`Session`] for each connection; the engine hands the session
//! what the network brought and gets plaintext, hands it plaintext and gets what must be sent.
//!
//! ```text
//! Session::begin ─► ClientHello ─► network
//! network ─► Input ─► Session::next ─► Established | Plaintext | Closed | Nothing
//!                                └────► bytes that must be sent
//! plaintext ─► Session::send ─► network
//! ```
//!
//! # Who does what
//!
//! The handshake is rustls' ([`rustls::client::UnbufferedClientConnection`]). After it, rustls would
//! copy every record's plaintext into a `Vec` of its own, and build every record that is sent in
//! another. The load engine takes the traffic keys instead, by the way that rustls has for kernel TLS
//! ([`rustls::kernel`]), and opens records where they were received and seals them where they are
//! sent from (`records`): no allocation and no copy per request. rustls goes on to derive the keys
//! of key updates and to keep session tickets.
//!
//! rustls is given one record at a time, so that none that comes after its handshake's last reaches it.
//!
//! # Resumption
//!
//! Each thread and flow has its own store, so nothing is shared and no lock is ever waited for. TLS
//! 1.3 tickets are used once (RFC 8446 appendix C.4: clients SHOULD NOT use one again), the newest
//! first. When there is none, the handshake is a full one: what was really resumed is in
//! [`Negotiated::resumed`], and the report shows that share beside the one asked for. Servers send one or two
//! tickets with each connection, so the share is reached except by the first connections, and by those
//! that are closed after one response, before the server's tickets have come. TLS 1.2
//! sessions are used again and again, as RFC 5077 §3 means them to be.
//!
//! A full handshake is that of a newcomer: what another connection learned of the server (which
//! group it wants) is not used. A server that wants another group than the first asks for it each
//! time, which [`Negotiated::retried`] shows.
//!
//! # What is not checked
//!
//! Certificate revocation. A chain that was verified is not verified again by the same thread as long as the
//! server shows the same bytes: the outcome would be the same, and the CPU time would be taken from
//! the load. The handshake's signature is verified each time, as every client must.

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
