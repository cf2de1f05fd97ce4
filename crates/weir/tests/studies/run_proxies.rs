//! Tests of `weir run` with all five proxies side by side: their settings in force, their cost, and their own counters.

use std::collections::BTreeMap;

use weir_model::record::{CountersRecord, ProxyRecord, Record, TrialRecord};
use weir_record::Run;
use weir_testkit::program::HasAll;
use weir_testkit::sandbox::Sandbox;

/// Names of the arms of [`study`], which are those of their proxies.
pub(crate) const PROXIES: [&str; 5] = ["nginx", "haproxy", "envoy", "caddy", "httpd"];

/// Name of each proxy's counter of requests; nginx and httpd also count the requests by which weir reads it.
const REQUESTS: [(&str, &str); 5] = [
    ("nginx", "requests"),
    ("haproxy", "frontend.req_tot"),
    ("envoy", "http.ingress.downstream_rq_total"),
    ("caddy", "caddy_http_requests_total{"),
    ("httpd", "Total Accesses"),
];

/// Setting that must be read back from each proxy: its level is not the default.
const ASKED: [(&str, &str, &str); 5] = [
    ("nginx", "keepalive_requests", "500000"),
    ("haproxy", "nbthread", "1"),
    ("envoy", "generate_request_id", "off"),
    ("caddy", "metrics", "on"),
    ("httpd", "threads_per_child", "32"),
];

/// Nanoseconds of CPU time below those of any proxy for a request, but above those of a master alone.
const LEAST_CPU_NS: u64 = 1_000;

/// Returns a study with all five; `loads` are lines.
pub(crate) fn study(loads: &str, blocks: &str) -> String {
    format!(
        "weir: 1\n\
         name: five\n\
         question: Do all five run side by side?\n\
         proxy:\n\
         \x20 kind: nginx\n\
         \x20 settings: {{worker_processes: 1, access_log: off, keepalive_requests: 500000}}\n\
         loads:\n{loads}\
         a/a: false\n\
         baseline: nginx\n\
         arms:\n\
         - {{name: haproxy, proxy: haproxy, settings: {{nbthread: 1, access_log: off}}}}\n\
         - {{name: envoy, proxy: envoy, settings: {{concurrency: 1, generate_request_id: off, \
         access_log: off}}}}\n\
         - {{name: caddy, proxy: caddy, settings: {{gomaxprocs: 1, metrics: on, access_log: off}}}}\n\
         - {{name: httpd, proxy: httpd, settings: {{threads_per_child: 32, \
         max_request_workers: 64, extended_status: on, access_log: off}}}}\n\
         blocks: {blocks}\n"
    )
}

/// Returns the record of each arm's first proxy instance.
pub(crate) fn of_arms(run: &Run) -> BTreeMap<&str, &ProxyRecord> {
    let mut first_records = BTreeMap::new();
    for record in &run.records {
        if let Record::Proxy(proxy) = record {
            first_records.entry(&*proxy.arm).or_insert(proxy);
        }
    }
    first_records
}

#[test]
fn five_proxies_are_measured_side_by_side_under_every_kind_of_load() {
    let sandbox = Sandbox::new();
    let loads = "\
        - {name: closed, closed: true, connections: 4, duration: 3s}\n\
        - {name: open, rate: 400, connections: 4, duration: 3s}\n\
        - {name: anew, closed: true, connections: 4, connection: per-request, duration: 3s}\n\
        - {name: tls, closed: true, connections: 4, tls: true, duration: 3s}\n";
    let text = study(loads, "{slice: 50ms, at-least: 6, instances: 1}");
    let (_, run) = sandbox.measure(&text);
    let arms = of_arms(&run);
    for (arm, setting, level) in ASKED {
        let proxy = arms[arm];
        sandbox.read("report.md").has(&proxy.program);
        let name = proxy.program.split('/').next().unwrap_or_default();
        assert_eq!(name.to_lowercase(), named(arm), "{}", proxy.program);
        assert_eq!(proxy.effective[setting], level, "{arm}: {setting}");
        assert_eq!(proxy.effective["access_log"], "off", "{arm}");
        // `access_log` is off in the baseline as well, which says nothing about another proxy's.
        assert_eq!(proxy.inert, [], "{arm}");
        let queue = &proxy.effective["listen-backlog"];
        assert!(queue.parse::<u64>().is_ok_and(|length| length > 0), "{arm}");
    }
    // Go asks for all that the kernel allows.
    let caddy = &arms["caddy"].effective;
    assert_eq!(caddy["listen-backlog"], caddy["net.core.somaxconn"]);
    let trials: Vec<&TrialRecord> = run.trials().collect();
    for load in ["closed", "open", "anew", "tls"] {
        for arm in PROXIES {
            let of_arm = trials.iter().filter(|trial| trial.load == load && trial.arm == arm);
            assert_measured(load, arm, &of_arm.copied().collect::<Vec<_>>());
        }
    }
    assert_memory(&run);
    assert_counted(&run);
    assert_counted_first(&run);
}

/// Returns the proxy's name for itself.
fn named(arm: &str) -> &str {
    match arm {
        "httpd" => "apache",
        other => other,
    }
}

/// Checks that requests were answered without errors, and that their CPU time is that of the processes that answered
/// them.
#[track_caller]
fn assert_measured(load: &str, arm: &str, trials: &[&TrialRecord]) {
    assert_eq!(trials.len(), 6, "{arm} under {load}");
    let (mut answered, mut cpu) = (0, 0);
    for slice in trials.iter().flat_map(|trial| &trial.slices) {
        answered += slice.completed_whole;
        cpu += slice.proxy_cpu_ns;
    }
    assert!(answered > 0, "{arm} under {load}");
    assert!(
        cpu > answered * LEAST_CPU_NS,
        "{arm} under {load}: {cpu} ns of CPU time for {answered} requests"
    );
    for trial in trials {
        assert_eq!(trial.errors, [], "{arm} under {load}");
        let [_, _, good, ..] = trial.status_classes;
        let all: u64 = trial.status_classes.iter().sum();
        assert_eq!(good, all, "{arm} under {load}");
    }
}

/// Checks that the memory of all processes of an arm counts: httpd's children beside their parent, HAProxy's worker.
#[track_caller]
fn assert_memory(run: &Run) {
    let parts = run.records.iter().filter_map(|record| match record {
        Record::Part(part) => Some(part),
        _ => None,
    });
    for arm in parts.flat_map(|part| &part.arms) {
        assert!(arm.proxy_memory_bytes > 500_000, "{arm:?}");
    }
}

/// Checks that each proxy has counted the requests that were answered, and a few of weir's own.
#[track_caller]
fn assert_counted(run: &Run) {
    let mut checked = 0;
    for record in &run.records {
        let Record::Part(part) = record else { continue };
        for (arm, name) in REQUESTS {
            let arm_part = part.arms.iter().find(|arm_part| arm_part.arm == arm).expect(arm);
            let answered = arm_part.answered;
            let counters = counters_of(run, &part.load, arm);
            let counted = read_highest(counters, name);
            assert!(
                (answered..=answered + answered / 20 + 100).contains(&counted),
                "{arm} under {}: {counted} counted, {answered} answered",
                part.load
            );
            checked += 1;
        }
    }
    assert_eq!(checked, 4 * PROXIES.len());
}

/// Checks that counters are recorded before the end of their trial, which marks it as complete: weir may be killed
/// between the two.
#[track_caller]
fn assert_counted_first(run: &Run) {
    for (end, record) in run.records.iter().enumerate() {
        let Record::Part(part) = record else { continue };
        let counted = run.records[..end].iter().filter(|record| {
            matches!(record, Record::Counters(counters)
                if counters.load == part.load && counters.first_block == part.first_block)
        });
        assert_eq!(counted.count(), PROXIES.len(), "{}", part.load);
    }
}

fn counters_of<'a>(run: &'a Run, load: &str, arm: &str) -> &'a CountersRecord {
    let mut all = run.records.iter().filter_map(|record| match record {
        Record::Counters(counters) => Some(counters),
        _ => None,
    });
    all.find(|counters| counters.load == load && counters.arm == arm)
        .unwrap_or_else(|| panic!("{arm} has counted nothing under {load}"))
}

/// Returns the largest of the counters that begin with this name: Caddy has one for each handler that a request passes.
fn read_highest(counters: &CountersRecord, name: &str) -> u64 {
    let named = counters.counted.iter().filter(|(id, _)| {
        let labels = id.strip_prefix(name);
        labels.is_some_and(|labels| labels.is_empty() || name.ends_with('{'))
    });
    named.map(|(_, count)| *count).max().unwrap_or(0)
}

#[test]
fn files_are_served_by_those_that_serve_files() {
    let sandbox = Sandbox::new();
    let text = "weir: 1\n\
                name: files\n\
                question: Who serves files?\n\
                proxy:\n\
                \x20 kind: nginx\n\
                \x20 role: {static-files: {size: 1KiB}}\n\
                loads:\n\
                - {name: one, closed: true, connections: 4, duration: 2s}\n\
                - {name: another, closed: true, connections: 4, size: 64KiB, duration: 2s}\n\
                a/a: false\n\
                baseline: nginx\n\
                arms:\n\
                - {name: caddy, proxy: caddy}\n\
                - {name: httpd, proxy: httpd}\n\
                blocks: {slice: 50ms, at-least: 6, instances: 1}\n";
    let (_, run) = sandbox.measure(text);
    for arm in ["nginx", "caddy", "httpd"] {
        let of_arm: Vec<_> = run.trials().filter(|trial| trial.arm == arm).collect();
        let received: u64 =
            of_arm.iter().flat_map(|trial| &trial.slices).map(|slice| slice.received_bytes).sum();
        assert!(received > 100 * 1024, "{arm}");
        assert!(of_arm.iter().all(|trial| trial.errors.is_empty()), "{arm}");
    }
    let with_envoy = text.replace("proxy: caddy", "proxy: envoy");
    let sandbox = Sandbox::new();
    sandbox.run(&with_envoy).end().refused(&["Envoy does not serve files"]);
    sandbox.assert_clean();
}

#[test]
fn a_proxy_that_is_not_installed_is_left_out_and_the_rest_is_measured() {
    let sandbox = Sandbox::new();
    let load = "- {name: closed, closed: true, connections: 2, duration: 3s}\n";
    let five = study(load, "{slice: 50ms, at-least: 6, instances: 1}");
    let text = five.replace("proxy: envoy", "proxy: {kind: envoy, executable: /nowhere/envoy}");
    let (ended, run) = sandbox.measure(&text);
    let arms: Vec<&str> = of_arms(&run).into_keys().collect();
    assert_eq!(arms, ["caddy", "haproxy", "httpd", "nginx"]);
    let remarks = weir_testkit::program::remarks_of(&run);
    remarks.has_all(&["arm `envoy` is left out", "/nowhere/envoy was not found"]);
    ended.stdout.has("envoy");
}

#[test]
fn without_the_baseline_s_proxy_nothing_is_measured() {
    let sandbox = Sandbox::new();
    let load = "- {name: closed, closed: true, connections: 2, duration: 3s}\n";
    let five = study(load, "{slice: 50ms, at-least: 6, instances: 1}");
    let text = five.replace("kind: nginx", "kind: nginx\n  executable: /nowhere/nginx");
    let ended = sandbox.run(&text).end();
    ended.refused_in_a_line(&["/nowhere/nginx was not found", "\nhint: install it"]);
    assert!(!sandbox.run_folder().exists());
    sandbox.assert_clean();
}

/// Tests proxies that raise their soft limit of descriptors by themselves, whatever they are started with.
#[test]
fn a_limit_that_a_proxy_raises_by_itself_is_found_inert() {
    for kind in ["haproxy", "envoy", "caddy"] {
        let sandbox = Sandbox::new();
        let text = format!(
            "weir: 1\n\
             name: limits\n\
             question: Does the limit matter?\n\
             proxy: {kind}\n\
             loads:\n\
             - {{name: closed, closed: true, connections: 2, duration: 2s}}\n\
             a/a: false\n\
             arms:\n\
             - {{name: more, settings: {{rlimit_nofile: 4096}}}}\n\
             blocks: {{slice: 50ms, at-least: 6, instances: 1}}\n"
        )
        .replace("proxy: ", "proxy:\n  kind: ");
        let (_, run) = sandbox.measure(&text);
        let arms = of_arms(&run);
        let (stock, more) = (arms["baseline"], arms["more"]);
        assert_eq!(stock.nofile, more.nofile, "{kind}");
        let inert: Vec<&str> = more.inert.iter().map(|inert| &*inert.id).collect();
        assert_eq!(inert, ["rlimit_nofile"], "{kind}: {more:?}");
        let limit = format!("descriptor limit {}", stock.nofile);
        assert_eq!(more.inert[0].effective, limit, "{kind}");
    }
}
