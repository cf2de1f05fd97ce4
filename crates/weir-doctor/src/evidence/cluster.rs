//! Evidence from a Kubernetes cluster.

use serde::Serialize;
use weir_model::quantity::CpuSet;

/// Evidence that was read from a Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClusterEvidence {
    /// Reason why a kubelet refused a pod.
    PodRefused {
        /// Name of the pod.
        pod: String,
        /// Message or, if there is none, the reason.
        message: String,
    },
    /// Sysctls of a pod's security context.
    PodSysctls {
        /// Names and values.
        sysctls: Vec<(String, String)>,
    },
    /// Sysctls that a kubelet allows besides the safe ones.
    AllowedSysctls {
        /// Name of the node.
        node: String,
        /// Patterns of their names.
        allowed: Vec<String>,
    },
    /// Quality of service class of a pod.
    QosClass {
        /// Name of the pod.
        pod: String,
        /// `BestEffort`, `Burstable` or `Guaranteed`.
        class: String,
    },
    /// CPU time of a container.
    CpuRequest {
        /// Name of the container.
        container: String,
        /// CPUs that it requests.
        request: Option<f64>,
        /// Limit in CPUs.
        limit: Option<f64>,
    },
    /// Limit of a container's CPU time.
    CpuLimit {
        /// Name of the pod.
        pod: String,
        /// Name of the container.
        container: String,
        /// The limit in CPUs.
        cpus: f64,
    },
    /// CPUs that a container may run on.
    ContainerCpus {
        /// Name of the pod.
        pod: String,
        /// Name of the node.
        node: String,
        /// Name of the container.
        container: String,
        /// The CPUs.
        cpus: CpuSet,
        /// CPUs that it requests.
        request: f64,
        /// CPU manager policy of the kubelet, if known.
        policy: Option<String>,
    },
    /// CPU manager policy of a pod's kubelet.
    CpuManager {
        /// Name of the pod.
        pod: String,
        /// Name of the node.
        node: String,
        /// The policy.
        policy: String,
    },
    /// The same, judged by because the CPUs of the containers could not be read.
    CpuManagerOnly {
        /// Name of the pod.
        pod: String,
        /// Name of the node.
        node: String,
        /// The policy.
        policy: String,
    },
    /// A pod whose container was killed for lack of memory.
    KilledForMemory {
        /// Name of the pod.
        pod: String,
    },
    /// Limit of a container's memory.
    MemoryLimit {
        /// The limit in bytes.
        bytes: u64,
    },
    /// A HorizontalPodAutoscaler.
    PodAutoscaler {
        /// Its name.
        name: String,
        /// Minimum number of pods.
        least: i32,
        /// Maximum number of pods.
        most: i32,
        /// Number of pods now.
        pods: usize,
    },
    /// A VerticalPodAutoscaler.
    VerticalAutoscaler {
        /// Its name.
        name: String,
        /// Its update mode.
        mode: String,
    },
    /// Pods without a PodDisruptionBudget.
    NoBudget {
        /// Their namespace.
        namespace: String,
        /// Number of pods.
        pods: usize,
    },
    /// A PodDisruptionBudget that allows no disruptions.
    Budget {
        /// Its name.
        name: String,
    },
    /// A pod with the network of its node.
    HostNetwork {
        /// Name of the pod.
        pod: String,
    },
    /// Mode of kube-proxy.
    KubeProxyMode {
        /// `iptables`, `ipvs` or `nftables`.
        mode: String,
    },
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
