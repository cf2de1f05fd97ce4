//! What can go wrong: before the trial ([`SetupError`]) and on a connection ([`TlsError`]).

use std::borrow::Cow;

use rustls::{CertificateError, Error, PeerMisbehaved};

use weir_model::tls::names::NameError;

use super::names;

/// TLS cannot be set up as it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file cannot be read.
    #[error("cannot read {path} ({what}): {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What it was to be read for.
        what: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A file was read, and something in it is wrong.
    #[error("{path}:{line}: {problem}")]
    Pem {
        /// The file.
        path: String,
        /// Line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: &'static str,
    },
    /// A file was read, and what is needed is not in it.
    #[error("{path} has no {what}")]
    Missing {
        /// The file.
        path: String,
        /// What is missing.
        what: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// Certificate and key do not belong together.
    #[error("the key in {key} is not that of the certificate in {certificate}")]
    KeyMismatch {
        /// The certificate's file.
        certificate: String,
        /// The key's file.
        key: String,
    },
    /// The machine trusts nobody.
    #[error("no trusted certificate authority was found on this machine{0}")]
    NoSystemTrust(String),
    /// The server's name is neither a DNS name nor an IP address.
    #[error("`{0}` is neither a DNS name nor an IP address, so no certificate can be for it")]
    ServerName(String),
    /// A cipher or group that is unknown or cannot be spoken.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The list of ciphers has none for a version that was asked for.
    #[error("none of the ciphers asked for is for TLS {0}")]
    NoCipherFor(&'static str),
    /// An application protocol's name is empty or longer than 255 bytes (RFC 7301 §3.1).
    #[error("`{0}` cannot be the name of an application protocol: it must have 1 to 255 bytes")]
    Alpn(String),
    /// A share of resumed connections that is none.
    #[error("{0} is not a share of resumed connections")]
    Ratio(f64),
    /// Early data without what it needs.
    #[error("early data needs TLS 1.3 and resumption")]
    EarlyData,
    /// The TLS library refuses the combination.
    #[error("TLS cannot be set up: {0}")]
    Refused(#[from] Error),
}

impl SetupError {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            SetupError::Unreadable { .. } => "name a readable PEM file",
            SetupError::Pem { hint, .. } | SetupError::Missing { hint, .. } => hint,
            SetupError::KeyMismatch { .. } => "name the key that the certificate was issued for",
            SetupError::NoSystemTrust(_) => {
                "install the ca-certificates package, name a CA file, or check no certificates"
            }
            SetupError::Name(error) => return Some(error.hint()),
            SetupError::NoCipherFor(version) => {
                return Some(format!(
                    "add one for TLS {version}, or do not ask for that version"
                ));
            }
            SetupError::Ratio(_) => "give a number from 0 to 1",
            SetupError::EarlyData => {
                "ask for resumption and do not exclude TLS 1.3, or do not ask for early data"
            }
            SetupError::ServerName(_) | SetupError::Alpn(_) | SetupError::Refused(_) => {
                return None;
            }
        };
        Some(hint.to_owned())
    }
}

/// What went wrong on a connection, as far as it is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TlsErrorKind {
    /// The server's certificate is past its validity.
    CertificateExpired,
    /// The server's certificate is not valid yet.
    CertificateNotYetValid,
    /// Nobody who is trusted has signed the server's certificate.
    UnknownIssuer,
    /// The server's certificate is for other names.
    NameMismatch,
    /// The server's certificate is bad in another way.
    BadCertificate,
    /// The server ended the connection with an alert (RFC 8446 §6.2).
    AlertReceived,
    /// The server wants a version, cipher or group that is not offered.
    Incompatible,
    /// What came is not TLS.
    NotTls,
    /// The server broke the protocol.
    Misbehaved,
    /// A record's authentication failed.
    BadRecord,
    /// A record is longer than allowed (RFC 8446 §5.2).
    OversizedRecord,
    /// The handshake's messages are longer than any honest ones.
    HandshakeTooLarge,
    /// The connection ended in the handshake.
    ClosedInHandshake,
    /// The connection ended inside a record.
    Truncated,
    /// Something was to be sent before the handshake was done, or after the close.
    NotOpen,
    /// The TLS library gave up for a reason of its own.
    Internal,
}

/// What went wrong on a connection. Cheap to make, copy and count: the words are only made when
/// they are asked for.
#[derive(Debug, Clone)]
pub struct TlsError {
    kind: TlsErrorKind,
    alert: u8,
    cause: Option<Error>,
}

/// What a connection's TLS comes to, or what went wrong.
pub(super) type Result<T> = std::result::Result<T, TlsError>;

impl TlsError {
    pub(super) fn new(kind: TlsErrorKind) -> TlsError {
        TlsError {
            kind,
            alert: 0,
            cause: None,
        }
    }

    pub(super) fn alert(code: u8) -> TlsError {
        TlsError {
            kind: TlsErrorKind::AlertReceived,
            alert: code,
            cause: None,
        }
    }

    pub(super) fn misbehaved(how: PeerMisbehaved) -> TlsError {
        TlsError::from(Error::PeerMisbehaved(how))
    }

    /// What went wrong with TLS over a stream that waits ([`Connector::over`](super::Connector::over)); `None`: it
    /// was not TLS.
    pub fn of_stream(error: &std::io::Error) -> Option<TlsError> {
        let cause = error.get_ref()?.downcast_ref::<Error>()?;
        Some(match cause {
            Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
                TlsError::new(TlsErrorKind::NotTls)
            }
            cause => TlsError::from(cause.clone()),
        })
    }

    /// What it is, as far as it is counted apart.
    pub fn kind(&self) -> TlsErrorKind {
        self.kind
    }

    /// A number below 512 that is the same for errors that are counted together: the kind, or 256
    /// plus the code of the alert that was received. Words differ only in details between errors of
    /// one number, so an engine asks for [`TlsError::words`] when it sees a number first.
    pub fn id(&self) -> u16 {
        match self.kind {
            TlsErrorKind::AlertReceived => 256 + u16::from(self.alert),
            kind => u16::from(kind as u8),
        }
    }

    /// What happened, for people.
    pub fn words(&self) -> Cow<'static, str> {
        let fixed = match self.kind {
            TlsErrorKind::AlertReceived => {
                let name = names::alert(self.alert);
                return Cow::Owned(format!("alert received: {name} ({})", self.alert));
            }
            TlsErrorKind::UnknownIssuer => {
                "certificate is not signed by a trusted authority (unknown issuer, or self-signed)"
            }
            TlsErrorKind::NotTls => "the server does not speak TLS on this port",
            TlsErrorKind::BadRecord => "record failed its authentication (bad record MAC)",
            TlsErrorKind::OversizedRecord => "record longer than TLS allows",
            TlsErrorKind::HandshakeTooLarge => "handshake messages larger than any honest ones",
            TlsErrorKind::ClosedInHandshake => "connection closed during the handshake",
            TlsErrorKind::Truncated => "connection closed inside a record",
            TlsErrorKind::NotOpen => "TLS is not open for sending",
            kind => return self.detailed(kind),
        };
        Cow::Borrowed(fixed)
    }

    fn detailed(&self, kind: TlsErrorKind) -> Cow<'static, str> {
        match (&self.cause, kind) {
            (Some(Error::InvalidCertificate(CertificateError::BadSignature)), _) => Cow::Borrowed(
                "invalid certificate: not signed by the authority that it names \
                 (perhaps another one of the same name)",
            ),
            (Some(Error::InvalidCertificate(CertificateError::Other(why))), _)
                if why.to_string().contains("CaUsedAsEndEntity") =>
            {
                Cow::Borrowed(
                    "invalid certificate: it is an authority's own (CA:TRUE), which no server \
                     may show; issue one for the server, or accept any certificate",
                )
            }
            (Some(cause), TlsErrorKind::BadCertificate) => Cow::Owned(cause.to_string()),
            (Some(Error::InvalidCertificate(why)), _) => Cow::Owned(why.to_string()),
            (Some(cause), _) => Cow::Owned(cause.to_string()),
            (None, TlsErrorKind::Misbehaved) => Cow::Borrowed("bytes that are no TLS record"),
            (None, _) => Cow::Borrowed("TLS failed"),
        }
    }
}

impl std::fmt::Display for TlsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words())
    }
}

impl std::error::Error for TlsError {}

impl PartialEq for TlsError {
    fn eq(&self, other: &TlsError) -> bool {
        self.id() == other.id()
    }
}

impl From<Error> for TlsError {
    fn from(cause: Error) -> TlsError {
        if let Error::AlertReceived(alert) = cause {
            return TlsError::alert(alert.into());
        }
        let kind = match &cause {
            Error::InvalidCertificate(certificate) => certificate_kind(certificate),
            Error::NoCertificatesPresented => TlsErrorKind::BadCertificate,
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => TlsErrorKind::Incompatible,
            Error::DecryptError => TlsErrorKind::BadRecord,
            Error::PeerSentOversizedRecord => TlsErrorKind::OversizedRecord,
            Error::InvalidMessage(rustls::InvalidMessage::HandshakePayloadTooLarge) => {
                TlsErrorKind::HandshakeTooLarge
            }
            Error::PeerMisbehaved(_)
            | Error::InvalidMessage(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. } => TlsErrorKind::Misbehaved,
            _ => TlsErrorKind::Internal,
        };
        TlsError {
            kind,
            alert: 0,
            cause: Some(cause),
        }
    }
}

fn certificate_kind(error: &CertificateError) -> TlsErrorKind {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            TlsErrorKind::CertificateExpired
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsErrorKind::CertificateNotYetValid
        }
        CertificateError::UnknownIssuer => TlsErrorKind::UnknownIssuer,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsErrorKind::NameMismatch
        }
        _ => TlsErrorKind::BadCertificate,
    }
}
