//! TLS settings in the user's notation, before any file is read or name is resolved.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub mod names;

/// TLS settings of a load or a probe. The default is a careful client: both versions, the system's trust, HTTP/1.1, no
/// resumption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TlsSpec {
    /// Protocol versions to offer; empty: all supported ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<TlsVersion>,
    /// Cipher suites by OpenSSL's or IANA's names, most preferred first; empty: the default list. A version is not
    /// offered if the list has no suite for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ciphers: Vec<String>,
    /// Key exchange groups, most preferred first; empty: x25519, secp256r1, secp384r1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Application protocols to offer (RFC 7301), most preferred first; empty: the extension is not sent.
    pub alpn: Vec<String>,
    /// Authorities whose certificates are trusted.
    pub trust: Trust,
    /// Certificate of the client, for servers that request one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientCertificate>,
    /// Name to send to the server (RFC 6066 §3) and to look for in its certificate, in place of the host's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Share of new connections that resume an earlier session.
    pub resumption: Resumption,
    /// True if a resumed TLS 1.3 connection sends its first request as early data (RFC 8446 §2.3), if the ticket allows
    /// it.
    pub early_data: bool,
}

impl Default for TlsSpec {
    fn default() -> TlsSpec {
        TlsSpec {
            versions: Vec::new(),
            ciphers: Vec::new(),
            groups: Vec::new(),
            alpn: vec!["http/1.1".to_owned()],
            trust: Trust::default(),
            client: None,
            server_name: None,
            resumption: Resumption::default(),
            early_data: false,
        }
    }
}

/// A version of the TLS protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[serde(rename = "1.2")]
    V1_2,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    V1_3,
}

impl TlsVersion {
    /// Name of the version in input and output: `1.2` or `1.3`.
    pub const fn name(self) -> &'static str {
        match self {
            TlsVersion::V1_2 => "1.2",
            TlsVersion::V1_3 => "1.3",
        }
    }

    /// Reads a list of versions: `1.2`, `1.3` or `1.2,1.3`.
    ///
    /// # Errors
    /// An entry is not a supported version.
    pub fn parse_list(text: &str) -> Result<Vec<TlsVersion>, TlsWordError> {
        let mut versions = Vec::new();
        for word in text.split(',').map(str::trim) {
            let version = match word {
                "1.2" => TlsVersion::V1_2,
                "1.3" => TlsVersion::V1_3,
                _ => return Err(TlsWordError::Version(word.to_owned())),
            };
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        Ok(versions)
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Authorities whose certificates are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Authorities that this machine trusts.
    #[default]
    System,
    /// Only the authorities in this PEM file.
    Ca(String),
    /// Any certificate: neither the chain nor the name is checked. The handshake's signature still is, so the server
    /// must have the key of its certificate.
    Insecure,
}

/// Files of a client's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientCertificate {
    /// Path of a PEM file: the certificate, then its chain.
    pub certificate: String,
    /// Path of a PEM file with the private key, not encrypted. May be the same file.
    pub key: String,
}

/// Share of new connections that resume an earlier session instead of a full handshake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resumption {
    /// No connections.
    #[default]
    Off,
    /// All connections for which there is a ticket (or, in TLS 1.2, a session).
    On,
    /// This share (0..1) of the connections, as far as there are tickets; evenly spread, not random.
    Ratio(f64),
}

impl FromStr for Resumption {
    type Err = TlsWordError;

    fn from_str(text: &str) -> Result<Resumption, TlsWordError> {
        let word = text.trim();
        match word {
            "on" => return Ok(Resumption::On),
            "off" => return Ok(Resumption::Off),
            _ => {}
        }
        let (digits, unit) = match word.strip_suffix('%') {
            Some(digits) => (digits.trim(), 100.0),
            None => (word, 1.0),
        };
        match digits.parse::<f64>().map(|value| value / unit) {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(Resumption::Ratio(share)),
            _ => Err(TlsWordError::Resumption(word.to_owned())),
        }
    }
}

/// Error in a TLS setting as the user typed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsWordError {
    /// The text is not a supported version.
    #[error("`{0}` is not a TLS version that weir supports")]
    Version(String),
    /// The text is neither a switch nor a share.
    #[error("`{0}` is not a share of resumed connections")]
    Resumption(String),
}

impl TlsWordError {
    /// Advice on how to fix the error.
    pub fn hint(&self) -> String {
        match self {
            TlsWordError::Version(_) => "use 1.2, 1.3 or 1.2,1.3",
            TlsWordError::Resumption(_) => "use on, off, 80% or 0.8",
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_a_list() {
        assert_eq!(TlsVersion::parse_list("1.2"), Ok(vec![TlsVersion::V1_2]));
        let both = vec![TlsVersion::V1_3, TlsVersion::V1_2];
        assert_eq!(TlsVersion::parse_list("1.3, 1.2,1.3"), Ok(both));
        for wrong in ["", "1.1", "1.2,", "TLS1.3"] {
            assert!(TlsVersion::parse_list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn resumption_is_a_switch_or_a_share() {
        let cases = [
            ("on", Resumption::On),
            ("off", Resumption::Off),
            ("80%", Resumption::Ratio(0.8)),
            ("0.8", Resumption::Ratio(0.8)),
            ("1", Resumption::Ratio(1.0)),
            ("0 %", Resumption::Ratio(0.0)),
        ];
        for (text, meant) in cases {
            assert_eq!(text.parse(), Ok(meant), "{text}");
        }
        for wrong in ["", "yes", "101%", "1.5", "-1", "NaN", "80"] {
            assert!(wrong.parse::<Resumption>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_record_without_some_fields_is_readable() {
        let spec: TlsSpec = serde_json::from_str("{}").unwrap();
        assert_eq!(spec, TlsSpec::default());
        let text = r#"{"versions":["1.2"],"trust":{"ca":"a.pem"},"resumption":{"ratio":0.5}}"#;
        let spec: TlsSpec = serde_json::from_str(text).unwrap();
        assert_eq!(spec.versions, [TlsVersion::V1_2]);
        assert_eq!(spec.trust, Trust::Ca("a.pem".to_owned()));
        let again = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<TlsSpec>(&again).unwrap(), spec);
    }
}
