//! Looks at a load that is measured until everything is decided.

use serde::{Deserialize, Serialize};

/// A look at what was measured under a load so far. What is decided at it rests on the blocks of then alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LookRecord {
    /// The session.
    pub session: u32,
    /// The load.
    pub load: String,
    /// Which look it is, from 1 on.
    pub look: u32,
    /// After how many blocks the looks are planned; the last number is that of the blocks at most.
    pub planned: Vec<u32>,
    /// Whole blocks that were there.
    pub blocks: u32,
    /// Blocks with smaller numbers were there.
    pub next_block: u32,
    /// Whether it is the load's last look, be it that no block is left or no time.
    pub is_last: bool,
    /// Comparisons that share the error.
    pub family: u32,
    /// Confidence of each interval at this look, such that the intervals of all looks together have the
    /// study's.
    pub confidence: f64,
    /// Two-sided level of each test at this look, such that all tests at all looks together have the study's.
    pub level: f64,
    /// Both at the last look, when no time is short: what that would decide is what a look foresees.
    pub at_end: (f64, f64),
    /// What was decided at this look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decided: Vec<DecidedRecord>,
    /// Names of the arms that go on; empty: the load is decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// Blocks that the load will probably have when everything is decided.
    pub expected: u32,
}

/// A comparison that was decided at a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecidedRecord {
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub against: String,
    /// The verdict, as reports say it.
    pub verdict: String,
    /// Whether an earlier end was chosen because the looks to come would hardly decide it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_given_up: bool,
}

impl LookRecord {
    /// Whether nothing is open any more.
    pub fn is_done(&self) -> bool {
        self.is_last || self.open.is_empty()
    }
}
