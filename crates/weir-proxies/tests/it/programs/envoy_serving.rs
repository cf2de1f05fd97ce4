//! Tests of the real Envoy's handling of requests: passing on, keeping and closing connections, limits, counters.

use std::fs;
use std::net::SocketAddr;

use crate::programs::envoy::proxy;
use crate::programs::gate::{Client, Gate, HOST};
use crate::programs::setup::{Arm, Changes};
use crate::programs::support::{Origin, until};

fn start_arm(changes: Changes<'_>, origin: SocketAddr) -> Arm {
    proxy(changes, origin).start()
}

#[test]
fn requests_reach_the_origin_with_their_target_and_host_as_they_came() {
    let origin = Gate::start();
    let arm = start_arm(&[], origin.address);
    let fields = "Host: shop.example:81\r\nX-Own: 1\r\n";
    let mut client = Client::asking(arm.proxy.address(), "/a%2fb/../c?d=%20e&f", fields);
    let (head, seen) = client.answer().unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let begin = "GET /a%2fb/../c?d=%20e&f HTTP/1.1\nhost: shop.example:81\n";
    assert!(seen.starts_with(begin), "{seen}");
    assert!(seen.contains("x-own: 1\n"), "{seen}");
    // What it adds by itself.
    for field in ["x-request-id: ", "x-forwarded-proto: http\n"] {
        assert!(seen.contains(field), "{seen}");
    }
    assert!(head.contains("server: envoy\r\n") && head.contains("x-envoy-upstream-service-time: "));
}

#[test]
fn client_connections_are_closed_as_the_settings_say() {
    let origin = Origin::start();
    let limited =
        start_arm(&[("keepalive_requests", "2"), ("delayed_close_timeout", "0s")], origin.address);
    let mut client = Client::connect(limited.proxy.address());
    for is_last in [false, true] {
        let (head, _) = client.get("/").unwrap();
        assert_eq!(head.contains("connection: close\r\n"), is_last, "{head}");
    }
    assert!(client.reads_to_the_end(), "closed");
    assert_eq!(limited.counter("http.ingress.downstream_cx_max_requests_reached"), 1);

    // It also ends a connection that has not asked in time.
    let idle = start_arm(&[("keepalive_timeout", "500ms")], origin.address);
    let mut client = Client::connect(idle.proxy.address());
    client.get("/").unwrap();
    assert!(client.reads_to_the_end(), "closed");
    assert_eq!(idle.counter("http.ingress.downstream_cx_idle_timeout"), 1);
}

#[test]
fn circuit_breakers_refuse_and_count() {
    let origin = Gate::start();
    let arm = start_arm(
        &[("concurrency", "1"), ("max_connections", "1"), ("max_pending_requests", "1")],
        origin.address,
    );
    let address = arm.proxy.address();
    let first = Client::asking(address, "/held", HOST);
    until("the first has the connection", || origin.held() == 1);
    let second = Client::asking(address, "/held", HOST);
    until("the second waits", || arm.counter("http.ingress.downstream_rq_total") == 2);
    let (head, content) = Client::connect(address).get("/").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 503 ") && head.contains("x-envoy-overloaded: true"),
        "{head}"
    );
    assert!(content.contains("overflow"), "{content}");
    assert_eq!(arm.counter("cluster.origin.upstream_rq_pending_overflow"), 1);
    assert!(arm.counter("cluster.origin.upstream_cx_overflow") > 0);
    assert_eq!(arm.counter("http.ingress.downstream_rq_5xx"), 1);
    origin.open();
    for mut waiting in [first, second] {
        let (head, _) = waiting.answer().unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    }
}

#[test]
fn timeouts_and_the_limit_of_connections_are_counted() {
    let origin = Gate::start();
    let timed = start_arm(&[("route_timeout", "50ms")], origin.address);
    let mut client = Client::connect(timed.proxy.address());
    let (head, _) = client.get("/held").unwrap();
    assert!(head.starts_with("HTTP/1.1 504 "), "{head}");
    assert_eq!(timed.counter("cluster.origin.upstream_rq_timeout"), 1);

    let limited = start_arm(
        &[("max_active_downstream_connections", "1"), ("concurrency", "1")],
        Origin::start().address,
    );
    // weir's own look whether it accepts has to be gone.
    let mut first_client = None;
    until("one connection is there", || {
        let mut client = Client::connect(limited.proxy.address());
        first_client = client.get("/").map(|_| client);
        first_client.is_some()
    });
    let refused = limited.counter("listener.clear.downstream_global_cx_overflow");
    let mut above = Client::connect(limited.proxy.address());
    assert_eq!(above.head(), None);
    assert_eq!(limited.counter("listener.clear.downstream_global_cx_overflow"), refused + 1);
}

#[test]
fn io_uring_carries_requests_where_it_may_be_used() {
    if fs::read_to_string("/proc/sys/kernel/io_uring_disabled").is_ok_and(|text| text.trim() != "0")
    {
        println!("skipped: the kernel forbids io_uring (kernel.io_uring_disabled)");
        return;
    }
    let origin = Origin::start();
    let arm = start_arm(&[("io_uring", "on"), ("concurrency", "1")], origin.address);
    for _ in 0..20 {
        assert!(arm.get("/").ends_with("hello"));
    }
    let descriptors = format!("/proc/{}/fd", arm.proxy.master_pid());
    let links = fs::read_dir(descriptors).unwrap().flatten();
    let rings = links.filter(|entry| {
        fs::read_link(entry.path()).is_ok_and(|link| link.to_string_lossy().contains("io_uring"))
    });
    assert!(rings.count() > 0, "it has rings");
}
