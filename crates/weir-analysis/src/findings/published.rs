//! What others published beside what was measured here.
//!
//! Absolute figures of another machine mean nothing here; ratios between the same steps do. So the
//! published ratio of an arm to the arm that it is compared with stands beside the measured ratio.

use serde::{Deserialize, Serialize};
use weir_model::study::{GainOf, Metric};

use super::Comparison;

/// Published figures beside ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedFindings {
    /// One for each load with figures of its own, or one for all. Empty where other things are all
    /// that was published.
    pub figures: Vec<FiguresFindings>,
    /// Response times, quantile by quantile.
    pub times: Vec<TimeFindings>,
    /// Gains by metric, each under each load that it is for.
    pub gains: Vec<GainFindings>,
}

/// The figures published for one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FiguresFindings {
    /// The load that ours are from; `None` where nothing was measured, and where an arm that is alone
    /// has a row for each load.
    pub load: Option<String>,
    /// The metric of ours; `None` where nothing was measured.
    pub metric: Option<Metric>,
    /// One for each arm with a published figure, those that this machine has no room for last.
    pub rows: Vec<FigureFindings>,
}

/// One published figure beside ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureFindings {
    /// The arm; where it is alone, the load.
    pub arm: String,
    /// What it is compared with; `None` for the first, which is compared with nothing.
    pub against: Option<String>,
    /// As published.
    pub figure: f64,
    /// The published ratio to `against`.
    pub ratio: Option<f64>,
    /// The measured ratio; of an arm that is alone, the metric itself in nanoseconds.
    pub measured: Option<Measured>,
    /// What that says; `None` where nothing is compared.
    pub verdict: Option<PublishedVerdict>,
    /// Why, where the figures do not say it.
    pub because: String,
}

/// One published quantile of the response time beside ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeFindings {
    /// The arm.
    pub arm: String,
    /// The load that it was published for; `None`: any.
    pub published_load: Option<String>,
    /// Connections that it was published for, fewest and most; `None`: any.
    pub connections: Option<(u32, u32)>,
    /// Requests per second that it was published for, lowest and highest; `None`: any.
    pub rate: Option<(f64, f64)>,
    /// The load that ours is from; `None` where none fits.
    pub load: Option<String>,
    /// 0..1; 1 is the largest.
    pub quantile: f64,
    /// Published time in nanoseconds, lowest and highest; `None`: published as unchanged.
    pub published_ns: Option<(u64, u64)>,
    /// Ours in nanoseconds.
    pub measured_ns: Option<f64>,
    /// Published ratio to the arm that it is compared with, lowest and highest.
    pub ratio: Option<(f64, f64)>,
    /// Ours.
    pub measured: Option<Measured>,
    /// What that says; `None` where nothing is compared.
    pub verdict: Option<PublishedVerdict>,
    /// Why, where the figures do not say it.
    pub because: String,
}

/// One published gain beside ours. Sizes are not compared: published ones are means and peaks over
/// machines and settings that are not here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GainFindings {
    /// What it was gained by.
    pub of: GainOf,
    /// The metric.
    pub metric: Metric,
    /// The load that ours are from; `None` where none gives the metric.
    pub load: Option<String>,
    /// Published mean change: 2.8 is +280 %.
    pub mean: Option<f64>,
    /// Published peak.
    pub peak: Option<f64>,
    /// Geometric mean of our ratios; `None` without valid ones.
    pub mean_here: Option<f64>,
    /// The largest of ours in the published direction.
    pub peak_here: Option<f64>,
    /// Ours, each arm against the one that differs from it in nothing else.
    pub arms: Vec<Comparison>,
    /// What that says.
    pub verdict: PublishedVerdict,
    /// Why, where the figures do not say it.
    pub because: String,
}

/// A measured figure; not numbers (null in JSON) where there is no valid one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// The estimate.
    pub value: f64,
    /// Its interval.
    pub interval: (f64, f64),
}

/// What a measurement says about a published effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PublishedVerdict {
    /// Same direction, and the published size lies in the interval; of a gain, the direction alone.
    Confirmed,
    /// Same direction, but clearly smaller here.
    ConfirmedSmaller,
    /// Same direction, but clearly larger here.
    ConfirmedLarger,
    /// Neither they nor we see an effect.
    NoneEither,
    /// They saw an effect; here it lies inside the equivalence band.
    NoEffectHere,
    /// They saw none; there is one here.
    EffectHere,
    /// The effect has the other direction here.
    Opposite,
    /// The measurement cannot tell.
    Inconclusive,
    /// They saw an effect, here there is none, and what has changed since is known.
    Obsolete,
    /// What was asked for is not in force here.
    Inert,
    /// There is no valid figure to set beside it.
    NotMeasured,
}
