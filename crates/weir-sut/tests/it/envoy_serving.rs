//! What the real Envoy does with requests: passes them on, keeps and closes connections, limits, counts.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use crate::envoy::proxy;
use crate::setup::{Arm, Changes};
use crate::support::{Origin, until};

fn arm(changes: Changes<'_>, origin: SocketAddr) -> Arm {
    proxy(changes, origin).start()
}

/// An origin server that answers with the head that it was sent, once its gate is open. It lives until
/// the tests end.
struct Mirror {
    address: SocketAddr,
    gate: Arc<(Mutex<bool>, Condvar)>,
    asked: Arc<Mutex<usize>>,
}

impl Mirror {
    fn start(open: bool) -> Mirror {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be had");
        let address = listener.local_addr().expect("a listener has an address");
        let gate = Arc::new((Mutex::new(open), Condvar::new()));
        let asked = Arc::new(Mutex::new(0));
        let (held, counter) = (Arc::clone(&gate), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (gate, asked) = (Arc::clone(&held), Arc::clone(&counter));
                std::thread::spawn(move || mirror(stream, &gate, &asked));
            }
        });
        Mirror {
            address,
            gate,
            asked,
        }
    }

    fn open(&self) {
        *self.gate.0.lock().expect("no thread panicked") = true;
        self.gate.1.notify_all();
    }

    fn asked(&self) -> usize {
        *self.asked.lock().expect("no thread panicked")
    }
}

fn mirror(mut stream: TcpStream, gate: &(Mutex<bool>, Condvar), asked: &Mutex<usize>) {
    while let Some(head) = read_head(&mut stream) {
        *asked.lock().expect("no thread panicked") += 1;
        let open = gate.0.lock().expect("no thread panicked");
        drop(
            gate.1
                .wait_while(open, |open| !*open)
                .expect("no thread panicked"),
        );
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{head}",
            head.len()
        );
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// A client's connection with a request sent on it.
fn ask(address: SocketAddr, target: &str, fields: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("Envoy accepts");
    send(&mut stream, target, fields);
    stream
}

fn send(stream: &mut TcpStream, target: &str, fields: &str) {
    let request = format!("GET {target} HTTP/1.1\r\nHost: shop.example:81\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).expect("Envoy reads");
}

fn content_length(head: &str) -> usize {
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths
        .next()
        .expect("a length")
        .1
        .parse()
        .expect("a number")
}

fn answer(stream: &mut TcpStream) -> (String, String) {
    let head = read_head(stream).expect("a response");
    let mut content = vec![0; content_length(&head)];
    stream.read_exact(&mut content).expect("all of the content");
    (head, String::from_utf8(content).expect("text"))
}

#[test]
fn requests_reach_the_origin_with_their_target_and_host_as_they_came() {
    let origin = Mirror::start(true);
    let arm = arm(&[], origin.address);
    let mut client = ask(arm.proxy.address(), "/a%2fb/../c?d=%20e&f", "X-Own: 1\r\n");
    let (head, seen) = answer(&mut client);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        seen.starts_with("GET /a%2fb/../c?d=%20e&f HTTP/1.1\r\nhost: shop.example:81\r\n"),
        "{seen}"
    );
    assert!(seen.contains("x-own: 1\r\n"), "{seen}");
    // What it adds by itself.
    for field in ["x-request-id: ", "x-forwarded-proto: http\r\n"] {
        assert!(seen.contains(field), "{seen}");
    }
    assert!(head.contains("server: envoy\r\n") && head.contains("x-envoy-upstream-service-time: "));
}

#[test]
fn client_connections_are_closed_as_the_settings_say() {
    let origin = Origin::start();
    let limited = arm(
        &[("keepalive_requests", "2"), ("delayed_close_timeout", "0s")],
        origin.address,
    );
    let mut client = TcpStream::connect(limited.proxy.address()).unwrap();
    for is_last in [false, true] {
        send(&mut client, "/", "");
        let (head, _) = answer(&mut client);
        assert_eq!(head.contains("connection: close\r\n"), is_last, "{head}");
    }
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "closed");
    assert_eq!(
        limited.counter("http.ingress.downstream_cx_max_requests_reached"),
        1
    );

    // It also ends a connection that has not asked in time.
    let idle = arm(&[("keepalive_timeout", "500ms")], origin.address);
    let mut client = ask(idle.proxy.address(), "/", "");
    answer(&mut client);
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "closed");
    assert_eq!(idle.counter("http.ingress.downstream_cx_idle_timeout"), 1);
}

#[test]
fn circuit_breakers_refuse_and_count() {
    let origin = Mirror::start(false);
    let arm = arm(
        &[
            ("concurrency", "1"),
            ("max_connections", "1"),
            ("max_pending_requests", "1"),
        ],
        origin.address,
    );
    let address = arm.proxy.address();
    let mut first = ask(address, "/", "");
    until("the first has the connection", || origin.asked() == 1);
    let mut second = ask(address, "/", "");
    until("the second waits", || {
        arm.counter("http.ingress.downstream_rq_total") == 2
    });
    let (head, content) = answer(&mut ask(address, "/", ""));
    assert!(
        head.starts_with("HTTP/1.1 503 ") && head.contains("x-envoy-overloaded: true"),
        "{head}"
    );
    assert!(content.contains("overflow"), "{content}");
    assert_eq!(
        arm.counter("cluster.origin.upstream_rq_pending_overflow"),
        1
    );
    assert!(arm.counter("cluster.origin.upstream_cx_overflow") > 0);
    assert_eq!(arm.counter("http.ingress.downstream_rq_5xx"), 1);
    origin.open();
    for waiting in [&mut first, &mut second] {
        assert!(answer(waiting).0.starts_with("HTTP/1.1 200 "));
    }
}

#[test]
fn timeouts_and_the_limit_of_connections_are_counted() {
    let origin = Mirror::start(false);
    let timed = arm(&[("route_timeout", "50ms")], origin.address);
    let (head, _) = answer(&mut ask(timed.proxy.address(), "/", ""));
    assert!(head.starts_with("HTTP/1.1 504 "), "{head}");
    assert_eq!(timed.counter("cluster.origin.upstream_rq_timeout"), 1);

    let limited = arm(
        &[
            ("max_active_downstream_connections", "1"),
            ("concurrency", "1"),
        ],
        Origin::start().address,
    );
    // weir's own look whether it accepts has to be gone.
    let mut kept = None;
    until("one connection is there", || {
        let mut client = ask(limited.proxy.address(), "/", "");
        kept = read_head(&mut client).map(|_| client);
        kept.is_some()
    });
    let refused = limited.counter("listener.clear.downstream_global_cx_overflow");
    let mut above = TcpStream::connect(limited.proxy.address()).unwrap();
    let closed = above.read(&mut [0]);
    assert!(!matches!(closed, Ok(1..)), "{closed:?}");
    assert_eq!(
        limited.counter("listener.clear.downstream_global_cx_overflow"),
        refused + 1
    );
}

#[test]
fn an_origin_that_is_not_there_is_a_503_and_counted() {
    let nobody = crate::support::free_address();
    let arm = arm(&[], nobody);
    let (head, _) = answer(&mut ask(arm.proxy.address(), "/", ""));
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert_eq!(arm.counter("cluster.origin.upstream_cx_connect_fail"), 1);
}

#[test]
fn responses_are_compressed_for_who_asks_if_they_are_to_be() {
    let origin = Mirror::start(true);
    let fields = "Accept-Encoding: gzip\r\nConnection: close\r\n";
    for gzip in ["on", "off"] {
        let arm = arm(&[("gzip", gzip), ("gzip_comp_level", "1")], origin.address);
        let mut client = ask(arm.proxy.address(), "/", fields);
        let head = read_head(&mut client).unwrap();
        let is_compressed = head.contains("content-encoding: gzip\r\n");
        assert_eq!(is_compressed, gzip == "on", "{head}");
    }
}

#[test]
fn the_access_log_is_in_the_arm_s_own_folder_and_whole_at_the_end() {
    let origin = Origin::start();
    for (level, lines) in [("on", Some(3)), ("off", None)] {
        let arm = arm(&[("access_log", level)], origin.address);
        for _ in 0..3 {
            arm.get("/logged");
        }
        let log = arm.configuration.prefix().join("logs/access.log");
        arm.proxy.stop();
        let text = fs::read_to_string(log).ok();
        let found = text.map(|text| text.matches("GET /logged HTTP/1.1").count());
        assert_eq!(found, lines);
    }
}

#[test]
fn io_uring_carries_requests_where_it_may_be_used() {
    if fs::read_to_string("/proc/sys/kernel/io_uring_disabled").is_ok_and(|text| text.trim() != "0")
    {
        println!("skipped: the kernel forbids io_uring (kernel.io_uring_disabled)");
        return;
    }
    let origin = Origin::start();
    let arm = arm(&[("io_uring", "on"), ("concurrency", "1")], origin.address);
    for _ in 0..20 {
        assert!(arm.get("/").ends_with("hello"));
    }
    let descriptors = format!("/proc/{}/fd", arm.proxy.master_pid());
    let rings = fs::read_dir(descriptors).unwrap().flatten();
    let is_ring = |link: std::path::PathBuf| link.to_string_lossy().contains("io_uring");
    let rings = rings.filter(|entry| fs::read_link(entry.path()).is_ok_and(is_ring));
    assert!(rings.count() > 0, "it has rings");
}
