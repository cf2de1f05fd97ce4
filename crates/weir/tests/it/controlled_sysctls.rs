//! Tests of kernel settings for the pods of a controller, set by an init container and on the nodes.

use std::collections::BTreeSet;

use rustix::process::Signal;
use weir_model::record::Record;
use weir_record::Run;

use crate::controlled::{ON, RUN, first_round, of_pods};
use crate::kube_stand_in;
use crate::kube_support::Test;
use crate::kubernetes::{left, start};
use crate::place::{self, Place};
use crate::program::{HasAll, Running, wait_until};

pub(crate) const SYSCTL: &str = "net.core.somaxconn";
const ARM: &str = "- {name: other, settings: {net.core.somaxconn: 32768}}\n";

fn study(means: &str, duration: &str) -> String {
    by(means, &kube_stand_in::study(duration, ARM))
}

/// Adds the means of setting the kernel to a study of the stand-in.
pub(crate) fn by(means: &str, study: &str) -> String {
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
    let found = in_force(run);
    let arms: BTreeSet<&str> = found.iter().map(|(arm, _)| *arm).collect();
    assert_eq!(arms, BTreeSet::from(["baseline", "other"]));
    for (arm, level) in found {
        let expected = if arm == "other" { "32768" } else { before };
        assert_eq!(level, expected, "{arm}");
    }
    let mut remarks = run.header.remarks.iter();
    assert!(remarks.any(|one| one.text.contains("privileged")));
}

pub(crate) fn an_init_container_sets_the_kernel_of_pods(test: &Test) {
    let place = Place::new();
    kube_stand_in::start(test);
    let before = of_pods(test);
    place.write("study.yaml", &study("init-container", "6s"));
    let run = first_round((test, &place), &format!("run study.yaml {ON}"), 2);
    assert_eq!(of_pods(test), before);
    // The default of a new network namespace.
    is_in_force_of_the_arm(&run, "4096");
    kube_stand_in::stop(test);
}

pub(crate) fn an_admission_policy_that_refuses_is_told(test: &Test) {
    let place = Place::new();
    kube_stand_in::start(test);
    let before = of_pods(test);
    let label = "label namespace default pod-security.kubernetes.io/enforce";
    test.kubectl(&format!("{label}=baseline"), "");
    place.write("study.yaml", &study("init-container", "6s"));
    let line = format!("run study.yaml --out tried {ON}");
    let ended = start(test, &place, &line).end_within(RUN);
    test.kubectl(&format!("{label}-"), "");
    ended.with_code(1).stderr.has_all(&[
        "arm `other`: Deployment default/proxy has no new pods: the cluster refuses them:",
        "violates PodSecurity",
        "weir-sysctls",
        "hint: a quota, a limit range or an admission policy",
    ]);
    assert_eq!(of_pods(test), before, "and no ReplicaSet of it is left");
    kube_stand_in::stop(test);
}

pub(crate) fn of_node(test: &Test) -> String {
    let cat = test.command("cat").arg("/proc/sys/net/core/somaxconn").output();
    let text = String::from_utf8(cat.expect("cat").stdout).expect("a number");
    text.trim().to_owned()
}

pub(crate) fn the_kernel_of_nodes_is_set_and_put_back(test: &Test) {
    let place = Place::new();
    kube_stand_in::start_on_node(test);
    let (before, value) = (of_pods(test), of_node(test));
    let as_before = || {
        assert_eq!(of_node(test), value);
        assert_eq!(of_pods(test), before);
        wait_until("no pod is left", || left(test).trim().is_empty());
    };
    place.write("study.yaml", &study("node", "6s"));
    let unallowed = format!("run study.yaml --out tried {ON}");
    let refused = start(test, &place, &unallowed).end();
    refused.refused(&["study.yaml:", "the kernel of the cluster's nodes", "--node-sysctls"]);
    let allowed = format!("run study.yaml {ON} --node-sysctls --image localhost/weir:test");
    let run = first_round((test, &place), &allowed, 2);
    is_in_force_of_the_arm(&run, &value);
    as_before();

    place.write("study.yaml", &study("node", "120s"));
    let line = format!("{allowed} --out tried");
    let running = begun(test, &place, &line.replace("tried", "stopped"));
    running.signal(Signal::INT);
    running.end_within(RUN).with_code(130);
    as_before();

    what_a_killed_run_has_set_is_put_back(test, &place, &line, &value);
    as_before();
    kube_stand_in::stop(test);

    // Pods in networks of their own would not have it.
    kube_stand_in::start(test);
    let line = line.replace("tried", "own");
    let refused = start(test, &place, &line).end_within(RUN);
    refused.with_code(2).stderr.has("has a network namespace of its own");
    assert_eq!(of_node(test), value);
    kube_stand_in::stop(test);
}

/// Starts a run, and waits until it has changed the node.
fn begun(test: &Test, place: &Place, line: &str) -> Running {
    let mut running = start(test, place, line);
    running.wait_until("a change of the node", |_| of_node(test) == "32768");
    running
}

fn what_a_killed_run_has_set_is_put_back(test: &Test, place: &Place, line: &str, value: &str) {
    let restore = || start(test, place, "restore --on kubernetes:weir-test").end_within(RUN);
    let kill = |folder: &str| {
        let running = begun(test, place, &line.replace("tried", folder));
        place::kill(running.pid());
        drop(running);
        assert_eq!(of_node(test), "32768");
    };
    kill("killed");
    let said = restore().with_code(0).stdout;
    said.has_all(&["Pod weir-", "net.core.somaxconn of node weir-node: put back"]);
    assert_eq!(of_node(test), value);

    // Somebody else's decision is left, and told.
    kill("killed-again");
    let set = |value: &str| {
        let line = format!("echo {value} >/proc/sys/net/core/somaxconn");
        let status = test.command("sh").args(["-c", &line]).status();
        assert!(status.is_ok_and(|status| status.success()));
    };
    set("777");
    let said = restore().with_code(1).stdout;
    said.has_all(&["somebody else has changed it since", "\"777\""]);
    assert_eq!(of_node(test), "777");
    set(value);
    assert_eq!(of_node(test), value);
}
