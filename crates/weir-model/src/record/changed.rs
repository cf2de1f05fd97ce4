//! Settings outside a run's own processes that the run changed.

use serde::{Deserialize, Serialize};

/// A setting of a host, or a place in an object of a cluster, that a session changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedSetting {
    /// Name of the setting: `net.core.somaxconn`, or an object and a path in it.
    pub name: String,
    /// Value before the run; `None` if it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Values that the run gave it, or was about to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<String>,
    /// State of the setting after the session.
    #[serde(flatten)]
    pub end: SettingEnd,
}

/// State of a changed setting after the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "end")]
pub enum SettingEnd {
    /// It has its former value.
    PutBack,
    /// It no longer exists.
    Gone,
    /// Somebody else has changed it meanwhile, so it was left alone.
    LeftAlone {
        /// Value that it had then.
        found: String,
    },
    /// It could not be put back.
    Failed {
        /// Reason.
        why: String,
    },
}
