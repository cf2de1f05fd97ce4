//! Node tests: pods of a real kubelet run weir's agent from weir's image, and load goes through a Service.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use weir_kube::image::{self, ImageFile};
use weir_model::load_report::LoadReport;
use weir_model::record::NetworkUsed;
use weir_testkit::cluster::{Named, Nodes, Test, tier};
use weir_testkit::program::{HasAll, Running, run, wait_until};
use weir_testkit::sandbox::{self, Sandbox};
use weir_testkit::stand_in;

use crate::{
    controlled, controlled_envoy, controlled_others, controlled_sysctls, kube_limits,
    kube_published, kubernetes_doctor, kubernetes_kills,
};

const IMAGE: &str = "localhost/weir:test";
/// Options for pods on the only node.
pub(crate) const PODS: &str =
    "--on kubernetes:weir-test --image localhost/weir:test --share-nodes --pod-memory 256MiB";

/// All tests, run in one cluster and one after the other.
const TESTS: [Named; 27] = [
    ("a_study_is_run_by_generators_in_pods", a_study_is_run_by_generators_in_pods),
    ("a_capacity_is_searched_from_a_pod", a_capacity_is_searched_from_a_pod),
    ("a_load_is_sent_by_two_pods", a_load_is_sent_by_two_pods),
    ("the_doctor_reads_a_cluster", kubernetes_doctor::reads_a_cluster),
    ("a_pod_that_is_lost_is_named", a_pod_that_is_lost_is_named),
    ("what_a_killed_weir_leaves_is_removed", what_a_killed_weir_leaves_is_removed),
    ("an_api_server_that_is_silent_ends_the_run", an_api_server_that_is_silent_ends_the_run),
    ("an_image_that_nobody_has_is_told", an_image_that_nobody_has_is_told),
    (
        "the_settings_of_a_controller_are_measured_in_turn",
        controlled::the_settings_of_a_controller_are_measured_in_turn,
    ),
    (
        "capacities_of_a_controller_are_searched_in_turn",
        controlled::capacities_of_a_controller_are_searched_in_turn,
    ),
    (
        "two_instances_of_a_controller_stand_side_by_side",
        controlled::two_instances_of_a_controller_stand_side_by_side,
    ),
    (
        "what_is_accepted_and_not_in_force_is_told",
        controlled::what_is_accepted_and_not_in_force_is_told,
    ),
    (
        "what_is_not_there_is_told_before_a_run",
        controlled_others::what_is_not_there_is_told_before_a_run,
    ),
    (
        "what_somebody_else_sets_meanwhile_ends_the_run_and_stays",
        controlled_others::what_somebody_else_sets_meanwhile_ends_the_run_and_stays,
    ),
    (
        "a_workload_that_somebody_scales_ends_the_run",
        controlled_others::a_workload_that_somebody_scales_ends_the_run,
    ),
    (
        "an_interrupted_run_puts_its_objects_back",
        controlled::an_interrupted_run_puts_its_objects_back,
    ),
    (
        "what_a_killed_run_has_changed_is_put_back",
        controlled::what_a_killed_run_has_changed_is_put_back,
    ),
    (
        "an_init_container_sets_the_kernel_of_pods",
        controlled_sysctls::an_init_container_sets_the_kernel_of_pods,
    ),
    (
        "an_admission_policy_that_refuses_is_told",
        controlled_sysctls::an_admission_policy_that_refuses_is_told,
    ),
    (
        "the_kernel_of_nodes_is_set_and_put_back",
        controlled_sysctls::the_kernel_of_nodes_is_set_and_put_back,
    ),
    (
        "what_pods_have_in_force_is_read_over_a_port",
        controlled_envoy::what_pods_have_in_force_is_read_over_a_port,
    ),
    (
        "kernel_and_keepalive_tuning_is_repeated",
        kube_published::kernel_and_keepalive_tuning_is_repeated,
    ),
    (
        "a_daemonset_in_its_nodes_network_is_measured",
        kube_published::a_daemonset_in_its_nodes_network_is_measured,
    ),
    (
        "what_pods_have_is_varied_by_roll_outs",
        kube_published::what_pods_have_is_varied_by_roll_outs,
    ),
    ("what_limits_pods_is_found_in_them", kube_limits::what_limits_pods_is_found_in_them),
    ("an_ingress_is_asked_by_its_name", kube_limits::an_ingress_is_asked_by_its_name),
    ("kills_leave_nothing_behind", kubernetes_kills::kills_leave_nothing_behind),
];

#[test]
fn node_tier() {
    with_nodes(1, "none", |nodes| tier("node", Some(nodes), serve, &TESTS));
}

/// Starts nodes whose image has the programs that the tests run in pods.
pub(crate) fn with_nodes(count: u32, cpus: &str, run: impl FnOnce(&Nodes<'_>)) {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = &folder.path().join("weir.tar");
    fs::write(archive, written()).expect("own folder");
    run(&Nodes { archive, image: IMAGE, count, cpus });
}

/// Returns the image of the tested weir, with the libraries that it needs: a static one would take another build.
fn written() -> Vec<u8> {
    let weir = Path::new(env!("CARGO_BIN_EXE_weir"));
    let program = fs::read(weir).expect("it was built");
    let programs = stand_in::PROGRAMS.map(Path::new);
    let mut paths: BTreeSet<String> = programs.map(|path| path.display().to_string()).into();
    for program in programs.into_iter().chain([weir]) {
        let listed =
            String::from_utf8(Command::new("ldd").arg(program).output().expect("ldd").stdout)
                .expect("paths");
        let words = listed.split_whitespace();
        paths.extend(
            words
                .filter(|word| word.starts_with('/'))
                .map(|word| word.trim_end_matches(':').to_owned()),
        );
    }
    let copies =
        paths.iter().map(|path| (&**path, fs::read(path).expect("a program or a library")));
    let texts = stand_in::FILES.map(|(path, text)| (path, text.into()));
    let files = copies.chain(texts).map(|(path, content)| ImageFile {
        path: path.trim_start_matches('/').to_owned(),
        content: Some(content),
        mode: 0o755,
    });
    image::with(IMAGE, program, files.collect()).expect("an ELF program")
}

/// Starts an origin server in a pod of its own, behind a Service.
pub(crate) fn serve(test: &Test) {
    test.kubectl(
        "apply --filename -",
        r#"
apiVersion: v1
kind: Pod
metadata: {name: origin, labels: {app: origin}}
spec:
  automountServiceAccountToken: false
  containers:
  - name: origin
    image: localhost/weir:test
    imagePullPolicy: Never
    command: [/weir, origin, --listen, "0.0.0.0:8000", --size, "100"]
---
apiVersion: v1
kind: Service
metadata: {name: origin}
spec:
  clusterIP: 10.96.7.7
  selector: {app: origin}
  ports: [{port: 80, targetPort: 8000}]
---
apiVersion: v1
kind: Service
metadata: {name: weir-origin}
spec:
  clusterIP: 10.96.7.8
  selector: {app.kubernetes.io/managed-by: weir, app.kubernetes.io/component: origin}
  ports: [{port: 80, targetPort: 8000}]
"#,
    );
    test.kubectl("wait --for=condition=Ready --timeout=60s pod/origin", "");
}

pub(crate) fn study(rate: u32, duration: &str) -> String {
    sandbox::study(
        "{kind: external, address: '10.96.7.7:80'}",
        &format!("  - {{name: open, rate: {rate}, connections: 8, duration: {duration}}}"),
        "",
    )
}

/// Returns a command that runs weir in the cluster's network.
pub(crate) fn weir(test: &Test, sandbox: &Sandbox, line: &str) -> Command {
    let mut command = test.command(env!("CARGO_BIN_EXE_weir"));
    command
        .args(line.split_whitespace())
        .env("TMPDIR", sandbox.temporary())
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("WEIR_JOURNAL", sandbox.path("journal"))
        .current_dir(sandbox.path(""));
    command
}

pub(crate) fn start(test: &Test, sandbox: &Sandbox, line: &str) -> Running {
    Running::start(&mut weir(test, sandbox, line))
}

/// Returns the names of weir's Jobs and pods.
pub(crate) fn left(test: &Test) -> String {
    test.kubectl("get jobs,pods --selector app.kubernetes.io/managed-by=weir --output name", "")
}

fn a_study_is_run_by_generators_in_pods(test: &Test) {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &study(200, "4s"));
    let line = format!("run study.yaml --out tried {PODS} --generators 2");
    start(test, &sandbox, &line).end().with_code(0);
    // What cannot be read in a pod is said: weir's own pods have no shell.
    let run = weir_record::Run::read(&sandbox.path("tried")).expect("a run");
    assert_eq!(run.header.places.cluster.as_deref(), Some("weir-test/default"));
    assert!(matches!(run.header.network, NetworkUsed::Hosts));
    let generator = run.header.places.generator.clone().unwrap_or_default();
    assert!(generator.starts_with("pod weir-"), "{generator}");
    let mut remarks = run.header.remarks.iter().map(|remark| &*remark.text);
    let shared = remarks.find(|text| text.contains("have no CPUs of their own"));
    shared
        .unwrap_or_default()
        .has_all(&["of node weir-node, its threads on 0", "of node weir-node, its threads on 1"]);
    wait_until("pods and Job are gone", || left(test).trim().is_empty());
}

fn a_capacity_is_searched_from_a_pod(test: &Test) {
    let sandbox = Sandbox::new();
    let line = format!(
        "capacity http://10.96.7.8/ --out tried -c 4 --hold 7s --confidence 80% --origin-pod=--size=100 {PODS} \
         --proxy-pods default/app.kubernetes.io/managed-by=weir,app.kubernetes.io/component=origin"
    );
    let mut running = start(test, &sandbox, &line);
    running.wait_until("some trials", |_| {
        let records = fs::read_to_string(sandbox.path("tried/records.jsonl")).unwrap_or_default();
        records.matches("\"trial\"").count() > 2
    });
    running.signal(Signal::INT);
    running.end().with_code(130);
    let run = weir_record::Run::read(&sandbox.path("tried")).expect("a run");
    let missing = &run.samples.missing;
    let unread: Vec<&str> = missing
        .iter()
        .filter(|(host, gap)| {
            host.ends_with("-origin") && gap.why.contains("cannot run `sh` in pod")
        })
        .map(|(_, gap)| &*gap.table)
        .collect();
    assert!(unread.contains(&"cgroups") && unread.contains(&"processes"), "{missing:?}");
    wait_until("pods and Job are gone", || left(test).trim().is_empty());
}

fn a_load_is_sent_by_two_pods(test: &Test) {
    let sandbox = Sandbox::new();
    let line = format!(
        "load http://10.96.7.7/ -R 200 -c 8 -d 3s --expect size=100 --format json {PODS} --generators 2"
    );
    let report: LoadReport = start(test, &sandbox, &line).end().with_code(0).document();
    assert_eq!((report.results.counts.due, report.results.counts.connected), (600, 8));
    assert_eq!(report.results.counts.completed_whole, 600, "{:?}", report.results.errors);
    for generator in &report.generators {
        assert!(generator.start.host.starts_with("pod weir-"), "{:?}", generator.start);
        assert_eq!(generator.due, 300);
    }
    assert_eq!(report.generators.len(), 2);
    // They share a node, and no CPU of it.
    let cpus: BTreeSet<&Option<u32>> =
        report.generators.iter().flat_map(|generator| &generator.cpus).collect();
    assert_eq!((cpus.len(), cpus.contains(&None)), (2, false), "{cpus:?}");
    wait_until("pods and Job are gone", || left(test).trim().is_empty());
}

fn a_pod_that_is_lost_is_named(test: &Test) {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &study(200, "120s"));
    let mut running = start(test, &sandbox, &format!("run study.yaml --out tried {PODS}"));
    running.wait_until("a trial", |_| sandbox.path("tried/samples").exists());
    let pods =
        test.kubectl("get pods --selector app.kubernetes.io/managed-by=weir --output name", "");
    let pod = pods.trim().trim_start_matches("pod/").to_owned();
    test.kubectl(&format!("delete pod {pod} --grace-period 0 --force"), "");
    running.end().with_code(1).stderr.has_all(&[
        &format!("the agent on pod {pod}"),
        "is gone",
        "weir restore --on kubernetes:weir-test/default",
    ]);
    wait_until("pods and Job are gone", || left(test).trim().is_empty());
}

fn what_a_killed_weir_leaves_is_removed(test: &Test) {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &study(200, "120s"));
    let mut running = start(test, &sandbox, &format!("run study.yaml --out tried {PODS}"));
    running.wait_until("a trial", |_| sandbox.path("tried/samples").exists());
    sandbox::kill(running.pid());
    let on = "restore --on kubernetes:weir-test";
    let shown = start(test, &sandbox, &format!("{on} --dry-run")).end().with_code(0).stdout;
    shown.has_all(&["Job weir-", "Pod weir-", "would be removed"]);
    let removed = start(test, &sandbox, on).end().with_code(0).stdout;
    removed.has_all(&["Job weir-", ": removed"]);
    assert_eq!(left(test).trim(), "");
    start(test, &sandbox, on).end().with_code(0).stdout.has("Nothing to remove");
}

fn an_api_server_that_is_silent_ends_the_run(test: &Test) {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &study(200, "120s"));
    let mut running = start(test, &sandbox, &format!("run study.yaml --out tried {PODS}"));
    running.wait_until("a trial", |_| sandbox.path("tried/samples").exists());
    let server = Pid::from_raw(test.process("kube-apiserver").cast_signed()).expect("not zero");
    kill_process(server, Signal::STOP).expect("the cluster's own");
    let ended = running.end();
    kill_process(server, Signal::CONT).expect("the cluster's own");
    let words = ["the agent on pod weir-", "is gone: nothing was heard of it for 10 s"];
    ended.with_code(1).stderr.has_all(&words);
    // What it asked to be removed may be removed late, by the server that goes on. The kubelet could not reach that either,
    // so its node may be out for a while.
    let on = "restore --on kubernetes:weir-test";
    wait_until("restore has nothing left to do", || {
        start(test, &sandbox, on).end().code == Some(0)
    });
    wait_until("pods and Job are gone", || left(test).trim().is_empty());
}

fn an_image_that_nobody_has_is_told(test: &Test) {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &study(200, "4s"));
    let line = "run study.yaml --out tried --on kubernetes:weir-test --image localhost/nobody:1";
    start(test, &sandbox, line).end().with_code(1).stderr.has_all(&[
        "its image cannot be pulled",
        "localhost/nobody:1",
        "hint: write the image with `weir kube image",
    ]);
    assert!(!sandbox.path("tried").exists());
}

#[test]
fn options_about_pods_need_a_cluster() {
    run("run same-twice --generators 2")
        .did_nothing(2, &["--generators is about pods, and no --on names a cluster"]);
    run("run same-twice --on kubernetes:a --origin-pod=--listen=:1")
        .did_nothing(2, &["--listen and --file are not for a pod"]);
    run("load http://10.96.7.7/ --image weir:1")
        .did_nothing(2, &["--image is about pods, and no --on names a cluster"]);
    run("load http://10.96.7.7/ --on kubernetes:a --observe")
        .did_nothing(2, &["the proxy's pods that are looked at", "--proxy-pods"]);
    run("load http://10.96.7.7/ --on kubernetes:a --generators 0")
        .did_nothing(2, &["nothing of it is in a cluster", "--observe --proxy-pods"]);
    run("capacity ingress/shop")
        .did_nothing(2, &["is an Ingress of a cluster, and no --on names one"]);
    run("run same-twice --on docker").did_nothing(2, &["--on: `docker` is not understood"]);
    // A mistake in a study is told before any cluster is looked for.
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &study(100, "10s").replace("rate:", "rat:"));
    for command in ["run", "capacity"] {
        let line = format!("{command} study.yaml --on kubernetes:nowhere");
        let refused = sandbox.call(&line).with_code(2).stderr;
        refused.has_all(&["study.yaml:", "rat"]);
        refused.has_none(&["nowhere"]);
    }
}

#[test]
fn the_image_is_of_a_static_program_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let to: PathBuf = folder.path().join("weir.tar");
    let text = folder.path().join("text");
    fs::write(&text, "#!/bin/sh").expect("own folder");
    let (image, script) = (to.display(), text.display());
    run(&format!("kube image {image} --program {script}"))
        .did_nothing(2, &["it is not an ELF program"]);
    run(&format!("kube image {image} --program /bin/sh"))
        .did_nothing(2, &["it needs libraries", "make static"]);
    assert!(!to.exists());
}

#[test]
fn what_would_be_made_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("study.yaml");
    fs::write(&path, study(100, "10s")).expect("own folder");
    let line = format!("kube render {} --generators 3 --namespace bench", path.display());
    let shown = run(&line).with_code(0).stdout;
    shown.has_all(&["kind: Job", "completions: 3", "namespace: bench", "podAntiAffinity"]);
    let shown = run("kube rights jane --namespace bench").with_code(0).stdout;
    shown.has_all(&["kind: RoleBinding", "name: jane", "pods/exec"]);
    assert!(!shown.contains("weir-samples"), "{shown}");
    let shown = run("kube rights jane --proxy-pods ingress/app=a").with_code(0).stdout;
    shown.has_all(&["name: weir-samples", "namespace: ingress"]);
    let shown = run("kube rights jane --ingress").with_code(0).stdout;
    shown.has_all(&["name: weir-ingress", "kind: ClusterRoleBinding", "- ingressclasses"]);
    run("kube render same-twice")
        .did_nothing(2, &["weir would start the proxy of arm", "kind: external"]);
}
