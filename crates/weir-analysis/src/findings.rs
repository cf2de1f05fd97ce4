//! What an analysis says: the only thing that reports are made from, beside the records.

mod alone;
mod capacity;
mod effects;
mod growth;
mod headline;
mod limiter;
mod limits;
mod look;
mod published;
mod tails;
mod times;
mod verdict;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::record::{ArmConnections, Inert, LookRecord, Validity, ValidityReason};
use weir_model::study::{ArmRole, Metric, Objective};
use weir_stats::verdict::LEAST_REPLICATES;

use crate::names;
use crate::replicates::samples_needed;

pub use alone::AloneFindings;
pub use capacity::*;
pub use effects::{Ineffective, MisreadArm};
pub use growth::{Bends, GrowthFindings, ResourceGrowth, Shape};
pub use headline::{Headline, Incomplete};
pub use limiter::{LimiterFindings, Stretch};
pub use limits::{Holding, LimitFindings};
pub use look::AtLook;
pub use published::*;
pub use tails::{HoldUpFindings, NEVER_NS, TailFindings};
pub use times::{AcceptFindings, Retransmitted, TimePart, TimeRow, ToldBy, WhereTimeGoes};
pub use verdict::Verdict;

/// Everything that a run says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Findings {
    /// Per load, in the order of the study.
    pub loads: Vec<LoadFindings>,
    /// The answer to the study's question in one sentence, or a line with one for each load.
    pub answer: String,
    /// Whether the run ended as planned; if not, the figures cover what was measured.
    pub complete: bool,
    /// Arms with levels that changed nothing as things stand, in the order of the study.
    #[serde(default)]
    pub inert: Vec<InertArm>,
    /// Arms that were read as inert and differ all the same, in the order of the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misread: Vec<MisreadArm>,
    /// Whether the winner's ratio holds when the arms run one at a time; `None` where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<AloneFindings>,
    /// How much each arm carries, where the study asks for that; there are then no loads, comparisons and matrices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityFindings>,
    /// What limited each arm, by load and arm in the order of the study; empty where nothing was sampled while an arm alone
    /// had the load for long enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limiters: Vec<LimiterFindings>,
    /// Whether CPU, memory, network and connections grow linearly with the rate, by arm and by what loads of different rates
    /// have in common; empty where there are no such loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub growth: Vec<GrowthFindings>,
    /// What to know beside the answer.
    pub headline: Headline,
    /// Matrices of loads, in the order of the study.
    pub matrices: Vec<MatrixFindings>,
    /// Where the time of requests goes, by load and arm; empty where it was not looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub where_time_goes: Vec<WhereTimeGoes>,
    /// What others published beside what was measured; `None` where the study has nothing of it.
    pub published: Option<PublishedFindings>,
}

/// A matrix of loads as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatrixFindings {
    /// Its name; empty when the study gives it none.
    pub name: String,
    /// INVALID when more than half of the loads are; SUSPECT when more than one in twenty are SUSPECT
    /// or INVALID; else VALID.
    pub validity: Validity,
    /// Its loads.
    pub loads: u32,
    /// Those that may be used.
    pub used: u32,
}

/// An arm with inert levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InertArm {
    /// The arm.
    pub arm: String,
    /// The levels.
    pub levels: Vec<Inert>,
    /// Whether these are all that the arm changes: it then is what it is compared with.
    pub whole: bool,
}

impl InertArm {
    /// Why its levels change nothing.
    pub fn why(&self) -> String {
        let why: Vec<&str> = self.levels.iter().map(|level| &*level.why).collect();
        why.join("; ")
    }
}

/// What was found under one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadFindings {
    /// Name of the load.
    pub load: String,
    /// Requests per second of the open loop, `None` for the closed loop.
    pub rate_intended: Option<f64>,
    /// Slice in nanoseconds.
    pub slice_ns: u64,
    /// Blocks that were measured, and those of them that were valid for all arms.
    pub blocks: u32,
    /// Blocks that were used.
    pub blocks_used: u32,
    /// Arms in the order of the study.
    pub arms: Vec<ArmFindings>,
    /// Comparisons: by metric in the order of [`LoadFindings::metrics`], then by arm.
    pub comparisons: Vec<Comparison>,
    /// Where the study compares all pairs ([`weir_model::study::Compare::Pairs`]): every arm with every
    /// other but the A/A arm, each pair once, by metric, then by arm. The later arm of the study is
    /// compared with the earlier one; [`Comparison::mirrored`] turns a pair round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Comparison>,
    /// What the pairs come to, for each metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rankings: Vec<Ranking>,
    /// The looks at this load, where it was measured until everything is decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<LookRecord>,
    /// Metrics that this load can give, the objective's first where it is among them.
    pub metrics: Vec<Metric>,
    /// Where the objective has a limit and this load gives its metric: whether each arm stays
    /// within it, in the order of the study.
    #[serde(default)]
    pub limits: Vec<LimitFindings>,
    /// Arms that changed while they were measured, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseChange>,
    /// Slices of an open loop in which the machine stood still; `None` where no meter said so, as in runs of before
    /// there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_ups: Option<HoldUpFindings>,
    /// What would have been seen only by a longer measurement; empty where nothing is known of that kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fresh: String,
    /// That under every arm nobody was busy, so the connections were the limit; empty where somebody was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub idle: String,
    /// What arms did while another one had the load, a sentence each: CPU time, and connections that they closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rests: Vec<String>,
    /// Changes that did not take effect, by the counter in which their purpose shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ineffective: Vec<Ineffective>,
    /// INVALID when no block was valid for all arms; SUSPECT when more than one in twenty of an
    /// arm's trials that were used are, or half of the blocks or more were INVALID; else VALID.
    pub validity: Validity,
    /// Reasons, each with how many of the trials it concerns.
    pub reasons: Vec<CountedReason>,
    /// Trials that no figure rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A trial that was INVALID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// The block, as the records number it.
    pub block: u32,
    /// The arm.
    pub arm: String,
    /// The rules that say so.
    pub rules: Vec<String>,
}

impl LoadFindings {
    /// Whether figures of this load may be used.
    pub fn is_usable(&self) -> bool {
        self.validity != Validity::Invalid && self.blocks_used > 0
    }

    /// The changes of an arm that did not take effect.
    pub fn ineffective_of(&self, arm: &str) -> impl Iterator<Item = &Ineffective> {
        self.ineffective.iter().filter(move |one| one.arm == arm)
    }

    /// How an arm compares with the one that it is held against.
    pub fn comparison(&self, arm: &str, metric: Metric) -> Option<&Comparison> {
        let mut all = self.comparisons.iter();
        all.find(|found| found.arm == arm && found.metric == metric)
    }
}

/// An arm became another one while it was measured: from some block on its CPU time per request, or its
/// rate, is on another level, and the other arms' are not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseChange {
    /// The arm.
    pub arm: String,
    /// What changed.
    pub metric: Metric,
    /// The first of the load's blocks after it, counted from 0.
    pub block: u32,
    /// When, in seconds since the load began, the pauses between sessions left out.
    pub at_s: f64,
    /// Median over the blocks before, back to the change before if there is one: nanoseconds for the CPU
    /// time, requests per second for the rate.
    pub before: f64,
    /// Median over the blocks after, up to the next change.
    pub after: f64,
    /// p of there being no change (Pettitt's test).
    pub p: f64,
    /// What else was different: sockets, connections; half a sentence, or empty.
    pub evidence: String,
    /// The ratio to the arm that it is compared with, and its interval, before and after; `None` for the
    /// baseline, and where there are too few blocks.
    pub ratios: [Option<(f64, (f64, f64))>; 2],
}

/// One reason for doubt and how often it was met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedReason {
    /// The reason, with what was seen in the gravest case.
    pub reason: ValidityReason,
    /// Arms concerned.
    pub arms: Vec<String>,
    /// Trials concerned.
    pub trials: u32,
    /// Trials looked at.
    pub of: u32,
}

/// Figures of one arm over all valid blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArmFindings {
    /// Name of the arm.
    pub arm: String,
    /// What it is for.
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
    /// Response time at quantiles 0.5, 0.9, 0.99, 0.999 and 1, nanoseconds, of all requests that were due:
    /// [`NEVER_NS`] (null in JSON) where it falls among those that were not answered.
    #[serde(with = "tails::never")]
    #[cfg_attr(feature = "schema", schemars(with = "[Option<u64>; 5]"))]
    pub response_ns: [u64; 5],
    /// The p99 and the p99.9 of the response time in an open loop, and how well they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailFindings>,
    /// Service time at the same quantiles, nanoseconds.
    pub service_ns: [u64; 5],
    /// Dispatch lag at the same quantiles, nanoseconds.
    pub dispatch_lag_ns: [u64; 5],
    /// Requests behind the quantiles.
    pub samples: u64,
    /// Connections to the origin per request; `None` without an origin.
    pub origin_connects_per_request: Option<f64>,
    /// Connections over all continuous trials: counts of what was opened and of handshakes are sums,
    /// what was open is the least, memory the most. Of those that are held, `opened` counts what had
    /// to be opened again. `None` in runs that did not keep it.
    #[serde(default)]
    pub connections: Option<ArmConnections>,
    /// Share of the time of the proxy's CPUs that interrupts took while the arm had the load; `None` where that was not
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<f64>,
    /// Errors and responses outside 1xx..3xx, timeouts not among them.
    pub failures: u64,
    /// Requests that never ended, timeouts among them.
    pub censored: u64,
    /// Both as a share of all requests, 0..1.
    #[serde(default)]
    pub unanswered: f64,
    /// What the proxy counted of itself while the load lasted, unmeasured slices included: sums over
    /// all continuous trials, by the names that it gives them, without those that stayed 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// Percentile curve of the response time: (1/(1-quantile), nanoseconds), ascending.
    pub percentile_curve: Vec<(f64, u64)>,
    /// Over time: (seconds since the trial began, completed per second, median response time in
    /// nanoseconds, `None` where nothing was answered), one point for each block, INVALID ones too, at
    /// most 300. Sessions of a resumed run follow one another without the pause between them.
    pub over_time: Vec<(f64, f64, Option<u64>)>,
}

/// One arm against another on one metric.
///
/// With [`Verdict::Invalid`] there is nothing to show: `n` is 0, ratio, interval and minimum
/// detectable change are not numbers (null in JSON), and `because` says what is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The metric.
    pub metric: Metric,
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub against: String,
    /// Replicates behind it: blocks after merging (see `merged`).
    pub n: u32,
    /// Neighbouring blocks merged into one replicate, because single ones had too few requests for the
    /// quantile; 1: none.
    pub merged: u32,
    /// Requests in a replicate of a quantile, about, of the arm that has fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Comparisons that p is corrected for, this one among them.
    #[serde(default = "one")]
    pub family: u32,
    /// Lag-1 autocorrelation of the ranks of the replicates' log ratios.
    pub autocorrelation: f64,
    /// Hodges-Lehmann estimate of the ratio arm / against: that of a typical block, for the p99 of the typical
    /// p99. Infinite (null in JSON) where a block in which one of the arms has no figure is typical.
    pub ratio: f64,
    /// Interval of the ratio: the exact one of independent replicates, widened by what the instances differ.
    pub interval: (f64, f64),
    /// The ratio over all blocks taken together, for the p99 of the pooled p99, which stalls and bursts weigh on
    /// by their length; no interval belongs to it.
    #[serde(default = "unknown")]
    pub pooled: f64,
    /// Confidence that the interval really has (at least the one asked for when n allows it); where the load was
    /// looked at more than once, that of the intervals of all looks together.
    pub confidence: f64,
    /// The look that it is of, where the load was measured until everything is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<AtLook>,
    /// Two-sided p: the larger one of the exact sign-flip test's and of the instances'.
    pub p: f64,
    /// The same after Holm's correction over what is compared under this load on this metric: the
    /// changes, or, where the study compares all pairs, the pairs, which the changes are among. The
    /// A/A arm is not; its own is corrected for as many comparisons. Under loads of a matrix it is that of Benjamini and
    /// Hochberg over all of them. At one of several looks: p by as much larger as the
    /// look's level is smaller, so that it may be held against the same.
    pub p_holm: f64,
    /// Smallest ratio change that this comparison could have shown with 80 % power, corrected for the others: 0.03 is 3 %.
    pub minimum_detectable: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Why the verdict is what it is, in half a sentence.
    pub because: String,
}

fn one() -> u32 {
    1
}

fn unknown() -> f64 {
    f64::NAN
}

impl Comparison {
    /// Whether all blocks together say something else than typical ones: an arm that stalls now and then is
    /// neither as good as one that does not, nor better for being quick in between. Of the p99 nothing follows:
    /// over all blocks it is what the few worst moments were, and has hardly anything to do with chance's share.
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

    /// Returns true if a replicate has so few requests that its quantile is none: figures are shown, and nothing is claimed.
    pub(crate) fn lacks_requests(&self) -> bool {
        self.requests
            .is_some_and(|requests| requests < samples_needed(self.metric))
    }

    /// Why the verdict is what it is. [`Comparison::mirrored`] knows these words.
    pub(crate) fn reason(&self, objective: &Objective) -> String {
        let (low, high) = self.interval;
        let band = format!("±{} %", (objective.band * 1e4).round() / 1e2);
        // For the A/A arm, or a single change, there was nothing to correct for.
        let corrected = match self.p_holm > self.p {
            true => " after correction",
            false => "",
        };
        let p = match self.p_holm {
            p if p < 1e-4 => format!("p is below 0.0001{corrected}"),
            p => format!("p is {p:.4}{corrected}"),
        };
        let few = (self.n as usize) < LEAST_REPLICATES;
        match self.verdict {
            Verdict::Better | Verdict::Worse => {
                let side = if low > 1.0 { "above" } else { "below" };
                format!("the whole interval is {side} 1 and {p}")
            }
            Verdict::Equivalent => format!("the whole interval is within {band}"),
            Verdict::Inconclusive if self.lacks_requests() => format!(
                "a replicate has about {} requests, fewer than the {} that the quantile needs",
                names::count(self.requests.unwrap_or_default()),
                names::count(samples_needed(self.metric))
            ),
            Verdict::Inconclusive if !few && self.is_contradicted(objective.band) => format!(
                "typical blocks have a ratio of {:.3}, but all blocks together one of {:.3}: one of the arms stalls \
                 now and then",
                self.ratio, self.pooled
            ),
            _ if few => format!(
                "too few replicates ({}); nothing is claimed from fewer than {LEAST_REPLICATES}",
                self.n
            ),
            _ if self.confidence < objective.confidence => format!(
                "{} replicates reach a confidence of {:.1} % only",
                self.n,
                self.confidence * 100.0
            ),
            _ if low <= 1.0 && high >= 1.0 => {
                format!("the interval contains 1 and extends beyond {band}")
            }
            _ => format!("the interval excludes 1, but {p}"),
        }
    }

    /// The same seen from the other arm. Estimate, interval and test are symmetric in the two, so this
    /// is what comparing the other way round would give.
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
            because: match self.verdict {
                Verdict::Better | Verdict::Worse if high < 1.0 => {
                    self.because.replacen("is below 1", "is above 1", 1)
                }
                Verdict::Better | Verdict::Worse => {
                    self.because.replacen("is above 1", "is below 1", 1)
                }
                _ => self.because.clone(),
            },
            ..self.clone()
        }
    }
}

/// All arms but the A/A arm on one metric, the best first, as far as their pairs can tell them apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ranking {
    /// The metric.
    pub metric: Metric,
    /// Arms from the best to the worst; within a group no pair was told apart.
    pub groups: Vec<Vec<String>>,
    /// Arms of different groups that could not be told apart all the same, the better one first:
    /// a may be as good as b and b as c where a is better than c.
    pub overlaps: Vec<(String, String)>,
    /// Arms without a valid pair.
    pub unranked: Vec<String>,
    /// All of it in one sentence, with intervals.
    pub words: String,
}
