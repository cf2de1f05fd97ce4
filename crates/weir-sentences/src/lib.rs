//! Sentences about findings, for people.
//!
//! weir-analysis, weir-limits and weir-doctor return figures and enumerations. This crate puts them into words, with
//! one function for each sentence, so that terminal, Markdown, HTML and the live view all say the same. Nothing is
//! decided here: what a sentence says follows from the finding that it is given. `tests/it/table` writes every sentence
//! into one file, `sentences.md`, which reads from top to bottom.

pub mod advice;
mod alone;
mod answer;
pub mod baseline;
pub mod brief;
pub mod capacity;
mod comparison;
pub mod doctor;
mod effects;
pub mod folder;
pub mod frontier;
pub mod growth;
pub mod headline;
pub mod history;
mod idle;
pub mod limiter;
mod limits;
mod names;
mod numbers;
mod phases;
mod published;
mod ranking;
mod rests;
pub mod runs;
pub mod scaling;
pub mod size;
mod surroundings;
pub mod validity;

pub use alone::{describe_alone, explain_alone, explain_choice};
pub use answer::answer;
pub use comparison::explain_verdict;
pub use effects::{describe_ineffective, describe_misread, explain_ineffective, explain_inert};
pub use idle::describe_idle_load;
pub use limits::explain_limit;
pub use names::{capitalize, join_names, metric_words};
pub use numbers::with_unit;
pub use phases::{describe_fresh_arms, describe_phase_evidence};
pub use published::{explain_published_figure, explain_published_gain, explain_published_time};
pub use ranking::describe_ranking;
pub use rests::describe_resting_arm;
pub use surroundings::describe_surroundings;
