//! Tests of `weir load` with a server without faults: formats, counts, flags, an interruption.

use std::net::{Ipv6Addr, SocketAddr};
use std::process::Stdio;

use rustix::process::Signal;
use weir_model::load::Arrivals;
use weir_model::load_report::{FORMAT, LoadReport};
use weir_model::record::Validity;
use weir_origin::{Origin, OriginConfig};
use weir_testkit::faulty::{Faulty, start_origin};
use weir_testkit::loads::{Server, only_status, wait_until_thread};
use weir_testkit::program::{HasAll, Running, weir};

#[test]
fn the_document_agrees_with_what_the_server_counted() {
    for io in ["epoll", "auto"] {
        let origin = start_origin();
        let report = origin.reported(&format!("--io {io} -n 1000 -c 7 -t 2"));
        let counters = origin.counters(0);
        assert_eq!(report.format, FORMAT);
        assert_eq!(report.outcome, "complete");
        assert_eq!(report.results.counts.completed_whole, 1000);
        assert_eq!(counters.requests, 1000);
        assert_eq!(report.results.response_time.count, 1000);
        assert_eq!(report.results.counts.received_bytes, counters.sent_bytes);
        assert_eq!(report.results.counts.content_bytes, 1000 * 1024);
        assert_eq!(only_status(&report), (200, 1000));
        assert_eq!((report.results.counts.connected, report.results.counts.reconnects), (7, 0));
        // One more: weir looks first whether anybody is there.
        assert_eq!(report.results.counts.connects + 1, counters.connections);
        assert!(report.results.errors.is_empty(), "{:?}", report.results.errors);
        assert_eq!(report.results.load.requests, Some(1000));
        assert_eq!(report.results.load.cpus.len(), 2);
    }
}

#[test]
fn every_format_says_what_happened() {
    let origin = start_origin();
    let [text, with_quantiles, wrk2, hgrm] =
        ["", "-L", "--format wrk2", "--format hgrm"].map(|more| {
            let ended = origin.load(&format!("-q -n 200 -c 2 -t 1 {more}")).with_code(0);
            assert_eq!(ended.stderr, "", "{more}");
            ended.stdout
        });
    text.has_all(&["GET http://", "2 connections", "2xx 200", "errors        none"]);
    text.has_none(&["quantile"]);
    with_quantiles.has("\n  quantile ");
    assert!(wrk2.starts_with("Running "), "{wrk2}");
    wrk2.has_all(&[
        "  1 threads and 2 connections\n",
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n",
        "  200 requests in ",
        "\nRequests/sec: ",
    ]);
    hgrm.has_all(&["Value     Percentile TotalCount", "#[Max     ="]);
    assert_eq!(origin.counters(0).requests, 4 * 200);
}

#[test]
fn an_open_loop_sends_what_it_intended() {
    let origin = start_origin();
    let report = origin.reported("-R 500 -d 1s -c 4 -t 1");
    assert_eq!(report.results.load.arrivals, Arrivals::Constant { rate: 500.0 });
    assert_eq!(report.results.rates.intended, Some(500.0));
    assert_eq!(report.results.counts.due, 500);
    assert_eq!(report.results.counts.completed_whole, 500, "{:?}", report.results.errors);
    assert_eq!(origin.counters(0).requests, 500);
    assert_eq!(report.results.response_time.count, 500);
    assert!(report.results.response_time.max >= report.results.service_time.min);
}

#[test]
fn ramp_up_is_not_measured() {
    let origin = start_origin();
    let report = origin.reported("-R 400 --ramp-up 500ms -d 500ms -c 2 -t 1");
    assert_eq!((report.phases.ramp_up, report.phases.sustain), (0.5, 0.5));
    assert_eq!(report.results.counts.due, 200);
    // An even growth from nothing sends half as many.
    assert_eq!(report.results.counts.completed_whole, 300);
    assert_eq!(report.results.response_time.count, 200);
}

#[test]
fn the_request_is_as_asked_for() {
    let peer = Faulty::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from a file").unwrap();
    let url = format!("{}a/b?q=1", peer.url());
    let plain = send_one(&peer, &url, &[]);
    assert!(plain.starts_with("GET /a/b?q=1 HTTP/1.1\r\n"), "{plain}");
    let host = url.split('/').nth(2).unwrap();
    assert!(plain.contains(&format!("\r\nHost: {host}\r\n")), "{plain}");
    let fields =
        send_one(&peer, &url, &["-H", "X-One: 1", "-H", "Host: example.test", "-m", "DELETE"]);
    assert!(fields.starts_with("DELETE "), "{fields}");
    fields.has_all(&["\r\nX-One: 1\r\n", "\r\nHost: example.test\r\n"]);
    let hosts = fields.to_lowercase().matches("\r\nhost:").count();
    assert_eq!(hosts, 1, "{fields}");
    let post = send_one(&peer, &url, &["-m", "POST", "-b", "a body"]);
    assert!(post.starts_with("POST "), "{post}");
    assert!(post.contains("\r\nContent-Length: 6\r\n"), "{post}");
    assert!(post.ends_with("\r\n\r\na body"), "{post}");
    let path = file.path().to_str().unwrap();
    let post = send_one(&peer, &url, &["-m", "POST", "--content-file", path]);
    assert!(post.ends_with("\r\n\r\nfrom a file"), "{post}");
    let empty = send_one(&peer, &url, &["-m", "POST"]);
    assert!(empty.contains("\r\nContent-Length: 0\r\n"), "{empty}");
}

fn send_one(peer: &Faulty, url: &str, more: &[&str]) -> String {
    let always = ["load", "-q", "-n", "1", "-c", "1", url];
    Running::start(&mut weir(always.iter().chain(more))).end().with_code(0);
    peer.texts().pop().expect("a request")
}

#[test]
fn head_has_no_content() {
    let origin = start_origin();
    let report = origin.reported("-m HEAD -n 50 -c 1");
    assert_eq!(report.results.target.method, "HEAD");
    assert_eq!(report.results.counts.completed_whole, 50);
    assert_eq!(report.results.counts.content_bytes, 0);
    assert_eq!(report.results.counts.reconnects, 0);
}

#[test]
fn over_ipv6() {
    let any = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let origin = Origin::start(OriginConfig::new(vec![any])).expect("an IPv6 loopback interface");
    let report = origin.reported("-n 20 -c 2");
    assert_eq!(report.results.counts.completed_whole, 20);
    assert_eq!(report.results.target.address, origin.addresses()[0].to_string());
}

#[test]
fn the_result_goes_where_it_was_asked_for() {
    let origin = start_origin();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result.json");
    let to = file.display();
    let ended = origin.load(&format!("-q -n 20 -c 1 --format json -o {to}"));
    assert_eq!(ended.with_code(0).stdout, "");
    let text = std::fs::read_to_string(file).unwrap();
    let report: LoadReport = serde_json::from_str(&text).unwrap();
    assert_eq!(report.results.counts.completed_whole, 20);
}

#[test]
fn an_interruption_ends_the_trial_and_not_the_report() {
    let origin = start_origin();
    for (format, words) in [("text", "then interrupted"), ("json", "\"interrupted\"")] {
        let before = origin.counters(0).requests;
        let line = format!("load -d 1h -c 2 -t 1 --format {format} {}", origin.url());
        let mut load = Running::start(&mut weir(line.split_whitespace()));
        load.wait_until("some requests", |_| origin.counters(0).requests > before + 200);
        load.signal(Signal::INT);
        let ended = load.end().with_code(130);
        ended.stdout.has(words);
        if format == "json" {
            let report: LoadReport = ended.document();
            assert_eq!(report.outcome, "interrupted");
            assert!(report.results.counts.completed_whole > 100);
            assert_eq!(report.results.statuses[0].count, report.results.counts.completed_whole);
        }
    }
}

#[test]
fn an_interruption_before_anything_is_measured_leaves_no_figures() {
    let origin = start_origin();
    for io in ["epoll", "uring"] {
        let before = origin.counters(0).requests;
        let line = "load -d 1h --ramp-up 1m -R 60000 -c 2 -t 1 --format json --io";
        let line = format!("{line} {io} {}", origin.url());
        let mut load = Running::start(&mut weir(line.split_whitespace()));
        load.wait_until("some requests", |_| origin.counters(0).requests > before + 100);
        load.signal(Signal::INT);
        let report: LoadReport = load.end().with_code(130).document();
        assert!(report.results.counts.completed_whole > 100);
        assert_eq!(report.phases.sustain, 0.0);
        let rates = &report.results.rates;
        let figures = [rates.offered, rates.completed, rates.received_bytes];
        assert_eq!(figures, [0.0; 3], "{io}");
        assert_eq!(report.validity[0].rule(), "few-responses");
        assert_eq!(report.validity[0].validity, Validity::Invalid);
    }
}

#[test]
fn an_interruption_while_connections_open_ends_it_too() {
    // A backlog of 0 holds one connection, weir's first look; the kernel lets all others wait.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let line = format!("load -q -c 3 -t 1 http://{address}/");
    let load = Running::start(&mut weir(line.split_whitespace()));
    wait_until_thread(&load, "weir-load");
    load.signal(Signal::TERM);
    load.end().with_code(130).says(&["interrupted"]);
}

#[test]
fn who_has_read_enough_is_no_error_and_a_full_disk_is() {
    let origin = start_origin();
    let mut command = weir(["load", "-q", "-n", "5", "-c", "1", &origin.url()]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = Running::start_with(&mut command, writer.into(), Stdio::piped()).end();
    assert_eq!(ended.with_code(0).stderr, "");
    let full = std::fs::File::create("/dev/full").unwrap();
    let ended = Running::start_with(&mut command, full.into(), Stdio::piped()).end();
    let words = "weir: cannot write to standard output: No space left on device";
    assert!(ended.stderr.starts_with(words), "{}", ended.stderr);
    ended.with_code(1);
    // What was measured is not lost with the file that it was meant for.
    let ended = Running::start(command.args(["-o", "/dev/full"])).end();
    let words = "weir: cannot write /dev/full: No space left on device";
    assert!(ended.stderr.starts_with(words), "{}", ended.stderr);
    assert!(ended.with_code(1).stdout.contains("2xx 5"));
}

#[test]
fn a_wrk2_users_command_line_works_unchanged() {
    let origin = start_origin();
    let wrk2 = "-t2 -c20 -d1s -R200 --latency --timeout 2s -H Accept:*/*";
    origin.load(wrk2).with_code(0).stdout.has_all(&["200.0 requests/s intended", "quantile"]);
    let same = origin.load(&format!("--format wrk2 {wrk2}")).with_code(0);
    let spectrum = "Detailed Percentile spectrum:";
    same.stdout.has_all(&["  2 threads and 20 connections\n", spectrum]);
    assert_eq!(origin.counters(0).requests, 400);
}
