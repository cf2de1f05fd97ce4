//! The peer tier: real ingress controllers, built from their sources, pass requests on to `weir origin`.

use rustix::process::Signal;
use serde_json::{Value, json};
use weir_model::load_report::LoadReport;
use weir_model::record::Record;

use crate::deploy;
use crate::kube_support::{Named, Test, tier};
use crate::kubernetes::start;
use crate::place::Place;
use crate::program::{HasAll, Running, wait_until};

/// All of them, in one cluster and one after the other.
const TESTS: [Named; 8] = [
    (
        "ingress_nginx_serves_an_ingress",
        ingress_nginx_serves_an_ingress,
    ),
    (
        "a_study_varies_the_real_ingress_nginx",
        a_study_varies_the_real_ingress_nginx,
    ),
    ("contour_serves_an_ingress", |test| {
        ingress(test, "contour", "contour");
    }),
    (
        "a_study_varies_the_real_contour",
        a_study_varies_the_real_contour,
    ),
    ("envoy_gateway_serves_a_route", |test| {
        envoy_gateway(test);
    }),
    (
        "a_study_varies_the_real_envoy_gateway",
        a_study_varies_the_real_envoy_gateway,
    ),
    (
        "the_kustomize_base_is_applied",
        deploy::the_kustomize_base_is_applied,
    ),
    (
        "the_helm_chart_is_installed",
        deploy::the_helm_chart_is_installed,
    ),
];

#[test]
fn peer_tier() {
    tier("peer", None, |_| {}, &TESTS);
}

/// An origin server in the cluster's network, and a Service that has it as its only endpoint: there are no pods.
fn serve(test: &Test) -> Running {
    let mut command = test.command(env!("CARGO_BIN_EXE_weir"));
    command.args("origin --listen 10.77.0.1:9191 --size 321".split(' '));
    let mut origin = Running::start(&mut command);
    origin.wait_until("the origin server", |origin| {
        origin.stderr().contains("9191")
    });
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

/// Sends a load to a host name through a controller. Not before that answers as the origin server does: what was applied
/// takes effect later, and not at once in every worker.
fn is_served(test: &Test, address: &str, host: &str) {
    let load = |options: &str| {
        let mut command = test.command(env!("CARGO_BIN_EXE_weir"));
        command.args([
            "load",
            "-e",
            "status=200",
            "-e",
            "size=321",
            "--format",
            "json",
        ]);
        command.args([
            "-H",
            &format!("Host: {host}"),
            &format!("http://{address}/"),
        ]);
        command.args(options.split(' '));
        Running::start(&mut command).end()
    };
    wait_until("the host is served", || {
        let tried = load("-n 20 -c 4");
        tried.code == Some(0) && tried.document::<LoadReport>().errors.is_empty()
    });
    let report: LoadReport = load("-R 200 -c 8 -d 3s").with_code(0).document();
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    assert_eq!(
        (report.counts.due, report.counts.completed_whole),
        (600, 600)
    );
    assert_eq!(report.counts.content_bytes, 600 * 321);
}

fn ingress_nginx_serves_an_ingress(test: &Test) {
    ingress(test, "ingress-nginx", "nginx");
    // What its nginx has in force is read where it runs.
    let mut nginx = test.within("ingress-nginx", "nginx");
    let nginx = nginx.args(["-T", "-c", "/etc/nginx/nginx.conf"]);
    let shown = Running::start(nginx).end().with_code(0).stdout;
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

/// The settings that a study gives the real controller are in force in its nginx, cost what they cost, and are gone.
fn a_study_varies_the_real_ingress_nginx(test: &Test) {
    ingress(test, "ingress-nginx", "nginx");
    let address = test.controller("ingress-nginx");
    let _origin = serve(test);
    let place = Place::new();
    let words = words_within(test, "ingress-nginx", "nginx");
    let data = "get configmap ingress-nginx-controller --namespace ingress-nginx --output jsonpath={.data}";
    let before = test.kubectl(data, "");
    place.write(
        "study.yaml",
        &format!(
            "weir: 1\nname: tried\nquestion: Is it so?\nproxy:\n  kind: nginx\n  address: '{address}'\n  controller:\n    \
             is: ingress-nginx\n    namespace: ingress-nginx\n    config: configmap/ingress-nginx-controller\n    \
             read: [{words}, -T]\n\
             loads:\n- {{name: closed, closed: true, connections: 4, duration: 8s, request: {{fields: {{Host: nginx.example}}}}}}\n\
             blocks: {{at-least: 6}}\na/a: false\n\
             arms:\n- {{name: few, settings: {{keepalive_requests: 1, gzip: on, worker_connections: 1024}}}}\n"
        ),
    );
    let line = "run study.yaml --out tried --on kubernetes:weir-test --generators 0";
    start(test, &place, line).end().with_code(0);
    assert_eq!(test.kubectl(data, ""), before);
    let run = weir_record::Run::read(&place.path("tried")).expect("a run");
    for record in &run.records {
        if let Record::Proxy(proxy) = record {
            let of = |id: &str| proxy.effective[id].clone();
            let found = [
                of("keepalive_requests"),
                of("gzip"),
                of("worker_connections"),
            ];
            assert_eq!(
                found == ["1", "on", "1024"],
                proxy.arm == "few",
                "{found:?}"
            );
        }
    }
    let found = weir_analysis::analyze(&run);
    let comparison = &found.loads[0].comparisons[0];
    assert!(
        comparison.n >= 6 && comparison.ratio < 0.9,
        "{comparison:?}"
    );
}

/// The words of a command where a controller runs, for a list of a study.
fn words_within(test: &Test, controller: &str, program: &str) -> String {
    let command = test.within(controller, program);
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    let words: Vec<&str> = words.filter_map(|word| word.to_str()).collect();
    words.join(", ")
}

fn envoy_gateway(test: &Test) -> (String, Running) {
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

/// A study of a controller of Envoys: its keys, the name that the load gives, and the settings of its only arm.
struct Varied<'v> {
    test: &'v Test,
    place: &'v Place,
    address: &'v str,
    controller: &'v str,
    host: &'v str,
}

impl Varied<'_> {
    /// Starts it. `more` are further keys of the controller.
    fn start(&self, run: &str, more: &str, settings: &str) -> Running {
        let Varied {
            address,
            controller,
            host,
            ..
        } = self;
        self.place.write(
            "study.yaml",
            &format!(
                "weir: 1\nname: tried\nquestion: Is it so?\nproxy:\n  kind: envoy\n  address: '{address}'\n  controller:\n    \
                 {controller}\n    {more}\n\
                 loads:\n- {{name: closed, closed: true, connections: 4, duration: 6s, request: {{fields: {{Host: {host}}}}}}}\n\
                 blocks: {{at-least: 6}}\na/a: false\n\
                 arms:\n- {{name: few, settings: {{{settings}}}}}\n"
            ),
        );
        let line = format!("run study.yaml --out {run} --on kubernetes:weir-test --generators 0");
        start(self.test, self.place, &line)
    }

    /// What each proxy of a run was found with, beside whether it is the arm's.
    fn found(&self, run: &str, ids: &[&str]) -> Vec<(bool, Vec<String>)> {
        let run = weir_record::Run::read(&self.place.path(run)).expect("a run");
        let proxies = run.records.iter().filter_map(|record| match record {
            Record::Proxy(proxy) => Some(proxy),
            _ => None,
        });
        let of = |id: &&str, effective: &weir_model::study::Settings| effective[*id].clone();
        proxies
            .map(|proxy| {
                let levels = ids.iter().map(|id| of(id, &proxy.effective)).collect();
                (proxy.arm == "few", levels)
            })
            .collect()
    }
}

/// Objects as whoever made them has them, without what the cluster counts.
fn said(test: &Test, objects: &[&str]) -> Vec<Value> {
    let one = |object: &&str| {
        let text = test.kubectl(&format!("get --output json {object}"), "");
        let mut object: Value = serde_json::from_str(&text).expect("an object");
        let metadata = &object["metadata"];
        let metadata =
            json!({"annotations": metadata["annotations"], "labels": metadata["labels"]});
        object["metadata"] = metadata;
        object.as_object_mut().map(|object| object.remove("status"));
        object
    };
    objects.iter().map(one).collect()
}

fn assert_found(found: &[(bool, Vec<String>)], before: &[&str], changed: &[&str]) {
    for (is_changed, levels) in found {
        let expected = if *is_changed { changed } else { before };
        assert_eq!(levels, expected, "{is_changed}");
    }
    assert!(found.iter().filter(|(is_changed, _)| *is_changed).count() >= 6);
}

/// An annotation and an HTTPProxy, which Contour looks at all the time, and its own configuration, for which it is started
/// anew: all are in force in its Envoy.
fn a_study_varies_the_real_contour(test: &Test) {
    let address = test.controller("contour");
    let _origin = serve(test);
    test.kubectl(
        "apply --filename -",
        "
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: varied}
spec: {virtualhost: {fqdn: varied.example}, routes: [{services: [{name: shop, port: 80}]}]}
",
    );
    is_served(test, &address, "varied.example");
    let place = Place::new();
    let shell = words_within(test, "contour", "sh");
    let varied = Varied {
        test,
        place: &place,
        address: &address,
        controller: &format!(
            "is: contour\n    namespace: projectcontour\n    config: contourconfiguration/contour\n    \
             route: httpproxy/default/varied\n    service: service/default/shop\n    \
             read: [curl, -s, 'http://127.0.0.1:9001/config_dump', 'http://127.0.0.1:9001/server_info']\n    \
             restart: [{shell}, -c, 'kill $(cat /run/contour.pid)']"
        ),
        host: "varied.example",
    };
    let objects = [
        "contourconfiguration contour --namespace projectcontour",
        "httpproxy varied",
        "service shop",
    ];
    let before = said(test, &objects);
    let settings = "origin_keepalive_requests: 1, max_connections: 77, route_timeout: 3s";
    varied
        .start("tried", "within: 50s", settings)
        .end()
        .with_code(0);
    assert_eq!(said(test, &objects), before);
    let ids = [
        "origin_keepalive_requests",
        "max_connections",
        "route_timeout",
    ];
    let found = varied.found("tried", &ids);
    assert_found(&found, &["unlimited", "1024", "15s"], &["1", "77", "3s"]);
    let run = weir_record::Run::read(&place.path("tried")).expect("a run");
    let found = weir_analysis::analyze(&run);
    let comparison = &found.loads[0].comparisons[0];
    assert!(
        comparison.n >= 6 && comparison.ratio < 0.9,
        "{comparison:?}"
    );
    // It does not start with what contradicts itself.
    let settings = "tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_2";
    let ended = varied.start("refused", "within: 6s", settings).end();
    ended.with_code(1).stderr.has_all(&[
        "arm `few`: not in force after 6 s: tls_m",
        "hint: look at the log of Contour",
    ]);
    assert_eq!(said(test, &objects), before);
    is_served(test, &address, "varied.example");
}

/// Listeners, clusters and the access log, each by an object of its own.
fn a_study_varies_the_real_envoy_gateway(test: &Test) {
    let (address, _origin) = envoy_gateway(test);
    let target = |kind: &str, name: &str| {
        format!(
            "spec: {{targetRefs: [{{group: gateway.networking.k8s.io, kind: {kind}, name: {name}}}]}}"
        )
    };
    let policy = |kind: &str, name: &str, target: &str| {
        format!(
            "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\n{target}\n---\n"
        )
    };
    let clients = policy(
        "ClientTrafficPolicy",
        "clients",
        &target("Gateway", "envoy"),
    );
    let backends = policy(
        "BackendTrafficPolicy",
        "backends",
        &target("HTTPRoute", "shop"),
    );
    test.kubectl("apply --filename -", &(clients + &backends));
    let place = Place::new();
    let shell = words_within(test, "envoy-gateway", "sh");
    let varied = Varied {
        test,
        place: &place,
        address: &address,
        controller: &format!(
            "is: envoy-gateway\n    namespace: default\n    \
             read: [{shell}, -c, 'curl -s http://$(cat /run/eg/*/admin-address.txt)/config_dump']"
        ),
        host: "gateway.example",
    };
    let objects = [
        "clienttrafficpolicy clients",
        "backendtrafficpolicy backends",
        "envoyproxy host --namespace envoy-gateway-system",
    ];
    let before = said(test, &objects);
    let own = "client: clienttrafficpolicy/clients\n    proxy: envoyproxy/envoy-gateway-system/host\n    \
               backend: backendtrafficpolicy/backends";
    let settings = "keepalive_requests: 1, per_connection_buffer_limit: 64k, access_log: off";
    varied.start("tried", own, settings).end().with_code(0);
    assert_eq!(said(test, &objects), before);
    let ids = [
        "keepalive_requests",
        "per_connection_buffer_limit",
        "access_log",
    ];
    let found = varied.found("tried", &ids);
    assert_found(&found, &["unlimited", "32k", "on"], &["1", "64k", "off"]);
    let run = weir_record::Run::read(&place.path("tried")).expect("a run");
    let found = weir_analysis::analyze(&run);
    let comparison = &found.loads[0].comparisons[0];
    assert!(
        comparison.n >= 6 && comparison.ratio < 0.9,
        "{comparison:?}"
    );

    // A cluster's settings are not in force when the policy is accepted, but long after; until then nothing is measured.
    let mut running = varied.start("clusters", own, "max_connections: 7");
    let written = place.path("clusters/records.jsonl");
    running.wait_until("the arm", |_| {
        let records = std::fs::read_to_string(&written).unwrap_or_default();
        records.contains("\"arm\":\"few\"")
    });
    let breaker = &said(test, &objects)[1]["spec"]["circuitBreaker"];
    assert_eq!(breaker["maxConnections"], 7);
    assert_eq!(breaker["maxPendingRequests"], 1024, "a default beside it");
    running.signal(Signal::INT);
    running.end().with_code(130);
    assert_eq!(said(test, &objects), before);
    for (is_changed, levels) in varied.found("clusters", &["max_connections"]) {
        assert_eq!(levels == ["7"], is_changed, "{levels:?}");
    }

    // A policy that another has forestalled, and a value that the definition of the objects does not allow.
    let second = policy("ClientTrafficPolicy", "second", &target("Gateway", "envoy"));
    test.kubectl("apply --filename -", &second);
    for (name, level, words) in [
        (
            "second",
            "77s",
            "Envoy Gateway does not take ClientTrafficPolicy default/second: Accepted is False, Conflicted: ",
        ),
        (
            "clients",
            "123456ms",
            "the cluster refused a change of ClientTrafficPolicy default/clients: ",
        ),
    ] {
        let objects = [&*format!("clienttrafficpolicy {name}")];
        let before = said(test, &objects);
        let own = format!("client: clienttrafficpolicy/{name}");
        let ended = varied.start(name, &own, &format!("keepalive_timeout: {level}"));
        ended.end().with_code(1).stderr.has_all(&["arm `", words]);
        assert_eq!(said(test, &objects), before, "{name}");
    }
}
