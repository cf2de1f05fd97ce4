//! Findings about a ratio measured side by side, when the arms run one at a time.

use serde::{Deserialize, Serialize};
use weir_model::record::Validity;
use weir_model::study::Metric;

use super::Holding;

/// Result for the winner and the arm that it is compared with, measured one at a time.
///
/// If nothing could be compared (`n` is 0, [`Holding::Invalid`]), ratios are not numbers (null in JSON).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AloneFindings {
    /// The load.
    pub load: String,
    /// The objective's metric.
    pub metric: Metric,
    /// The arm; empty if there was nothing to choose from.
    pub arm: String,
    /// Name of the arm that it is compared with.
    pub against: String,
    /// Reason for the choice of this arm; `None` if today's rules would choose another.
    pub chosen: Option<AloneChoice>,
    /// Number of pairs of stretches, each stretch of one arm alone.
    pub n: u32,
    /// Ratio arm / against side by side, and its interval, as in the comparison.
    pub together: (f64, (f64, f64)),
    /// Ratio arm / against when each runs alone, and its interval. A replicate is a pair of stretches.
    pub alone: (f64, (f64, f64)),
    /// Ratio alone / ratio side by side, and its interval.
    pub change: (f64, (f64, f64)),
    /// Distance of `change` from 1 up to which the ratio still counts as the same, if no difference is shown.
    pub tolerance: f64,
    /// Validity of the stretches' figures: INVALID if there are none, SUSPECT if too many of their trials are.
    pub validity: Validity,
    /// Verdict if the ratio holds alone.
    pub verdict: Holding,
    /// Reason for the verdict.
    pub because: AloneReason,
    /// True if an arm changed during the run side by side. Alone every instance is new.
    pub changed_side_by_side: bool,
}

/// Reason to measure an arm alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AloneChoice {
    /// It is the best arm by the metric.
    Best,
    /// No arm is better, and it differs most.
    DiffersMost,
    /// No arm differs, and it is the first.
    First,
}

/// Reason for the verdict on a ratio alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AloneReason {
    /// No arm has a ratio side by side.
    NoRatio,
    /// The run ended before the check.
    NotReached,
    /// No two neighbouring stretches could both be used.
    NoPairs,
    /// There are fewer pairs of stretches than anything is claimed from.
    FewPairs,
    /// An interval is less certain than the study demands.
    LowConfidence,
    /// The change of the ratio is within the study's equivalence band.
    WithinBand,
    /// The whole interval of the change is above or below 1.
    Changed,
    /// No change is shown, and none beyond the tolerance is possible.
    WithinTolerance,
    /// No change is shown, but one beyond the tolerance is possible.
    BeyondTolerance,
}
