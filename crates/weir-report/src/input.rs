//! Input of a report.

use weir_analysis::findings::Findings;
use weir_model::record::{Record, RunHeader};

/// The data that a report is made from.
#[derive(Debug, Clone)]
pub struct ReportInput<'a> {
    /// The run: its study, host and version of weir.
    pub header: &'a RunHeader,
    /// The study as it was written.
    pub study_text: &'a str,
    /// Records of the run. Effective settings and the end of the run are read from them.
    pub records: &'a [Record],
    /// Findings of the analysis.
    pub findings: &'a Findings,
    /// The answer to the study's question in words ([`weir_sentences::answer`]), one topic per line.
    pub answer: String,
}

/// Content of a run folder, for the page that explains it.
#[derive(Debug, Clone, Default)]
pub struct FolderContent {
    /// Paths of files below the folder, with their lengths in bytes.
    pub files: Vec<(String, u64)>,
    /// SHA-256 sums, as sha256sum(1) prints them.
    pub sums: String,
    /// The user's note; empty if there is none.
    pub note: String,
}

/// Commands and paths that a summary ends with.
#[derive(Debug, Clone, Default)]
pub struct Pointers {
    /// Commands that can be pasted, each with a description.
    pub next: Vec<(String, String)>,
    /// Paths of the report's files.
    pub files: Vec<String>,
}
