//! Tests of `weir load` with servers that fail TLS halfway: faults are counted as `tls` in the words of the code that
//! noticed them, the other requests are answered, and the trial ends in time and in bounded memory.
//!
//! Faults of handshakes are tested with connections that are kept, renewed after a few requests, and made for each
//! request; all faults with a closed and an open loop.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection};
use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;
use weir_testkit::faulty::{After, Faulty, Victim, Wire};
use weir_testkit::loads::{Error, Server};
use weir_testkit::program::{HasAll, Running, peak_kib, row, weir, within};
use weir_testkit::secure::Authority;

use crate::load_faults::{
    ASKED, CLOSED_EARLY, CLOSED_UNANSWERED, Does, EACH, Fault, LOADS, RESET, TO_THE_CLOSE,
    assert_lost, meet,
};

/// Connection policies while handshakes fail.
const POLICIES: [&str; 3] = ["keep-alive", "5", "per-request"];

/// Connections of each trial.
const CONNECTIONS: u64 = 4;

fn make_config() -> Arc<ServerConfig> {
    Authority::new().issue(|_| {}).server()
}

/// Tests a server with the fault instead of a handshake on every second connection, with all policies and loads.
fn shake((name, fault, words): Shaken) {
    let config = make_config();
    let more = if words == [NO_HANDSHAKE] { "-T 500ms" } else { "" };
    for policy in POLICIES {
        for load in LOADS {
            let server = Faulty::handshakes(2, Arc::clone(&config), move |victim| {
                let flight = take_flight(victim);
                fault(victim, &flight)
            });
            let line = format!("{load} -k -c 4 -t 1 --connection {policy} {more}");
            row(&format!("{name}: {line}"));
            let (report, ended) = server.report(&line);
            assert_eq!(ended.with_code(0).stderr, "", "{line}");
            assert_eq!(report.outcome, "complete", "{line}");
            assert_counted(&line, &report, server.faults(), words);
            let failed: u64 = report.results.errors.iter().map(|error| error.count).sum();
            let done = report.results.counts.completed_whole;
            assert!(done > 0, "{line}");
            // A handshake costs a request only where it is made for one.
            match (report.results.counts.due > 0, policy) {
                (false, "per-request") => assert_eq!(done + failed, ASKED, "{line}"),
                (false, _) => assert_eq!(done, ASKED, "{line}"),
                (true, "per-request") => assert!(done + failed <= ASKED, "{line}"),
                (true, _) => assert!(done <= ASKED, "{line}"),
            }
        }
    }
}

/// Checks that all errors are of TLS, in these words, and as many as there were faults. Connections that were being
/// opened at the end need not count.
#[track_caller]
fn assert_counted(line: &str, report: &LoadReport, faults: u64, words: &[&str]) {
    let errors = &report.results.errors;
    for error in errors {
        assert_eq!(error.kind, ErrorKind::Tls, "{line}: {errors:?}");
        let is_expected = words.iter().any(|words| error.words.contains(words));
        assert!(is_expected, "{line}: {errors:?}");
    }
    let count: u64 = errors.iter().map(|error| error.count).sum();
    assert!(count > 0, "{line}: {faults} faults, and nobody noticed");
    let fewest = faults.saturating_sub(CONNECTIONS);
    // Nobody promises that an honest handshake is never late on a busy machine.
    let most = match words {
        [NO_HANDSHAKE] => u64::MAX,
        _ => faults,
    };
    row(&format!("{line}: {faults} faults, {errors:?}"));
    within(count, fewest..=most);
}

/// Returns the flight with which a correct server answers the client; empty if the client is gone.
fn take_flight(victim: &mut Victim) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut server = ServerConnection::new(make_config()).expect("a server");
    while !server.wants_write() {
        match server.read_tls(&mut victim.wire) {
            Ok(1..) => {}
            _ => return bytes,
        }
        if server.process_new_packets().is_err() {
            return bytes;
        }
    }
    while server.wants_write() {
        server.write_tls(&mut bytes).expect("memory takes it");
    }
    bytes
}

const CLOSED: &str = "connection closed during the handshake";
const NO_HANDSHAKE: &str = "no complete TLS handshake within the timeout";

/// A failing handshake: its name, the action of the server after the client's hello (given the flight that it should
/// send), and words of the error.
type Shaken = (&'static str, Does, &'static [&'static str]);

const SHAKEN: [Shaken; 10] = [
    ("closed after the ClientHello", |_, _| After::Close, &[CLOSED]),
    (
        "closed in the middle of the ServerHello",
        |victim, flight| victim.close_after(&flight[..flight.len().min(40)]),
        &[CLOSED],
    ),
    (
        "closed before the end of the flight",
        |victim, flight| victim.close_after(&flight[..flight.len().saturating_sub(1)]),
        // What the client says to the ServerHello is never read.
        &[CLOSED, RESET.1],
    ),
    (
        "reset in the middle of the flight",
        |victim, flight| victim.reset_after(&flight[..flight.len() / 2]),
        &[RESET.1],
    ),
    (
        "another protocol",
        |victim, _| victim.stall_after(b"SSH-2.0-OpenSSH_9.2\r\n"),
        &["the server does not speak TLS on this port"],
    ),
    (
        "a record of a handshake, and no message of one",
        |victim, _| victim.stall_after(&[22, 3, 3, 0, 8, 2, 0, 0, 4, 1, 2, 3, 4]),
        &["received corrupt message"],
    ),
    (
        "an alert",
        |victim, _| victim.stall_after(&[21, 3, 3, 0, 2, 2, 40]),
        &["alert received: handshake_failure (40)"],
    ),
    (
        "an oversize record",
        |victim, _| victim.stall_after(&[22, 3, 3, 0xff, 0xff]),
        &["record longer than TLS allows"],
    ),
    ("never answered", |victim, _| victim.stall(), &[NO_HANDSHAKE]),
    (
        "half a flight",
        |victim, flight| victim.stall_after(&flight[..flight.len() / 2]),
        &[NO_HANDSHAKE],
    ),
];

#[test]
fn a_handshake_that_fails_is_counted_and_the_other_requests_are_answered() {
    SHAKEN.into_iter().for_each(shake);
}

/// A connection that is written one byte at a time.
struct Trickle(TcpStream);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Trickle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.write(&bytes[..bytes.len().min(1)]);
        // So that the bytes come one by one.
        thread::sleep(Duration::from_micros(20));
        sent
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Wire for Trickle {
    fn socket(&self) -> &TcpStream {
        &self.0
    }
}

#[test]
fn a_handshake_and_answers_that_trickle_are_right() {
    let config = make_config();
    for version in ["1.2", "1.3"] {
        for policy in POLICIES {
            for io in ["epoll", "auto"] {
                let server = Faulty::handshakes(2, Arc::clone(&config), |victim| {
                    let socket = victim.wire.socket().try_clone().expect("a descriptor");
                    victim.wire = Box::new(Trickle(socket));
                    After::Keep
                });
                let line = format!("--tls {version} --io {io} --connection {policy}");
                let report = server.reported(&format!("-n 40 -k -c 4 -t 1 -T 30s {line}"));
                assert!(report.results.errors.is_empty(), "{line}: {:?}", report.results.errors);
                assert_eq!(report.results.counts.completed_whole, ASKED, "{line}");
                assert!(server.faults() > 0, "{line}");
            }
        }
    }
}

fn close_below(victim: &mut Victim, bytes: &[u8]) -> After {
    victim.send_below(bytes);
    After::Close
}

fn stall_below(victim: &mut Victim, bytes: &[u8]) -> After {
    victim.send_below(bytes);
    victim.stall()
}

fn strange_record(victim: &mut Victim, head: &[u8]) -> After {
    stall_below(victim, &[head, &[7; 40]].concat())
}

const fn tls(words: &'static str) -> Error {
    (ErrorKind::Tls, words)
}

const INSIDE: Error = tls("connection closed inside a record");
const OVERSIZE: Error = tls("record longer than TLS allows");
const BAD_MAC: Error = tls("record failed its authentication (bad record MAC)");
const NO_RECORD: Error = tls("bytes that are no TLS record");
const CUT_OFF: Error = (
    ErrorKind::ClosedEarly,
    "closed without close_notify after content without a length: it may be cut off",
);
const HALF_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Le";
const SHORT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";

/// Faults after a handshake: name, action of the server with its bytes, and error. Those between records are detected
/// by HTTP.
#[rustfmt::skip]
const BROKEN: [(&str, Does, &[u8], Error); 8] = [
    ("closed inside a record", close_below, &[23, 3, 3, 0, 100, 1, 2, 3], INSIDE),
    ("an oversize record", stall_below, &[23, 3, 3, 0xff, 0xff, 1, 2, 3], OVERSIZE),
    ("a record of somebody else", strange_record, &[23, 3, 3, 0, 40], BAD_MAC),
    ("an answer in clear", stall_below, weir_testkit::faulty::RIGHT, NO_RECORD),
    ("closed without an answer", Victim::close_after, b"", CLOSED_UNANSWERED),
    ("closed in the middle of content", Victim::close_after, SHORT, CLOSED_EARLY),
    // RFC 9112 §9.8.
    ("content until the close, and no close_notify", Victim::close_after, TO_THE_CLOSE, CUT_OFF),
    ("reset in the middle of a head", Victim::reset_after, HALF_HEAD, RESET),
];

/// Tests the fault on each [`EACH`]-th request over TLS, by both kinds of load.
#[test]
fn a_fault_behind_a_handshake_is_counted_by_its_kind() {
    let config = make_config();
    for (name, does, bytes, error) in BROKEN {
        meet(
            name,
            "-k",
            || {
                Faulty::secure_requests(EACH, Arc::clone(&config), move |victim| {
                    does(victim, bytes)
                })
            },
            |report| assert_lost(report, error),
        );
    }
}

#[test]
fn content_until_the_close_is_whole_with_close_notify() {
    let config = make_config();
    for io in ["epoll", "auto"] {
        for version in ["1.2", "1.3"] {
            let server = Faulty::secure_requests(1, Arc::clone(&config), |victim| {
                victim.farewell_after(TO_THE_CLOSE)
            });
            let line = format!("-n 40 -k -c 4 -t 1 --io {io} --tls {version}");
            let report = server.reported(&line);
            assert!(report.results.errors.is_empty(), "{line}: {:?}", report.results.errors);
            assert_eq!(report.results.counts.completed_whole, ASKED, "{line}");
        }
    }
}

#[test]
fn no_handshake_ever() {
    let server = Faulty::handshakes(1, make_config(), |victim| {
        take_flight(victim);
        victim.send(&[21, 3, 3, 0, 2, 2, 80]);
        victim.stall()
    });
    let words = "alert received: internal_error (80)";
    for policy in ["keep-alive", "per-request"] {
        let ended = server
            .load(&format!("-q -n 8 -k -c 2 -t 1 --connection {policy}"))
            .with_code(1)
            .says(&[words]);
        ended.stderr.has_none(&["listening"]);
    }
}

/// Returns the largest memory of weir during a load, in KiB, and the report.
fn peak_memory(server: &Faulty, flags: &str) -> (u64, LoadReport) {
    let line = format!("load -q --format json -k -t 1 {flags} {}", server.url());
    let mut load = Running::start(&mut weir(line.split_whitespace()));
    let mut peak = 0;
    while load.is_alive() {
        peak = peak_kib(load.pid()).unwrap_or(peak);
        thread::sleep(Duration::from_millis(2));
    }
    (peak, load.end().document())
}

#[test]
fn memory_is_bounded_whatever_comes() {
    let config = make_config();
    let quiet = Faulty::secure(Arc::clone(&config));
    let (usual, _) = peak_memory(&quiet, "-n 400 -c 4");
    let most = usual + 16 * 1024;
    assert!(usual > 0);
    let flood: [Fault; 3] = [
        // A certificate that never ends, in records of one byte.
        |victim| {
            take_flight(victim);
            let records = [22, 3, 3, 0, 1, 11].repeat(1 << 12);
            while victim.send(&records) {}
            After::Close
        },
        |victim| {
            take_flight(victim);
            victim.send(&[22, 3, 3, 0, 4, 11, 0xff, 0xff, 0xff]);
            let record = [&[22, 3, 3, 0x40, 0][..], &[0; 1 << 14]].concat();
            while victim.send(&record) {}
            After::Close
        },
        // Content in clear, as soon as anybody speaks.
        |victim| {
            let noise = [0x16; 1 << 16];
            while victim.send(&noise) {}
            After::Close
        },
    ];
    for (number, fault) in flood.into_iter().enumerate() {
        row(&format!("flood {number}"));
        let server = Faulty::handshakes(2, Arc::clone(&config), fault);
        let (peak, report) = peak_memory(&server, "-n 40 -c 4 --connection per-request");
        let mut errors = report.results.errors.iter();
        assert!(errors.all(|error| error.kind == ErrorKind::Tls), "{:?}", report.results.errors);
        within(peak, ..most);
    }
    // Far more content than was announced to nobody, then an end in the middle.
    let server = Faulty::secure_requests(2, config, |victim| {
        victim.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n");
        let part = vec![b'x'; 1 << 20];
        for _ in 0..64 {
            victim.send(&part);
        }
        After::Close
    });
    let (peak, report) = peak_memory(&server, "-n 4 -c 1 -T 50s");
    assert!(report.results.counts.received_bytes > 128 << 20);
    assert_eq!(report.results.errors[0].kind, ErrorKind::ClosedEarly);
    within(peak, ..most);
}
