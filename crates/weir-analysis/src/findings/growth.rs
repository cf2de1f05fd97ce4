//! Whether resources grow linearly with the load.

use serde::{Deserialize, Serialize};
use weir_limits::Resource;

/// How the resources of an arm grew with the rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GrowthFindings {
    /// The arm.
    pub arm: String,
    /// The loads that differ in their rate alone; of a search the one whose rate it varied.
    pub loads: Vec<String>,
    /// Windows that it rests on: times at one rate that was carried.
    pub windows: u32,
    /// The lowest and the highest rate of them, in requests per second that were answered as expected.
    pub rates: (f64, f64),
    /// Whether arms took turns: nothing is then told from samples, because these are of all arms.
    pub in_turns: bool,
    /// CPU, memory, network, connections; several quantities may tell of one.
    pub resources: Vec<ResourceGrowth>,
    /// The answer, in sentences.
    pub words: String,
}

/// How one quantity grew with the rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResourceGrowth {
    /// The resource.
    pub resource: Resource,
    /// The quantity of `limits/quantities.yaml` that tells of it.
    pub quantity: String,
    /// Its unit: `CPUs`, `share` (0..1), `bytes`, `bytes/s`, or nothing for a number of things.
    pub unit: String,
    /// How it grows.
    pub shape: Shape,
    /// Whether a straight line tells all of it; `None`: unknown.
    pub linear: Option<bool>,
    /// What 1,000 requests/s more take, and its 95 % interval, by one straight line; `None` in too few windows.
    pub slope: Option<(f64, (f64, f64))>,
    /// What it is at a rate of 0, by the same line.
    pub intercept: Option<f64>,
    /// Where it bends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bend: Option<Bends>,
    /// Windows in which it is known: requests per second, and its value, by rate.
    pub points: Vec<(f64, f64)>,
    /// Why the shape is unknown; empty where it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

/// How something grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// It is the same at all rates, within 2 %.
    Constant,
    /// Along a straight line.
    Linear,
    /// Its slope changes at one rate.
    Bend,
    /// Neither a straight line nor two that meet.
    Curve,
    /// It is known in too few windows, or the interval of its slope includes 0.
    Unknown,
}

impl Shape {
    /// Whether a straight line tells all of it; `None`: unknown.
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
    /// The rate, in requests per second, and its 95 % interval.
    pub at: (f64, (f64, f64)),
    /// What 1,000 requests/s more take before it.
    pub before: f64,
    /// And behind it.
    pub after: f64,
    /// The value at the bend.
    pub value: f64,
}
