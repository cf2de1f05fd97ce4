//! Configurations that users wrote: read without loss, changed only where a setting says so, and
//! given back as the smallest diff.
//!
//! A [`Source`] is the files of one configuration, byte for byte as they were read. Readers of each
//! language find out *where* things stand ([`nginx`], [`haproxy`], [`document`] for JSON and YAML);
//! a change is a few [`Splice`]s of the text, so comments, order, blanks and line ends stay.
//!
//! Two kinds of change are kept apart:
//!
//! * [`Wanted`] settings are what an arm of a study says. They are what a user is shown as a diff.
//! * [`Surroundings`] are what a trial needs so that a copy can run beside others without touching
//!   anything of the user's: addresses, logs, process numbers. No diff has them.
//!
//! No file is written here but below a folder that the caller names.

mod answer;
mod asked;
pub mod document;
mod error;
pub mod haproxy;
mod listener;
mod names;
pub mod nginx;
mod place;
mod record;
mod regular;
mod replaced;
mod shown;
mod source;
mod vanished;

pub use answer::{Answer, Barrier};
pub use asked::{Asked, Spot};
pub use error::ConfigurationError;
pub use listener::Listener;
pub use record::record;
pub use regular::{read_regular, read_regular_below};
pub use shown::{PemLocation, ShownCertificate};
pub use source::{Ask, Pem, Source, SourceFile, Splice, Surroundings, Wanted, diff, former_line};
pub use vanished::{Copied, vanished};
