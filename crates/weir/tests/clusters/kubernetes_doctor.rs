//! Tests of `weir doctor --on` with objects of a real API server, and their effect in a real kubelet.

use serde_json::Value;
use weir_testkit::cluster::Test;
use weir_testkit::program::{HasAll, run, wait_until};
use weir_testkit::sandbox::Sandbox;
use weir_testkit::stand_in;

use crate::kubernetes::start;

/// Objects with faults that the doctor has to find.
const CHECKED: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: checked}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: checked}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data:
  config.conf: |
    apiVersion: kubeproxy.config.k8s.io/v1alpha1
    kind: KubeProxyConfiguration
    conntrack: {maxPerCore: 1, min: 1000}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: verticalpodautoscalers.autoscaling.k8s.io, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: autoscaling.k8s.io
  scope: Namespaced
  names: {kind: VerticalPodAutoscaler, plural: verticalpodautoscalers}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: checked}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 4}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: checked}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Pod
metadata: {name: tuned, namespace: checked}
spec:
  automountServiceAccountToken: false
  securityContext: {sysctls: [{name: net.core.somaxconn, value: "4096"}]}
  containers:
  - {name: tuned, image: "localhost/weir:test", command: [/weir, wait], resources: {limits: {cpu: 1, memory: 64Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: near, namespace: checked}
spec:
  hostNetwork: true
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  containers:
  - name: near
    image: localhost/weir:test
    imagePullPolicy: Never
    command: [/weir, wait]
    resources: {requests: {cpu: 10m}}
"#;

/// A pod that requests whole CPUs, and has them to itself if the kubelet's policy allows it.
const WHOLE: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: whole, namespace: default, labels: {app: whole}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  containers:
  - name: whole
    image: localhost/weir:test
    imagePullPolicy: Never
    command: [/weir, wait]
    env: [{name: PATH, value: /bin}]
    resources: {limits: {cpu: 1, memory: 64Mi}}
"#;

/// Returns the output for a pod with whole CPUs: the pod's own CPUs take precedence over the kubelet's policy.
pub(crate) fn cpus_of_a_whole_pod(test: &Test, sandbox: &Sandbox) -> String {
    test.kubectl("apply --filename -", WHOLE);
    test.kubectl("wait --for=condition=Ready --timeout=60s pod/whole", "");
    let line = "doctor --on kubernetes:weir-test/default --selector app=whole";
    let shown = start(test, sandbox, line).end().with_code(0).stdout;
    test.kubectl("delete pod whole --now", "");
    shown.has_none(&["not known: CPUs"]);
    shown
}

/// Returns the names of the findings.
fn list_findings(shown: &Value) -> Vec<&str> {
    shown["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|finding| finding["id"].as_str())
        .collect()
}

fn make(test: &Test) {
    let web = stand_in::deployment("web", "checked", "command: [/weir, wait]");
    // The controller makes the account as well.
    test.kubectl(
        "apply --server-side --force-conflicts --filename -",
        &format!("{CHECKED}---\n{web}"),
    );
    wait_until("the kind of object is known", || {
        let kinds = "api-resources --api-group autoscaling.k8s.io --output name";
        test.kubectl(kinds, "").contains("verticalpodautoscalers")
    });
    test.kubectl(
        "apply --filename -",
        "
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web, namespace: checked}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
",
    );
    test.kubectl("rollout status deployment/web --namespace checked --timeout 60s", "");
    let reason = "get pod tuned --namespace checked --output jsonpath={.status.reason}";
    wait_until("the kubelet refuses", || test.kubectl(reason, "") == "SysctlForbidden");
}

pub(crate) fn reads_a_cluster(test: &Test) {
    let sandbox = Sandbox::new();
    make(test);
    let line = "doctor --on kubernetes:weir-test/checked --connections 1000 --format json";
    let shown: Value = start(test, &sandbox, line).end().with_code(1).document();
    let expected = [
        "node-conntrack-too-small",
        "pods-best-effort",
        "autoscaled",
        "vertically-autoscaled",
        "sysctl-forbidden",
        "evictions-refused",
        "pods-burstable",
        "host-network",
        "cpu-limited",
        "cpus-not-pinned",
        "kube-proxy-iptables",
    ];
    assert_eq!(list_findings(&shown), expected);
    assert_eq!(shown["unread"], Value::Array(Vec::new()));
    shown["findings"][4]["evidence"].to_string().has_all(&[
        "forbidden sysctl",
        r#"["net.core.somaxconn","4096"]"#,
        r#""allowed":[]"#,
    ]);
    // The command that a finding names does what it says.
    let pins = shown["findings"][2]["change"][0].as_str().unwrap_or_default();
    pins.has("kubectl --context weir-test --namespace checked patch horizontalpodautoscaler web");
    let words = shlex::split(pins).expect("a command");
    let done = test.command(&words[0]).args(&words[1..]).output().expect("kubectl");
    assert!(done.status.success(), "{done:?}");
    let line = "doctor --on kubernetes:weir-test/checked --selector app=web --format json";
    let shown: Value = start(test, &sandbox, line).end().with_code(0).document();
    let expected =
        ["pods-best-effort", "vertically-autoscaled", "evictions-refused", "kube-proxy-iptables"];
    assert_eq!(list_findings(&shown), expected);
    tells_what_it_may_not_read(test, &sandbox);
    cpus_of_a_whole_pod(test, &sandbox).has_all(&[
        "[cpus-not-pinned]",
        "(Cpus_allowed_list) and asks for 1",
        "cpuManagerPolicy none",
    ]);
    test.kubectl("delete configmap kube-proxy --namespace kube-system", "");
    test.kubectl("delete namespace checked --wait=false", "");
}

/// Checks that a user who may only read pods is shown what is left out.
fn tells_what_it_may_not_read(test: &Test, sandbox: &Sandbox) {
    let line = "doctor --on kubernetes:weir-guest/checked";
    start(test, sandbox, line).end().with_code(1).stderr.has("cannot list pods");
    let rights = run("kube rights guest --namespace checked").with_code(0).stdout;
    test.kubectl("apply --filename -", &rights);
    let shown = start(test, sandbox, line).end().with_code(0).stdout;
    shown.has_all(&["[pods-best-effort]", "not known: node weir-node", "nothing was changed"]);
    let nobody = "doctor --on kubernetes:weir-test/checked --selector app=shop";
    start(test, sandbox, nobody).end().did_nothing(2, &["no such pods in namespace checked"]);
}
