//! Configurations written by users: read without loss, changed only in the settings of a study, and returned with the
//! smallest diff.
//!
//! A [`Source`] holds the files of one configuration, byte for byte as they were read. Readers for each language find
//! the *positions* of their parts: [`document`] for JSON and YAML, `weir-nginx` and `weir-haproxy` for theirs. A change is a few
//! [`Splice`]s of the text, so comments, order, blanks and line ends stay.
//!
//! Two kinds of change are kept apart:
//!
//! * [`WantedSetting`] settings are those of an arm of a study. A user is shown them as a diff.
//! * [`Surroundings`] are the changes with which a copy can run in a trial beside others without touching anything of
//!   the user's: addresses, logs, process numbers. No diff has them.
//!
//! This crate writes files only below a folder that the caller names.

pub mod answer;
pub mod asked;
pub mod document;
mod error;
mod listener;
pub mod names;
pub mod place;
mod record;
mod regular;
pub mod replaced;
mod shown;
mod source;
mod vanished;

pub use answer::{Answer, Barrier};
pub use asked::{RequestOutcome, Spot};
pub use error::ConfigurationError;
pub use listener::Listener;
pub use record::record;
pub use regular::{read_regular, read_regular_below};
pub use shown::{PemLocation, ShownCertificate};
pub use source::{
    Ask, Pem, Source, SourceFile, Splice, Surroundings, WantedSetting, diff, former_line,
};
pub use vanished::{Copied, vanished};
