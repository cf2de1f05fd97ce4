//! Interim looks at a load that is measured until every comparison is decided.

use serde::{Deserialize, Serialize};

/// An interim look at the measurements of a load so far. Its decisions rest only on the blocks present at the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LookRecord {
    /// Number of the session.
    pub session: u32,
    /// Name of the load.
    pub load: String,
    /// Number of the look, from 1.
    pub look: u32,
    /// Numbers of blocks after which looks are planned; the last is the maximum number of blocks.
    pub planned: Vec<u32>,
    /// Number of complete blocks at this look.
    pub blocks: u32,
    /// Number of the next block; all blocks with smaller numbers were present.
    pub next_block: u32,
    /// True if this is the load's last look, because no blocks or no time are left.
    pub is_last: bool,
    /// Number of comparisons among which the error rate is divided.
    pub family: u32,
    /// Confidence of each interval at this look, such that the intervals of all looks together have the study's
    /// confidence.
    pub confidence: f64,
    /// Two-sided level of each test at this look, such that all tests at all looks together have the study's level.
    pub level: f64,
    /// Confidence and level at the last look if time does not run out; forecasts at this look use them.
    pub at_end: (f64, f64),
    /// Comparisons that were decided at this look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decided: Vec<DecidedRecord>,
    /// Names of the arms that continue; empty if the load is decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// Expected number of blocks of the load when every comparison is decided.
    pub expected: u32,
}

/// A comparison that was decided at a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecidedRecord {
    /// Name of the arm.
    pub arm: String,
    /// Name of the arm that it is compared with.
    pub against: String,
    /// Verdict in the words of reports.
    pub verdict: String,
    /// True if the comparison was ended early because the remaining looks would hardly decide it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_given_up: bool,
}

impl LookRecord {
    /// Returns true if the load is decided or this is its last look.
    pub fn is_done(&self) -> bool {
        self.is_last || self.open.is_empty()
    }
}
