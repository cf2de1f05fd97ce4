//! Records of the search for an arm's capacity.

use serde::{Deserialize, Serialize};

use crate::limit::Limit;

/// Purpose of a step of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchStage {
    /// A closed loop, which shows the highest rate that the arm completes.
    Closed,
    /// Rates far apart, until one rate holds and a nearby one does not.
    Ramp,
    /// A short trial near the limit.
    Dwell,
    /// A hold: a trial that lasts longer than after-effects in the system do.
    Hold,
    /// A short trial after a rest, for the rate that is carried in a burst.
    Burst,
}

/// State of a search after one step, which is the trials of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BracketRecord {
    /// Name of the arm.
    pub arm: String,
    /// Name of the load.
    pub load: String,
    /// Purpose of the step.
    pub stage: SearchStage,
    /// Number of the step's first block within the load.
    pub first_block: u32,
    /// Number of the step's blocks.
    pub blocks: u32,
    /// Seconds of measured load of this arm so far.
    pub seconds: f64,
    /// Bounds of the capacity as estimated so far, requests per second; `None` if nothing is known yet.
    pub between: Option<(f64, f64)>,
    /// Highest rate that passed a hold so far; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<ObservedRecord>,
    /// Seconds that the run had been at work by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_s: Option<f64>,
}

/// A rate and the time for which it was observed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObservedRecord {
    /// The rate, requests per second.
    pub rate: f64,
    /// Seconds for which the rate held, or after which it broke.
    pub seconds: f64,
}

/// Result of a finished search: the capacity of an arm, and why the search ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityRecord {
    /// Answer of the search.
    #[serde(flatten)]
    pub answer: CapacityAnswer,
    /// Reason why the search ended.
    pub end: CapacityEnd,
}

/// Capacity of an arm within an objective, as far as its search knows it. Rates are in requests per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityAnswer {
    /// Name of the arm.
    pub arm: String,
    /// Name of the load.
    pub load: String,
    /// The objective, in the words of the study: `p99 < 30ms`. All limits hold at the capacity.
    #[serde(with = "texts")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub limits: Vec<Limit>,
    /// Index in `limits` of the limit that breaks first.
    pub decides: usize,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    /// Lower end of the interval; 0 if no rate held. In findings, the search's last state if nothing is claimed.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// True if the ends are only a rate that held and one that broke, without a probability.
    #[serde(default)]
    pub is_bracket: bool,
    /// Standard deviation of the arm's limit from trial to trial, as a share; absent if there were too few trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter: Option<f64>,
    /// Trials that broke only because the arm stalled: it stopped for a moment, and recovered.
    #[serde(default)]
    pub stalls: usize,
    /// Highest rate that passed a hold; 0 if none did.
    pub verified: f64,
    /// Length of the hold at `verified`, seconds.
    #[serde(default)]
    pub held_s: f64,
    /// Lowest rate above `verified` that broke, and the time after which it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke: Option<ObservedRecord>,
    /// Highest rate that passed a dwell and is below each rate that broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<ObservedRecord>,
    /// Interval of the rates that held in short trials on a rested arm, if they did not hold in a long trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<(f64, f64)>,
    /// Capacity in a burst, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstRecord>,
    /// Responses per second of the arm at overload.
    pub saturated: f64,
    /// Share of the responses (0..1) that exceed the deciding limit at any rate.
    pub floor: f64,
    /// Limit of the measurement that kept the search from higher rates, or is so close that the result may be that
    /// limit instead of the arm's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<CeilingRecord>,
    /// Seconds of trials, without and with the holds; rests before them are included.
    pub seconds: (f64, f64),
    /// Part of these seconds without load, for the arm to come to rest.
    #[serde(default)]
    pub rest_s: f64,
    /// Number of connections to the arm.
    #[serde(default)]
    pub connections: u32,
    /// Time budget for the whole run that would suffice, in seconds by the clock, if the time was too short. Absent if
    /// no budget makes a search longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enough_s: Option<f64>,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// Capacity of an arm for a short time after a rest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BurstRecord {
    /// Length of the burst, seconds.
    pub seconds: f64,
    /// Highest rate that held, requests per second.
    pub low: f64,
    /// Lowest rate that did not hold, requests per second.
    pub high: f64,
    /// Confidence of the interval, 0..1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub confidence: f64,
}

/// A limit of the measurement itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CeilingRecord {
    /// Part of the setup that has the limit.
    pub of: CeilingOf,
    /// The limit in requests per second.
    pub rate: f64,
}

/// Part of the setup other than the arm that may limit the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CeilingOf {
    /// The load generator.
    Generator,
    /// The origin behind the proxy.
    Origin,
    /// The connections to the arm: all were busy, and with more connections more requests were completed.
    Connections,
    /// The time for the search, which ended before a rate above the interval broke.
    Time,
}

/// Reason why a capacity search ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CapacityEnd {
    /// The interval is as narrow as requested, and a trial near its lower end held.
    Found,
    /// More trials would not narrow the interval: the limit itself scatters.
    Settled,
    /// The time was over; a trial near the lower end held.
    Budget,
    /// The time was over before any result; the value is the total seconds of trials that would suffice, those already
    /// made included.
    TooShort(f64),
    /// None of the rates that were tried held.
    Never,
    /// Above this rate the arm broke, and did not recover.
    Broken(f64),
    /// The load generator could not send this many requests per second in time, before anything was known of the arm.
    NotSent(f64),
    /// Most of the trials were disturbed by the machine.
    Spoilt,
    /// The machine changed so much during the search that there is no result; only in records of earlier searches.
    Unsteady,
}

/// Serialises limits as the text that users write.
mod texts {
    use crate::limit::Limit;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(limits: &[Limit], to: S) -> Result<S::Ok, S::Error> {
        let texts: Vec<String> = limits.iter().map(Limit::to_string).collect();
        texts.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Limit>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| Limit::parse(text).map_err(D::Error::custom)).collect()
    }
}
