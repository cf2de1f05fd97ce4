//! Verdicts of comparisons.

use serde::{Deserialize, Serialize};
use weir_stats::Outcome;

/// Verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better, by more than chance explains.
    Better,
    /// Worse, by more than chance explains.
    Worse,
    /// Equivalent: the interval lies inside the equivalence band.
    Equivalent,
    /// Undecided: neither a difference nor equivalence is shown.
    Inconclusive,
    /// Invalid: there are no valid figures to compare.
    Invalid,
}

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Verdict {
        match outcome {
            Outcome::Better => Verdict::Better,
            Outcome::Worse => Verdict::Worse,
            Outcome::Equivalent => Verdict::Equivalent,
            Outcome::Inconclusive => Verdict::Inconclusive,
        }
    }
}

impl Verdict {
    /// Returns the verdict in one word.
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
