//! Pods as the cluster reports them.

use std::net::IpAddr;

use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::ListParams;

use crate::error::KubeError;
use crate::health;
use crate::inner::Inner;
use crate::objects;
use crate::trouble::{self, Trouble};

/// Number of a pod's last events that are reported.
const MOST_EVENTS: usize = 8;
/// Annotation that contains the index of a Job's pod.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// A running pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Name of the pod.
    pub name: String,
    /// Index within the Job, from 0.
    pub index: u32,
    /// Node of the pod.
    pub node: String,
    /// Address of the pod.
    pub address: Option<IpAddr>,
}

pub(crate) fn sorted(mut pods: Vec<Pod>) -> Vec<Pod> {
    pods.sort_by_key(|pod| pod.index);
    pods
}

pub(crate) async fn of_run(inner: &Inner, run: &str) -> Result<Vec<v1::Pod>, KubeError> {
    let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), &inner.namespace);
    let labelled = ListParams::default().labels(&objects::selector(run));
    let pods = api.list(&labelled).await;
    Ok(pods.map_err(|error| inner.failed("list pods", error))?.items)
}

/// Converts a pod whose process runs; `None` for any other.
pub fn running(pod: &v1::Pod) -> Option<Pod> {
    let status = pod.status.as_ref()?;
    let mut containers = status.container_statuses.iter().flatten();
    let runs =
        containers.any(|one| one.state.as_ref().is_some_and(|state| state.running.is_some()));
    let index = pod.metadata.annotations.as_ref()?.get(INDEX)?;
    (runs && pod.metadata.deletion_timestamp.is_none()).then(|| {
        Some(Pod {
            name: pod.metadata.name.clone()?,
            index: index.parse().ok()?,
            node: pod.spec.as_ref()?.node_name.clone()?,
            address: status.pod_ip.as_ref().and_then(|ip| ip.parse().ok()),
        })
    })?
}

/// Returns true if a pod is an origin server that listens.
pub(crate) fn is_ready_origin(pod: &v1::Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels.is_some_and(objects::is_origin) && is_ready(pod)
}

/// Returns true if a pod is ready. Pods on a node that does not report are not.
pub fn is_ready(pod: &v1::Pod) -> bool {
    let mut ready = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .filter(|one| one.type_ == "Ready");
    ready.any(|one| one.status == "True")
}

/// Returns the cluster's events about an object, oldest first.
pub async fn events(inner: &Inner, name: &str) -> Vec<v1::Event> {
    events_in(inner, &inner.namespace, name).await
}

pub async fn events_in(inner: &Inner, namespace: &str, name: &str) -> Vec<v1::Event> {
    let api: Api<v1::Event> = Api::namespaced(inner.client.clone(), namespace);
    let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
    let mut events = api.list(&about).await.map_or(Vec::new(), |list| list.items);
    events.sort_by_key(|event| {
        event
            .last_timestamp
            .as_ref()
            .map(|time| time.0)
            .or(event.event_time.as_ref().map(|time| time.0))
    });
    events
}

pub async fn report(inner: &Inner, kind: &str, name: &str, trouble: Trouble) -> KubeError {
    report_in(inner, &inner.namespace, (kind, name), trouble).await
}

/// Creates the error for an object that does not run, with its events.
pub async fn report_in(
    inner: &Inner,
    namespace: &str,
    (kind, name): (&str, &str),
    trouble: Trouble,
) -> KubeError {
    let events = events_in(inner, namespace, name).await;
    let first = events.len().saturating_sub(MOST_EVENTS);
    KubeError::Pods {
        what: format!("{kind} `{name}` does not run"),
        why: trouble.why,
        hint: trouble.hint,
        events: events[first..].iter().map(trouble::line).collect(),
    }
}

/// Returns what became of a pod whose agent was lost; `None` if nothing is known.
pub(crate) async fn fate(inner: &Inner, name: &str) -> Option<String> {
    let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), &inner.namespace);
    match api.get_opt(name).await {
        Ok(None) => Some(format!("pod `{name}` was deleted")),
        Ok(Some(pod)) => {
            let node =
                pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
            if let Ok(Some(why)) = health::of(inner, &node).await {
                return Some(format!("node `{node}`: {why}"));
            }
            trouble::of_pod(&pod).map(|trouble| format!("pod `{name}`: {}", trouble.why))
        }
        Err(error) => Some(inner.failed(&format!("ask about pod `{name}`"), error).to_string()),
    }
}
