//! Figures that others have published, which a study holds its own against.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Metric;

/// Figures published by somebody else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Published {
    /// Who published them, and where they were measured.
    pub source: String,
    /// What the figures are: the metric's name and unit in the source's words.
    pub metric: String,
    /// Arm name to the published figure, for loads that have none of their own. An arm that a
    /// larger machine would have may be among them.
    pub figures: BTreeMap<String, f64>,
    /// Name of a load to the figures published for it.
    #[serde(default)]
    pub by_load: BTreeMap<String, BTreeMap<String, f64>>,
    /// Response times by quantile, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<PublishedTimes>,
    /// Gains by metric, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<PublishedGain>,
    /// Name of an arm to what has changed since its advice was published, in a clause: `Linux 5.4
    /// raised the default to 4096`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dated: BTreeMap<String, String>,
}

/// How much others gained on a metric, over all that they measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedGain {
    /// The load it is for; `None`: each that gives the metric.
    pub load: Option<String>,
    /// What it was gained by.
    pub of: GainOf,
    /// The metric.
    pub metric: Metric,
    /// Mean change: 2.8 is +280 %, -0.3 is 30 % lower. Mean, peak or both are there.
    pub mean: Option<f64>,
    /// Largest change.
    pub peak: Option<f64>,
}

/// What a published gain was gained by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GainOf {
    /// These arms, each against the one that it is compared with.
    Arms(Vec<String>),
    /// A level of a parameter, in every arm that has it, against the arm that differs in nothing else.
    Level {
        /// The parameter.
        id: String,
        /// The level, in its canonical spelling.
        level: String,
    },
}

/// Response times that others published for an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedTimes {
    /// The arm.
    pub arm: String,
    /// The load they are for; `None`: any.
    pub load: Option<String>,
    /// Connections that they are for, the fewest and the most; `None`: any.
    pub connections: Option<(u32, u32)>,
    /// Requests per second that they are for, the lowest and the highest; `None`: any.
    pub rate: Option<(f64, f64)>,
    /// Whether nothing was seen to change against the arm that this one is compared with.
    pub unchanged: bool,
    /// Quantiles, ascending.
    pub quantiles: Vec<PublishedQuantile>,
}

/// One published quantile of a response time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedQuantile {
    /// 0..1; 1 is the largest.
    pub quantile: f64,
    /// Shortest time that was published for it.
    pub low: Duration,
    /// Longest; the same where one figure was published.
    pub high: Duration,
}

impl Published {
    /// The figures for a load: its own, or else those that are for all.
    pub fn of_load(&self, load: &str) -> &BTreeMap<String, f64> {
        self.by_load.get(load).unwrap_or(&self.figures)
    }
}
