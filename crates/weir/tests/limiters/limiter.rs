//! Tests of the limiter of an arm, which is named, and proven by changing it: with a real HAProxy, by `weir run
//! --confirm`, and by `weir load --observe` of one that weir did not start.

use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use weir_model::record::{ConfirmationRecord, Phase, Record};
use weir_record::Run;
use weir_testkit::origin;
use weir_testkit::program::{HasAll, Running, flat, in_three_tries, wait_until, within};
use weir_testkit::sandbox::Sandbox;

/// Longest time of a run with its proof, even on a crowded machine.
const PROVEN: Duration = Duration::from_secs(240);

/// A study of two requests at a time, each of which takes 10 ms: 200/s, however crowded the machine is.
const STUDY: &str = "\
weir: 1
name: limited
question: What limits it?
proxy:
  kind: haproxy
  settings: {nbthread: 1, server_maxconn: 2, http_reuse: always}
origin: {size: 1KiB, delay: 10ms}
loads:
  - {name: load, LOAD, connections: 8, duration: 10s}
baseline: stock
objective: {metric: METRIC}
blocks: {slice: 100ms, at-least: 6}
";

/// Also checks that the proof uses the arm's own load if that leaves requests unanswered.
#[test]
fn what_limits_an_arm_is_named_and_proven_by_turning_it() {
    let (closed, open) = (("closed: true", "rate"), ("rate: 400", "response-p99"));
    thread::scope(|scope| {
        scope.spawn(|| in_three_tries(|| assert_proven(open, Some(400.0))));
        in_three_tries(|| assert_proven(closed, None));
    });
}

/// Checks the proof of the arm's limiter under a load, by a trial at this rate.
fn assert_proven((load, metric): (&str, &str), rate: Option<f64>) {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &STUDY.replace("LOAD", load).replace("METRIC", metric));
    let mut weir = sandbox.weir(&["run", "study.yaml", "--confirm", "--out", "a run"]);
    let ended = Running::start(&mut weir).end_within(PROVEN).with_code(0);
    sandbox.assert_clean();
    ended.stderr.has_all(&[
        "Each arm has the load alone now, to see what limits it",
        "Confirming what limits stock: server_maxconn at 16",
    ]);
    flat(&ended.stdout).has_all(&[
        " requests wait in HAProxy for a connection to a server (strong evidence).",
        "Confirmed: with server_maxconn at 16 it carries ",
        "What to do: raise the server's maxconn",
    ]);
    let run = sandbox.records();
    let observed = run.trials_in(|phase| phase == Phase::Observation);
    assert!(observed.count() >= 2);
    let confirmed = run.records.iter().find_map(|record| match record {
        Record::Confirmation(confirmation)
            if confirmation.turned.contains_key("server_maxconn") =>
        {
            Some(confirmation)
        }
        _ => None,
    });
    let confirmed: &ConfirmationRecord = confirmed.expect("it was turned");
    assert!(confirmed.confirmed, "{confirmed:?}");
    assert!(confirmed.ratio.is_some_and(|(ratio, _)| ratio > 2.0), "{confirmed:?}");
    let proof = Run::read(&sandbox.path("a run/confirm-1")).expect("its run");
    let [load] = &proof.header.study.loads[..] else { panic!("{:?}", proof.header.study.loads) };
    assert_eq!(load.main.rate(), rate);
    let findings = sandbox.call("report 'a run' --format json").with_code(0);
    let findings: Value = serde_json::from_str(&findings.stdout).expect("JSON");
    let limiter = &findings["limiters"][0]["judgement"];
    assert_eq!(limiter["findings"][0]["limiter"], "maxconn");
    let ruled_out = limiter["ruled_out"].as_array().expect("a list");
    for excluded in ["accept_queue", "ports", "descriptors"] {
        let is_ruled_out = ruled_out.iter().any(|limiter| {
            limiter["limiter"] == excluded && !limiter["why"].as_array().is_some_and(Vec::is_empty)
        });
        assert!(is_ruled_out, "{excluded}: {ruled_out:?}");
    }
}

/// A study of rates that take turns, with an arm that repeats the baseline.
const RATES: &str = "\
weir: 1
name: rates
question: Does everything grow linearly?
proxy: {kind: nginx, settings: {worker_processes: 1}}
loads:
  - {connections: [4], rate: 40..200 step 40, duration: 5s}
blocks: {slice: 100ms, at-least: 6}
";

#[test]
fn how_an_arm_s_own_resources_grow_with_the_rate_is_told_of_a_matrix() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", RATES);
    let ended = sandbox.call("run study.yaml --samples off --full --out 'a run'").with_code(0);
    ended.stdout.has("Does everything grow with the load?");
    let findings = sandbox.call("report 'a run' --format json").with_code(0);
    let findings: Value = serde_json::from_str(&findings.stdout).expect("JSON");
    let growth = findings["growth"].as_array().expect("a list");
    let [growth] = &growth[..] else { panic!("of the baseline alone: {growth:?}") };
    assert_eq!(growth["arm"], "baseline");
    assert_eq!(growth["loads"].as_array().map(Vec::len), Some(5));
    assert_eq!(growth["in_turns"], true);
    let resources = growth["resources"].as_array().expect("a list");
    // Whatever was carried has its CPU time, its bytes and its sockets; no sample is of one rate.
    for quantity in ["own_cpu", "bytes", "own_sockets"] {
        let points = resource_of(resources, quantity)["points"].as_array().expect("a list");
        assert_eq!(growth["windows"], points.len(), "{quantity}");
        assert!(points.iter().all(|point| point[1].as_f64() > Some(0.0)));
    }
    let memory = resource_of(resources, "memory");
    assert_eq!((&memory["linear"], &memory["shape"]), (&Value::Null, &"unknown".into()));
}

fn resource_of<'r>(resources: &'r [Value], quantity: &str) -> &'r Value {
    let mut all = resources.iter();
    all.find(|resource| resource["quantity"] == quantity)
        .unwrap_or_else(|| panic!("{quantity}: {resources:?}"))
}

/// Observes the same load while an unrelated program runs on every CPU.
fn observe_beside_others(sandbox: &Sandbox, url: &str) -> Value {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut spinner = Command::new("timeout");
    spinner.args(["8", "sh", "-c", "while :; do :; done"]);
    let mut spinners: Vec<_> = (0..cpus).map(|_| spinner.spawn().expect("a shell")).collect();
    let ended =
        sandbox.call(&format!("load {url} -c 8 -d 4s --observe --format json -q")).with_code(0);
    for spinner in &mut spinners {
        spinner.wait().expect("it ends by itself");
    }
    serde_json::from_str(&ended.stdout).expect("JSON")
}

#[test]
fn a_server_of_somebody_else_s_is_looked_at_by_its_address() {
    let sandbox = Sandbox::new();
    let (_server, at) = origin::start("--delay 20ms --concurrency 1");
    let url = format!("http://{at}/");
    let ended =
        sandbox.call(&format!("load {url} -c 8 -d 4s --observe --format json -q")).with_code(0);
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let limiter = &report["limiter"];
    // Its processes were found by its address: it is nearly idle, whoever else has the CPUs.
    let busiest = limiter["evidence"]["quantities"]["proxy_cpus"]["value"].as_f64();
    assert!(busiest.is_some_and(|cpus| cpus < 0.5), "{busiest:?}");
    let busy_report = observe_beside_others(&sandbox, &url);
    let [of_all, of_others, of_server] = ["cpu_all", "cpu_others", "cpu"].map(|quantity| {
        let value = &busy_report["limiter"]["evidence"]["quantities"][quantity]["value"];
        value.as_f64().unwrap_or_else(|| panic!("{quantity}: {busy_report:#}"))
    });
    within(of_all, 0.8..);
    within(of_others, 0.5..);
    within(of_server, ..0.5);
    for (load, words) in [
        ("-d 1s --observe", "--observe: samples are taken every second"),
        ("-d 1s --observe", "-d 10s"),
        ("-d 3h --observe", "two hours at most"),
        ("-d 4s --observe --place origin=x", "--place proxy=HOST"),
    ] {
        sandbox.call(&format!("load {url} {load}")).with_code(2).stderr.has(words);
    }
}

/// A user's nginx that answers by itself, and serves its counters only at an address in its network namespace.
const CONTAINED: &str = "\
daemon off;
master_process off;
error_log /dev/null;
pid FOLDER/nginx.pid;
events {}
http {
    access_log off;
    server { listen 8080; return 200; }
    server { listen 127.0.0.1:8081; location / { stub_status; } }
}
";

/// Addresses of the two ends of a link.
const OUTSIDE: &str = "10.255.77.1";
const INSIDE: &str = "10.255.77.2";

/// Tests a server like one in a container: its address, its sockets and its counters' address are in another network
/// namespace.
#[test]
fn a_server_in_another_network_namespace_is_found_by_its_address() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can make network namespaces");
        return;
    }
    let sandbox = Sandbox::new();
    let text = CONTAINED.replace("FOLDER", &sandbox.path("").to_string_lossy());
    let configuration = sandbox.write("nginx.conf", &text);
    // A namespace ends with its process, and the link with both: the host's own never has it.
    let serve = format!("exec nginx -c {}", configuration.display());
    let (server, client) = (start_contained(&serve), start_contained("exec sleep 120"));
    let (inside, outside) = (server.pid(), client.pid());
    link(&server, INSIDE, &client, OUTSIDE);
    wait_until("a server that listens", || {
        let sockets = std::fs::read_to_string(format!("/proc/{inside}/net/tcp"));
        sockets.is_ok_and(|sockets| sockets.contains(":1F90 "))
    });
    let load = format!(
        "-t {outside} -n {} load http://{INSIDE}:8080/ -c 8 -R 200 -d 8s --observe --format json -q",
        env!("CARGO_BIN_EXE_weir")
    );
    let mut entering = Command::new("nsenter");
    let ended = Running::start(entering.args(load.split(' '))).end().with_code(0);
    server.signal(rustix::process::Signal::TERM);
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    for (quantity, expected) in [
        ("proxy_cpus", 0.0..1.0),
        // Beside other load it may have accepted fewer than all eight.
        ("connections", 1.0..9.0),
        ("accepted", 0.0..20.0),
    ] {
        let value = &report["limiter"]["evidence"]["quantities"][quantity]["value"];
        within(value.as_f64().unwrap_or_else(|| panic!("{quantity}: {report:#}")), expected);
    }
}

/// Links two network namespaces, which have nothing else, by an address of a small network in each.
pub(crate) fn link(server: &Running, inside: &str, client: &Running, outside: &str) {
    let (to, from) = (server.pid(), client.pid());
    for line in [
        format!("-t {from} -n ip link add w1 type veth peer name w0 netns {to}"),
        format!("-t {from} -n ip address add {outside}/30 dev w1"),
        format!("-t {from} -n ip link set w1 up"),
        format!("-t {to} -n ip address add {inside}/30 dev w0"),
        format!("-t {to} -n ip link set w0 up"),
    ] {
        let entered = Command::new("nsenter").args(line.split(' ')).status();
        assert!(entered.is_ok_and(|status| status.success()), "{line}");
    }
}

/// Starts a shell's command in a new network namespace, once that has a loopback interface.
pub(crate) fn start_contained(line: &str) -> Running {
    let line = format!("ip link set lo up && {line}");
    let contained = Running::start(Command::new("unshare").args(["--net", "sh", "-c", &line]));
    let namespace_here = std::fs::read_link("/proc/self/ns/net").ok();
    wait_until("a network namespace", || {
        std::fs::read_link(format!("/proc/{}/ns/net", contained.pid())).ok() != namespace_here
    });
    contained
}

/// A user's nginx with a worker, which a reload replaces.
const RELOADED: &str = "\
daemon off;
error_log /dev/null;
pid FOLDER/nginx.pid;
events {}
http { access_log off; server { listen 127.0.0.1:PORT; return 200; } }
";

/// Counts the open ends of connections of a server's port (proc_pid_net(5), state 01).
fn count_established(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("a table of sockets");
    let port = format!(":{port:04X}");
    table.lines().filter(|line| line.contains(&port) && line.contains(" 01 ")).count()
}

/// Tests a load of more than five seconds, the time between searches for new processes.
#[test]
fn workers_that_a_reload_starts_are_counted() {
    let sandbox = Sandbox::new();
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = free.local_addr().expect("its address").port();
    drop(free);
    let text = RELOADED.replace("FOLDER", &sandbox.path("").to_string_lossy());
    let configuration = sandbox.write("nginx.conf", &text.replace("PORT", &port.to_string()));
    let server = Running::start(Command::new("nginx").arg("-c").arg(&configuration));
    wait_until("a server that listens", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let url = format!("http://127.0.0.1:{port}/");
    let load = ["load", &url, "-c", "4", "-R", "100", "-d", "12s", "--observe", "--format", "json"];
    let mut observed = Running::start(&mut sandbox.weir(&load));
    observed.wait_until("a load on four connections", |_| count_established(port) >= 8);
    // On a busy machine its processes are first looked at some time after the load has begun.
    for _ in 0..4 {
        thread::sleep(Duration::from_secs(2));
        server.signal(rustix::process::Signal::HUP);
    }
    let ended = observed.end().with_code(0);
    server.signal(rustix::process::Signal::TERM);
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let begun = &report["limiter"]["evidence"]["quantities"]["processes_begun"]["value"];
    within(begun.as_f64().unwrap_or_else(|| panic!("{report:#}")), 1.0..);
}
