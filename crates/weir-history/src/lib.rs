//! Runs of one study over time.
//!
//! A single run cannot say how much the next one will differ: between two runs a machine has other neighbours, other
//! clock rates, another layout of memory. So a run is held against several earlier ones of the same study, and the
//! spread between those is the noise ([`judge`]). What differs in the environment is found first ([`differences`]). All
//! runs together show when something changed ([`over_time`]). A
//! baseline keeps some of them, by rule ([`judge_by_baseline`]).

mod baseline;
mod differences;
mod figures;
mod judge;
mod over_time;
mod series;

pub use baseline::{BaselineFindings, judge_by_baseline, surplus};
pub use differences::{Difference, differences};
pub use figures::{Figure, FigureKey, Quantity, RunFigures};
pub use judge::{FigureVerdict, RunVerdict, RunsFindings, WhyOpen, judge};
pub use over_time::{
    ChangeFindings, ChangedFigure, DatedRun, HistoryFindings, LEAST_RUNS, LeftOutRun, MachineBreak,
    RunName, WhyLeftOut, over_time,
};
pub use series::{Drift, Segment, Series, SeriesChange};
