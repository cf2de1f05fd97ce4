//! Tests of limits that are planted on real proxies, and of the limiter that weir names first.
//!
//! By default, a few are tested that do not depend on the speed of this machine; `WEIR_PLANTED=all` tests all of them,
//! one after the other, with the proof of each, and prints a table (`make planted`). `WEIR_PLANTED=NAME,NAME` tests
//! these. Runs are kept in the folder of `WEIR_PLANTED_RUNS`, if it is set, and a run that is already there is judged
//! without another one.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use weir_testkit::program::Running;
use weir_testkit::sandbox::Sandbox;

/// Conditions beside the study itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hindrance {
    Nothing,
    /// Programs that take the generator's CPU.
    Burners,
    /// A control group with a fifth of a CPU, which the launcher `quota` enters.
    Quota,
    /// A file system that writes at once, for the proxy's folder.
    SlowDisk,
}
use Hindrance::{Burners, Nothing, Quota, SlowDisk};

struct Row {
    fault: &'static str,
    /// Limiter that has to be named first; empty: nothing but full CPUs may be named.
    limiter: &'static str,
    /// One of the parameters that have to be suggested; empty: none of the proxy's.
    parameter: &'static str,
    proxy: &'static str,
    origin: &'static str,
    load: &'static str,
    /// More lines of the study.
    more: &'static str,
    beside: Hindrance,
}

const fn row(
    fault: &'static str,
    named: (&'static str, &'static str),
    proxy: &'static str,
    origin: &'static str,
    load: &'static str,
) -> Row {
    Row {
        fault,
        limiter: named.0,
        parameter: named.1,
        proxy,
        origin,
        load,
        more: "",
        beside: Nothing,
    }
}

const PLAIN: &str = "size: 1KiB";
/// No options of an origin: the server has files of its own.
const NONE: &str = "";
const LARGE: &str = "size: 64KiB";
const SLOW: &str = "size: 1KiB, delay: 10ms";
const SLOWER: &str = "size: 1KiB, delay: 50ms";
/// A rate that is more than any of these proxies carries on a CPU.
const MUCH: &str = "rate: 30000, connections: 32";
/// A load whose work is the proxy's alone.
const COMPRESSED: &str = "rate: 5000, connections: 16, request: {fields: {Accept-Encoding: gzip}}";
/// A load with one burst in each slice. Each of its requests takes the server some time, in which it accepts no
/// connection. A server with a CPU of its own accepts a whole burst before: on a quiet machine of two CPUs the queue
/// does not overflow.
const BURSTS: &str = "rate: 200, burst: 200, connections: 200, connection: per-request, request: {fields: {Accept-Encoding: gzip}}";
/// A rate that exceeds the limits in the users' configurations here, and is small for any machine.
const FEW: &str = "rate: 300, connections: 8";
/// Key that allows the proxy all CPUs.
const ALL_CPUS: &str = "cpus: {proxy: 0-1, generator: 0, origin: 0}\n";

/// Folder of users' configurations.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/rate-limits");

/// Longest time of a run with the proofs of its limiters.
const PROVEN: Duration = Duration::from_secs(900);

/// Rows tested by default, all at once: none depends on speed.
#[rustfmt::skip]
const QUICK: [&str; 7] =
    ["descriptors", "ports", "server-maxconn", "circuit-breaker", "limit-req", "deny", "local-rate-limit"];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("backlog", ("accept_queue", "backlog"),
        "kind: nginx, role: {static-files: {size: 64KiB}}, settings: {worker_processes: 1, backlog: 16, gzip: on, gzip_comp_level: 6, gzip_types: text/plain}", NONE, BURSTS),
    row("somaxconn", ("accept_queue", "net.core.somaxconn"),
        "kind: nginx, role: {static-files: {size: 64KiB}}, settings: {worker_processes: 1, net.core.somaxconn: 16, gzip: on, gzip_comp_level: 6, gzip_types: text/plain}", NONE, BURSTS),
    row("ports", ("ports", "net.ipv4.ip_local_port_range"),
        "kind: nginx, settings: {worker_processes: 1, net.ipv4.ip_local_port_range: 20000 20199}",
        "size: 1KiB, delay: 1s", "rate: 400, connections: 350, timeout: 5s"),
    row("worker-connections", ("worker_connections", "worker_connections"),
        "kind: nginx, settings: {worker_processes: 1, worker_connections: 64, origin_keepalive: 64}", SLOWER, "rate: 200, connections: 100"),
    row("descriptors", ("descriptors", "rlimit_nofile"),
        "kind: nginx, settings: {worker_processes: 1, rlimit_nofile: 128, worker_connections: 128}", "size: 1KiB, delay: 500ms", "rate: 400, connections: 64"),
    row("gzip", ("compression", "gzip_comp_level"),
        "kind: nginx, settings: {worker_processes: 1, gzip: on, gzip_comp_level: 9, gzip_types: text/plain, origin_keepalive: 64}", LARGE,
        COMPRESSED),
    Row { beside: SlowDisk, ..row("access-log", ("disk_log", "access_log"),
        "kind: nginx, settings: {worker_processes: 1, access_log: on, origin_keepalive: 64}", PLAIN, "rate: 8000, connections: 32") },
    Row { beside: SlowDisk, ..row("temporary-files", ("disk_temporary", "proxy_buffering"),
        "kind: nginx, settings: {worker_processes: 1, access_log: off, origin_keepalive: 64}", "size: 4MiB", "rate: 400, connections: 16, timeout: 20s") },
    row("keepalive-requests", ("keepalive_inbound", "keepalive_requests"),
        "kind: nginx, settings: {worker_processes: 1, keepalive_requests: 1, origin_keepalive: 64}", PLAIN, MUCH),
    Row { more: ALL_CPUS, ..row("one-worker", ("cpu_one_worker", "worker_processes"),
        "kind: nginx, settings: {worker_processes: 1, gzip: on, gzip_comp_level: 1, gzip_types: text/plain, origin_keepalive: 64}", LARGE, COMPRESSED) },
    Row { more: ALL_CPUS, ..row("concurrency", ("cpu_one_worker", "concurrency"), "kind: envoy, settings: {concurrency: 1}", PLAIN, MUCH) },
    Row { more: "launchers: {quota: {prefix: [QUOTA]}}\n", beside: Quota, ..row("quota", ("quota", "worker_processes"),
        "kind: nginx, settings: {worker_processes: 1, origin_keepalive: 64, launcher: quota}", PLAIN, MUCH) },
    row("origin-delay", ("origin", ""),
        "kind: nginx, settings: {worker_processes: 1, origin_keepalive: 64}", SLOWER, "rate: 400, connections: 8"),
    row("origin-limit", ("origin", ""),
        "kind: nginx, settings: {worker_processes: 1, origin_keepalive: 64}", "size: 1KiB, delay: 5ms, concurrency: 2", "rate: 800, connections: 16"),
    Row { beside: Burners, ..row("starved-generator", ("generator", ""),
        "kind: nginx, settings: {worker_processes: 1, origin_keepalive: 64}", PLAIN, "rate: 3000, connections: 32") },
    row("circuit-breaker", ("circuit_breaker", "max_connections"),
        "kind: envoy, settings: {concurrency: 1, max_connections: 2, max_pending_requests: 2}", SLOW, "rate: 1000, connections: 32"),
    row("downstream-limit", ("circuit_breaker", "max_active_downstream_connections"),
        "kind: envoy, settings: {concurrency: 1, max_active_downstream_connections: 10}", PLAIN, "rate: 200, connections: 30"),
    row("maxconn", ("maxconn", "maxconn"),
        "kind: haproxy, settings: {nbthread: 1, maxconn: 20, http_reuse: always}", SLOWER, "rate: 600, connections: 60"),
    row("frontend-maxconn", ("maxconn", "frontend_maxconn"),
        "kind: haproxy, settings: {nbthread: 1, frontend_maxconn: 20, http_reuse: always}", SLOWER, "rate: 600, connections: 60"),
    row("server-maxconn", ("maxconn", "server_maxconn"),
        "kind: haproxy, settings: {nbthread: 1, server_maxconn: 2, http_reuse: always}", SLOW, "rate: 1000, connections: 32"),
    row("origin-max-connections", ("maxconn", "origin_max_connections"),
        "kind: caddy, settings: {origin_max_connections: 2}", SLOW, "rate: 1000, connections: 32"),
    row("max-request-workers", ("maxconn", "max_request_workers"),
        "kind: httpd, settings: {max_request_workers: 25, threads_per_child: 25}", SLOWER, "rate: 1000, connections: 60"),
    row("limit-req", ("rate_limit", ""), "kind: nginx, configuration: DATA/nginx.conf", PLAIN, FEW),
    row("deny", ("rate_limit", ""), "kind: haproxy, configuration: DATA/haproxy.cfg", PLAIN, FEW),
    row("local-rate-limit", ("rate_limit", ""), "kind: envoy, configuration: DATA/envoy.yaml", PLAIN, FEW),
    row("full-handshakes", ("tls", "ssl_session_cache"),
        "kind: nginx, settings: {worker_processes: 1, origin_keepalive: 64}", PLAIN,
        "rate: 4000, connections: 32, connection: per-request, tls: true"),
    row("healthy-nginx", ("", ""),
        "kind: nginx, settings: {worker_processes: 1, origin_keepalive: 64, keepalive_requests: 1000000}", PLAIN, MUCH),
    row("healthy-haproxy", ("", ""), "kind: haproxy, settings: {nbthread: 1, http_reuse: always}", PLAIN, MUCH),
    row("healthy-envoy", ("", ""), "kind: envoy, settings: {concurrency: 1}", PLAIN, MUCH),
    row("healthy-caddy", ("", ""), "kind: caddy, settings: {}", PLAIN, MUCH),
    row("healthy-httpd", ("", ""), "kind: httpd, settings: {keepalive_requests: 1000000}", PLAIN, MUCH),
];

#[test]
fn planted_limits_are_named_first() {
    let names = std::env::var("WEIR_PLANTED").unwrap_or_default();
    let results: Vec<RowResult> = if names.is_empty() {
        let quick = ROWS.iter().filter(|row| QUICK.contains(&row.fault));
        thread::scope(|scope| {
            let all: Vec<_> = quick.map(|row| (row, scope.spawn(|| try_row(row)))).collect();
            let beside: Vec<_> =
                all.into_iter().map(|(row, run)| (row, run.join().expect("a judgement"))).collect();
            beside.into_iter().map(|(row, first)| retry_alone(row, first)).collect()
        })
    } else {
        println!(
            "| fault | named first | how sure | to turn | what else | confirmed |\n|---|---|---|---|---|---|"
        );
        ROWS.iter()
            .filter(|row| names == "all" || names.split(',').any(|name| row.fault == name))
            .map(try_row)
            .collect()
    };
    assert!(!results.is_empty(), "no fault is called {names}");
    let wrong: Vec<&str> =
        results.iter().filter(|result| !result.is_right).map(|result| &*result.line).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), results.len(), wrong.join("\n"));
}

struct RowResult {
    line: String,
    is_right: bool,
}

/// Tests a row again if its limiter was not named while the others ran. As many weirs as proxies, on CPUs that other
/// tests share, may keep each other from the load that shows a limit. A run that fails is not repeated.
fn retry_alone(row: &Row, first: RowResult) -> RowResult {
    if first.is_right {
        return first;
    }
    let alone = try_row(row);
    RowResult { line: format!("{}\nand alone: {}", first.line, alone.line), ..alone }
}

/// Makes a run with the fault, and judges its limiter.
#[allow(clippy::print_stdout)]
fn try_row(row: &Row) -> RowResult {
    let sandbox = Sandbox::new();
    let runs = std::env::var_os("WEIR_PLANTED_RUNS");
    let folder = runs.map_or(sandbox.path("a run"), |runs| Path::new(&runs).join(row.fault));
    if !folder.exists() {
        run(row, &sandbox, &folder);
    }
    let name = folder.display().to_string();
    let mut report = sandbox.weir(&["report", &name, "--format", "json"]);
    let json = Running::start(&mut report).end().with_code(0).stdout;
    let result = judge(row, &serde_json::from_str(&json).expect("findings"));
    println!("{}", result.line);
    result
}

fn run(row: &Row, sandbox: &Sandbox, folder: &Path) {
    let beside = Prepared::of(row.beside, sandbox);
    let slice = if row.load == BURSTS { "1s" } else { "500ms" };
    let quota = sandbox.path("quota");
    let more = row.more.replace("QUOTA", &quota.display().to_string());
    let study = format!(
        "weir: 1\nname: planted\nquestion: What limits it?\nproxy: {{{}}}\norigin: {{{}}}\nloads:\n  \
         - {{name: load, duration: 12s, {}}}\na/a: false\nobjective: {{metric: response-p99, within: 1m}}\n\
         blocks: {{slice: {slice}, at-least: 6, instances: 1}}\n{more}",
        row.proxy.replace("DATA", DATA),
        row.origin,
        row.load
    );
    sandbox.write("study.yaml", &study);
    let mut weir = sandbox.weir(&["run", "study.yaml", "--out"]);
    weir.arg(folder);
    if row.beside == SlowDisk {
        weir.env("TMPDIR", sandbox.path("slow"));
    }
    // A proof depends on how fast things are, and takes longer than tests wait for an end.
    let proves = std::env::var_os("WEIR_PLANTED").is_some();
    weir.args(proves.then_some("--confirm"));
    Running::start(&mut weir).end_within(PROVEN).with_code(0);
    drop(beside);
}

fn judge(row: &Row, json: &Value) -> RowResult {
    let none = Vec::new();
    let all = json["limiters"][0]["judgement"]["findings"].as_array().unwrap_or(&none);
    let limiters = all.iter().map(|finding| finding["limiter"].as_str().unwrap_or_default());
    let names: Vec<String> = limiters.map(str::to_owned).collect();
    let first = all.first().cloned().unwrap_or_default();
    let turns: Vec<&str> =
        first["turn"].as_array().unwrap_or(&none).iter().filter_map(Value::as_str).collect();
    let is_right = match row.limiter {
        "" => names.iter().all(|name| name == "cpu"),
        limiter => {
            let is_turned =
                row.parameter.is_empty() || turns.iter().take(3).any(|turn| *turn == row.parameter);
            names.first().is_some_and(|name| name == limiter) && is_turned
        }
    };
    let certainty = first["certainty"].as_str().unwrap_or("");
    let (named, others) =
        names.split_first().map_or(("nothing", &[][..]), |(named, others)| (named, others));
    RowResult {
        line: format!(
            "| {} | {named} | {certainty} | {} | {} | {} |",
            row.fault,
            turns.join(", "),
            others.join(", "),
            proofs(&json["limiters"][0]["confirmations"])
        ),
        is_right,
    }
}

/// Describes the changes of the confirming trials, and their results.
fn proofs(confirmations: &Value) -> String {
    let none = Vec::new();
    let proofs = confirmations.as_array().unwrap_or(&none).iter().map(|confirmation| {
        let turned: Vec<String> = confirmation["turned"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(id, level)| format!("{id} {}", level.as_str().unwrap_or("?")))
            .collect();
        let less = if confirmation["taken"].is_null() { "" } else { "less of it" };
        let no = if confirmation["confirmed"] == true { "" } else { "not: " };
        let ratio = confirmation["ratio"][0]
            .as_f64()
            .map_or(String::new(), |ratio| format!(" × {ratio:.2}"));
        let why = confirmation["why_not"].as_str().unwrap_or_default();
        format!("{no}{}{less}{ratio}{why}", turned.join(" "))
    });
    proofs.collect::<Vec<String>>().join("; ")
}

/// Processes and mounts beside a run, until this is dropped.
struct Prepared {
    burners: Vec<Child>,
    unmount: Option<std::path::PathBuf>,
}

/// Runs a shell script, which must succeed.
#[track_caller]
fn shell(script: &str) {
    let done = Command::new("sh").args(["-ec", script]).status();
    assert!(done.is_ok_and(|status| status.success()), "{script}");
}

impl Prepared {
    fn of(beside: Hindrance, sandbox: &Sandbox) -> Prepared {
        let mut prepared = Prepared { burners: Vec::new(), unmount: None };
        match beside {
            Nothing => {}
            Burners => {
                let mut burner = Command::new("taskset");
                burner.args(["-c", "0", "sh", "-c", "while :; do :; done"]).stdin(Stdio::null());
                prepared.burners.extend((0..3).map(|_| burner.spawn().expect("taskset")));
            }
            Quota => {
                sandbox.program("quota", ENTER);
            }
            SlowDisk => {
                let (image, at) = (sandbox.path("image"), sandbox.path("slow"));
                let (image, folder) = (image.display(), at.display());
                shell(&format!(
                    "truncate -s 2G {image}; mkfs.ext4 -q {image}; mkdir {folder}; mount -o loop,sync {image} {folder}; chmod 755 {folder}"
                ));
                prepared.unmount = Some(at);
            }
        }
        prepared
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        for burner in &mut self.burners {
            // It may have ended since.
            let _ = burner.kill();
            let _ = burner.wait();
        }
        // Those of the row with a quota; of other rows there are none.
        for group in ["cpu/weir-planted", "weir-planted"] {
            let _ = std::fs::remove_dir(Path::new("/sys/fs/cgroup").join(group));
        }
        if let Some(folder) = &self.unmount {
            let _ = Command::new("umount").arg(folder).status();
        }
    }
}

/// Script that enters a control group, of either version, with a fifth of a CPU, and becomes the given program.
const ENTER: &str = "#!/bin/sh
set -e
v1=/sys/fs/cgroup/cpu
if [ -d $v1 ]; then
    group=$v1/weir-planted
    mkdir -p $group
    echo 20000 > $group/cpu.cfs_period_us
    echo 4000 > $group/cpu.cfs_quota_us
else
    group=/sys/fs/cgroup/weir-planted
    mkdir -p $group
    echo '4000 20000' > $group/cpu.max
fi
echo $$ > $group/cgroup.procs
exec \"$@\"
";
