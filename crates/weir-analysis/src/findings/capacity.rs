//! How much each arm carries within the study's objective.

use serde::{Deserialize, Serialize};
use weir_model::limit::Limit;
use weir_model::record::{
    BurstRecord, CapacityEnd, CeilingRecord, ObservedRecord, SearchStage, Validity,
};

use super::{CountedReason, LeftOut, Verdict};

/// What capacities are counted in.
pub const UNIT: &str = "requests/s";

/// How much the arms of a run carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityFindings {
    /// In the order of the study.
    pub arms: Vec<Capacity>,
    /// Each arm's capacity against that of the arm that it is compared with, in the order of the study; empty where
    /// there is one arm alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// SUSPECT when more than one in twenty of an arm's trials that were used are, INVALID when none could be used.
    pub validity: Validity,
    /// Reasons, each with how many of the trials it concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<CountedReason>,
    /// Trials that no figure rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// How much one arm carries within the objective. Rates are requests per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// The arm.
    pub arm: String,
    /// The load.
    pub load: String,
    /// Whether `low` to `high` may be taken for the capacity: a long trial near `low` has held. If not, they are what
    /// the search had come to, and 0 where it had come to nothing.
    pub claimed: bool,
    /// Lower end of the interval of the capacity; where it is not claimed, of what the search had come to.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// What rates are counted in: [`UNIT`].
    pub unit: String,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    /// The objective, in the words of the study: `p99 < 30ms`.
    #[serde(with = "texts")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub limits: Vec<Limit>,
    /// Place among the limits of the one that breaks first.
    pub decides: usize,
    /// Whether `low` and `high` are a rate that held and one that broke, without any probability.
    #[serde(default)]
    pub is_bracket: bool,
    /// Standard deviation of the limit from trial to trial, as a share; `None` where too little was seen of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter: Option<f64>,
    /// Trials that broke only because the arm stalled: stood still for a moment, and recovered.
    #[serde(default)]
    pub stalls: usize,
    /// The highest rate that a hold has held; 0: none has.
    pub verified: f64,
    /// How long that hold lasted, seconds.
    pub held_s: f64,
    /// The lowest rate above it that broke, and after how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke: Option<ObservedRecord>,
    /// The highest rate that a short trial has carried, below each that broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<ObservedRecord>,
    /// The interval of what short trials on a rested arm held, where a long one did not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<(f64, f64)>,
    /// What it carries in a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstRecord>,
    /// Responses per second of the arm when it has more to do than it can.
    pub saturated: f64,
    /// Share of the responses (0..1) that break the deciding limit at any rate.
    pub floor: f64,
    /// A limit of the measurement itself that the answer is within reach of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<CeilingRecord>,
    /// Seconds of trials, without and with the long ones, rests before them included.
    pub seconds: (f64, f64),
    /// Of these seconds without any load, for the arm to come to rest.
    pub rest_s: f64,
    /// Connections that it was asked over.
    pub connections: u32,
    /// Why the search has ended; `None`: it has not.
    pub end: Option<CapacityEnd>,
    /// Where the time was too short: the budget of the whole run, seconds by the clock, that would be enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enough_s: Option<f64>,
    /// Response times against the rate, ascending: short trials whose rates differ by less than 1 % are one point.
    pub curve: Vec<CurvePoint>,
    /// Long trials, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<CurvePoint>,
    /// The trials that the curve is made of, one by one, in order of time.
    pub trials: Vec<CurvePoint>,
    /// The rate from which on the p99 stays above twice its lowest value; `None` where it does not get there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<f64>,
    /// What was counted at low rates, at the edge and above it; empty where there is no edge.
    pub grows: Vec<Growth>,
    /// What ran out first as far as the counters tell, in a sentence; empty where they do not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ran_out: String,
    /// What was known after each step of the search, in order of time.
    pub bracket: Vec<BracketPoint>,
    /// The answer for this arm, in sentences; the first one is what it carries.
    pub words: Vec<String>,
}

impl Capacity {
    /// The limit that breaks first.
    pub fn deciding(&self) -> Option<&Limit> {
        self.limits.get(self.decides)
    }
}

/// What requests met at a rate. Quantiles are those of all requests that were due, taken together and never averaged;
/// `None`: of a request that was not answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// Requests per second that were asked for.
    pub rate: f64,
    /// Quantile 0.5 of the response time, nanoseconds.
    pub p50: Option<u64>,
    /// Quantile 0.9.
    pub p90: Option<u64>,
    /// Quantile 0.99.
    pub p99: Option<u64>,
    /// Quantile 0.999.
    pub p999: Option<u64>,
    /// Place among the limits of the one that was broken most, or was nearest to that.
    pub limit: usize,
    /// Share of the requests that broke it, 0..1; as [`weir_model::record::TrialRecord::bad`] for a limit on the mean.
    pub bad: f64,
    /// Whether every limit of the objective held.
    pub holds: bool,
    /// Trials behind it.
    pub trials: u32,
    /// Their measured seconds.
    pub seconds: f64,
    /// Requests that were due.
    pub requests: u64,
    /// What the trials were for; `None` where they were for several things, or that was not written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<SearchStage>,
}

impl CurvePoint {
    /// Its four quantiles, ascending.
    pub fn quantiles(&self) -> [Option<u64>; 4] {
        [self.p50, self.p90, self.p99, self.p999]
    }
}

/// What was known after a step of the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BracketPoint {
    /// What the step was for.
    pub stage: SearchStage,
    /// Seconds of measured load of this arm until then.
    pub seconds: f64,
    /// Requests per second between which the capacity was thought to be; `None`: nothing was known yet.
    pub between: Option<(f64, f64)>,
}

/// Something that was counted, at three loads: low ones, the edge, and more than is carried. `None`: not measured there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Growth {
    /// What.
    pub what: Counted,
    /// At rates of at most half the capacity, or at the lowest ones that were tried.
    pub low: Option<f64>,
    /// Within the capacity's interval and 1 % around it.
    pub edge: Option<f64>,
    /// Above that.
    pub above: Option<f64>,
}

/// What is counted beside the response times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Requests per second that were asked for.
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
    /// Connections from the generator that were opened again, per request.
    Reconnects,
    /// The most sockets in TIME_WAIT.
    TimeWait,
    /// The most sockets in any other state.
    Sockets,
}

/// The capacity of an arm against that of another.
///
/// With [`Verdict::Invalid`] there is nothing to show: ratio and interval are not numbers (null in JSON).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub against: String,
    /// Capacity of the arm / that of the other.
    pub ratio: f64,
    /// Its interval.
    pub interval: (f64, f64),
    /// Two-sided p of there being no difference.
    pub p: f64,
    /// The same after Holm's correction over all changes.
    pub p_holm: f64,
    /// Comparisons that p is corrected for.
    pub family: u32,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in half a sentence.
    pub because: String,
}

/// Limits in the words of their users.
mod texts {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use weir_model::limit::Limit;

    pub(super) fn serialize<S: Serializer>(limits: &[Limit], to: S) -> Result<S::Ok, S::Error> {
        let texts: Vec<String> = limits.iter().map(Limit::to_string).collect();
        texts.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Limit>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        Limit::parse_all(&texts.join(",")).map_err(D::Error::custom)
    }
}
