//! What limits a proxy in pods: its own pods are sampled, whatever sends the load.

use std::process::Stdio;

use serde_json::Value;

use crate::kube_stand_in;
use crate::kube_support::Test;
use crate::kubernetes::{PODS, start};
use crate::place::Place;
use crate::program::{HasAll, wait_until};

/// A pod whose image has a shell that its PATH does not lead to.
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

/// From this host.
const HERE: &str = "--on kubernetes:weir-test --generators 0";

/// Waits until the Service leads to pods that serve, for a while without a break: rules of the node follow a roll-out.
fn await_service(test: &Test) {
    let connect = "for i in {1..20}; do exec 3<>/dev/tcp/10.96.7.9/80; sleep 0.1; done";
    wait_until("the Service serves", || {
        let mut asks = test.command("bash");
        let asked = asks.args(["-ec", connect]).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    });
}

/// What limits the stand-in under a closed loop, by samples of these pods.
fn limiter(test: &Test, place: &Place, (pods, more): (&str, &str)) -> Value {
    let line = format!(
        "load http://10.96.7.9/ -c 8 -d 6s --observe --format json --proxy-pods {pods} {more}"
    );
    let report: Value = start(test, place, &line).end().with_code(0).document();
    report["limiter"].clone()
}

/// Names in a list of the judgement.
fn names(limiter: &Value, list: &str) -> Vec<String> {
    let all = limiter["judgement"][list].as_array();
    let name = |one: &Value| Some(one["limiter"].as_str()?.to_owned());
    all.into_iter().flatten().filter_map(name).collect()
}

pub(crate) fn what_limits_pods_is_found_in_them(test: &Test) {
    let place = Place::new();
    kube_stand_in::start(test);
    await_service(test);
    free_pods_are_known(test, &place);
    test.kubectl("set resources deployment/proxy --limits cpu=100m", "");
    test.kubectl("rollout status deployment/proxy --timeout=60s", "");
    await_service(test);
    the_quota_of_pods_is_named(test, &place);
    // Pods that cannot be read, and pods that are not there.
    test.kubectl("apply --filename -", BARE);
    test.kubectl("wait --for=condition=Ready --timeout=60s pod/bare", "");
    for (pods, why) in [
        ("default/app=bare", "cannot run `sh` in pod"),
        ("default/app=nobody", "none of them runs"),
    ] {
        let unknown = limiter(test, &place, (pods, HERE));
        assert!(
            names(&unknown, "unknown").contains(&"quota".to_owned()),
            "{unknown}"
        );
        let said = unknown["evidence"]["absent"]["throttled"].to_string();
        said.has(why);
    }
    test.kubectl("delete pod bare --now", "");
    kube_stand_in::stop(test);
}

/// Without a limit, from this host.
fn free_pods_are_known(test: &Test, place: &Place) {
    let free = limiter(test, place, ("default/app=proxy", HERE));
    assert!(
        !names(&free, "findings").contains(&"quota".to_owned())
            && names(&free, "ruled_out").contains(&"quota".to_owned()),
        "{:?} {:?}",
        free["judgement"]["findings"],
        free["evidence"]["absent"]
    );
    let known = &free["evidence"]["quantities"];
    for quantity in [
        "proxy_cpus",
        "listen_overflows",
        "memory",
        "cpu_all",
        "user_share",
    ] {
        assert!(known[quantity]["value"].is_number(), "{quantity}: {free}");
    }
    assert!(
        free["evidence"]["absent"]["accept_queue"]
            .to_string()
            .contains("not read in a pod")
    );
}

/// With one, from a pod and from this host.
fn the_quota_of_pods_is_named(test: &Test, place: &Place) {
    let held = limiter(test, place, ("default/app=proxy", PODS));
    let first = &held["judgement"]["findings"][0];
    assert_eq!(first["limiter"], "quota", "{first} {}", held["evidence"]);
    assert_eq!(first["turn"][0], "cpu_limit");
    assert_eq!(held["pods"], "pods default/app=proxy");
    let evidence = |quantity: &str| {
        let all = first["evidence"].as_array().into_iter().flatten();
        let mut own = all.filter(|one| one["quantity"] == quantity);
        own.next()
            .and_then(|one| one["value"].as_f64())
            .expect("evidence")
    };
    assert!((evidence("cpu_quota") - 0.1).abs() < 1e-6);
    // A period has 100 ms.
    assert!(
        (2.0..=10.5).contains(&evidence("throttled_periods")),
        "{first}"
    );
    let line = format!(
        "load http://10.96.7.9/ -c 8 -d 4s --observe --proxy-pods default/app=proxy {HERE}"
    );
    let shown = start(test, place, &line).end().with_code(0).stdout;
    shown.has_all(&[
        "What limits",
        "quota",
        "raise cpu_limit of the pods default/app=proxy",
    ]);
}
