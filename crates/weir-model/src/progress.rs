//! What a command says while it works, for programs (docs/progress.md). Times are seconds unless a name says otherwise.

use serde::{Deserialize, Serialize};

use crate::load::ErrorCount;
use crate::load_report::StatusCount;
use crate::record::{Validity, ValidityReason};

/// Version of every line of progress.
pub const FORMAT: &str = "weir-progress/1";

/// What a load does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadPhase {
    /// Connections are being opened.
    Connecting,
    /// The load grows to its full height, and is not measured.
    RampUp,
    /// Requests are sent and measured.
    Measuring,
    /// Nothing is sent any more; requests in flight are waited for.
    Draining,
}

/// Where a load is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadState {
    /// What it does.
    pub phase: LoadPhase,
    /// Time since the load began; 0 while connections are being opened.
    pub elapsed: f64,
    /// How long the load goes on, about; while it drains, at most.
    pub left: f64,
    /// Length of the load as planned, the drain excluded.
    pub length: f64,
    /// Requests at most, where there is such a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Responses so far.
    pub completed: u64,
    /// Errors so far.
    pub errors: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Connections open.
    pub open: u64,
}

/// Quantiles in nanoseconds; 0 where nothing was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Quantiles {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    pub max: u64,
}

/// Figures of a load in a stretch of time: of the requests that were due in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadFigures {
    /// Length of the stretch.
    pub seconds: f64,
    /// Requests that the schedule wanted sent; 0 in a closed loop.
    pub due: u64,
    /// Requests sent.
    pub offered: u64,
    /// Requests that were left out because no connection was idle.
    pub dropped: u64,
    /// Responses completed.
    pub completed: u64,
    /// The same per second.
    pub rate: f64,
    /// Requests that never ended.
    pub never_ended: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Responses by status code.
    pub statuses: Vec<StatusCount>,
    /// Errors by kind, the most frequent first.
    pub errors: Vec<ErrorCount>,
    /// From the moment a request was due to the last byte, in nanoseconds.
    pub response_time: Quantiles,
    /// The generator's own lateness, in nanoseconds.
    pub dispatch_lag: Quantiles,
}

impl LoadFigures {
    /// Errors of all kinds.
    pub fn errors_total(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }
}

/// An interval of a load has ended, with all requests that were due in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadInterval {
    /// Begin of the interval, since the load began.
    pub at: f64,
    /// Its figures.
    pub interval: LoadFigures,
    /// Figures of everything that was measured up to the time of writing.
    pub so_far: LoadFigures,
    /// Whether the figures so far may be used.
    pub validity: Validity,
    /// Why not, or why with care.
    pub reasons: Vec<ValidityReason>,
}

/// How two arms compare so far, as if the run ended now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The load.
    pub load: String,
    /// The metric.
    pub metric: String,
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub against: String,
    /// The verdict.
    pub verdict: String,
    /// Ratio arm / against; `None` where nothing is known.
    pub ratio: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Blocks behind it.
    pub blocks: u32,
}
