//! Tests of configurations that are specific to HAProxy, and of their effects.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use weir_model::study::ProxyKind;
use weir_parameters::Catalog;
use weir_sut::{Launch, Proxy};

use crate::programs::setup::{Arm, Changes, Setup, nobody, program};
use crate::programs::support::{Origin, until};

pub(crate) fn haproxy() -> Arc<dyn Proxy> {
    program(ProxyKind::Haproxy)
}

fn start(changes: Changes<'_>, launch: Launch) -> Arm {
    let setup = Setup::proxy(ProxyKind::Haproxy, changes, nobody());
    Setup { launch, ..setup }.start()
}

/// Levels that rows give as Debian's agree with Debian's file.
#[test]
fn stock_is_what_debian_ships() {
    let text = fs::read_to_string("/etc/haproxy/haproxy.cfg").expect("Debian's package is there");
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_ascii_whitespace().collect()).collect();
    for row in Catalog::builtin().parameters(ProxyKind::Haproxy) {
        for directive in row.debian.iter().flat_map(|level| row.directives(level)) {
            // Debian's goes to syslog.
            if directive.text.starts_with("log stdout") {
                continue;
            }
            let wanted: Vec<&str> = directive.text.split_ascii_whitespace().collect();
            let (first, others) = wanted.split_first().unwrap();
            let has_directive = lines.iter().any(|line| {
                line.first() == Some(first) && others.iter().all(|word| line.contains(word))
            });
            assert!(has_directive, "{wanted:?} is not in the file");
        }
    }
}

#[test]
fn requests_are_counted_and_logged() {
    const REQUESTS: u64 = 20;
    let origin = Origin::start();
    let arm = Setup::proxy(ProxyKind::Haproxy, &[], origin.address).start();
    // weir's own looks at whether it listens are counted as well.
    let before = arm.counters();
    for _ in 0..REQUESTS {
        assert!(arm.get("/").ends_with("hello"));
    }
    assert_eq!(arm.proxy.worker_pids().len(), 1);
    let grew = |name: &str| arm.counter(name) - before[name];
    // The last request may be counted a moment after its client has the response.
    for name in ["req_tot", "conn_tot", "hrsp_2xx"].map(|name| format!("frontend.{name}")) {
        until(&name, || grew(&name) >= REQUESTS);
        assert_eq!(grew(&name), REQUESTS, "{name}");
    }
    let passed_on = || grew("backend.connect") + grew("backend.reuse");
    until("all are passed on", || passed_on() >= REQUESTS);
    assert_eq!(passed_on(), REQUESTS);
    assert_eq!(grew("backend.connect"), origin.connections() as u64);

    let log = arm.configuration.prefix().join("logs/access.log");
    until("the last line is written", || count_responses(&log) >= REQUESTS);
    assert_eq!(count_responses(&log), REQUESTS, "it logs into its own folder");
    let output = fs::read_to_string(arm.configuration.output()).unwrap();
    assert!(!output.contains("ALERT") && !output.contains("WARNING"), "{output}");
}

fn count_responses(log: &Path) -> u64 {
    fs::read_to_string(log).expect("the log").matches(" 200 ").count() as u64
}

#[test]
fn cpu_time_grows_with_the_work_of_every_thread() {
    let changes = [("nbthread", "2"), ("busy_polling", "on")];
    let mut arm = start(&changes, Launch::default());
    let begin = arm.proxy.cpu_ns();
    // Two threads that never sleep.
    until("100 ms of CPU time", || arm.proxy.cpu_ns() > begin + 100_000_000);
}

#[test]
fn what_runs_says_itself_what_it_runs_with() {
    let changes = [
        ("nbthread", "2"),
        ("maxconn", "500"),
        ("frontend_maxconn", "400"),
        ("server_maxconn", "30"),
        ("server_maxqueue", "20"),
        ("pool_max_conn", "10"),
        ("tune_bufsize", "32k"),
        ("ulimit_n", "4000"),
    ];
    let arm = start(&changes, Launch::default());
    for (id, level) in changes {
        assert_eq!(arm.level(id).as_deref(), Some(level), "{id}");
    }
    // Against what was written: the process counts, not the file.
    let file = arm.configuration.file();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("maxconn 500", "maxconn 600")).unwrap();
    assert_eq!(arm.level("maxconn").as_deref(), Some("500"));
}

#[test]
fn what_is_left_to_it_is_read_of_the_process_too() {
    let launch = Launch { nofile: Some(900), ..Launch::default() };
    let arm = start(&[], launch);
    let nofile: u64 = arm.level("ulimit_n").unwrap().parse().unwrap();
    assert!(nofile > 900, "it raises its limit to the hard one: {nofile}");
    let maxconn: u64 = arm.level("maxconn").unwrap().parse().unwrap();
    assert!(maxconn < nofile / 2, "{maxconn} connections, {nofile} descriptors");
    assert_eq!(arm.level("frontend_maxconn"), Some(maxconn.to_string()));
}

#[test]
fn it_has_a_thread_for_each_cpu_that_it_is_bound_to() {
    let first = weir_probe::allowed_cpus().unwrap().cpus()[0].to_string();
    let launch = Launch { cpus: Some(first.parse().unwrap()), ..Launch::default() };
    let arm = start(&[], launch);
    assert_eq!(arm.level("nbthread").as_deref(), Some("1"));
    for pid in arm.proxy.worker_pids() {
        assert_eq!(allowed_cpus(pid), first, "it stays where it was bound");
    }
}

fn allowed_cpus(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("proc(5) has it").trim().to_owned()
}
