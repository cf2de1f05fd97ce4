//! Findings about closed loops in which nobody was busy.

use serde::{Deserialize, Serialize};

/// A closed load under which neither proxy nor generator nor origin server was busy, so that the connections were the
/// limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleLoad {
    /// Number of connections that each arm has for requests.
    pub connections: u64,
    /// Mean response time of the fastest and of the slowest arm, seconds. Connections divided by this time are the rate
    /// that they allow.
    pub response_s: (f64, f64),
    /// Share of its time that the busiest of proxy, generator and origin server used, 0..1.
    pub busiest: f64,
    /// Share of the proxy's CPUs that other processes had, 0..1; `None` if it is too small for responses to have waited
    /// for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
}
