//! Reasons for the verdicts of comparisons.

use serde::{Deserialize, Serialize};

use super::IdleLoad;

/// Reason for the verdict of a comparison. The figures behind it are those of the comparison, unless a case names its
/// own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// Observation that decides.
    pub basis: Basis,
    /// Measurement that could have shown a difference; `None` if this one could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<Needed>,
    /// Remarks on how the figures were made and what they mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
}

impl From<Basis> for Reason {
    fn from(basis: Basis) -> Reason {
        Reason { basis, needed: None, caveats: Vec::new() }
    }
}

/// Observation that decides on the verdict of a comparison. The first five leave it without figures, the last three
/// withdraw what the figures show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Nothing was measured under the load.
    NothingMeasured,
    /// No block was valid for both arms.
    NoValidBlock {
        /// Number of blocks that were measured.
        blocks: u32,
    },
    /// weir did not start the proxy of an arm and does not see its CPU time.
    CpuTimeUnseen {
        /// The arm.
        arm: String,
    },
    /// In no block did either arm answer enough requests for the metric.
    FewAnswers,
    /// The metric was not recorded.
    NotRecorded,
    /// The whole interval is above or below 1, and p is small enough.
    ExcludesOne,
    /// The whole interval is within the equivalence band.
    WithinBand,
    /// A replicate has fewer requests than the quantile needs.
    FewRequests,
    /// All blocks together contradict the typical ones: one of the arms stalls now and then.
    Stalls,
    /// There are too few replicates for any claim.
    FewReplicates,
    /// The interval does not reach the confidence that the study demands.
    LowConfidence,
    /// The interval contains 1 and extends beyond the equivalence band.
    ContainsOne,
    /// The interval excludes 1, but p is too large.
    LargeP,
    /// The arms are equivalent because their connections allow no more. `None` if that is so of all arms, and the load
    /// has the figures.
    ConnectionsLimit(Option<IdleLoad>),
    /// Two equal arms differ too.
    EqualArms(EqualArms),
    /// The run was cut short before its first look.
    CutShort,
}

/// Difference between two equal arms, which withdraws claims about others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EqualArms {
    /// The A/A arm, and the arm that it repeats.
    pub arms: [String; 2],
    /// Their difference as a share: 0.03 is 3 %.
    pub difference: f64,
    /// True if it withdraws an equivalence, false if it withdraws an effect.
    pub was_equivalent: bool,
}

/// Measurement that could have shown a difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Needed {
    /// More requests in each replicate.
    Requests {
        /// Additional measured time that gives them, in seconds.
        seconds: f64,
        /// Multiple of the rate that gives them.
        times_rate: f64,
    },
    /// More replicates.
    Replicates {
        /// Number of replicates from which on a difference can be shown.
        replicates: u32,
        /// Number of comparisons among which it has to be shown.
        comparisons: u32,
        /// Additional measured time that gives them, in seconds.
        seconds: f64,
    },
}

/// Remark on how the figures of a comparison were made and what they mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Caveat {
    /// The ratio is that of the typical p99, of short times.
    TypicalP99,
    /// A replicate has fewer requests than are wanted for the quantile.
    FewRequests,
    /// The estimate is the median of the replicates, because some are far out on both sides.
    Median,
    /// There are so few instances of the proxies that they are taken to differ as those of other proxies do.
    FewInstances,
    /// Neighbouring replicates are correlated, so the interval may be too narrow.
    Correlated,
    /// The connections of both arms were the limit. `None` if that is so of all arms, and the load has the figures.
    ConnectionsLimit(Option<IdleLoad>),
    /// A look gave the comparison up, because the remaining ones would probably not have decided it.
    GivenUp,
}
