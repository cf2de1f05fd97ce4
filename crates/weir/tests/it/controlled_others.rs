//! Tests of missing objects, and of changes by others to the objects of a study while it runs: each is reported, and
//! the others' changes stay.

use crate::controlled::{Controller, ON, RUN, data, study};
use crate::kube_stand_in;
use crate::kube_support::Test;
use crate::kubernetes::start;
use crate::place::Place;
use crate::program::HasAll;

const LINE: &str = "run study.yaml --out tried";
/// A value that the stand-in replaces by its default, so it never comes into force.
const NEVER: &str = "4294967295";

pub(crate) fn what_is_not_there_is_told_before_a_run(test: &Test) {
    let place = Place::new();
    let text = study(&place, "7", "6s");
    let without = |from: &str, to: &str| text.replace(from, to);
    for (text, line, words) in [
        (
            without("configmap/settings", "configmap/nobody"),
            format!("{LINE} {ON}"),
            [
                "ConfigMap default/nobody does not exist in the cluster of context `weir-test`",
                "hint: see what there is: kubectl --context weir-test get configmaps --namespace default",
            ],
        ),
        (
            without("    config:", "    workload: deployment/nobody\n    config:"),
            format!("{LINE} {ON}"),
            ["Deployment default/nobody does not exist", "get deployments --namespace default"],
        ),
        (
            text.clone(),
            "restore --on kubernetes:weir-test/nowhere".to_owned(),
            ["namespace `nowhere` does not exist", "kubectl --context weir-test get namespaces"],
        ),
    ] {
        test.kubectl(
            "apply --filename -",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}",
        );
        place.write("study.yaml", &text);
        let refused = start(test, &place, &line).end().with_code(2);
        refused.stderr.has_all(&words);
        assert!(!place.path("tried").exists(), "{line}");
    }
    test.kubectl("delete configmap settings", "");
}

pub(crate) fn what_somebody_else_sets_meanwhile_ends_the_run_and_stays(test: &Test) {
    let place = Place::new();
    let _controller = Controller::start(test, &place);
    place.write("study.yaml", &study(&place, NEVER, "6s"));
    let mut running = start(test, &place, &format!("{LINE} {ON}"));
    running.wait_until("a change", |_| data(test).contains(NEVER));
    let theirs = r#"{"keep-alive-requests":"99","other":"x"}"#;
    test.kubectl(&format!(r#"patch configmap settings --patch {{"data":{theirs}}}"#), "");
    // Long before its minute is over in which the settings are to be in force.
    running.end_within(RUN).with_code(1).stderr.has_all(&[
        "arm `few`: ConfigMap default/settings: /data/keep-alive-requests was nothing, and is \"99\" now",
        "hint: weir left it alone",
    ]);
    assert_eq!(data(test), theirs);
    test.kubectl("delete configmap settings", "");
}

pub(crate) fn a_workload_that_somebody_scales_ends_the_run(test: &Test) {
    let place = Place::new();
    kube_stand_in::start(test);
    let arm = "- {name: few, settings: {keepalive_requests: 7}}\n";
    place.write("study.yaml", &kube_stand_in::study("6s", arm));
    let mut running = start(test, &place, &format!("{LINE} {ON} --samples off"));
    running.wait_until("a change", |_| data(test).contains("\"7\""));
    test.kubectl("scale deployment proxy --replicas 2", "");
    running.end_within(RUN).with_code(1).stderr.has_all(&[
        "Deployment default/proxy is to have 2 pods, and had 1 when the run began: somebody else has scaled it",
        "kubectl get hpa --all-namespaces",
    ]);
    assert_eq!(data(test), r#"{"other":"x"}"#);
    let replicas = "get deployment proxy --output jsonpath={.spec.replicas}";
    assert_eq!(test.kubectl(replicas, ""), "2", "theirs stays");
    kube_stand_in::stop(test);
}
