//! What a handshake agreed on, as small numbers that can be counted in arrays.

use rustls::client::UnbufferedClientConnection;
use rustls::{HandshakeKind, ProtocolVersion};
use weir_model::tls::{TlsVersion, names};

use super::names::{CIPHERS, GROUPS};

/// A cipher suite by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cipher(u8);

impl Cipher {
    /// How many there are: [`Cipher::index`] is below.
    pub const COUNT: usize = CIPHERS.len();

    /// The number.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The usual name: OpenSSL's.
    pub fn name(self) -> &'static str {
        Cipher::name_of(self.index())
    }

    /// The usual name of the cipher of a number below [`Cipher::COUNT`].
    pub fn name_of(index: usize) -> &'static str {
        names::CIPHERS[index].usual
    }
}

/// A key exchange group by number. [`Group::NONE`]: there was no key exchange (a resumed TLS 1.2
/// session).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(u8);

impl Group {
    /// No key exchange.
    pub const NONE: Group = Group(GROUPS.len() as u8);
    /// How many there are, with [`Group::NONE`]: [`Group::index`] is below.
    pub const COUNT: usize = GROUPS.len() + 1;

    /// The number.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The name in the IANA registry.
    pub fn name(self) -> &'static str {
        Group::name_of(self.index())
    }

    /// The name of the group of a number below [`Group::COUNT`].
    pub fn name_of(index: usize) -> &'static str {
        names::GROUPS.get(index).map_or("none", |names| names.usual)
    }
}

/// What became of early data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EarlyData {
    /// None was sent.
    None,
    /// The server took it.
    Accepted,
    /// The server dropped it: it must be sent again.
    Rejected,
}

/// What a handshake agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiated {
    /// Protocol version.
    pub version: TlsVersion,
    /// Cipher suite.
    pub cipher: Cipher,
    /// Key exchange group.
    pub group: Group,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// Whether a full handshake took another round trip because the server wanted a group of which it
    /// had no share (HelloRetryRequest, RFC 8446 §4.1.4).
    pub retried: bool,
    /// What became of early data.
    pub early_data: EarlyData,
}

impl Negotiated {
    /// Reads it from a connection whose handshake is complete; nothing if it names something that
    /// was never offered, which rustls does not let pass.
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
