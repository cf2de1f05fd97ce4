//! What a search for how much an arm carries writes down.

use serde::{Deserialize, Serialize};

use crate::limit::Limit;

/// What a step of a search was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchStage {
    /// A closed loop, which shows what the arm completes at most.
    Closed,
    /// Rates far apart, until one holds and one does not that is near it.
    Ramp,
    /// A short trial near the limit; `ladder` in records of before it was one trial.
    #[serde(alias = "ladder")]
    Dwell,
    /// A trial that is longer than the slowest memory of the system.
    Hold,
    /// A short trial after a rest, for what is carried in a burst.
    Burst,
}

/// What a search knows after a step of it: the trials of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BracketRecord {
    /// The arm.
    pub arm: String,
    /// The load.
    pub load: String,
    /// What the step was for.
    pub stage: SearchStage,
    /// Number of the step's first block within the load.
    pub first_block: u32,
    /// Its blocks.
    pub blocks: u32,
    /// Seconds of measured load of this arm so far.
    pub seconds: f64,
    /// Requests per second between which the capacity is thought to be, if anything is known of it yet.
    pub between: Option<(f64, f64)>,
    /// The highest rate that a hold has held so far; absent before one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<ObservedRecord>,
    /// Seconds that the run had been at work by then; absent in records of before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_s: Option<f64>,
}

/// A rate and the time for which it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObservedRecord {
    /// Requests per second.
    pub rate: f64,
    /// Seconds for which it held, or after which it broke.
    pub seconds: f64,
}

/// How much an arm carries within an objective. Rates are requests per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityRecord {
    /// The arm.
    pub arm: String,
    /// The load.
    pub load: String,
    /// The objective: all of them hold at the capacity.
    pub limits: Vec<Limit>,
    /// Place among the limits of the one that breaks first.
    pub decides: usize,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    /// Lower end of the interval; 0 where no rate has held.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Whether the ends are a rate that held and one that broke, without any probability.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_bracket: bool,
    /// Standard deviation of the arm's limit from trial to trial, as a share; absent if too little was seen of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter: Option<f64>,
    /// Trials that broke only because the arm stalled: stood still for a moment, and recovered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stalls: usize,
    /// The highest rate that a hold has held; 0: none has.
    pub verified: f64,
    /// Length of that hold, seconds; 0 in records of before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_s: f64,
    /// The lowest rate above it that broke, and after how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke: Option<ObservedRecord>,
    /// The highest rate that a dwell has carried, below each that broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<ObservedRecord>,
    /// The interval of what short trials on a rested arm held, where a long one did not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<(f64, f64)>,
    /// What it carries in a burst, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstRecord>,
    /// Responses per second of the arm when it has more to do than it can.
    pub saturated: f64,
    /// Share of the responses (0..1) that break the deciding limit at any rate.
    pub floor: f64,
    /// What kept the search from higher rates, or is so near that the answer may be its and not the arm's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<CeilingRecord>,
    /// Seconds of trials, without and with the long ones, rests before them included.
    pub seconds: (f64, f64),
    /// Of these seconds without any load, for the arm to come to rest; 0 in records of before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rest_s: f64,
    /// Connections that it was asked over; 0 in records of before it was kept.
    #[serde(default, skip_serializing_if = "is_none")]
    pub connections: u32,
    /// Why the search has ended.
    pub end: CapacityEnd,
    /// Where the time was too short: the budget of the whole run, seconds by the clock, that would be enough. Absent where
    /// no budget lets a search last longer, and in records of before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enough_s: Option<f64>,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// What an arm carries for a short time after a rest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BurstRecord {
    /// Length of the burst, seconds.
    pub seconds: f64,
    /// The highest rate that held, requests per second.
    pub low: f64,
    /// The lowest that did not.
    pub high: f64,
    /// Confidence of the interval, 0..1; 0 in records of before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub confidence: f64,
}

/// A limit of the measurement itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CeilingRecord {
    /// Whose it is.
    pub of: CeilingOf,
    /// Requests per second.
    pub rate: f64,
}

/// Who else may be what cannot carry more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CeilingOf {
    /// The load generator.
    Generator,
    /// The origin behind the proxy.
    Origin,
    /// The connections to the arm: all were busy, and with more of them more was completed.
    Connections,
    /// The time for the search: it was over before a rate above the interval broke.
    Time,
}

/// Why a search for a capacity has ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CapacityEnd {
    /// The interval is as narrow as was asked for, and a trial near its lower end has held.
    Found,
    /// More trials would not narrow the interval: the limit itself scatters.
    Settled,
    /// The time was over; a trial near the lower end has held.
    Budget,
    /// The time was over before anything could be claimed; seconds of trials, those that were made included, that would suffice.
    TooShort(f64),
    /// No rate has held that was tried.
    Never,
    /// Above this rate it broke, and did not recover.
    Broken(f64),
    /// The load generator could not send so many requests per second in time before anything was known of the arm.
    NotSent(f64),
    /// The machine spoilt most of the trials.
    Spoilt,
    /// The machine changed so much in the meantime that nothing can be claimed; only in records of earlier searches.
    Unsteady,
}
