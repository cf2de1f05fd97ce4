//! Counters by which it shows whether a parameter does what it is for.

use serde::{Deserialize, Serialize};

/// What a parameter does to a counter when it takes effect.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shows {
    /// The counter.
    pub counter: Counter,
    /// Which way it goes.
    pub goes: ShownBy,
    /// Levels at which the parameter is switched off; at all others it is to take effect.
    pub off: Vec<String>,
}

/// What is counted for each arm under a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Connections to the origin server per request.
    OriginConnections,
    /// Of the handshakes with clients that resume sessions, the share that were resumed, 0 to 1.
    ResumedHandshakes,
    /// Bytes of a response as the client receives it, its head included.
    ReceivedBytes,
}

/// Which way a counter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownBy {
    /// It becomes smaller.
    Down,
    /// It becomes larger.
    Up,
}

impl Shows {
    /// Whether a parameter at this level is to take effect.
    pub fn is_on(&self, level: &str) -> bool {
        !self.off.iter().any(|off| off == level)
    }
}
