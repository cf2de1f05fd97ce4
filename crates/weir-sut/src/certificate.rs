//! Certificates that proxies show to clients over TLS.
//!
//! They are made for a run and removed with its work folder: self-signed, for the names that loads request. A copy of a
//! user's configuration shows one with a key of the same kind and as many certificates in its chain, since the kind of
//! the key decides what a handshake costs (RSA with 4096 bits some fifteen times as much as ECDSA). A configuration of
//! weir's own shows RSA with 2048 bits, which published figures of TLS handshakes are about. A client uses the
//! certificate itself as its trust anchor.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512,
    PKCS_ED25519, PKCS_RSA_SHA256, RsaKeySize,
};
use x509_parser::pem::Pem;
use x509_parser::public_key::PublicKey;

use crate::SutError;

/// Prefix of the name of the folder with certificate and key; the kind follows. No arm's name begins with a dot.
const FOLDER: &str = ".tls";
/// Name of the certificate, also in folders that it is copied to.
pub const CERTIFICATE_FILE: &str = "certificate.pem";
/// Name of the key in the same folder.
pub const KEY_FILE: &str = "key.pem";

/// Certificates of a run: one of each kind that is shown.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
    names: Vec<String>,
    made: BTreeMap<CertificateKind, Certificate>,
}

/// The properties of a certificate that decide what a handshake with it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateKind {
    /// Kind of the key.
    pub key: KeyKind,
    /// Number of certificates that are sent: its own, and those of authorities.
    pub sent: usize,
}

/// A kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyKind {
    /// RSA with 2048 bits.
    Rsa2048,
    /// RSA with 3072 bits.
    Rsa3072,
    /// RSA with 4096 bits.
    Rsa4096,
    /// ECDSA on the curve P-256.
    P256,
    /// ECDSA on the curve P-384.
    P384,
    /// ECDSA on the curve P-521.
    P521,
    /// Ed25519.
    Ed25519,
}

impl CertificateKind {
    /// Kind that weir shows unless a user's configuration has another.
    pub const USUAL: CertificateKind = CertificateKind { key: KeyKind::Rsa2048, sent: 1 };

    /// Reads the kind from a PEM file: its first certificate's key, and the number of certificates. `None` if it has no
    /// certificate with a kind of key that is known here.
    pub fn of_pem(text: &[u8]) -> Option<CertificateKind> {
        let certificates: Vec<Pem> = Pem::iter_from_buffer(text)
            .filter_map(Result::ok)
            .filter(|block| block.label == "CERTIFICATE")
            .collect();
        let first = certificates.first()?.parse_x509().ok()?;
        Some(CertificateKind { key: KeyKind::of(first.public_key())?, sent: certificates.len() })
    }
}

impl KeyKind {
    fn of(key: &x509_parser::x509::SubjectPublicKeyInfo<'_>) -> Option<KeyKind> {
        /// Object identifier of Ed25519 (RFC 8410 section 3).
        const ED25519: &str = "1.3.101.112";
        match key.parsed() {
            Ok(PublicKey::RSA(rsa)) => Some(match rsa.key_size() {
                ..=2048 => KeyKind::Rsa2048,
                2049..=3072 => KeyKind::Rsa3072,
                _ => KeyKind::Rsa4096,
            }),
            Ok(PublicKey::EC(point)) => Some(match point.key_size() {
                ..=256 => KeyKind::P256,
                257..=384 => KeyKind::P384,
                _ => KeyKind::P521,
            }),
            _ if key.algorithm.algorithm.to_id_string() == ED25519 => Some(KeyKind::Ed25519),
            _ => None,
        }
    }

    /// Parses a name without dashes, such as `p256` or `rsa4096`.
    pub(crate) fn named(name: &str) -> Option<KeyKind> {
        Some(match name {
            "rsa2048" => KeyKind::Rsa2048,
            "rsa4096" => KeyKind::Rsa4096,
            "p256" => KeyKind::P256,
            "p384" => KeyKind::P384,
            "ed25519" => KeyKind::Ed25519,
            _ => return None,
        })
    }

    fn generate(self) -> Result<KeyPair, rcgen::Error> {
        match self {
            KeyKind::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
            KeyKind::Rsa3072 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
            KeyKind::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
            KeyKind::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            KeyKind::P384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
            KeyKind::P521 => KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512),
            KeyKind::Ed25519 => KeyPair::generate_for(&PKCS_ED25519),
        }
    }
}

/// Writes the kind as in `rsa-4096`.
impl fmt::Display for KeyKind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            KeyKind::Rsa2048 => "rsa-2048",
            KeyKind::Rsa3072 => "rsa-3072",
            KeyKind::Rsa4096 => "rsa-4096",
            KeyKind::P256 => "ecdsa-p256",
            KeyKind::P384 => "ecdsa-p384",
            KeyKind::P521 => "ecdsa-p521",
            KeyKind::Ed25519 => "ed25519",
        })
    }
}

impl Certificates {
    /// Creates an empty collection for these hosts; certificates go into `folder`, a run's work folder.
    pub fn new(folder: &Path, names: Vec<String>) -> Certificates {
        Certificates { folder: folder.to_owned(), names, made: BTreeMap::new() }
    }

    /// Returns the certificate of a kind, and makes it if there is none yet. RSA takes a second at worst, since prime
    /// numbers have to be found.
    ///
    /// # Errors
    /// A file cannot be written, or a name is not a host's.
    pub fn of_kind(&mut self, kind: CertificateKind) -> Result<&Certificate, SutError> {
        if !self.made.contains_key(&kind) {
            let certificate = Certificate::of_kind(&self.folder, &self.names, kind)?;
            self.made.insert(kind, certificate);
        }
        Ok(&self.made[&kind])
    }
}

/// A certificate and its key, as PEM files (RFC 7468).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificate {
    /// Makes a certificate of [`CertificateKind::USUAL`] for these hosts in `folder`, a run's work folder.
    ///
    /// # Errors
    /// Same as [`Certificates::of_kind`].
    pub fn make(folder: &Path, names: &[String]) -> Result<Certificate, SutError> {
        Certificate::of_kind(folder, names, CertificateKind::USUAL)
    }

    fn of_kind(
        folder: &Path,
        names: &[String],
        kind: CertificateKind,
    ) -> Result<Certificate, SutError> {
        let failed = |error: rcgen::Error| SutError::Certificate {
            name: names.join(", "),
            words: error.to_string(),
        };
        let key = kind.key.generate().map_err(failed)?;
        let certificate =
            params(names).and_then(|params| params.self_signed(&key)).map_err(failed)?;

        let kind_folder = folder.join(format!("{FOLDER}-{}-{}", kind.key, kind.sent));
        // The key is for weir's own user: nginx reads it before it becomes another one.
        weir_files::make_folder(&kind_folder).map_err(SutError::file("create", &kind_folder))?;
        let files = Certificate {
            certificate: kind_folder.join(CERTIFICATE_FILE),
            key: kind_folder.join(KEY_FILE),
        };
        // Clients that trust it need no authorities: these are sent for their size alone.
        write(&files.certificate, &certificate.pem().repeat(kind.sent))?;
        write(&files.key, &key.serialize_pem())?;
        Ok(files)
    }

    /// Returns the certificate's file, which a client also uses as its trust anchor.
    pub fn file(&self) -> &Path {
        &self.certificate
    }

    /// Copies certificate and key to another folder under the same names.
    pub(crate) fn copy_to(&self, folder: &Path) -> Result<(), SutError> {
        for (from, to) in [(&self.certificate, CERTIFICATE_FILE), (&self.key, KEY_FILE)] {
            let to = folder.join(to);
            // With its mode.
            fs::copy(from, &to).map_err(SutError::file("write", &to))?;
        }
        Ok(())
    }
}

/// Returns the parameters of a server's certificate (RFC 5280 §4.2.1.12). Its validity is rcgen's, decades around any
/// clock.
fn params(names: &[String]) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, names.first().map_or("", String::as_str));
    params.distinguished_name = subject;
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        // For RSA key exchange, which a proxy's cipher list may ask for.
        KeyUsagePurpose::KeyEncipherment,
    ];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

/// Writes a file that only this user can read.
fn write(path: &Path, text: &str) -> Result<(), SutError> {
    let created = weir_files::create_new(path);
    let written = created.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(SutError::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_of_a_kind_is_read_as_that_kind() {
        let folder = tempfile::tempdir().unwrap();
        let mut all = Certificates::new(folder.path(), vec!["shop.example".to_owned()]);
        let kinds = [
            KeyKind::Rsa2048,
            KeyKind::Rsa3072,
            KeyKind::Rsa4096,
            KeyKind::P256,
            KeyKind::P384,
            KeyKind::P521,
            KeyKind::Ed25519,
        ];
        for (key, sent) in kinds.into_iter().zip([1, 2, 3, 1, 2, 3, 1]) {
            let kind = CertificateKind { key, sent };
            let certificate = all.of_kind(kind).unwrap().clone();
            let text = fs::read(certificate.file()).unwrap();
            assert_eq!(CertificateKind::of_pem(&text), Some(kind));
            // As HAProxy has them: the key before.
            let both = [fs::read(&certificate.key).unwrap(), text].concat();
            assert_eq!(CertificateKind::of_pem(&both), Some(kind));
            assert_eq!(all.of_kind(kind).unwrap(), &certificate);
        }
        assert_eq!(CertificateKind::of_pem(b"no certificate"), None);
        for key in [KeyKind::Rsa4096, KeyKind::P256, KeyKind::Ed25519] {
            let name = key.to_string().replace("ecdsa-", "").replace('-', "");
            assert_eq!(KeyKind::named(&name), Some(key));
        }
    }
}
