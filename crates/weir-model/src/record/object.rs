//! Original state of cluster objects before a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An object of a cluster that settings of arms go into, in its state before weir changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectRecord {
    /// Group and version of the object's API: `apps/v1`.
    pub api: String,
    /// Resource name in API paths: `deployments`.
    pub resource: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Original value by JSON pointer (RFC 6901) for each field that some arm sets; `null` if there was none. For a
    /// place within a list or a text, the pointer and value are those of the whole list or text. If parents of the
    /// field were missing as well, the pointer is that of the outermost missing one.
    pub before: BTreeMap<String, Value>,
}
