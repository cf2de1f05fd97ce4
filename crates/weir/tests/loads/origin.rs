//! Tests of `weir origin`, an origin server without a study.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_testkit::origin::start;
use weir_testkit::program::{Ended, HasAll, Running, run, weir};

/// Returns the whole response to one request, on a new connection.
fn ask(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut response = String::new();
    let sent = stream.write_all(request.as_bytes());
    sent.and_then(|()| stream.read_to_string(&mut response)).expect("it answers and closes");
    response
}

fn stop(origin: Running, signal: Signal) -> Ended {
    origin.signal(signal);
    origin.end().with_code(0)
}

#[test]
fn it_serves_what_it_was_asked_to_and_counts() {
    let (origin, address) = start("--size 5 --status 201 --content-type text/x-five");
    let response = ask(&address);
    assert!(response.starts_with("HTTP/1.1 201 "), "{response}");
    response.has("\r\nContent-Type: text/x-five\r\n");
    response.has("\r\nContent-Length: 5\r\n");
    assert_eq!(response.split_once("\r\n\r\n").unwrap().1.len(), 5);
    ask(&address);
    let ended = stop(origin, Signal::INT);
    let counted = format!("{address}: 2 requests on 2 connections\n");
    assert_eq!(ended.stdout, counted);
}

#[test]
fn it_serves_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from a file").unwrap();
    let (origin, address) = start(&format!("--file {}", file.path().display()));
    assert!(ask(&address).ends_with("\r\n\r\nfrom a file"));
    stop(origin, Signal::TERM);
}

#[test]
fn it_delays_and_stalls() {
    let (origin, address) = start("--delay 30ms..40ms");
    let begun = Instant::now();
    ask(&address);
    assert!(begun.elapsed() >= Duration::from_millis(30));
    stop(origin, Signal::TERM);
    let (origin, address) = start("--stall 300ms@0s");
    let begun = Instant::now();
    ask(&address);
    ask(&address);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    stop(origin, Signal::TERM);
}

#[test]
fn it_ends_by_itself_when_asked_to() {
    let (origin, _) = start("--duration 100ms");
    origin.end().with_code(0);
}

#[test]
fn it_serves_although_nobody_reads_what_it_says() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = weir(["origin", "--listen", "127.0.0.1:0", "--duration", "1ms"]);
    let ended = Running::start_with(&mut command, Stdio::piped(), writer.into()).end();
    let counted = ": 0 requests on 0 connections";
    ended.with_code(0).stdout.has(counted);
}

#[test]
fn values_that_cannot_be() {
    #[rustfmt::skip]
    let rows = [
        ("--listen nonsense", "--listen nonsense: invalid socket address\nhint: "),
        ("--delay slow", "--delay: `slow` is not a duration"),
        ("--delay exp:", "--delay: `` is not a duration"),
        ("--delay 9ms..1ms", "--delay 9ms..1ms: the second time must be the longer one"),
        ("--stall 1s", "--stall `1s` is not LENGTH@TIME\nhint: "),
        ("--stall 1s@x", "--stall: `x` is not a duration"),
        ("--size big", "--size: `big` is not a size"),
        ("--status 99", "--status 99: a final status is 200 to 599"),
        ("--file /nonexistent", "--file /nonexistent: No such file"),
        ("--cpus 900", "cannot serve: cannot run on CPU 900"),
        ("--duration x", "-d: `x` is not a duration"),
    ];
    for (flags, words) in rows {
        run(&format!("origin --listen 127.0.0.1:0 {flags}")).refused_in_a_line(&[words]);
    }
}

#[test]
fn a_port_that_is_taken() {
    let (origin, address) = start("");
    run(&format!("origin --listen {address}")).refused_in_a_line(&[
        &format!("cannot serve: cannot listen on {address}: Address already in use"),
        "\nhint: ",
    ]);
    stop(origin, Signal::TERM);
}
