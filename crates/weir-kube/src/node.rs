//! Settings of the kernel of nodes, which weir changes and puts back as it does objects: each setting of each node is one,
//! and the node's boot is its identity.
//!
//! What reads and sets it is `weir sysctl` in a privileged pod of weir's image in the node's network namespace, started by
//! the exec stream. There is one such pod for each node as long as something is changed; it ends by itself when nobody has
//! asked for a while.

use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::error::KubeError;
use crate::generators;
use crate::inner::{Hands, Inner};
use crate::object_ref::ObjectRef;
use crate::objects::{self, Place};
use crate::{pods, trouble, workload};

/// Where its value stands in what weir keeps of it.
pub const VALUE: &str = "/value";
/// How long a pod may take until it runs: its image may have to be pulled.
const WITHIN: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(200);
/// How often a pod is asked that prints nothing.
const ATTEMPTS: u32 = 5;
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
        let printed = workload::printed_in(inner, of, objects::CONTAINER, &command)?;
        if let Some((boot, value)) = printed.trim_end().split_once('\n') {
            return Ok((boot.to_owned(), value.to_owned()));
        }
    }
    Err(KubeError::Agent {
        pod,
        why: format!("`{}` prints nothing", command.join(" ")),
    })
}

/// The pod that reaches an object's node, which is made where there is none that runs.
fn hand(inner: &Inner, object: &ObjectRef) -> Result<(String, String), KubeError> {
    let node = &object.name;
    let mut hands = hands(inner);
    if let Some((namespace, pod)) = hands.pods.get(node)
        && is_running(&found(inner, (namespace, pod))?)
    {
        return Ok((namespace.clone(), pod.clone()));
    }
    let name = generators::name()?;
    let place = Place {
        namespace: &object.namespace,
        run: &name,
    };
    let pod = objects::hand(&hands.image, place, node);
    let what = format!("the privileged pod that sets {object}");
    let made = generators::make::<v1::Pod>(inner, &object.namespace, pod, &what);
    inner.run("create a pod", made)?;
    let pod = (object.namespace.clone(), name);
    hands.pods.insert(node.clone(), pod.clone());
    wait(inner, &pod)?;
    Ok(pod)
}

fn found(inner: &Inner, (namespace, pod): (&str, &str)) -> Result<Option<v1::Pod>, KubeError> {
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

fn wait(inner: &Inner, (namespace, name): &(String, String)) -> Result<(), KubeError> {
    let until = Instant::now() + WITHIN;
    loop {
        let pod = found(inner, (namespace, name))?;
        if is_running(&pod) {
            return Ok(());
        }
        let trouble = pod.as_ref().and_then(trouble::of_pod);
        if let Some(trouble) = trouble.filter(|trouble| trouble.is_final) {
            let told = pods::told_in(inner, namespace, ("pod", name), trouble);
            return Err(inner.within(WITHIN, told).unwrap_or_else(|| overdue(name)));
        }
        if Instant::now() > until {
            return Err(overdue(name));
        }
        std::thread::sleep(LOOK);
    }
}

fn overdue(pod: &str) -> KubeError {
    KubeError::Overdue {
        what: format!("pod `{pod}` does not run"),
        within: WITHIN,
    }
}

/// Removes the pods by which nodes were reached. What cannot be removed ends by itself, or by `weir restore`.
pub(crate) fn leave(inner: &Inner) {
    let pods = std::mem::take(&mut hands(inner).pods);
    for (namespace, pod) in pods.values() {
        let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), namespace);
        let _ = inner.within(REMOVAL, api.delete(pod, &DeleteParams::background()));
    }
}
