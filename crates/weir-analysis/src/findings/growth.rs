//! Findings about the growth of resources with the load, linear or not.

use serde::{Deserialize, Serialize};
use weir_limits::{Absent, Resource};

/// Growth of an arm's resources with the rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GrowthFindings {
    /// The arm.
    pub arm: String,
    /// Loads that differ only in their rate; in a search, the load whose rate was varied.
    pub loads: Vec<String>,
    /// Number of windows behind the findings: times at one rate that was carried.
    pub windows: u32,
    /// Lowest and highest rate of the windows, in requests per second that were answered as expected.
    pub rates: (f64, f64),
    /// True if arms took turns. Samples are then not used, because they cover all arms together.
    pub in_turns: bool,
    /// Findings on CPU, memory, network and connections; several quantities may belong to one resource.
    pub resources: Vec<ResourceGrowth>,
}

impl GrowthFindings {
    /// Returns the first known quantity of each resource.
    pub fn known(&self) -> Vec<&ResourceGrowth> {
        let mut quantities: Vec<&ResourceGrowth> =
            self.resources.iter().filter(|growth| growth.shape != Shape::Unknown).collect();
        quantities.dedup_by_key(|growth| growth.resource);
        quantities
    }
}

/// Growth of one quantity with the rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResourceGrowth {
    /// The resource.
    pub resource: Resource,
    /// The quantity of `limits/quantities.yaml` that measures the resource.
    pub quantity: String,
    /// Unit of the quantity: `CPUs`, `share` (0..1), `bytes`, `bytes/s`, or empty for a number of things.
    pub unit: String,
    /// Shape of the growth.
    pub shape: Shape,
    /// True if a straight line describes the growth; `None` if unknown.
    pub linear: Option<bool>,
    /// Increase per 1,000 requests/s and its 95 % interval, from one straight line; `None` if there are too few
    /// windows.
    pub slope: Option<(f64, (f64, f64))>,
    /// Value at a rate of 0, from the same line.
    pub intercept: Option<f64>,
    /// Rate at which the slope changes, if it does at one rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bend: Option<Bends>,
    /// Windows in which the quantity is known: (requests per second, value), by rate.
    pub points: Vec<(f64, f64)>,
    /// Reason why the shape is unknown; `None` if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_unknown: Option<UnknownGrowth>,
}

/// Reason why the shape of a growth is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnknownGrowth {
    /// Rates take turns in the same processes, so no sample belongs to one rate.
    InTurns,
    /// The quantity is unknown in all windows.
    Absent(Absent),
    /// The quantity is known in this number of windows, which is too few, or they are at too few different rates.
    TooFewWindows(u32),
    /// The quantity varies more than it grows.
    Varies,
}

/// Shape of the growth of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Same value at all rates, within 2 %.
    Constant,
    /// Straight line.
    Linear,
    /// Two straight lines that meet at one rate.
    Bend,
    /// Neither one straight line nor two that meet.
    Curve,
    /// Unknown: there are too few windows, or the interval of the slope includes 0.
    Unknown,
}

impl Shape {
    /// Returns true if a straight line describes the growth; `None` if unknown.
    pub fn is_linear(self) -> Option<bool> {
        match self {
            Shape::Constant | Shape::Linear => Some(true),
            Shape::Bend | Shape::Curve => Some(false),
            Shape::Unknown => None,
        }
    }
}

/// A change of the slope.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bends {
    /// Rate of the change, in requests per second, and its 95 % interval.
    pub at: (f64, (f64, f64)),
    /// Increase per 1,000 requests/s below that rate.
    pub before: f64,
    /// Increase per 1,000 requests/s above that rate.
    pub after: f64,
    /// Value of the quantity at that rate.
    pub value: f64,
}
