//! Validity of an answer, and what it leaves out.

use serde::{Deserialize, Serialize};
use weir_model::record::{Outcome, Validity};

/// Validity of an answer, and what it leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Headline {
    /// Worst validity of the loads and matrices behind the answer; INVALID if there are none.
    pub validity: Validity,
    /// Reason why the answer is not VALID, in one sentence without a full stop; empty if it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// Comparison without figures that is the reason why the answer is not VALID; `because` is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_figures: Option<WithoutFigures>,
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
            because: String::new(),
            without_figures: None,
            incomplete: None,
            left_out: Vec::new(),
        }
    }
}

/// Comparison by the study's metric that has no figures, or too few requests for its quantile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WithoutFigures {
    /// The load.
    pub load: String,
    /// The arm.
    pub arm: String,
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
