//! A stand-in for an ingress controller that runs as a pod: it renders nginx.conf from its ConfigMap, and identifies
//! itself as a stand-in.

use crate::cluster::Test;

/// Programs in the stand-in's image, besides the stand-in itself.
pub const PROGRAMS: [&str; 6] =
    ["/usr/sbin/nginx", "/bin/bash", "/bin/cat", "/bin/sleep", "/bin/sh", "/bin/head"];

/// Files in its image, besides programs.
pub const FILES: [(&str, &str); 4] = [
    ("/etc/passwd", "root:x:0:0::/:/bin/bash\n"),
    ("/etc/group", "root:x:0:\n"),
    ("/controller", include_str!("../data/stand-in/controller")),
    ("/etc/nginx/nginx.conf", "# Nothing is rendered yet.\n"),
];

/// Returns a Deployment of one pod with the image of the tests; `container` has the further lines of its container, at
/// the left edge.
pub fn deployment(name: &str, namespace: &str, container: &str) -> String {
    let indented = container.trim().replace('\n', "\n        ");
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  strategy: {{rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}}}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      volumes: [{{name: settings, configMap: {{name: settings, optional: true}}}}]
      containers:
      - name: {name}
        image: localhost/weir:test
        imagePullPolicy: Never
        {indented}
---
"#
    )
}

/// Returns a proxy with the ConfigMap `settings` mounted, and its Service at an address.
pub fn served(name: &str, address: &str, container: &str) -> String {
    let container = format!(
        "{container}\nvolumeMounts: [{{name: settings, mountPath: /settings}}]\n\
         readinessProbe: {{tcpSocket: {{port: 8080}}, periodSeconds: 1}}"
    );
    let service = format!(
        r#"
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec:
  clusterIP: {address}
  selector: {{app: {name}}}
  ports: [{{port: 80, targetPort: 8080}}]
---
"#
    );
    deployment(name, "default", &container) + &service
}

/// Returns the stand-in and its ConfigMap, which has an unrelated key.
fn objects() -> String {
    let settings =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {other: x}\n---\n";
    let container = "command: [/controller]\nsecurityContext: {runAsUser: 0}\n\
                     env: [{name: PATH, value: \"/usr/sbin:/bin\"}]";
    let proxy = served("proxy", "10.96.7.9", container);
    // ingress-nginx calls its container so.
    settings.to_owned() + &proxy.replace("- name: proxy\n", "- name: controller\n")
}

/// Starts the stand-in as a Deployment, and waits until it serves.
pub fn start(test: &Test) {
    test.kubectl("apply --filename -", &objects());
    test.kubectl("rollout status deployment/proxy --timeout=60s", "");
}

/// Starts the stand-in in its node's network, where only one pod can have the port.
pub fn start_on_node(test: &Test) {
    let text = objects()
        .replace("maxSurge: 1, maxUnavailable: 0", "maxSurge: 0, maxUnavailable: 1")
        .replace("      containers:", "      hostNetwork: true\n      containers:");
    test.kubectl("apply --filename -", &text);
    test.kubectl("rollout status deployment/proxy --timeout=60s", "");
}

/// Starts the stand-in as a DaemonSet: a pod on each node, in its network or in one of its own.
pub fn start_on_each_node(test: &Test, is_in_their_network: bool) {
    let network = format!("      hostNetwork: {is_in_their_network}\n      containers:");
    let text = objects()
        .replace("kind: Deployment", "kind: DaemonSet")
        .replace(
            "  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n",
            "  updateStrategy: {rollingUpdate: {maxUnavailable: 100%}}\n",
        )
        .replace("      containers:", &network);
    test.kubectl("apply --filename -", &text);
    rolled_out(test, "daemonset/proxy");
}

/// Waits until all pods are new and serve.
pub fn rolled_out(test: &Test, workload: &str) {
    test.kubectl(&format!("rollout status {workload} --timeout=90s"), "");
}

pub fn stop_daemonset(test: &Test) {
    stop_of(test, "daemonset");
}

/// Removes the stand-in, and waits until it is gone.
pub fn stop(test: &Test) {
    stop_of(test, "deployment");
}

fn stop_of(test: &Test, kind: &str) {
    test.kubectl(&format!("delete {kind},service proxy"), "");
    test.kubectl("delete configmap settings", "");
    test.kubectl("wait --for=delete pod --selector app=proxy --timeout=60s", "");
}

/// Returns a study of the stand-in with these arms and this length of load.
pub fn study(duration: &str, arms: &str) -> String {
    format!(
        "weir: 1\nname: tried\nquestion: Is it so?\nproxy:\n  kind: nginx\n  address: '10.96.7.9:80'\n  controller:\n    \
         is: ingress-nginx\n    namespace: default\n    config: configmap/settings\n    workload: deployment/proxy\n    \
         within: 60s\n\
         loads:\n- {{name: closed, closed: true, connections: 4, duration: {duration}}}\nblocks: {{at-least: 6}}\na/a: false\n\
         arms:\n{arms}"
    )
}
