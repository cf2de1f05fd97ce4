//! Verdicts of comparisons.

use serde::{Deserialize, Serialize};

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better by more than chance explains.
    Better,
    /// Worse by more than chance explains.
    Worse,
    /// The interval lies inside the equivalence band.
    Equivalent,
    /// Neither can be said.
    Inconclusive,
    /// There are no valid figures to compare.
    Invalid,
}

impl Verdict {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Invalid => "invalid",
        }
    }
}
