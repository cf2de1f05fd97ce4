//! Tests on two real nodes, each with a kubelet, a containerd and a network, for cases in which pods are on several
//! nodes. Whole nodes are lost, which takes minutes to be noticed and mended: `make kube-nodes` runs these tests.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use rustix::process::Signal;
use weir_model::record::{PartRecord, Record};
use weir_record::Run;
use weir_testkit::cluster::{Named, Test, tier};
use weir_testkit::foreign::{self, Foreign};
use weir_testkit::program::{HasAll, Running, wait_until};
use weir_testkit::sandbox::{self, Sandbox};
use weir_testkit::stand_in;

use crate::controlled::{self, ON, RUN};
use crate::kubernetes::{left, serve, start, study, with_nodes};
use crate::{controlled_sysctls, kube_limits, kubernetes_doctor};

const NODES: [&str; 2] = ["weir-node", "weir-node-2"];
/// Number of the node that is lost.
const LOST: u32 = 2;
/// Options for generators on separate nodes.
const APART: &str = "--on kubernetes:weir-test --image localhost/weir:test --pod-memory 256MiB";
/// Time limit for pods that fit no node.
const SOON: &str = "--pods-within 5s";
const RESTORE: &str = "restore --on kubernetes:weir-test";
/// Kinds of objects that a run must leave unchanged.
const KINDS: &str = "configmaps,daemonsets,controllerrevisions";

const TESTS: [Named; 6] = [
    (
        "generators_are_spread_and_have_cpus_of_their_own",
        generators_are_spread_and_have_cpus_of_their_own,
    ),
    ("pods_of_two_nodes_are_sampled", pods_of_two_nodes_are_sampled),
    ("a_selector_takes_pods_to_the_other_node", a_selector_takes_pods_to_the_other_node),
    ("the_kernel_of_both_nodes_is_put_back", the_kernel_of_both_nodes_is_put_back),
    ("a_trial_is_invalid_in_which_a_node_was_lost", a_trial_is_invalid_in_which_a_node_was_lost),
    (
        "a_generator_that_is_lost_with_its_node_is_named",
        a_generator_that_is_lost_with_its_node_is_named,
    ),
];

#[test]
#[ignore = "takes minutes: make kube-nodes"]
fn nodes_tier() {
    with_nodes(2, "static", |nodes| {
        tier("nodes", Some(nodes), serve, &TESTS);
    });
}

fn read(sandbox: &Sandbox, folder: &str) -> Run {
    Run::read(&sandbox.path(folder)).expect("a run")
}

fn parts(run: &Run) -> Vec<&PartRecord> {
    run.records
        .iter()
        .filter_map(|record| match record {
            Record::Part(part) => Some(&**part),
            _ => None,
        })
        .collect()
}

fn generators_are_spread_and_have_cpus_of_their_own(test: &Test) {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &study(200, "4s"));
    let line = format!("run study.yaml --out tried {APART} --generators 2");
    start(test, &sandbox, &line).end().with_code(0);
    let run = read(&sandbox, "tried");
    // The kubelets keep another CPU for everybody each, so the pods' CPUs have no number in common.
    let mut remarks = run.header.remarks.iter().map(|remark| &*remark.text);
    let remark = remarks.find(|text| text.contains("run on no more CPUs than they asked for"));
    remark.unwrap_or_default().has_all(&["CPUs 1 of node weir-node", "CPUs 0 of node weir-node-2"]);
    assert!(!parts(&run).is_empty());
    for part in parts(&run) {
        let hosts = part.starts.iter().map(|start| &*start.host);
        let are_all_used = NODES
            .iter()
            .all(|node| hosts.clone().any(|host| host.ends_with(&format!("on node {node}"))));
        assert!(are_all_used, "{:?}", part.starts);
        // Both nodes have this machine's clock: whatever is found between them is an error, and known to be one.
        for start in &part.starts {
            let unsure = start.unsure_ns + part.starts[0].unsure_ns;
            let clock = part.clocks.iter().find(|clock| clock.host == start.host);
            let ahead = clock.expect("its clock").ahead_ns.unsigned_abs();
            assert!(ahead <= 4 * unsure + 1_000_000, "{:?} {:?}", part.clocks, part.starts);
        }
    }
    let origin = test.kubectl("get pod origin --output jsonpath={.spec.nodeName}", "");
    let other_node = NODES.iter().find(|node| **node != origin).expect("another");
    let near_pods = "--proxy-pods default/app=origin";
    let line = format!("run study.yaml --out near {APART} {near_pods} --generators 1");
    start(test, &sandbox, &line).end().with_code(0);
    let generator = read(&sandbox, "near").header.places.generator.unwrap_or_default();
    assert!(generator.ends_with(&format!("on node {other_node}")), "{generator}");
    for (pods, more) in [(3, ""), (2, near_pods)] {
        let line = format!("load http://10.96.7.7/ -R 100 -c 6 -d 2s {APART} {SOON} {more}");
        let refused = start(test, &sandbox, &format!("{line} --generators {pods}")).end();
        refused.with_code(1).stderr.has_all(&[
            "no node can take it: 0/2 nodes are available",
            "--share-nodes: generators then share nodes",
        ]);
    }
    wait_until("pods and Job are gone", || left(test).trim().is_empty());
    let shown = kubernetes_doctor::cpus_of_a_whole_pod(test, &sandbox);
    shown.has("[cpu-limited]");
    shown.has_none(&["[cpus-not-pinned]", "[cpus-not-exclusive]"]);
}

fn pods_of_two_nodes_are_sampled(test: &Test) {
    let sandbox = Sandbox::new();
    stand_in::start_on_each_node(test, false);
    test.kubectl("set resources daemonset/proxy --limits cpu=100m", "");
    stand_in::rolled_out(test, "daemonset/proxy");
    let pods = "get pods --selector app=proxy --output jsonpath={.items[*].metadata.name}";
    let pods = test.kubectl(pods, "");
    let pods: BTreeSet<&str> = pods.split_whitespace().collect();
    assert_eq!(pods.len(), 2);
    sandbox.write(
        "study.yaml",
        &sandbox::study(
            "{kind: external, address: '10.96.7.9:80'}",
            "  - {name: closed, closed: true, connections: 16, duration: 5s}",
            "",
        ),
    );
    let line = format!("run study.yaml --out tried {ON} --proxy-pods default/app=proxy");
    start(test, &sandbox, &line).end_within(RUN).with_code(0);
    let run = read(&sandbox, "tried");
    // Each pod tells of its group, and of its node, which is another than the other's.
    for table in ["cgroups", "cpus"] {
        let samples = run.samples.rows.iter().filter(|sample| sample.row.table == table);
        let hosts: BTreeSet<&str> =
            samples.map(|sample| &*sample.host).filter(|host| pods.contains(host)).collect();
        assert_eq!(hosts, pods, "{table}");
    }
    let limited = kube_limits::limiter(test, &sandbox, "default/app=proxy", kube_limits::HERE);
    let first = &limited["judgement"]["findings"][0];
    assert_eq!(first["limiter"], "quota", "{first}");
    a_daemonset_that_no_node_has_is_told(test, &sandbox);
    stand_in::stop_daemonset(test);
}

/// Checks that a DaemonSet that fits no node is reported, and that its pods are back when it is restored.
fn a_daemonset_that_no_node_has_is_told(test: &Test, sandbox: &Sandbox) {
    let arm = "- {name: nowhere, settings: {node_selector: pool=nobody}}\n";
    let text = stand_in::study("3s", arm).replace("deployment/proxy", "daemonset/proxy");
    sandbox.write("nowhere.yaml", &text);
    let line = format!("run nowhere.yaml --out nowhere {ON}");
    start(test, sandbox, &line).end_within(RUN).with_code(1).stderr.has_all(&[
        "arm `nowhere`: DaemonSet default/proxy has no pods: no node satisfies what they ask for",
        "hint: a node must satisfy all",
    ]);
    stand_in::rolled_out(test, "daemonset/proxy");
}

/// Checks that the arm's pods are on the node that a setting names while it is measured, and that all is as before
/// afterwards.
fn a_selector_takes_pods_to_the_other_node(test: &Test) {
    let sandbox = Sandbox::new();
    stand_in::start(test);
    let before = controlled::of_pods(test);
    let pods = "get pods --selector app=proxy --field-selector status.phase=Running --output jsonpath={.items[*].spec.nodeName}";
    let first = test.kubectl(pods, "");
    let other_node = NODES.iter().find(|node| **node != first).expect("another");
    let arm = format!(
        "- {{name: other, settings: {{node_selector: kubernetes.io/hostname={other_node}}}}}\n"
    );
    sandbox.write("study.yaml", &stand_in::study("3s", &arm));
    let mut running = start(test, &sandbox, &format!("run study.yaml --out tried {ON}"));
    running.wait_until("a block of the arm", |_| {
        let records = fs::read_to_string(sandbox.path("tried/records.jsonl")).unwrap_or_default();
        records.contains(&format!(r#""node_selector":"kubernetes.io/hostname={other_node}""#))
    });
    assert_eq!(test.kubectl(pods, ""), *other_node);
    running.signal(Signal::INT);
    running.end_within(RUN).with_code(130);
    assert_eq!(controlled::of_pods(test), before);
    stand_in::stop(test);
}

fn somaxconn(test: &Test) -> [String; 2] {
    [1, 2].map(|node| {
        let mut cat = test.at(node, "cat");
        let read = cat.arg("/proc/sys/net/core/somaxconn").output();
        let text = String::from_utf8(read.expect("cat").stdout).expect("a number");
        text.trim().to_owned()
    })
}

fn the_kernel_of_both_nodes_is_put_back(test: &Test) {
    let sandbox = Sandbox::new();
    stand_in::start_on_each_node(test, true);
    let objects = Foreign::look(test, KINDS);
    let before = somaxconn(test);
    let arm = "- {name: other, settings: {net.core.somaxconn: 32768}}\n";
    let [short, long] = ["3s", "120s"].map(|duration| {
        let text = controlled_sysctls::set_by("node", &stand_in::study(duration, arm));
        text.replace("deployment/proxy", "daemonset/proxy")
    });
    let line =
        format!("run study.yaml --out tried {ON} --node-sysctls --image localhost/weir:test");
    sandbox.write("study.yaml", &short);
    start(test, &sandbox, &line).end_within(RUN).with_code(0);
    assert_eq!(somaxconn(test), before);

    sandbox.write("study.yaml", &long);
    let running = start_to_change(test, &sandbox, &line.replace("tried", "stopped"));
    running.signal(Signal::INT);
    running.end_within(RUN).with_code(130);
    assert_eq!(somaxconn(test), before);

    let running = start_to_change(test, &sandbox, &line.replace("tried", "killed"));
    sandbox::kill(running.pid());
    drop(running);
    what_a_lost_node_has_is_put_back_later(test, &sandbox, &before);
    wait_until("no pod is left", || left(test).trim().is_empty());
    let changed = objects.changed(&Foreign::look(test, KINDS));
    assert!(changed.is_empty(), "{}", changed.join("\n"));
    stand_in::stop_daemonset(test);
}

fn start_to_change(test: &Test, sandbox: &Sandbox, line: &str) -> Running {
    // The pods of the run before are replaced after its end.
    stand_in::rolled_out(test, "daemonset/proxy");
    let mut running = start(test, sandbox, line);
    running.wait_until("a change of both nodes", |_| somaxconn(test) == ["32768", "32768"]);
    running
}

/// Checks the restoration after a kill, with a node lost and back again.
fn what_a_lost_node_has_is_put_back_later(test: &Test, sandbox: &Sandbox, before: &[String; 2]) {
    let journal = text_below(&sandbox.path("journal"));
    for node in NODES {
        assert!(journal.contains(&format!("\"name\":\"{node}\"")), "{journal}");
    }
    test.node("lose", LOST);
    // Where a node is lost, the others are put back, and it is told.
    for _ in 0..2 {
        let ended = start(test, sandbox, RESTORE).end_within(RUN).with_code(1);
        format!("{}{}", ended.stdout, ended.stderr).has_all(&[
            "net.core.somaxconn of node weir-node-2: not put back: node `weir-node-2` cannot be reached: it is not ready",
            "`weir restore --on` tries it again",
        ]);
        assert_eq!(somaxconn(test), [&*before[0], "32768"]);
    }
    test.node("regain", LOST);
    let stdout = start(test, sandbox, RESTORE).end_within(RUN).with_code(0).stdout;
    stdout.has("net.core.somaxconn of node weir-node-2: put back");
    assert_eq!(somaxconn(test), *before);
}

/// Returns the text of all files below a folder.
fn text_below(folder: &Path) -> String {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .map(|entry| {
            if entry.path().is_dir() {
                text_below(&entry.path())
            } else {
                fs::read_to_string(entry.path()).unwrap_or_default()
            }
        })
        .collect()
}

fn a_trial_is_invalid_in_which_a_node_was_lost(test: &Test) {
    let sandbox = Sandbox::new();
    stand_in::start_on_each_node(test, true);
    let kinds = foreign::kinds(test);
    let before = Foreign::look(test, &kinds);
    let arm = "- {name: few, settings: {keepalive_requests: 7}}\n";
    let text = stand_in::study("180s", arm).replace("deployment/proxy", "daemonset/proxy");
    sandbox.write("study.yaml", &text);
    let mut running = start(test, &sandbox, &format!("run study.yaml --out tried {ON}"));
    running.wait_until("a trial", |_| sandbox.path("tried/samples").exists());
    thread::sleep(Duration::from_secs(3));
    test.node("lose", LOST);
    let ended = running.end_within(RUN).with_code(1);
    ended.stderr.has("node `weir-node-2`");
    let run = read(&sandbox, "tried");
    let lost = parts(&run).into_iter().flat_map(|part| &part.lost_nodes);
    let lost: BTreeSet<&str> = lost.map(|lost| &*lost.node).collect();
    assert_eq!(lost, BTreeSet::from(["weir-node-2"]), "{}", ended.stderr);
    let shown = sandbox.call("report tried").stdout;
    shown.has_all(&["INVALID", "node `weir-node-2` was lost (it is not ready"]);
    // Everything else is as before, at once.
    let changed = before.changed(&Foreign::look(test, &kinds));
    test.node("regain", LOST);
    assert!(changed.is_empty(), "{}", changed.join("\n"));
    start(test, &sandbox, RESTORE).end().with_code(0).stdout.has("Nothing to remove");
    stand_in::stop_daemonset(test);
}

fn a_generator_that_is_lost_with_its_node_is_named(test: &Test) {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &study(200, "120s"));
    let line = format!("run study.yaml --out tried {APART} --generators 2");
    let mut running = start(test, &sandbox, &line);
    running.wait_until("a trial", |_| sandbox.path("tried/samples").exists());
    test.node("lose", LOST);
    let ended = running.end_within(RUN).with_code(1);
    ended.stderr.has_all(&[
        "the agent on pod weir-",
        "on node weir-node-2 is gone: nothing was heard of it for 10 s",
        "weir restore --on kubernetes:weir-test/default",
    ]);
    // Its pod is known to have ended when the node is back.
    start(test, &sandbox, RESTORE).end_within(RUN).with_code(1).stderr.has_all(&[
        "node `weir-node-2` cannot be reached: it is not ready",
        "ends when it is back",
    ]);
    test.node("regain", LOST);
    start(test, &sandbox, RESTORE).end_within(RUN).with_code(0);
    assert_eq!(left(test).trim(), "");
}
