//! One of several looks, as part of a comparison.

use serde::{Deserialize, Serialize};

/// One of several looks, and its error levels. They are so strict that all looks together have the confidence that the
/// study demands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtLook {
    /// Number of the look, from 1.
    pub look: u32,
    /// Number of looks that were planned.
    pub of: u32,
    /// Confidence of this look's interval by itself.
    pub confidence: f64,
    /// Level of this look's test by itself, already divided among the comparisons.
    pub level: f64,
    /// Standard error of the logarithm of the ratio, from which a look predicts later ones.
    pub error: f64,
}
