//! Facts about a namespace's pods and about what they run on, without judgement. Nothing is created or changed.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Request;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::{GroupVersionKind, Selector, SelectorExt};
use kube::{Api, ResourceExt};
use serde_json::Value;

use weir_model::quantity::CpuSet;

use crate::asked::NodeLabel;
use crate::cluster::Cluster;
use crate::cpusets;
use crate::error::KubeError;
use crate::inner::Inner;

/// Time limit for reading everything, since a kubelet that hangs is queried as well.
const WITHIN: Duration = Duration::from_secs(60);

/// Facts that were read. Anything that could not be read is `None` or absent, and [`ClusterFacts::unread`] has the
/// reason.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterFacts {
    /// Context of the configuration.
    pub context: String,
    /// Namespace of the pods.
    pub namespace: String,
    /// The pods, by name.
    pub pods: Vec<PodFacts>,
    /// Nodes of the pods, by name.
    pub nodes: Vec<NodeFacts>,
    /// Autoscalers of the namespace.
    pub scalers: Vec<Scaler>,
    /// Budgets of the namespace; `None`: not read.
    pub budgets: Option<Vec<Budget>>,
    /// Configuration of kube-proxy, for all nodes; `None`: not read.
    pub kube_proxy: Option<KubeProxy>,
    /// Things that could not be read, each with the reason.
    pub unread: Vec<(String, String)>,
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodFacts {
    /// Its name.
    pub name: String,
    /// Kind and name of the workload that created the pod, such as `Deployment` and `web`.
    pub workload: Option<(String, String)>,
    /// Node of the pod.
    pub node: Option<String>,
    /// Quality of service class: `Guaranteed`, `Burstable` or `BestEffort`.
    pub qos: Option<String>,
    /// True if the pod uses the node's network.
    pub has_host_network: bool,
    /// Sysctls of the pod's security context.
    pub sysctls: Vec<(String, String)>,
    /// Reason why the pod was refused or ended, as the kubelet reports it: `SysctlForbidden`, `Evicted`.
    pub reason: Option<String>,
    /// Message that explains the reason.
    pub message: Option<String>,
    /// Containers of the pod, without init containers.
    pub containers: Vec<ContainerFacts>,
}

/// A container of a pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContainerFacts {
    /// Its name.
    pub name: String,
    /// CPUs that the container requests.
    pub cpu_request: Option<f64>,
    /// Limit of CPU time, in CPUs.
    pub cpu_limit: Option<f64>,
    /// Limit of memory, bytes.
    pub memory_limit: Option<f64>,
    /// True if the container was last terminated for lack of memory.
    pub was_killed_for_memory: bool,
    /// CPUs that a process in the container may run on; `None`: not queried, or the query failed.
    pub cpus: Option<CpuSet>,
}

impl PodFacts {
    /// Returns true if the kubelet's policy `static` gives some of the containers CPUs of their own.
    pub fn may_have_own_cpus(&self) -> bool {
        let is_guaranteed = self.qos.as_deref() == Some("Guaranteed");
        is_guaranteed && self.containers.iter().any(|one| one.whole_cpus().is_some())
    }
}

impl ContainerFacts {
    /// Returns the requested CPUs if they are a whole number.
    pub fn whole_cpus(&self) -> Option<f64> {
        self.cpu_request.filter(|cpus| *cpus >= 1.0 && cpus.fract() == 0.0)
    }
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// CPUs.
    pub cpus: Option<f64>,
    /// The kubelet's CPU manager policy: `none` or `static`.
    pub cpu_manager: Option<String>,
    /// Patterns of sysctls that the node's kubelet allows besides the safe ones; `None`: not read.
    pub allowed_sysctls: Option<Vec<String>>,
}

/// An autoscaler: it changes the number of a workload's pods, or their requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaler {
    /// Its name.
    pub name: String,
    /// Kind and name of the scaled workload.
    pub target: (String, String),
    /// Action of the autoscaler.
    pub does: Scaling,
}

/// Action of an autoscaler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scaling {
    /// Changes the number of pods within these bounds (HorizontalPodAutoscaler).
    Replicas {
        /// Minimum number of pods.
        least: i32,
        /// Maximum number of pods.
        most: i32,
    },
    /// Changes requests, in this update mode (VerticalPodAutoscaler): `Off`, `Initial`, `Recreate`, `InPlaceOrRecreate` or
    /// `Auto`.
    Requests(String),
}

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// Names of the pods that the budget covers.
    pub pods: Vec<String>,
    /// Number of those pods that may be evicted now.
    pub allowed: i32,
}

/// Settings of kube-proxy (KubeProxyConfiguration); defaults where it sets nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeProxy {
    /// `iptables`, `ipvs` or `nftables`.
    pub mode: String,
    /// Maximum of tracked connections for each CPU of a node; 0: the kernel's setting is left alone.
    pub conntrack_for_each_cpu: u64,
    /// Lower bound of a node's maximum of tracked connections.
    pub conntrack_at_least: u64,
}

impl Cluster {
    /// Reads the pods of the namespace, all or those with a label, and the facts about them. Whatever the user may not
    /// read is listed in [`ClusterFacts::unread`].
    ///
    /// # Errors
    /// The pods cannot be read.
    pub fn facts(&self, label: Option<&NodeLabel>) -> Result<ClusterFacts, KubeError> {
        let read = self.inner.within(WITHIN, read(&self.inner, label));
        read.unwrap_or_else(|| {
            Err(KubeError::Overdue {
                what: "the namespace was not read".to_owned(),
                within: WITHIN,
            })
        })
    }
}

async fn read(inner: &Inner, label: Option<&NodeLabel>) -> Result<ClusterFacts, KubeError> {
    let labelled = label.map_or_else(ListParams::default, |label| {
        ListParams::default().labels(&format!("{}={}", label.key, label.value))
    });
    let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), &inner.namespace);
    let list = api.list(&labelled).await;
    let pods = list.map_err(|error| inner.failed("list pods", error))?.items;
    let mut facts = ClusterFacts {
        context: inner.context.clone(),
        namespace: inner.namespace.clone(),
        pods: pods.iter().map(pod).collect(),
        ..ClusterFacts::default()
    };
    nodes(inner, &mut facts).await;
    scalers(inner, &mut facts).await;
    budgets(inner, &pods, &mut facts).await;
    cpusets::read(inner, &pods, &mut facts).await;
    kube_proxy(inner, &mut facts).await;
    Ok(facts)
}

impl ClusterFacts {
    /// Returns the result of a request; records a failure in `unread` and returns `None`.
    pub fn note<T>(
        &mut self,
        what: impl Into<String>,
        came: Result<T, impl ToString>,
    ) -> Option<T> {
        came.map_err(|error| self.unread.push((what.into(), error.to_string()))).ok()
    }
}

fn pod(pod: &v1::Pod) -> PodFacts {
    let spec = pod.spec.clone().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    let security = spec.security_context.unwrap_or_default();
    let sysctls = security.sysctls.into_iter().flatten();
    let states = status.container_statuses.unwrap_or_default();
    PodFacts {
        name: pod.name_any(),
        workload: workload(pod),
        node: spec.node_name,
        qos: status.qos_class,
        has_host_network: spec.host_network.unwrap_or(false),
        sysctls: sysctls.map(|one| (one.name, one.value)).collect(),
        reason: status.reason,
        message: status.message,
        containers: spec
            .containers
            .into_iter()
            .map(|container| {
                let resources = container.resources.unwrap_or_default();
                ContainerFacts {
                    cpu_request: find_amount(resources.requests.as_ref(), "cpu"),
                    cpu_limit: find_amount(resources.limits.as_ref(), "cpu"),
                    memory_limit: find_amount(resources.limits.as_ref(), "memory"),
                    was_killed_for_memory: was_killed(&states, &container.name).unwrap_or(false),
                    cpus: None,
                    name: container.name,
                }
            })
            .collect(),
    }
}

fn find_amount(amounts: Option<&BTreeMap<String, Quantity>>, name: &str) -> Option<f64> {
    amount(amounts?.get(name)?)
}

fn was_killed(states: &[v1::ContainerStatus], container: &str) -> Option<bool> {
    let last = states.iter().find(|state| state.name == container)?.last_state.clone();
    Some(last?.terminated?.reason? == "OOMKilled")
}

/// Returns kind and name of the workload that created a pod. For a ReplicaSet this is its Deployment, whose name is a
/// prefix of the ReplicaSet's.
fn workload(pod: &v1::Pod) -> Option<(String, String)> {
    let owner = pod.owner_references().iter().find(|one| one.controller == Some(true))?;
    let hash = pod.labels().get("pod-template-hash");
    let deployment = hash.and_then(|hash| owner.name.strip_suffix(hash)?.strip_suffix('-'));
    Some(match (owner.kind.as_str(), deployment) {
        ("ReplicaSet", Some(name)) => ("Deployment".to_owned(), name.to_owned()),
        (kind, _) => (kind.to_owned(), owner.name.clone()),
    })
}

/// Parses a Kubernetes quantity: `250m`, `2`, `1Gi`, `1e3`.
fn amount(quantity: &Quantity) -> Option<f64> {
    let text = quantity.0.trim();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let units = [
        ("Ki", 1_024.0_f64.powi(1)),
        ("Mi", 1_024.0_f64.powi(2)),
        ("Gi", 1_024.0_f64.powi(3)),
        ("Ti", 1_024.0_f64.powi(4)),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
    ];
    units.iter().find_map(|(unit, factor)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * factor)
    })
}

fn texts_in(value: &Value) -> Vec<String> {
    let elements = value.as_array().into_iter().flatten();
    elements.filter_map(|element| element.as_str().map(str::to_owned)).collect()
}

async fn nodes(inner: &Inner, facts: &mut ClusterFacts) {
    let mut names: Vec<String> = facts.pods.iter().filter_map(|pod| pod.node.clone()).collect();
    names.sort_unstable();
    names.dedup();
    let api: Api<v1::Node> = Api::all(inner.client.clone());
    for name in names {
        let node = api.get(&name).await;
        let node = facts.note(format!("node {name}"), node.map_err(|error| describe(inner, error)));
        let capacity = node.and_then(|node| node.status?.capacity);
        let kubelet = get(inner, &format!("/api/v1/nodes/{name}/proxy/configz")).await;
        let kubelet = facts
            .note(format!("the kubelet's settings on node {name}"), kubelet)
            .map(|document| document["kubeletconfig"].clone());
        facts.nodes.push(NodeFacts {
            cpus: capacity.and_then(|all| amount(all.get("cpu")?)),
            cpu_manager: kubelet
                .as_ref()
                .and_then(|it| it["cpuManagerPolicy"].as_str().map(str::to_owned)),
            allowed_sysctls: kubelet.as_ref().map(|it| texts_in(&it["allowedUnsafeSysctls"])),
            name,
        });
    }
}

/// Fetches a document that is not an API object.
async fn get(inner: &Inner, path: &str) -> Result<Value, String> {
    let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    let answer = inner.client.request(request).await;
    answer.map_err(|error| describe(inner, error))
}

/// Describes an error without the request, which the caller names.
fn describe(inner: &Inner, error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message,
        error => inner.failed("read it", error).to_string(),
    }
}

async fn scalers(inner: &Inner, facts: &mut ClusterFacts) {
    let api: Api<HorizontalPodAutoscaler> = Api::namespaced(inner.client.clone(), &inner.namespace);
    let list = api.list(&ListParams::default()).await;
    let list = facts.note("HorizontalPodAutoscalers", list.map_err(|error| describe(inner, error)));
    let horizontal = list.into_iter().flatten().filter_map(|one| {
        let name = one.name_any();
        let spec = one.spec?;
        Some(Scaler {
            name,
            target: (spec.scale_target_ref.kind, spec.scale_target_ref.name),
            does: Scaling::Replicas {
                least: spec.min_replicas.unwrap_or(1),
                most: spec.max_replicas,
            },
        })
    });
    facts.scalers.extend(horizontal);
    let kind = GroupVersionKind::gvk("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler");
    let api: Api<DynamicObject> =
        Api::namespaced_with(inner.client.clone(), &inner.namespace, &ApiResource::from_gvk(&kind));
    let list = match api.list(&ListParams::default()).await {
        // A cluster without such objects.
        Err(kube::Error::Api(status)) if status.code == 404 => return,
        list => list.map_err(|error| describe(inner, error)),
    };
    let list = facts.note("VerticalPodAutoscalers", list);
    let vertical = list.into_iter().flatten().map(|scaler| {
        let mode = text_at(&scaler, "/spec/updatePolicy/updateMode");
        Scaler {
            name: scaler.name_any(),
            target: (
                text_at(&scaler, "/spec/targetRef/kind"),
                text_at(&scaler, "/spec/targetRef/name"),
            ),
            does: Scaling::Requests(if mode.is_empty() { "Auto".to_owned() } else { mode }),
        }
    });
    facts.scalers.extend(vertical);
}

fn text_at(object: &DynamicObject, pointer: &str) -> String {
    object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

async fn budgets(inner: &Inner, pods: &[v1::Pod], facts: &mut ClusterFacts) {
    let api: Api<PodDisruptionBudget> = Api::namespaced(inner.client.clone(), &inner.namespace);
    let answer = api.list(&ListParams::default()).await.map_err(|error| describe(inner, error));
    let Some(list) = facts.note("PodDisruptionBudgets", answer) else {
        return;
    };
    facts.budgets = Some(
        list.into_iter()
            .map(|budget| Budget {
                name: budget.name_any(),
                pods: budget
                    .spec
                    .and_then(|spec| spec.selector)
                    .map_or_else(Vec::new, |selector| select_names(pods, selector)),
                allowed: budget.status.map_or(0, |status| status.disruptions_allowed),
            })
            .collect(),
    );
}

fn select_names(pods: &[v1::Pod], selector: LabelSelector) -> Vec<String> {
    let Ok(selector) = Selector::try_from(selector) else {
        return Vec::new();
    };
    pods.iter().filter(|pod| selector.matches(pod.labels())).map(ResourceExt::name_any).collect()
}

/// Reads the settings of kube-proxy from a ConfigMap, as kubeadm and many others store them.
async fn kube_proxy(inner: &Inner, facts: &mut ClusterFacts) {
    let api: Api<v1::ConfigMap> = Api::namespaced(inner.client.clone(), "kube-system");
    let map = api.get("kube-proxy").await;
    let read = map.map_err(|error| describe(inner, error)).and_then(|map| {
        let text = map
            .data
            .unwrap_or_default()
            .remove("config.conf")
            .ok_or_else(|| "the ConfigMap has no config.conf".to_owned())?;
        settings(&text)
    });
    facts.kube_proxy = facts.note("kube-proxy's settings, ConfigMap kube-system/kube-proxy", read);
}

/// Parses the settings of kube-proxy. Defaults are those of `SetDefaults_KubeProxyConfiguration` in Kubernetes'
/// pkg/proxy/apis/config/v1alpha1/defaults.go; no mode means iptables.
fn settings(text: &str) -> Result<KubeProxy, String> {
    let read: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let for_each_cpu = read.pointer("/conntrack/maxPerCore").and_then(Value::as_u64);
    let at_least = read.pointer("/conntrack/min").and_then(Value::as_u64);
    let mode = read["mode"].as_str().filter(|mode| !mode.is_empty());
    Ok(KubeProxy {
        mode: mode.unwrap_or("iptables").to_owned(),
        conntrack_for_each_cpu: for_each_cpu.unwrap_or(32 * 1024),
        conntrack_at_least: at_least.unwrap_or(128 * 1024),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_and_defaults_are_kubernetes_own() {
        for (text, expected) in [
            ("2", Some(2.0)),
            ("250m", Some(0.25)),
            ("1.5", Some(1.5)),
            ("1Gi", Some(1_073_741_824.0)),
            ("64M", Some(64e6)),
            ("1e3", Some(1000.0)),
            ("much", None),
        ] {
            assert_eq!(amount(&Quantity(text.to_owned())), expected, "{text}");
        }
        let read = settings("mode: \"\"\nconntrack: {maxPerCore: null, min: 0}").unwrap();
        assert_eq!(
            (read.mode.as_str(), read.conntrack_for_each_cpu, read.conntrack_at_least),
            ("iptables", 32768, 0)
        );
        assert!(settings("[").is_err());
    }
}
