//! Tests of a controller whose data plane answers at a port of its pods' loopback. A stand-in takes the place of Envoy:
//! an nginx that answers as Envoy's administration does, always the same, whatever the objects contain.

use weir_testkit::cluster::Test;
use weir_testkit::program::HasAll;
use weir_testkit::sandbox::Sandbox;
use weir_testkit::stand_in;

use crate::kubernetes::start;

const OBJECTS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: contourconfigurations.projectcontour.io}
spec:
  group: projectcontour.io
  scope: Namespaced
  names: {kind: ContourConfiguration, plural: contourconfigurations, singular: contourconfiguration}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  nginx.conf: |
    user root; pid /tmp/nginx.pid; events { }
    http {
      access_log off; client_body_temp_path /tmp/a; proxy_temp_path /tmp/b; fastcgi_temp_path /tmp/c;
      uwsgi_temp_path /tmp/d; scgi_temp_path /tmp/e;
      server { listen 8080; location / { return 200 served; } }
      server {
        listen 127.0.0.1:9001;
        location /server_info { return 200 '{"command_line_options": {"concurrency": 2}}'; }
        location /config_dump { return 200 '{"configs": [
          {"@type": "x.BootstrapConfigDump", "bootstrap": {}},
          {"@type": "x.ListenersConfigDump", "dynamic_listeners": [{"active_state": {"listener": {
            "name": "ingress_http",
            "address": {"socket_address": {"address": "0.0.0.0", "port_value": 8080}},
            "filter_chains": [{"filters": [{"typed_config": {
              "@type": "x.HttpConnectionManager", "rds": {"route_config_name": "ingress_http"},
              "common_http_protocol_options": {"idle_timeout": "60s"}}}]}]}}}]},
          {"@type": "x.RoutesConfigDump", "dynamic_route_configs": [{"route_config": {
            "name": "ingress_http", "virtual_hosts": [{"domains": ["*"], "routes": [
              {"match": {"prefix": "/"}, "route": {"cluster": "shop"}}]}]}}]},
          {"@type": "x.ClustersConfigDump", "dynamic_active_clusters": [{"cluster": {"name": "shop",
            "circuit_breakers": {"thresholds": [{"max_connections": 55}]}}}]}]}'; }
      }
    }
"#;

const CONFIGURATION: &str = "
apiVersion: projectcontour.io/v1alpha1
kind: ContourConfiguration
metadata: {name: contour}
spec: {other: x}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: contour}
data: {contour.yaml: \"# ours\\ntimeouts: {}\\n\"}
";

/// Returns the part of an object at this JSON path.
fn read_field(test: &Test, object: &str, at: &str) -> String {
    test.kubectl(&format!("get {object} --output jsonpath={at}"), "")
}

pub(crate) fn what_pods_have_in_force_is_read_over_a_port(test: &Test) {
    let sandbox = Sandbox::new();
    let nginx =
        r#"command: [/usr/sbin/nginx, -e, stderr, -c, /settings/nginx.conf, -g, "daemon off;"]"#;
    let envoy = stand_in::served("envoy", "10.96.7.10", nginx);
    test.kubectl("apply --filename -", &format!("{OBJECTS}---\n{envoy}"));
    test.kubectl(
        "wait --for=condition=Established crd/contourconfigurations.projectcontour.io",
        "",
    );
    test.kubectl("apply --filename -", CONFIGURATION);
    test.kubectl("rollout status deployment/envoy --timeout=60s", "");
    let before = varied_objects(test);
    // The second is read at the start only, so pods of another template have to come.
    for (more, setting, words, rolled_out) in [
        (
            "service: service/envoy",
            "max_connections: 7",
            "arm `few`: not in force after 3 s: max_connections is 55 and not 7 in envoy-",
            0,
        ),
        (
            "config: contourconfiguration/contour\n    contour: deployment/envoy",
            "keepalive_timeout: 77s",
            "arm `few`: not in force after 3 s: keepalive_timeout is 60s and not 77s in envoy-",
            2,
        ),
        (
            "file: configmap/contour\n    contour: deployment/envoy",
            "stream_idle_timeout: 66s",
            "arm `few`: not in force after 3 s: stream_idle_timeout is 300s and not 66s in envoy-",
            2,
        ),
    ] {
        sandbox.write(
            "study.yaml",
            &format!(
                "weir: 1\nname: tried\nquestion: Is it so?\nproxy:\n  kind: envoy\n  address: '10.96.7.10:80'\n  controller:\n    \
                 is: contour\n    namespace: default\n    workload: deployment/envoy\n    within: 3s\n    {more}\n\
                 loads:\n- {{name: closed, closed: true, connections: 4, duration: 6s}}\nblocks: {{at-least: 6}}\na/a: false\n\
                 arms:\n- {{name: few, settings: {{{setting}}}}}\n"
            ),
        );
        let first = count_templates(test);
        let run = format!("tried-{}", more.len());
        let line = format!("run study.yaml --out {run} --on kubernetes:weir-test --generators 0");
        start(test, &sandbox, &line).end().with_code(1).stderr.has_all(&[words]);
        assert_eq!(varied_objects(test), before, "{setting}");
        assert_eq!(count_templates(test), first + rolled_out, "{setting}");
    }
    test.kubectl("delete deployment,service envoy", "");
    test.kubectl("delete configmap settings contour", "");
}

fn varied_objects(test: &Test) -> [String; 5] {
    [
        read_field(test, "service envoy", "{.metadata.annotations}"),
        read_field(test, "contourconfiguration contour", "{.spec}"),
        read_field(test, "configmap contour", "{.data}"),
        read_field(test, "deployment envoy", "{.spec}"),
        test.kubectl("get replicasets --selector app=envoy --output name", ""),
    ]
}

fn count_templates(test: &Test) -> u32 {
    let at = r"{.metadata.annotations.deployment\.kubernetes\.io/revision}";
    read_field(test, "deployment envoy", at).parse().expect("a number")
}
