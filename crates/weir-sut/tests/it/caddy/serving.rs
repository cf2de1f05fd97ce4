//! What it serves, and what settings make of that.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use weir_model::study::{ProxyRole, file_target};
use weir_parameters::Catalog;
use weir_sut::{Launch, Site, WorkFolder};

use super::{Client, FILES, Gate, ask_aside, caddy, start, start_proxy, stock_with};
use crate::support::{Arm, free_address, get, launcher, until};

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

/// Without its defaults put back, two would be kept (see `fill_keep_alive`).
#[test]
fn as_many_connections_to_the_origin_are_kept_as_were_asked_for() {
    const HELD: usize = 8;
    for (changes, kept) in [
        (&[("origin_keepalive_timeout", "10m")][..], HELD),
        (&[("origin_keepalive", "3")], 3),
    ] {
        let origin = Gate::start();
        let arm = start_proxy(changes, &origin);
        let asked = [(); HELD].map(|()| ask_aside(arm.proxy.address(), "/held"));
        until("all requests are at the origin", || origin.held() == HELD);
        origin.open();
        for asked in asked {
            assert!(asked.join().unwrap().is_some());
        }
        until("the others are closed", || origin.closed() == HELD - kept);
        assert_eq!(origin.accepted(), HELD);
    }
}

#[test]
fn idle_connections_are_closed_on_either_side_when_their_time_is_up() {
    let origin = Gate::start();
    let changes = [
        ("keepalive_timeout", "50ms"),
        ("origin_keepalive_timeout", "50ms"),
    ];
    let arm = start_proxy(&changes, &origin);
    let mut client = Client::connect(arm.proxy.address());
    client.get("/").unwrap();
    assert!(client.reads_to_the_end(), "the client's");
    until("the origin's", || origin.closed() == 1);
    assert!(get(arm.proxy.address(), "/").starts_with("HTTP/1.1 200 OK\r\n"));
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
    let refused = get(arm.proxy.address(), "/");
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
    for asked in [first, second] {
        assert!(
            asked
                .join()
                .unwrap()
                .unwrap()
                .0
                .starts_with("HTTP/1.1 200 ")
        );
    }
    assert_eq!(origin.accepted(), 1);
}

/// Requests to the origin that Caddy has not answered yet, as its metrics have it.
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
fn an_origin_that_is_not_there_is_502() {
    let arm = start(&[], &ProxyRole::ReverseProxy, Some(free_address()));
    let response = get(arm.proxy.address(), "/");
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    assert!(
        arm.proxy.error_log_tail().contains("connection refused"),
        "it is told in what Caddy prints"
    );
}

#[test]
fn an_origin_is_asked_for_gzip_by_caddy_itself_unless_that_is_off() {
    let origin = Gate::start();
    let arm = start_proxy(&[("origin_compression", "off")], &origin);
    let (_, seen) = Client::connect(arm.proxy.address()).get("/").unwrap();
    assert!(!seen.contains("Accept-Encoding"), "{seen}");
}

#[test]
fn files_of_the_sizes_that_were_asked_for_are_served() {
    let folder = WorkFolder::create().unwrap();
    let sizes = [0, 1024, 1 << 20];
    let site = Site {
        sizes: &sizes,
        ..Site::new(&FILES, free_address(), None)
    };
    let configuration = caddy()
        .write(
            &folder.prefix("arm"),
            &stock_with(&[]),
            &site,
            &Catalog::builtin(),
        )
        .unwrap();
    let proxy =
        weir_sut::start(&*caddy(), &configuration, &launcher(), &Launch::default()).unwrap();
    let mut client = Client::connect(proxy.address());
    for target in ["/", "/index.html"] {
        let (head, content) = client.get(target).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("Content-Type: text/html"), "{head}");
        assert_eq!(content.len(), 10);
    }
    for size in sizes {
        let (head, content) = client.get(&file_target(size)).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(content.len() as u64, size);
        assert!(!head.contains("Content-Type"), "{head}");
    }
    let (missing, _) = client.get("/nothing").unwrap();
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
}

#[test]
fn text_is_compressed_for_those_who_ask_and_only_when_it_is_on() {
    let role = ProxyRole::StaticFiles { size: 5000 };
    for (changes, encoding) in [
        (&[][..], None),
        (&[("gzip_comp_level", "9")], None),
        (&[("compression", "gzip")], Some("gzip")),
        (&[("compression", "zstd gzip")], Some("zstd")),
        (
            &[("compression", "gzip"), ("compression_min_length", "8k")],
            None,
        ),
    ] {
        let arm = start(changes, &role, None);
        let head = head_of(arm.proxy.address());
        let found = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Encoding: "));
        assert_eq!(found, encoding, "{changes:?}: {head}");
    }
}

/// The head of a response to somebody who takes any encoding.
fn head_of(address: SocketAddr) -> String {
    let mut client = Client::connect(address).0;
    let request = b"GET / HTTP/1.1\r\nHost: weir.test\r\nAccept-Encoding: gzip, zstd\r\n\r\n";
    client.get_mut().write_all(request).expect("it reads");
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(client.read_line(&mut head).expect("it answers") > 0);
    }
    head
}

#[test]
fn the_access_log_has_a_line_for_each_request_in_the_arm_s_own_folder() {
    for (changes, lines) in [(&[("access_log", "on")][..], REQUESTS), (&[], 0)] {
        let arm = start(changes, &FILES, None);
        for _ in 0..REQUESTS {
            get(arm.proxy.address(), "/");
        }
        let log = arm.configuration.prefix().join("logs/access.log");
        let count = || fs::read_to_string(&log).unwrap_or_default().lines().count();
        // The line is written once the response is.
        until("the last line", || count() == lines);
        let printed = fs::read_to_string(arm.configuration.output()).unwrap();
        assert!(!printed.contains("handled request"), "{printed}");
    }
}

#[test]
fn counters_move_and_requests_are_counted_where_that_was_asked_for() {
    const NAME: &str = r#"caddy_http_requests_total{handler="file_server",server="site"}"#;
    let counters = |arm: &Arm| caddy().counters(&arm.configuration).unwrap();
    let arm = start(&[("metrics", "on")], &FILES, None);
    get(arm.proxy.address(), "/");
    until("the first request is counted", || {
        counters(&arm).get(NAME) == Some(&1)
    });
    for _ in 0..REQUESTS {
        get(arm.proxy.address(), "/");
    }
    until("the others are, too", || {
        counters(&arm).get(NAME) == Some(&(1 + REQUESTS as u64))
    });

    let arm = start(&[], &FILES, None);
    let before = counters(&arm);
    get(arm.proxy.address(), "/");
    let after = counters(&arm);
    assert!(!after.keys().any(|name| name.starts_with("caddy_http_")));
    let allocated = |counters: &BTreeMap<String, u64>| counters["go_memstats_alloc_bytes_total"];
    assert!(allocated(&after) > allocated(&before));
    for (name, value) in &before {
        assert!(after[name] >= *value, "{name} went back");
    }
}
