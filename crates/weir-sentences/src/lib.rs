//! Sentences about findings, for people.
//!
//! weir-analysis, weir-limits and weir-doctor return figures and enumerations. This crate puts them into words, with
//! one function for each sentence, so that terminal, Markdown, HTML and the live view all say the same. Nothing is
//! decided here: what a sentence says follows from the finding that it is given. `tests/it/table` writes every sentence
//! into one file, `sentences.md`, which reads from top to bottom.

mod answer;
pub mod comparison;
pub mod limits;
mod names;
mod numbers;
pub mod published;
pub mod ranking;

pub use answer::answer;
pub use names::{capitalize, join_names, metric_words};
