//! Shares and start times of several generators of a load.

use serde::{Deserialize, Serialize};

/// Share of one of several generators in a trial. The trial's figures are of all generators together, and its
/// histograms are the sums of theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorShare {
    /// Host of the generator.
    pub host: String,
    /// Requests of an open loop that were due in the measured parts of slices.
    pub due: u64,
    /// Due requests that were sent, at any time.
    pub sent: u64,
    /// Due requests that were given up when the load moved on to another arm.
    pub queued: u64,
    /// Due requests that were dropped.
    pub dropped: u64,
    /// Responses completed in the measured parts.
    pub completed: u64,
    /// CPU time of its threads in the slices, nanoseconds.
    pub cpu_ns: u64,
    /// Number of response times recorded.
    pub timed: u64,
    /// Response time at the quantiles 0.5 and 0.99, nanoseconds.
    pub response_time: [u64; 2],
    /// Dispatch lag at the quantiles 0.5 and 0.99, nanoseconds.
    pub dispatch_lag: [u64; 2],
}

/// Start time of one of several generators.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorStart {
    /// Host of the generator.
    pub host: String,
    /// Delay of this start after the first generator's, nanoseconds. Each generator reports its own clock; the
    /// differences between the clocks, as measured just before, are subtracted.
    pub after_ns: u64,
    /// Maximum error of `after_ns`, nanoseconds: at most half of a round trip.
    pub unsure_ns: u64,
}

impl GeneratorStart {
    /// Returns the time between the first start and the last, and its maximum error, both in nanoseconds; `None` if
    /// there are no starts.
    pub fn spread_ns(starts: &[GeneratorStart]) -> Option<(u64, u64)> {
        let spread = starts.iter().map(|start| start.after_ns).max()?;
        let unsure = starts.iter().map(|start| start.unsure_ns).max()?;
        Some((spread, unsure))
    }
}
