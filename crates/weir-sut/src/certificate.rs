//! The certificate that proxies show to clients that ask over TLS.
//!
//! One for all arms of a run, made for it and gone with its work folder: self-signed, RSA with 2048
//! bits (what published figures of TLS handshakes are about, and the dearer one for a server to sign
//! with), for one name. A client takes the certificate itself for its trust anchor.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair,
    KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize,
};

use crate::SutError;

/// Folder of certificate and key: no arm's name begins with a dot.
const FOLDER: &str = ".tls";
/// Name of the certificate, also where it is copied to.
pub(crate) const CERTIFICATE_FILE: &str = "certificate.pem";
/// Name of the key beside it.
pub(crate) const KEY_FILE: &str = "key.pem";

/// A certificate and its key, as PEM files (RFC 7468).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificate {
    /// Makes a key and a certificate for these hosts in `folder`, a run's work folder. It takes
    /// a second at worst: prime numbers have to be found.
    ///
    /// # Errors
    /// A file cannot be written, or one is no host name.
    pub fn make(folder: &Path, names: &[String]) -> Result<Certificate, SutError> {
        let failed = |error: rcgen::Error| SutError::Certificate {
            name: names.join(", "),
            words: error.to_string(),
        };
        let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).map_err(failed)?;
        let params = params(names).map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;

        let folder = folder.join(FOLDER);
        // The key is for weir's own user: nginx reads it before it becomes another one.
        let made = weir_files::make_folder(&folder);
        made.map_err(SutError::file("create", &folder))?;
        let files = Certificate {
            certificate: folder.join(CERTIFICATE_FILE),
            key: folder.join(KEY_FILE),
        };
        write(&files.certificate, &certificate.pem())?;
        write(&files.key, &key.serialize_pem())?;
        Ok(files)
    }

    /// The certificate, which is also what a client has to trust.
    pub fn file(&self) -> &Path {
        &self.certificate
    }

    /// Copies both under the same names to another folder.
    pub(crate) fn copy_to(&self, folder: &Path) -> Result<(), SutError> {
        for (from, to) in [(&self.certificate, CERTIFICATE_FILE), (&self.key, KEY_FILE)] {
            let to = folder.join(to);
            // With its mode.
            fs::copy(from, &to).map_err(SutError::file("write", &to))?;
        }
        Ok(())
    }
}

/// A server's certificate (RFC 5280 §4.2.1.12). Its times are rcgen's, decades around any clock.
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

/// Writes a file that is nobody else's to read.
fn write(path: &Path, text: &str) -> Result<(), SutError> {
    let created = weir_files::create_new(path);
    let written = created.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(SutError::file("write", path))
}
