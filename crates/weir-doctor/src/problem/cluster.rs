//! Problems of a Kubernetes cluster.

use serde::Serialize;

/// A problem of the pods of a workload or of their nodes. A workload is named as in `Deployment/web`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "id", rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum ClusterProblem {
    /// A node has refused pods for their sysctls.
    SysctlForbidden {
        /// Kind and name of the workload.
        workload: String,
    },
    /// Pods request no CPU time.
    PodsBestEffort {
        /// Kind and name of the workload.
        workload: String,
    },
    /// Pods may use more CPU time than they request.
    PodsBurstable {
        /// Kind and name of the workload.
        workload: String,
    },
    /// A container has a limit of CPU time.
    CpuLimited {
        /// Kind and name of the workload.
        workload: String,
        /// Name of the container.
        container: String,
        /// The limit in CPUs.
        cpus: f64,
    },
    /// Pods with whole CPUs share them with others.
    CpusNotPinned {
        /// Kind and name of the workload.
        workload: String,
    },
    /// Pods without whole CPUs are on a node that could give them their own.
    CpusNotExclusive {
        /// Kind and name of the workload.
        workload: String,
    },
    /// A container was killed for lack of memory.
    KilledForMemory {
        /// Kind and name of the workload.
        workload: String,
        /// Name of the container.
        container: String,
    },
    /// An autoscaler changes the number of pods.
    Autoscaled {
        /// Kind and name of the workload.
        workload: String,
    },
    /// An autoscaler changes the requests of pods.
    VerticallyAutoscaled {
        /// Kind and name of the workload.
        workload: String,
    },
    /// All pods may be evicted at once.
    NoDisruptionBudget {
        /// Kind and name of the workload.
        workload: String,
    },
    /// No pod may be evicted.
    EvictionsRefused {
        /// Kind and name of the workload.
        workload: String,
    },
    /// Pods have the network of their nodes.
    HostNetwork {
        /// Kind and name of the workload.
        workload: String,
    },
    /// A node tracks fewer connections than the load needs.
    NodeConntrackTooSmall {
        /// Connections that the smallest node tracks.
        most: u64,
        /// Connections that the load needs.
        needed: u64,
    },
    /// kube-proxy has the mode iptables.
    KubeProxyIptables,
}
