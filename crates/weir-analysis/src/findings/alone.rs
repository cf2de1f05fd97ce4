//! Whether a ratio that was seen side by side holds when the arms run one at a time.

use serde::{Deserialize, Serialize};
use weir_model::record::Validity;
use weir_model::study::Metric;

use super::Holding;

/// The winner and the arm that it is compared with, measured one at a time.
///
/// Where nothing could be compared (`n` is 0, [`Holding::Invalid`]), ratios are not numbers (null in JSON).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AloneFindings {
    /// The load.
    pub load: String,
    /// The metric: the objective's.
    pub metric: Metric,
    /// The arm; empty where there was nothing to choose from.
    pub arm: String,
    /// What it is compared with.
    pub against: String,
    /// Why this arm, in half a sentence; empty where today's rules would choose another.
    pub chosen: String,
    /// Pairs of stretches, each of one arm alone.
    pub n: u32,
    /// Ratio arm / against side by side, and its interval: those of the comparison.
    pub together: (f64, (f64, f64)),
    /// Ratio alone and its interval: a replicate is a pair of stretches.
    pub alone: (f64, (f64, f64)),
    /// Ratio alone / ratio side by side, and its interval.
    pub change: (f64, (f64, f64)),
    /// What this may differ from 1 by while the ratio still counts as the same, where it is not shown to differ.
    pub tolerance: f64,
    /// Whether figures of the stretches may be used: INVALID where there are none, SUSPECT where too many of
    /// their trials are.
    pub validity: Validity,
    /// Whether the ratio holds.
    pub verdict: Holding,
    /// Why, in half a sentence.
    pub because: String,
    /// All of it in one sentence.
    pub words: String,
}
