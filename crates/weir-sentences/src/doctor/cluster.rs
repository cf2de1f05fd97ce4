//! Pods of a Kubernetes cluster and their nodes.

use weir_doctor::{ClusterEvidence, NodeTable};

use crate::numbers::count;

pub(super) fn evidence(evidence: &ClusterEvidence) -> String {
    match evidence {
        ClusterEvidence::NodeTable(table) => self::table(table),
    }
}

/// Returns the calculation of the connections that a node tracks.
pub(super) fn table(table: &NodeTable) -> String {
    format!(
        "node {}: {} CPUs × maxPerCore {}, at least {} (kube-proxy)",
        table.node,
        table.cpus,
        count(table.for_each_cpu),
        count(table.at_least)
    )
}
