//! Settings of the kernel of nodes, which weir changes and puts back as it does objects: each setting of each node is one,
//! and the node's boot is its identity.
//!
//! What reads and sets it is `weir sysctl` in a privileged pod of weir's image in the node's network namespace, started by
//! the exec stream. There is one such pod for each node as long as something is changed; it ends by itself when nobody has
//! asked for a while. Those of several nodes are made and waited for together ([`reach`]), and a node that is lost holds up
//! nothing of the others.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::commands;
use crate::error::KubeError;
use crate::generators;
use crate::inner::{Hands, Inner};
use crate::object_ref::ObjectRef;
use crate::objects::{self, Place};
use crate::{health, pods, trouble, workload};

/// Where its value stands in what weir keeps of it.
pub const VALUE: &str = "/value";
/// How long a pod may take until it runs: its image may have to be pulled.
const WITHIN: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(200);
/// How often a pod is asked that prints nothing.
const ATTEMPTS: u32 = 5;
/// How long pods that were asked to go may take: they have a second.
const GONE: Duration = Duration::from_secs(20);
/// How long its removal may be asked for.
const REMOVAL: Duration = Duration::from_secs(5);

impl Cluster {
    /// Says which image has weir for the pods that reach nodes.
    pub fn reach_nodes_by(&self, image: &str) {
        reach_by(&self.inner, image);
    }
}

pub(crate) fn reach_by(inner: &Inner, image: &str) {
    image.clone_into(&mut hands(inner).image);
}

/// The image that was said, in what is kept of a setting: who puts it back needs it.
pub(crate) fn image_of(kept: &Value) -> Option<&str> {
    kept["image"].as_str()
}

fn hands(inner: &Inner) -> MutexGuard<'_, Hands> {
    inner.hands.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The nodes that have pods of a workload, each once.
///
/// # Errors
/// There is no such workload, or its pods cannot be listed.
pub fn nodes_of(cluster: &Cluster, object: &ObjectRef) -> Result<Vec<String>, KubeError> {
    let (_, pods) = workload::with_pods(&cluster.inner, object)?;
    let nodes = pods.into_iter().filter_map(|pod| pod.spec?.node_name);
    let mut nodes: Vec<String> = nodes.collect();
    nodes.sort();
    nodes.dedup();
    Ok(nodes)
}

/// The setting as it is.
pub(crate) fn now(inner: &Inner, object: &ObjectRef) -> Result<Value, KubeError> {
    let image = hands(inner).image.clone();
    asked(inner, object, &[]).map(|(boot, value)| text(&boot, &image, &value))
}

/// What is kept of a setting.
fn text(boot: &str, image: &str, value: &str) -> Value {
    json!({"metadata": {"uid": boot}, "image": image, "value": value})
}

/// Gives it a value, unless it has another now than the one before; `None` then.
pub(crate) fn replace(
    inner: &Inner,
    object: &ObjectRef,
    (before, wanted): (&Value, &Value),
) -> Result<Option<Value>, KubeError> {
    let value = |text: &Value| text["value"].as_str().unwrap_or_default().to_owned();
    let (before, wanted) = (value(before), value(wanted));
    let (boot, now) = asked(inner, object, &[&before, &wanted])?;
    let image = hands(inner).image.clone();
    Ok((now == wanted).then(|| text(&boot, &image, &now)))
}

/// What `weir sysctl` prints on the node: which boot it is, and the value. An exec stream may lose what a short process has
/// printed; asked again, it changes nothing that is changed already.
fn asked(inner: &Inner, object: &ObjectRef, more: &[&str]) -> Result<(String, String), KubeError> {
    let words = [objects::PROGRAM, "sysctl", &object.resource];
    let words = words.iter().chain(more).map(ToString::to_string);
    let command: Vec<String> = words.collect();
    let (namespace, pod) = hand(inner, object)?;
    for _ in 0..ATTEMPTS {
        let of = (&*namespace, &*pod);
        let printed = commands::printed_in(inner, of, objects::CONTAINER, &command);
        let printed = printed.map_err(|error| note(inner, &object.name, error))?;
        if let Some((boot, value)) = printed.trim_end().split_once('\n') {
            return Ok((boot.to_owned(), value.to_owned()));
        }
    }
    Err(KubeError::Agent {
        pod,
        why: format!("`{}` prints nothing", command.join(" ")),
    })
}

/// What an error at a node means. A node that is gone, or silent, is not asked again before the next [`reach`].
fn note(inner: &Inner, node: &str, error: KubeError) -> KubeError {
    let error = health::explained(inner, node, error);
    if let KubeError::Node { .. } | KubeError::Overdue { .. } = error {
        remember(inner, node, &error);
    }
    error
}

/// Keeps why a node cannot be reached.
fn remember(inner: &Inner, node: &str, error: &KubeError) {
    let why = match error {
        KubeError::Node { why, .. } => why.clone(),
        error => error.to_string(),
    };
    hands(inner).lost.insert(node.to_owned(), why);
}

/// The pod that reaches an object's node, which is made where there is none that runs.
fn hand(inner: &Inner, object: &ObjectRef) -> Result<(String, String), KubeError> {
    let node = &object.name;
    let known = {
        let hands = hands(inner);
        if let Some(why) = hands.lost.get(node) {
            let (node, why) = (node.clone(), why.clone());
            return Err(KubeError::Node { node, why });
        }
        hands.pods.get(node).cloned()
    };
    if let Some(pod) = known
        && is_running(&found(inner, &pod)?)
    {
        return Ok(pod);
    }
    reach(inner, [object]).map_or(Ok(()), Err)?;
    let made = hands(inner).pods.get(node).cloned();
    made.ok_or_else(|| overdue(node))
}

/// Makes the pods that reach these nodes where there are none, all at once, and waits for them together. What keeps it from a
/// node is remembered for whoever asks for that node next; the first such error is given.
pub(crate) fn reach<'a>(
    inner: &Inner,
    objects: impl IntoIterator<Item = &'a ObjectRef>,
) -> Option<KubeError> {
    let of_nodes = objects.into_iter().filter(|object| object.is_of_node());
    let nodes: BTreeMap<&str, &ObjectRef> =
        of_nodes.map(|object| (&*object.name, object)).collect();
    let mut coming = BTreeMap::new();
    let mut failed = Vec::new();
    for (node, object) in nodes {
        hands(inner).lost.remove(node);
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
                hands(inner).pods.insert((*node).to_owned(), pod.clone());
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

/// The pod of a node that runs, or one that is made. Of a node that is gone none is.
fn begin(inner: &Inner, node: &str, object: &ObjectRef) -> Result<(String, String), KubeError> {
    let known = hands(inner).pods.get(node).cloned();
    if let Some(pod) = known
        && is_running(&found(inner, &pod)?)
    {
        return Ok(pod);
    }
    if let Some(why) = health::lost(inner, node) {
        let node = node.to_owned();
        return Err(KubeError::Node { node, why });
    }
    let name = generators::name()?;
    let place = Place {
        namespace: &object.namespace,
        run: &name,
    };
    let pod = objects::hand(&hands(inner).image, place, node);
    let what = format!("the privileged pod that sets {object}");
    let made = generators::make::<v1::Pod>(inner, &object.namespace, pod, &what);
    inner.run("create a pod", made)?;
    let pod = (object.namespace.clone(), name);
    // From now on it is removed at the end.
    hands(inner).pods.insert(node.to_owned(), pod.clone());
    Ok(pod)
}

/// Whether the pod of a node can be used; an error where it never will be.
fn state(inner: &Inner, node: &str, pod: &(String, String)) -> Result<bool, KubeError> {
    let now = found(inner, pod)?;
    let (is_running, is_ready) = (is_running(&now), now.as_ref().is_some_and(pods::is_ready));
    if is_running && is_ready {
        return Ok(true);
    }
    // What runs there is not heard of when its node is not.
    if let Some(why) = health::lost(inner, node) {
        let node = node.to_owned();
        return Err(KubeError::Node { node, why });
    }
    let trouble = now.as_ref().and_then(trouble::of_pod);
    match trouble.filter(|trouble| trouble.is_final) {
        None => Ok(is_running),
        Some(trouble) => {
            let told = pods::told_in(inner, &pod.0, ("pod", &pod.1), trouble);
            Err(inner
                .within(WITHIN, told)
                .unwrap_or_else(|| overdue(&pod.1)))
        }
    }
}

fn found(inner: &Inner, (namespace, pod): &(String, String)) -> Result<Option<v1::Pod>, KubeError> {
    let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), namespace);
    inner.run("read a pod", async {
        let found = api.get_opt(pod).await;
        found.map_err(|error| inner.failed("read a pod", error))
    })
}

fn is_running(pod: &Option<v1::Pod>) -> bool {
    let status = pod.as_ref().and_then(|pod| pod.status.as_ref());
    status.is_some_and(|status| status.phase.as_deref() == Some("Running"))
}

fn overdue(pod: &str) -> KubeError {
    KubeError::Overdue {
        what: format!("pod `{pod}` does not run"),
        within: WITHIN,
    }
}

/// Removes the pods by which nodes were reached, and gives them. What cannot be removed ends by itself, or by `weir restore`.
pub(crate) fn leave(inner: &Inner) -> Vec<(String, String)> {
    let (pods, lost) = {
        let mut hands = hands(inner);
        (
            std::mem::take(&mut hands.pods),
            std::mem::take(&mut hands.lost),
        )
    };
    for (namespace, pod) in pods.values() {
        let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), namespace);
        let _ = inner.within(REMOVAL, api.delete(pod, &DeleteParams::background()));
    }
    let there = pods
        .into_iter()
        .filter(|(node, _)| !lost.contains_key(node));
    there.map(|(_, pod)| pod).collect()
}

/// Waits until these pods are gone, for a while: whoever has restored everything expects nothing of weir's to be left.
pub(crate) fn await_gone(inner: &Inner, pods: &[(String, String)]) {
    let until = Instant::now() + GONE;
    let is_there = |pod: &(String, String)| matches!(found(inner, pod), Ok(Some(_)));
    while Instant::now() < until && pods.iter().any(is_there) {
        std::thread::sleep(LOOK);
    }
}
