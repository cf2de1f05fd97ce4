//! Secrets in the files of a run, masked for an archive.

use std::path::Path;

use weir_model::record::{Record, RunHeader};
use weir_record::{HEADER_FILE, HISTOGRAMS_FILE, RECORDS_FILE, SAMPLES_FOLDER, STUDY_FILE};
use weir_report::secrets::{mask_header_values, masked, masked_study};

/// A file after masking.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Masked {
    /// It has no secret.
    Same,
    /// The file with its secrets masked.
    Changed(Vec<u8>),
    /// It is no text.
    NotText,
}

/// Returns false for files of figures alone, and for pages that were masked when they were written.
pub(super) fn may_have_secrets(path: &Path) -> bool {
    let is_masked_page = path == Path::new("report.html");
    let has_figures = path == Path::new(HISTOGRAMS_FILE)
        || path.starts_with(SAMPLES_FOLDER)
        || path.extension().is_some_and(|ending| ending == "sha256");
    !is_masked_page && !has_figures
}

/// Masks a file so that the run can still be read.
///
/// # Errors
/// A masked file could not be read back.
pub(super) fn masked_file(path: &Path, bytes: &[u8], header: &RunHeader) -> Result<Masked, String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(Masked::NotText);
    };
    let shown = if path == Path::new(HEADER_FILE) {
        masked_header(header)?
    } else if path == Path::new(STUDY_FILE) {
        masked_study(&header.study, text)
    } else {
        masked(text).into_owned()
    };
    if shown == text {
        return Ok(Masked::Same);
    }
    if path == Path::new(RECORDS_FILE) {
        // A killed weir leaves half a line, which no reader reads.
        for line in shown.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            serde_json::from_str::<Record>(line).map_err(|error| unreadable(&error))?;
        }
    }
    Ok(Masked::Changed(shown.into_bytes()))
}

fn masked_header(header: &RunHeader) -> Result<String, String> {
    let mut shown = header.clone();
    mask_header_values(&mut shown.study);
    let text = serde_json::to_string_pretty(&shown).map_err(|error| unreadable(&error))?;
    let text = masked(&text).into_owned() + "\n";
    serde_json::from_str::<RunHeader>(&text).map_err(|error| unreadable(&error))?;
    Ok(text)
}

fn unreadable(error: &serde_json::Error) -> String {
    format!(
        "with its secrets masked it could not be read any more ({error}); --with-secrets packs it unchanged"
    )
}
