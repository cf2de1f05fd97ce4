//! Proposers: they decide what is measured next, and measure nothing.
//!
//! A [`Proposer`] gets the [`History`] of a run and returns the next [`Step`], most often a [`Cell`]: arms, a load, a
//! rate for each arm and slice, a length or a stopping rule, and a phase. Whoever measures reports the [`Outcome`]. A
//! proposer depends on records alone, so a resumed run continues where it was, and tests can try its decisions with
//! made-up outcomes. This crate knows no host: none of the crates that reach one is among its dependencies.
//!
//! Proposers: [`Plan`] (all loads of a study, with pilots and looks), [`Capacity`] (a search for each arm), [`Turns`]
//! (arms one after the other), [`CheckAlone`] and [`Observe`], which add stretches of single arms after another proposer.
//! `budget` estimates how long all of it takes.

pub mod alone;
mod announcement;
pub mod arrivals;
pub mod budget;
mod capacity;
mod cell;
mod history;
mod observe;
mod pilot;
mod plan;
mod proposer;
mod quantiles;
mod timeline;
pub mod turns;
mod until;

pub use alone::CheckAlone;
pub use announcement::Announcement;
pub use capacity::{
    CLOSED, Capacity, at_most as longest_search, claiming as claiming_search, least as least_search,
};
pub use cell::{ArmId, Block, Cell, CellEnd, Outcome, Rates, Renewal, Shared, StepBlock, Steps};
pub use history::History;
pub use observe::{Observe, length_of_stretches};
pub use plan::Plan;
pub use proposer::{MakeProposer, MeasureError, Proposer, Step};
pub use quantiles::{keep_quantiles, short_loads};
pub use timeline::{Timeline, Turn};
pub use turns::Turns;
pub use until::{TakeLook, planned as looks_planned};
