//! Searches for the highest rate at which an objective holds.
//!
//! A [`Search`] proposes trials and is told what they showed; it never measures, so it needs no host and is tried
//! thousands of times on queues whose capacity is known (`examples/queues.rs`, `docs/capacity.md`). It goes from a
//! closed loop, which says what the target completes at most, over a ramp to ladders: trials at some rates around the
//! edge in random order, each as long as a queue needs to forget there. [`Edge::of`] fits a model of the share of bad
//! responses to them. When its interval is narrow enough, a long trial at the lower end verifies it; where that fails,
//! long trials find the rate that lasts.

mod burst;
mod edge;
mod goal;
mod known;
mod long;
mod model;
mod search;

pub use edge::{Closed, Edge, Frame, Rung};
pub use goal::{Answer, Bound, Burst, Goal, Progress, Seen, Stage, Trial, Why};
pub use search::Search;
