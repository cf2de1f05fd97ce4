//! Measured capacity of the load generator itself on a machine.

use serde::{Deserialize, Serialize};

/// Format version of [`Calibration`].
pub const FORMAT: &str = "weir-calibration/1";

/// Results of the generator against a server that does not parse requests: kept connections, 1 KiB of content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// [`FORMAT`] at the time of writing.
    pub format: String,
    /// Exact version of weir.
    pub weir_version: String,
    /// The machine: CPU model, CPUs, kernel. A calibration does not apply to another machine.
    pub machine: String,
    /// Time of the calibration, RFC 3339 in UTC.
    pub made_at: String,
    /// Results for each kernel interface (io_uring, epoll) that works on this machine.
    pub ways: Vec<WayCalibration>,
}

/// Results for one kernel interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WayCalibration {
    /// `io_uring` or `epoll`.
    pub io: String,
    /// CPU time per request of fixed bytes that are neither parsed nor recorded, in nanoseconds: the cost without the
    /// engine's work. Median over rounds.
    pub floor_ns: f64,
    /// CPU time per request of the engine, in nanoseconds. Median over rounds.
    pub request_ns: f64,
    /// Requests per second that one thread can send when it has a CPU to itself: 1 s over
    /// `request_ns`.
    pub capacity: f64,
    /// Rate of the open loop at which the lag was measured, requests per second.
    pub lag_rate: f64,
    /// Dispatch lag at that rate: (quantile 0..1, nanoseconds).
    pub lag: Vec<(f64, u64)>,
}

impl Calibration {
    /// Returns the results for one kernel interface, `io_uring` or `epoll`; `None` if there are none.
    pub fn way(&self, io: &str) -> Option<&WayCalibration> {
        self.ways.iter().find(|way| way.io == io)
    }
}
