//! Kind of certificate that a user's configuration shows, so that its copy shows one of the same kind.

use std::fs;
use std::path::{Path, PathBuf};

use weir_configuration::{ConfigurationError, PemLocation, ShownCertificate, Source, read_regular};
use weir_model::record::{ReplacedPart, ReplacedRecord, SpotRecord};
use weir_model::study::AskSpec;

use crate::Language;
use crate::certificate::{CertificateKind, KeyKind};

/// Largest file of certificates that is read, in bytes.
const MOST: u64 = 1 << 20;

/// Maximum number of files of a folder that are read.
const MOST_FILES: usize = 1_000;

/// Finds the certificate whose kind cannot be determined, so that the copy shows another; `None` if there is none.
///
/// # Errors
/// Same as [`Language::certificates`].
pub(crate) fn replaced_certificate(
    language: &dyn Language,
    source: &Source,
    ask: &AskSpec,
) -> Result<Option<ReplacedRecord>, ConfigurationError> {
    if !ask.tls {
        return Ok(None);
    }
    let shown = language.certificates(source, ask)?;
    if kind_of(&shown).is_some() {
        return Ok(None);
    }
    let first = shown.into_iter().next().map(|shown| shown.spot);
    Ok(Some(ReplacedRecord {
        part: ReplacedPart::Certificate,
        original: first.unwrap_or_else(|| SpotRecord {
            name: "certificates that the proxy gets by itself".to_owned(),
            file: source.files[0].path.clone(),
            line: 0,
        }),
    }))
}

/// Returns the kind that clients get if there are several: the first one without RSA, since clients of today prefer it,
/// or else the first one.
pub(crate) fn kind_of(shown: &[ShownCertificate]) -> Option<CertificateKind> {
    let kinds: Vec<CertificateKind> =
        shown.iter().filter_map(|certificate| of_pem(&certificate.pem)).collect();
    kinds
        .iter()
        .find(|kind| !matches!(kind.key, KeyKind::Rsa2048 | KeyKind::Rsa3072 | KeyKind::Rsa4096))
        .or(kinds.first())
        .copied()
}

fn of_pem(pem: &PemLocation) -> Option<CertificateKind> {
    match pem {
        PemLocation::Text(text) => CertificateKind::of_pem(text.as_bytes()),
        PemLocation::At(path) if path.is_dir() => {
            let mut files: Vec<PathBuf> = fs::read_dir(path)
                .ok()?
                .take(MOST_FILES)
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect();
            files.sort();
            files.iter().find_map(|file| of_file(file))
        }
        PemLocation::At(path) => of_file(path),
        PemLocation::ListedIn(list) => {
            let text = read_regular(list, MOST).ok()?;
            let text = String::from_utf8_lossy(&text).into_owned();
            let mut lines = text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'));
            let path = lines.next()?.split_whitespace().next()?;
            of_file(&list.parent()?.join(path))
        }
        // Authorities send one of their own with it.
        PemLocation::Automatic(key) => Some(CertificateKind { key: KeyKind::named(key)?, sent: 2 }),
        PemLocation::Unknown => None,
    }
}

fn of_file(path: &Path) -> Option<CertificateKind> {
    CertificateKind::of_pem(&read_regular(path, MOST).ok()?)
}
