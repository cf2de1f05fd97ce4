//! Verdict on a change by several figures.

use serde::{Deserialize, Serialize};
use weir_model::study::Metric;

use super::Verdict;

/// Verdict on the only change of a study, by rates of closed loops and response times of open ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverallFindings {
    /// Name of the change.
    pub arm: String,
    /// Name of the arm that it is compared with.
    pub against: String,
    /// The verdict: worse as soon as one figure is; better and equivalent only if no figure is worse or unknown.
    pub verdict: Verdict,
    /// The figures that decide, in the order of the study.
    pub cases: Vec<WorstCase>,
}

/// A figure that decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorstCase {
    /// Name of the load.
    pub load: String,
    /// The metric.
    pub metric: Metric,
    /// Verdict on it, corrected for the other figures.
    pub verdict: Verdict,
    /// Share by which the change may be worse, by the interval: 0.03 is 3 %; `None` if there is no bound.
    pub by: Option<f64>,
}
