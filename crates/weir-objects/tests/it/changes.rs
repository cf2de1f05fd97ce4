//! Objects that weir changes and puts back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::{Value, json};
use weir_kube::{Asks, Cluster, KubeError, ObjectRef, Used, manifest_of};
use weir_objects::{Changes, PutBack, not_taken, undo};
use weir_testkit::cluster::Test;

use crate::api::{connect, namespace, tell_pod, wait_until};

const SETTINGS: &str = "/data/keep-alive-requests";
const SYSCTL: &str = "/spec/template/spec/securityContext/sysctls/[name=net.core.somaxconn]/value";

fn config_map(namespace: &str) -> ObjectRef {
    ObjectRef {
        api: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        resource: "configmaps".to_owned(),
        namespace: namespace.to_owned(),
        name: "settings".to_owned(),
    }
}

fn deployment(namespace: &str) -> ObjectRef {
    ObjectRef {
        api: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        resource: "deployments".to_owned(),
        ..config_map(namespace)
    }
}

/// Builds values for [`Changes::set`]; `None`: as before weir.
fn values<const N: usize>(values: [(&str, Option<&str>); N]) -> BTreeMap<String, Option<Value>> {
    values.into_iter().map(|(at, value)| (at.to_owned(), value.map(|text| json!(text)))).collect()
}

/// Returns the parts of an object that its creator determines.
fn said(test: &Test, object: &ObjectRef) -> Value {
    let words = format!(
        "get {} {} --namespace {} --output json",
        object.resource, object.name, object.namespace
    );
    let object: Value = serde_json::from_str(&test.kubectl(&words, "")).unwrap();
    json!({"data": object["data"], "spec": object["spec"], "labels": object["metadata"]["labels"]})
}

fn make_settings(test: &Test, namespace: &str, data: &str) -> ObjectRef {
    let object = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\n{data}");
    test.kubectl(&format!("apply --namespace {namespace} --filename -"), &object);
    config_map(namespace)
}

fn open(cluster: &Cluster, folder: &Path) -> Result<Changes, KubeError> {
    Changes::open(cluster, folder, "a test")
}

pub(crate) fn what_is_changed_is_put_back_to_the_byte(test: &Test) {
    let cluster = namespace(test, "changes", "");
    let folder = tempfile::tempdir().unwrap();
    for data in ["data: {keep-alive-requests: '7', other: x}", "data: {other: x}", ""] {
        let object = make_settings(test, "changes", data);
        let before = said(test, &object);
        let mut changes = open(&cluster, folder.path()).unwrap();
        let mut set = |value| changes.set(&object, &values([(SETTINGS, value)])).unwrap();
        assert!(set(Some("1000")));
        assert!(!set(Some("1000")), "nothing is left to change");
        assert!(set(Some("50")));
        assert_eq!(said(test, &object)["data"]["keep-alive-requests"], "50");
        assert!(set(None));
        assert_eq!(said(test, &object), before, "between arms");
        assert!(set(Some("50")));
        let became = changes.put_back();
        assert!(became.iter().all(PutBack::is_whole), "{became:?}");
        assert_eq!(became[0].put_back, [SETTINGS]);
        assert_eq!(said(test, &object), before);
        assert_eq!(changes.put_back(), []);
        drop(changes);
        // The next one begins with the journal of this one, which has nothing open.
        test.kubectl("delete configmap settings --namespace changes", "");
    }
}

/// Definition of a custom resource with defaults.
const BREAKERS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: breakers.weir.test}
spec:
  group: weir.test
  scope: Namespaced
  names: {kind: Breaker, plural: breakers, singular: breaker}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
          spec:
            type: object
            properties:
              other: {type: string}
              limits:
                type: object
                properties:
                  most: {type: integer, default: 1024}
                  pending: {type: integer, default: 1024}
"#;

pub(crate) fn defaults_that_come_with_a_value_go_with_it(test: &Test) {
    let cluster = namespace(test, "defaults", "");
    test.kubectl("apply --filename -", BREAKERS);
    test.kubectl("wait --for=condition=Established crd/breakers.weir.test", "");
    let object =
        "apiVersion: weir.test/v1\nkind: Breaker\nmetadata: {name: settings}\nspec: {other: x}";
    test.kubectl("apply --namespace defaults --filename -", object);
    let object = ObjectRef {
        api: "weir.test/v1".to_owned(),
        kind: "Breaker".to_owned(),
        resource: "breakers".to_owned(),
        ..config_map("defaults")
    };
    let before = said(test, &object);
    let folder = tempfile::tempdir().unwrap();
    let mut changes = open(&cluster, folder.path()).unwrap();
    let (most, pending) = ("/spec/limits/most", "/spec/limits/pending");
    let mut set = |at: &str, value: Value| {
        let all = [most, pending, at].map(|one| (one.to_owned(), None));
        let mut all = BTreeMap::from(all);
        all.insert(at.to_owned(), (!value.is_null()).then_some(value));
        changes.set(&object, &all)
    };
    let limits = || said(test, &object)["spec"]["limits"].clone();
    assert!(set(most, json!(7)).unwrap());
    assert_eq!(limits(), json!({"most": 7, "pending": 1024}));
    assert!(!set(most, json!(7)).unwrap(), "nothing is left to change");
    assert!(set(pending, json!(5)).unwrap());
    assert_eq!(limits(), json!({"most": 1024, "pending": 5}));
    assert!(set(most, Value::Null).unwrap());
    assert_eq!(said(test, &object), before, "between arms");
    for (at, value, words) in [
        (most, json!("many"), "a change of Breaker defaults/settings"),
        ("/spec/unknown", json!(1), "has no such field"),
    ] {
        let error = set(at, value).unwrap_err();
        assert!(matches!(error, KubeError::Refused { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(set(most, json!(7)).unwrap());
    let became = changes.put_back();
    assert!(became.iter().all(PutBack::is_whole), "{became:?}");
    assert_eq!(said(test, &object), before);
    // What its controller says of it is read.
    assert_eq!(not_taken(&cluster, &object).unwrap(), None);
    let status = r#"{"status":{"conditions":[{"type":"Accepted","status":"False","reason":"Invalid","message":"too-many"}]}}"#;
    let words = format!(
        "patch breakers settings --namespace defaults --subresource status --type merge --patch {status}"
    );
    test.kubectl(&words, "");
    let rejection = not_taken(&cluster, &object).unwrap();
    assert_eq!(rejection.as_deref(), Some("Accepted is False, Invalid: too-many"));
}

pub(crate) fn what_somebody_else_has_changed_is_told_and_left(test: &Test) {
    let cluster = namespace(test, "foreign", "");
    let folder = tempfile::tempdir().unwrap();
    let object = make_settings(test, "foreign", "data: {keep-alive-requests: '7'}");
    let patch = |data: &str| {
        let words =
            format!("patch configmap settings --namespace foreign --patch {{\"data\":{data}}}");
        test.kubectl(&words, "")
    };
    let mut changes = open(&cluster, folder.path()).unwrap();
    let (own, other) = (SETTINGS, "/data/use-gzip");
    let both = values([(own, Some("50")), (other, Some("true"))]);
    assert!(changes.set(&object, &both).unwrap());
    // Another key of the same object is nobody's conflict, though the object has another version now.
    patch(r#"{"theirs":"yes"}"#);
    assert!(changes.set(&object, &values([(own, Some("60"))])).unwrap());
    patch(r#"{"keep-alive-requests":"8"}"#);
    let error = changes.set(&object, &values([(own, Some("50"))])).unwrap_err();
    assert!(matches!(error, KubeError::Foreign { .. }), "{error}");
    for words in ["ConfigMap foreign/settings", own, "was \"7\"", "is \"8\" now"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    let became = changes.put_back().remove(0);
    assert_eq!(became.put_back, [other]);
    assert_eq!((&*became.left[0].before, &*became.left[0].now), ("\"7\"", "\"8\""));
    let data = &said(test, &object)["data"];
    assert_eq!(*data, json!({"keep-alive-requests": "8", "theirs": "yes"}));
    // One that is not the same object any more is not weir's to change.
    changes.set(&object, &values([(own, Some("50"))])).unwrap();
    test.kubectl("delete configmap settings --namespace foreign", "");
    make_settings(test, "foreign", "data: {keep-alive-requests: '9'}");
    let error = changes.set(&object, &values([(own, Some("60"))])).unwrap_err();
    assert!(error.to_string().contains("another of its name"), "{error}");
    let became = changes.put_back().remove(0);
    assert!(!became.is_whole() && became.put_back.is_empty(), "{became:?}");
    assert_eq!(said(test, &object)["data"]["keep-alive-requests"], "9");
}

pub(crate) fn what_a_killed_weir_has_changed_is_undone(test: &Test) {
    let cluster = namespace(test, "killed", "");
    let folder = tempfile::tempdir().unwrap();
    let object = make_settings(test, "killed", "data: {keep-alive-requests: '7'}");
    let before = said(test, &object);
    let mut changes = open(&cluster, folder.path()).unwrap();
    changes.set(&object, &values([(SETTINGS, Some("50"))])).unwrap();
    let held = open(&cluster, folder.path()).unwrap_err();
    assert!(matches!(held, KubeError::Held { .. }), "{held}");
    let held = undo(&cluster, folder.path(), false).unwrap_err();
    assert!(matches!(held, KubeError::Held { .. }), "{held}");
    // What a killed weir leaves is its folder, without a lock.
    let remains = tempfile::tempdir().unwrap();
    let journal = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap();
    let copy = remains.path().join(journal.file_name());
    weir_files::make_folders(&copy).unwrap();
    fs::copy(journal.path().join("journal.jsonl"), copy.join("journal.jsonl")).unwrap();
    std::mem::forget(changes);
    let refused = open(&cluster, remains.path()).unwrap_err();
    assert!(matches!(refused, KubeError::LeftChanged { objects: 1, .. }), "{refused}");
    assert!(refused.hint().unwrap().contains("weir restore --on kubernetes:weir-test/killed"));
    let shown = undo(&cluster, remains.path(), true).unwrap();
    assert_eq!(shown[0].put_back, [SETTINGS]);
    assert_ne!(said(test, &object), before, "only shown");
    assert_eq!(undo(&cluster, remains.path(), false).unwrap(), shown);
    assert_eq!(said(test, &object), before);
    assert_eq!(undo(&cluster, remains.path(), false).unwrap(), []);
    drop(open(&cluster, remains.path()).unwrap());
    // Of another cluster's journal nothing is believed here: it has a folder of its own.
    assert_eq!(undo(&cluster, &remains.path().join("nothing"), false).unwrap(), []);
}

/// Creates a Deployment of one pod. Tests report that the pod runs in place of a kubelet.
fn make_deployment(test: &Test, namespace: &str) -> ObjectRef {
    test.kubectl(
        &format!("apply --namespace {namespace} --filename -"),
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: settings}
spec:
  replicas: 1
  selector: {matchLabels: {app: proxy}}
  template:
    metadata: {labels: {app: proxy}}
    spec: {containers: [{name: controller, image: localhost/proxy:1}]}
"#,
    );
    deployment(namespace)
}

fn names(test: &Test, namespace: &str, kind: &str) -> Vec<String> {
    let words = format!("get {kind} --namespace {namespace} --output name");
    let text = test.kubectl(&words, "");
    text.lines().map(str::to_owned).collect()
}

/// Reports the first pod of a Deployment as ready and returns its name.
fn serving(test: &Test, namespace: &str) -> String {
    wait_until("a pod", || names(test, namespace, "pods").len() == 1);
    let pod = names(test, namespace, "pods")[0].replace("pod/", "");
    let serves = r#"{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}"#;
    tell_pod(test, namespace, &pod, serves);
    pod
}

pub(crate) fn a_pod_that_may_not_have_its_sysctl_ends_the_roll_out(test: &Test) {
    let cluster = namespace(test, "rollout", "");
    let folder = tempfile::tempdir().unwrap();
    let object = make_deployment(test, "rollout");
    let old = serving(test, "rollout");
    let (before, sets) = (said(test, &object), names(test, "rollout", "replicasets"));
    let mut changes = open(&cluster, folder.path()).unwrap();
    let running = AtomicBool::new(false);
    let rolled_out = |changes: &Changes, within| {
        changes.rolled_out(&object, Duration::from_secs(within), &running)
    };
    rolled_out(&changes, 10).unwrap();
    changes.set(&object, &values([(SYSCTL, Some("32768"))])).unwrap();
    // Nobody runs the new pod: the roll-out never ends.
    let error = rolled_out(&changes, 1).unwrap_err();
    assert!(matches!(error, KubeError::Overdue { .. } | KubeError::Pods { .. }), "{error}");
    wait_until("a new pod", || names(test, "rollout", "pods").len() == 2);
    let pods = names(test, "rollout", "pods");
    let new = pods.iter().map(|pod| pod.replace("pod/", "")).find(|pod| *pod != old);
    let forbidden = r#"{"phase":"Failed","reason":"SysctlForbidden","message":"not-allowlisted"}"#;
    tell_pod(test, "rollout", &new.unwrap(), forbidden);
    let error = rolled_out(&changes, 10).unwrap_err();
    assert!(error.to_string().contains("SysctlForbidden"), "{error}");
    assert!(error.hint().unwrap().contains("--allowed-unsafe-sysctls"));
    let became = changes.put_back();
    assert!(became.iter().all(PutBack::is_whole), "{became:?}");
    assert_eq!(said(test, &object), before);
    // Its pods go as well where somebody runs them.
    assert_eq!(names(test, "rollout", "replicasets"), sets, "the unhealthy one is gone");
}

pub(crate) fn what_somebody_else_rolls_out_stays(test: &Test) {
    let cluster = namespace(test, "theirs", "");
    let folder = tempfile::tempdir().unwrap();
    let object = make_deployment(test, "theirs");
    let sets = || names(test, "theirs", "replicasets");
    serving(test, "theirs");
    let first = sets();
    let mut changes = open(&cluster, folder.path()).unwrap();
    changes.set(&object, &values([(SYSCTL, Some("32768"))])).unwrap();
    wait_until("weir's template", || sets().len() == 2);
    test.kubectl(
        "set image deployment/settings controller=localhost/proxy:2 --namespace theirs",
        "",
    );
    wait_until("theirs, with weir's value", || sets().len() == 3);
    let became = changes.put_back();
    assert!(became.iter().all(PutBack::is_whole), "{became:?}");
    let spec = said(test, &object)["spec"]["template"]["spec"].clone();
    assert_eq!(spec["containers"][0]["image"], "localhost/proxy:2");
    assert_eq!(spec["securityContext"], json!({}));
    // The first one, and theirs as it is without weir's value, which is to have a pod.
    wait_until("theirs", || sets().len() == 2);
    assert!(sets().contains(&first[0]), "{:?}", sets());
}

pub(crate) fn rights_to_change_objects_are_named(test: &Test) {
    namespace(test, "controller", "");
    let objects = [make_settings(test, "controller", ""), make_deployment(test, "controller")];
    let guest = connect(test, "kubernetes:weir-guest/controller").unwrap();
    let used =
        Used { changed: objects.to_vec(), asked: vec![objects[1].clone()], asks: Asks::Command };
    let error = guest.check_changes(&used).unwrap_err();
    let KubeError::Rights { missing, manifest, .. } = &error else {
        panic!("{error}");
    };
    let wanted = ["update configmaps settings", "get deployments settings", "delete replicasets"];
    for one in wanted {
        assert!(missing.contains(&one.to_owned()), "{one}: {missing:?}");
    }
    assert_eq!(*manifest, manifest_of(&used, "guest"));
    test.kubectl("apply --filename -", manifest);
    wait_until("the rights", || guest.check_changes(&used).is_ok());
    let folder = tempfile::tempdir().unwrap();
    let mut changes = open(&guest, folder.path()).unwrap();
    changes.set(&objects[0], &values([(SETTINGS, Some("50"))])).unwrap();
    assert!(changes.put_back()[0].is_whole());
    // Granted for these, and for no other.
    let unrelated = ObjectRef { name: "other".to_owned(), ..objects[0].clone() };
    let used = Used { changed: vec![unrelated], asked: Vec::new(), asks: Asks::Command };
    assert!(guest.check_changes(&used).is_err());
}
