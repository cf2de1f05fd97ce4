//! Pods of a Kubernetes cluster and their nodes: settings that make figures depend on neighbours, change the proxy
//! during a trial, or cannot take effect.

use std::collections::BTreeMap;

use weir_kube::{ClusterFacts, KubeProxy, NodeFacts, PodFacts, Scaler, Scaling};

use super::numbers::TRACKED_AFTER_CLOSE_S;
use super::sources::{
    CONNTRACK, CPU_MANAGER, DISRUPTIONS, HOST_NETWORK, HPA, POD_CPU, POD_MEMORY, POD_QOS,
    POD_SYSCTLS, PROXY_MODES, VPA,
};
use super::{counted, figure};
use crate::commands::quoted;
use crate::evidence::{ClusterEvidence, NodeTable};
use crate::facts::LoadDemand;
use crate::finding::{Finding, Room, Severity};

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
    let set: Vec<String> =
        pod.sysctls.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let names: Vec<&str> = pod.sysctls.iter().map(|(name, _)| name.as_str()).collect();
    let node = group.nodes().find(|(one, _)| one.name == pod.name);
    let allowed = node
        .and_then(|(_, node)| Some((&node.name, node.allowed_sysctls.as_ref()?)))
        .map(|(node, all)| {
            if all.is_empty() {
                format!("the kubelet of node {node} allows no others than the safe ones")
            } else {
                format!(
                    "the kubelet of node {node} allows besides the safe ones: {}",
                    all.join(", ")
                )
            }
        });
    let change = match group.workload.0 {
        "Deployment" | "DaemonSet" | "StatefulSet" => {
            group.kubectl(&format!("rollout undo {}", group.target()))
        }
        _ => group.kubectl(&format!("delete pod {}", quoted(&pod.name))),
    };
    let mut finding = Finding::text_warning("sysctl-forbidden", format!("a node refuses pods of {} for their sysctls", group.name()))
        .evidence(format!("pod {}: {}", pod.name, pod.message.as_deref().unwrap_or("SysctlForbidden")))
        .evidence(format!("its security context: {}", set.join(", ")))
        .evidence_all(allowed)
        .why(
            "A kubelet starts a pod with a sysctl that is not on Kubernetes' list of safe ones only if its own configuration allows it. A pod that \
             was refused is not tried again: its workload makes another one, which is refused as well.",
            POD_SYSCTLS,
        )
        .change(change);
    finding.persist.push(format!(
        "# in the kubelet's configuration of the nodes: allowedUnsafeSysctls: [{}]",
        names.join(", ")
    ));
    vec![finding]
}

fn quality(group: &Group<'_>) -> Vec<Finding> {
    if let Some(pod) = find_class(group, "BestEffort") {
        return vec![
            Finding::text_warning("pods-best-effort", format!("{} asks for no CPU time", group.name()))
                .evidence_all(list_requests(pod))
                .why(
                    "Without requests a pod has the smallest share of its node's CPU time as soon as others want any, and is evicted first. What a \
                     trial measures is then what its neighbours leave.",
                    POD_QOS,
                )
                .change(group.kubectl(&format!(
                    "set resources {} --requests=cpu=1,memory=512Mi",
                    group.target()
                ))),
        ];
    }
    let Some(pod) = find_class(group, "Burstable") else {
        return Vec::new();
    };
    vec![
        Finding::text_note("pods-burstable", format!("{} uses CPU time beyond its request where there is some", group.name()))
            .evidence_all(list_requests(pod))
            .why(
                "Only the request is the pod's own. What it uses above that is what others on the node leave, today and tomorrow. With requests equal to \
                 limits (class Guaranteed) trials can be repeated, at the price of the limit.",
                POD_QOS,
            ),
    ]
}

fn find_class<'a>(group: &Group<'a>, class: &str) -> Option<&'a PodFacts> {
    group.pods.iter().copied().find(|pod| pod.qos.as_deref() == Some(class))
}

fn list_requests(pod: &PodFacts) -> Vec<String> {
    let qos = format!("pod {}: QoS class {}", pod.name, pod.qos.as_deref().unwrap_or_default());
    let containers = pod.containers.iter().map(|one| {
        let [request, limit] = [one.cpu_request, one.cpu_limit]
            .map(|value| value.map_or("none".to_owned(), |cpus| format!("{cpus} CPUs")));
        format!("container {}: request {request}, limit {limit}", one.name)
    });
    std::iter::once(qos).chain(containers).collect()
}

fn cpu_limit(group: &Group<'_>) -> Vec<Finding> {
    let Some(pod) = group.pods.first() else {
        return Vec::new();
    };
    let limited = pod.containers.iter().filter_map(|one| Some((one, one.cpu_limit?)));
    limited.map(|(one, cpus)| {
        let title = format!(
            "container {} of {} stands still when it has used {cpus} CPUs' worth of time",
            one.name,
            group.name()
        );
        let severity = if cpus < 1.0 { Severity::Warning } else { Severity::Note };
        Finding::text_new("cpu-limited", severity, title)
            .evidence(format!("pod {}, container {}: limits.cpu {cpus}", pod.name, one.name))
            .why(
                "The limit is counted in periods of 100 ms. Threads that use it up together, even in the first 10 ms, wait for the next period: tens of \
                 milliseconds of latency on an idle machine. Below one CPU this happens to a single busy thread. A capacity is then that of the limit.",
                POD_CPU,
            )
    }).collect()
}

/// Reports CPUs that are shared with others. Judges by the CPUs that containers really have or, if those could not be
/// read, by the kubelet's policy.
fn cpu_manager(group: &Group<'_>) -> Vec<Finding> {
    let shared = group.nodes().find_map(of_cpus).or_else(|| {
        find_policy(group, "none", true)
            .map(|(pod, node)| {
                format!("{}; its CPUs could not be read in it", describe_policy(pod, node))
            })
    }).map(|evidence| {
        Finding::text_note("cpus-not-pinned", format!("{} has whole CPUs, but none of its own", group.name()))
            .evidence(evidence)
            .why(
                "The kubelet's policy `none` lets pods run on all CPUs of the node and move between them. With `static`, a Guaranteed pod with whole \
                 CPUs that starts under it has them to itself; that takes a restart of the kubelet.",
                CPU_MANAGER,
            )
    });
    let unused = find_policy(group, "static", false).map(|(pod, node)| {
        Finding::text_note("cpus-not-exclusive", format!("{} shares CPUs on a node that could give it its own", group.name()))
            .evidence(describe_policy(pod, node))
            .why(
                "The policy `static` gives CPUs only to Guaranteed pods that ask for whole ones. Others share what these leave.",
                CPU_MANAGER,
            )
    });
    shared.into_iter().chain(unused).collect()
}

fn find_policy<'a>(
    group: &'a Group<'_>,
    policy: &str,
    has_whole: bool,
) -> Option<(&'a PodFacts, &'a NodeFacts)> {
    group.nodes().find(|(pod, node)| {
        let is_read = pod.containers.iter().any(|one| one.cpus.is_some());
        let is_whole = pod.may_have_own_cpus();
        !is_read && node.cpu_manager.as_deref() == Some(policy) && is_whole == has_whole
    })
}

fn describe_policy(pod: &PodFacts, node: &NodeFacts) -> String {
    let policy = node.cpu_manager.as_deref().unwrap_or_default();
    format!("pod {} on node {}: cpuManagerPolicy {policy}", pod.name, node.name)
}

/// Returns evidence of a container that shares CPUs with others: it may run on more CPUs than it requests, or on all of
/// its node, unless the kubelet gives it exclusive ones.
fn of_cpus((pod, node): (&PodFacts, &NodeFacts)) -> Option<String> {
    let is_static = node.cpu_manager.as_deref() == Some("static");
    let mut containers = pod.containers.iter().filter_map(|one| {
        let (cpus, whole) = (one.cpus.as_ref()?, one.whole_cpus()?);
        let count = cpus.cpus().len() as f64;
        (count > whole || (!is_static && node.cpus == Some(count))).then(|| {
            format!(
                "pod {} on node {}: container {} may run on CPUs {cpus} (Cpus_allowed_list) and asks for {whole}; cpuManagerPolicy {}",
                pod.name,
                node.name,
                one.name,
                node.cpu_manager.as_deref().unwrap_or("not known")
            )
        })
    });
    containers.next()
}

fn memory(group: &Group<'_>) -> Vec<Finding> {
    let killed = group
        .pods
        .iter()
        .flat_map(|pod| pod.containers.iter().map(move |one| (pod, one)))
        .filter(|(_, one)| one.was_killed_for_memory);
    killed.map(|(pod, one)| {
        let limit = one
            .memory_limit
            .map(|bytes| format!("limits.memory {} MiB", figure(bytes as u64 >> 20)));
        Finding::text_warning("killed-for-memory", format!("container {} of {} was killed because it needed more memory", one.name, group.name()))
            .evidence(format!("pod {}: its last end was OOMKilled", pod.name))
            .evidence_all(limit)
            .why(
                "The kernel kills a container that goes beyond its limit, with all connections that it holds. Connections, buffers and workers are what a \
                 proxy's memory grows with.",
                POD_MEMORY,
            )
    }).take(1).collect()
}

fn scaled(group: &Group<'_>) -> Vec<Finding> {
    let scalers = group.facts.scalers.iter();
    scalers
        .filter(|one| (&*one.target.0, &*one.target.1) == group.workload)
        .filter_map(|scaler| judge_scaler(group, scaler))
        .collect()
}

fn judge_scaler(group: &Group<'_>, one: &Scaler) -> Option<Finding> {
    match &one.does {
        Scaling::Replicas { least, most } if least < most => {
            let count = group.pods.len();
            let patch = format!(r#"{{"spec":{{"minReplicas":{count},"maxReplicas":{count}}}}}"#);
            let words =
                format!("patch horizontalpodautoscaler {} --patch '{patch}'", quoted(&one.name));
            Some(
                Finding::text_warning("autoscaled", format!("the number of pods of {} follows the load", group.name()))
                    .evidence(format!("HorizontalPodAutoscaler {}: {least} to {most} pods; now {count}", one.name))
                    .why(
                        "A load test is what an autoscaler waits for: pods come and go during a trial, and arms are measured with different numbers of \
                         them. Keep the number for the time of the study, and put it back afterwards.",
                        HPA,
                    )
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
                Finding::text_warning("vertically-autoscaled", format!("requests of {} follow the load", group.name()))
                    .evidence(format!("VerticalPodAutoscaler {}: updateMode {mode}", one.name))
                    .why(
                        "It evicts pods, or resizes them, as soon as a load changes what it recommends: connections are lost in a trial, and the pods \
                         afterwards are others.",
                        VPA,
                    )
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
    let finding = match budgets.iter().find(|one| group.pods.iter().any(|pod| one.pods.contains(&pod.name))) {
        None => Finding::text_note("no-disruption-budget", format!("nothing keeps all pods of {} from being evicted at once", group.name()))
            .evidence(format!("no PodDisruptionBudget of namespace {} is about its {}", group.facts.namespace, counted(group.pods.len() as u64, "pod")))
            .why(
                "Whoever drains a node, as autoscalers of nodes do when a load ends, evicts its pods; a trial that goes on loses its proxy.",
                DISRUPTIONS,
            ),
        Some(budget) if budget.allowed <= 0 => {
            Finding::text_note("evictions-refused", format!("no pod of {} may be evicted", group.name()))
                .evidence(format!("PodDisruptionBudget {}: disruptionsAllowed 0", budget.name))
                .why(
                    "Trials are safe from evictions, but whoever drains a node waits for as long as that is so. Roll-outs of the workload itself are not \
                     held up by budgets.",
                    DISRUPTIONS,
                )
        }
        Some(_) => return Vec::new(),
    };
    vec![finding]
}

fn host_network(group: &Group<'_>) -> Vec<Finding> {
    let Some(pod) = group.pods.iter().find(|pod| pod.has_host_network) else {
        return Vec::new();
    };
    vec![
        Finding::text_note("host-network", format!("{} has the network of its nodes", group.name()))
            .evidence(format!("pod {}: hostNetwork true", pod.name))
            .why(
                "Its net.* settings, its local ports and its table of connections are the node's, shared with everything that runs there; a pod's \
                 sysctls cannot change them, and no two such pods can listen at one port of a node.",
                HOST_NETWORK,
            ),
    ]
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
    let closed = asked.connections_per_second.unwrap_or(0.0) * TRACKED_AFTER_CLOSE_S;
    let needed = open + closed as u64;
    if needed <= most {
        return None;
    }
    let edit = kubectl(facts, "kube-system", "edit configmap kube-proxy");
    Some(
        Finding::text_error("node-conntrack-too-small", format!("a node tracks {} connections, and the load needs {}", figure(most), figure(needed)))
            .evidence(ClusterEvidence::NodeTable(table(node, settings)))
            .evidence(format!(
                "the load: {} for clients and the proxy's own to backends, {} that were closed in the last {TRACKED_AFTER_CLOSE_S:.0} s",
                figure(open),
                figure(closed as u64)
            ))
            .why(
                "Netfilter keeps an entry for each connection that passes a node, and for a closed one until TIME_WAIT is over. When the table is full, \
                 packets of new connections are dropped without an answer. If the proxy's pods are on several nodes, each has its share.",
                CONNTRACK,
            )
            .change(format!("{edit}   # conntrack: {{min: {}}}", needed.next_power_of_two()))
            .change(kubectl(facts, "kube-system", "rollout restart daemonset/kube-proxy")),
    )
}

fn mode(facts: &ClusterFacts) -> Option<Finding> {
    let settings = facts.kube_proxy.as_ref().filter(|it| it.mode == "iptables")?;
    Some(
        Finding::text_note("kube-proxy-iptables", "the first packet of each connection to a Service passes a list of rules")
            .evidence(format!("kube-proxy: mode {}", settings.mode))
            .why(
                "In this mode the list grows with the number of Services, and so does the time to open a connection; kept connections do not pay it. \
                 The mode nftables looks a Service up in a map.",
                PROXY_MODES,
            ),
    )
}
