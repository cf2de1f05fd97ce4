//! Whether a limiter was proven by turning a parameter.

use serde::{Deserialize, Serialize};

use crate::study::{Metric, Settings, Taken};

/// What came of turning a parameter that is held to limit an arm: the arm with and without the change, in a paired
/// trial of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfirmationRecord {
    /// The arm.
    pub arm: String,
    /// The load.
    pub load: String,
    /// The limiter.
    pub limiter: String,
    /// What was turned, and to which levels.
    pub turned: Settings,
    /// What was taken away instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// What was compared: the rate, or where the load asks for no more than is answered, a response time.
    #[serde(default = "rate")]
    pub metric: Metric,
    /// The metric with the change, as a multiple of that without, and its interval; `None` where there is none: nothing was
    /// found out, or without the change nothing is answered as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<(f64, (f64, f64))>,
    /// Whether the change makes the arm carry more, or what was taken away as much less, which proves that this was the
    /// limit.
    pub confirmed: bool,
    /// Why nothing was found out; empty where something was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why_not: String,
    /// The folder of that trial's run, within the run's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
}

/// What older records compared.
fn rate() -> Metric {
    Metric::Rate
}
