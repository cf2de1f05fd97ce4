//! Tests of published studies of ingress controllers, shortened, with a stand-in that runs as pods: the settings are
//! changed by the same means, come into force in the pods, and are restored.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weir_model::record::Record;
use weir_record::Run;
use weir_testkit::cluster::Test;
use weir_testkit::foreign::Foreign;
use weir_testkit::program::{HasAll, Running, flat, wait_until};
use weir_testkit::sandbox::Sandbox;
use weir_testkit::stand_in;

use crate::controlled::{ON, first_round, of_pods, patched};
use crate::kubernetes::{PODS, start};

const TUNING: &str = include_str!("../data/published/tuning.yaml");
const REQUESTS: &str = include_str!("../data/published/requests.yaml");
const TRANSACTIONS: &str = include_str!("../data/published/transactions.yaml");
const DAEMONSET: &str = include_str!("../data/published/daemonset.yaml");
/// Kinds of objects that the studies change, or in which they could leave traces.
const KINDS: &str = "configmaps,deployments,replicasets,daemonsets,controllerrevisions,secrets";

/// Limit far above the length of the longest study.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs a study to its end, and checks that the cluster's objects are as before.
fn run_whole(test: &Test, sandbox: &Sandbox, study: &str) -> Run {
    run_whole_around(test, sandbox, study, || {}, |_| {})
}

/// Like [`whole`], with `ahead` called just before the start and `begun` just after it.
fn run_whole_around(
    test: &Test,
    sandbox: &Sandbox,
    study: &str,
    ahead: impl FnOnce(),
    begun: impl FnOnce(&mut Running),
) -> Run {
    let before = Foreign::look(test, KINDS);
    sandbox.write("study.yaml", study);
    ahead();
    let mut running = start(test, sandbox, &format!("run study.yaml --out tried {PODS}"));
    begun(&mut running);
    running.end_within(PATIENCE).with_code(0);
    let changed = before.changed(&Foreign::look(test, KINDS));
    assert!(changed.is_empty(), "{}", changed.join("\n"));
    Run::read(&sandbox.path("tried")).expect("a run")
}

/// Runs a transaction study that begins while the DaemonSet's pods are too young to count.
fn transactions_of_young_pods(test: &Test, sandbox: &Sandbox) -> Run {
    let awaited = "The pods of DaemonSet default/nginx-ingress are being replaced: the run begins when they serve";
    run_whole_around(
        test,
        sandbox,
        TRANSACTIONS,
        || {
            count_pods_after(test, "600");
            wait_until("no pod counts", || {
                let count =
                    "get daemonset nginx-ingress --output jsonpath={.status.numberAvailable}";
                matches!(&*test.kubectl(count, ""), "" | "0")
            });
        },
        |running| {
            running.wait_until("it waits", |running| running.stderr().contains(awaited));
            count_pods_after(test, "null");
        },
    )
}

fn count_pods_after(test: &Test, seconds: &str) {
    let patch = format!(r#"{{"spec":{{"minReadySeconds":{seconds}}}}}"#);
    test.kubectl(&format!("patch daemonset nginx-ingress --patch {patch}"), "");
}

/// Returns the levels that were in force of an arm, for every time that they were read.
fn in_force(run: &Run, arm: &str, id: &str) -> BTreeSet<String> {
    let words = run
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Proxy(proxy) if proxy.arm == arm => proxy.effective.get(id),
            _ => None,
        })
        .map(|level| flat(level));
    words.collect()
}

#[track_caller]
fn is_in_force(run: &Run, arm: &str, id: &str, level: &str) {
    assert_eq!(in_force(run, arm, id), BTreeSet::from([level.to_owned()]), "{id} of {arm}");
}

/// Returns the arm and load of each of a study's trials.
fn trials(run: &Run) -> BTreeSet<(String, String)> {
    run.records
        .iter()
        .filter_map(|record| match record {
            Record::Trial(trial) => Some((trial.arm.clone(), trial.load.clone())),
            _ => None,
        })
        .collect()
}

pub(crate) fn kernel_and_keepalive_tuning_is_repeated(test: &Test) {
    let sandbox = Sandbox::new();
    stand_in::start(test);
    test.kubectl("logs deployment/proxy", "").has("a stand-in of an ingress controller for tests");
    let run = run_whole(test, &sandbox, TUNING);
    assert_eq!(trials(&run).len(), 6, "{:?}", trials(&run));
    for (id, before, after) in [
        ("keepalive_requests", "1000", "10000"),
        ("origin_keepalive_requests", "10000", "1000"),
        ("worker_connections", "16384", "65535"),
        ("gzip", "off", "on"),
    ] {
        is_in_force(&run, "baseline", id, before);
        is_in_force(&run, "keepalive", id, after);
        is_in_force(&run, "ports", id, before);
    }
    let ports = "net.ipv4.ip_local_port_range";
    is_in_force(&run, "ports", ports, "1024 65000");
    is_in_force(&run, "keepalive", ports, "32768 60999");

    // What its guide sets besides, and no pod can.
    let backlog = "- {name: backlog, settings: {net.core.somaxconn: 32768}}\n";
    let before = Foreign::look(test, KINDS);
    sandbox.write("study.yaml", &format!("{TUNING}{backlog}"));
    let line = format!("run study.yaml --out refused {PODS}");
    start(test, &sandbox, &line).end_within(PATIENCE).with_code(1).stderr.has_all(&[
        "arm `backlog`: pod `proxy-",
        "SysctlForbidden",
        "net.core.somaxconn",
        "hint: whoever runs the node can let pods set it (--allowed-unsafe-sysctls",
    ]);
    let changed = before.changed(&Foreign::look(test, KINDS));
    assert!(changed.is_empty(), "{}", changed.join("\n"));
    sandbox.write(
        "study.yaml",
        &format!("{TUNING}{}", backlog.replace("net.core.somaxconn", "fs.file-max")),
    );
    let refused = sandbox.call("run study.yaml --check").with_code(2).stderr;
    refused.has("ingress-nginx cannot set `fs.file-max`");
    stand_in::stop(test);
}

pub(crate) fn a_daemonset_in_its_nodes_network_is_measured(test: &Test) {
    // The test may have failed half-way before.
    remove_daemonset(test);
    let sandbox = Sandbox::new();
    certificate(&sandbox);
    let [certificate, key] = [sandbox.path("tls.crt"), sandbox.path("tls.key")];
    let (certificate, key) = (certificate.display(), key.display());
    test.kubectl(&format!("create secret tls nginx-tls --cert {certificate} --key {key}"), "");
    test.kubectl("apply --filename -", DAEMONSET);
    test.kubectl("rollout status daemonset/nginx-ingress --timeout=60s", "");
    let requests = run_whole(test, &sandbox, REQUESTS);
    is_in_force(&requests, "baseline", "worker_processes", "1");
    is_in_force(&requests, "two", "worker_processes", "2");
    is_in_force(&requests, "two", "worker_connections", "100000");
    let sandbox = Sandbox::new();
    let transactions = transactions_of_young_pods(test, &sandbox);
    is_in_force(&transactions, "baseline", "cpu_limit", "none");
    is_in_force(&transactions, "share", "cpu_limit", "300m");
    // Each arm is looked at in its pods while its load runs.
    let limiters = weir_analysis::analyze(&transactions).limiters;
    let [share, baseline] = ["share", "baseline"].map(|arm| {
        let limiter = limiters.iter().find(|limiter| limiter.arm == arm).expect("it was sampled");
        assert_eq!(limiter.pods.as_deref(), Some("pods of DaemonSet default/nginx-ingress"));
        &limiter.judgement.findings
    });
    let first = share.first().expect("a limit");
    assert_eq!((&*first.limiter, &*first.turn[0]), ("quota", "cpu_limit"));
    assert!(baseline.iter().all(|finding| finding.limiter != "quota"));
    remove_daemonset(test);
}

fn remove_daemonset(test: &Test) {
    test.kubectl("delete --ignore-not-found daemonset,service nginx-ingress", "");
    let objects = "ingress/cafe secret/nginx-tls configmap/nginx-config";
    test.kubectl(&format!("delete --ignore-not-found {objects}"), "");
}

/// Tests replicas, requests and limits, the node's network, and placement of a Deployment's pods.
pub(crate) fn what_pods_have_is_varied_by_roll_outs(test: &Test) {
    let sandbox = Sandbox::new();
    stand_in::start(test);
    let arms = "- {name: two, settings: {replicas: 2}}\n\
                - {name: small, settings: {memory_limit: 256Mi, memory_request: 64Mi, cpu_request: 50m, node_selector: kubernetes.io/os=linux}}\n\
                - {name: apart, settings: {spread: required, tolerations: 'dedicated=a:NoSchedule', pod_affinity: app=origin, pod_anti_affinity: app=nobody}}\n\
                - {name: node, settings: {host_network: on}}\n";
    let before = Foreign::look(test, KINDS);
    sandbox.write("study.yaml", &stand_in::study("6s", arms));
    let run = first_round(test, &sandbox, &format!("run study.yaml {PODS}"), 5);
    let changed = before.changed(&Foreign::look(test, KINDS));
    assert!(changed.is_empty(), "{}", changed.join("\n"));
    for (arm, id, before, after) in [
        ("two", "replicas", "1", "2"),
        ("small", "memory_limit", "none", "256Mi"),
        ("small", "memory_request", "none", "64Mi"),
        ("small", "cpu_request", "none", "50m"),
        ("small", "node_selector", "none", "kubernetes.io/os=linux"),
        ("apart", "spread", "none", "required"),
        ("apart", "tolerations", "none", "dedicated=a:NoSchedule"),
        ("apart", "pod_affinity", "none", "app=origin"),
        ("apart", "pod_anti_affinity", "none", "app=nobody"),
        ("node", "host_network", "off", "on"),
    ] {
        is_in_force(&run, "baseline", id, before);
        is_in_force(&run, arm, id, after);
    }
    // A list of containers keeps what else they have, and a limit that was not there goes.
    for (more, has_limit) in [("", true), (" --revert", false)] {
        patched(test, &sandbox, &format!("tried --arm small{more}"));
        let container =
            "get deployment proxy --output jsonpath={.spec.template.spec.containers[0]}";
        let shown = test.kubectl(container, "");
        shown.has("localhost/weir:test");
        assert_eq!(shown.contains("256Mi"), has_limit, "{shown}");
        let pods = "get deployment proxy --output jsonpath={.spec.template.spec}";
        assert_eq!(test.kubectl(pods, "").contains("nodeSelector"), has_limit);
    }
    a_place_that_no_node_has_is_told(test, &sandbox);
    stand_in::stop(test);
}

/// Checks that an impossible placement is reported soon, with the scheduler's words, and that everything is restored.
fn a_place_that_no_node_has_is_told(test: &Test, sandbox: &Sandbox) {
    stand_in::rolled_out(test, "deployment/proxy");
    let before = of_pods(test);
    let arm = "- {name: nowhere, settings: {node_selector: pool=nobody}}\n";
    sandbox.write("nowhere.yaml", &stand_in::study("3s", arm));
    let begun = Instant::now();
    let line = format!("run nowhere.yaml --out nowhere {ON}");
    start(test, sandbox, &line).end_within(PATIENCE).with_code(1).stderr.has_all(&[
        "arm `nowhere`: pod `proxy-",
        "no node can take it: 0/1 nodes are available",
        "node affinity/selector",
        "hint: a node must satisfy all that the pods ask for: node_selector",
    ]);
    assert!(begun.elapsed() < Duration::from_secs(60), "a roll-out may take 180 s");
    assert_eq!(of_pods(test), before);
}

fn certificate(sandbox: &Sandbox) {
    let line = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=cafe.example -keyout tls.key -out tls.crt";
    let mut command = Command::new("openssl");
    command.args(line.split(' ')).current_dir(sandbox.path(""));
    let status = command.stderr(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "openssl");
}
