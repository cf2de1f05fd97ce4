//! Summary of a run, so that a list of runs need not read their records: `summary.json` in its folder.
//!
//! It is a cache. It counts only if nobody else could have written it, this version of weir made it, and the files that
//! it was made from are unchanged.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use serde::{Deserialize, Serialize};
use weir_analysis::findings::Findings;
use weir_files::{only_ours_file, open_regular};
use weir_model::record::Validity;
use weir_record::{HEADER_FILE, HISTOGRAMS_FILE, RECORDS_FILE, Run};
use weir_sentences::brief::describe_briefly;

/// Name of the file in a run folder.
pub const SUMMARY_FILE: &str = "summary.json";
const FORMAT: &str = "weir-summary/1";
/// Maximum length of the file, bytes.
const MOST_BYTES: u64 = 64 << 10;
/// Files that the analysis reads; samples are only ever appended together with records.
const SOURCES: [&str; 3] = [HEADER_FILE, RECORDS_FILE, HISTOGRAMS_FILE];

/// Validity and verdict of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    format: String,
    /// Version of weir that analyzed the run.
    weir_version: String,
    sources: Vec<Source>,
    /// Validity of the answer.
    pub validity: Validity,
    /// The verdict in a few words.
    pub verdict: String,
}

/// State of a file that a summary was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Source {
    bytes: u64,
    modified_s: i64,
    modified_ns: i64,
}

/// Writes the summary of a run into its folder, and returns it.
///
/// # Errors
/// The kernel refuses.
pub fn keep_summary(run: &Run, findings: &Findings, weir_version: &str) -> io::Result<Summary> {
    let summary = Summary {
        format: FORMAT.to_owned(),
        weir_version: weir_version.to_owned(),
        sources: sources(&run.dir)?,
        validity: findings.headline.validity,
        verdict: describe_briefly(&run.header.study, findings),
    };
    let mut text = serde_json::to_vec_pretty(&summary).map_err(io::Error::other)?;
    text.push(b'\n');
    weir_files::replace(&run.dir.join(SUMMARY_FILE), &text)?;
    Ok(summary)
}

/// Reads the summary of a run; `None` if there is none that can be trusted.
pub fn read_summary(dir: &Path, weir_version: &str) -> Option<Summary> {
    let path = dir.join(SUMMARY_FILE);
    only_ours_file(&path).ok()?;
    let mut bytes = Vec::new();
    open_regular(&path).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let summary: Summary = serde_json::from_slice(&bytes).ok()?;
    let is_current = summary.format == FORMAT
        && summary.weir_version == weir_version
        && summary.sources == sources(dir).ok()?;
    is_current.then_some(summary)
}

fn sources(dir: &Path) -> io::Result<Vec<Source>> {
    SOURCES
        .iter()
        .map(|name| {
            let metadata = fs::symlink_metadata(dir.join(name))?;
            Ok(Source {
                bytes: metadata.len(),
                modified_s: metadata.mtime(),
                modified_ns: metadata.mtime_nsec(),
            })
        })
        .collect()
}
