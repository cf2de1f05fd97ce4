//! Sample documents for the tests of all formats.

use hdrhistogram::Histogram;
use weir_model::load::{Arrivals, Censored, ErrorCount, ErrorKind};
use weir_model::load_report::{
    Counts, FlowResults, LoadReport, PhaseSeconds, Rates, Second, StatusCount, TimeReport,
};
use weir_model::record::{Observation, Validity, ValidityReason};

use super::time_report;

fn report_of(values: impl IntoIterator<Item = u64>) -> TimeReport {
    let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    for value in values {
        histogram.record(value).unwrap();
    }
    time_report(&histogram)
}

/// 9,998 response times: around 200 µs, and a stall of one second that falls on 200 of them.
pub(crate) fn response_times_ns() -> Vec<u64> {
    let quick = (0..9_798).map(|k: u64| 120_000 + k * k * 7_919 % 160_000);
    let stalled = (0..200).map(|k: u64| 1_000_000_000 - k * 5_000_000);
    quick.chain(stalled).collect()
}

fn service_times_ns() -> impl Iterator<Item = u64> {
    (0..9_998).map(|k: u64| 110_000 + k * k * 7_919 % 150_000)
}

/// Returns an open loop in which every field is used.
pub(crate) fn open_loop() -> LoadReport {
    let written = include_str!("testdata/open_loop.json");
    let written: LoadReport = serde_json::from_str(written).unwrap();
    LoadReport {
        results: FlowResults {
            response_time: report_of(response_times_ns()),
            service_time: report_of(service_times_ns()),
            first_byte: report_of(service_times_ns().map(|ns| ns - 9_000)),
            dispatch_lag: report_of((0..9_999).map(|k| 900 + k % 4_000)),
            connect_time: report_of((0..53).map(|k| 40_000 + k * 1_000)),
            ..written.results
        },
        over_time: (0..10).map(|k| second(2.0 + f64::from(k), 999)).collect(),
        ..written
    }
}

/// Returns one sample of each kind.
pub(crate) fn all() -> [LoadReport; 3] {
    [open_loop(), closed_loop(), nothing_answered()]
}

fn second(at: f64, completed: u64) -> Second {
    Second {
        at,
        seconds: 1.0,
        offered: completed,
        completed,
        errors: 0,
        response_p50: 200_000,
        response_p99: 300_000,
        response_max: 1_000_000,
    }
}

fn statuses(all: &[(u16, u64)]) -> Vec<StatusCount> {
    all.iter().map(|&(status, count)| StatusCount { status, count }).collect()
}

/// Returns a closed loop without errors.
pub(crate) fn closed_loop() -> LoadReport {
    let mut report = open_loop();
    report.results.load.arrivals = Arrivals::Closed;
    report.results.load.cpus = vec![None];
    report.results.rates.intended = None;
    report.results.counts = Counts { due: 0, connects: 50, reconnects: 0, ..report.results.counts };
    report.results.statuses = statuses(&[(200, 11_998)]);
    report.results.errors.clear();
    report.results.censored = Censored::default();
    report.results.response_time = report.results.service_time.clone();
    report.generator.spun_ns.clear();
    report.validity.clear();
    report
}

/// Returns a trial that was interrupted before any response arrived.
pub(crate) fn nothing_answered() -> LoadReport {
    let mut report = open_loop();
    let empty = report_of([]);
    report.phases = PhaseSeconds { ramp_up: 0.0, sustain: 0.8 };
    report.results.rates =
        Rates { offered: 50.0, completed: 0.0, received_bytes: 0.0, ..report.results.rates };
    report.results.counts = Counts {
        due: 800,
        offered: 40,
        completed: 0,
        completed_whole: 0,
        received_bytes: 0,
        content_bytes: 0,
        ..report.results.counts
    };
    report.results.statuses.clear();
    report.results.response_time = empty.clone();
    report.results.service_time = empty.clone();
    report.results.first_byte = empty;
    report.over_time.clear();
    report.validity[0] = ValidityReason {
        validity: Validity::Invalid,
        subject: None,
        observation: Observation::NothingAnswered { error: None },
    };
    report.outcome = "interrupted".to_owned();
    report
}

/// Returns the result whose output by wrk2 is in `testdata/wrk2.txt`, and its response times.
pub(crate) fn known_to_wrk2() -> (LoadReport, Histogram<u64>) {
    // Five digits, so that wrk2's histogram is met with the very microseconds that it was given.
    let mut latency = Histogram::new_with_bounds(1, 3_600_000_000_000, 5).unwrap();
    for k in 0..5_000_u64 {
        latency.record((40 + k * k * 7_919 % 2_500) * 1_000).unwrap();
        if k % 100 == 0 {
            latency.record((100_000 + k * 333) * 1_000).unwrap();
        }
    }
    let mut report = open_loop();
    report.results.target.url = "http://127.0.0.1:8080/index.html".to_owned();
    report.phases.sustain = 5.0;
    report.results.rates.completed = 1010.0;
    report.results.rates.received_bytes = 1010.0 * 1262.0;
    report.results.counts.completed = 5_050;
    report.results.statuses = statuses(&[(200, 5_043), (500, 7)]);
    report.results.errors = [
        (ErrorKind::Connect, 3),
        (ErrorKind::Receive, 1),
        (ErrorKind::ClosedEarly, 1),
        (ErrorKind::Timeout, 1),
    ]
    .map(|(kind, count)| ErrorCount { kind, words: String::new(), errno: None, count })
    .into();
    report.results.response_time = time_report(&latency);
    // Over two threads: 500, 505, 480, 260 and 515 per second and thread.
    let per_second = [1_000, 1_011, 960, 520, 1_030];
    let seconds = (0..).zip(per_second);
    report.over_time = seconds.map(|(k, completed)| second(f64::from(k), completed)).collect();
    (report, latency)
}
