//! Evidence from a Kubernetes cluster.

use serde::Serialize;

/// Evidence that was read from a Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClusterEvidence {
    /// Connections that a node tracks.
    NodeTable(NodeTable),
}

/// Connections that a node of a cluster tracks, by kube-proxy's settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeTable {
    /// Name of the node.
    pub node: String,
    /// CPUs of the node.
    pub cpus: f64,
    /// Connections for each CPU (`maxPerCore`).
    pub for_each_cpu: u64,
    /// The least number of connections (`min`).
    pub at_least: u64,
}
