//! Whether arms stay within a limit.

use serde::{Deserialize, Serialize};
use weir_model::study::Metric;

/// Whether one arm stays within the study's limit ([`weir_model::study::Objective::within`]).
///
/// With [`Holding::Invalid`], and where too few requests were answered for the quantile to
/// exist, there is no estimate: value and interval are not numbers (null in JSON).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitFindings {
    /// The arm.
    pub arm: String,
    /// The metric.
    pub metric: Metric,
    /// The limit in nanoseconds.
    pub limit_ns: u64,
    /// Hodges-Lehmann estimate of the metric over the replicates, in nanoseconds.
    pub value_ns: f64,
    /// Its exact interval, in nanoseconds.
    pub interval_ns: (f64, f64),
    /// Confidence that the interval really has.
    pub confidence: f64,
    /// Replicates behind it: groups of neighbouring blocks.
    pub n: u32,
    /// What it comes to.
    pub verdict: Holding,
    /// Why, in half a sentence.
    pub because: String,
}

/// Whether something holds: a limit, or a ratio when arms run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Holding {
    /// The whole interval lies within the limit.
    Holds,
    /// The whole interval lies beyond it, or too many requests were not answered at all.
    DoesNotHold,
    /// Neither: the interval reaches over the limit, or is not sure enough.
    NotShown,
    /// There are no valid figures.
    Invalid,
}
