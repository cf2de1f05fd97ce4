//! PEM files (RFC 7468), read so that an error contains its line.

use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::SetupError;
use crate::files::{LARGEST_DESCRIPTION, read_at_most};

/// A section of a PEM file.
struct Section<'a> {
    /// Label of the section, such as `CERTIFICATE`.
    label: &'a str,
    /// Number of the line at which the section begins, from 1.
    line: usize,
    /// Text from the section's first line to its last.
    text: &'a str,
}

/// Reads all certificates of a file, with the line of each.
pub(super) fn certificates(
    path: &str,
    what: &'static str,
) -> Result<Vec<(usize, CertificateDer<'static>)>, SetupError> {
    let text = read(path, what)?;
    let sections = read_sections(path, &text)?;
    let mut certificates = Vec::new();
    for section in sections.iter().filter(|s| s.label == "CERTIFICATE") {
        let certificate = CertificateDer::from_pem_slice(section.text.as_bytes())
            .map_err(|_| broken(path, section))?;
        certificates.push((section.line, certificate));
    }
    if certificates.is_empty() {
        return Err(SetupError::Missing {
            path: path.to_owned(),
            what: "certificate in PEM",
            hint: "it must have a line `-----BEGIN CERTIFICATE-----`; \
                   `openssl x509 -inform der` turns DER into PEM",
        });
    }
    Ok(certificates)
}

/// Reads the private key of a file.
pub(super) fn private_key(path: &str) -> Result<PrivateKeyDer<'static>, SetupError> {
    let text = read(path, "the client's private key")?;
    for section in &read_sections(path, &text)? {
        let encrypted = section.label.starts_with("ENCRYPTED")
            || section.text.contains("Proc-Type: 4,ENCRYPTED");
        if encrypted && section.label.ends_with("PRIVATE KEY") {
            return Err(SetupError::Pem {
                path: path.to_owned(),
                line: section.line,
                problem: "the private key is encrypted".to_owned(),
                hint: "decrypt it with `openssl pkey -in FILE -out PLAIN`",
            });
        }
        if section.label.ends_with("PRIVATE KEY") {
            return PrivateKeyDer::from_pem_slice(section.text.as_bytes())
                .map_err(|_| broken(path, section));
        }
    }
    Err(SetupError::Missing {
        path: path.to_owned(),
        what: "private key in PEM",
        hint: "it must have a line `-----BEGIN PRIVATE KEY-----` (or RSA, or EC)",
    })
}

fn read(path: &str, what: &'static str) -> Result<String, SetupError> {
    let bytes = read_at_most(Path::new(path), LARGEST_DESCRIPTION)
        .map_err(|source| SetupError::Unreadable { path: path.to_owned(), what, source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn broken(path: &str, section: &Section<'_>) -> SetupError {
    SetupError::Pem {
        path: path.to_owned(),
        line: section.line,
        problem: format!("what is between BEGIN and END {} is not base64", section.label),
        hint: "copy the section again, all lines of it",
    }
}

/// Creates the error for a certificate that is base64, but not a usable certificate.
pub(super) fn not_a_certificate(path: &str, line: usize, why: &rustls::Error) -> SetupError {
    SetupError::Pem {
        path: path.to_owned(),
        line,
        problem: format!("not a certificate that can be used: {why}"),
        hint: "look at it with `openssl x509 -text -noout`",
    }
}

/// Cuts a file into sections. Text between them is a comment (RFC 7468 §5.2).
fn read_sections<'a>(path: &str, text: &'a str) -> Result<Vec<Section<'a>>, SetupError> {
    let mut sections = Vec::new();
    let mut open: Option<(usize, usize, &str)> = None;
    let mut at = 0;
    for (number, raw) in text.split_inclusive('\n').enumerate() {
        let line = raw.trim();
        if let Some(label) = marker(line, "-----BEGIN ") {
            if let Some((begun, _, label)) = open {
                return Err(unended(path, begun, label));
            }
            open = Some((number + 1, at, label));
        }
        at += raw.len();
        if let Some((line, start, label)) =
            open.filter(|(_, _, label)| marker(line, "-----END ") == Some(*label))
        {
            let text = &text[start..at];
            sections.push(Section { label, line, text });
            open = None;
        }
    }
    match open {
        Some((begun, _, label)) => Err(unended(path, begun, label)),
        None => Ok(sections),
    }
}

fn marker<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_suffix("-----")
}

fn unended(path: &str, line: usize, label: &str) -> SetupError {
    SetupError::Pem {
        path: path.to_owned(),
        line,
        problem: format!("the section has no `-----END {label}-----`"),
        hint: "copy the section again, all lines of it",
    }
}
