//! Records and findings to something a person reads: terminal, Markdown and one self-contained
//! HTML page.
//!
//! ```text
//! RunHeader, study text, records, Findings ──► view ──► tree ──► render: terminal | markdown | html
//! LoadReport ──────────────────────────────► load ──►   │                                (with svg)
//!                                                 every text is
//!                                                 formatted here, once
//! ```
//!
//! The tree is filled once; what draws it holds no arithmetic and no number formats of its own, so the
//! outputs cannot disagree, and knows nothing of studies and metrics. Nothing here reads a file, a clock or a process:
//! the same input gives the same bytes, years later too. Names come from a user's file and are escaped where they are
//! drawn, and nowhere else.

pub mod load;
pub mod number;
mod render;
mod tree;
mod view;
pub mod words;

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

/// Formats a report for a terminal of `width` columns, with colours if `color` says so. Ends with a line feed.
pub fn terminal(input: &ReportInput<'_>, color: bool, width: usize) -> String {
    render::terminal(&view::document(input), color, width)
}

/// Formats a report as Markdown. Ends with a line feed.
pub fn markdown(input: &ReportInput<'_>) -> String {
    render::markdown(&view::document(input))
}

/// Formats a report as one self-contained HTML page.
pub fn html(input: &ReportInput<'_>) -> String {
    render::html(&view::document(input))
}
