//! Tests of `weir load --metrics` with a real Prometheus.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

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
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
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
    let notes = load.stderr();
    let port = notes.split("http://0.0.0.0:").nth(1).and_then(|rest| rest.split('/').next());
    let port: u16 = port.and_then(|port| port.parse().ok()).expect("a port");
    // A connection that asks nothing, and one that comes once.
    let _silent = std::net::TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    let mut answer = String::new();
    wait_until("the load has begun", || {
        answer = get(([127, 0, 0, 1], port).into(), "/metrics").unwrap_or_default();
        answer.contains("weir_run{")
    });
    answer.has_all(&["application/openmetrics-text", "weir_run{", "# EOF"]);
    let page = get(([127, 0, 0, 1], port).into(), "/").expect("an answer");
    page.has("404");
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

/// Receiver of remote write that answers as it is told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Receiver {
    /// Answers with this status and head lines.
    Answers(&'static str),
    /// Fails twice and takes everything from then on.
    Recovers,
    Hangs,
    Gone,
}

fn start_receiver(receiver: Receiver) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    if receiver == Receiver::Gone {
        return address;
    }
    thread::spawn(move || {
        let mut connections = Vec::new();
        for (number, mut stream) in listener.incoming().flatten().enumerate() {
            let status = match receiver {
                Receiver::Hangs | Receiver::Gone => {
                    connections.push(stream);
                    continue;
                }
                Receiver::Answers(status) => status,
                Receiver::Recovers if number < 2 => "503 Service Unavailable\r\nRetry-After: 1",
                Receiver::Recovers => "204 No Content",
            };
            read_request(&mut stream);
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

/// Reads the head and the body of a request.
fn read_request(stream: &mut TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) <= 2 {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let _ = reader.read_exact(&mut vec![0; length]);
}

#[test]
fn a_receiver_that_fails_costs_the_load_nothing() {
    let cases = [
        (
            Receiver::Answers("429 Too Many Requests\r\nRetry-After: 1"),
            Some("429 Too Many Requests"),
        ),
        (Receiver::Answers("500 Internal Server Error"), Some("500 Internal Server Error")),
        (Receiver::Answers("400 Bad Request"), Some("400 Bad Request")),
        (Receiver::Hangs, Some("no answer within 5 s")),
        (Receiver::Gone, Some("Connection refused")),
        (Receiver::Recovers, None),
        (Receiver::Answers("204 No Content"), None),
        // Neither is known to have understood version 2, so both get version 1.
        (Receiver::Answers("415 Unsupported Media Type"), Some("415 Unsupported Media Type")),
    ];
    thread::scope(|scope| {
        for (receiver, words) in cases {
            scope.spawn(move || {
                let server = start_origin();
                let url = format!("http://{}/api/v1/write", start_receiver(receiver));
                let line = format!(
                    "load -R 100 -c 2 -d 5s --format json --remote-write {url} {}",
                    server.url()
                );
                let ended = Running::start(&mut weir(line.split_whitespace())).end().with_code(0);
                let report: LoadReport = ended.document();
                let counts = &report.results.counts;
                assert_eq!((counts.due, counts.completed_whole), (500, 500), "{receiver:?}");
                match words {
                    Some(words) => {
                        ended.stderr.has_all(&[words, "samples were not delivered"]);
                    }
                    None => ended.stderr.has_none(&["not delivered"]),
                }
            });
        }
    });
}

#[test]
fn a_receiver_has_what_the_load_counted_when_it_has_ended() {
    let server = start_origin();
    // Nothing listens there: what it has was sent.
    let prometheus = Prometheus::start(free_address(), false);
    for version in ["1", "2"] {
        let url = format!("http://{}/api/v1/write", prometheus.address());
        let origin = server.url();
        let arguments = [
            "load",
            "-R",
            "100",
            "-c",
            "2",
            "-d",
            "5s",
            "--format",
            "json",
            "--remote-write",
            &url,
            "--remote-write-version",
            version,
            &origin,
        ];
        let ended = Running::start(&mut weir(arguments)).end().with_code(0);
        ended.stderr.has_none(&["not delivered"]);
        let report: LoadReport = ended.document();
        let counted = report.results.counts.completed as f64;
        let newest = "topk(1, max_over_time(timestamp(weir_requests_completed_total)[5m:1s]))";
        let run = prometheus.query(newest)[0]["metric"]["run"].as_str().expect("a run").to_owned();
        let completed = format!("weir_requests_completed_total{{run=\"{run}\"}}");
        assert_eq!(prometheus.number(&completed), Some(counted), "{version}");
        let buckets = format!("weir_request_duration_seconds_bucket{{run=\"{run}\"}}");
        let quantile = prometheus.number(&format!("histogram_quantile(0.99, {buckets})"));
        is_within_a_bucket(quantile.expect("a quantile"), quantile_of(&report, 0.99), 1.68);
    }
}

#[test]
fn receivers_that_are_none_are_refused() {
    for (url, words) in [
        ("https://127.0.0.1:1/write", "remote write over TLS is not supported"),
        ("127.0.0.1:9090", "not a URL such as http://127.0.0.1:9090/api/v1/write"),
        ("ftp://a/b", "not a URL such as"),
    ] {
        let arguments = ["load", "--remote-write", url, "http://127.0.0.1:1/"];
        Running::start(&mut weir(arguments)).end().did_nothing(2, &[words]);
    }
}
