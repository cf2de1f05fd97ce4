//! Which of several looks a comparison is of.

use serde::{Deserialize, Serialize};

/// One of several looks, and how strict it was for all of them to hold what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtLook {
    /// Which one, from 1 on.
    pub look: u32,
    /// Looks that were planned.
    pub of: u32,
    /// Confidence of the interval by itself.
    pub confidence: f64,
    /// Level of the test by itself, which is shared among the comparisons too.
    pub level: f64,
    /// Standard error of the logarithm of the ratio: what a look foresees is made from it.
    pub error: f64,
}
