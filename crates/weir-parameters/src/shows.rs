//! Counters that show if a parameter takes effect.

use serde::{Deserialize, Serialize};

/// Effect of a parameter on a counter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shows {
    /// The counter that changes.
    pub counter: Counter,
    /// Direction of the change.
    pub goes: ShownBy,
    /// Levels at which the parameter is switched off. At all others it should take effect.
    pub off: Vec<String>,
}

/// A counter that is kept for each arm under a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Connections to the origin server per request.
    OriginConnections,
    /// Share of handshakes that were resumed among those of clients that resume sessions, 0 to 1.
    ResumedHandshakes,
    /// Bytes of a response as the client receives it, including its head.
    ReceivedBytes,
}

/// Direction in which a counter changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownBy {
    /// The counter becomes smaller.
    Down,
    /// The counter becomes larger.
    Up,
}

impl Shows {
    /// Returns true if a parameter at this level should take effect.
    pub fn is_on(&self, level: &str) -> bool {
        !self.off.iter().any(|off| off == level)
    }
}
