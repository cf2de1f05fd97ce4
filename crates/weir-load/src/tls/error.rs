//! Errors before the trial ([`SetupError`]) and on a connection ([`TlsError`]).

use std::borrow::Cow;

use rustls::{CertificateError, Error, PeerMisbehaved};

use weir_model::tls::names::NameError;

use super::names;

/// Reason why TLS cannot be set up as requested.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file cannot be read.
    #[error("cannot read {path} ({what}): {source}")]
    Unreadable {
        /// Path of the file.
        path: String,
        /// Purpose of the file.
        what: &'static str,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A file was read, and its content is invalid.
    #[error("{path}:{line}: {problem}")]
    Pem {
        /// Path of the file.
        path: String,
        /// Number of the line, from 1.
        line: usize,
        /// Description of the error.
        problem: String,
        /// Advice on how to correct the error.
        hint: &'static str,
    },
    /// A file was read, and does not contain the necessary section.
    #[error("{path} has no {what}")]
    Missing {
        /// Path of the file.
        path: String,
        /// Name of the missing section.
        what: &'static str,
        /// Advice on how to correct the error.
        hint: &'static str,
    },
    /// Certificate and key do not belong together.
    #[error("the key in {key} is not that of the certificate in {certificate}")]
    KeyMismatch {
        /// Path of the certificate's file.
        certificate: String,
        /// Path of the key's file.
        key: String,
    },
    /// The machine has no trusted certificate authority.
    #[error("no trusted certificate authority was found on this machine{0}")]
    NoSystemTrust(String),
    /// The server's name is neither a DNS name nor an IP address.
    #[error("`{0}` is neither a DNS name nor an IP address, so no certificate can be for it")]
    ServerName(String),
    /// A cipher or group is unknown or not supported.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The list of ciphers has none for a version that was requested.
    #[error("none of the ciphers asked for is for TLS {0}")]
    NoCipherFor(&'static str),
    /// An application protocol's name is empty or longer than 255 bytes (RFC 7301 §3.1).
    #[error("`{0}` cannot be the name of an application protocol: it must have 1 to 255 bytes")]
    Alpn(String),
    /// The share of resumed connections is not from 0 to 1.
    #[error("{0} is not a share of resumed connections")]
    Ratio(f64),
    /// Early data is requested without TLS 1.3 or resumption, which it needs.
    #[error("early data needs TLS 1.3 and resumption")]
    EarlyData,
    /// The TLS library refuses the combination.
    #[error("TLS cannot be set up: {0}")]
    Refused(#[from] Error),
}

impl SetupError {
    /// Returns advice on how to correct the error, if known.
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
                return Some(format!("add one for TLS {version}, or do not ask for that version"));
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

/// Kind of an error on a connection; each kind is counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TlsErrorKind {
    /// The server's certificate is past its validity.
    CertificateExpired,
    /// The server's certificate is not valid yet.
    CertificateNotYetValid,
    /// The server's certificate is not signed by a trusted authority.
    UnknownIssuer,
    /// The server's certificate is for other names.
    NameMismatch,
    /// The server's certificate is invalid for another reason.
    BadCertificate,
    /// The server ended the connection with an alert (RFC 8446 §6.2).
    AlertReceived,
    /// The server wants a version, cipher or group that is not offered.
    Incompatible,
    /// The received bytes are not TLS.
    NotTls,
    /// The server broke the protocol.
    Misbehaved,
    /// A record's authentication failed.
    BadRecord,
    /// A record is longer than allowed (RFC 8446 §5.2).
    OversizedRecord,
    /// The handshake's messages are longer than any legitimate ones.
    HandshakeTooLarge,
    /// The connection ended in the handshake.
    ClosedInHandshake,
    /// The connection ended inside a record.
    Truncated,
    /// Content was to be sent before the handshake was complete, or after an error.
    NotOpen,
    /// The TLS library failed for a reason of its own.
    Internal,
}

/// Error on a connection. Cheap to create, copy and count: its text is created only on request.
#[derive(Debug, Clone)]
pub struct TlsError {
    kind: TlsErrorKind,
    alert: u8,
    cause: Option<Error>,
}

/// Result of an operation on a TLS connection.
pub(super) type Result<T> = std::result::Result<T, TlsError>;

impl TlsError {
    pub(super) fn new(kind: TlsErrorKind) -> TlsError {
        TlsError { kind, alert: 0, cause: None }
    }

    pub(super) fn alert(code: u8) -> TlsError {
        TlsError { kind: TlsErrorKind::AlertReceived, alert: code, cause: None }
    }

    pub(super) fn misbehaved(how: PeerMisbehaved) -> TlsError {
        TlsError::from(Error::PeerMisbehaved(how))
    }

    /// Returns the TLS error behind an error of a blocking stream ([`Connector::over`](super::Connector::over)); `None`
    /// if TLS is not the cause.
    pub fn of_stream(error: &std::io::Error) -> Option<TlsError> {
        let cause = error.get_ref()?.downcast_ref::<Error>()?;
        Some(match cause {
            Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
                TlsError::new(TlsErrorKind::NotTls)
            }
            cause => TlsError::from(cause.clone()),
        })
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> TlsErrorKind {
        self.kind
    }

    /// Returns a number below 512 that is equal for errors that are counted together: the kind, or 256 plus the code of
    /// the alert that was received. Texts of errors with the same number differ only in details, so an engine needs
    /// [`TlsError::words`] only when a number occurs for the first time.
    pub fn id(&self) -> u16 {
        match self.kind {
            TlsErrorKind::AlertReceived => 256 + u16::from(self.alert),
            kind => u16::from(kind as u8),
        }
    }

    /// Returns a readable description.
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
        TlsError { kind, alert: 0, cause: Some(cause) }
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
