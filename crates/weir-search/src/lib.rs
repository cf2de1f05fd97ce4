//! Searches for the highest rate at which an objective holds.
//!
//! A [`Search`] proposes trials and evaluates their results; it never measures, so it needs no host and is tested
//! thousands of times on simulated servers whose capacity is known (`examples/servers`, `docs/capacity.md`).
//!
//! The closed loop before a search determines its starting point, and bounds nothing. A ramp of short trials (*dwells*)
//! finds one rate that holds and one that breaks. A few more dwells near them show where the limit is and how much it
//! scatters (`threshold`); then a long trial (*hold*) at a rate that is likely to hold makes the first claim. The
//! remaining time narrows it: dwells around the limit, and holds at higher rates. Every trial stays in the estimate;
//! none is discarded.

#![warn(missing_docs)]

mod burst;
mod goal;
mod judge;
mod search;
mod threshold;

pub use goal::{Answer, Bound, Burst, Ending, Goal, Observed, Progress, Stage, Trial, Window};
pub use search::Search;
