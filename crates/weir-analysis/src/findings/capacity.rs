//! Findings about the capacity of each arm within the study's objective.

use serde::{Deserialize, Serialize};
use weir_model::limit::Limit;
use weir_model::record::{CapacityAnswer, CapacityEnd, SearchStage, Validity};

use super::{CountedReason, EqualArms, LeftOut, Verdict};

/// Unit of capacities.
pub const UNIT: &str = "requests/s";

/// Capacities of a run's arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityFindings {
    /// Capacity of each arm, in the order of the study.
    pub arms: Vec<Capacity>,
    /// Capacity of each arm compared with that of the arm in its `against`, in the order of the study; empty if there
    /// is only one arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// Validity: SUSPECT if more than one in twenty of an arm's usable trials are, INVALID if none could be used.
    pub validity: Validity,
    /// Reasons for doubt, each with the number of trials that it concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<CountedReason>,
    /// Trials that are left out of all figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// Capacity of one arm within the objective. Rates are requests per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// True if `low` to `high` may be taken for the capacity: a long trial near `low` has held. If false, they are the
    /// search's last state, and 0 if it had none.
    pub claimed: bool,
    /// Unit of the rates: [`UNIT`].
    pub unit: String,
    /// Answer of the search, so far if it has not ended.
    #[serde(flatten)]
    pub answer: CapacityAnswer,
    /// Reason why the search ended; `None` if it has not ended.
    pub end: Option<CapacityEnd>,
    /// Response times against the rate, ascending. Short trials whose rates differ by less than 1 % are one point.
    pub curve: Vec<CurvePoint>,
    /// Long trials, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<CurvePoint>,
    /// Trials behind the curve, one by one, in order of time.
    pub trials: Vec<CurvePoint>,
    /// Rate from which on the p99 stays above twice its lowest value; `None` if there is no such rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<f64>,
    /// Counts at low rates, at the edge and above it; empty if there is no edge.
    pub grows: Vec<Growth>,
    /// Resource that ran out first; `None` if the counters of the trials do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_out: Option<RanOut>,
    /// State of knowledge after each step of the search, in order of time.
    pub bracket: Vec<BracketPoint>,
}

impl Capacity {
    /// Returns the limit that breaks first.
    pub fn deciding(&self) -> Option<&Limit> {
        self.answer.limits.get(self.answer.decides)
    }
}

/// Response times and outcome at a rate. Quantiles are those of all requests that were due, taken together and never
/// averaged; `None` if the quantile falls on a request that was not answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// Intended requests per second.
    pub rate: f64,
    /// Quantile 0.5 of the response time, nanoseconds.
    pub p50: Option<u64>,
    /// Quantile 0.9 of the response time, nanoseconds.
    pub p90: Option<u64>,
    /// Quantile 0.99 of the response time, nanoseconds.
    pub p99: Option<u64>,
    /// Quantile 0.999 of the response time, nanoseconds.
    pub p999: Option<u64>,
    /// Index among the limits of the one that was broken most, or came nearest to it.
    pub limit: usize,
    /// Share of the requests that broke that limit, 0..1; for a limit on the mean as
    /// [`weir_model::record::TrialRecord::bad`].
    pub bad: f64,
    /// True if every limit of the objective held.
    pub holds: bool,
    /// Number of trials behind the point.
    pub trials: u32,
    /// Measured seconds of these trials.
    pub seconds: f64,
    /// Number of requests that were due.
    pub requests: u64,
    /// Search stage of the trials; `None` if they belong to several stages, or it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<SearchStage>,
}

impl CurvePoint {
    /// Returns the four quantiles, ascending.
    pub fn quantiles(&self) -> [Option<u64>; 4] {
        [self.p50, self.p90, self.p99, self.p999]
    }
}

/// State of knowledge after a step of the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BracketPoint {
    /// Stage of the step.
    pub stage: SearchStage,
    /// Seconds of measured load of this arm up to this step.
    pub seconds: f64,
    /// Requests per second between which the capacity was believed to be; `None` if nothing was known yet.
    pub between: Option<(f64, f64)>,
}

/// A count at three loads: low rates, the edge, and above the edge. `None` if it was not measured there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Growth {
    /// The quantity that is counted.
    pub what: Counted,
    /// Value at rates of at most half the capacity, or at the lowest rates that were tried.
    pub low: Option<f64>,
    /// Value within the capacity's interval and 1 % around it.
    pub edge: Option<f64>,
    /// Value above that interval.
    pub above: Option<f64>,
}

/// Quantity that is counted beside the response times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Intended requests per second.
    Rate,
    /// Responses per second.
    Completed,
    /// Share of the requests without a right answer, 0..1.
    Unanswered,
    /// CPU time of the proxy per request, nanoseconds.
    ProxyCpu,
    /// Share of the proxy's CPUs that the proxy itself used, 0..1.
    ProxyCpuShare,
    /// CPU time of the origin per request, nanoseconds.
    OriginCpu,
    /// Connections to the origin per request.
    OriginConnects,
    /// Connections from the generator that had to be opened again, per request.
    Reconnects,
    /// Highest number of sockets in TIME_WAIT.
    TimeWait,
    /// Highest number of sockets in all other states.
    Sockets,
}

/// Resource that ran out first, by the CPU time that the proxy used at the edge or above it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RanOut {
    /// CPU time of the proxy.
    CpuTime {
        /// Share of its CPUs that the proxy used, 0..1; a little more if clocks disagree.
        used: f64,
    },
    /// Something other than the CPU time of the proxy.
    NotCpuTime {
        /// Share of its CPUs that the proxy used, 0..1.
        used: f64,
    },
}

/// Capacity of an arm compared with that of another.
///
/// With [`Verdict::Invalid`] there is nothing to show: ratio and interval are not numbers (null in JSON).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The arm.
    pub arm: String,
    /// Name of the arm that it is compared with.
    pub against: String,
    /// Capacity of the arm / capacity of the other arm.
    pub ratio: f64,
    /// Interval of the ratio.
    pub interval: (f64, f64),
    /// Two-sided p under the hypothesis of no difference.
    pub p: f64,
    /// p after Holm's correction over all changes.
    pub p_holm: f64,
    /// Number of comparisons that p is corrected for.
    pub family: u32,
    /// The verdict.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub because: RatioReason,
}

/// Reason for the verdict on a ratio of capacities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RatioReason {
    /// No capacity of one of the two arms can be claimed.
    Unclaimed {
        /// Arm without a capacity that can be claimed.
        arm: String,
    },
    /// The capacity of one of the two arms has no upper end, because the measurement reached its own limit.
    NoUpperEnd {
        /// Arm whose capacity has no upper end.
        arm: String,
    },
    /// The whole interval is above 1.
    AboveOne,
    /// The whole interval is below 1.
    BelowOne,
    /// The whole interval is within the band.
    WithinBand {
        /// Width of the band on each side of 1, as a share.
        band: f64,
    },
    /// The interval neither clearly excludes 1 nor is within the band.
    Open {
        /// Width of the band on each side of 1, as a share.
        band: f64,
    },
    /// Two equal arms differed by as much, which withdraws a claim.
    EqualArms(EqualArms),
    /// The arms were searched one after the other, and no A/A arm shows what changed in between.
    ChangeBetweenUnknown {
        /// The A/A arm, whose capacity cannot be compared; `None` if there is no A/A arm.
        same: Option<String>,
    },
}
