//! Tests of what Caddy serves, and how settings change that.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::{files, start_proxy};
use crate::programs::gate::{Client, Gate, ask_aside};
use crate::programs::setup::Arm;
use crate::programs::support::until;

const REQUESTS: usize = 20;

#[test]
fn a_request_is_passed_on_as_it_was_sent_with_what_caddy_adds() {
    let origin = Gate::start();
    let arm = start_proxy(&[], &origin);
    let mut client = Client::connect(arm.proxy.address());
    let (head, seen) = client.get("/some/path?x=1&y=%20").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Server: Caddy\r\n"), "{head}");
    for line in [
        "GET /some/path?x=1&y=%20 HTTP/1.1",
        "Host: weir.test",
        "X-Forwarded-For: 127.0.0.1",
        "X-Forwarded-Host: weir.test",
        "X-Forwarded-Proto: http",
        "Accept-Encoding: gzip",
    ] {
        assert!(seen.lines().any(|seen| seen == line), "{line}: {seen}");
    }
}

#[test]
fn connections_to_the_origin_are_kept_unless_they_are_not_to_be() {
    for (changes, connections) in [(&[][..], 1), (&[("origin_keepalive", "0")], REQUESTS)] {
        let origin = Gate::start();
        let mut arm = start_proxy(changes, &origin);
        let before = arm.proxy.cpu_ns();
        let mut client = Client::connect(arm.proxy.address());
        for _ in 0..REQUESTS {
            client.get("/").unwrap();
        }
        assert_eq!(origin.accepted(), connections, "{changes:?}");
        assert!(arm.proxy.cpu_ns() > before);
        arm.proxy.alive().unwrap();
    }
}

/// Without the defaults that weir adds, two connections would be kept (see `fill_keep_alive`).
#[test]
fn as_many_connections_to_the_origin_are_kept_as_were_asked_for() {
    const HELD: usize = 8;
    for (changes, kept) in
        [(&[("origin_keepalive_timeout", "10m")][..], HELD), (&[("origin_keepalive", "3")], 3)]
    {
        let origin = Gate::start();
        let arm = start_proxy(changes, &origin);
        let requests = [(); HELD].map(|()| ask_aside(arm.proxy.address(), "/held"));
        until("all requests are at the origin", || origin.held() == HELD);
        origin.open();
        for request in requests {
            assert!(request.join().unwrap().is_some());
        }
        until("the others are closed", || origin.closed() == HELD - kept);
        assert_eq!(origin.accepted(), HELD);
    }
}

#[test]
fn idle_connections_are_closed_on_either_side_when_their_time_is_up() {
    let origin = Gate::start();
    let changes = [("keepalive_timeout", "50ms"), ("origin_keepalive_timeout", "50ms")];
    let arm = start_proxy(&changes, &origin);
    let mut client = Client::connect(arm.proxy.address());
    client.get("/").unwrap();
    assert!(client.reads_to_the_end(), "the client's");
    until("the origin's", || origin.closed() == 1);
    assert!(arm.get("/").starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(origin.accepted(), 2);

    let arm = start_proxy(&[("client_header_timeout", "50ms")], &origin);
    let mut silent = Client::connect(arm.proxy.address());
    assert!(silent.reads_to_the_end(), "one that never asks");
}

#[test]
fn requests_above_the_limit_are_refused_and_above_that_of_connections_they_wait() {
    let origin = Gate::start();
    let arm = start_proxy(&[("origin_max_requests", "1")], &origin);
    let held = ask_aside(arm.proxy.address(), "/held");
    until("the first is at the origin", || origin.held() == 1);
    let refused = arm.get("/");
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    origin.open();
    assert!(held.join().unwrap().unwrap().0.starts_with("HTTP/1.1 200 "));

    let origin = Gate::start();
    let changes = [("origin_max_connections", "1"), ("metrics", "on")];
    let arm = start_proxy(&changes, &origin);
    let first = ask_aside(arm.proxy.address(), "/held");
    until("the first is at the origin", || origin.held() == 1);
    let second = ask_aside(arm.proxy.address(), "/second");
    until("Caddy has the second", || in_flight(&arm) == 2);
    // Time enough to connect to the origin, if it were to.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(origin.accepted(), 1, "it waits");
    origin.open();
    for request in [first, second] {
        let (head, _) = request.join().unwrap().unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    }
    assert_eq!(origin.accepted(), 1);
}

/// Returns the number of requests that Caddy has not answered yet, from its metrics.
fn in_flight(arm: &Arm) -> u64 {
    const GAUGE: &str = r#"caddy_http_requests_in_flight{handler="reverse_proxy",server="site"} "#;
    let socket = arm.configuration.prefix().join("run/admin.sock");
    let mut stream = UnixStream::connect(socket).expect("Caddy runs");
    let request = b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).expect("Caddy reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("Caddy answers");
    let mut values = text.lines().filter_map(|line| line.strip_prefix(GAUGE));
    values.next().map_or(0, |value| value.parse().expect(value))
}

#[test]
fn an_origin_is_asked_for_gzip_by_caddy_itself_unless_that_is_off() {
    let origin = Gate::start();
    let arm = start_proxy(&[("origin_compression", "off")], &origin);
    let (_, seen) = Client::connect(arm.proxy.address()).get("/").unwrap();
    assert!(!seen.contains("Accept-Encoding"), "{seen}");
}

#[test]
fn counters_move_and_requests_are_counted_where_that_was_asked_for() {
    const NAME: &str = r#"caddy_http_requests_total{handler="file_server",server="site"}"#;
    let arm = files(&[("metrics", "on")]).start();
    arm.get("/");
    until("the first request is counted", || arm.counters().get(NAME) == Some(&1));
    for _ in 0..REQUESTS {
        arm.get("/");
    }
    until("the others are, too", || arm.counters().get(NAME) == Some(&(1 + REQUESTS as u64)));

    let arm = files(&[]).start();
    let before = arm.counters();
    arm.get("/");
    let after = arm.counters();
    assert!(!after.keys().any(|name| name.starts_with("caddy_http_")));
    let [allocated_before, allocated_after] =
        [&before, &after].map(|counters| counters["go_memstats_alloc_bytes_total"]);
    assert!(allocated_after > allocated_before);
    for (name, value) in &before {
        assert!(after[name] >= *value, "{name} went back");
    }
}
