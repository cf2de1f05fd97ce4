//! Peer tests: real ingress controllers, built from their sources, pass requests on to `weir origin`.

use std::fmt::Debug;

use weir_model::load_report::LoadReport;
use weir_model::record::Record;
use weir_testkit::cluster::{Named, Test, tier};
use weir_testkit::program::{Ended, HasAll, Running, flat, wait_until};
use weir_testkit::sandbox::Sandbox;

use crate::controlled::patched;
use crate::kubernetes::start;
use crate::{controllers_envoy, deploy};

/// All tests, run in one cluster and one after the other.
const TESTS: [Named; 9] = [
    ("ingress_nginx_serves_an_ingress", ingress_nginx_serves_an_ingress),
    ("a_study_varies_the_real_ingress_nginx", a_study_varies_the_real_ingress_nginx),
    ("contour_serves_an_ingress", |test| {
        ingress(test, "contour", "contour");
    }),
    ("a_study_varies_the_real_contour", controllers_envoy::a_study_varies_the_real_contour),
    (
        "a_study_varies_the_file_of_the_real_contour",
        controllers_envoy::a_study_varies_the_file_of_the_real_contour,
    ),
    ("envoy_gateway_serves_a_route", |test| {
        envoy_gateway(test);
    }),
    (
        "a_study_varies_the_real_envoy_gateway",
        controllers_envoy::a_study_varies_the_real_envoy_gateway,
    ),
    ("the_kustomize_base_is_applied", deploy::the_kustomize_base_is_applied),
    ("the_helm_chart_is_installed", deploy::the_helm_chart_is_installed),
];

#[test]
fn peer_tier() {
    tier("peer", None, |_| {}, &TESTS);
}

/// Starts an origin server in the cluster's network, and a Service with this server as its only endpoint: there are no
/// pods.
pub(crate) fn serve(test: &Test) -> Running {
    let mut command = test.command(env!("CARGO_BIN_EXE_weir"));
    command.args("origin --listen 10.77.0.1:9191 --size 321".split(' '));
    let mut origin = Running::start(&mut command);
    origin.wait_until("the origin server", |origin| origin.stderr().contains("9191"));
    test.kubectl(
        "apply --filename -",
        "
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {ports: [{name: http, port: 80, targetPort: 9191}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop-1, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{name: http, port: 9191, protocol: TCP}]
endpoints: [{addresses: [10.77.0.1], conditions: {ready: true}}]
",
    );
    origin
}

/// Sends a load to a host name through a controller, once that answers as the origin server does: applied changes take
/// effect later, and not at once in every worker.
pub(crate) fn is_served(test: &Test, address: &str, host: &str) {
    let url = format!("http://{address}/");
    wait_until("the host is served", || {
        let tried = load(test, &url, host, "-n 20 -c 4");
        tried.code == Some(0) && tried.document::<LoadReport>().results.errors.is_empty()
    });
    let report: LoadReport = load(test, &url, host, "-R 200 -c 8 -d 3s").with_code(0).document();
    assert!(report.results.errors.is_empty(), "{:?}", report.results.errors);
    assert_eq!((report.results.counts.due, report.results.counts.completed_whole), (600, 600));
    assert_eq!(report.results.counts.content_bytes, 600 * 321);
}

fn load(test: &Test, url: &str, host: &str, options: &str) -> Ended {
    let mut command = test.command(env!("CARGO_BIN_EXE_weir"));
    command.args(["load", "-e", "status=200", "-e", "size=321", "--format", "json"]);
    command.args(["-H", &format!("Host: {host}"), url]);
    command.args(options.split(' '));
    Running::start(&mut command).end()
}

fn ingress_nginx_serves_an_ingress(test: &Test) {
    ingress(test, "ingress-nginx", "nginx");
    // What its nginx has in force is read where it runs.
    let mut nginx = test.within("ingress-nginx", "nginx");
    nginx.args(["-T", "-c", "/etc/nginx/nginx.conf"]);
    let shown = Running::start(&mut nginx).end().with_code(0).stdout;
    shown.has_all(&["server_name nginx.example", "keepalive_requests 1000;"]);
}

fn ingress(test: &Test, controller: &str, class: &str) {
    let address = test.controller(controller);
    let _origin = serve(test);
    let host = format!("{class}.example");
    test.kubectl(
        "apply --filename -",
        &format!(
            "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {class}}}
spec:
  ingressClassName: {class}
  rules:
  - host: {host}
    http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: shop, port: {{number: 80}}}}}}}}]}}
"
        ),
    );
    is_served(test, &address, &host);
}

/// Checks that a study's settings are in force in the real controller's nginx, have the expected cost, and are removed
/// afterwards. Settings that the Ingress itself can express apply to its host only: another host's stay unchanged.
fn a_study_varies_the_real_ingress_nginx(test: &Test) {
    ingress(test, "ingress-nginx", "nginx");
    let address = test.controller("ingress-nginx");
    let _origin = serve(test);
    let beside = "get ingress nginx --output json";
    let beside = test
        .kubectl(beside, "")
        .replace("nginx.example", "a.example")
        .replace("\"name\": \"nginx\"", "\"name\": \"beside\"");
    test.kubectl("apply --filename -", &without_identity(&beside));
    is_served(test, &address, "a.example");
    let sandbox = Sandbox::new();
    let words = words_within(test, "ingress-nginx", "nginx");
    let data = "get configmap ingress-nginx-controller --namespace ingress-nginx --output jsonpath={.data}";
    let annotations = "get ingress nginx --output jsonpath={.metadata.annotations}";
    let before = [data, annotations].map(|line| test.kubectl(line, ""));
    sandbox.write(
        "study.yaml",
        &format!(
            "weir: 1\nname: tried\nquestion: Is it so?\nproxy:\n  kind: nginx\n  address: '{address}'\n  controller:\n    \
             is: ingress-nginx\n    namespace: ingress-nginx\n    config: configmap/ingress-nginx-controller\n    \
             ingress: ingress/default/nginx\n    read: [{words}, -T]\n\
             loads:\n- {{name: closed, closed: true, connections: 4, duration: 8s, request: {{fields: {{Host: nginx.example}}}}}}\n\
             blocks: {{at-least: 6}}\na/a: false\n\
             arms:\n- name: few\n  settings: {{keepalive_requests: 1, gzip: on, worker_connections: 1024, proxy_buffering: on, \
             proxy_buffer_size: 8k, proxy_request_buffering: off, client_body_buffer_size: 32k, proxy_connect_timeout: 7s}}\n"
        ),
    );
    let line = "run study.yaml --out tried --on kubernetes:weir-test --generators 0";
    start(test, &sandbox, line).end().with_code(0);
    assert_eq!([data, annotations].map(|line| test.kubectl(line, "")), before);
    let run = weir_record::Run::read(&sandbox.path("tried")).expect("a run");
    for record in &run.records {
        let Record::Proxy(proxy) = record else {
            continue;
        };
        for (id, usual, of_arm) in [
            ("keepalive_requests", "1000", "1"),
            ("gzip", "off", "on"),
            ("worker_connections", "16384", "1024"),
            ("proxy_buffering", "off", "on"),
            ("proxy_buffer_size", "4k", "8k"),
            ("proxy_request_buffering", "on", "off"),
            ("client_body_buffer_size", "8k", "32k"),
            ("proxy_connect_timeout", "5s", "7s"),
        ] {
            let expected = if proxy.arm == "few" { of_arm } else { usual };
            assert_eq!(proxy.effective[id], expected, "{id} of {}", proxy.arm);
        }
    }
    let text = std::fs::read_to_string(sandbox.path("tried/arms/few/effective.conf"))
        .expect("what nginx printed");
    let sizes = text.lines().filter(|line| line.contains("proxy_buffer_size "));
    let sizes: Vec<bool> = sizes.map(|line| line.ends_with(" 8k;")).collect();
    assert!(sizes.len() > 2, "{sizes:?}");
    assert_eq!(sizes.iter().filter(|is_of_arm| **is_of_arm).count(), 1);
    what_the_ingress_had_is_printed_for_kubectl(test, &sandbox, &[data, annotations]);
    test.kubectl("delete ingress beside nginx", "");
    let findings = weir_analysis::analyze(&run);
    let comparison = &findings.loads[0].comparisons[0];
    assert!(comparison.n >= 6 && comparison.ratio < 0.9, "{comparison:?}");
}

/// Runs the commands that `weir patch` prints for a run's arm, and then those for the way back. Waits each time until
/// the change is in force: until `read` contains all these words, or none of them. After the way back, `said` must
/// return the same as before.
pub(crate) fn patched_and_back<T: PartialEq + Debug>(
    (test, sandbox, run): (&Test, &Sandbox, &str),
    words: &[&str],
    read_objects: impl Fn() -> T,
    read: impl Fn() -> String,
) {
    let before = read_objects();
    for (more, is_back) in [("", false), (" --revert", true)] {
        patched(test, sandbox, &format!("{run} --arm few{more}")).has("kubectl patch ");
        assert_eq!(read_objects() == before, is_back, "{:?} {before:?}", read_objects());
        wait_until("what was patched", || {
            let text = read();
            !text.is_empty() && words.iter().all(|words| text.contains(words) != is_back)
        });
    }
}

fn what_the_ingress_had_is_printed_for_kubectl(
    test: &Test,
    sandbox: &Sandbox,
    objects: &[&str; 2],
) {
    let words = ["keepalive_requests 1;", "worker_connections 1024;", "proxy_buffer_size 8k;"];
    patched_and_back(
        (test, sandbox, "tried"),
        &words,
        || objects.map(|line| test.kubectl(line, "")),
        || {
            let mut nginx = test.within("ingress-nginx", "nginx");
            let shown = Running::start(nginx.arg("-T")).end().stdout;
            flat(&shown)
        },
    );
    sandbox.write("values.yaml", "controller: {}\n");
    let line = "patch tried --arm few --values values.yaml";
    let ended = start(test, sandbox, line).end().with_code(0);
    ended.stderr.has("have no place for client_body_buffer_size, proxy_buffer_size");
    ended.stdout.has_none(&["proxy"]);
}

/// Returns an object without the fields that identify it, to make another from it.
fn without_identity(object: &str) -> String {
    let mut object: serde_json::Value = serde_json::from_str(object).expect("an object");
    object["metadata"] = serde_json::json!({"name": object["metadata"]["name"]});
    object["status"] = serde_json::Value::Null;
    object.to_string()
}

/// Returns the command that runs a program in the controller's environment, as a list of words for a study.
pub(crate) fn words_within(test: &Test, controller: &str, program: &str) -> String {
    let command = test.within(controller, program);
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<&str> = words.filter_map(|word| word.to_str()).collect();
    words.join(", ")
}

pub(crate) fn envoy_gateway(test: &Test) -> (String, Running) {
    let address = test.controller("envoy-gateway");
    let origin = serve(test);
    test.kubectl(
        "apply --filename -",
        "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: envoy}]
  hostnames: [gateway.example]
  rules: [{backendRefs: [{name: shop, port: 80}]}]
",
    );
    is_served(test, &address, "gateway.example");
    (address, origin)
}
