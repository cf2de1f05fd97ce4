//! Findings about the limiter of an arm.

use serde::{Deserialize, Serialize};
use weir_limits::{Evidence, Judgement, Series, Worker};
use weir_model::record::{ConfirmationRecord, SearchStage};

/// Limiter of an arm under a load, judged by samples of a time in which it alone had the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimiterFindings {
    /// The load.
    pub load: String,
    /// The arm.
    pub arm: String,
    /// Description of the proxy's pods, if it runs in pods that were sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<String>,
    /// Time that was judged.
    pub stretch: Stretch,
    /// Time at a low load, for comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<Stretch>,
    /// Number of such times that were judged, and number of those with this result.
    pub judged: (u32, u32),
    /// Results of turning the parameters that the first finding names; empty if none was turned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmations: Vec<ConfirmationRecord>,
    /// Judgement about the limiter.
    pub judgement: Judgement,
    /// Evidence behind the judgement.
    pub evidence: Evidence,
    /// Samples in that time, as series.
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
    /// Start, in seconds since the run began, as the samples count them.
    pub from_s: f64,
    /// End, in seconds since the run began.
    pub until_s: f64,
    /// Intended requests per second; `None` in a closed loop.
    pub rate: Option<f64>,
    /// True if the load was more than was carried.
    pub saturated: bool,
    /// Search stage that it belongs to; `None` outside a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<SearchStage>,
}
