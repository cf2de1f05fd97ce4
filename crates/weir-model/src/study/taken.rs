//! What is taken away from an arm, to see whether it is what limits it.

use serde::{Deserialize, Serialize};

/// Whose resource it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TakenFrom {
    /// Time of the generator's CPUs.
    Generator,
    /// Time of the CPUs of the arm's proxy.
    Proxy,
    /// Time of the origin server's CPUs, and as much of its speed: its delays become as much longer as it
    /// answers fewer requests in the same time.
    Origin,
}

/// What an arm lacks while it has the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Taken {
    /// Of whom.
    pub from: TakenFrom,
    /// How much of it, per cent.
    pub percent: u32,
}

impl Taken {
    /// As a share of all there is.
    pub fn share(self) -> f64 {
        f64::from(self.percent.min(Taken::MOST)) / 100.0
    }

    /// How much is taken of `from`, per cent.
    pub fn percent_of(taken: Option<Taken>, from: TakenFrom) -> u32 {
        let own = taken.filter(|taken| taken.from == from);
        own.map_or(0, |taken| taken.percent)
    }

    /// More is never taken, per cent: who has nothing left answers nothing.
    pub const MOST: u32 = 90;
}
