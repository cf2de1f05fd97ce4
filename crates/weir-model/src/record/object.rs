//! What objects of a cluster said before a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An object of a cluster that settings of arms go into, as it was before weir had changed anything in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectRecord {
    /// Group and version: `apps/v1`.
    pub api: String,
    /// Its kind in addresses: `deployments`.
    pub resource: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What stood there, by JSON pointer (RFC 6901), for each place that some arm sets: of a place within a list or a text
    /// the whole of that; `null`: nothing. Where what leads to a place was missing as well, the outermost that was.
    pub before: BTreeMap<String, Value>,
}
