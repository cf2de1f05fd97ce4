//! Progress messages of a running command, for programs (docs/progress.md). Times are in seconds unless a name says
//! otherwise.

use serde::{Deserialize, Serialize};

use crate::load::ErrorCount;
use crate::load_report::StatusCount;
use crate::record::{Validity, ValidityReason};

/// Format version of every line of progress.
pub const FORMAT: &str = "weir-progress/2";

/// Current phase of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadPhase {
    /// Connections are being opened.
    Connecting,
    /// The load grows to its full rate, and is not measured.
    RampUp,
    /// Requests are sent and measured.
    Measuring,
    /// No more requests are sent; those in flight are waited for.
    Draining,
}

/// Current state of a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadState {
    /// Current phase of the load.
    pub phase: LoadPhase,
    /// Time since the load began; 0 while connections are being opened.
    pub elapsed: f64,
    /// Remaining time of the load, estimated; while it drains, an upper bound.
    pub left: f64,
    /// Planned length of the load, without the drain.
    pub length: f64,
    /// Maximum number of requests; absent if there is no limit.
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

/// Quantiles in nanoseconds; 0 if nothing was counted.
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

/// Figures of the requests that were due in one period of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadFigures {
    /// Length of the period.
    pub seconds: f64,
    /// Requests that were due by the schedule; 0 in a closed loop.
    pub due: u64,
    /// Requests sent.
    pub offered: u64,
    /// Requests that were dropped because no connection was idle.
    pub dropped: u64,
    /// Requests that waited for an idle connection and were never sent.
    #[serde(default)]
    pub queued: u64,
    /// Responses completed.
    pub completed: u64,
    /// Responses completed per second.
    pub rate: f64,
    /// Requests that never ended.
    pub never_ended: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Responses by status code.
    pub statuses: Vec<StatusCount>,
    /// Errors by kind, the most frequent first.
    pub errors: Vec<ErrorCount>,
    /// Time from the moment a request was due to the last byte, in nanoseconds.
    pub response_time: Quantiles,
    /// Time from the moment a request was sent to the last byte, in nanoseconds.
    #[serde(default)]
    pub service_time: Quantiles,
    /// The generator's own delay in sending due requests, in nanoseconds.
    pub dispatch_lag: Quantiles,
}

impl LoadFigures {
    /// Total number of errors of all kinds.
    pub fn errors_total(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }
}

/// Message that an interval of a load has ended, with all requests that were due in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadInterval {
    /// Start of the interval since the start of the load.
    pub at: f64,
    /// Figures of the interval.
    pub interval: LoadFigures,
    /// Figures of everything measured up to the time of writing.
    pub so_far: LoadFigures,
    /// Validity of the figures so far.
    pub validity: Validity,
    /// Reasons for a validity other than VALID.
    pub reasons: Vec<ValidityReason>,
}

/// Comparison of two arms so far, as if the run ended now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Name of the load.
    pub load: String,
    /// Name of the metric.
    pub metric: String,
    /// Name of the arm.
    pub arm: String,
    /// Name of the arm that it is compared with.
    pub against: String,
    /// Verdict in the words of reports.
    pub verdict: String,
    /// Ratio of `arm` to `against`; `None` if it is not known.
    pub ratio: Option<f64>,
    /// Confidence interval of the ratio; `None` if it is not known.
    pub interval: Option<(f64, f64)>,
    /// Number of blocks behind the verdict.
    pub blocks: u32,
}
