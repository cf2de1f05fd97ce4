//! Peer tests: studies that vary Contour and Envoy Gateway, and read the settings in force from their Envoys.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use weir_model::record::Record;
use weir_testkit::cluster::Test;
use weir_testkit::program::{HasAll, Running, wait_until};
use weir_testkit::sandbox::Sandbox;

use crate::controllers::{envoy_gateway, is_served, patched_and_back, serve, words_within};
use crate::kubernetes::start;

/// A study of a controller of Envoys: its keys, the host name of the load, and the settings of its only arm.
struct Varied<'v> {
    test: &'v Test,
    sandbox: &'v Sandbox,
    address: &'v str,
    controller: &'v str,
    host: &'v str,
}

impl Varied<'_> {
    /// Starts the study. `more` are further keys of the controller.
    fn start(&self, run: &str, more: &str, settings: &str) -> Running {
        let Varied { address, controller, host, .. } = self;
        self.sandbox.write(
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
        start(self.test, self.sandbox, &line)
    }

    /// Checks that a connection for each request may cost rate: the interval is wide on a busy machine, so only its
    /// lower end is checked.
    fn assert_slower(&self, run: &str) {
        let run = weir_record::Run::read(&self.sandbox.path(run)).expect("a run");
        let findings = weir_analysis::analyze(&run);
        let comparison = &findings.loads[0].comparisons[0];
        let may_be_slower = comparison.n >= 6 && comparison.interval.0 < 0.9;
        assert!(may_be_slower, "{comparison:?}");
    }

    /// Returns the settings read from each proxy of a run, with true if its arm is the varied one.
    fn read_levels(&self, run: &str, ids: &[&str]) -> Vec<(bool, Vec<String>)> {
        let run = weir_record::Run::read(&self.sandbox.path(run)).expect("a run");
        let proxies = run.records.iter().filter_map(|record| match record {
            Record::Proxy(proxy) => Some(proxy),
            _ => None,
        });
        proxies
            .map(|proxy| {
                let levels = ids.iter().map(|id| proxy.effective[*id].clone()).collect();
                (proxy.arm == "few", levels)
            })
            .collect()
    }
}

/// Returns objects without the fields that the cluster updates.
fn read_objects(test: &Test, objects: &[&str]) -> Vec<Value> {
    objects
        .iter()
        .map(|object| {
            let text = test.kubectl(&format!("get --output json {object}"), "");
            let mut object: Value = serde_json::from_str(&text).expect("an object");
            let metadata = &object["metadata"];
            let metadata =
                json!({"annotations": metadata["annotations"], "labels": metadata["labels"]});
            object["metadata"] = metadata;
            object.as_object_mut().map(|object| object.remove("status"));
            object
        })
        .collect()
}

/// Returns the configuration of a running Envoy, without listeners that only wait for their last connections; empty if
/// it does not answer.
fn dump(test: &Test, controller: &str, admin: &str) -> String {
    let mut curl = test.within(controller, "sh");
    curl.args(["-c", &format!("curl -s http://{admin}/config_dump")]);
    let answer = Running::start(&mut curl).end().stdout;
    let mut dump: Value = serde_json::from_str(&answer).unwrap_or_default();
    for config in dump["configs"].as_array_mut().into_iter().flatten() {
        let listeners = config.get_mut("dynamic_listeners").and_then(Value::as_array_mut);
        for listener in listeners.into_iter().flatten() {
            listener.as_object_mut().map(|fields| fields.remove("draining_state"));
        }
    }
    if dump.is_null() { String::new() } else { dump.to_string() }
}

/// Address of the Envoys' administration, as seen from a shell in their container.
const CONTOUR_ADMIN: &str = "127.0.0.1:9001";
const GATEWAY_ADMIN: &str = "$(cat /run/eg/*/admin-address.txt)";

fn assert_levels(of_proxies: &[(bool, Vec<String>)], before: &[&str], changed: &[&str]) {
    for (is_changed, levels) in of_proxies {
        let expected = if *is_changed { changed } else { before };
        assert_eq!(levels, expected, "{is_changed}");
    }
    assert!(of_proxies.iter().filter(|(is_changed, _)| *is_changed).count() >= 6);
}

const ROUTE: &str = "
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: varied}
spec: {virtualhost: {fqdn: varied.example}, routes: [{services: [{name: shop, port: 80}]}]}
";

/// Checks that an annotation and an HTTPProxy, which Contour watches, and its own configuration, for which it is
/// restarted, all come into force in its Envoy.
pub(crate) fn a_study_varies_the_real_contour(test: &Test) {
    let address = test.controller("contour");
    let _origin = serve(test);
    test.kubectl("apply --filename -", ROUTE);
    is_served(test, &address, "varied.example");
    let sandbox = Sandbox::new();
    let shell = words_within(test, "contour", "sh");
    let varied = Varied {
        test,
        sandbox: &sandbox,
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
    let before = read_objects(test, &objects);
    // Nothing is measured before all of them are in force.
    let settings = "origin_keepalive_requests: 1, max_connections: 77, route_timeout: 3s, max_pending_requests: 78, \
                    max_requests: 79, origin_keepalive_timeout: 70s, connection_balance: exact, keepalive_timeout: 77s, \
                    per_connection_buffer_limit: 64k, keepalive_requests: 10000, request_timeout: 8s, gzip: off, \
                    stream_idle_timeout: 66s, delayed_close_timeout: 0s, access_log: off, origin_connect_timeout: 3s, \
                    origin_per_connection_buffer_limit: 128k";
    varied.start("tried", "within: 50s", settings).end().with_code(0);
    assert_eq!(read_objects(test, &objects), before);
    let ids = ["origin_keepalive_requests", "max_connections", "route_timeout"];
    let levels = varied.read_levels("tried", &ids);
    assert_levels(&levels, &["unlimited", "1024", "15s"], &["1", "77", "3s"]);
    varied.assert_slower("tried");
    // Contour reads its own configuration at its start only.
    patched_and_back(
        (test, &sandbox, "tried"),
        &[
            "\"max_requests_per_connection\":10000",
            "\"idle_timeout\":\"77s\"",
            "\"timeout\":\"3s\"",
            "\"max_connections\":77",
        ],
        || read_objects(test, &objects),
        || restart_contour(test),
    );
    // It does not start with what contradicts itself.
    let settings = "tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_2";
    let ended = varied.start("refused", "within: 6s", settings).end();
    ended
        .with_code(1)
        .stderr
        .has_all(&["arm `few`: not in force after 6 s: tls_m", "hint: look at the log of Contour"]);
    assert_eq!(read_objects(test, &objects), before);
    is_served(test, &address, "varied.example");
}

/// Restarts Contour, and returns its Envoy's configuration a moment later.
fn restart_contour(test: &Test) -> String {
    let mut kill = test.within("contour", "sh");
    kill.args(["-c", "kill $(cat /run/contour.pid); sleep 2"]);
    Running::start(&mut kill).end().with_code(0);
    dump(test, "contour", CONTOUR_ADMIN)
}

/// Contour's configuration file, with comments and a null, in a ConfigMap.
const FILE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: contour, namespace: projectcontour}
data:
  other: x
  contour.yaml: |
    # What the administrator wrote.
    tls:
      fallback-certificate:
      # name: fallback
    timeouts:
      request-timeout: 9s # for uploads
    accesslog-format: envoy
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: filed}
spec: {virtualhost: {fqdn: filed.example}, routes: [{services: [{name: shop, port: 80}]}]}
";

/// Checks the same settings in the file that Contour reads at its start. No kubelet would mount the ConfigMap, so the
/// study's `restart` copies it.
pub(crate) fn a_study_varies_the_file_of_the_real_contour(test: &Test) {
    let address = test.controller("contour");
    let _origin = serve(test);
    test.kubectl("apply --filename -", FILE);
    let sandbox = Sandbox::new();
    let shell = words_within(test, "contour", "sh").replace(", ", " ");
    let restart = format!("{shell} -c 'cat >/etc/contour.yaml; kill $(cat /run/contour.pid)'");
    let kubectl = "kubectl get configmap contour --namespace projectcontour --output 'jsonpath={.data.contour\\.yaml}'";
    let script = format!("#!/bin/bash\nset -euo pipefail\n{kubectl} | {restart}\n");
    let mounted = sandbox.program("mounted", &script);
    run_script(test, &mounted);
    // Envoy goes on with what the former Contour had told it until this one does: that had no timeout.
    wait_until("the file is in force", || {
        dump(test, "contour", CONTOUR_ADMIN).contains("\"idle_timeout\":\"60s\"")
    });
    is_served(test, &address, "filed.example");
    let varied = Varied {
        test,
        sandbox: &sandbox,
        address: &address,
        controller: &format!(
            "is: contour\n    namespace: projectcontour\n    file: configmap/contour\n    restart: [{}]\n    \
             read: [curl, -s, 'http://127.0.0.1:9001/config_dump', 'http://127.0.0.1:9001/server_info']",
            mounted.display()
        ),
        host: "filed.example",
    };
    let objects = ["configmap contour --namespace projectcontour"];
    let before = read_objects(test, &objects);
    let settings = "origin_keepalive_requests: 1, request_timeout: 8s, connection_balance: exact, keepalive_timeout: 77s, \
                    per_connection_buffer_limit: 64k, keepalive_requests: 10000, gzip: off, stream_idle_timeout: 66s, \
                    delayed_close_timeout: 0s, access_log: off, origin_connect_timeout: 3s, \
                    origin_per_connection_buffer_limit: 128k";
    varied.start("filed", "within: 50s", settings).end().with_code(0);
    assert_eq!(read_objects(test, &objects), before);
    let ids = ["origin_keepalive_requests", "request_timeout"];
    let levels = varied.read_levels("filed", &ids);
    assert_levels(&levels, &["unlimited", "9s"], &["1", "8s"]);
    varied.assert_slower("filed");
    patched_and_back(
        (test, &sandbox, "filed"),
        &["\"max_requests_per_connection\":10000", "\"idle_timeout\":\"77s\""],
        || read_objects(test, &objects),
        || {
            run_script(test, &mounted);
            std::thread::sleep(std::time::Duration::from_secs(2));
            dump(test, "contour", CONTOUR_ADMIN)
        },
    );
    // It is left as the others found it.
    let script = format!("#!/bin/bash\nset -euo pipefail\ntrue | {restart}\n");
    run_script(test, &sandbox.program("unmounted", &script));
    test.kubectl("delete --filename -", FILE);
}

fn run_script(test: &Test, path: &Path) {
    let status = test.command("bash").arg(path).status();
    assert!(status.is_ok_and(|status| status.success()));
}

/// Checks settings of listeners, clusters and the access log, each in an object of its own.
pub(crate) fn a_study_varies_the_real_envoy_gateway(test: &Test) {
    let (address, _origin) = envoy_gateway(test);
    let clients = policy("ClientTrafficPolicy", "clients", &target("Gateway", "envoy"));
    // What else compresses is the user's.
    let compressed = "spec: {compressor: [{type: Brotli, brotli: {}}], ";
    let backends = policy("BackendTrafficPolicy", "backends", &target("HTTPRoute", "shop"))
        .replace("spec: {", compressed);
    test.kubectl("apply --filename -", &(clients + &backends));
    let sandbox = Sandbox::new();
    let shell = words_within(test, "envoy-gateway", "sh");
    let varied = Varied {
        test,
        sandbox: &sandbox,
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
    let before = read_objects(test, &objects);
    let policies = "client: clienttrafficpolicy/clients\n    proxy: envoyproxy/envoy-gateway-system/host\n    \
               backend: backendtrafficpolicy/backends";
    let settings = "keepalive_requests: 1, per_connection_buffer_limit: 64k, access_log: off, keepalive_timeout: 1500ms, \
                    max_connections_to_accept_per_socket_event: all, request_headers_timeout: 9s, request_timeout: 8s, \
                    stream_idle_timeout: 66s, generate_request_id: off, suppress_envoy_headers: off, gzip: on, gzip_min_length: 1k";
    varied.start("tried", policies, settings).end().with_code(0);
    assert_eq!(read_objects(test, &objects), before);
    let ids = [
        "keepalive_requests",
        "per_connection_buffer_limit",
        "access_log",
        "gzip",
        "gzip_min_length",
    ];
    let levels = varied.read_levels("tried", &ids);
    assert_levels(
        &levels,
        &["unlimited", "32k", "on", "off", "30"],
        &["1", "64k", "off", "on", "1k"],
    );
    varied.assert_slower("tried");
    patched_and_back(
        (test, &sandbox, "tried"),
        &[
            "\"max_requests_per_connection\":1",
            "\"per_connection_buffer_limit_bytes\":65536",
            "\"min_content_length\":1024",
        ],
        || read_objects(test, &objects),
        || dump(test, "envoy-gateway", GATEWAY_ADMIN),
    );
    assert_clusters_are_awaited(&varied, policies, &objects);
    what_is_not_taken_is_told(&varied);
}

/// Checks that nothing is measured before a cluster's settings are in force, which is long after their policy is
/// accepted.
fn assert_clusters_are_awaited(varied: &Varied<'_>, policies: &str, objects: &[&str]) {
    let list = r#"{"spec":{"compressor":[{"type":"Gzip","gzip":{},"minContentLength":"77"},{"type":"Brotli","brotli":{}}]}}"#;
    let line = format!("patch backendtrafficpolicy backends --type merge --patch {list}");
    varied.test.kubectl(&line, "");
    wait_until("gzip", || {
        dump(varied.test, "envoy-gateway", GATEWAY_ADMIN).contains("\"min_content_length\":77")
    });
    let before = read_objects(varied.test, objects);
    let settings = "max_connections: 7, max_requests: 79, origin_connect_timeout: 3s, origin_keepalive_requests: 9, \
                    origin_keepalive_timeout: 70s, per_upstream_preconnect_ratio: 1.5, route_timeout: 7s, \
                    origin_per_connection_buffer_limit: 64k, gzip: off";
    let mut running = varied.start("clusters", policies, settings);
    let written = varied.sandbox.path("clusters/records.jsonl");
    running.wait_until("the arm", |_| {
        let records = std::fs::read_to_string(&written).unwrap_or_default();
        records.contains("\"arm\":\"few\"")
    });
    let changed = &read_objects(varied.test, objects)[1]["spec"];
    let compressors = json!([{"type": "Brotli", "brotli": {}}]);
    assert_eq!(changed["compressor"], compressors);
    let breaker = &changed["circuitBreaker"];
    assert_eq!(breaker["maxConnections"], 7);
    assert_eq!(breaker["maxPendingRequests"], 1024, "a default beside it");
    running.signal(Signal::INT);
    running.end().with_code(130);
    assert_eq!(read_objects(varied.test, objects), before);
    let levels = varied.read_levels("clusters", &["max_connections", "gzip"]);
    assert!(levels.iter().any(|(is_changed, _)| *is_changed));
    for (is_changed, levels) in levels {
        let expected = if is_changed { ["7", "off"] } else { ["1024", "on"] };
        assert_eq!(levels, expected);
    }
}

fn target(kind: &str, name: &str) -> String {
    format!("{{group: gateway.networking.k8s.io, kind: {kind}, name: {name}}}")
}

/// Returns an empty policy of Envoy Gateway.
fn policy(kind: &str, name: &str, target: &str) -> String {
    format!(
        "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\n\
         spec: {{targetRefs: [{target}]}}\n---\n"
    )
}

/// Checks the error for a policy that conflicts with an earlier one, and for a value that the objects' schema does not
/// allow.
fn what_is_not_taken_is_told(varied: &Varied<'_>) {
    let test = varied.test;
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
        let before = read_objects(test, &objects);
        let client = format!("client: clienttrafficpolicy/{name}");
        let ended = varied.start(name, &client, &format!("keepalive_timeout: {level}"));
        ended.end().with_code(1).stderr.has_all(&["arm `", words]);
        assert_eq!(read_objects(test, &objects), before, "{name}");
    }
}
