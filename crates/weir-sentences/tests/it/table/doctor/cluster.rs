//! Findings about pods of a cluster and their nodes, and their evidence.

use weir_doctor::{ClusterEvidence, ClusterProblem, NodeTable};
use weir_sentences::doctor::evidence;

use super::row;
use crate::table::Row;

pub(in crate::table) fn rows() -> Vec<Row> {
    let workload = "Deployment/web".to_owned();
    let container = "nginx".to_owned();
    let problems = [
        (
            "Sysctls that are refused",
            ClusterProblem::SysctlForbidden { workload: workload.clone() },
        ),
        ("No requests", ClusterProblem::PodsBestEffort { workload: workload.clone() }),
        ("Requests below limits", ClusterProblem::PodsBurstable { workload: workload.clone() }),
        (
            "A limit of CPU time",
            ClusterProblem::CpuLimited {
                workload: workload.clone(),
                container: container.clone(),
                cpus: 0.5,
            },
        ),
        ("Shared CPUs", ClusterProblem::CpusNotPinned { workload: workload.clone() }),
        (
            "CPUs that could be exclusive",
            ClusterProblem::CpusNotExclusive { workload: workload.clone() },
        ),
        (
            "Too little memory",
            ClusterProblem::KilledForMemory { workload: workload.clone(), container },
        ),
        ("An autoscaler of pods", ClusterProblem::Autoscaled { workload: workload.clone() }),
        (
            "An autoscaler of requests",
            ClusterProblem::VerticallyAutoscaled { workload: workload.clone() },
        ),
        ("No budget", ClusterProblem::NoDisruptionBudget { workload: workload.clone() }),
        (
            "A budget that allows nothing",
            ClusterProblem::EvictionsRefused { workload: workload.clone() },
        ),
        ("The network of the node", ClusterProblem::HostNetwork { workload }),
        (
            "Too few tracked connections of a node",
            ClusterProblem::NodeConntrackTooSmall { most: 229_376, needed: 260_000 },
        ),
        ("kube-proxy with iptables", ClusterProblem::KubeProxyIptables),
    ];
    problems.into_iter().map(|(case, problem)| row(case, problem)).collect()
}

pub(in crate::table) fn evidence_rows() -> Vec<Row> {
    let all = pods().into_iter().chain(cpus()).chain(objects());
    all.map(|(case, one)| (case, evidence(&one.into()))).collect()
}

fn pods() -> Vec<(&'static str, ClusterEvidence)> {
    let pod = "web-1".to_owned();
    let node = "n1".to_owned();
    let sysctls = [("net.core.somaxconn", "4096"), ("kernel.msgmax", "1")];
    let allowed = ["net.core.*", "kernel.msg*"].map(str::to_owned).to_vec();
    vec![
        (
            "A refused pod",
            ClusterEvidence::PodRefused { pod: pod.clone(), message: "SysctlForbidden".to_owned() },
        ),
        (
            "Sysctls of a pod",
            ClusterEvidence::PodSysctls {
                sysctls: sysctls.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            },
        ),
        (
            "A kubelet that allows none",
            ClusterEvidence::AllowedSysctls { node: node.clone(), allowed: Vec::new() },
        ),
        ("A kubelet that allows some", ClusterEvidence::AllowedSysctls { node, allowed }),
        ("A class", ClusterEvidence::QosClass { pod: pod.clone(), class: "Burstable".to_owned() }),
        ("A killed pod", ClusterEvidence::KilledForMemory { pod: pod.clone() }),
        ("A limit of memory", ClusterEvidence::MemoryLimit { bytes: 128 << 20 }),
        ("A pod in the network of its node", ClusterEvidence::HostNetwork { pod }),
    ]
}

fn cpus() -> Vec<(&'static str, ClusterEvidence)> {
    let [pod, node, container] = ["web-1", "n1", "nginx"].map(str::to_owned);
    let policy = "none".to_owned();
    vec![
        (
            "A request without a limit",
            ClusterEvidence::CpuRequest {
                container: container.clone(),
                request: Some(0.5),
                limit: None,
            },
        ),
        (
            "A limit of CPU time",
            ClusterEvidence::CpuLimit { pod: pod.clone(), container: container.clone(), cpus: 0.5 },
        ),
        ("CPUs of a container", container_cpus(Some("none"))),
        ("CPUs of a container under an unknown policy", container_cpus(None)),
        (
            "A policy",
            ClusterEvidence::CpuManager {
                pod: pod.clone(),
                node: node.clone(),
                policy: "static".to_owned(),
            },
        ),
        ("A policy alone", ClusterEvidence::CpuManagerOnly { pod, node, policy }),
    ]
}

fn container_cpus(policy: Option<&str>) -> ClusterEvidence {
    ClusterEvidence::ContainerCpus {
        pod: "web-1".to_owned(),
        node: "n1".to_owned(),
        container: "nginx".to_owned(),
        cpus: "0-7".parse().expect("CPUs"),
        request: 2.0,
        policy: policy.map(str::to_owned),
    }
}

fn objects() -> Vec<(&'static str, ClusterEvidence)> {
    let name = "web".to_owned();
    vec![
        (
            "An autoscaler of pods",
            ClusterEvidence::PodAutoscaler { name: name.clone(), least: 2, most: 8, pods: 2 },
        ),
        (
            "An autoscaler of requests",
            ClusterEvidence::VerticalAutoscaler { name: name.clone(), mode: "Auto".to_owned() },
        ),
        ("No budget", ClusterEvidence::NoBudget { namespace: "ingress".to_owned(), pods: 2 }),
        ("A budget that allows nothing", ClusterEvidence::Budget { name }),
        (
            "The table of a node",
            ClusterEvidence::NodeTable(NodeTable {
                node: "n1".to_owned(),
                cpus: 7.0,
                for_each_cpu: 32_768,
                at_least: 131_072,
            }),
        ),
        ("kube-proxy", ClusterEvidence::KubeProxyMode { mode: "iptables".to_owned() }),
    ]
}
