//! Confirmation of a limiter by changing a parameter.

use serde::{Deserialize, Serialize};

use crate::study::{Metric, Reduction, Settings};

/// Result of changing a parameter that is assumed to limit an arm: the arm with and without the change, compared in a
/// paired trial of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfirmationRecord {
    /// Name of the arm.
    pub arm: String,
    /// Name of the load.
    pub load: String,
    /// Name of the assumed limiter.
    pub limiter: String,
    /// Parameters that were changed, with their new levels.
    pub turned: Settings,
    /// Resource that was taken away instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Reduction>,
    /// Compared metric: the rate, or a response time if the load does not exceed the rate that is answered.
    pub metric: Metric,
    /// Ratio of the metric with the change to the metric without, and its interval; `None` if there was no result, or
    /// if without the change no request was answered correctly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<(f64, (f64, f64))>,
    /// True if the change increases the rate that the arm carries, or taking the resource away decreases it in
    /// proportion, which proves the limiter.
    pub confirmed: bool,
    /// Reason why there was no result; empty if there was one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why_not: String,
    /// Folder of the paired trial's run, within this run's folder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
}
