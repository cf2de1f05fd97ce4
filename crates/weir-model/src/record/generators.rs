//! What each of several generators of a load had, and when it started.

use serde::{Deserialize, Serialize};

/// What one of several generators had of a trial. The figures of the trial are those of all together, and its histograms
/// their sums.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorShare {
    /// Its host.
    pub host: String,
    /// Requests of an open loop that were due in the measured parts of slices.
    pub due: u64,
    /// Of these: sent, whenever.
    pub sent: u64,
    /// Of these: given up when the load moved on to another arm.
    pub queued: u64,
    /// Of these: left out.
    pub dropped: u64,
    /// Responses completed in the measured parts.
    pub completed: u64,
    /// CPU time of its threads in the slices, nanoseconds.
    pub cpu_ns: u64,
    /// Response times recorded.
    pub timed: u64,
    /// Response time at the quantiles 0.5 and 0.99, nanoseconds.
    pub response_time: [u64; 2],
    /// Dispatch lag at these quantiles.
    pub dispatch_lag: [u64; 2],
}

/// When one of several generators started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorStart {
    /// Its host.
    pub host: String,
    /// How long after the first of them, nanoseconds: what each said of its own clock, corrected by how far the clocks
    /// were apart just before.
    pub after_ns: u64,
    /// By how much that may be wrong, nanoseconds: half of a round trip at most.
    pub unsure_ns: u64,
}

impl GeneratorStart {
    /// Time between the first start and the last one, nanoseconds, and by how much that may be wrong.
    pub fn spread_ns(starts: &[GeneratorStart]) -> Option<(u64, u64)> {
        let spread = starts.iter().map(|start| start.after_ns).max()?;
        let unsure = starts.iter().map(|start| start.unsure_ns).max()?;
        Some((spread, unsure))
    }
}
