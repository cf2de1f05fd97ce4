//! Findings about the study's absolute limit.

use serde::{Deserialize, Serialize};
use weir_model::study::Metric;

/// Verdict on one arm under the study's limit ([`weir_model::study::Objective::within`]).
///
/// There is no estimate with [`Holding::Invalid`], or if too few requests were answered for the quantile to exist:
/// value and interval are then not numbers (null in JSON).
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
    /// Exact interval of the estimate, in nanoseconds.
    pub interval_ns: (f64, f64),
    /// Actual confidence of the interval.
    pub confidence: f64,
    /// Number of replicates: groups of neighbouring blocks.
    pub n: u32,
    /// Verdict on the limit.
    pub verdict: Holding,
    /// Reason for the verdict.
    pub because: LimitReason,
}

/// Reason for a verdict on a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitReason {
    /// Nothing was measured under the load.
    NothingMeasured,
    /// No block was valid.
    NoValidBlock {
        /// Number of blocks that were measured.
        blocks: u32,
    },
    /// The metric was not recorded.
    NotRecorded,
    /// There are too few blocks for any claim.
    FewBlocks,
    /// There are fewer requests than the quantile needs.
    FewRequests {
        /// Number of requests.
        requests: u64,
    },
    /// Too many requests were not answered.
    Unanswered {
        /// Their share, 0..1.
        share: f64,
    },
    /// The share of requests that took longer than the limit decides.
    TookLonger {
        /// Interval of the share, 0..1.
        share: (f64, f64),
    },
}

/// Verdict if something holds: a limit, or a ratio when arms run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Holding {
    /// Holds: the whole interval lies within the limit.
    Holds,
    /// Does not hold: the whole interval lies beyond the limit, or too many requests were not answered at all.
    DoesNotHold,
    /// Undecided: the interval reaches over the limit, or its confidence is too low.
    NotShown,
    /// Invalid: there are no valid figures.
    Invalid,
}
