//! Tests of punctual sending, and of the validity rules about lateness.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use weir_model::load_report::{LoadReport, TimeReport};
use weir_model::record::Validity;
use weir_testkit::faulty::start_origin;
use weir_testkit::loads::Server;
use weir_testkit::program::{Ended, HasAll, Running, row, weir, within};

/// Lateness in nanoseconds that does not affect the validity of a result.
const RESOLUTION: f64 = 1e5;

fn at(times: &TimeReport, quantile: f64) -> f64 {
    let row = times.quantiles.iter().find(|(q, _)| *q == quantile);
    row.map_or(f64::NAN, |(_, ns)| *ns as f64)
}

/// Returns the validity by a rule; `None` if the rule does not apply.
fn validity_by(report: &LoadReport, rule: &str) -> Option<Validity> {
    let reason = report.validity.iter().find(|reason| reason.rule() == rule);
    reason.map(|reason| reason.validity)
}

/// Returns the expected validity for the lateness, calculated from the figures, so that it does not depend on this
/// machine.
fn expected_of_lag(report: &LoadReport) -> Option<Validity> {
    let of_each = [0.5, 0.99].map(|q| {
        let exact = RESOLUTION.max(at(&report.results.response_time, q) / 4.0);
        at(&report.results.dispatch_lag, q) / exact
    });
    match of_each.into_iter().fold(0.0, f64::max) {
        twice if twice > 2.0 => Some(Validity::Invalid),
        once if once > 1.0 => Some(Validity::Suspect),
        _ => None,
    }
}

#[test]
fn first_contact_is_doubted_for_lateness_only_where_somebody_would_notice_it() {
    let origin = start_origin();
    let report = origin.reported("-c 2 -R 500 -d 2s");
    assert_eq!(report.results.counts.completed_whole, 1000);
    assert_eq!(validity_by(&report, "dispatch-lag"), expected_of_lag(&report));
    // What else may be doubted is the machine's doing.
    let machines =
        ["dispatch-lag", "steal", "generator-busy", "generator-stopped", "listen-overflows"];
    let mut reasons = report.validity.iter();
    let all = reasons.all(|reason| machines.contains(&reason.rule()));
    assert!(all, "{:?}", report.validity);
    // A twentieth of the time of each thread, what it may spend at once, and a sleep saved for each response.
    let most = 2_000_000_000 / 20 + 10_000_000 + 1000 * 50_000;
    assert_eq!(report.generator.spun_ns.len(), report.results.load.cpus.len());
    for spun in &report.generator.spun_ns {
        within(*spun, 1..=most);
    }
}

#[test]
fn a_thread_is_awake_for_arrivals_as_it_was_told_to() {
    let origin = start_origin();
    for (flags, expected_ns) in [
        ("-R 200 --spin 0s", 0..=0),
        ("-n 1000", 0..=0),
        // Each of 200 arrivals is waited for awake, but for the part that the wake-up is late.
        ("-R 200 --spin 2ms", 1..=400_000_000),
    ] {
        let report = origin.reported(&format!("-c 2 -t 1 -d 1s {flags}"));
        within(report.generator.spun_ns.iter().sum::<u64>(), expected_ns);
    }
}

/// Runs a load that is stopped four fifths of the time.
fn stop_often(flags: &str) -> Ended {
    let origin = start_origin();
    let line = format!("load -q -R 500 -d 2s -c 50 {flags} {}", origin.url());
    let mut load = Running::start(&mut weir(line.split_whitespace()));
    load.wait_until("a request", |_| origin.counters(0).requests > 0);
    while load.is_alive() {
        load.signal(Signal::STOP);
        thread::sleep(Duration::from_millis(40));
        load.signal(Signal::CONT);
        thread::sleep(Duration::from_millis(10));
    }
    load.end().with_code(0)
}

#[test]
fn a_generator_that_really_is_late_is_found_out() {
    let report: LoadReport = stop_often("--format json").document();
    let late = at(&report.results.dispatch_lag, 0.5);
    assert!(late > 2e6, "{late}");
    assert_eq!(validity_by(&report, "dispatch-lag"), Some(Validity::Invalid));
    assert_eq!(expected_of_lag(&report), Some(Validity::Invalid));
    stop_often("").stdout.has_all(&["INVALID dispatch-lag: at p", "resolution", "p50 is known to"]);
}

/// Returns the expected validity for the longest recorded gap, calculated from the figures, so that it does not depend
/// on this machine.
fn expected_of_gap(report: &LoadReport) -> Option<Validity> {
    let gaps = &report.generator.longest_gap_ns;
    assert_eq!(gaps.len(), report.results.load.cpus.len(), "one for each thread");
    let longest = gaps.iter().max().map_or(0.0, |gap| *gap as f64);
    match (longest - 5e7) / (report.phases.sustain * 1e9) {
        share if share > 0.1 => Some(Validity::Invalid),
        share if share > 0.01 => Some(Validity::Suspect),
        _ => None,
    }
}

#[test]
fn a_generator_that_is_stopped_for_long_is_found_out_in_every_loop() {
    for flags in ["-d 4s", "-d 4s --io epoll", "-d 4s -R 500"] {
        row(flags);
        let origin = start_origin();
        let line = format!("load -q -c 2 -t 2 {flags} --format json {}", origin.url());
        let mut load = Running::start(&mut weir(line.split_whitespace()));
        load.wait_until("a request", |_| origin.counters(0).requests > 0);
        thread::sleep(Duration::from_secs(1));
        load.signal(Signal::STOP);
        thread::sleep(Duration::from_millis(1600));
        load.signal(Signal::CONT);
        let report: LoadReport = load.end().with_code(0).document();
        // A thread may have asked to wait for as long as it looks for timeouts.
        within(report.generator.longest_gap_ns.iter().min().copied(), Some(1_540_000_000)..);
        let (rule, invalid) = ("generator-stopped", Some(Validity::Invalid));
        assert_eq!((validity_by(&report, rule), expected_of_gap(&report)), (invalid, invalid));
    }
    for flags in ["-d 1s", "-d 1s -R 500"] {
        let report = start_origin().reported(&format!("-c 2 -t 2 {flags}"));
        assert_eq!(validity_by(&report, "generator-stopped"), expected_of_gap(&report), "{flags}");
        // Nobody has stopped it, however busy this machine is.
        within(report.generator.longest_gap_ns.iter().max().copied(), ..Some(800_000_000));
    }
}

#[test]
fn what_cannot_be_known_is_not_valid() {
    let origin = start_origin();
    for (requests, rule) in
        [(1, Validity::Invalid), (4, Validity::Invalid), (99, Validity::Suspect)]
    {
        let report = origin.reported(&format!("-n {requests} -c 1"));
        assert_eq!(validity_by(&report, "few-responses"), Some(rule), "{requests}");
    }
    assert_eq!(validity_by(&origin.reported("-n 100 -c 1"), "few-responses"), None);
    let stdout = origin.load("-q -n 1 -c 1").with_code(0).stdout;
    stdout
        .has_all(&["INVALID few-responses: there is 1 response, of which no quantile can be told"]);
}

#[test]
fn threads_that_crowd_each_other_are_named() {
    let origin = start_origin();
    let cpus = thread::available_parallelism().unwrap().get();
    for (per_cpu, doubted) in [(8, None), (9, Some(Validity::Suspect))] {
        let threads = per_cpu * cpus;
        let report = origin.reported(&format!("-t {threads} -c {threads} -d 300ms"));
        assert_eq!(validity_by(&report, "threads-crowded"), doubted, "{threads}");
    }
}
