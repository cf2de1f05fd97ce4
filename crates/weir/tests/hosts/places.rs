//! Tests of `weir run --place`: roles on several hosts, which are network namespaces with a real sshd each.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use weir_model::record::{NetworkUsed, Outcome, PlacesUsed, Record, SliceRecord, TrialRecord};
use weir_record::Run;
use weir_testkit::lan::{Lan, Like};
use weir_testkit::program::HasAll;
use weir_testkit::sandbox::{names_in, proxy_of};

/// A study of two arms without a pilot, as short as possible.
const STUDY: &str = "\
weir: 1
name: two-hosts
question: Does a run over several hosts record what it should?
proxy: {kind: nginx, settings: {worker_processes: 1}}
loads:
- {name: closed, closed: true, connections: 4, duration: 2s}
arms:
- {name: keeps-origin, settings: {origin_keepalive: 8}}
blocks: {slice: 50ms, at-least: 6, instances: 2}
";

/// The same study with kernel settings in one arm.
const KERNEL: &str = "\
weir: 1
name: backlog-elsewhere
question: Does an arm have kernel settings of its own on another host?
proxy: {kind: nginx, settings: {worker_processes: 1}}
loads:
- {name: closed, closed: true, connections: 4, duration: 2s}
a/a: false
arms:
- {name: short-queue, settings: {net.core.somaxconn: 77}}
blocks: {slice: 50ms, at-least: 6, instances: 1}
";

/// Ten hours: a clock that is wrongly taken for this host's is detected at once.
const AHEAD: Duration = Duration::from_secs(36_000);

/// Lateness in nanoseconds that shows a misread clock; a busy machine is late by milliseconds.
const LATE_NS: u64 = 60_000_000_000;

/// Checks that every counter of every host is recorded, and that readings belong to their slices.
#[track_caller]
fn assert_counted(run: &Run) {
    let trials: Vec<&TrialRecord> = run.trials().collect();
    assert!(!trials.is_empty());
    assert!(trials.iter().any(|trial| trial.first_byte.p50 > 0));
    let completed = sum_of(&trials, |slice| slice.completed_whole);
    assert!(completed > 0);
    assert!(sum_of(&trials, |slice| slice.proxy_cpu_ns) > 0, "CPU time of proxies");
    assert!(sum_of(&trials, |slice| slice.rest_ns) > 0, "rests of arms");
    assert!(sum_of(&trials, |slice| slice.origin_cpu_ns) > 0, "of the origin");
    assert!(sum_of(&trials, |slice| slice.generator_cpu_ns) > 0, "of the generator");
    // Each arm's listener is read by the slice, so a clock that is off by more than a slice would
    // count the requests of others or none. On a busy machine the readings at either end may be late.
    let late_ns: u64 = run
        .records
        .iter()
        .map(|record| if let Record::Part(part) = record { part.late_ns } else { 0 })
        .sum();
    let measured = sum_of(&trials, |slice| slice.measured_ns).max(1);
    let late = late_ns as f64 / measured as f64;
    let at_origin = sum_of(&trials, |slice| slice.origin_requests);
    let share = at_origin as f64 / completed as f64;
    assert!((share - 1.0).abs() < 0.1 + 2.0 * late, "{at_origin} of {completed}, {late}");
    for record in &run.records {
        if let Record::Part(part) = record {
            assert!(part.late_ns < LATE_NS, "{} ns late", part.late_ns);
            assert!(part.arms.iter().all(|arm| arm.proxy_memory_bytes > 0));
        }
    }
}

fn sum_of(trials: &[&TrialRecord], figure: fn(&SliceRecord) -> u64) -> u64 {
    trials.iter().flat_map(|trial| &trial.slices).map(figure).sum()
}

/// Returns a host whose clock is wrong.
fn ahead(times: u32) -> Like {
    Like { ahead: AHEAD * times, ..Like::default() }
}

#[track_caller]
fn read_complete(lan: &Lan) -> Run {
    let run = lan.records();
    assert_eq!(run.outcome(), Some(Outcome::Complete));
    assert!(!run.truncated);
    run
}

#[test]
fn the_proxies_on_a_host_whose_clock_is_another() {
    let Some(lan) = Lan::of(&[ahead(1)]) else {
        return;
    };
    let ended = lan.run(STUDY, "--place proxy=web1").end().with_code(0);
    lan.assert_clean();
    let run = read_complete(&lan);
    assert_eq!(run.header.network, NetworkUsed::Hosts);
    let places = PlacesUsed { proxy: Some("web1".to_owned()), ..PlacesUsed::default() };
    assert_eq!(run.header.places, places);
    assert_counted(&run);
    for record in &run.records {
        let Record::Part(part) = record else { continue };
        let ahead_ns = part
            .clocks
            .iter()
            .map(|clock| (&*clock.host, clock.ahead_ns))
            .filter(|(host, _)| *host == "web1")
            .map(|(_, ns)| ns)
            .sum::<i64>()
            .unsigned_abs();
        assert!(ahead_ns.abs_diff(AHEAD.as_nanos() as u64) < LATE_NS, "{:?}", part.clocks);
    }
    let around = run.header.surroundings.as_ref().unwrap();
    let inbound = around.inbound().unwrap();
    assert!(inbound.forth.is_some() && inbound.back.is_some(), "{around:?}");
    let web1 = around.hosts.iter().find(|host| host.host == "web1").unwrap();
    let (ahead_ns, error) = web1.clock.unwrap();
    let off = ahead_ns.unsigned_abs().abs_diff(AHEAD.as_nanos() as u64);
    assert!(off < LATE_NS && error < LATE_NS, "{web1:?}");
    ended.stderr.has_none(&["proxy and generator share CPU"]);
    let report = lan.sandbox.read("report.md");
    assert!(report.contains(" on web1"), "{report}");
}

#[test]
fn the_proxies_on_one_host_and_the_origin_server_on_another() {
    let Some(lan) = Lan::of(&[ahead(1), ahead(2)]) else {
        return;
    };
    let places = "--place proxy=web1 --place origin=web2";
    lan.run(STUDY, places).end().with_code(0);
    lan.assert_clean();
    let run = read_complete(&lan);
    assert_eq!(run.header.places.origin.as_deref(), Some("web2"));
    assert_counted(&run);
}

#[test]
fn a_configuration_that_is_on_the_proxy_s_host_alone() {
    let like = Like {
        commands: "mkdir /run/shop && cat > /run/shop/nginx.conf <<'END'\n\
                   # The gateway of a shop.\nworker_processes 1;\nevents {}\nhttp {\n    include sites/*.conf;\n}\n\
                   END\nmkdir /run/shop/sites && cat > /run/shop/sites/shop.conf <<'END'\n\
                   server {\n    listen 80;\n    location / { proxy_pass http://192.0.2.1; }\n}\nEND",
        ..Like::default()
    };
    let Some(lan) = Lan::of(&[like]) else { return };
    assert!(!Path::new("/run/shop").exists(), "it is not here");
    let study = STUDY
        .replace("settings: {worker_processes: 1}", "configuration: /run/shop/nginx.conf")
        .replace("origin_keepalive: 8", "keepalive_requests: 50");
    lan.run(&study, "--place proxy=web1").end().with_code(0);
    lan.assert_clean();
    assert_counted(&read_complete(&lan));
    let patch = lan.sandbox.call("patch 'a run' --arm keeps-origin").with_code(0).stdout;
    patch.has_all(&["--- a/run/shop/nginx.conf", "+    keepalive_requests 50;"]);
    let there = lan.host(1).root().join("run/shop");
    assert_eq!(names_in(&there), ["nginx.conf", "sites"]);
    assert_eq!(names_in(&there.join("sites")), ["shop.conf"]);

    // What is wrong with it is said of the file there.
    let wrong = study.replace("shop/nginx.conf", "shop/other.conf");
    lan.sandbox.write("study.yaml", &wrong);
    let ended = lan.start("run study.yaml --out 'another run' --place proxy=web1").end();
    let stderr = ended.with_code(2).stderr;
    assert!(stderr.contains("/run/shop/other.conf"), "{stderr}");
    lan.assert_clean();
}

#[test]
fn the_generator_elsewhere_and_the_others_here() {
    let Some(lan) = Lan::of(&[ahead(1)]) else {
        return;
    };
    lan.run(STUDY, "--place generator=web1").end().with_code(0);
    lan.assert_clean();
    assert_counted(&read_complete(&lan));
}

#[test]
fn everything_on_another_host_has_network_namespaces_there() {
    let Some(lan) = Lan::of(&[Like::default()]) else {
        return;
    };
    let host = lan.host(1);
    // The addresses that arms have among themselves, and the host has them too.
    host.does(
        "ip link add taken0 type veth peer name taken1 && ip link set taken0 up && \
         ip addr add 10.213.0.254/16 dev taken0 && ip addr add 10.214.0.1/16 dev taken0",
    );
    let backlog = host.does("cat /proc/sys/net/core/somaxconn");
    lan.run(KERNEL, "--place all=web1").end().with_code(0);
    lan.assert_clean();
    let run = read_complete(&lan);
    assert_eq!(run.header.network, NetworkUsed::Namespaces { mtu: 1500 });
    assert_counted(&run);
    let effective = &proxy_of(&run, "short-queue").expect("it was started").effective;
    assert_eq!(effective["net.core.somaxconn"], "77");
    assert_eq!(effective["listen-backlog"], "77");
    assert_eq!(host.does("cat /proc/sys/net/core/somaxconn"), backlog);
    assert_eq!(host.does("ip -o link | wc -l"), "4", "lo, wire, taken0 and taken1");
}

#[test]
fn a_run_goes_on_where_it_was_begun() {
    let Some(lan) = Lan::of(&[Like::default(), Like::default()]) else {
        return;
    };
    let mut running =
        lan.run(&STUDY.replace("duration: 2s", "duration: 20s"), "--place proxy=web1");
    lan.sandbox.await_trials(&mut running, 6);
    running.signal(Signal::INT);
    running.end().with_code(130);
    lan.assert_clean();

    let resume = "run --resume 'a run'";
    let ended = lan.start(&format!("{resume} --place proxy=web2")).end();
    ended.refused(&["it started with the generator on this host, the proxies on web1"]);
    std::fs::create_dir(lan.sandbox.path("copied")).expect("own folder");
    lan.sandbox.write("copied/run.identity", "1 1\n");
    for name in ["run.json", "run.sha256", "study.yaml", "records.jsonl", "histograms.hlog"] {
        lan.sandbox.write(&format!("copied/{name}"), &lan.sandbox.read(name));
    }
    // Nothing is run to reach what somebody else may have written.
    let ended = lan.start("run --resume copied").end();
    ended.refused(&["its folder was copied", "give --place proxy=web1 again"]);
    assert!(lan.host(1).agents().is_empty());
    // Without a word about places.
    let mut again = lan.start(resume);
    let blocks = lan.sandbox.trials();
    again.wait_until("more blocks", |_| lan.sandbox.trials() > blocks);
    assert!(!lan.host(1).agents().is_empty());
    again.signal(Signal::INT);
    again.end().with_code(130);
    lan.assert_clean();
}
