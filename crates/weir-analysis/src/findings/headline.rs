//! Validity of an answer, and what it leaves out.

use serde::{Deserialize, Serialize};
use weir_model::record::{Outcome, Validity};
use weir_model::study::Metric;

use super::CountedReason;

/// Validity of an answer, and what it leaves out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Headline {
    /// Worst validity of the loads and matrices behind the answer; INVALID if there are none.
    pub validity: Validity,
    /// Reason why the answer is not VALID; `None` if it is, or if no reason is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<HeadlineReason>,
    /// Reason why the run is not the one that was planned; `None` if it is.
    pub incomplete: Option<Incomplete>,
    /// Loads, apart from those behind the answer, that are INVALID as a whole. Empty if the answer itself is INVALID.
    pub left_out: Vec<String>,
}

/// The headline of a run without findings: INVALID.
impl Default for Headline {
    fn default() -> Headline {
        Headline {
            validity: Validity::Invalid,
            reason: None,
            incomplete: None,
            left_out: Vec::new(),
        }
    }
}

/// Reason why an answer is not VALID.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HeadlineReason {
    /// Nothing was measured under a load.
    NothingMeasured {
        /// The load.
        load: String,
    },
    /// Trials under a load are doubtful or missing.
    Trials {
        /// The load.
        load: String,
        /// Most frequent reason against its trials; `None` if no block has a trial of every arm.
        reason: Option<CountedReason>,
        /// Number of blocks that were left out.
        lost_blocks: u32,
        /// Number of all blocks.
        blocks: u32,
    },
    /// Trials of a search for capacities are doubtful.
    Search(CountedReason),
    /// A comparison lacks figures of the study's metric, or enough requests for its quantile.
    Comparison {
        /// Load of the comparison.
        load: String,
        /// Arm that is compared.
        arm: String,
        /// The study's metric.
        metric: Metric,
    },
}

/// End of a run that did not end as planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Incomplete {
    /// Outcome of the run; `None` if it has no end. Complete if it ended, but not everything that was planned was
    /// recorded.
    pub outcome: Option<Outcome>,
    /// The error; empty without one.
    pub error: String,
}
