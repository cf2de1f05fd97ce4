//! Finds the limit of a proxy under load: rules as data, applied to the samples of a trial.
//!
//! Four files of `limits/` contain all the knowledge. `counters.yaml` lists the tables and columns that samplers read,
//! `quantities.yaml` the quantities derived from them ([`Quantities`]), `rules.yaml` the limiters that these indicate
//! ([`Rules`]), and `reliability.yaml` how often that was right ([`Reliability`]). Code here knows *kinds* of
//! derivations and of conditions, never a limiter by name; another limiter is another row.
//!
//! Flow of data: [`Window`] (rows of a trial, and the figures of the generator) → [`Evidence::of`] → [`judge`] →
//! [`Judgement`]. A quantity that could not be read is absent from the evidence, with the reason, and never 0: a rule
//! that needs it reports it as unknown.
//!
//! [`over_time`] and [`workers`] split the same window into pieces for display. [`growth()`] is the macro-benchmark:
//! how each resource grows with the rate.

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
mod window;

pub use certainty::{Band, Certainty, Reliability};
pub use error::DataError;
pub use evidence::{Absent, Divisor, Evidence, Fact, Input};
pub use growth::{Grown, growth};
pub use judge::{
    Answer, ConditionEvidence, Finding, Judgement, NextLimit, RuledOut, Unknown, judge,
};
pub use quantities::{Columns, Derivation, Keys, Quantities, Quantity, Resource, Take};
pub use rules::{Bound, Condition, Rule, Rules, Turn, TurnDirection};
pub use series::{Series, Worker, over_time, workers};
pub use window::{Figure, HostSamples, Role, Trial, Window};
