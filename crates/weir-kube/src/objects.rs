//! The objects that weir creates in a cluster.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::asked::{PodRequest, Toleration};

/// Label of all objects of weir's, and its value.
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "weir");
/// Label that names the run.
const RUN: &str = "app.kubernetes.io/instance";
/// Label that names the role.
const ROLE: &str = "app.kubernetes.io/component";
const GENERATOR: &str = "generator";
const ORIGIN: &str = "origin";
const NODE: &str = "node";
/// Port that the origin server listens on.
const ORIGIN_PORT: u16 = 8000;

/// Name of the container.
pub const CONTAINER: &str = "weir";
/// Path of weir within its image.
pub const PROGRAM: &str = "/weir";
/// A user that is not root and owns nothing. As it is named by number, it needs no file of users.
pub(crate) const USER: u32 = 65532;

/// Time that a pod waits for an agent before it ends by itself, since its creator must be gone.
const IDLE: &str = "10m";
/// Maximum lifetime of a Job that nobody removes, seconds. Its pods end long before: see `weir wait`.
const DEADLINE_S: u32 = 24 * 3600;
/// Time after its end until the cluster removes a Job that nobody has removed, seconds.
const KEPT_S: u32 = 300;

/// Returns true if labels are those of an origin server's pod.
pub(crate) fn is_origin(labels: &BTreeMap<String, String>) -> bool {
    labels.get(ROLE).is_some_and(|role| role == ORIGIN)
}

/// Returns the label selector for the pods of a run.
pub(crate) fn selector(run: &str) -> String {
    format!("{},{RUN}={run}", everything())
}

/// Returns the label selector for all objects of weir's.
pub(crate) fn everything() -> String {
    format!("{}={}", MANAGED_BY.0, MANAGED_BY.1)
}

/// Namespace and run of objects.
#[derive(Debug, Clone, Copy)]
pub struct RunScope<'a> {
    pub namespace: &'a str,
    pub run: &'a str,
}

/// Returns the labels of a role's objects.
fn render_labels(run: &str, role: &str) -> Value {
    json!({
        "app.kubernetes.io/name": "weir",
        MANAGED_BY.0: MANAGED_BY.1,
        RUN: run,
        ROLE: role,
    })
}

/// Returns the metadata of a role's pods.
fn about_pods(run: &str, role: &str) -> Value {
    let mut labels = render_labels(run, role);
    // A mesh's proxy in the pod would be measured as well.
    labels["sidecar.istio.io/inject"] = json!("false");
    json!({
        "labels": labels,
        "annotations": {
            "linkerd.io/inject": "disabled",
            // No autoscaler moves it while it is measured.
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        },
    })
}

/// Renders the generators of a run as one Job, with a pod for each index. A lost pod is not replaced, since the trial
/// is lost with it.
pub(crate) fn job(wanted: &PodRequest, RunScope { namespace, run }: RunScope<'_>) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": run, "namespace": namespace, "labels": render_labels(run, GENERATOR)},
        "spec": {
            "completions": wanted.generators,
            "parallelism": wanted.generators,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE_S,
            "ttlSecondsAfterFinished": KEPT_S,
            "template": {
                "metadata": about_pods(run, GENERATOR),
                "spec": pod(wanted, run, &["wait", "--idle", IDLE]),
            },
        },
    })
}

/// Renders the origin server's pod; `None` if none is wanted. The pod ends with the Job, whose uid is `owner`.
pub(crate) fn origin(
    wanted: &PodRequest,
    RunScope { namespace, run }: RunScope<'_>,
    owner: Option<&str>,
) -> Option<Value> {
    let options = wanted.origin.as_ref()?.iter().map(String::as_str);
    let listen = format!("0.0.0.0:{ORIGIN_PORT}");
    let arguments: Vec<&str> = ["origin", "--listen", &listen].into_iter().chain(options).collect();
    let mut spec = pod(wanted, run, &arguments);
    let container = &mut spec["containers"][0];
    container["ports"] = json!([{"name": "http", "containerPort": ORIGIN_PORT}]);
    // A Service sends it nothing before it listens.
    container["readinessProbe"] = json!({"tcpSocket": {"port": ORIGIN_PORT}, "periodSeconds": 1});
    let mut metadata = about_pods(run, ORIGIN);
    metadata["name"] = json!(format!("{run}-{ORIGIN}"));
    metadata["namespace"] = json!(namespace);
    if let Some(uid) = owner {
        metadata["ownerReferences"] =
            json!([{"apiVersion": "batch/v1", "kind": "Job", "name": run, "uid": uid}]);
    }
    Some(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
}

/// Renders a privileged pod in the network namespace of a node, which reads and changes kernel settings there.
pub fn hand(image: &str, RunScope { namespace, run }: RunScope<'_>, node: &str) -> Value {
    let mut metadata = about_pods(run, NODE);
    metadata["name"] = json!(run);
    metadata["namespace"] = json!(namespace);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": node,
            "hostNetwork": true,
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 1,
            // The proxy's pods are there, whatever keeps others away.
            "tolerations": [{"operator": "Exists"}],
            "containers": [{
                "name": CONTAINER,
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": [PROGRAM, "wait", "--idle", IDLE],
                "env": [{"name": "WEIR_USER_NAMESPACE", "value": "0"}],
                // Its node may be full.
                "resources": {
                    "requests": {"cpu": "0", "memory": "32Mi"},
                    "limits": {"memory": "128Mi"},
                },
                // /proc/sys is read-only in others.
                "securityContext": {"privileged": true, "runAsUser": 0},
            }],
        },
    })
}

/// Renders a pod, with its command, that complies with the strictest of the Pod Security Standards.
fn pod(wanted: &PodRequest, run: &str, arguments: &[&str]) -> Value {
    // Requests that equal limits make the pod Guaranteed; with whole CPUs, the kubelet's static policy then gives it
    // CPUs of its own.
    let room = json!({
        "cpu": wanted.cpus.to_string(),
        "memory": format!("{}Mi", wanted.memory_mib),
    });
    let nodes: Map<String, Value> =
        wanted.nodes.iter().map(|label| (label.key.clone(), json!(label.value))).collect();
    let command: Vec<&str> = [PROGRAM].iter().chain(arguments).copied().collect();
    json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 5,
        "nodeSelector": nodes,
        "tolerations": wanted.tolerations.iter().map(toleration).collect::<Vec<_>>(),
        "affinity": {"podAntiAffinity": apart(wanted, run)},
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": CONTAINER,
            "image": wanted.image,
            "imagePullPolicy": "IfNotPresent",
            "command": command,
            // Nothing in it needs namespaces of its own.
            "env": [{"name": "WEIR_USER_NAMESPACE", "value": "0"}],
            "resources": {"requests": room.clone(), "limits": room},
            // An agent has a folder in the image's /tmp for as long as a load lasts. A volume would not do: others could
            // write to it.
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
            },
        }],
    })
}

fn toleration(wanted: &Toleration) -> Value {
    let mut toleration = match &wanted.value {
        Some(value) => json!({"key": wanted.key, "operator": "Equal", "value": value}),
        None => json!({"key": wanted.key, "operator": "Exists"}),
    };
    if let Some(effect) = &wanted.effect {
        toleration["effect"] = json!(effect);
    }
    toleration
}

/// Renders the affinity that keeps pods of a run off each other's nodes and off the proxy's: a pod that shares CPUs
/// with the proxy affects the measurement.
fn apart(wanted: &PodRequest, run: &str) -> Value {
    let mut terms = vec![render_term(&json!({MANAGED_BY.0: MANAGED_BY.1, RUN: run}))];
    if let Some(proxy) = &wanted.proxy {
        let labels: BTreeMap<_, _> = proxy.labels.iter().cloned().collect();
        let mut term = render_term(&json!(labels));
        term["namespaces"] = json!([proxy.namespace]);
        terms.push(term);
    }
    if wanted.share_nodes {
        let terms: Vec<Value> =
            terms.into_iter().map(|term| json!({"weight": 100, "podAffinityTerm": term})).collect();
        json!({"preferredDuringSchedulingIgnoredDuringExecution": terms})
    } else {
        json!({"requiredDuringSchedulingIgnoredDuringExecution": terms})
    }
}

fn render_term(labels: &Value) -> Value {
    json!({
        "labelSelector": {"matchLabels": labels},
        "topologyKey": "kubernetes.io/hostname",
    })
}

/// Formats an object as a YAML document.
pub(crate) fn yaml(object: &Value) -> String {
    // JSON is YAML too.
    let text = serde_saphyr::to_string(object).unwrap_or_else(|_| object.to_string());
    format!("---\n{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SCOPE: RunScope<'_> = RunScope { namespace: "bench", run: "weir-1" };

    fn wanted() -> PodRequest {
        PodRequest {
            generators: 3,
            image: "localhost/weir:test".to_owned(),
            cpus: 2,
            memory_mib: 512,
            nodes: vec!["zone=a".parse().unwrap()],
            tolerations: vec![
                "dedicated=bench:NoSchedule".parse().unwrap(),
                "gpu".parse().unwrap(),
            ],
            proxy: Some("ingress/app=proxy".parse().unwrap()),
            share_nodes: false,
            origin: Some(vec!["--size".to_owned(), "600".to_owned()]),
            within: Duration::from_secs(60),
        }
    }

    #[test]
    fn generators_are_one_job_that_keeps_apart() {
        let job = super::job(&wanted(), SCOPE);
        let spec = &job["spec"];
        assert_eq!((&spec["completions"], &spec["parallelism"]), (&json!(3), &json!(3)));
        assert_eq!(spec["completionMode"], "Indexed");
        assert_eq!(spec["backoffLimit"], 0);
        let pod = &spec["template"]["spec"];
        let terms =
            &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(terms[0]["labelSelector"]["matchLabels"][RUN], "weir-1");
        assert_eq!(terms[1]["labelSelector"]["matchLabels"]["app"], "proxy");
        assert_eq!(terms[1]["namespaces"], json!(["ingress"]));
        let room = &pod["containers"][0]["resources"];
        assert_eq!(room["requests"], room["limits"]);
        assert_eq!(pod["tolerations"][1], json!({"key": "gpu", "operator": "Exists"}));
        let shared = PodRequest { share_nodes: true, ..wanted() };
        let pod = &super::job(&shared, SCOPE)["spec"]["template"]["spec"];
        let affinity = &pod["affinity"]["podAntiAffinity"];
        assert!(affinity["requiredDuringSchedulingIgnoredDuringExecution"].is_null());
        assert!(affinity["preferredDuringSchedulingIgnoredDuringExecution"].is_array());
    }

    #[test]
    fn an_origin_server_ends_with_its_job() {
        let origin = super::origin(&wanted(), SCOPE, Some("1-2-3")).unwrap();
        assert_eq!(origin["metadata"]["ownerReferences"][0]["uid"], "1-2-3");
        assert_eq!(origin["metadata"]["labels"][ROLE], ORIGIN);
        let container = &origin["spec"]["containers"][0];
        let command = json!(["/weir", "origin", "--listen", "0.0.0.0:8000", "--size", "600"]);
        assert_eq!(container["command"], command);
        let none = PodRequest { origin: None, ..wanted() };
        assert_eq!(super::origin(&none, SCOPE, None), None);
    }

    #[test]
    fn what_is_rendered_is_what_is_made() {
        let mut job = super::job(&wanted(), SCOPE);
        // What YAML would read as something else.
        job["metadata"]["annotations"] =
            json!({"a": "no", "b": "1e3", "c": ": #", "d": ["", [1], {}, {"e": [{"f": null}]}]});
        let text = yaml(&job);
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, job, "{text}");
    }
}
