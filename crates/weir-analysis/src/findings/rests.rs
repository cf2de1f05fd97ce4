//! Findings about arms while another arm had the load.

use serde::{Deserialize, Serialize};

/// An arm that was active while it rested: the one for which the figure is largest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RestingArm {
    /// Name of the arm.
    pub arm: String,
    /// Activity of the arm.
    pub activity: RestingActivity,
    /// Number of other arms that did so too.
    pub others: u32,
}

/// Activity of an arm while another arm had the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RestingActivity {
    /// It used CPU time beside the arm that was measured.
    UsedCpu {
        /// Average number of CPUs.
        cpus: f64,
    },
    /// It closed connections, which were opened again at once.
    ClosedConnections {
        /// Number of connections.
        connections: u64,
        /// Longest time that it rested, nanoseconds.
        longest_rest_ns: u64,
        /// Name and value of the proxy's setting for how long it keeps idle connections; `None` if it is not known.
        timeout: Option<(String, String)>,
    },
}
