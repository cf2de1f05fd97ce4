//! Tests of `weir load --calibrate`, and of the use of its result.

use std::path::Path;

use rustix::process::Signal;
use weir_model::calibration::{Calibration, FORMAT};
use weir_model::load_report::{GeneratorReport, LoadReport};
use weir_testkit::faulty::start_origin;
use weir_testkit::loads::{Server, wait_until_thread};
use weir_testkit::program::{Ended, HasAll, Running, weir};

fn with_cache(cache: &Path, line: &str) -> Ended {
    let mut command = weir(line.split_ascii_whitespace());
    Running::start(command.env("XDG_CACHE_HOME", cache)).end()
}

#[test]
fn a_calibration_is_remembered_and_used() {
    let cache = tempfile::tempdir().expect("a folder");
    let origin = start_origin();
    let url = origin.url();
    assert_eq!(generator_of(cache.path(), &url, "").self_capacity, None);

    let line = "load --calibrate -d 60ms -q --format json";
    let ended = with_cache(cache.path(), line).with_code(0);
    let calibration: Calibration = ended.document();
    assert_eq!(calibration.format, FORMAT);
    let epoll = calibration.way("epoll").expect("epoll works everywhere");
    assert!(epoll.request_ns > 0.0 && epoll.floor_ns > 0.0, "{epoll:?}");
    assert!((epoll.capacity * epoll.request_ns / 1e9 - 1.0).abs() < 1e-9);
    assert_eq!(epoll.lag.last().map(|(quantile, _)| *quantile), Some(1.0));

    let generator = generator_of(cache.path(), &url, "");
    assert_eq!(generator.self_capacity, Some(epoll.capacity));
    assert_eq!(generator.io, "epoll");
    // It says nothing about other loads.
    assert_eq!(generator_of(cache.path(), &url, "--connection per-request").self_capacity, None);
    assert_eq!(generator_of(cache.path(), &url, "--pipeline 4").self_capacity, None);

    // Another machine's, or another version's, is none.
    let file = cache.path().join("weir/calibration.json");
    let text = std::fs::read_to_string(&file).expect("it was remembered");
    std::fs::write(&file, text.replace(&calibration.machine, "another")).expect("it is changed");
    assert_eq!(generator_of(cache.path(), &url, "").self_capacity, None);
}

fn generator_of(cache: &Path, url: &str, more: &str) -> GeneratorReport {
    let line = format!("load -q --format json -n 200 -c 4 -t 1 --io epoll {more} {url}");
    let report: LoadReport = with_cache(cache, &line).with_code(0).document();
    report.generator
}

#[test]
fn who_is_interrupted_remembers_nothing() {
    let cache = tempfile::tempdir().expect("a folder");
    let mut command = weir(["load", "--calibrate", "-d", "1h"]);
    let running = Running::start(command.env("XDG_CACHE_HOME", cache.path()));
    wait_until_thread(&running, "weir-floor");
    running.signal(Signal::INT);
    let ended = running.end().with_code(130);
    ended.stderr.has_all(&["--calibrate: interrupted"]);
    ended.stderr.has_none(&["could be opened"]);
    assert!(!cache.path().join("weir").exists());
}

#[test]
fn people_are_told_what_it_means() {
    let cache = tempfile::tempdir().expect("a folder");
    let ended = with_cache(cache.path(), "load --calibrate -d 30ms").with_code(0);
    ended.stdout.has_all(&[
        "epoll\n  CPU time per request",
        "the floor",
        "one thread can send",
        "p99.9",
    ]);
    assert!(ended.stderr.contains("measuring the generator on epoll"));
}

#[test]
fn the_floor_is_counted_by_the_server_too() {
    for io in ["epoll", "auto"] {
        // One of its own each: what the load before left unread may be counted late.
        let origin = start_origin();
        let url = origin.url();
        let mut command = weir(["load", "--floor", "-d", "200ms", "-c", "5", "--io", io, &url]);
        let ended = Running::start(&mut command).end().with_code(0);
        let floor: serde_json::Value = ended.document();
        let counted = floor["counts"]["completed"].as_u64().expect("a count");
        let requests = origin.counters(0).requests;
        // Those in flight at the end were sent and are not counted.
        assert!(counted > 0 && (counted..=counted + 5).contains(&requests), "{counted} {requests}");
    }
}
