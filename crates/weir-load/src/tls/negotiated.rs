//! Negotiated parameters of a handshake, as small numbers that can be counted in arrays.

use rustls::client::UnbufferedClientConnection;
use rustls::{HandshakeKind, ProtocolVersion};
use weir_model::tls::{TlsVersion, names};

use super::names::{CIPHERS, GROUPS};

/// Number of a cipher suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cipher(u8);

impl Cipher {
    /// Number of ciphers; [`Cipher::index`] is less.
    pub const COUNT: usize = CIPHERS.len();

    /// Returns the index of the cipher, less than [`Cipher::COUNT`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the OpenSSL name of the cipher.
    pub fn name(self) -> &'static str {
        Cipher::name_of(self.index())
    }

    /// Returns the OpenSSL name of the cipher with an index less than [`Cipher::COUNT`].
    pub fn name_of(index: usize) -> &'static str {
        names::CIPHERS[index].usual
    }
}

/// Number of a key exchange group. [`Group::NONE`] if there was no key exchange (a resumed TLS 1.2 session).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(u8);

impl Group {
    /// Value for a handshake without key exchange.
    pub const NONE: Group = Group(GROUPS.len() as u8);
    /// Number of groups including [`Group::NONE`]; [`Group::index`] is less.
    pub const COUNT: usize = GROUPS.len() + 1;

    /// Returns the index of the group, less than [`Group::COUNT`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the group's name in the IANA registry.
    pub fn name(self) -> &'static str {
        Group::name_of(self.index())
    }

    /// Returns the name of the group with an index less than [`Group::COUNT`].
    pub fn name_of(index: usize) -> &'static str {
        names::GROUPS.get(index).map_or("none", |names| names.usual)
    }
}

/// Outcome of early data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EarlyData {
    /// No early data was sent.
    None,
    /// The server accepted the early data.
    Accepted,
    /// The server dropped the early data: it must be sent again.
    Rejected,
}

/// Negotiated parameters of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiated {
    /// Protocol version.
    pub version: TlsVersion,
    /// Cipher suite.
    pub cipher: Cipher,
    /// Key exchange group.
    pub group: Group,
    /// True if an earlier session was resumed.
    pub resumed: bool,
    /// True if a full handshake took another round trip because the server wanted a group of which it had no share
    /// (HelloRetryRequest, RFC 8446 §4.1.4).
    pub retried: bool,
    /// Outcome of early data.
    pub early_data: EarlyData,
}

impl Negotiated {
    /// Reads the parameters of a connection whose handshake is complete; `None` if one was never offered, which rustls
    /// does not permit.
    pub(super) fn of(
        connection: &UnbufferedClientConnection,
        early_data: EarlyData,
    ) -> Option<Negotiated> {
        let version = match connection.protocol_version()? {
            ProtocolVersion::TLSv1_2 => TlsVersion::V1_2,
            ProtocolVersion::TLSv1_3 => TlsVersion::V1_3,
            _ => return None,
        };
        let suite = connection.negotiated_cipher_suite()?;
        let cipher = CIPHERS.iter().position(|own| *own == suite)?;
        let group = connection
            .negotiated_key_exchange_group()
            .and_then(|group| GROUPS.iter().position(|own| own.name() == group.name()));
        let kind = connection.handshake_kind()?;
        Some(Negotiated {
            version,
            cipher: Cipher(cipher as u8),
            group: group.map_or(Group::NONE, |index| Group(index as u8)),
            resumed: kind == HandshakeKind::Resumed,
            retried: kind == HandshakeKind::FullWithHelloRetryRequest,
            early_data,
        })
    }
}
