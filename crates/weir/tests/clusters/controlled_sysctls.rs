//! Tests of kernel settings for the pods of a controller, set by an init container and on the nodes.

use std::collections::BTreeSet;

use rustix::process::Signal;
use weir_model::record::Record;
use weir_record::Run;
use weir_testkit::cluster::Test;
use weir_testkit::program::{HasAll, Running, wait_until};
use weir_testkit::sandbox::{self, Sandbox};
use weir_testkit::stand_in;

use crate::controlled::{ON, RUN, first_round, of_pods};
use crate::kubernetes::{left, start};

pub(crate) const SYSCTL: &str = "net.core.somaxconn";
const ARM: &str = "- {name: other, settings: {net.core.somaxconn: 32768}}\n";

fn study(means: &str, duration: &str) -> String {
    set_by(means, &stand_in::study(duration, ARM))
}

/// Adds the means of setting the kernel to a study of the stand-in.
pub(crate) fn set_by(means: &str, study: &str) -> String {
    let with = format!("    sysctls: {means}\n    within: 60s\n");
    study.replace("    within: 60s\n", &with)
}

/// Returns the setting in force of each arm, for every time that it was read.
fn in_force(run: &Run) -> Vec<(&str, &str)> {
    run.records
        .iter()
        .filter_map(|record| match record {
            Record::Proxy(proxy) => Some((&*proxy.arm, &*proxy.effective[SYSCTL])),
            _ => None,
        })
        .collect()
}

#[track_caller]
fn is_in_force_of_the_arm(run: &Run, before: &str) {
    let levels = in_force(run);
    let arms: BTreeSet<&str> = levels.iter().map(|(arm, _)| *arm).collect();
    assert_eq!(arms, BTreeSet::from(["baseline", "other"]));
    for (arm, level) in levels {
        let expected = if arm == "other" { "32768" } else { before };
        assert_eq!(level, expected, "{arm}");
    }
    let mut remarks = run.header.remarks.iter();
    assert!(remarks.any(|remark| remark.text.contains("privileged")));
}

pub(crate) fn an_init_container_sets_the_kernel_of_pods(test: &Test) {
    let sandbox = Sandbox::new();
    stand_in::start(test);
    let before = of_pods(test);
    sandbox.write("study.yaml", &study("init-container", "6s"));
    let run = first_round(test, &sandbox, &format!("run study.yaml {ON}"), 2);
    assert_eq!(of_pods(test), before);
    // The default of a new network namespace.
    is_in_force_of_the_arm(&run, "4096");
    stand_in::stop(test);
}

pub(crate) fn an_admission_policy_that_refuses_is_told(test: &Test) {
    let sandbox = Sandbox::new();
    stand_in::start(test);
    let before = of_pods(test);
    let label = "label namespace default pod-security.kubernetes.io/enforce";
    test.kubectl(&format!("{label}=baseline"), "");
    sandbox.write("study.yaml", &study("init-container", "6s"));
    let line = format!("run study.yaml --out tried {ON}");
    let ended = start(test, &sandbox, &line).end_within(RUN);
    test.kubectl(&format!("{label}-"), "");
    ended.with_code(1).stderr.has_all(&[
        "arm `other`: Deployment default/proxy has no new pods: the cluster refuses them:",
        "violates PodSecurity",
        "weir-sysctls",
        "hint: a quota, a limit range or an admission policy",
    ]);
    assert_eq!(of_pods(test), before, "and no ReplicaSet of it is left");
    stand_in::stop(test);
}

pub(crate) fn of_node(test: &Test) -> String {
    let cat = test.command("cat").arg("/proc/sys/net/core/somaxconn").output();
    let text = String::from_utf8(cat.expect("cat").stdout).expect("a number");
    text.trim().to_owned()
}

pub(crate) fn the_kernel_of_nodes_is_set_and_put_back(test: &Test) {
    let sandbox = Sandbox::new();
    stand_in::start_on_node(test);
    let (before, value) = (of_pods(test), of_node(test));
    sandbox.write("study.yaml", &study("node", "6s"));
    let unallowed = format!("run study.yaml --out tried {ON}");
    let refused = start(test, &sandbox, &unallowed).end();
    refused.refused(&["study.yaml:", "the kernel of the cluster's nodes", "--node-sysctls"]);
    let allowed = format!("run study.yaml {ON} --node-sysctls --image localhost/weir:test");
    let run = first_round(test, &sandbox, &allowed, 2);
    is_in_force_of_the_arm(&run, &value);
    assert_put_back(test, &before, &value);

    sandbox.write("study.yaml", &study("node", "120s"));
    let line = format!("{allowed} --out tried");
    let running = start_to_change(test, &sandbox, &line.replace("tried", "stopped"));
    running.signal(Signal::INT);
    running.end_within(RUN).with_code(130);
    assert_put_back(test, &before, &value);

    what_a_killed_run_has_set_is_put_back(test, &sandbox, &line, &value);
    assert_put_back(test, &before, &value);
    stand_in::stop(test);

    // Pods in networks of their own would not have it.
    stand_in::start(test);
    let refused = start(test, &sandbox, &line.replace("tried", "own")).end_within(RUN);
    refused.with_code(2).stderr.has("has a network namespace of its own");
    assert_eq!(of_node(test), value);
    stand_in::stop(test);
}

fn assert_put_back(test: &Test, before: &(String, String), value: &str) {
    assert_eq!(of_node(test), value);
    assert_eq!(&of_pods(test), before);
    wait_until("no pod is left", || left(test).trim().is_empty());
}

/// Starts a run, and waits until it has changed the node.
fn start_to_change(test: &Test, sandbox: &Sandbox, line: &str) -> Running {
    let mut running = start(test, sandbox, line);
    running.wait_until("a change of the node", |_| of_node(test) == "32768");
    running
}

fn what_a_killed_run_has_set_is_put_back(test: &Test, sandbox: &Sandbox, line: &str, value: &str) {
    let restore = "restore --on kubernetes:weir-test";
    kill_in_force(test, sandbox, &line.replace("tried", "killed"));
    let stdout = start(test, sandbox, restore).end_within(RUN).with_code(0).stdout;
    stdout.has_all(&["Pod weir-", "net.core.somaxconn of node weir-node: put back"]);
    assert_eq!(of_node(test), value);

    // Somebody else's decision is left, and told.
    kill_in_force(test, sandbox, &line.replace("tried", "killed-again"));
    set_on_node(test, "777");
    let stdout = start(test, sandbox, restore).end_within(RUN).with_code(1).stdout;
    stdout.has_all(&["somebody else has changed it since", "\"777\""]);
    assert_eq!(of_node(test), "777");
    set_on_node(test, value);
    assert_eq!(of_node(test), value);
}

fn kill_in_force(test: &Test, sandbox: &Sandbox, line: &str) {
    let running = start_to_change(test, sandbox, line);
    sandbox::kill(running.pid());
    drop(running);
    assert_eq!(of_node(test), "32768");
}

fn set_on_node(test: &Test, value: &str) {
    let line = format!("echo {value} >/proc/sys/net/core/somaxconn");
    let status = test.command("sh").args(["-c", &line]).status();
    assert!(status.is_ok_and(|status| status.success()));
}
