//! Reduction of a resource of an arm, to see whether the resource limits the arm.

use serde::{Deserialize, Serialize};

/// Owner of the reduced resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TakenFrom {
    /// CPU time of the generator.
    Generator,
    /// CPU time of the arm's proxy.
    Proxy,
    /// CPU time of the origin server, and its speed in proportion: its delays grow in the same ratio in which its rate
    /// of responses falls.
    Origin,
}

/// Reduction of a resource while an arm has the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reduction {
    /// Owner of the reduced resource.
    pub from: TakenFrom,
    /// Size of the reduction, per cent.
    pub percent: u32,
}

impl Reduction {
    /// Size of the reduction as a share (0..1) of the resource, at most [`Reduction::MOST`].
    pub fn share(self) -> f64 {
        f64::from(self.percent.min(Reduction::MOST)) / 100.0
    }

    /// Returns the size of the reduction if it concerns `from`, per cent; otherwise 0.
    pub fn percent_of(taken: Option<Reduction>, from: TakenFrom) -> u32 {
        taken.filter(|taken| taken.from == from).map_or(0, |taken| taken.percent)
    }

    /// Maximum reduction, per cent: with nothing left, no requests would be answered.
    pub const MOST: u32 = 90;
}
