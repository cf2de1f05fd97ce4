//! What limits a proxy under load: rules as data, judged on the samples of a trial.
//!
//! Four files of `limits/` hold all that is known. `counters.yaml` says which tables and columns samplers read,
//! `quantities.yaml` what is derived from them ([`Quantities`]), `rules.yaml` which quantities show which limiter
//! ([`Rules`]), and `reliability.yaml` how often that was right ([`Reliability`]). Code here knows *kinds* of derivations and of conditions, never a limiter by name; another limiter is
//! another row.
//!
//! The way of a figure: [`Window`] (rows of a trial, and what the generator saw) → [`Evidence::of`] → [`judge`] →
//! [`Judgement`]. A quantity that could not be read is absent from the evidence, with the reason, and never 0: a rule
//! that needs it says that it is unknown.
//!
//! [`over_time`] and [`workers`] are the same window in pieces, for people to look at.
//! [`growth()`] is the macro-benchmark: how each resource grows with the rate.

mod certainty;
mod derive;
mod error;
mod evidence;
mod growth;
mod judge;
mod misfit;
mod modes;
mod quantities;
mod rules;
mod series;
mod text;
mod window;

pub use certainty::{Band, Certainty, Reliability};
pub use error::DataError;
pub use evidence::{Absent, Evidence, Fact};
pub use growth::{Grown, growth};
pub use judge::{Answer, Behind, Finding, Judgement, Ruled, Shown, Unknown, judge};
pub use quantities::{Columns, Derivation, Keys, Quantities, Quantity, Resource, Take};
pub use rules::{Condition, Rule, Rules, Turn, Way};
pub use series::{Series, Worker, over_time, workers};
pub use text::shown;
pub use window::{Figure, HostSamples, Role, Trial, Window};
