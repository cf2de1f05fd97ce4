//! Pods of a Kubernetes cluster and their nodes.

use weir_doctor::{ClusterEvidence, ClusterProblem, NodeTable};

use crate::numbers::{count, counted};

pub(super) fn title(problem: &ClusterProblem) -> String {
    match problem {
        ClusterProblem::SysctlForbidden { workload } => {
            format!("a node refuses pods of {workload} for their sysctls")
        }
        ClusterProblem::PodsBestEffort { workload } => format!("{workload} asks for no CPU time"),
        ClusterProblem::PodsBurstable { workload } => {
            format!("{workload} uses CPU time beyond its request where there is some")
        }
        ClusterProblem::CpuLimited { workload, container, cpus } => format!(
            "container {container} of {workload} stands still when it has used {cpus} CPUs' worth \
             of time"
        ),
        ClusterProblem::CpusNotPinned { workload } => {
            format!("{workload} has whole CPUs, but none of its own")
        }
        ClusterProblem::CpusNotExclusive { workload } => {
            format!("{workload} shares CPUs on a node that could give it its own")
        }
        ClusterProblem::KilledForMemory { workload, container } => {
            format!("container {container} of {workload} was killed because it needed more memory")
        }
        ClusterProblem::Autoscaled { workload } => {
            format!("the number of pods of {workload} follows the load")
        }
        ClusterProblem::VerticallyAutoscaled { workload } => {
            format!("requests of {workload} follow the load")
        }
        ClusterProblem::NoDisruptionBudget { workload } => {
            format!("nothing keeps all pods of {workload} from being evicted at once")
        }
        ClusterProblem::EvictionsRefused { workload } => {
            format!("no pod of {workload} may be evicted")
        }
        ClusterProblem::HostNetwork { workload } => {
            format!("{workload} has the network of its nodes")
        }
        ClusterProblem::NodeConntrackTooSmall { most, needed } => format!(
            "a node tracks {} connections, and the load needs {}",
            count(*most),
            count(*needed)
        ),
        ClusterProblem::KubeProxyIptables => {
            "the first packet of each connection to a Service passes a list of rules".to_owned()
        }
    }
}

pub(super) fn mechanism(problem: &ClusterProblem) -> &'static str {
    match problem {
        ClusterProblem::SysctlForbidden { .. } => {
            "A kubelet starts a pod with a sysctl that is not on Kubernetes' list of safe ones \
             only if its own configuration allows it. A pod that was refused is not tried again: \
             its workload makes another one, which is refused as well."
        }
        ClusterProblem::PodsBestEffort { .. } => {
            "Without requests a pod has the smallest share of its node's CPU time as soon as \
             others want any, and is evicted first. What a trial measures is then what its \
             neighbours leave."
        }
        ClusterProblem::PodsBurstable { .. } => {
            "Only the request is the pod's own. What it uses above that is what others on the node \
             leave, today and tomorrow. With requests equal to limits (class Guaranteed) trials \
             can be repeated, at the price of the limit."
        }
        ClusterProblem::CpuLimited { .. } => {
            "The limit is counted in periods of 100 ms. Threads that use it up together, even in \
             the first 10 ms, wait for the next period: tens of milliseconds of latency on an idle \
             machine. Below one CPU this happens to a single busy thread. A capacity is then that \
             of the limit."
        }
        ClusterProblem::CpusNotPinned { .. } => {
            "The kubelet's policy `none` lets pods run on all CPUs of the node and move between \
             them. With `static`, a Guaranteed pod with whole CPUs that starts under it has them \
             to itself; that takes a restart of the kubelet."
        }
        ClusterProblem::CpusNotExclusive { .. } => {
            "The policy `static` gives CPUs only to Guaranteed pods that ask for whole ones. \
             Others share what these leave."
        }
        ClusterProblem::KilledForMemory { .. } => {
            "The kernel kills a container that goes beyond its limit, with all connections that it \
             holds. Connections, buffers and workers are what a proxy's memory grows with."
        }
        ClusterProblem::Autoscaled { .. } => {
            "A load test is what an autoscaler waits for: pods come and go during a trial, and \
             arms are measured with different numbers of them. Keep the number for the time of the \
             study, and put it back afterwards."
        }
        ClusterProblem::VerticallyAutoscaled { .. } => {
            "It evicts pods, or resizes them, as soon as a load changes what it recommends: \
             connections are lost in a trial, and the pods are replaced."
        }
        ClusterProblem::NoDisruptionBudget { .. } => {
            "Whoever drains a node, as autoscalers of nodes do when a load ends, evicts its pods; \
             a trial that goes on loses its proxy."
        }
        ClusterProblem::EvictionsRefused { .. } => {
            "Trials are safe from evictions, but whoever drains a node waits for as long as that \
             is so. Roll-outs of the workload itself are not held up by budgets."
        }
        ClusterProblem::HostNetwork { .. } => {
            "Its net.* settings, its local ports and its table of connections are the node's, \
             shared with everything that runs there; a pod's sysctls cannot change them, and no \
             two such pods can listen at one port of a node."
        }
        ClusterProblem::NodeConntrackTooSmall { .. } => {
            "Netfilter keeps an entry for each connection that passes a node, and for a closed one \
             until TIME_WAIT is over. When the table is full, packets of new connections are \
             dropped without an answer. If the proxy's pods are on several nodes, each has its \
             share."
        }
        ClusterProblem::KubeProxyIptables => {
            "In this mode the list grows with the number of Services, and so does the time to open \
             a connection; kept connections do not pay it. The mode nftables looks a Service up in \
             a map."
        }
    }
}

pub(super) fn evidence(evidence: &ClusterEvidence) -> String {
    match evidence {
        ClusterEvidence::PodRefused { pod, message } => format!("pod {pod}: {message}"),
        ClusterEvidence::PodSysctls { sysctls } => {
            let list: Vec<String> =
                sysctls.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            format!("its security context: {}", list.join(", "))
        }
        ClusterEvidence::AllowedSysctls { node, allowed } if allowed.is_empty() => {
            format!("the kubelet of node {node} allows only the safe sysctls")
        }
        ClusterEvidence::AllowedSysctls { node, allowed } => format!(
            "the kubelet of node {node} allows besides the safe ones: {}",
            allowed.join(", ")
        ),
        ClusterEvidence::QosClass { pod, class } => format!("pod {pod}: QoS class {class}"),
        ClusterEvidence::CpuRequest { container, request, limit } => {
            format!("container {container}: request {}, limit {}", cpus(*request), cpus(*limit))
        }
        ClusterEvidence::CpuLimit { pod, container, cpus } => {
            format!("pod {pod}, container {container}: limits.cpu {cpus}")
        }
        ClusterEvidence::ContainerCpus { pod, node, container, cpus, request, policy } => format!(
            "pod {pod} on node {node}: container {container} may run on CPUs {cpus} \
             (Cpus_allowed_list) and asks for {request}; cpuManagerPolicy {}",
            policy.as_deref().unwrap_or("not known")
        ),
        ClusterEvidence::CpuManager { pod, node, policy } => cpu_manager(pod, node, policy),
        ClusterEvidence::CpuManagerOnly { pod, node, policy } => {
            format!("{}; its CPUs could not be read in it", cpu_manager(pod, node, policy))
        }
        ClusterEvidence::KilledForMemory { pod } => {
            format!("pod {pod}: was last terminated as OOMKilled")
        }
        ClusterEvidence::MemoryLimit { bytes } => {
            format!("limits.memory {} MiB", count(bytes >> 20))
        }
        ClusterEvidence::PodAutoscaler { name, least, most, pods } => {
            format!("HorizontalPodAutoscaler {name}: {least} to {most} pods; now {pods}")
        }
        ClusterEvidence::VerticalAutoscaler { name, mode } => {
            format!("VerticalPodAutoscaler {name}: updateMode {mode}")
        }
        ClusterEvidence::NoBudget { namespace, pods } => format!(
            "no PodDisruptionBudget of namespace {namespace} covers its {}",
            counted(*pods as u64, "pod")
        ),
        ClusterEvidence::Budget { name } => {
            format!("PodDisruptionBudget {name}: disruptionsAllowed 0")
        }
        ClusterEvidence::HostNetwork { pod } => format!("pod {pod}: hostNetwork true"),
        ClusterEvidence::NodeTable(table) => self::table(table),
        ClusterEvidence::KubeProxyMode { mode } => format!("kube-proxy: mode {mode}"),
    }
}

fn cpus(count: Option<f64>) -> String {
    count.map_or("none".to_owned(), |cpus| format!("{cpus} CPUs"))
}

fn cpu_manager(pod: &str, node: &str, policy: &str) -> String {
    format!("pod {pod} on node {node}: cpuManagerPolicy {policy}")
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
