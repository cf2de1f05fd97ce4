//! Runs of one study over time.
//!
//! A single run cannot say how much the next one will differ: between two runs a machine has other neighbours, other
//! clock rates, another layout of memory. So a run is held against several earlier ones of the same study, and the
//! spread between those is the noise ([`judge`]). What differs in the environment is found first ([`differences`]).

mod differences;
mod figures;
mod judge;

pub use differences::{Difference, differences};
pub use figures::{Figure, FigureKey, RunFigures};
pub use judge::{FigureVerdict, RunVerdict, RunsFindings, WhyOpen, judge};
