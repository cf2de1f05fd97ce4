//! All objects of a cluster that are somebody's, as the API server gives them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kube_support::Test;

/// What the cluster itself writes all the time, and what replicas come and go as.
const MOVING: [&str; 6] = [
    "events",
    "events.events.k8s.io",
    "pods",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "leases.coordination.k8s.io",
];
/// What of other kinds is looked at besides everything that is in a namespace.
const WITHOUT_NAMESPACE: &str = "namespaces,clusterroles,clusterrolebindings,priorityclasses,ingressclasses,customresourcedefinitions,validatingwebhookconfigurations,mutatingwebhookconfigurations";
/// What the API server counts in an object's metadata.
const COUNTED: [&str; 3] = ["resourceVersion", "managedFields", "generation"];
/// What the controllers of workloads count there: a template that is put back is a new revision.
const REVISIONS: [&str; 3] = [
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "deprecated.daemonset.template.generation",
];

/// Objects by what they are.
#[derive(Debug, PartialEq)]
pub(crate) struct Foreign(BTreeMap<String, Value>);

/// The kinds of objects that a look is at, for `kubectl get`.
pub(crate) fn kinds(test: &Test) -> String {
    let all = test.kubectl("api-resources --verbs=list --namespaced --output name", "");
    let all = all.lines().filter(|kind| !MOVING.contains(kind));
    let all: Vec<&str> = all.chain([WITHOUT_NAMESPACE]).collect();
    all.join(",")
}

impl Foreign {
    pub(crate) fn look(test: &Test, kinds: &str) -> Foreign {
        let text = test.kubectl(&format!("get {kinds} --all-namespaces --output json"), "");
        let list: Value = serde_json::from_str(&text).expect("JSON");
        let objects = list["items"].as_array().cloned().expect("a list");
        Foreign(objects.into_iter().map(stripped).collect())
    }

    /// What differs, a line for each object.
    pub(crate) fn changed(&self, now: &Foreign) -> Vec<String> {
        let names = self.0.keys().chain(now.0.keys());
        let differs = names.filter(|name| self.0.get(*name) != now.0.get(*name));
        let mut lines: Vec<String> = differs
            .map(|name| {
                let text =
                    |of: &Foreign| of.0.get(name).map_or("none".to_owned(), Value::to_string);
                format!(
                    "{name}\n    before {}\n    now    {}",
                    text(self),
                    text(now)
                )
            })
            .collect();
        lines.sort();
        lines.dedup();
        lines
    }
}

fn stripped(mut object: Value) -> (String, Value) {
    let word = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let of = &object["metadata"];
    let name = [&object["kind"], &of["namespace"], &of["name"]].map(word);
    if let Some(object) = object.as_object_mut() {
        // What the cluster tells of it.
        object.remove("status");
        // Of a ControllerRevision.
        object.remove("revision");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| !COUNTED.contains(&&**field));
        if let Some(notes) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        {
            notes.retain(|name, _| !REVISIONS.contains(&&**name));
        }
    }
    (name.join(" "), object)
}
