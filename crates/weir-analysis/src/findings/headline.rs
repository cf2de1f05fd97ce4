//! What to know beside an answer.

use serde::{Deserialize, Serialize};
use weir_model::record::{Outcome, Validity};

/// Whether an answer may be believed, and what it leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Headline {
    /// The worst validity of the loads and matrices that the answer rests on; INVALID when there are
    /// none.
    pub validity: Validity,
    /// Why it is not VALID, in one sentence without a full stop; empty when it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// Why the run is not what was planned; `None` when it is.
    pub incomplete: Option<Incomplete>,
    /// Loads beside the answer that are INVALID as a whole and say nothing. Empty when the answer
    /// itself is INVALID.
    pub left_out: Vec<String>,
}

/// Of a run that says nothing.
impl Default for Headline {
    fn default() -> Headline {
        Headline {
            validity: Validity::Invalid,
            because: String::new(),
            incomplete: None,
            left_out: Vec::new(),
        }
    }
}

/// How a run ended that did not end as planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Incomplete {
    /// How; `None`: it has no end. Complete: not everything that was planned was recorded.
    pub outcome: Option<Outcome>,
    /// The error; empty without one.
    pub error: String,
}
