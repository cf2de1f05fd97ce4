//! What limited an arm.

use serde::{Deserialize, Serialize};
use weir_limits::{Evidence, Judgement, Series, Worker};
use weir_model::record::{ConfirmationRecord, SearchStage};

/// What limited an arm under a load, by samples of a time in which it alone had the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimiterFindings {
    /// The load.
    pub load: String,
    /// The arm.
    pub arm: String,
    /// The pods of the proxy, in words, where it is in pods that were sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<String>,
    /// The time that was judged.
    pub stretch: Stretch,
    /// The time at a low load that it is held against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<Stretch>,
    /// How many such times were judged, and how many of them came to the same.
    pub judged: (u32, u32),
    /// What came of turning the parameters that the first finding names; empty where nobody tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmations: Vec<ConfirmationRecord>,
    /// What it comes to.
    pub judgement: Judgement,
    /// What it rests on.
    pub evidence: Evidence,
    /// What was sampled in that time, from sample to sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// CPU time of the proxy's processes and threads in that time, the busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<Worker>,
}

/// A time in which one arm alone had the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stretch {
    /// From when on, in seconds since the run began, as the samples count them.
    pub from_s: f64,
    /// Until when.
    pub until_s: f64,
    /// Requests per second that were asked for; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Whether more was asked for than was carried.
    pub saturated: bool,
    /// What it was for, where a search made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<SearchStage>,
}
