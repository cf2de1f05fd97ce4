//! Findings of an analysis. Beside the records, reports are made from nothing else.

mod alone;
mod capacity;
mod effects;
mod frontier;
mod growth;
mod headline;
mod idle;
mod limiter;
mod limits;
mod look;
mod overall;
mod phases;
mod published;
mod reason;
mod rests;
mod scaling;
mod size;
mod tails;
mod times;
mod verdict;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::record::{ArmConnections, Inert, LookRecord, Validity, ValidityReason};
use weir_model::study::{ArmRole, Metric, Objective};
use weir_stats::verdict::LEAST_REPLICATES;

use crate::replicates::samples_needed;

pub use crate::outcomes::UNANSWERED;
pub use alone::{AloneChoice, AloneFindings, AloneReason};
pub use capacity::*;
pub use effects::{Ineffective, MisreadArm};
pub use frontier::*;
pub use growth::{Bends, GrowthFindings, ResourceGrowth, Shape, UnknownGrowth};
pub use headline::{Headline, HeadlineReason, Incomplete};
pub use idle::IdleLoad;
pub use limiter::{LimiterFindings, Stretch};
pub use limits::{Holding, LimitFindings, LimitReason};
pub use look::AtLook;
pub use overall::{OverallFindings, WorstCase};
pub use phases::{FreshArms, PhaseChange, PhaseEvidence, TIME_WAIT_S};
pub use published::*;
pub use reason::{Basis, Caveat, EqualArms, Needed, Reason};
pub use rests::{RestingActivity, RestingArm};
pub use scaling::*;
pub use size::{
    Need, NeedUnknown, NodeBound, Nodes, SizeBasis, SizeFindings, SizedResource, Workload,
    WorkloadVariable,
};
pub use tails::{HoldUpFindings, NEVER_NS, TailFindings};
pub use times::{AcceptFindings, Retransmitted, TimePart, TimeRow, ToldBy, WhereTimeGoes};
pub use verdict::Verdict;

/// All findings of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Findings {
    /// Findings by load, in the order of the study.
    pub loads: Vec<LoadFindings>,
    /// True if the run ended as planned; if not, the figures cover what was measured.
    pub complete: bool,
    /// Arms with levels that changed nothing here, in the order of the study.
    #[serde(default)]
    pub inert: Vec<InertArm>,
    /// Arms whose levels were read back as inert although the arms clearly differ, in the order of the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misread: Vec<MisreadArm>,
    /// Result of the check if the winner's ratio holds when the arms run one at a time; `None` if it was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<AloneFindings>,
    /// Capacity of each arm, if the study asks for it; there are then no loads, comparisons and matrices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityFindings>,
    /// Limiter of each arm, by load and arm in the order of the study; empty if nothing was sampled while an arm alone
    /// had the load for long enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limiters: Vec<LimiterFindings>,
    /// Growth of CPU, memory, network and connections with the rate, by arm and by loads that differ only in their
    /// rate; empty if there are no such loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub growth: Vec<GrowthFindings>,
    /// Growth of a metric with each numeric factor of at least three levels, by load; empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<ScalingFindings>,
    /// Rates and costs of the arms, by load; empty if nothing is known of the cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frontiers: Vec<FrontierFindings>,
    /// Verdict on the only change of a study with `compare: overall`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overall: Option<OverallFindings>,
    /// Validity of the answer, and what it leaves out.
    pub headline: Headline,
    /// Matrices of loads, in the order of the study.
    pub matrices: Vec<MatrixFindings>,
    /// Effect of each change over all loads of a matrix, by matrix and arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pooled: Vec<PooledArm>,
    /// Breakdown of the time of requests, by load and arm; empty if it was not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub where_time_goes: Vec<WhereTimeGoes>,
    /// Figures that others published, compared with the measured ones; `None` if the study has none.
    pub published: Option<PublishedFindings>,
}

/// Summary of a matrix of loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatrixFindings {
    /// Name of the matrix; empty if the study gives it none.
    pub name: String,
    /// INVALID when more than half of the loads are; SUSPECT when more than one in twenty are SUSPECT
    /// or INVALID; else VALID.
    pub validity: Validity,
    /// Number of loads in the matrix.
    pub loads: u32,
    /// Number of loads whose figures may be used.
    pub used: u32,
}

/// Effect of an arm over all loads of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PooledArm {
    /// Name of the matrix.
    pub matrix: String,
    /// Name of the arm.
    pub arm: String,
    /// Mean ratio to the arm that it is compared with.
    pub ratio: f64,
    /// Interval of the ratio.
    pub interval: (f64, f64),
    /// Verdict by a p that is corrected for the other arms.
    pub verdict: Verdict,
}

/// An arm with inert levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InertArm {
    /// Name of the arm.
    pub arm: String,
    /// Levels that are inert.
    pub levels: Vec<Inert>,
    /// True if these levels are all that the arm changes, so that it equals the arm that it is compared with.
    pub whole: bool,
}

/// Findings under one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadFindings {
    /// Name of the load.
    pub load: String,
    /// Requests per second of the open loop, `None` for the closed loop.
    pub rate_intended: Option<f64>,
    /// Length of a slice, nanoseconds.
    pub slice_ns: u64,
    /// Number of blocks that were measured.
    pub blocks: u32,
    /// Number of blocks that were valid for all arms measured in them.
    pub blocks_used: u32,
    /// Arms in the order of the study.
    pub arms: Vec<ArmFindings>,
    /// Comparisons: by metric in the order of [`LoadFindings::metrics`], then by arm.
    pub comparisons: Vec<Comparison>,
    /// Comparisons of every pair of arms except the A/A arm, if the study compares all pairs
    /// ([`weir_model::study::Compare::Pairs`]): each pair once, by metric, then by arm. The later arm of the study is
    /// compared with the earlier one; [`Comparison::mirrored`] turns a pair round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Comparison>,
    /// Rankings of the arms by their pairs, one for each metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rankings: Vec<Ranking>,
    /// Looks at this load, if it was measured until everything is decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<LookRecord>,
    /// Metrics that this load can give; the objective's comes first if it is among them.
    pub metrics: Vec<Metric>,
    /// Verdicts on the study's limit, one for each arm in the order of the study; empty unless the objective has a
    /// limit and this load gives its metric.
    #[serde(default)]
    pub limits: Vec<LimitFindings>,
    /// Arms that changed while they were measured, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseChange>,
    /// Slices of an open loop in which the machine stood still; `None` if no meter recorded them, as in runs from
    /// before there were meters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_ups: Option<HoldUpFindings>,
    /// Arms that only a longer measurement would have shown as they become; `None` if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<FreshArms>,
    /// Figures of the load if nobody was busy under any arm, so that the connections were the limit; `None` if somebody
    /// was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleLoad>,
    /// Arms that used CPU time or closed connections while another arm had the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rests: Vec<RestingArm>,
    /// Changes that did not take effect, according to the counter that shows their purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ineffective: Vec<Ineffective>,
    /// Validity of the load: INVALID if no block was valid for all arms; SUSPECT if more than one in twenty of an arm's
    /// usable trials are SUSPECT, or half of the blocks or more were INVALID; else VALID.
    pub validity: Validity,
    /// Reasons for doubt, each with the number of trials that it concerns.
    pub reasons: Vec<CountedReason>,
    /// Trials that are left out of all figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A trial that was INVALID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Number of the block, as in the records.
    pub block: u32,
    /// The arm.
    pub arm: String,
    /// Names of the rules that make it INVALID.
    pub rules: Vec<String>,
}

impl LoadFindings {
    /// Returns true if figures of this load may be used.
    pub fn is_usable(&self) -> bool {
        self.validity != Validity::Invalid && self.blocks_used > 0
    }

    /// Returns the changes of an arm that did not take effect.
    pub fn ineffective_of(&self, arm: &str) -> impl Iterator<Item = &Ineffective> {
        self.ineffective.iter().filter(move |one| one.arm == arm)
    }

    /// Returns the comparison of an arm with the one in its `against`, on a metric.
    pub fn comparison(&self, arm: &str, metric: Metric) -> Option<&Comparison> {
        let mut all = self.comparisons.iter();
        all.find(|found| found.arm == arm && found.metric == metric)
    }
}

/// A reason for doubt, with the number of trials that it concerns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedReason {
    /// The reason, with the observation in the gravest case.
    pub reason: ValidityReason,
    /// Names of the arms concerned.
    pub arms: Vec<String>,
    /// Number of trials concerned.
    pub trials: u32,
    /// Number of trials examined.
    pub of: u32,
}

/// Figures of one arm over all valid blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArmFindings {
    /// Name of the arm.
    pub arm: String,
    /// Role of the arm.
    pub role: ArmRole,
    /// Completed requests per second of measured time.
    pub rate_completed: f64,
    /// Requests offered per second of measured time.
    pub rate_offered: f64,
    /// Bytes received per second of measured time; `None` without requests.
    #[serde(default)]
    pub received_per_second: Option<f64>,
    /// CPU time of the proxy per request, nanoseconds; `None` without requests.
    pub cpu_per_request_ns: Option<f64>,
    /// Response time at quantiles 0.5, 0.9, 0.99, 0.999 and 1, nanoseconds, of all requests that were due; [`NEVER_NS`]
    /// (null in JSON) if the quantile falls among requests that were not answered.
    #[serde(with = "tails::never")]
    #[cfg_attr(feature = "schema", schemars(with = "[Option<u64>; 5]"))]
    pub response_ns: [u64; 5],
    /// The p99 and the p99.9 of the response time in an open loop, with their uncertainty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailFindings>,
    /// Service time at the quantiles of `response_ns`, nanoseconds.
    pub service_ns: [u64; 5],
    /// Dispatch lag at the quantiles of `response_ns`, nanoseconds.
    pub dispatch_lag_ns: [u64; 5],
    /// Number of requests behind the quantiles.
    pub samples: u64,
    /// Connections to the origin per request; `None` without an origin.
    pub origin_connects_per_request: Option<f64>,
    /// Connections over all continuous trials: numbers of opened connections and of handshakes are sums, numbers of
    /// open connections are the lowest, memory is the highest. For connections that are only held, `opened` counts
    /// those that had to be opened again. `None` in runs that did not record them.
    #[serde(default)]
    pub connections: Option<ArmConnections>,
    /// Share of the time of the proxy's CPUs that interrupts took while the arm had the load; `None` if it was not
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<f64>,
    /// Number of errors and of responses outside 1xx..3xx, without timeouts.
    pub failures: u64,
    /// Number of requests that never ended, timeouts included.
    pub censored: u64,
    /// Sum of `failures` and `censored` as a share of all requests, 0..1.
    #[serde(default)]
    pub unanswered: f64,
    /// Counters of the proxy itself while the load lasted, unmeasured slices included: sums over all continuous trials,
    /// by the proxy's own names, without counters that stayed 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// Percentile curve of the response time: (1/(1-quantile), nanoseconds), ascending.
    pub percentile_curve: Vec<(f64, u64)>,
    /// Points over time: (seconds since the trial began, completed per second, median response time in nanoseconds or
    /// `None` if nothing was answered). One point for each block, INVALID ones included, at most 300. Sessions of a
    /// resumed run follow one another without the pause between them.
    pub over_time: Vec<(f64, f64, Option<u64>)>,
}

impl ArmFindings {
    /// Returns the share of all requests that got an error or a wrong answer, 0..1.
    pub fn failed_share(&self) -> f64 {
        self.share_of(self.failures)
    }

    /// Returns the share of all requests that had no answer when their slice or their patience ended, 0..1.
    pub fn censored_share(&self) -> f64 {
        self.share_of(self.censored)
    }

    fn share_of(&self, requests: u64) -> f64 {
        let bad = self.failures + self.censored;
        self.unanswered * requests as f64 / bad.max(1) as f64
    }
}

/// Comparison of one arm with another on one metric.
///
/// With [`Verdict::Invalid`] there is nothing to show: `n` is 0, ratio, interval and minimum detectable change are not
/// numbers (null in JSON), and `because` names what is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The metric.
    pub metric: Metric,
    /// The arm.
    pub arm: String,
    /// Name of the arm that it is compared with.
    pub against: String,
    /// Number of replicates: blocks after merging (see `merged`).
    pub n: u32,
    /// Number of neighbouring blocks merged into one replicate, because single ones had too few requests for the
    /// quantile; 1 if none were merged.
    pub merged: u32,
    /// Approximate number of requests in a replicate, of the arm that has fewer; `None` if the metric is no quantile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Number of comparisons that p is corrected for, this one included.
    #[serde(default = "one")]
    pub family: u32,
    /// Lag-1 autocorrelation of the ranks of the replicates' log ratios.
    pub autocorrelation: f64,
    /// Hodges-Lehmann estimate of the ratio arm / against: the ratio of a typical block, for the p99 of the typical
    /// p99. Infinite (null in JSON) if one of the arms has no figure in a typical block.
    pub ratio: f64,
    /// Interval of the ratio: the exact interval of independent replicates, widened by the difference between
    /// instances.
    pub interval: (f64, f64),
    /// Ratio over all blocks taken together, for the p99 of the pooled p99, on which stalls and bursts weigh by their
    /// length. It has no interval.
    #[serde(default = "unknown")]
    pub pooled: f64,
    /// Actual confidence of the interval (at least the requested one if n allows it). If the load was looked at more
    /// than once, the confidence of the intervals of all looks together.
    pub confidence: f64,
    /// The look that the comparison belongs to, if the load was measured until everything is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<AtLook>,
    /// Two-sided p: the larger of the p of the exact sign-flip test and that of the instances.
    pub p: f64,
    /// p after Holm's correction over all comparisons under this load on this metric: the changes, or, if the study
    /// compares all pairs, the pairs, which include the changes. The A/A arm is not among them; its own p is corrected
    /// for as many comparisons. Under loads of a matrix, p after the correction of Benjamini and Hochberg over all of
    /// its loads. At one of several looks, p multiplied by the ratio of the study's level to the look's, so that the
    /// same threshold applies.
    pub p_holm: f64,
    /// Smallest change of the ratio that this comparison could have shown with 80 % power, corrected for the other
    /// comparisons: 0.03 is 3 %.
    pub minimum_detectable: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub because: Reason,
}

fn one() -> u32 {
    1
}

fn unknown() -> f64 {
    f64::NAN
}

impl Comparison {
    /// Returns true if all blocks together contradict the typical ones: an arm that stalls now and then is neither as
    /// good as one that does not, nor better for being quick in between. Always false for the p99: over all blocks it
    /// depends on the few worst moments, which tell hardly anything about the part of chance.
    pub(crate) fn is_contradicted(&self, band: f64) -> bool {
        let ((low, high), pooled) = (self.interval, self.pooled);
        let (below, above) = (pooled < 1.0 - band, pooled > 1.0 + band);
        let is_equivalent = low >= 1.0 - band && high <= 1.0 + band;
        match self.metric {
            Metric::ResponseP99 => false,
            _ if is_equivalent => below || above,
            _ => low > 1.0 && below || high < 1.0 && above,
        }
    }

    /// Returns true if a replicate has too few requests for its quantile: figures are shown, but nothing is claimed.
    pub(crate) fn lacks_requests(&self) -> bool {
        self.requests.is_some_and(|requests| requests < samples_needed(self.metric))
    }

    /// Takes p as it is after a correction over several comparisons, and withdraws a claim that no longer stands.
    pub(crate) fn take_corrected(&mut self, p: f64, family: usize, objective: &Objective) {
        (self.p_holm, self.family) = (p, family as u32);
        let is_claim = matches!(self.verdict, Verdict::Better | Verdict::Worse);
        if is_claim && p > 1.0 - objective.confidence + 1e-12 {
            self.verdict = Verdict::Inconclusive;
            self.because.basis = self.basis(objective);
        }
    }

    /// Returns the basis of the verdict that its figures give.
    pub(crate) fn basis(&self, objective: &Objective) -> Basis {
        let (low, high) = self.interval;
        let is_few = (self.n as usize) < LEAST_REPLICATES;
        match self.verdict {
            Verdict::Better | Verdict::Worse => Basis::ExcludesOne,
            Verdict::Equivalent => Basis::WithinBand,
            _ if self.lacks_requests() => Basis::FewRequests,
            _ if is_few => Basis::FewReplicates,
            _ if self.is_contradicted(objective.band) => Basis::Stalls,
            _ if self.confidence < objective.confidence => Basis::LowConfidence,
            _ if low <= 1.0 && high >= 1.0 => Basis::ContainsOne,
            _ => Basis::LargeP,
        }
    }

    /// Returns the comparison from the other arm's side. Estimate, interval and test are symmetric in the two arms, so
    /// the result is that of comparing the other way round.
    pub fn mirrored(&self) -> Comparison {
        let (low, high) = self.interval;
        Comparison {
            arm: self.against.clone(),
            against: self.arm.clone(),
            ratio: self.ratio.recip(),
            pooled: self.pooled.recip(),
            interval: (high.recip(), low.recip()),
            verdict: match self.verdict {
                Verdict::Better => Verdict::Worse,
                Verdict::Worse => Verdict::Better,
                same => same,
            },
            ..self.clone()
        }
    }
}

/// All arms except the A/A arm on one metric, ordered from best to worst as far as their pairs can tell them apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ranking {
    /// The metric.
    pub metric: Metric,
    /// Groups of arms from the best to the worst; within a group no pair differs.
    pub groups: Vec<Vec<String>>,
    /// Pairs of arms from different groups that could not be told apart, the better one first: a may be as good as b
    /// and b as c although a is better than c.
    pub overlaps: Vec<(String, String)>,
    /// Arms without a valid pair.
    pub unranked: Vec<String>,
    /// True if every arm of the first group is known to be better than every arm of the others.
    pub is_clear: bool,
}
