//! Records and findings to something a person reads: terminal, Markdown and one self-contained
//! HTML page.
//!
//! ```text
//! RunHeader, study text, records, Findings ──► view::ReportView ──► terminal | markdown | html
//!                                               every number is       (html adds svg charts)
//!                                               formatted here, once
//! ```
//!
//! The three outputs hold no arithmetic and no number formats of their own, so they cannot
//! disagree. Nothing here reads a file, a clock or a process: the same input gives the same bytes,
//! years later too. Names come from a user's file and are escaped for each output.

mod html;
pub mod load;
mod markdown;
mod svg;
mod terminal;
pub mod view;

use weir_analysis::findings::Findings;
use weir_model::record::{Record, RunHeader};

pub use html::html;
pub use markdown::markdown;
pub use terminal::terminal;

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
