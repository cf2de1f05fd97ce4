//! All objects of a cluster that weir does not own, as the API server returns them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cluster::Test;

/// Kinds of objects that the cluster itself changes all the time, and those of replicas.
const MOVING: [&str; 6] = [
    "events",
    "events.events.k8s.io",
    "pods",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "leases.coordination.k8s.io",
];
/// Kinds without a namespace that are compared, besides all kinds in namespaces.
const WITHOUT_NAMESPACE: &str = "namespaces,clusterroles,clusterrolebindings,priorityclasses,ingressclasses,customresourcedefinitions,validatingwebhookconfigurations,mutatingwebhookconfigurations";
/// Fields of an object's metadata that the API server counts up.
const COUNTED: [&str; 3] = ["resourceVersion", "managedFields", "generation"];
/// Annotations that the controllers of workloads count up: a restored template is a new revision.
const REVISIONS: [&str; 3] = [
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "deprecated.daemonset.template.generation",
];

/// Objects by kind and name.
#[derive(Debug, PartialEq)]
pub struct Foreign(BTreeMap<String, Value>);

/// Returns the kinds of objects to compare, for `kubectl get`.
pub fn kinds(test: &Test) -> String {
    let namespaced = test.kubectl("api-resources --verbs=list --namespaced --output name", "");
    let compared = namespaced.lines().filter(|kind| !MOVING.contains(kind));
    compared.chain([WITHOUT_NAMESPACE]).collect::<Vec<_>>().join(",")
}

impl Foreign {
    pub fn look(test: &Test, kinds: &str) -> Foreign {
        let text = test.kubectl(&format!("get {kinds} --all-namespaces --output json"), "");
        let list: Value = serde_json::from_str(&text).expect("JSON");
        let objects = list["items"].as_array().cloned().expect("a list");
        Foreign(objects.into_iter().map(stripped).collect())
    }

    /// Returns the differences, a line for each object.
    pub fn changed(&self, now: &Foreign) -> Vec<String> {
        let mut lines: Vec<String> = self
            .0
            .keys()
            .chain(now.0.keys())
            .filter(|name| self.0.get(*name) != now.0.get(*name))
            .map(|name| {
                let [before, now] = [self, now]
                    .map(|at| at.0.get(name).map_or("none".to_owned(), Value::to_string));
                format!("{name}\n    before {before}\n    now    {now}")
            })
            .collect();
        lines.sort();
        lines.dedup();
        lines
    }
}

fn stripped(mut object: Value) -> (String, Value) {
    let metadata = &object["metadata"];
    let name = [&object["kind"], &metadata["namespace"], &metadata["name"]]
        .map(|field| field.as_str().unwrap_or_default().to_owned());
    if let Some(object) = object.as_object_mut() {
        // What the cluster tells of it.
        object.remove("status");
        // Of a ControllerRevision.
        object.remove("revision");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| !COUNTED.contains(&&**field));
        if let Some(notes) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            notes.retain(|name, _| !REVISIONS.contains(&&**name));
        }
    }
    (name.join(" "), object)
}
