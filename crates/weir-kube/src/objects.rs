//! The objects that weir makes in a cluster.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::asked::{Toleration, Wanted};

/// The label that everything of weir's has, and its value.
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "weir");
/// The label that names the run.
const RUN: &str = "app.kubernetes.io/instance";
/// The label that names the role.
const ROLE: &str = "app.kubernetes.io/component";
const GENERATOR: &str = "generator";
const ORIGIN: &str = "origin";
const NODE: &str = "node";
/// Where the origin server listens.
const ORIGIN_PORT: u16 = 8000;

/// The container's name.
pub(crate) const CONTAINER: &str = "weir";
/// weir within its image.
pub(crate) const PROGRAM: &str = "/weir";
/// A user that is not root and owns nothing: what is named by number needs no file of users.
pub(crate) const USER: u32 = 65532;

/// How long a pod waits for an agent before it ends by itself: whoever made it is gone then.
const IDLE: &str = "10m";
/// How long a Job may last when nobody removes it, seconds. Its pods end long before: see `weir wait`.
const DEADLINE_S: u32 = 24 * 3600;
/// How long after its end the cluster removes a Job that nobody has removed, seconds.
const KEPT_S: u32 = 300;

/// Whether labels are those of an origin server's pod.
pub(crate) fn is_origin(labels: &BTreeMap<String, String>) -> bool {
    labels.get(ROLE).is_some_and(|role| role == ORIGIN)
}

/// What selects the pods of a run.
pub(crate) fn selector(run: &str) -> String {
    format!("{},{RUN}={run}", everything())
}

/// What selects everything of weir's.
pub(crate) fn everything() -> String {
    format!("{}={}", MANAGED_BY.0, MANAGED_BY.1)
}

/// Where objects are, and of which run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) run: &'a str,
}

/// The labels of a role's objects.
fn labels(run: &str, role: &str) -> Value {
    json!({
        "app.kubernetes.io/name": "weir",
        MANAGED_BY.0: MANAGED_BY.1,
        RUN: run,
        ROLE: role,
    })
}

/// What a role's pods have beside their specification.
fn about_pods(run: &str, role: &str) -> Value {
    let mut labels = labels(run, role);
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

/// The generators of a run as one Job: a pod for each index. A pod that is lost stays lost, since the trial is lost
/// with it.
pub(crate) fn job(wanted: &Wanted, Place { namespace, run }: Place<'_>) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": run, "namespace": namespace, "labels": labels(run, GENERATOR)},
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

/// The origin server's pod, where one is wanted. It ends with the Job, whose identity `owner` is.
pub(crate) fn origin(
    wanted: &Wanted,
    Place { namespace, run }: Place<'_>,
    owner: Option<&str>,
) -> Option<Value> {
    let options = wanted.origin.as_ref()?.iter().map(String::as_str);
    let listen = format!("0.0.0.0:{ORIGIN_PORT}");
    let arguments: Vec<&str> = ["origin", "--listen", &listen]
        .into_iter()
        .chain(options)
        .collect();
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

/// A privileged pod in the network namespace of a node, which reads and sets settings of the kernel there.
pub(crate) fn hand(image: &str, Place { namespace, run }: Place<'_>, node: &str) -> Value {
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

/// A pod that the strictest of the Pod Security Standards allows, with what it runs.
fn pod(wanted: &Wanted, run: &str, arguments: &[&str]) -> Value {
    // Requests that equal limits make the pod Guaranteed; with whole CPUs, the kubelet's static policy then gives it
    // CPUs of its own.
    let room = json!({
        "cpu": wanted.cpus.to_string(),
        "memory": format!("{}Mi", wanted.memory_mib),
    });
    let nodes: Map<String, Value> = wanted
        .nodes
        .iter()
        .map(|label| (label.key.clone(), json!(label.value)))
        .collect();
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

/// Keeps pods of a run off each other's nodes and off the proxy's: what shares CPUs with the proxy is measured with it.
fn apart(wanted: &Wanted, run: &str) -> Value {
    let term = |labels: Value| {
        json!({
            "labelSelector": {"matchLabels": labels},
            "topologyKey": "kubernetes.io/hostname",
        })
    };
    let mut terms = vec![term(json!({MANAGED_BY.0: MANAGED_BY.1, RUN: run}))];
    if let Some(proxy) = &wanted.proxy {
        let labels: BTreeMap<_, _> = proxy.labels.iter().cloned().collect();
        let mut one = term(json!(labels));
        one["namespaces"] = json!([proxy.namespace]);
        terms.push(one);
    }
    match wanted.share_nodes {
        false => json!({"requiredDuringSchedulingIgnoredDuringExecution": terms}),
        true => {
            let weighed = |term: Value| json!({"weight": 100, "podAffinityTerm": term});
            let terms: Vec<Value> = terms.into_iter().map(weighed).collect();
            json!({"preferredDuringSchedulingIgnoredDuringExecution": terms})
        }
    }
}

/// An object as a YAML document.
pub(crate) fn yaml(object: &Value) -> String {
    // JSON is YAML too.
    let text = serde_saphyr::to_string(object).unwrap_or_else(|_| object.to_string());
    format!("---\n{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PLACE: Place<'_> = Place {
        namespace: "bench",
        run: "weir-1",
    };

    fn wanted() -> Wanted {
        Wanted {
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
        let job = job(&wanted(), PLACE);
        let spec = &job["spec"];
        assert_eq!(
            (&spec["completions"], &spec["parallelism"]),
            (&json!(3), &json!(3))
        );
        assert_eq!(spec["completionMode"], "Indexed");
        assert_eq!(spec["backoffLimit"], 0);
        let pod = &spec["template"]["spec"];
        let terms =
            &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let labels = |at: usize| &terms[at]["labelSelector"]["matchLabels"];
        assert_eq!(labels(0)[RUN], "weir-1");
        assert_eq!(labels(1)["app"], "proxy");
        assert_eq!(terms[1]["namespaces"], json!(["ingress"]));
        let room = &pod["containers"][0]["resources"];
        assert_eq!(room["requests"], room["limits"]);
        assert_eq!(
            pod["tolerations"][1],
            json!({"key": "gpu", "operator": "Exists"})
        );
        let shared = Wanted {
            share_nodes: true,
            ..wanted()
        };
        let pod = &super::job(&shared, PLACE)["spec"]["template"]["spec"];
        let affinity = &pod["affinity"]["podAntiAffinity"];
        assert!(affinity["requiredDuringSchedulingIgnoredDuringExecution"].is_null());
        assert!(affinity["preferredDuringSchedulingIgnoredDuringExecution"].is_array());
    }

    #[test]
    fn an_origin_server_ends_with_its_job() {
        let origin = origin(&wanted(), PLACE, Some("1-2-3")).unwrap();
        assert_eq!(origin["metadata"]["ownerReferences"][0]["uid"], "1-2-3");
        assert_eq!(origin["metadata"]["labels"][ROLE], ORIGIN);
        let container = &origin["spec"]["containers"][0];
        let command = json!([
            "/weir",
            "origin",
            "--listen",
            "0.0.0.0:8000",
            "--size",
            "600"
        ]);
        assert_eq!(container["command"], command);
        let none = Wanted {
            origin: None,
            ..wanted()
        };
        assert_eq!(super::origin(&none, PLACE, None), None);
    }

    #[test]
    fn what_is_rendered_is_what_is_made() {
        let mut job = job(&wanted(), PLACE);
        // What YAML would read as something else.
        job["metadata"]["annotations"] =
            json!({"a": "no", "b": "1e3", "c": ": #", "d": ["", [1], {}, {"e": [{"f": null}]}]});
        let text = yaml(&job);
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, job, "{text}");
    }
}
