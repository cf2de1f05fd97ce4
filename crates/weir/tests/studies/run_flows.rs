//! Tests of `weir run` with loads beyond kept connections without TLS: TLS, a connection for each request, connections
//! that are held, large content.

use weir_model::record::{ArmConnections, Record};
use weir_record::Run;
use weir_testkit::program::{Ended, HasAll, flat, within};
use weir_testkit::sandbox::{self, Sandbox, sum};

fn study() -> String {
    let loads = "\
- name: handshakes
  closed: true
  connections: 2
  connection: per-request
  tls: {version: 1.2, ciphers: ECDHE-RSA-AES256-GCM-SHA384, resumption: off}
  duration: 2s
- {name: per-request, closed: true, connections: 2, connection: per-request, duration: 2s}
- {name: held, rate: 50, connections: 2, hold: 60, duration: 2s}
- {name: large-content, closed: true, connections: 2, duration: 2s, timeout: 10s}";
    let more = "\
a/a: false
origin: {size: 256KiB}
arms: [{name: keeps-origin, settings: {origin_keepalive: 8}}]
objective: {metric: received-bytes}
";
    sandbox::study("{kind: nginx, settings: {worker_processes: 1}}", loads, more)
}

const ARMS: [&str; 2] = ["baseline", "keeps-origin"];

#[test]
fn tls_lifetimes_held_connections_and_large_content() {
    let sandbox = Sandbox::new();
    let (ended, run) = sandbox.measure(&study());
    check_handshakes(&run);
    check_per_request(&run);
    check_held(&run);
    check_large_content(&run);
    check_words(&ended, &sandbox);
}

#[test]
fn more_connections_are_held_than_a_thread_may_have_descriptors() {
    let sandbox = Sandbox::new();
    let proxy = "{kind: nginx, settings: {worker_processes: 3, reuseport: on, worker_connections: 1024, \
                 worker_rlimit_nofile: 1024, client_header_timeout: 1h}}";
    let load = "  - {name: held, rate: 50, connections: 4, hold: 1200, duration: 1s}";
    let more = "a/a: false\nobjective: {metric: response-p99, within: 10s}\n";
    sandbox.write("study.yaml", &sandbox::study(proxy, load, more));
    let ended = sandbox.run_behind("ulimit -n 1024");
    // Containers may forbid threads a table of their own: then there is one limit for all.
    if !weir_load::descriptors::tables_can_be_own() {
        ended.refused(&["1204", "and the limit is 1024"]);
        return;
    }
    ended.with_code(0);
    let run = sandbox.records();
    let connections = of_arm(&run, "held", "baseline");
    let held = connections.held;
    assert_eq!((held.open_at_start, held.open_at_end), (1200, 1200));
    let threads: Vec<u32> = run.parts("held").map(|part| part.threads).collect();
    assert!(threads[0] > 1, "{threads:?}");
}

/// Returns the connections of a load that was measured in one continuous trial.
fn of_arm(run: &Run, load: &str, arm: &str) -> ArmConnections {
    let parts: Vec<_> = run.parts(load).collect();
    assert_eq!(parts.len(), 1, "{load}");
    let of_arm = parts[0].arms.iter().find(|candidate| candidate.arm == arm);
    of_arm.expect(arm).clone()
}

fn no_errors(run: &Run, load: &str) {
    for trial in run.trials().filter(|trial| trial.load == load) {
        assert_eq!(trial.errors, [], "{load}");
    }
}

/// Checks that the offered TLS parameters were used, in full handshakes, one for each connection.
fn check_handshakes(run: &Run) {
    no_errors(run, "handshakes");
    for arm in ARMS {
        let connections = of_arm(run, "handshakes", arm);
        let tls = connections.tls.expect("the load speaks TLS");
        assert!(tls.handshakes > 2 && tls.resumed == 0, "{tls:?}");
        for (counts, name) in
            [(&tls.versions, "TLS 1.2"), (&tls.ciphers, "ECDHE-RSA-AES256-GCM-SHA384")]
        {
            let names: Vec<&str> = counts.iter().map(|count| &*count.name).collect();
            assert_eq!(names, [name]);
        }
        // At the end each of the two connections may be open without an answer or a handshake.
        let asking = connections.asking;
        assert!(asking.opened.abs_diff(tls.handshakes) <= 2, "{asking:?}");
        assert!(connections.answered.abs_diff(tls.handshakes) <= 2);
        assert_eq!((asking.open_at_start, asking.wanted), (0, 2));
    }
}

/// Checks that nginx sends each request to the origin server once, whether or not it keeps its own connections.
fn check_per_request(run: &Run) {
    no_errors(run, "per-request");
    for arm in ARMS {
        let connections = of_arm(run, "per-request", arm);
        assert_eq!(connections.tls, None);
        let (opened, answered) = (connections.asking.opened, connections.answered);
        assert!(answered > 2 && opened.abs_diff(answered) <= 2);
        let requests = sum(run, "per-request", arm, |slice| slice.origin_requests);
        let connects = sum(run, "per-request", arm, |slice| slice.origin_connects);
        assert!(requests > 2);
        match arm {
            "baseline" => assert!(requests.abs_diff(connects) <= 2, "{requests} {connects}"),
            _ => assert!(connects * 2 < requests, "{requests} {connects}"),
        }
    }
}

/// Checks that the connections are open from the begin to the end, and cause no requests to the origin server.
fn check_held(run: &Run) {
    no_errors(run, "held");
    for arm in ARMS {
        let connections = of_arm(run, "held", arm);
        let held = connections.held;
        let open = (held.open_at_start, held.open_at_end);
        assert_eq!((held.wanted, held.opened, open), (60, 60, (60, 60)), "{arm}");
        assert_eq!(connections.asking.open_at_start, 2);
        within(connections.proxy_memory_bytes, 100 << 10..);
        let requests = sum(run, "held", arm, |slice| slice.origin_requests);
        let answered = sum(run, "held", arm, |slice| slice.completed_whole);
        assert!(requests.abs_diff(answered) <= 4);
    }
    let trials = run.trials_of("held", "baseline");
    let rules_of_held = ["held-connections", "connections-missing"];
    let mut reasons = trials.iter().flat_map(|trial| &trial.validity);
    assert!(!reasons.any(|reason| rules_of_held.contains(&reason.rule())));
}

/// Checks that every response brings all of its content.
fn check_large_content(run: &Run) {
    no_errors(run, "large-content");
    for arm in ARMS {
        let bytes = sum(run, "large-content", arm, |slice| slice.received_bytes);
        let answers = sum(run, "large-content", arm, |slice| slice.completed_whole);
        within(answers, 1..);
        within(bytes, answers * (256 << 10)..);
    }
}

fn check_words(ended: &Ended, sandbox: &Sandbox) {
    flat(&ended.stdout)
        .has_all(&["TLS 1.2 offered (ECDHE-RSA-AES256-GCM-SHA384), never resumed", "Gbit/s"]);
    let report = sandbox.call("report 'a run' --full").with_code(0).stdout;
    for output in [&report, &sandbox.read("report.html"), &sandbox.read("report.md")] {
        flat(output).has_all(&[
            "none resumed: TLS 1.2, ECDHE-RSA-AES256-GCM-SHA384",
            "60 of 60 connections held to the end, none opened again, proxy memory",
            "Gbit/s",
        ]);
    }
    let run = sandbox.records();
    let parts = run.records.iter().filter(|record| matches!(record, Record::Part(_)));
    assert_eq!(parts.count(), 4);
}
