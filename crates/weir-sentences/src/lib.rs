//! Sentences about findings, for people.
//!
//! weir-analysis, weir-limits and weir-doctor return figures and enumerations. This crate puts them into words, with
//! one function for each sentence, so that terminal, Markdown, HTML and the live view all say the same. Nothing is
//! decided here: what a sentence says follows from the finding that it is given. `tests/it/table` writes every sentence
//! into one file, `sentences.md`, which reads from top to bottom.

mod answer;
mod comparison;
mod limits;
mod names;
mod numbers;
mod published;
mod ranking;

pub use answer::answer;
pub use comparison::{explain_missing_figures, explain_verdict};
pub use limits::explain_limit;
pub use names::{capitalize, join_names, metric_words};
pub use published::{explain_published_figure, explain_published_gain, explain_published_time};
pub use ranking::describe_ranking;
