//! Findings about arms that change while they are measured.

use serde::{Deserialize, Serialize};
use weir_model::study::Metric;

/// Seconds for which ports of ended connections are kept: TCP_TIMEWAIT_LEN of Linux, a constant.
pub const TIME_WAIT_S: f64 = 60.0;

/// A lasting change of an arm during the measurement: from some block on its CPU time per request, or its rate, is on
/// another level, and those of the other arms are not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseChange {
    /// The arm.
    pub arm: String,
    /// Metric that changed.
    pub metric: Metric,
    /// First block of the load after the change, counted from 0.
    pub block: u32,
    /// Time of the change, in seconds since the load began, without the pauses between sessions.
    pub at_s: f64,
    /// Median over the blocks since the previous change, or since the beginning: nanoseconds for the CPU time, requests
    /// per second for the rate.
    pub before: f64,
    /// Median over the blocks after the change, up to the next one.
    pub after: f64,
    /// Probability of such a step if there is no change (p of Pettitt's test).
    pub p: f64,
    /// Other differences, in sockets or connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<PhaseEvidence>,
    /// Ratio to the arm that it is compared with, and its interval, before and after the change; `None` for the
    /// baseline, and if there are too few blocks.
    pub ratios: [Option<(f64, (f64, f64))>; 2],
}

/// A difference in an arm's sockets or connections before and after a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PhaseEvidence {
    /// Ended connections in TIME_WAIT in the arm's namespace.
    TimeWait {
        /// Number of connections before the change.
        before: u64,
        /// Number of connections after the change.
        after: u64,
        /// Number of local ports that the namespace has for its own connections; `None` if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        local_ports: Option<u64>,
    },
    /// Connections that the arm opened to the origin server.
    OriginConnections {
        /// Connections per request before the change.
        before: f64,
        /// Connections per request after the change.
        after: f64,
    },
    /// Connections that the generator had to open again.
    Reconnections {
        /// Connections per request before the change.
        before: f64,
        /// Connections per request after the change.
        after: f64,
    },
}

/// Arms that were not measured for long enough to see them change: connections in TIME_WAIT had not yet begun to
/// expire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FreshArms {
    /// Time from the first slice of the load to the last, seconds; shorter than [`TIME_WAIT_S`].
    pub lasted_s: f64,
    /// Arm with the most connections in TIME_WAIT.
    pub arm: String,
    /// Number of these connections.
    pub time_wait: u64,
}
