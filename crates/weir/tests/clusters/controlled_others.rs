//! Tests of missing objects, and of changes by others to the objects of a study while it runs: each is reported, and
//! the others' changes stay.

use weir_testkit::cluster::Test;
use weir_testkit::program::HasAll;
use weir_testkit::sandbox::Sandbox;
use weir_testkit::stand_in;

use crate::controlled::{Controller, ON, RUN, data, study};
use crate::kubernetes::start;

const LINE: &str = "run study.yaml --out tried";
/// A value that the stand-in replaces by its default, so it never comes into force.
const NEVER: &str = "4294967295";

pub(crate) fn what_is_not_there_is_told_before_a_run(test: &Test) {
    let sandbox = Sandbox::new();
    let text = study(&sandbox, "7", "6s");
    for (text, line, words) in [
        (
            text.replace("configmap/settings", "configmap/nobody"),
            format!("{LINE} {ON}"),
            [
                "ConfigMap default/nobody does not exist in the cluster of context `weir-test`",
                "hint: see what there is: kubectl --context weir-test get configmaps --namespace default",
            ],
        ),
        (
            text.replace("    config:", "    workload: deployment/nobody\n    config:"),
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
        sandbox.write("study.yaml", &text);
        start(test, &sandbox, &line).end().with_code(2).stderr.has_all(&words);
        assert!(!sandbox.path("tried").exists(), "{line}");
    }
    test.kubectl("delete configmap settings", "");
}

pub(crate) fn what_somebody_else_sets_meanwhile_ends_the_run_and_stays(test: &Test) {
    let sandbox = Sandbox::new();
    let _controller = Controller::start(test, &sandbox);
    sandbox.write("study.yaml", &study(&sandbox, NEVER, "6s"));
    let mut running = start(test, &sandbox, &format!("{LINE} {ON}"));
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
    let sandbox = Sandbox::new();
    stand_in::start(test);
    let arm = "- {name: few, settings: {keepalive_requests: 7}}\n";
    sandbox.write("study.yaml", &stand_in::study("6s", arm));
    let mut running = start(test, &sandbox, &format!("{LINE} {ON} --samples off"));
    running.wait_until("a change", |_| data(test).contains("\"7\""));
    test.kubectl("scale deployment proxy --replicas 2", "");
    running.end_within(RUN).with_code(1).stderr.has_all(&[
        "Deployment default/proxy is to have 2 pods, and had 1 when the run began: somebody else has scaled it",
        "kubectl get hpa --all-namespaces",
    ]);
    assert_eq!(data(test), r#"{"other":"x"}"#);
    let replicas = "get deployment proxy --output jsonpath={.spec.replicas}";
    assert_eq!(test.kubectl(replicas, ""), "2", "theirs stays");
    stand_in::stop(test);
}
