//! What the load generator itself can do on a machine.

use serde::{Deserialize, Serialize};

/// Version of [`Calibration`].
pub const FORMAT: &str = "weir-calibration/1";

/// The generator against a server that looks at nothing: kept connections, 1 KiB of content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// [`FORMAT`] at the time of writing.
    pub format: String,
    /// Exact version of weir.
    pub weir_version: String,
    /// The machine: CPU model, CPUs, kernel. A calibration says nothing about another one.
    pub machine: String,
    /// When it was made, RFC 3339 in UTC.
    pub made_at: String,
    /// One for each way of asking the kernel that works here.
    pub ways: Vec<WayCalibration>,
}

/// One way of asking the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WayCalibration {
    /// `io_uring` or `epoll`.
    pub io: String,
    /// CPU time per request of fixed bytes that nobody parses or records, in nanoseconds: what is left
    /// when the engine does nothing. Median over rounds.
    pub floor_ns: f64,
    /// CPU time per request of the engine, in nanoseconds. Median over rounds.
    pub request_ns: f64,
    /// Requests per second that one thread can send when it has a CPU to itself: 1 s over
    /// `request_ns`.
    pub capacity: f64,
    /// Rate of the open loop that the lag was seen at, requests per second.
    pub lag_rate: f64,
    /// (quantile 0..1, dispatch lag in nanoseconds) at that rate.
    pub lag: Vec<(f64, u64)>,
}

impl Calibration {
    /// What it says about one way of asking.
    pub fn way(&self, io: &str) -> Option<&WayCalibration> {
        self.ways.iter().find(|way| way.io == io)
    }
}
