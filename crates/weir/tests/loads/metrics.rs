//! Tests of `weir load --metrics` with a real Prometheus.

use serde_json::Value;
use weir_model::load_report::LoadReport;
use weir_testkit::faulty::start_origin;
use weir_testkit::loads::Server;
use weir_testkit::program::{HasAll, Running, wait_until, weir, within};
use weir_testkit::prometheus::{Prometheus, free_address, get};

/// Both sides of the bucket around the p99 of a distribution, by the width that its buckets have there.
#[track_caller]
fn is_within_a_bucket(quantile: f64, of_weir_ns: u64, width: f64) {
    let of_weir = of_weir_ns as f64 / 1e9;
    within(quantile, of_weir / width..of_weir * width);
}

fn quantile_of(report: &LoadReport, wanted: f64) -> u64 {
    let quantiles = &report.results.response_time.quantiles;
    quantiles.iter().find(|(quantile, _)| *quantile == wanted).expect("a quantile").1
}

#[test]
fn prometheus_counts_what_a_load_counted() {
    let server = start_origin();
    let address = free_address();
    let scrapers =
        [true, false].map(|is_native| (is_native, Prometheus::start(address, is_native)));
    let line = format!("load -R 200 -c 2 -d 5s --format json --metrics {address} {}", server.url());
    let ended = Running::start(&mut weir(line.split_whitespace())).end().with_code(0);
    let report: LoadReport = ended.document();
    for (is_native, prometheus) in &scrapers {
        let last = |name: &str| prometheus.last(&format!("sum({name})")).unwrap_or(-1.0);
        let counts = &report.results.counts;
        wait_until("Prometheus has kept its last scrape", || {
            last("weir_requests_due_total") >= counts.due as f64
        });
        for (name, counted) in [
            ("weir_requests_due_total", counts.due),
            ("weir_requests_sent_total", counts.offered),
            ("weir_requests_completed_total", counts.completed),
            ("weir_requests_dropped_total", counts.dropped),
            ("weir_responses_total{code_class=\"2xx\"}", counts.completed_whole),
        ] {
            assert_eq!(last(name), counted as f64, "{name}");
        }
        assert_eq!(last("weir_measured_seconds_total"), 5.0);
        let (times, width) = if *is_native {
            ("weir_request_duration_seconds", 2f64.powf(0.125) * 1.01)
        } else {
            ("weir_request_duration_seconds_bucket", 1.68)
        };
        for quantile in [0.5, 0.99] {
            let query = format!("histogram_quantile({quantile}, {times})");
            let answer = prometheus.last(&query).unwrap_or_else(|| panic!("{query}"));
            is_within_a_bucket(answer, quantile_of(&report, quantile), width);
        }
    }
}

#[test]
fn a_port_that_is_taken_or_no_address_is_refused_before_anything_is_sent() {
    let server = start_origin();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    for (metrics, words) in [
        (&*address, "--metrics: cannot listen on 127.0.0.1:"),
        ("203.0.113.9:9100", "--metrics: cannot listen on 203.0.113.9:9100"),
        ("9100", "not an IP address and a port, such as 127.0.0.1:9100"),
    ] {
        let url = server.url();
        let arguments = ["load", "-d", "1s", "--metrics", metrics, &url];
        Running::start(&mut weir(arguments)).end().did_nothing(2, &[words]);
    }
}

#[test]
fn metrics_for_other_hosts_are_pointed_out_and_a_lost_scraper_holds_nothing_up() {
    let server = start_origin();
    let url = server.url();
    let arguments =
        ["load", "-d", "3s", "-c", "1", "--metrics", "0.0.0.0:0", "--progress", "lines", &url];
    let mut load = Running::start(&mut weir(arguments));
    load.wait_until("both notes", |load| load.stderr().contains("whoever reaches"));
    let said = load.stderr();
    let port = said.split("http://0.0.0.0:").nth(1).and_then(|rest| rest.split('/').next());
    let port: u16 = port.and_then(|port| port.parse().ok()).expect("a port");
    // A connection that asks nothing, and one that comes once.
    let _silent = std::net::TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    let mut answer = String::new();
    wait_until("the load has begun", || {
        answer = get(([127, 0, 0, 1], port).into(), "/metrics").unwrap_or_default();
        answer.contains("weir_run{")
    });
    answer.has_all(&["application/openmetrics-text", "weir_run{", "# EOF"]);
    let other = get(([127, 0, 0, 1], port).into(), "/").expect("an answer");
    other.has("404");
    load.end().with_code(0);
}

#[test]
fn without_metrics_lines_for_programs_are_as_ever() {
    let server = start_origin();
    let line =
        format!("load -c 1 -d 2s --progress jsonl --metrics {} {}", free_address(), server.url());
    let ended = Running::start(&mut weir(line.split_whitespace())).end().with_code(0);
    let events = ended.stderr.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let names: Vec<Value> = events.map(|event| event["event"].clone()).collect();
    assert!(names.iter().all(|name| name != "flow"), "{names:?}");
}
