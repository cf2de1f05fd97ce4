//! Rules that end a study's measurements.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Settings of a capacity search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchSpec {
    /// Half-width of the interval at which the search ends, as a share of the rate: 0.03 is ±3 %.
    pub precision: f64,
    /// Time for which a rate must hold to count as carried. Effects that take longer to appear stay hidden: Linux, for
    /// example, keeps closed connections in TIME_WAIT for 60 s.
    pub hold: Duration,
    /// Length of a burst after a rest, if its capacity is searched for as well; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Duration>,
    /// Maximum number of connections that the search may open to each arm if those of the load limit the rate; absent:
    /// the load's own number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_connections: Option<u32>,
}

impl Default for SearchSpec {
    fn default() -> SearchSpec {
        SearchSpec {
            precision: 0.03,
            hold: Duration::from_secs(65),
            burst: None,
            most_connections: None,
        }
    }
}

impl SearchSpec {
    pub(super) fn is_default(&self) -> bool {
        *self == SearchSpec::default()
    }
}

/// Rule for the number of blocks of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// The number of blocks that fit the load's duration.
    #[default]
    Planned,
    /// Blocks until every comparison is decided, or at most as many as fit the duration. Decisions are made after
    /// numbers of blocks that are fixed beforehand.
    Decided,
}

impl Until {
    pub(super) fn is_planned(&self) -> bool {
        *self == Until::Planned
    }
}
