//! The API tier: real answers of the API server, the Job controller and the scheduler. Nodes are only objects, without
//! machines.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_kube::{Cluster, KubeError, PodRequest, Removed, manifest, remove, render};
use weir_testkit::cluster::{Named, Test, tier};

use crate::changes;

/// All tests, run one after the other in one cluster. Each has a namespace of its own; nodes are shared.
const TESTS: [Named; 15] = [
    ("contexts_are_named", contexts_are_named),
    ("what_is_rendered_is_valid", what_is_rendered_is_valid),
    ("missing_rights_come_with_their_manifest", missing_rights_come_with_their_manifest),
    ("what_refuses_a_job_is_told", what_refuses_a_job_is_told),
    ("what_refuses_pods_is_told", what_refuses_pods_is_told),
    ("generators_keep_apart", generators_keep_apart),
    ("an_image_that_cannot_be_pulled_is_told", an_image_that_cannot_be_pulled_is_told),
    ("everything_is_removed_by_its_label", everything_is_removed_by_its_label),
    ("what_is_changed_is_put_back_to_the_byte", changes::what_is_changed_is_put_back_to_the_byte),
    (
        "defaults_that_come_with_a_value_go_with_it",
        changes::defaults_that_come_with_a_value_go_with_it,
    ),
    (
        "what_somebody_else_has_changed_is_told_and_left",
        changes::what_somebody_else_has_changed_is_told_and_left,
    ),
    ("what_a_killed_weir_has_changed_is_undone", changes::what_a_killed_weir_has_changed_is_undone),
    (
        "a_pod_that_may_not_have_its_sysctl_ends_the_roll_out",
        changes::a_pod_that_may_not_have_its_sysctl_ends_the_roll_out,
    ),
    ("what_somebody_else_rolls_out_stays", changes::what_somebody_else_rolls_out_stays),
    ("rights_to_change_objects_are_named", changes::rights_to_change_objects_are_named),
];

#[test]
fn api_tier() {
    tier("api", None, Test::enter, &TESTS);
}

pub(crate) fn connect(test: &Test, on: &str) -> Result<Cluster, KubeError> {
    Cluster::connect(Some(&test.configuration()), &on.parse().unwrap(), false)
}

/// Waits for a condition, at most ten seconds.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..100 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{what}: waited in vain");
}

/// Creates a namespace for one test, and waits for its default service account.
pub(crate) fn namespace(test: &Test, name: &str, labels: &str) -> Cluster {
    // The test may have failed half-way before.
    test.kubectl(&format!("delete namespace {name} --ignore-not-found"), "");
    test.kubectl(&format!("create namespace {name}"), "");
    if !labels.is_empty() {
        test.kubectl(&format!("label namespace {name} {labels}"), "");
    }
    let accounts = format!("get serviceaccounts --namespace {name} --output name");
    wait_until("the service account", || {
        test.kubectl(&accounts, "").contains("serviceaccount/default")
    });
    connect(test, &format!("kubernetes:weir-test/{name}")).unwrap()
}

fn wanted() -> PodRequest {
    PodRequest {
        generators: 2,
        image: "localhost/weir:test".to_owned(),
        cpus: 1,
        memory_mib: 64,
        nodes: Vec::new(),
        tolerations: Vec::new(),
        proxy: None,
        share_nodes: false,
        origin: None,
        within: Duration::from_secs(5),
    }
}

/// Starts generators, which must fail, and returns the error.
fn refused(cluster: &Cluster, wanted: &PodRequest) -> KubeError {
    cluster.start(wanted, &AtomicBool::new(false)).expect_err("refused")
}

/// Adds a node that claims to be ready; no machine stands behind it.
fn add_node(test: &Test, name: &str) {
    test.kubectl(
        "apply --filename -",
        &format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}}}"),
    );
    let room = r#"{"cpu":"32","memory":"32Gi","pods":"10"}"#;
    let patch = format!(
        r#"{{"status":{{"capacity":{room},"allocatable":{room},"conditions":[{{"type":"Ready","status":"True","reason":"Test","message":""}}]}}}}"#
    );
    test.kubectl(&format!("patch node {name} --subresource status --patch {patch}"), "");
    // The controller takes the taint of new nodes away.
    let taints = format!("get node {name} --output jsonpath={{.spec.taints}}");
    wait_until("the node", || !test.kubectl(&taints, "").contains("not-ready"));
}

/// Returns name and node of each pod of a namespace that has a node.
fn placed(test: &Test, namespace: &str) -> Vec<(String, String)> {
    let columns = "custom-columns=N:.metadata.name,M:.spec.nodeName";
    let words = format!("get pods --namespace {namespace} --no-headers --output {columns}");
    let text = test.kubectl(&words, "");
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(pod, node)| (pod.to_owned(), node.trim().to_owned()))
        .filter(|(_, node)| node != "<none>")
        .collect()
}

/// Waits until this many pods have nodes.
fn await_placed(test: &Test, namespace: &str, count: usize) -> Vec<(String, String)> {
    wait_until("nodes for all pods", || placed(test, namespace).len() == count);
    placed(test, namespace)
}

/// Reports the state of a pod's container in place of a kubelet.
fn tell(test: &Test, namespace: &str, pod: &str, state: &str) {
    let status = format!(
        r#"{{"status":{{"phase":"Pending","podIP":"10.1.1.1","podIPs":[{{"ip":"10.1.1.1"}}],"containerStatuses":[{{"name":"weir","image":"x","imageID":"","ready":false,"restartCount":0,"state":{state}}}]}}}}"#
    );
    let words =
        format!("patch pod {pod} --namespace {namespace} --subresource status --patch {status}");
    test.kubectl(&words, "");
}

/// Reports the status of a pod in place of a kubelet.
pub(crate) fn tell_pod(test: &Test, namespace: &str, pod: &str, status: &str) {
    let words = format!(
        "patch pod {pod} --namespace {namespace} --subresource status --patch {{\"status\":{status}}}"
    );
    test.kubectl(&words, "");
}

fn contexts_are_named(test: &Test) {
    let cluster = connect(test, "kubernetes:weir-test").unwrap();
    assert_eq!((cluster.context(), cluster.namespace()), ("weir-test", "default"));
    let error = connect(test, "kubernetes").unwrap_err();
    let hint = error.hint().unwrap();
    assert!(matches!(error, KubeError::NoContext { .. }), "{error}");
    assert!(hint.contains("weir-guest") && hint.contains("weir-test"), "{hint}");
    let error = connect(test, "kubernetes:production").unwrap_err();
    assert!(matches!(error, KubeError::UnknownContext { .. }), "{error}");
    // Nobody listens, and somebody is not known.
    let text = std::fs::read_to_string(test.configuration()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let tried = |text: String| {
        std::fs::write(&file, text).unwrap();
        Cluster::connect(Some(&file), &"kubernetes:weir-test".parse().unwrap(), false).unwrap_err()
    };
    let error = tried(text.replace(":6443", ":6444"));
    assert!(matches!(error, KubeError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    let error = tried(text.replace("token: ", "token: x"));
    assert!(matches!(error, KubeError::Unauthorized { .. }), "{error}");
    let nothing = folder.path().join("nothing");
    let error =
        Cluster::connect(Some(&nothing), &"kubernetes:a".parse().unwrap(), false).unwrap_err();
    assert!(matches!(error, KubeError::NoConfiguration(_)), "{error}");
}

fn what_is_rendered_is_valid(test: &Test) {
    let all = PodRequest {
        nodes: vec!["zone=a".parse().unwrap()],
        tolerations: vec!["dedicated=bench:NoSchedule".parse().unwrap(), "gpu".parse().unwrap()],
        proxy: Some("default/app=proxy".parse().unwrap()),
        origin: Some(Vec::new()),
        ..wanted()
    };
    for share_nodes in [false, true] {
        let wanted = PodRequest { share_nodes, ..all.clone() };
        let strict = "apply --dry-run=server --validate=strict --filename -";
        let output = test.kubectl(strict, &render(&wanted, "default", "weir-1"));
        for made in ["job.batch/weir-1 created", "pod/weir-1-origin created"] {
            assert!(output.contains(made), "{output}");
        }
    }
}

fn missing_rights_come_with_their_manifest(test: &Test) {
    namespace(test, "rights", "");
    let guest = connect(test, "kubernetes:weir-guest/rights").unwrap();
    let error = refused(&guest, &wanted());
    let KubeError::Rights { missing, user, manifest: grants, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(user, "guest");
    assert!(missing.contains(&"create pods/exec".to_owned()), "{missing:?}");
    assert_eq!(*grants, manifest("rights", "guest"));
    assert!(error.is_input());
    test.kubectl("apply --filename -", grants);
    wait_until("the rights", || guest.check_rights().is_ok());
    let error = connect(test, "kubernetes:weir-guest/default").unwrap().check_rights();
    assert!(error.is_err(), "in one namespace alone");
}

fn what_refuses_a_job_is_told(test: &Test) {
    let cluster = connect(test, "kubernetes:weir-test/nowhere").unwrap();
    let error = refused(&cluster, &wanted());
    assert!(matches!(error, KubeError::NoNamespace { .. }), "{error}");
    assert!(error.is_input());
    let cluster = namespace(test, "policy", "no-jobs=true");
    test.kubectl(
        "apply --filename -",
        r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-jobs}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}]
  validations: [{expression: "false", message: "no jobs here"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-jobs}
spec:
  policyName: no-jobs
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {no-jobs: "true"}}}
"#,
    );
    // A policy is in force some time after it was accepted.
    for _ in 0..50 {
        let error = refused(&cluster, &PodRequest { within: Duration::from_secs(1), ..wanted() });
        if error.to_string().contains("no jobs here") {
            return assert!(matches!(error, KubeError::Refused { .. }), "{error}");
        }
    }
    panic!("the policy is not in force");
}

fn what_refuses_pods_is_told(test: &Test) {
    let cluster = namespace(test, "quota", "");
    test.kubectl("create quota small --namespace quota --hard pods=1", "");
    let status = "get quota small --namespace quota --output jsonpath={.status.hard}";
    wait_until("the quota", || test.kubectl(status, "").contains("pods"));
    let error = refused(&cluster, &wanted());
    assert!(matches!(error, KubeError::Pods { .. }), "{error}");
    assert!(error.to_string().contains("exceeded quota: small"), "{error}");
    // The strictest standard lets weir's pods in: what keeps them from running is that there is no node.
    let cluster = namespace(test, "strict", "pod-security.kubernetes.io/enforce=restricted");
    let error = refused(&cluster, &wanted());
    let words = error.to_string();
    assert!(words.contains("no node can take it: no nodes available"), "{words}");
    assert!(words.contains("FailedScheduling"), "the pod's events: {words}");
    assert!(error.hint().unwrap().contains("--share-nodes"));
    let error = cluster.start(&wanted(), &AtomicBool::new(true)).unwrap_err();
    assert!(matches!(error, KubeError::Interrupted), "{error}");
    assert!(!error.is_input());
    let removed = remove(&cluster, true).unwrap();
    assert!(removed.iter().all(|object| object.kind == "Pod"), "the Job was removed: {removed:?}");
}

fn generators_keep_apart(test: &Test) {
    add_node(test, "n1");
    add_node(test, "n2");
    let cluster = namespace(test, "apart", "");
    let generous = PodRequest { within: Duration::from_secs(60), ..wanted() };
    let generators = std::thread::scope(|scope| {
        let kubelets = scope.spawn(|| {
            let placed = await_placed(test, "apart", 2);
            assert_ne!(placed[0].1, placed[1].1, "each has a node");
            for (pod, _) in &placed {
                tell(test, "apart", pod, r#"{"running":{}}"#);
            }
        });
        let generators = cluster.start(&generous, &AtomicBool::new(false));
        kubelets.join().unwrap();
        generators.unwrap()
    });
    let pods = generators.pods();
    assert_eq!(pods.iter().map(|pod| pod.index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(pods[0].address, Some([10, 1, 1, 1].into()));
    assert!(pods[0].name.starts_with(generators.run()), "{pods:?}");
    // A pod that nobody runs has no agent, and that is said.
    let error = generators.agent(&pods[0], "1", Duration::from_secs(5)).unwrap_err();
    assert!(error.to_string().contains(&pods[0].name), "{error}");
    drop(generators);
    let third = PodRequest { generators: 3, ..wanted() };
    let words = refused(&namespace(test, "third", ""), &third).to_string();
    assert!(words.contains("didn't match pod anti-affinity rules"), "{words}");
    let shared = PodRequest { share_nodes: true, generators: 3, ..wanted() };
    let cluster = namespace(test, "shared", "");
    std::thread::scope(|scope| {
        scope.spawn(|| await_placed(test, "shared", 3));
        // They have nodes, and nobody runs them.
        let error = refused(&cluster, &shared);
        assert!(matches!(error, KubeError::Overdue { .. }), "{error}");
    });
}

fn an_image_that_cannot_be_pulled_is_told(test: &Test) {
    // Again, for nobody renews what it says.
    add_node(test, "n1");
    add_node(test, "n2");
    let cluster = namespace(test, "image", "");
    let generous = PodRequest { within: Duration::from_secs(60), ..wanted() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (pod, _) = &await_placed(test, "image", 2)[1];
            let waiting = r#"{"waiting":{"reason":"ErrImagePull","message":"nobody-has-it"}}"#;
            tell(test, "image", pod, waiting);
        });
        let error = refused(&cluster, &generous);
        let words = error.to_string();
        assert!(
            words.contains("its image cannot be pulled: ErrImagePull: nobody-has-it"),
            "{words}"
        );
        assert!(error.hint().unwrap().contains("weir kube image"));
    });
}

fn everything_is_removed_by_its_label(test: &Test) {
    let cluster = namespace(test, "left", "");
    let unplaced = PodRequest { nodes: vec!["zone=nowhere".parse().unwrap()], ..wanted() };
    test.kubectl("apply --filename -", &render(&unplaced, "left", "weir-killed"));
    // Not weir's, and to be left.
    test.kubectl("create job --namespace left other --image localhost/other", "");
    let jobs = || test.kubectl("get jobs --namespace left --output name", "");
    let pods = || remove(&cluster, true).unwrap().iter().filter(|one| one.kind == "Pod").count();
    wait_until("both pods", || pods() == 2);
    assert!(jobs().contains("weir-killed"), "nothing is removed by a dry run");
    let removed = remove(&cluster, false).unwrap();
    let job = Removed { kind: "Job", name: "weir-killed".to_owned() };
    assert!(removed.contains(&job) && removed.len() == 3, "{removed:?}");
    assert_eq!(jobs().trim(), "job.batch/other");
    assert_eq!(remove(&cluster, false).unwrap(), []);
}
