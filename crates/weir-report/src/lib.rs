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
//! drawn, and nowhere else; so are secrets masked there, and control characters replaced ([`foreign`]).

pub mod csv;
pub mod foreign;
mod input;
pub mod load;
pub mod number;
mod render;
mod tree;
mod view;
pub mod words;

pub use input::{Pointers, ReportInput};

/// Lines of a summary at most. A terminal of 40 lines then has room for the command and for what an interrupted run says
/// besides.
pub const SUMMARY_LINES: usize = 37;

/// Formats a report for a terminal of `width` columns, with colours if `color` says so. Ends with a line feed.
pub fn terminal(input: &ReportInput<'_>, color: bool, width: usize) -> String {
    render::terminal(&view::document(input), color, width)
}

/// Formats the summary of a report for a terminal of `width` columns, with colours if `color` says so: the answer, one
/// table of what the study asks, whether to believe it, what limits the arms, and `pointers`. Takes at most
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

/// Formats a report as one self-contained HTML page.
pub fn html(input: &ReportInput<'_>) -> String {
    render::html(&view::document(input))
}
