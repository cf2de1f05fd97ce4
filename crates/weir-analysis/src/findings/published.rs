//! Figures that others published, compared with the measured ones.
//!
//! Absolute figures of another machine mean nothing here; ratios between the same steps do. So the published ratio of
//! an arm to the arm that it is compared with stands beside the measured ratio.

use serde::{Deserialize, Serialize};
use weir_model::study::{GainOf, Metric};

use super::Comparison;

/// Published figures compared with the measured ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedFindings {
    /// Figures, one entry for each load that has its own, or one for all. Empty if only times or gains were published.
    pub figures: Vec<FiguresFindings>,
    /// Response times, quantile by quantile.
    pub times: Vec<TimeFindings>,
    /// Gains by metric, under each load that they apply to.
    pub gains: Vec<GainFindings>,
}

/// The figures published for one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FiguresFindings {
    /// Load of the measured figures; `None` if nothing was measured, or if a single arm has a row for each load.
    pub load: Option<String>,
    /// Metric of the measured figures; `None` if nothing was measured.
    pub metric: Option<Metric>,
    /// Rows, one for each arm with a published figure; arms that this machine has no room for come last.
    pub rows: Vec<FigureFindings>,
}

/// A published figure compared with the measured one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureFindings {
    /// Name of the arm; in a study of a single arm, name of the load.
    pub arm: String,
    /// Name of the arm that it is compared with; `None` for the first arm, which is compared with nothing.
    pub against: Option<String>,
    /// The figure as published.
    pub figure: f64,
    /// Published ratio to `against`.
    pub ratio: Option<f64>,
    /// Measured ratio; in a study of a single arm, the metric itself in nanoseconds.
    pub measured: Option<Measured>,
    /// Verdict on the published effect; `None` if nothing is compared.
    pub verdict: Option<PublishedVerdict>,
    /// Reason for the verdict, if the figures do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<EffectReason>,
}

/// A published quantile of the response time compared with the measured one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeFindings {
    /// The arm.
    pub arm: String,
    /// Load that the time was published for; `None` if it applies to any load.
    pub published_load: Option<String>,
    /// Fewest and most connections that the time was published for; `None` if it applies to any number.
    pub connections: Option<(u32, u32)>,
    /// Lowest and highest requests per second that the time was published for; `None` if it applies to any rate.
    pub rate: Option<(f64, f64)>,
    /// Load of the measured time; `None` if none fits.
    pub load: Option<String>,
    /// Quantile, 0..1; 1 is the largest time.
    pub quantile: f64,
    /// Lowest and highest published time in nanoseconds; `None` if it was published as unchanged.
    pub published_ns: Option<(u64, u64)>,
    /// Measured time in nanoseconds.
    pub measured_ns: Option<f64>,
    /// Lowest and highest published ratio to the arm that it is compared with.
    pub ratio: Option<(f64, f64)>,
    /// Measured ratio.
    pub measured: Option<Measured>,
    /// Verdict on the published effect; `None` if nothing is compared.
    pub verdict: Option<PublishedVerdict>,
    /// Reason for the verdict, if the figures do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<EffectReason>,
}

/// A published gain compared with the measured one. Sizes are not compared: published ones are means and peaks over
/// other machines and settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GainFindings {
    /// Change by which the gain was achieved.
    pub of: GainOf,
    /// The metric.
    pub metric: Metric,
    /// Load of the measured figures; `None` if no load gives the metric.
    pub load: Option<String>,
    /// Published mean change: 2.8 is +280 %.
    pub mean: Option<f64>,
    /// Published largest change.
    pub peak: Option<f64>,
    /// Geometric mean of the measured ratios; `None` if none is valid.
    pub mean_here: Option<f64>,
    /// Largest measured ratio in the published direction.
    pub peak_here: Option<f64>,
    /// Measured comparisons of each arm with the arm that differs from it in nothing else.
    pub arms: Vec<Comparison>,
    /// Verdict on the published gain.
    pub verdict: PublishedVerdict,
    /// Reason for the verdict, if the figures do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<GainReason>,
}

/// Reason for a verdict on a published effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectReason {
    /// Reason of the comparison itself, which has no figures.
    Comparison,
    /// The levels of the arm are not in force, for the reasons that [`super::Findings::inert`] has.
    Inert,
    /// The interval rules the published size out.
    RuledOut,
    /// A change of the software, in the words of the study.
    Since(String),
}

/// Reason for a verdict on a published gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GainReason {
    /// No load gives the metric.
    NoLoad,
    /// The load that the gain was published for does not give the metric.
    NoMetric,
    /// No two arms differ in the level alone.
    NoArms,
    /// Arms that differ in the level alone have no valid figures, or were not compared.
    NoPairs,
    /// The arms have no valid figures.
    NoFigures,
    /// Only some arms show the direction of the verdict.
    SomeArms {
        /// Their number.
        arms: u32,
    },
    /// Some arms confirm the gain, others show the opposite.
    Both {
        /// Number of arms that confirm it.
        confirmed: u32,
        /// Number of arms that show the opposite.
        opposite: u32,
    },
}

/// A measured figure; not numbers (null in JSON) if there is no valid one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// The estimate.
    pub value: f64,
    /// Interval of the estimate.
    pub interval: (f64, f64),
}

/// Verdict of a measurement on a published effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PublishedVerdict {
    /// Confirmed: same direction, and the published size lies in the interval; for a gain, the direction alone.
    Confirmed,
    /// Confirmed, but clearly smaller here.
    ConfirmedSmaller,
    /// Confirmed, but clearly larger here.
    ConfirmedLarger,
    /// No effect was published, and none is measured.
    NoneEither,
    /// An effect was published; here it lies inside the equivalence band.
    NoEffectHere,
    /// No effect was published; here there is one.
    EffectHere,
    /// The measured effect has the opposite direction.
    Opposite,
    /// Undecided: the measurement cannot tell.
    Inconclusive,
    /// An effect was published, none is measured, and the change since then is known.
    Obsolete,
    /// The setting is not in force here.
    Inert,
    /// No valid figure was measured for comparison.
    NotMeasured,
}
