//! What a report is made from.

use weir_analysis::findings::Findings;
use weir_model::record::{Record, RunHeader};

/// Everything that a report is made from.
#[derive(Debug, Clone, Copy)]
pub struct ReportInput<'a> {
    /// What was done, where, and by which weir.
    pub header: &'a RunHeader,
    /// The study as it was written.
    pub study_text: &'a str,
    /// The run's records; effective settings and the run's end are read from them.
    pub records: &'a [Record],
    /// What the analysis says.
    pub findings: &'a Findings,
}

/// Commands and paths that a summary ends with.
#[derive(Debug, Clone, Default)]
pub struct Pointers {
    /// Commands that can be pasted, and what each does.
    pub next: Vec<(String, String)>,
    /// Paths of the report's files.
    pub files: Vec<String>,
}
