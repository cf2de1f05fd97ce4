//! Published figures of others, with which a study compares its own.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Metric;

/// Figures published by somebody else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Published {
    /// Publisher of the figures, and where they were measured.
    pub source: String,
    /// Name and unit of the metric in the source's words.
    pub metric: String,
    /// Published figure by arm name, for loads that have none of their own. It may include arms that only exist on a
    /// larger machine.
    pub figures: BTreeMap<String, f64>,
    /// Published figures by name of the load; each maps an arm name to its figure.
    pub by_load: BTreeMap<String, BTreeMap<String, f64>>,
    /// Response times by quantile, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<PublishedTimes>,
    /// Gains by metric, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<PublishedGain>,
    /// Changes since an arm's advice was published, by name of the arm, as a clause: `Linux 5.4 raised the default to
    /// 4096`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dated: BTreeMap<String, String>,
}

/// Published gain in a metric, over all measurements of its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedGain {
    /// Load that the gain applies to; `None`: every load that gives the metric.
    pub load: Option<String>,
    /// Cause of the gain.
    pub of: GainOf,
    /// The metric.
    pub metric: Metric,
    /// Mean change: 2.8 is +280 %, -0.3 is 30 % lower. At least one of mean and peak is present.
    pub mean: Option<f64>,
    /// Largest change.
    pub peak: Option<f64>,
}

/// Cause of a published gain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GainOf {
    /// These arms, each relative to the arm it is compared with.
    Arms(Vec<String>),
    /// A level of a parameter, in every arm that has it, relative to the arm that differs in nothing else.
    Level {
        /// ID of the parameter.
        id: String,
        /// The level, in its canonical spelling.
        level: String,
    },
}

/// Response times that others published for an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedTimes {
    /// Name of the arm.
    pub arm: String,
    /// Load that the times apply to; `None`: any.
    pub load: Option<String>,
    /// Range of connections that the times apply to; `None`: any.
    pub connections: Option<(u32, u32)>,
    /// Range of rates that the times apply to, requests per second; `None`: any.
    pub rate: Option<(f64, f64)>,
    /// True if the source reported no change from the arm that this one is compared with.
    pub unchanged: bool,
    /// Quantiles, ascending.
    pub quantiles: Vec<PublishedQuantile>,
}

/// One published quantile of a response time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedQuantile {
    /// Quantile, 0..1; 1 is the largest value.
    pub quantile: f64,
    /// Shortest time that was published for the quantile.
    pub low: Duration,
    /// Longest time that was published for the quantile; equal to `low` if there was one figure.
    pub high: Duration,
}

impl Published {
    /// Returns the figures for a load: its own, or else those that apply to all loads.
    pub fn of_load(&self, load: &str) -> &BTreeMap<String, f64> {
        self.by_load.get(load).unwrap_or(&self.figures)
    }
}
