//! Tests of studies of a proxy that a cluster's controller configures. The controller is a stand-in: a process beside
//! the API server that renders nginx.conf from a ConfigMap, and uses a default for an invalid value, as ingress-nginx
//! does.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use weir_model::record::Record;
use weir_record::Run;
use weir_testkit::cluster::Test;
use weir_testkit::program::{Ended, HasAll, Running, run, wait_until};
use weir_testkit::sandbox::{self, Sandbox};

use crate::kubernetes::start;

/// Addresses of the proxy and of the origin server.
const PROXY: &str = "127.0.0.1:8088";
const ORIGIN: &str = "127.0.0.1:8089";
/// Longest time of a run: its roll-outs are slow beside other tests.
pub(crate) const RUN: Duration = Duration::from_secs(600);
/// Options for a run from this host.
pub(crate) const ON: &str = "--on kubernetes:weir-test --generators 0";

/// ConfigMap and proxy address of a second instance of the stand-in.
const BESIDE: (&str, &str) = ("settings-beside", "127.0.0.1:8090");

/// Script of the stand-in. Its arguments: its folder, its ConfigMap, and the proxy's address.
const CONTROLLER: &str = r#"#!/bin/bash
folder=$1
mkdir -p "$folder/logs"
last=none
while :; do
    value=$(kubectl get configmap "$2" --output 'jsonpath={.data.keep-alive-requests}') || exit 1
    if [ "$value" != "$last" ]; then
        last=$value
        [[ $value =~ ^[0-9]{1,5}$ ]] || value=1000
        cat > "$folder/nginx.conf" <<END
pid $folder/nginx.pid;
worker_processes 1;
error_log $folder/logs/error.log;
events { worker_connections 512; }
http {
    access_log off;
    keepalive_requests $value;
    upstream origin { server 127.0.0.1:8089; keepalive 8; }
    server {
        listen $3;
        location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }
    }
}
END
        if [ -s "$folder/nginx.pid" ]; then
            kill -HUP "$(cat "$folder/nginx.pid")"
        else
            nginx -p "$folder" -c "$folder/nginx.conf" -g 'daemon off;' &
        fi
    fi
    sleep 0.3
done
"#;

/// A stand-in and its origin server, which end when this is dropped.
pub(crate) struct Controller {
    process: Child,
    origin: Option<Running>,
}

impl Controller {
    pub(crate) fn start(test: &Test, sandbox: &Sandbox) -> Controller {
        let origin = start(test, sandbox, &format!("origin --listen {ORIGIN} --size 100"));
        let mut controller = Controller::of(test, sandbox, "proxy", "settings", PROXY);
        controller.origin = Some(origin);
        controller
    }

    /// Starts a stand-in without an origin server.
    fn of(test: &Test, sandbox: &Sandbox, folder: &str, settings: &str, at: &str) -> Controller {
        let object = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {settings}}}\ndata: {{other: x}}"
        );
        test.kubectl("apply --filename -", &object);
        let script = sandbox.program("controller", CONTROLLER);
        let mut command = test.command("setsid");
        command.arg(script).arg(sandbox.path(folder)).args([settings, at]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("a shell");
        let controller = Controller { process, origin: None };
        let connect = format!("exec 3<>/dev/tcp/{}", at.replace(':', "/"));
        wait_until("the proxy listens", || {
            let mut asks = test.command("bash");
            let status = asks.args(["-c", &connect]).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        });
        controller
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It leads a group of its own, to which its proxy belongs.
        if let Some(pid) = Pid::from_raw(self.process.id().cast_signed()) {
            let _ = kill_process_group(pid, Signal::TERM);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        drop(self.origin.take());
    }
}

pub(crate) fn study(sandbox: &Sandbox, level: &str, duration: &str) -> String {
    let folder = sandbox.path("proxy").display().to_string();
    format!(
        "weir: 1\nname: tried\nquestion: Is it so?\nproxy:\n  kind: nginx\n  address: '{PROXY}'\n  controller:\n    \
         is: ingress-nginx\n    namespace: default\n    config: configmap/settings\n    within: 1m\n    \
         read: [nginx, -p, {folder}, -c, {folder}/nginx.conf, -T]\n\
         loads:\n- {{name: closed, closed: true, connections: 4, duration: {duration}}}\nblocks: {{at-least: 6}}\na/a: false\n\
         arms:\n- {{name: few, settings: {{keepalive_requests: {level}}}}}\n"
    )
}

/// Returns the data of the ConfigMap.
pub(crate) fn data(test: &Test) -> String {
    data_of(test, "settings")
}

fn data_of(test: &Test, settings: &str) -> String {
    let line = format!("get configmap {settings} --output jsonpath={{.data}}");
    test.kubectl(&line, "")
}

const BEFORE: &str = r#"{"other":"x"}"#;

pub(crate) fn the_settings_of_a_controller_are_measured_in_turn(test: &Test) {
    let sandbox = Sandbox::new();
    let _controller = Controller::start(test, &sandbox);
    sandbox.write("study.yaml", &study(&sandbox, "1", "6s"));
    let ended =
        start(test, &sandbox, &format!("run study.yaml --full --out tried {ON}")).end_within(RUN);
    ended.with_code(0).stdout.has_all(&["measured in turn", "few"]);
    assert_eq!(data(test), BEFORE);
    let run = Run::read(&sandbox.path("tried")).expect("a run");
    let mut order = Vec::new();
    for record in &run.records {
        match record {
            Record::Proxy(proxy) => {
                let level = proxy.effective["keepalive_requests"].clone();
                assert_eq!(level, if proxy.arm == "few" { "1" } else { "1000" });
            }
            Record::Trial(trial) => order.push((trial.arm.clone(), trial.block)),
            _ => {}
        }
    }
    let order: Vec<(&str, u32)> = order.iter().map(|(arm, block)| (&**arm, *block)).collect();
    let first = [("baseline", 0), ("few", 0), ("few", 1), ("baseline", 1)];
    assert_eq!(order[..4], first, "in mirrored order");
    assert!(order.len() >= 12, "{order:?}");
    // A connection for each request costs.
    let findings = weir_analysis::analyze(&run);
    let comparison = &findings.loads[0].comparisons[0];
    assert!(comparison.ratio < 0.8, "{comparison:?}");
    let text = std::fs::read_to_string(sandbox.path("tried/arms/few/effective.conf"));
    text.expect("what the proxy printed").has("keepalive_requests 1;");
    what_an_arm_had_is_printed_for_kubectl_and_helm(test, &sandbox);
}

/// Searches with an objective that no rate meets, which is soon known, so that the second arm has its turn. The resumed
/// run does not search the first arm again.
pub(crate) fn capacities_of_a_controller_are_searched_in_turn(test: &Test) {
    let sandbox = Sandbox::new();
    let _controller = Controller::start(test, &sandbox);
    let objective = "objective: {capacity: 'p50 < 20us', hold: 5s}\na/a: false";
    let text =
        study(&sandbox, "1", "6s").replace(", duration: 6s", "").replace("a/a: false", objective);
    sandbox.write("study.yaml", &text.replace("blocks: {at-least: 6}\n", ""));
    let mut running = start(test, &sandbox, &format!("run study.yaml --full --out tried {ON}"));
    running.wait_until("the second arm", |_| data(test).contains("\"1\""));
    running.signal(Signal::INT);
    let ended = running.end().with_code(130);
    let shown = ended.stdout;
    shown.has_all(&["one after the other", "unpaired", "is not claimed"]);
    shown.has("baseline: the controller as it was");
    ended.stderr.has(&format!("weir run --resume tried {ON}"));
    assert_eq!(data(test), BEFORE);
    assert_eq!(arms_in_order(&sandbox)[0], "baseline");
    let mut running = start(test, &sandbox, &format!("run --resume tried {ON}"));
    running.wait_until("the second arm", |_| data(test).contains("\"1\""));
    running.wait_until("a trial of the second arm", |_| {
        arms_in_order(&sandbox) == ["baseline", "few"]
    });
    running.signal(Signal::INT);
    running.end().with_code(130);
    assert_eq!(data(test), BEFORE);
    assert_eq!(arms_in_order(&sandbox), ["baseline", "few"]);
    test.kubectl("delete configmap settings", "");
}

fn arms_in_order(sandbox: &Sandbox) -> Vec<String> {
    let run = Run::read(&sandbox.path("tried")).expect("a run");
    let mut arms: Vec<String> = run.trials().map(|trial| trial.arm.clone()).collect();
    arms.dedup();
    arms
}

/// Checks that `beside` with capacities, and `--check-alone`, are refused with a reason before a cluster is contacted.
#[test]
fn what_arms_of_a_controller_have_no_need_of_is_said() {
    let sandbox = Sandbox::new();
    let in_turn = study(&sandbox, "1", "6s");
    let beside = in_turn.replace(
        "loads:",
        "    beside: [{address: '127.0.0.1:8090', config: configmap/b, read: [nginx, -T]}]\nloads:",
    );
    let objective = "a/a: false\nobjective: {capacity: 'p99 < 30ms'}";
    let capacity = beside.replace("a/a: false", objective);
    for (text, command, words) in [
        (&in_turn, "run --check-alone", "each of them runs alone already"),
        (&beside, "run --check-alone", "run the study without `beside` too"),
        (&capacity, "run", "no place for `beside`"),
        (&capacity, "capacity", "no place for `beside`"),
    ] {
        let path = sandbox.write("study.yaml", text);
        run(&format!("{command} {}", path.display())).did_nothing(2, &[words]);
    }
    let path = sandbox.write("study.yaml", &in_turn.replace("a/a: false", objective));
    let shown = run(&format!("run --check {}", path.display())).with_code(0);
    shown.stdout.has("one arm after the other");
}

/// Runs the commands that `weir patch` prints with these options.
pub(crate) fn patched(test: &Test, sandbox: &Sandbox, options: &str) -> String {
    let ended = start(test, sandbox, &format!("patch {options}")).end();
    let commands = ended.with_code(0).stdout;
    let mut shell = test.command("sh");
    let done = shell.args(["-c", &commands]).stdout(Stdio::null()).status();
    assert!(done.is_ok_and(|status| status.success()), "{commands}");
    commands
}

/// Runs the printed commands, and prints the diff of a values file with comments.
fn what_an_arm_had_is_printed_for_kubectl_and_helm(test: &Test, sandbox: &Sandbox) {
    let changed = r#"{"keep-alive-requests":"1","other":"x"}"#;
    for (more, expected) in [("", changed), (" --revert", BEFORE)] {
        patched(test, sandbox, &format!("tried --arm few{more}"))
            .has("kubectl patch configmaps/settings --namespace default --type merge --patch '");
        assert_eq!(data(test), expected);
    }
    test.kubectl("delete configmap settings", "");
    let values = "controller:\n  config:\n    use-gzip: \"true\" # ours\n";
    sandbox.write("values.yaml", values);
    let line = "patch tried --arm few --values values.yaml";
    let diff = start(test, sandbox, line).end().with_code(0).stdout;
    diff.has_all(&["     use-gzip: \"true\" # ours\n", "+    keep-alive-requests: \"1\"\n"]);
}

pub(crate) fn two_instances_of_a_controller_stand_side_by_side(test: &Test) {
    let sandbox = Sandbox::new();
    let _controller = Controller::start(test, &sandbox);
    let (settings, at) = BESIDE;
    let _beside = Controller::of(test, &sandbox, "beside", settings, at);
    let folder = sandbox.path("beside").display().to_string();
    let beside = format!(
        "    beside:\n    - {{address: '{at}', config: configmap/{settings}, read: [nginx, -p, {folder}, -c, {folder}/nginx.conf, -T]}}\nloads:"
    );
    let text = study(&sandbox, "1", "6s");
    sandbox.write("study.yaml", &text.replace("loads:", &beside));
    let ended =
        start(test, &sandbox, &format!("run study.yaml --full --out tried {ON}")).end_within(RUN);
    ended.with_code(0).stdout.has("changed places");
    assert_eq!(data(test), BEFORE);
    assert_eq!(data_of(test, settings), BEFORE);
    let run = Run::read(&sandbox.path("tried")).expect("a run");
    let mut stood: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut trials = 0;
    for record in &run.records {
        match record {
            Record::Proxy(proxy) => {
                let level = proxy.effective["keepalive_requests"].clone();
                assert_eq!(level, if proxy.arm == "few" { "1" } else { "1000" });
                stood.insert((&proxy.arm, &proxy.address));
            }
            Record::Trial(trial) => trials += u32::from(trial.block == 0),
            _ => {}
        }
    }
    let all: BTreeSet<_> =
        ["baseline", "few"].into_iter().flat_map(|arm| [(arm, PROXY), (arm, at)]).collect();
    assert_eq!(stood, all, "each arm has had both");
    // A block has slices of both arms, where arms in turn have blocks of their own.
    assert_eq!(trials, 4, "two slices of each arm in the first block");
    let findings = weir_analysis::analyze(&run);
    let comparison = &findings.loads[0].comparisons[0];
    assert!(comparison.ratio < 0.8, "{comparison:?}");
    test.kubectl(&format!("delete configmap {settings}"), "");
}

pub(crate) fn what_is_accepted_and_not_in_force_is_told(test: &Test) {
    let sandbox = Sandbox::new();
    let _controller = Controller::start(test, &sandbox);
    let text = study(&sandbox, "4294967295", "6s");
    sandbox.write("study.yaml", &text.replace("within: 1m", "within: 3s"));
    let ended = start(test, &sandbox, &format!("run study.yaml --out tried {ON}")).end_within(RUN);
    ended.with_code(1).stderr.has_all(&[
        "arm `few`: not in force after 3 s: keepalive_requests is 1000 and not 4294967295",
        "hint: look at the log of ingress-nginx",
    ]);
    assert_eq!(data(test), BEFORE);
}

pub(crate) fn an_interrupted_run_puts_its_objects_back(test: &Test) {
    let sandbox = Sandbox::new();
    let _controller = Controller::start(test, &sandbox);
    sandbox.write("study.yaml", &study(&sandbox, "7", "120s"));
    let mut running = start(test, &sandbox, &format!("run study.yaml --out tried {ON}"));
    running.wait_until("a change", |_| data(test).contains("\"7\""));
    running.signal(Signal::INT);
    running.end().with_code(130);
    assert_eq!(data(test), BEFORE);
}

pub(crate) fn what_a_killed_run_has_changed_is_put_back(test: &Test) {
    let sandbox = Sandbox::new();
    let _controller = Controller::start(test, &sandbox);
    sandbox.write("study.yaml", &study(&sandbox, "7", "120s"));
    let line = format!("run study.yaml --out tried {ON}");
    let at = "ConfigMap default/settings: ";
    kill_after_change(test, &sandbox, &line.replace("tried", "first"));
    let refused = start(test, &sandbox, &line.replace("tried", "again")).end();
    let hint = "hint: put them back with: weir restore --on kubernetes:weir-test/default";
    refused.with_code(2).stderr.has_all(&["1 object of the cluster", hint]);
    let elsewhere = start(test, &sandbox, "restore").end().with_code(0).stderr;
    elsewhere.has("weir restore --on kubernetes:weir-test/default");
    let shown = restore(test, &sandbox, " --dry-run").with_code(0).stdout;
    shown.has(&format!("{at}would be put back: /data/keep-alive-requests"));
    let done = restore(test, &sandbox, "").with_code(0).stdout;
    done.has(&format!("{at}put back: /data/keep-alive-requests"));
    assert_eq!(data(test), BEFORE);
    restore(test, &sandbox, "").with_code(0).stdout.has("Nothing to remove");

    // Somebody else's decision is left, and told.
    kill_after_change(test, &sandbox, &line.replace("tried", "second"));
    let patch = r#"patch configmap settings --patch {"data":{"keep-alive-requests":"99"}}"#;
    test.kubectl(patch, "");
    let stdout = restore(test, &sandbox, "").with_code(1).stdout;
    stdout.has_all(&["somebody else has changed it since", "nothing", "\"99\""]);
    assert_eq!(data(test), r#"{"keep-alive-requests":"99","other":"x"}"#);
    restore(test, &sandbox, "").with_code(0).stdout.has("Nothing to remove");
    test.kubectl("delete configmap settings", "");
}

fn kill_after_change(test: &Test, sandbox: &Sandbox, line: &str) {
    let mut running = start(test, sandbox, line);
    running.wait_until("a change", |_| data(test).contains("\"7\""));
    sandbox::kill(running.pid());
}

fn restore(test: &Test, sandbox: &Sandbox, more: &str) -> Ended {
    start(test, sandbox, &format!("restore --on kubernetes:weir-test{more}")).end()
}

/// Returns the Deployment's specification, and the names of its ReplicaSets.
pub(crate) fn of_pods(test: &Test) -> (String, String) {
    let spec = "get deployment proxy --output jsonpath={.spec}";
    let sets = "get replicasets --selector app=proxy --output name";
    (test.kubectl(spec, ""), test.kubectl(sets, ""))
}

/// Runs a study until each of its arms has been measured once, and stops it: by then the settings in force are
/// recorded.
pub(crate) fn first_round(test: &Test, sandbox: &Sandbox, line: &str, arms: usize) -> Run {
    let mut running = start(test, sandbox, &format!("{line} --out tried --samples off"));
    let records = sandbox.path("tried/records.jsonl");
    running.wait_until("a stretch of each arm", |_| {
        let text = std::fs::read_to_string(&records).unwrap_or_default();
        text.matches("\"trial\"").count() >= arms
    });
    running.signal(Signal::INT);
    running.end_within(RUN).with_code(130);
    Run::read(&sandbox.path("tried")).expect("a run")
}

/// Checks that an arm's changes and the rights for them are shown without a cluster, and that a run without a cluster
/// does nothing.
#[test]
fn a_study_of_a_controller_is_shown_without_a_cluster() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &study(&sandbox, "7", "6s"));
    sandbox.call("kube render study.yaml").with_code(0).stdout.has_all(&[
        "# arm baseline changes nothing",
        "# arm few changes, while it is measured",
        "#   ConfigMap default/settings: /data/keep-alive-requests = \"7\"",
    ]);
    let rights = sandbox.call("kube rights jane --study study.yaml").with_code(0).stdout;
    rights.has_all(&["name: weir-controller", "resourceNames", "- update"]);
    sandbox.call("kube rights jane").with_code(0).stdout.has_none(&["weir-controller"]);
    sandbox.call("run study.yaml --check").with_code(0);
    // Objects of several namespaces, and one that is read at the start only.
    let text = study(&sandbox, "7", "6s");
    let (from, to) = text.find("    read:").zip(text.find("loads:")).expect("a command");
    let objects = "    config: contourconfiguration/contour\n    contour: deployment/contour\n    \
                   service: service/shop/web\n    workload: daemonset/envoy\n";
    let text = format!("{}{objects}{}", &text[..from], &text[to..])
        .replace("kind: nginx", "kind: envoy")
        .replace("is: ingress-nginx", "is: contour")
        .replace("    config: configmap/settings\n", "")
        .replace("keepalive_requests: 7", "keepalive_requests: 7, max_connections: 9");
    sandbox.write("contour.yaml", &text);
    sandbox.call("kube render contour.yaml").with_code(0).stdout.has_all(&[
        "#   ContourConfiguration default/contour: /spec/envoy/listener/maxRequestsPerConnection = 7\n",
        "#   Service shop/web: /metadata/annotations/projectcontour.io~1max-connections = \"9\"\n",
        "#   Deployment default/contour: /spec/template/metadata/annotations/weir~1settings = \"/spec/envoy/",
    ]);
    let rights = sandbox.call("kube rights jane --study contour.yaml").with_code(0).stdout;
    rights.has_all(&["namespace: shop", "contourconfigurations", "pods/portforward"]);
    let refused = sandbox.call("run study.yaml").with_code(2).stderr;
    refused.has("hint: name it: --on kubernetes:CONTEXT");
    sandbox.call("run study.yaml --check-alone").with_code(2).stderr.has("runs alone already");
}
