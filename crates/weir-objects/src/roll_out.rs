//! Deployments and DaemonSets whose template weir changes: roll-outs, and the effective values in their pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::Value;
use weir_kube::Cluster;
use weir_kube::KubeError;
use weir_kube::ObjectRef;
use weir_kube::commands::COMMAND;
use weir_kube::inner::Inner;
use weir_kube::{health, pods, trouble, workload};

use crate::object_path::ObjectPath;
use crate::refusals::Refusals;
use crate::unplaced::{self, Unplaced};

/// Prefix of the places that belong to a workload's pod template.
const TEMPLATE: &str = "/spec/template/";
/// Interval at which roll-outs are polled.
const LOOK: Duration = Duration::from_millis(300);
/// Interval at which nodes of pods that are not ready are checked.
const LOOK_AT_NODES: Duration = Duration::from_secs(3);
/// Time for which a pod that cannot run is tolerated if weir has not changed its workload: it may belong to an earlier
/// template and be about to be deleted.
const GOING: Duration = Duration::from_secs(10);
/// Time limit for the cluster's controllers to empty the ReplicaSet of a template that was put back.
const EMPTIED: Duration = Duration::from_secs(30);

/// A stored version of a workload's template: a ReplicaSet of a Deployment, or a ControllerRevision of a DaemonSet.
pub(crate) struct Set {
    pub(crate) name: String,
    /// Number of pods that the set should have.
    wanted: i64,
    /// Content, with the pod template at the same place as in the workload.
    text: Value,
}

/// Returns the type of the objects that store a workload's templates, as a reference without a name; `None` if weir
/// does not know the kind of workload.
fn kept_as(object: &ObjectRef) -> Option<ObjectRef> {
    let (kind, resource) = match (object.group(), object.resource.as_str()) {
        ("apps", "deployments") => ("ReplicaSet", "replicasets"),
        ("apps", "daemonsets") => ("ControllerRevision", "controllerrevisions"),
        _ => return None,
    };
    Some(ObjectRef {
        api: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        resource: resource.to_owned(),
        namespace: object.namespace.clone(),
        name: String::new(),
    })
}

/// Lists the stored templates of a workload; empty for other objects.
pub(crate) fn templates(
    inner: &Inner,
    object: &ObjectRef,
    uid: &str,
) -> Result<Vec<Set>, KubeError> {
    let Some(kept) = kept_as(object) else {
        return Ok(Vec::new());
    };
    let doing = format!("list {} of {object}", kept.resource);
    let list = inner.run(&doing, async {
        let list = kept.api(inner).list(&ListParams::default()).await;
        list.map_err(|error| inner.failed(&doing, error))
    })?;
    Ok(list
        .items
        .into_iter()
        .filter(|set| set.owner_references().iter().any(|owner| owner.uid == uid))
        .map(|set| Set {
            wanted: set.data["spec"]["replicas"].as_i64().unwrap_or(0),
            name: set.name_any(),
            text: match set.data.get("data") {
                Some(data) => data.clone(),
                None => set.data,
            },
        })
        .collect())
}

impl Set {
    /// Returns true if the template has a value of weir's. Other templates may come from changes that others roll out
    /// meanwhile.
    fn has(&self, given: &BTreeMap<String, Vec<Value>>) -> bool {
        let mut of_pods = given.iter().filter(|(at, _)| at.starts_with(TEMPLATE));
        of_pods.any(|(at, values)| {
            ObjectPath::parse(at).get(&self.text).is_some_and(|value| values.contains(value))
        })
    }
}

/// Deletes stored templates with weir's values once they have no pods any more. An unhealthy ReplicaSet would go on
/// creating pods, and all of them would displace older ones in the workload's history. `before` lists the templates
/// that existed before weir.
pub(crate) fn forget(
    inner: &Inner,
    object: &ObjectRef,
    uid: &str,
    (before, given): (&BTreeSet<String>, &BTreeMap<String, Vec<Value>>),
) -> Result<(), KubeError> {
    let Some(kept) = kept_as(object) else {
        return Ok(());
    };
    let until = Instant::now() + EMPTIED;
    loop {
        // The cluster may make one of a template that it has not yet seen put back.
        let is_seen = object.now(inner)?.is_none_or(|now| is_seen(&now));
        let mut ours = templates(inner, object, uid)?;
        ours.retain(|set| !before.contains(&set.name) && set.has(given));
        if ours.is_empty() && is_seen {
            return Ok(());
        }
        for set in ours.iter().filter(|set| set.wanted == 0 && is_seen) {
            let doing = format!("delete {} {}/{}", kept.kind, object.namespace, set.name);
            inner.run(&doing, async {
                let api = kept.api(inner);
                match api.delete(&set.name, &DeleteParams::background()).await {
                    Ok(_) => Ok(()),
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                    Err(error) => Err(inner.failed(&doing, error)),
                }
            })?;
        }
        let is_left = ours.iter().find(|set| set.wanted > 0 || !is_seen);
        let is_over = Instant::now() > until;
        match is_left {
            None if is_seen || is_over => return Ok(()),
            Some(left) if is_over => {
                return Err(KubeError::Overdue {
                    what: format!(
                        "{} {}/{} is still in use",
                        kept.kind, object.namespace, left.name
                    ),
                    within: EMPTIED,
                });
            }
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// Returns true if the cluster's controllers have seen the present text of a workload.
fn is_seen(now: &Value) -> bool {
    let observed = now["status"]["observedGeneration"].as_i64().unwrap_or(0);
    observed >= now["metadata"]["generation"].as_i64().unwrap_or(0)
}

/// Returns true if a roll-out is complete, according to the status of a Deployment or a DaemonSet.
fn is_complete(now: &Value) -> bool {
    let status = &now["status"];
    let wanted = match status["desiredNumberScheduled"].as_i64() {
        Some(wanted) => wanted,
        None => now["spec"]["replicas"].as_i64().unwrap_or(1),
    };
    is_seen(now)
        && first_number(status, ["updatedReplicas", "updatedNumberScheduled"]) == wanted
        && first_number(status, ["replicas", "currentNumberScheduled"]) == wanted
        && first_number(status, ["availableReplicas", "numberAvailable"]) == wanted
}

fn first_number(status: &Value, names: [&str; 2]) -> i64 {
    names.iter().find_map(|name| status[*name].as_i64()).unwrap_or(0)
}

/// Returns true if all pods of a workload are of its present template and ready.
///
/// # Errors
/// The object does not exist, or cannot be read.
pub fn is_rolled_out(cluster: &Cluster, object: &ObjectRef) -> Result<bool, KubeError> {
    Ok(is_complete(&workload::read(&cluster.inner, object)?))
}

/// Returns the number of pods that a workload should have; `None` if it follows from the nodes, as for a DaemonSet.
///
/// # Errors
/// The object does not exist, or cannot be read.
pub fn replicas(cluster: &Cluster, object: &ObjectRef) -> Result<Option<i64>, KubeError> {
    Ok(workload::read(&cluster.inner, object)?["spec"]["replicas"].as_i64())
}

/// Returns true if a DaemonSet should have no pod at all, because no node satisfies the requirements of its pods.
fn has_no_node(now: &Value) -> bool {
    is_seen(now) && now["status"]["desiredNumberScheduled"].as_i64() == Some(0)
}

fn is_of_set(pod: &v1::Pod, sets: &BTreeSet<String>) -> bool {
    pod.owner_references().iter().any(|owner| sets.contains(&owner.name))
}

/// Waits until all pods are of the present template and ready. `before` are the ReplicaSets of older templates; `None`:
/// weir has not changed the workload.
pub(crate) fn rolled_out(
    inner: &Inner,
    (object, before): (&ObjectRef, Option<&BTreeSet<String>>),
    within: Duration,
    interrupted: &AtomicBool,
) -> Result<(), KubeError> {
    let begun = Instant::now();
    let until = begun + within;
    let mut refusals = Refusals::begin(inner, object);
    let mut unplaced = Unplaced::default();
    let mut looked = Instant::now();
    loop {
        let (now, mut pods) = workload::with_all_pods(inner, object)?;
        if has_no_node(&now) {
            return Err(unplaced::of_daemon_set(object));
        }
        if is_complete(&now) {
            return Ok(());
        }
        let is_making_room = !pods.iter().all(workload::stays);
        pods.retain(workload::stays);
        if looked.elapsed() > LOOK_AT_NODES {
            looked = Instant::now();
            on_lost_node(inner, &pods).map_or(Ok(()), Err)?;
        }
        if let Some(trouble) = refusals.last(inner, object, &now) {
            return Err(KubeError::Pods {
                what: format!("{object} has no new pods"),
                why: trouble.why,
                hint: trouble.hint,
                events: Vec::new(),
            });
        }
        let is_over = Instant::now() > until;
        let worst = pods
            .iter()
            .filter(|pod| !before.is_some_and(|before| is_of_set(pod, before)))
            .filter_map(|pod| Some((pod, trouble::of_pod(pod)?)))
            .max_by_key(|(_, trouble)| trouble.is_final);
        let waits = worst.as_ref().filter(|(_, trouble)| !trouble.is_final);
        let is_vain = unplaced.is_vain(inner, waits.map(|(pod, _)| *pod), is_making_room);
        let is_changed = before.is_some();
        let is_judged = is_changed || begun.elapsed() > GOING;
        if let Some((pod, trouble)) = worst
            && (trouble.is_final && is_judged || is_vain || is_over)
        {
            let name = pod.name_any();
            let adapted = trouble.of_workload(is_changed);
            let report = pods::report_in(inner, &object.namespace, ("pod", &name), adapted);
            return Err(inner.within(COMMAND, report).unwrap_or_else(|| overdue(object, within)));
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(KubeError::Interrupted);
        }
        if is_over {
            return Err(overdue(object, within));
        }
        std::thread::sleep(LOOK);
    }
}

/// Returns an error if a pod that is not ready is on a lost node. Such a pod becomes ready only when the node is back,
/// or the cluster gives the pod up, which takes minutes.
fn on_lost_node(inner: &Inner, pods: &[v1::Pod]) -> Option<KubeError> {
    let nodes = pods
        .iter()
        .filter(|pod| !pods::is_ready(pod))
        .filter_map(|pod| pod.spec.as_ref()?.node_name.clone());
    let nodes: BTreeSet<String> = nodes.collect();
    nodes.into_iter().find_map(|node| {
        let why = health::lost(inner, &node)?;
        Some(KubeError::Node { node, why })
    })
}

fn overdue(object: &ObjectRef, within: Duration) -> KubeError {
    KubeError::Overdue { what: format!("the new pods of {object} do not all serve"), within }
}

/// Returns the value at a place in every running pod of a workload, with the pod's name. The place is a pointer as for
/// [`crate::Changes::set`].
///
/// # Errors
/// No pod runs.
pub fn of_pods(
    cluster: &Cluster,
    object: &ObjectRef,
    at: &str,
) -> Result<Vec<(String, Option<Value>)>, KubeError> {
    let pointer = ObjectPath::parse(at);
    Ok(workload::running(&cluster.inner, object)?
        .into_iter()
        .map(|pod| {
            let text = serde_json::to_value(&pod).unwrap_or_default();
            (pod.name_any(), pointer.get(&text).cloned())
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(generation: u32, [all, new, serving]: [u32; 3]) -> Value {
        json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": {"observedGeneration": generation,
            "replicas": all, "updatedReplicas": new, "availableReplicas": serving}})
    }

    #[test]
    fn a_roll_out_is_over_when_every_pod_is_new_and_serves() {
        for (object, expected) in [
            (deployment(2, [2, 2, 2]), true),
            (deployment(1, [2, 2, 2]), false),
            (deployment(2, [3, 2, 2]), false),
            (deployment(2, [2, 1, 2]), false),
            (deployment(2, [2, 2, 1]), false),
            (json!({"metadata": {"generation": 1}, "spec": {}, "status": {}}), false),
            (
                json!({"metadata": {"generation": 1}, "spec": {}, "status": {"observedGeneration": 1,
                "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "updatedNumberScheduled": 3,
                "numberAvailable": 3}}),
                true,
            ),
        ] {
            assert_eq!(is_complete(&object), expected, "{object}");
            assert!(!has_no_node(&object), "{object}");
        }
        for (seen, is_nowhere) in [(2, true), (1, false)] {
            let daemon_set = json!({"metadata": {"generation": 2}, "spec": {},
                "status": {"observedGeneration": seen, "desiredNumberScheduled": 0}});
            assert_eq!(has_no_node(&daemon_set), is_nowhere, "{daemon_set}");
        }
    }
}
