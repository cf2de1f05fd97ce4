//! Tests of the limiter of a proxy in pods: its own pods are sampled, whatever sends the load.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;
use weir_testkit::cluster::Test;
use weir_testkit::program::{Ended, HasAll, flat, wait_until};
use weir_testkit::sandbox::{self, Sandbox};
use weir_testkit::stand_in;

use crate::kubernetes::{PODS, start};

/// A pod whose image has a shell that is not on its PATH.
const BARE: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: bare, labels: {app: bare}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  containers:
  - name: bare
    image: localhost/weir:test
    imagePullPolicy: Never
    command: [/weir, wait]
    env: [{name: PATH, value: /nonexistent}]
"#;

/// Options to send the load from this host.
pub(crate) const HERE: &str = "--on kubernetes:weir-test --generators 0";

/// Waits until the Service serves without a break for a while: rules of the node follow a roll-out.
fn await_service(test: &Test) {
    let connect = "for i in {1..20}; do exec 3<>/dev/tcp/10.96.7.9/80; sleep 0.1; done";
    wait_until("the Service serves", || {
        let mut asks = test.command("bash");
        let status = asks.args(["-ec", connect]).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    });
}

/// Returns the limiter of the stand-in under a closed loop, by samples of these pods.
pub(crate) fn limiter(test: &Test, sandbox: &Sandbox, pods: &str, more: &str) -> Value {
    let line = format!(
        "load http://10.96.7.9/ -c 8 -d 6s --observe --format json --proxy-pods {pods} {more}"
    );
    let report: Value = start(test, sandbox, &line).end().with_code(0).document();
    report["limiter"].clone()
}

/// Returns the names of limiters in a list of the judgement.
fn names(limiter: &Value, list: &str) -> Vec<String> {
    let all = limiter["judgement"][list].as_array();
    all.into_iter()
        .flatten()
        .filter_map(|finding| Some(finding["limiter"].as_str()?.to_owned()))
        .collect()
}

/// An Ingress of the stand-in with the status that its controller would write, and ambiguous ones.
const INGRESSES: &str = r#"
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: stand-in, labels: {app.kubernetes.io/name: stand-in}}
spec: {controller: example.org/stand-in}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  ingressClassName: stand-in
  rules:
  - host: shop.example
    http: {paths: [{path: /tea, pathType: Prefix, backend: {service: {name: origin, port: {number: 80}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: stars}
spec: {rules: [{host: "*.example"}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: classless}
spec: {rules: [{host: lost.example}]}
"#;

pub(crate) fn an_ingress_is_asked_by_its_name(test: &Test) {
    let sandbox = Sandbox::new();
    stand_in::start(test);
    test.kubectl("apply --filename -", INGRESSES);
    for (ingress, words) in [
        ("nobody", "ingress/default/nobody does not exist"),
        ("stars", "has the pattern *.example as the host of its first rule"),
        ("classless", "it names no class, and the cluster has no default one"),
        ("shop", "no Service with port 80 has the labels"),
    ] {
        let refused = load_ingress(test, &sandbox, ingress, "").with_code(2);
        refused.stderr.has_all(&[words, "-H 'Host: NAME'"]);
    }
    let guest = "load ingress/shop -c 2 -d 3s --on kubernetes:weir-guest --generators 0";
    start(test, &sandbox, guest).end().with_code(2).stderr.has_all(&[
        "`guest` may not get ingresses",
        "kubectl apply -f -",
        "kind: ClusterRole",
    ]);
    // By the Service of its class's controller; then by its status.
    await_service(test);
    test.kubectl("label service proxy app.kubernetes.io/name=stand-in", "");
    let ended = load_ingress(test, &sandbox, "shop", "--observe").with_code(0);
    ended.stderr.has_all(&[
        "URL: http://shop.example/tea (the first rule of ingress/default/shop)",
        "Address: 10.96.7.9 (Service default/proxy, of the controller of IngressClass stand-in, by its labels",
        "Proxy: pods default/app=proxy (Service default/proxy)",
    ]);
    let report: Value = ended.document();
    assert_eq!(report["target"]["url"], "http://shop.example/tea");
    assert_eq!(report["limiter"]["pods"], "pods default/app=proxy");
    assert!(report["limiter"]["evidence"]["quantities"]["throttled"].is_object());
    let status = r#"{"status":{"loadBalancer":{"ingress":[{"ip":"10.96.7.9"}]}}}"#;
    let line = format!("patch ingress shop --subresource=status --type=merge --patch {status}");
    test.kubectl(&line, "");
    let ended = load_ingress(test, &sandbox, "default/shop", "").with_code(0);
    ended.stderr.has("Address: 10.96.7.9 (the status of ingress/default/shop)");
    test.kubectl("delete ingress shop stars classless", "");
    test.kubectl("delete ingressclass stand-in", "");
    stand_in::stop(test);
}

fn load_ingress(test: &Test, sandbox: &Sandbox, ingress: &str, more: &str) -> Ended {
    let line =
        format!("load ingress/{ingress} -c 2 -d 3s --progress lines --format json {HERE} {more}");
    start(test, sandbox, &line).end()
}

pub(crate) fn what_limits_pods_is_found_in_them(test: &Test) {
    let sandbox = Sandbox::new();
    stand_in::start(test);
    await_service(test);
    free_pods_are_known(test, &sandbox);
    test.kubectl("set resources deployment/proxy --limits cpu=100m", "");
    test.kubectl("rollout status deployment/proxy --timeout=60s", "");
    await_service(test);
    the_quota_of_pods_is_named(test, &sandbox);
    // Pods that cannot be read, and pods that are not there.
    test.kubectl("apply --filename -", BARE);
    test.kubectl("wait --for=condition=Ready --timeout=60s pod/bare", "");
    for (pods, why) in [
        ("default/app=bare", "cannot run `sh` in pod"),
        ("default/app=nobody", "none of them runs"),
    ] {
        let unknown = limiter(test, &sandbox, pods, HERE);
        assert!(names(&unknown, "unknown").contains(&"quota".to_owned()), "{unknown}");
        unknown["evidence"]["absent"]["throttled"].to_string().has(why);
    }
    let line =
        format!("load http://10.96.7.9/ -c 2 -d 3s --observe --proxy-pods default/app=bare {HERE}");
    let shown = start(test, &sandbox, &line).end().with_code(0).stdout;
    flat(&shown).has("the pods default/app=bare could not be read (cannot run `sh` in pod `bare`");
    a_shell_ends_with_weir(test, &sandbox);
    test.kubectl("delete pod bare --now", "");
    stand_in::stop(test);
}

/// Checks that the shells of a killed weir end in the pods that it has sampled.
fn a_shell_ends_with_weir(test: &Test, sandbox: &Sandbox) {
    let line = format!(
        "load http://10.96.7.9/ -c 2 -d 60s --observe --proxy-pods default/app=proxy {HERE}"
    );
    let running = start(test, sandbox, &line);
    wait_until("a shell of weir's", || count_shells(test) == 1);
    sandbox::kill(running.pid());
    wait_until("no shell of weir's", || count_shells(test) == 0);
}

fn count_shells(test: &Test) -> usize {
    let script =
        "for f in /proc/[0-9]*/cmdline; do read -r -d '' word < $f; echo \"<$word>\"; done; true";
    let mut command = test.command("kubectl");
    command.args(["exec", "deployment/proxy", "--", "bash", "-c", script]);
    let printed = command.output().expect("kubectl").stdout;
    String::from_utf8_lossy(&printed).matches("<sh>").count()
}

/// Tests pods without a CPU limit, with the load from this host.
fn free_pods_are_known(test: &Test, sandbox: &Sandbox) {
    let free = limiter(test, sandbox, "default/app=proxy", HERE);
    assert!(
        !names(&free, "findings").contains(&"quota".to_owned())
            && names(&free, "ruled_out").contains(&"quota".to_owned()),
        "{:?} {:?}",
        free["judgement"]["findings"],
        free["evidence"]["absent"]
    );
    let quantities = &free["evidence"]["quantities"];
    for quantity in ["proxy_cpus", "listen_overflows", "memory", "cpu_all", "user_share"] {
        assert!(quantities[quantity]["value"].is_number(), "{quantity}: {free}");
    }
    assert!(free["evidence"]["absent"]["accept_queue"].to_string().contains("not read in a pod"));
}

/// Tests pods with a CPU limit, with the load from a pod and from this host.
fn the_quota_of_pods_is_named(test: &Test, sandbox: &Sandbox) {
    let held = limiter(test, sandbox, "default/app=proxy", PODS);
    let first = &held["judgement"]["findings"][0];
    assert_eq!(first["limiter"], "quota", "{first} {}", held["evidence"]);
    assert_eq!(first["turn"][0], "cpu_limit");
    assert_eq!(held["pods"], "pods default/app=proxy");
    let [quota, throttled] = ["cpu_quota", "throttled_periods"].map(|quantity| {
        let mut evidence = first["evidence"].as_array().into_iter().flatten();
        let row = evidence.find(|row| row["quantity"] == quantity);
        row.and_then(|row| row["value"].as_f64()).expect("evidence")
    });
    assert!((quota - 0.1).abs() < 1e-6);
    // A period has 100 ms.
    assert!((2.0..=10.5).contains(&throttled), "{first}");
    let line = format!(
        "load http://10.96.7.9/ -c 8 -d 4s --observe --proxy-pods default/app=proxy {HERE}"
    );
    let shown = start(test, sandbox, &line).end().with_code(0).stdout;
    shown.has_all(&["What limits", "quota", "raise cpu_limit of the pods default/app=proxy"]);
    a_capacity_is_that_of_the_quota(test, sandbox);
}

/// Tests that a search names the quota from its first closed loops on. The whole search would take minutes.
fn a_capacity_is_that_of_the_quota(test: &Test, sandbox: &Sandbox) {
    let line = format!(
        "capacity http://10.96.7.9/ --out quota -c 8 --hold 5s --confidence 80% --proxy-pods default/app=proxy {HERE}"
    );
    let mut running = start(test, sandbox, &line);
    running.wait_until("some trials", |_| {
        let records = fs::read_to_string(sandbox.path("quota/records.jsonl")).unwrap_or_default();
        records.matches("\"trial\"").count() > 12
    });
    running.signal(Signal::INT);
    let shown = running.end().with_code(130).stdout;
    // Beside another load on this machine, that is what limits the pods, and is named.
    if flat(&shown).contains("What limits 10.96.7.9: other processes had") {
        return;
    }
    flat(&shown).has("raise cpu_limit of the pods default/app=proxy");
    let run = weir_record::Run::read(&sandbox.path("quota")).expect("a run");
    let limiters = weir_analysis::analyze(&run).limiters;
    let limiter = limiters.first().expect("it was sampled");
    assert_eq!(limiter.pods.as_deref(), Some("pods default/app=proxy"));
    let first = limiter.judgement.findings.first().expect("a limit");
    assert_eq!((&*first.limiter, &*first.turn[0]), ("quota", "cpu_limit"), "{limiter:?}");
}
