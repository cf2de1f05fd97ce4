//! When a study has measured enough.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a capacity is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchSpec {
    /// Half of the interval at which the search ends, as a share of the rate: 0.03 is ±3 %.
    pub precision: f64,
    /// How long a rate is held that is to count as carried. What a system remembers for longer does not show: Linux keeps
    /// connections that have ended in TIME_WAIT for 60 s.
    pub hold: Duration,
    /// Whether to ask too what is carried for so long after a rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Duration>,
    /// How many connections the search may open to each arm where those of the load let no more through; as many as the
    /// load says, where this is absent.
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

/// When a load has blocks enough.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// When it has as many as fit its duration.
    #[default]
    Planned,
    /// As soon as everything that is compared is decided, and then at the latest. It is looked at after numbers of
    /// blocks that are fixed beforehand.
    Decided,
}

impl Until {
    pub(super) fn is_planned(&self) -> bool {
        *self == Until::Planned
    }
}
