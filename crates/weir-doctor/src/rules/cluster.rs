//! Pods of a Kubernetes cluster and their nodes: settings that make figures depend on neighbours, change the proxy
//! during a trial, or cannot take effect.

use std::collections::BTreeMap;

use weir_kube::{ClusterFacts, KubeProxy, NodeFacts, PodFacts, Scaler, Scaling};

use super::numbers::TRACKED_AFTER_CLOSE_S;
use super::sources::{
    CONNTRACK, CPU_MANAGER, DISRUPTIONS, HOST_NETWORK, HPA, POD_CPU, POD_MEMORY, POD_QOS,
    POD_SYSCTLS, PROXY_MODES, VPA,
};
use crate::evidence::{Calculation, ClusterEvidence, NodeTable};
use crate::facts::LoadDemand;
use crate::finding::{Finding, Room, Severity};
use crate::problem::ClusterProblem;
use crate::shell::quoted;

/// The pods of a workload.
struct Group<'a> {
    facts: &'a ClusterFacts,
    /// Kind and name of the workload; a pod without a controller is its own workload.
    workload: (&'a str, &'a str),
    pods: Vec<&'a PodFacts>,
}

/// Applies all rules and returns their findings.
pub(crate) fn all(facts: &ClusterFacts, asked: LoadDemand) -> Vec<Finding> {
    let mut groups: BTreeMap<(&str, &str), Vec<&PodFacts>> = BTreeMap::new();
    for pod in &facts.pods {
        let workload =
            pod.workload.as_ref().map_or(("Pod", &*pod.name), |(kind, name)| (&**kind, &**name));
        groups.entry(workload).or_default().push(pod);
    }
    let rules: [fn(&Group<'_>) -> Vec<Finding>; 8] =
        [sysctls, quality, cpu_limit, cpu_manager, memory, scaled, disrupted, host_network];
    let mut findings = Vec::new();
    for (workload, pods) in groups {
        let group = Group { facts, workload, pods };
        findings.extend(rules.iter().flat_map(|rule| rule(&group)));
    }
    findings.extend(tracked(facts, asked));
    findings.extend(mode(facts));
    findings
}

/// Returns the number of tracked connections that kube-proxy's settings allow on the smallest node.
pub(crate) fn room(facts: &ClusterFacts) -> Option<Room> {
    let (node, settings, most) = smallest(facts)?;
    Some(Room::TrackedConnections { amount: most, table: table(node, settings) })
}

impl Group<'_> {
    /// Returns kind and name as in `Deployment/web`.
    fn name(&self) -> String {
        format!("{}/{}", self.workload.0, self.workload.1)
    }

    /// Returns the workload in the form that kubectl accepts, quoted for a shell.
    fn target(&self) -> String {
        quoted(&format!("{}/{}", self.workload.0.to_lowercase(), self.workload.1))
    }

    fn kubectl(&self, words: &str) -> String {
        kubectl(self.facts, &self.facts.namespace, words)
    }

    fn nodes(&self) -> impl Iterator<Item = (&PodFacts, &NodeFacts)> {
        self.pods.iter().filter_map(|pod| {
            let name = pod.node.as_ref()?;
            let node = self.facts.nodes.iter().find(|one| one.name == *name)?;
            Some((*pod, node))
        })
    }
}

fn kubectl(facts: &ClusterFacts, namespace: &str, words: &str) -> String {
    let (context, namespace) = (quoted(&facts.context), quoted(namespace));
    format!("kubectl --context {context} --namespace {namespace} {words}")
}

fn sysctls(group: &Group<'_>) -> Vec<Finding> {
    let mut pods = group.pods.iter();
    let Some(pod) = pods.find(|pod| pod.reason.as_deref() == Some("SysctlForbidden")) else {
        return Vec::new();
    };
    let names: Vec<&str> = pod.sysctls.iter().map(|(name, _)| name.as_str()).collect();
    let message = pod.message.clone().unwrap_or_else(|| "SysctlForbidden".to_owned());
    let node = group.nodes().find(|(one, _)| one.name == pod.name);
    let allowed = node.and_then(|(_, node)| {
        let (node, allowed) = (node.name.clone(), node.allowed_sysctls.clone()?);
        Some(ClusterEvidence::AllowedSysctls { node, allowed })
    });
    let change = match group.workload.0 {
        "Deployment" | "DaemonSet" | "StatefulSet" => {
            group.kubectl(&format!("rollout undo {}", group.target()))
        }
        _ => group.kubectl(&format!("delete pod {}", quoted(&pod.name))),
    };
    let problem = ClusterProblem::SysctlForbidden { workload: group.name() };
    let mut finding = Finding::warning(problem, POD_SYSCTLS)
        .evidence(ClusterEvidence::PodRefused { pod: pod.name.clone(), message })
        .evidence(ClusterEvidence::PodSysctls { sysctls: pod.sysctls.clone() })
        .evidence_all(allowed)
        .change(change);
    finding.persist.push(format!(
        "# in the kubelet's configuration of the nodes: allowedUnsafeSysctls: [{}]",
        names.join(", ")
    ));
    vec![finding]
}

fn quality(group: &Group<'_>) -> Vec<Finding> {
    if let Some(pod) = find_class(group, "BestEffort") {
        let problem = ClusterProblem::PodsBestEffort { workload: group.name() };
        let target = group.target();
        let words = format!("set resources {target} --requests=cpu=1,memory=512Mi");
        return vec![
            Finding::warning(problem, POD_QOS)
                .evidence_all(list_requests(pod))
                .change(group.kubectl(&words)),
        ];
    }
    let Some(pod) = find_class(group, "Burstable") else {
        return Vec::new();
    };
    let problem = ClusterProblem::PodsBurstable { workload: group.name() };
    vec![Finding::note(problem, POD_QOS).evidence_all(list_requests(pod))]
}

fn find_class<'a>(group: &Group<'a>, class: &str) -> Option<&'a PodFacts> {
    group.pods.iter().copied().find(|pod| pod.qos.as_deref() == Some(class))
}

fn list_requests(pod: &PodFacts) -> Vec<ClusterEvidence> {
    let qos = ClusterEvidence::QosClass {
        pod: pod.name.clone(),
        class: pod.qos.clone().unwrap_or_default(),
    };
    let containers = pod.containers.iter().map(|one| ClusterEvidence::CpuRequest {
        container: one.name.clone(),
        request: one.cpu_request,
        limit: one.cpu_limit,
    });
    std::iter::once(qos).chain(containers).collect()
}

fn cpu_limit(group: &Group<'_>) -> Vec<Finding> {
    let Some(pod) = group.pods.first() else {
        return Vec::new();
    };
    let limited = pod.containers.iter().filter_map(|one| Some((one.name.clone(), one.cpu_limit?)));
    limited
        .map(|(container, cpus)| {
            let severity = if cpus < 1.0 { Severity::Warning } else { Severity::Note };
            let problem = ClusterProblem::CpuLimited {
                workload: group.name(),
                container: container.clone(),
                cpus,
            };
            Finding::new(problem, severity, POD_CPU).evidence(ClusterEvidence::CpuLimit {
                pod: pod.name.clone(),
                container,
                cpus,
            })
        })
        .collect()
}

/// Reports CPUs that are shared with others. Judges by the CPUs that containers really have or, if those could not be
/// read, by the kubelet's policy.
fn cpu_manager(group: &Group<'_>) -> Vec<Finding> {
    let evidence = group.nodes().find_map(of_cpus).or_else(|| {
        let (pod, node, policy) = find_policy(group, "none", true)?;
        Some(ClusterEvidence::CpuManagerOnly { pod, node, policy })
    });
    let shared = evidence.map(|evidence| {
        let problem = ClusterProblem::CpusNotPinned { workload: group.name() };
        Finding::note(problem, CPU_MANAGER).evidence(evidence)
    });
    let unused = find_policy(group, "static", false).map(|(pod, node, policy)| {
        let problem = ClusterProblem::CpusNotExclusive { workload: group.name() };
        Finding::note(problem, CPU_MANAGER).evidence(ClusterEvidence::CpuManager {
            pod,
            node,
            policy,
        })
    });
    shared.into_iter().chain(unused).collect()
}

/// Returns a pod, its node and this policy of the node's kubelet, by which the pod is judged.
fn find_policy(
    group: &Group<'_>,
    policy: &str,
    has_whole: bool,
) -> Option<(String, String, String)> {
    let (pod, node) = group.nodes().find(|(pod, node)| {
        let is_read = pod.containers.iter().any(|one| one.cpus.is_some());
        let is_whole = pod.may_have_own_cpus();
        !is_read && node.cpu_manager.as_deref() == Some(policy) && is_whole == has_whole
    })?;
    Some((pod.name.clone(), node.name.clone(), policy.to_owned()))
}

/// Returns evidence of a container that shares CPUs with others: it may run on more CPUs than it requests, or on all of
/// its node, unless the kubelet gives it exclusive ones.
fn of_cpus((pod, node): (&PodFacts, &NodeFacts)) -> Option<ClusterEvidence> {
    let is_static = node.cpu_manager.as_deref() == Some("static");
    pod.containers.iter().find_map(|one| {
        let (cpus, request) = (one.cpus.clone()?, one.whole_cpus()?);
        let count = cpus.cpus().len() as f64;
        let is_shared = count > request || (!is_static && node.cpus == Some(count));
        is_shared.then(|| ClusterEvidence::ContainerCpus {
            pod: pod.name.clone(),
            node: node.name.clone(),
            container: one.name.clone(),
            cpus,
            request,
            policy: node.cpu_manager.clone(),
        })
    })
}

fn memory(group: &Group<'_>) -> Vec<Finding> {
    let mut containers =
        group.pods.iter().flat_map(|pod| pod.containers.iter().map(move |one| (pod, one)));
    let Some((pod, one)) = containers.find(|(_, one)| one.was_killed_for_memory) else {
        return Vec::new();
    };
    let problem =
        ClusterProblem::KilledForMemory { workload: group.name(), container: one.name.clone() };
    let limit = one.memory_limit.map(|bytes| ClusterEvidence::MemoryLimit { bytes: bytes as u64 });
    vec![
        Finding::warning(problem, POD_MEMORY)
            .evidence(ClusterEvidence::KilledForMemory { pod: pod.name.clone() })
            .evidence_all(limit),
    ]
}

fn scaled(group: &Group<'_>) -> Vec<Finding> {
    let scalers = group.facts.scalers.iter();
    scalers
        .filter(|one| (&*one.target.0, &*one.target.1) == group.workload)
        .filter_map(|scaler| judge_scaler(group, scaler))
        .collect()
}

fn judge_scaler(group: &Group<'_>, one: &Scaler) -> Option<Finding> {
    let workload = group.name();
    let name = one.name.clone();
    match &one.does {
        Scaling::Replicas { least, most } if least < most => {
            let pods = group.pods.len();
            let patch = format!(r#"{{"spec":{{"minReplicas":{pods},"maxReplicas":{pods}}}}}"#);
            let words =
                format!("patch horizontalpodautoscaler {} --patch '{patch}'", quoted(&one.name));
            let (least, most) = (*least, *most);
            Some(
                Finding::warning(ClusterProblem::Autoscaled { workload }, HPA)
                    .evidence(ClusterEvidence::PodAutoscaler { name, least, most, pods })
                    .change(group.kubectl(&words)),
            )
        }
        Scaling::Requests(mode) if mode != "Off" && mode != "Initial" => {
            let patch = r#"{"spec":{"updatePolicy":{"updateMode":"Off"}}}"#;
            let words = format!(
                "patch verticalpodautoscaler {} --type merge --patch '{patch}'",
                quoted(&one.name)
            );
            Some(
                Finding::warning(ClusterProblem::VerticallyAutoscaled { workload }, VPA)
                    .evidence(ClusterEvidence::VerticalAutoscaler { name, mode: mode.clone() })
                    .change(group.kubectl(&words)),
            )
        }
        _ => None,
    }
}

fn disrupted(group: &Group<'_>) -> Vec<Finding> {
    let Some(budgets) = &group.facts.budgets else {
        return Vec::new();
    };
    if !matches!(group.workload.0, "Deployment" | "StatefulSet" | "ReplicaSet") {
        return Vec::new();
    }
    let workload = group.name();
    let of_pods =
        budgets.iter().find(|one| group.pods.iter().any(|pod| one.pods.contains(&pod.name)));
    let finding = match of_pods {
        None => Finding::note(ClusterProblem::NoDisruptionBudget { workload }, DISRUPTIONS)
            .evidence(ClusterEvidence::NoBudget {
                namespace: group.facts.namespace.clone(),
                pods: group.pods.len(),
            }),
        Some(budget) if budget.allowed <= 0 => {
            Finding::note(ClusterProblem::EvictionsRefused { workload }, DISRUPTIONS)
                .evidence(ClusterEvidence::Budget { name: budget.name.clone() })
        }
        Some(_) => return Vec::new(),
    };
    vec![finding]
}

fn host_network(group: &Group<'_>) -> Vec<Finding> {
    let Some(pod) = group.pods.iter().find(|pod| pod.has_host_network) else {
        return Vec::new();
    };
    let problem = ClusterProblem::HostNetwork { workload: group.name() };
    let evidence = ClusterEvidence::HostNetwork { pod: pod.name.clone() };
    vec![Finding::note(problem, HOST_NETWORK).evidence(evidence)]
}

/// Returns the node that may track the fewest connections, and how many; `None` if kube-proxy sets no number.
fn smallest(facts: &ClusterFacts) -> Option<(&NodeFacts, &KubeProxy, u64)> {
    let settings = facts.kube_proxy.as_ref()?;
    if settings.conntrack_for_each_cpu == 0 {
        return None;
    }
    facts
        .nodes
        .iter()
        .filter_map(|node| {
            let scaled = settings.conntrack_for_each_cpu as f64 * node.cpus?;
            Some((node, settings, (scaled as u64).max(settings.conntrack_at_least)))
        })
        .min_by_key(|(.., most)| *most)
}

fn table(node: &NodeFacts, settings: &KubeProxy) -> NodeTable {
    NodeTable {
        node: node.name.clone(),
        cpus: node.cpus.unwrap_or_default(),
        for_each_cpu: settings.conntrack_for_each_cpu,
        at_least: settings.conntrack_at_least,
    }
}

fn tracked(facts: &ClusterFacts, asked: LoadDemand) -> Option<Finding> {
    let (node, settings, most) = smallest(facts)?;
    let open = asked.connections.unwrap_or(0) * 2;
    let held_s = TRACKED_AFTER_CLOSE_S;
    let closed = (asked.connections_per_second.unwrap_or(0.0) * held_s) as u64;
    let needed = open + closed;
    if needed <= most {
        return None;
    }
    let edit = kubectl(facts, "kube-system", "edit configmap kube-proxy");
    Some(
        Finding::error(ClusterProblem::NodeConntrackTooSmall { most, needed }, CONNTRACK)
            .evidence(ClusterEvidence::NodeTable(table(node, settings)))
            .evidence(Calculation::NodeConnections { open, closed, held_s })
            .change(format!("{edit}   # conntrack: {{min: {}}}", needed.next_power_of_two()))
            .change(kubectl(facts, "kube-system", "rollout restart daemonset/kube-proxy")),
    )
}

fn mode(facts: &ClusterFacts) -> Option<Finding> {
    let settings = facts.kube_proxy.as_ref().filter(|it| it.mode == "iptables")?;
    let mode = settings.mode.clone();
    Some(
        Finding::note(ClusterProblem::KubeProxyIptables, PROXY_MODES)
            .evidence(ClusterEvidence::KubeProxyMode { mode }),
    )
}
