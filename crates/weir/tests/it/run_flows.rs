//! `weir run` with what loads can be beyond kept connections in clear: TLS, a connection for each
//! request, connections that are held, large content.

use weir_model::record::{ArmConnections, Record};
use weir_record::Run;

use crate::place::Place;
use crate::program::Ended;

const STUDY: &str = "\
weir: 1
name: flows
question: Does what a load asks for really happen?
proxy:
  kind: nginx
  settings: {worker_processes: 1}
origin: {size: 256KiB}
loads:
  - name: handshakes
    closed: true
    connections: 2
    connection: per-request
    tls: {version: 1.2, ciphers: ECDHE-RSA-AES256-GCM-SHA384, resumption: off}
    duration: 1s
  - {name: per-request, closed: true, connections: 2, connection: per-request, duration: 1s}
  - {name: held, rate: 50, connections: 2, hold: 60, duration: 1s}
  - {name: large-content, closed: true, connections: 2, duration: 1s, timeout: 10s}
a/a: false
arms:
  - {name: keeps-origin, settings: {origin_keepalive: 8}}
blocks: {slice: 50ms, at-least: 6, instances: 1}
objective: {metric: received-bytes}
";

const ARMS: [&str; 2] = ["baseline", "keeps-origin"];

#[test]
fn tls_lifetimes_held_connections_and_large_content() {
    let place = Place::new();
    let (ended, run) = place.measured(STUDY);
    handshakes(&run);
    per_request(&run);
    held(&run);
    large_content(&run);
    told(&ended, &place);
}

const HELD: &str = "\
weir: 1
name: many
question: Are more connections held than one table of descriptors has room for?
proxy:
  kind: nginx
  settings:
    worker_processes: 3
    reuseport: on
    worker_connections: 1024
    worker_rlimit_nofile: 1024
    client_header_timeout: 1h
loads:
  - {name: held, rate: 50, connections: 4, hold: 1200, duration: 1s}
a/a: false
blocks: {slice: 50ms, at-least: 6, instances: 1}
objective: {metric: response-p99, within: 10s}
";

#[test]
fn more_connections_are_held_than_a_thread_may_have_descriptors() {
    let place = Place::new();
    place.write("study.yaml", HELD);
    let ended = place.run_behind("ulimit -n 1024");
    // Containers may forbid threads a table of their own: then there is one limit for all.
    if !weir_load::descriptors::tables_can_be_own() {
        ended.refused(&["1204", "and the limit is 1024"]);
        return;
    }
    ended.with_code(0);
    let run = place.records();
    let connections = of_arm(&run, "held", "baseline");
    let held = connections.held;
    assert_eq!((held.open_at_start, held.open_at_end), (1200, 1200));
    let threads: Vec<u32> = run.parts("held").map(|part| part.threads).collect();
    assert!(threads[0] > 1, "{threads:?}");
}

/// The connections of a load that was measured in one continuous trial.
fn of_arm(run: &Run, load: &str, arm: &str) -> ArmConnections {
    let parts: Vec<_> = run.parts(load).collect();
    assert_eq!(parts.len(), 1, "{load}");
    let found = parts[0].arms.iter().find(|own| own.arm == arm);
    found.expect(arm).clone()
}

/// Requests and connections that an arm's origin listener has seen, over whole slices.
fn at_origin(run: &Run, load: &str, arm: &str) -> (u64, u64) {
    let slices = run.trials_of(load, arm).into_iter();
    let slices = slices.flat_map(|trial| &trial.slices);
    slices.fold((0, 0), |(requests, connects), slice| {
        (
            requests + slice.origin_requests,
            connects + slice.origin_connects,
        )
    })
}

fn answered(run: &Run, load: &str, arm: &str) -> u64 {
    let slices = run.trials_of(load, arm).into_iter();
    let slices = slices.flat_map(|trial| &trial.slices);
    slices.map(|slice| slice.completed_whole).sum()
}

fn no_errors(run: &Run, load: &str) {
    for trial in run.trials().filter(|trial| trial.load == load) {
        assert_eq!(trial.errors, [], "{load}");
    }
}

/// What was offered was agreed on, in full handshakes, one for each connection.
fn handshakes(run: &Run) {
    no_errors(run, "handshakes");
    for arm in ARMS {
        let connections = of_arm(run, "handshakes", arm);
        let tls = connections.tls.expect("the load speaks TLS");
        assert!(tls.handshakes > 2 && tls.resumed == 0, "{tls:?}");
        let names = |counts: &[weir_model::load_report::NameCount]| {
            let names = counts.iter().map(|count| count.name.clone());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(&tls.versions), ["TLS 1.2"]);
        assert_eq!(names(&tls.ciphers), ["ECDHE-RSA-AES256-GCM-SHA384"]);
        // At the end each of the two connections may be open without an answer or a handshake.
        let asking = connections.asking;
        assert!(asking.opened.abs_diff(tls.handshakes) <= 2, "{asking:?}");
        assert!(connections.answered.abs_diff(tls.handshakes) <= 2);
        assert_eq!((asking.open_at_start, asking.wanted), (0, 2));
    }
}

/// nginx asks the origin server once for each of them, whether or not it keeps its own connections.
fn per_request(run: &Run) {
    no_errors(run, "per-request");
    for arm in ARMS {
        let connections = of_arm(run, "per-request", arm);
        assert_eq!(connections.tls, None);
        let (opened, answered) = (connections.asking.opened, connections.answered);
        assert!(
            answered > 2 && opened.abs_diff(answered) <= 2,
            "{connections:?}"
        );
        let (requests, connects) = at_origin(run, "per-request", arm);
        assert!(requests > 2);
        match arm {
            "baseline" => assert!(requests.abs_diff(connects) <= 2, "{requests} {connects}"),
            _ => assert!(connects * 2 < requests, "{requests} {connects}"),
        }
    }
}

/// They are there from the begin to the end, and the origin server never hears of them.
fn held(run: &Run) {
    no_errors(run, "held");
    for arm in ARMS {
        let connections = of_arm(run, "held", arm);
        let held = connections.held;
        let counts = [
            held.wanted,
            held.open_at_start,
            held.open_at_end,
            held.opened,
        ];
        assert_eq!(counts, [60; 4], "{arm}");
        assert_eq!(connections.asking.open_at_start, 2);
        assert!(
            connections.proxy_memory_bytes > 100 << 10,
            "{connections:?}"
        );
        let (requests, _) = at_origin(run, "held", arm);
        assert!(requests.abs_diff(answered(run, "held", arm)) <= 4);
    }
    let trials = run.trials_of("held", "baseline");
    let of_held = |rule: &str| rule == "held-connections" || rule == "connections-missing";
    let mut reasons = trials.iter().flat_map(|trial| &trial.validity);
    assert!(!reasons.any(|reason| of_held(&reason.rule)));
}

/// Every response brings all of its content.
fn large_content(run: &Run) {
    no_errors(run, "large-content");
    for arm in ARMS {
        let slices = run.trials_of("large-content", arm).into_iter();
        let slices = slices.flat_map(|trial| &trial.slices);
        let (bytes, answers) = slices.fold((0, 0), |(bytes, answers), slice| {
            (
                bytes + slice.received_bytes,
                answers + slice.completed_whole,
            )
        });
        assert!(
            answers > 0 && bytes >= answers * (256 << 10),
            "{bytes} {answers}"
        );
    }
}

fn told(ended: &Ended, place: &Place) {
    let page = place.read("report.html");
    let text = place.read("report.md");
    for words in [
        "none resumed: TLS 1.2, ECDHE-RSA-AES256-GCM-SHA384",
        "60 of 60 connections held to the end, none opened again, proxy memory ",
        "Gbit/s",
    ] {
        for (name, output) in [
            ("terminal", &ended.stdout),
            ("page", &page),
            ("text", &text),
        ] {
            let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(output.contains(words.trim()), "{words} in the {name}");
        }
    }
    let run = place.records();
    let parts = run
        .records
        .iter()
        .filter(|record| matches!(record, Record::Part(_)));
    assert_eq!(parts.count(), 4);
}
