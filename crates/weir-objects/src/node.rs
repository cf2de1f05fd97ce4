//! Kernel settings of nodes, which weir changes and puts back like objects: each setting of each node is one object,
//! whose identity is the node's boot.
//!
//! Settings are read and changed by `weir sysctl` in a privileged pod of weir's image in the node's network namespace,
//! started through the exec stream. Each node has one such pod as long as something is changed; the pod ends by itself
//! when it has not been used for a while. The pods of several nodes are created and awaited together ([`reach`]), and a
//! lost node does not delay the others.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use weir_kube::Cluster;
use weir_kube::KubeError;
use weir_kube::ObjectRef;
use weir_kube::inner::{Hands, Inner};
use weir_kube::objects::{self, RunScope};
use weir_kube::{commands, generators, health, pods, trouble, workload};

/// JSON pointer to the value of a setting, in the object that represents the setting.
pub const VALUE: &str = "/value";
/// Time limit for a pod to run: its image may have to be pulled.
const WITHIN: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(200);
/// Number of attempts if a command prints nothing.
const ATTEMPTS: u32 = 5;
/// Time limit for deleted pods to be gone; their grace period is one second.
const GONE: Duration = Duration::from_secs(20);
/// Time limit for the request to delete a pod.
const REMOVAL: Duration = Duration::from_secs(5);

/// Sets the image that contains weir, for the pods through which nodes are reached.
pub fn reach_nodes_by(cluster: &Cluster, image: &str) {
    reach_by(&cluster.inner, image);
}

pub(crate) fn reach_by(inner: &Inner, image: &str) {
    image.clone_into(&mut lock_hands(inner).image);
}

/// Returns the image that is stored with a setting, which is needed to put the setting back.
pub(crate) fn image_of(kept: &Value) -> Option<&str> {
    kept["image"].as_str()
}

fn lock_hands(inner: &Inner) -> MutexGuard<'_, Hands> {
    inner.hands.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the nodes that have pods of a workload, each once.
///
/// # Errors
/// The workload does not exist, or its pods cannot be listed.
pub fn nodes_of(cluster: &Cluster, object: &ObjectRef) -> Result<Vec<String>, KubeError> {
    let (_, pods) = workload::with_pods(&cluster.inner, object)?;
    let nodes = pods.into_iter().filter_map(|pod| pod.spec?.node_name);
    let mut nodes: Vec<String> = nodes.collect();
    nodes.sort();
    nodes.dedup();
    Ok(nodes)
}

/// Reads a setting.
pub(crate) fn now(inner: &Inner, object: &ObjectRef) -> Result<Value, KubeError> {
    let image = lock_hands(inner).image.clone();
    run_sysctl(inner, object, &[]).map(|(boot, value)| text(&boot, &image, &value))
}

/// Builds the object that represents a setting.
fn text(boot: &str, image: &str, value: &str) -> Value {
    json!({"metadata": {"uid": boot}, "image": image, "value": value})
}

/// Changes a setting; returns `None` if its value is neither `before` nor `wanted`.
pub(crate) fn replace(
    inner: &Inner,
    object: &ObjectRef,
    (before, wanted): (&Value, &Value),
) -> Result<Option<Value>, KubeError> {
    let before = before["value"].as_str().unwrap_or_default();
    let wanted = wanted["value"].as_str().unwrap_or_default();
    let (boot, now) = run_sysctl(inner, object, &[before, wanted])?;
    let image = lock_hands(inner).image.clone();
    Ok((now == wanted).then(|| text(&boot, &image, &now)))
}

/// Runs `weir sysctl` on the node and returns its output: the node's boot, and the value. An exec stream may lose the
/// output of a short process. Running it again is safe, since a completed change is not repeated.
fn run_sysctl(
    inner: &Inner,
    object: &ObjectRef,
    more: &[&str],
) -> Result<(String, String), KubeError> {
    let command: Vec<String> = [objects::PROGRAM, "sysctl", &object.resource]
        .iter()
        .chain(more)
        .map(ToString::to_string)
        .collect();
    let (namespace, pod) = hand(inner, object)?;
    for _ in 0..ATTEMPTS {
        let target = (&*namespace, &*pod);
        let output = commands::run_command_in(inner, target, objects::CONTAINER, &command)
            .map_err(|error| note(inner, &object.name, error))?;
        if let Some((boot, value)) = output.trim_end().split_once('\n') {
            return Ok((boot.to_owned(), value.to_owned()));
        }
    }
    Err(KubeError::Agent { pod, why: format!("`{}` prints nothing", command.join(" ")) })
}

/// Converts an error of an operation on a node. A node that is lost or silent is not used again before the next
/// [`reach`].
fn note(inner: &Inner, node: &str, error: KubeError) -> KubeError {
    let error = health::explained(inner, node, error);
    if let KubeError::Node { .. } | KubeError::Overdue { .. } = error {
        remember(inner, node, &error);
    }
    error
}

/// Stores the reason why a node cannot be reached.
fn remember(inner: &Inner, node: &str, error: &KubeError) {
    let why = match error {
        KubeError::Node { why, .. } => why.clone(),
        error => error.to_string(),
    };
    lock_hands(inner).lost.insert(node.to_owned(), why);
}

/// Returns the pod through which an object's node is reached; creates it if none runs.
fn hand(inner: &Inner, object: &ObjectRef) -> Result<(String, String), KubeError> {
    let node = &object.name;
    let present = {
        let hands = lock_hands(inner);
        if let Some(why) = hands.lost.get(node) {
            let (node, why) = (node.clone(), why.clone());
            return Err(KubeError::Node { node, why });
        }
        hands.pods.get(node).cloned()
    };
    if let Some(pod) = present
        && is_running(&read_pod(inner, &pod)?)
    {
        return Ok(pod);
    }
    reach(inner, [object]).map_or(Ok(()), Err)?;
    lock_hands(inner).pods.get(node).cloned().ok_or_else(|| overdue(node))
}

/// Creates the missing pods for these nodes, all at once, and waits for them together. The reason for each failure is
/// stored for later use of that node; the first error is returned.
pub(crate) fn reach<'a>(
    inner: &Inner,
    objects: impl IntoIterator<Item = &'a ObjectRef>,
) -> Option<KubeError> {
    let nodes: BTreeMap<&str, &ObjectRef> = objects
        .into_iter()
        .filter(|object| object.is_of_node())
        .map(|object| (&*object.name, object))
        .collect();
    let mut coming = BTreeMap::new();
    let mut failed = Vec::new();
    for (node, object) in nodes {
        lock_hands(inner).lost.remove(node);
        match begin(inner, node, object) {
            Ok(pod) => drop(coming.insert(node, pod)),
            Err(error) => {
                let is_silent = matches!(error, KubeError::Unreachable { .. });
                failed.push((node, error));
                if is_silent {
                    break;
                }
            }
        }
    }
    let until = Instant::now() + WITHIN;
    while !coming.is_empty() {
        coming.retain(|node, pod| match state(inner, node, pod) {
            Ok(true) => {
                lock_hands(inner).pods.insert((*node).to_owned(), pod.clone());
                false
            }
            Ok(false) if Instant::now() > until => {
                failed.push((*node, overdue(&pod.1)));
                false
            }
            Ok(false) => true,
            Err(error) => {
                failed.push((*node, error));
                false
            }
        });
        if !coming.is_empty() {
            std::thread::sleep(LOOK);
        }
    }
    for (node, error) in &failed {
        remember(inner, node, error);
    }
    failed.into_iter().next().map(|(_, error)| error)
}

/// Returns the running pod of a node, or creates one. Fails if the node is lost.
fn begin(inner: &Inner, node: &str, object: &ObjectRef) -> Result<(String, String), KubeError> {
    let present = lock_hands(inner).pods.get(node).cloned();
    if let Some(pod) = present
        && is_running(&read_pod(inner, &pod)?)
    {
        return Ok(pod);
    }
    if let Some(why) = health::lost(inner, node) {
        return Err(KubeError::Node { node: node.to_owned(), why });
    }
    let name = generators::name()?;
    let scope = RunScope { namespace: &object.namespace, run: &name };
    let pod = objects::hand(&lock_hands(inner).image, scope, node);
    let purpose = format!("the privileged pod that sets {object}");
    let creation = generators::make::<v1::Pod>(inner, &object.namespace, pod, &purpose);
    inner.run("create a pod", creation)?;
    let pod = (object.namespace.clone(), name);
    // From now on it is removed at the end.
    lock_hands(inner).pods.insert(node.to_owned(), pod.clone());
    Ok(pod)
}

/// Returns true if the pod of a node can be used; fails if it never will be usable.
fn state(inner: &Inner, node: &str, pod: &(String, String)) -> Result<bool, KubeError> {
    let now = read_pod(inner, pod)?;
    let (is_running, is_ready) = (is_running(&now), now.as_ref().is_some_and(pods::is_ready));
    if is_running && is_ready {
        return Ok(true);
    }
    // What runs there is not heard of when its node is not.
    if let Some(why) = health::lost(inner, node) {
        return Err(KubeError::Node { node: node.to_owned(), why });
    }
    let trouble = now.as_ref().and_then(trouble::of_pod);
    match trouble.filter(|trouble| trouble.is_final) {
        None => Ok(is_running),
        Some(trouble) => {
            let report = pods::report_in(inner, &pod.0, ("pod", &pod.1), trouble);
            Err(inner.within(WITHIN, report).unwrap_or_else(|| overdue(&pod.1)))
        }
    }
}

fn read_pod(
    inner: &Inner,
    (namespace, pod): &(String, String),
) -> Result<Option<v1::Pod>, KubeError> {
    let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), namespace);
    inner.run("read a pod", async {
        let answer = api.get_opt(pod).await;
        answer.map_err(|error| inner.failed("read a pod", error))
    })
}

fn is_running(pod: &Option<v1::Pod>) -> bool {
    let status = pod.as_ref().and_then(|pod| pod.status.as_ref());
    status.is_some_and(|status| status.phase.as_deref() == Some("Running"))
}

fn overdue(pod: &str) -> KubeError {
    KubeError::Overdue { what: format!("pod `{pod}` does not run"), within: WITHIN }
}

/// Deletes the pods through which nodes were reached, and returns those on nodes that are not lost. Pods that cannot be
/// deleted end by themselves, or by `weir restore`.
pub(crate) fn leave(inner: &Inner) -> Vec<(String, String)> {
    let (pods, lost) = {
        let mut hands = lock_hands(inner);
        (std::mem::take(&mut hands.pods), std::mem::take(&mut hands.lost))
    };
    for (namespace, pod) in pods.values() {
        let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), namespace);
        let _ = inner.within(REMOVAL, api.delete(pod, &DeleteParams::background()));
    }
    pods.into_iter().filter(|(node, _)| !lost.contains_key(node)).map(|(_, pod)| pod).collect()
}

/// Waits until these pods are gone, with a time limit: after a complete restore, users expect nothing of weir's to be
/// left.
pub(crate) fn await_gone(inner: &Inner, pods: &[(String, String)]) {
    let until = Instant::now() + GONE;
    while Instant::now() < until
        && pods.iter().any(|pod| matches!(read_pod(inner, pod), Ok(Some(_))))
    {
        std::thread::sleep(LOOK);
    }
}
