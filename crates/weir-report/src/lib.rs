//! Conversion of records and findings to reports for people: terminal, Markdown and one self-contained HTML page.
//!
//! ```text
//! RunHeader, study text, records, Findings ──► view ──► tree ──► render: terminal | markdown | html
//! LoadReport ──────────────────────────────► load ──►   │                                (with svg)
//!                                  sentences of weir-sentences and all
//!                                  other texts are put in here, once
//! ```
//!
//! The tree is filled once. The renderers contain no arithmetic and no number formats of their own, so the outputs
//! cannot disagree, and they know nothing of studies and metrics. Nothing here reads a file, a clock or a process: the
//! same input gives the same bytes, even years later. Names come from a user's file. Escaping them, masking secrets and
//! replacing control characters ([`secrets`]) happens in the renderers only.

pub mod advice;
pub mod csv;
pub mod doctor;
pub mod history;
mod input;
pub mod load;
pub mod number;
mod render;
pub mod runs;
pub mod secrets;
pub mod size;
mod tree;
mod view;
pub mod words;

pub use input::{FolderContent, Pointers, ReportInput};

/// Maximum number of lines of a summary. A terminal of 40 lines then has room for the command and for the message of an
/// interrupted run.
pub const SUMMARY_LINES: usize = 37;

/// Formats a report for a terminal of `width` columns, with colours if `color` says so. Ends with a line feed.
pub fn terminal(input: &ReportInput<'_>, color: bool, width: usize) -> String {
    render::terminal(&view::document(input), color, width)
}

/// Formats the summary of a report for a terminal of `width` columns, with colours if `color` says so: the answer, one
/// table of the metrics that the study compares, the validity, the limiters of the arms, and `pointers`. Takes at most
/// [`SUMMARY_LINES`] lines from 80 columns on. Ends with a line feed.
pub fn summary(input: &ReportInput<'_>, pointers: &Pointers, color: bool, width: usize) -> String {
    let mut document = view::document(input);
    document.blocks.extend(view::pointers(pointers));
    render::screen(&document, color, width, SUMMARY_LINES)
}

/// Formats a report as Markdown. Ends with a line feed.
pub fn markdown(input: &ReportInput<'_>) -> String {
    render::markdown(&view::document(input))
}

/// Formats the page by which a run folder explains itself to somebody who has never seen weir, as Markdown. Ends with a
/// line feed.
pub fn readme(input: &ReportInput<'_>, folder: &FolderContent) -> String {
    render::markdown(&view::readme(input, folder))
}

/// Formats a report as one self-contained HTML page.
pub fn html(input: &ReportInput<'_>) -> String {
    render::html(&view::document(input))
}
