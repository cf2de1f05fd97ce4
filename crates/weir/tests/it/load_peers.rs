//! `weir load` against peers that do what proxies and servers do on bad days.

use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;
use weir_model::record::Validity;

use crate::load::{only_error, report, reported};
use crate::load_faults::{CLOSED_EARLY, CLOSED_UNANSWERED, RESET, TIMEOUT};
use crate::peer::{Exchange, Peer};

/// How often each was asked, over one connection at a time, so that counts are exact.
const ASKED: u64 = 5;

/// The document about a peer that answers every request.
fn answered(peer: &Peer) -> LoadReport {
    let report = reported(&format!("-n {ASKED} -c 1 {}", peer.url()));
    assert_eq!(report.counts.completed_whole, ASKED, "{:?}", report.errors);
    assert_eq!(report.response_time.count, ASKED);
    report
}

#[test]
fn responses_of_every_framing_are_understood() {
    // The response, its status, the bytes of content, and whether the connection is kept: where it is not,
    // the server would go on, and it is the client who has to keep the rule.
    #[rustfmt::skip]
    let rows: [(&[u8], _); 7] = [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
              5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: x\r\n\r\n",
            (200, 11, true),
        ),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
              HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            (200, 2, true),
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, 0, true)),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1024\r\n\r\n", (304, 0, true)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, 0, true)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi", (200, 2, false)),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", (200, 2, false)),
    ];
    for (response, expected) in rows {
        let report = answered(&Peer::answering(response));
        let response = response.escape_ascii();
        assert!(report.errors.is_empty(), "{response}: {:?}", report.errors);
        let [all] = &report.statuses[..] else {
            panic!("{response}: {:?}", report.statuses)
        };
        assert_eq!(all.count, ASKED, "{response}");
        let kept = report.counts.reconnects == 0;
        let seen = (all.status, report.counts.content_bytes / ASKED, kept);
        assert_eq!(seen, expected, "{response}");
    }
}

#[test]
fn content_that_ends_with_the_connection() {
    for response in [
        &b"HTTP/1.1 200 OK\r\n\r\nto the end"[..],
        b"HTTP/1.0 200 OK\r\n\r\nto the end",
    ] {
        let report = answered(&Peer::answering_once(response));
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        assert_eq!(report.counts.content_bytes, ASKED * 10);
        assert!(report.counts.reconnects >= ASKED - 1);
    }
}

#[test]
fn a_response_in_single_bytes_with_many_and_long_fields() {
    let fields: String = (0..200).map(|n| format!("X-Field-{n}: {n}\r\n")).collect();
    let long = "v".repeat(20_000);
    let response =
        format!("HTTP/1.1 200 OK\r\n{fields}X-Long: {long}\r\nContent-Length: 3\r\n\r\nabc");
    let peer = Peer::start(move |exchange| {
        while exchange.read_request() {
            let (first, rest) = response.as_bytes().split_at(300);
            first.chunks(1).for_each(|byte| exchange.send(byte));
            exchange.send(rest);
        }
    });
    let report = answered(&peer);
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    assert_eq!(report.counts.content_bytes, ASKED * 3);
}

/// A peer that never answers rightly: what it does after a request, and the one error with its words and
/// lines on standard error.
type Failing = (fn(&mut Exchange), ErrorKind, &'static str, usize);

const FAILING: [Failing; 8] = [
    (
        Exchange::close,
        ErrorKind::ClosedUnanswered,
        CLOSED_UNANSWERED,
        1,
    ),
    (
        |exchange| exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
        ErrorKind::ClosedEarly,
        CLOSED_EARLY,
        1,
    ),
    (
        |exchange| {
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
        },
        ErrorKind::ClosedEarly,
        CLOSED_EARLY,
        1,
    ),
    (
        |exchange| exchange.send(b"HTTP/1.1 2"),
        ErrorKind::ClosedEarly,
        CLOSED_EARLY,
        1,
    ),
    (Exchange::reset, ErrorKind::Receive, RESET, 1),
    (
        |exchange| exchange.send(b"SSH-2.0-OpenSSH_9.2\r\n"),
        ErrorKind::Malformed,
        "status line is not HTTP/1.x and three digits",
        1,
    ),
    (
        // The alert `record_overflow`, as a server sends it that read a request as a TLS record. Here is
        // a hint.
        |exchange| exchange.send(b"\x15\x03\x03\x00\x02\x02\x16"),
        ErrorKind::Malformed,
        "the port speaks TLS, not http in clear",
        2,
    ),
    (Exchange::swallow, ErrorKind::Timeout, TIMEOUT, 1),
];

#[test]
fn a_peer_that_never_answers_rightly_is_the_one_error() {
    for (does, kind, words, lines) in FAILING {
        let peer = Peer::start(move |exchange| {
            if exchange.read_request() {
                does(exchange);
            }
        });
        let is_silent = kind == ErrorKind::Timeout;
        let more = if is_silent { "-T 50ms" } else { "" };
        let (report, ended) = report(&format!("-n {ASKED} -c 1 {more} {}", peer.url()));
        let stderr = ended.with_code(1).stderr;
        assert_eq!(only_error(&report), (kind, words, ASKED));
        let said = format!("weir: {}: not one request was answered: ", peer.url());
        assert!(stderr.starts_with(&said), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
        assert_eq!(stderr.contains("\nhint: "), lines == 2, "{stderr}");
        assert_eq!(stderr.lines().count(), lines, "{stderr}");
        assert_eq!(worst(&report), Some(Validity::Invalid));
        assert_eq!(report.counts.completed_whole, 0);
        assert_eq!(report.response_time.count, 0);
        assert!(report.counts.reconnects >= ASKED - 1, "{words}");
        let in_flight = if is_silent { ASKED } else { 0 };
        assert_eq!(report.censored.in_flight, in_flight, "{words}");
        assert!(!is_silent || report.censored.oldest_ns >= 50_000_000);
    }
}

fn worst(report: &LoadReport) -> Option<Validity> {
    report.validity.iter().map(|reason| reason.validity).max()
}

#[test]
fn bytes_that_nobody_asked_for() {
    let peer = Peer::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi, there");
    let report = answered(&peer);
    let (kind, _, count) = only_error(&report);
    assert_eq!((kind, count), (ErrorKind::Unsolicited, ASKED));
}

#[test]
fn closed_between_requests_is_answered_or_an_error_and_never_lost() {
    // The next request may cross the end of the connection under way (RFC 9112 §9.5).
    let peer = Peer::answering_once(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    let (report, _) = report(&format!("-n 50 -c 1 {}", peer.url()));
    let failed: u64 = report.errors.iter().map(|error| error.count).sum();
    let done = report.counts.completed_whole;
    assert_eq!(done + failed, 50, "{:?}", report.errors);
    assert!(done >= 25, "{:?}", report.errors);
    assert!(report.counts.reconnects >= done - 1);
}

#[test]
fn failures_are_counted_by_status() {
    let busy = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let report = answered(&Peer::answering(busy));
    let all = &report.statuses[0];
    assert_eq!((all.status, all.count), (503, ASKED));
    assert_eq!(worst(&report), Some(Validity::Invalid));
}
