//! Findings about arms whose settings were not in force, or had no effect.

use serde::{Deserialize, Serialize};
use weir_model::record::Inert;
use weir_model::study::Metric;
use weir_parameters::{Counter, Hindrance};

/// An arm whose changes were all read back as in force in the arm that it is compared with too, although the two
/// clearly differ. Reading and measurement contradict each other, and the reading is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MisreadArm {
    /// The arm.
    pub arm: String,
    /// Name of the arm that it is compared with.
    pub against: String,
    /// Levels as they were read back.
    pub levels: Vec<Inert>,
    /// Load under which the arms differ most.
    pub load: String,
    /// Metric on which they differ most.
    pub metric: Metric,
    /// The ratio arm / against.
    pub ratio: f64,
}

/// A change without the movement of the counter in which its purpose shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ineffective {
    /// The arm.
    pub arm: String,
    /// Name of the arm that it is compared with.
    pub against: String,
    /// Id of the parameter.
    pub id: String,
    /// Level that the arm requests.
    pub level: String,
    /// Counter that should have moved.
    pub counter: Counter,
    /// Value of the counter in the arm.
    pub value: f64,
    /// Value of the counter in the arm that it is compared with, in which the parameter is off.
    pub other: f64,
    /// Another setting of the arm that keeps the change from taking effect; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Hindrance>,
}
