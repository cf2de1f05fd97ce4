//! `weir load` against peers that do what proxies and servers do on bad days.

use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;
use weir_model::record::Validity;

use crate::load::report;
use crate::peer::Peer;

/// How often each was asked, over one connection at a time, so that counts are exact.
const ASKED: u64 = 5;

/// The document about a peer that answers every request.
fn answered(peer: &Peer) -> LoadReport {
    let (report, ended) = report(&format!("-n {ASKED} -c 1 {}", peer.url()));
    ended.with_code(0);
    assert_eq!(report.counts.completed_whole, ASKED, "{:?}", report.errors);
    assert_eq!(report.response_time.count, ASKED);
    report
}

/// As [`answered`], without errors: status of all, bytes of content of each, and whether the
/// connection was kept.
fn right(response: &'static [u8]) -> (u16, u64, bool) {
    let peer = Peer::answering(response);
    let report = answered(&peer);
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    assert_eq!(report.statuses.len(), 1);
    assert_eq!(report.statuses[0].count, ASKED);
    let kept = report.counts.reconnects == 0;
    (
        report.statuses[0].status,
        report.counts.content_bytes / ASKED,
        kept,
    )
}

/// The one error of a peer that never answers rightly, and the line on standard error.
fn failing(peer: &Peer, more: &str) -> (LoadReport, ErrorKind, String, String) {
    let (report, ended) = report(&format!("-n {ASKED} -c 1 {more} {}", peer.url()));
    let stderr = ended.with_code(1).stderr;
    assert_eq!(report.counts.completed_whole, 0);
    let [error] = &report.errors[..] else {
        panic!("{:?}", report.errors)
    };
    assert_eq!(error.count, ASKED, "{error:?}");
    assert!(
        stderr.starts_with(&format!(
            "weir: {}: not one request was answered: ",
            peer.url()
        )),
        "{stderr}"
    );
    assert!(stderr.contains(&error.words), "{stderr}");
    let worst = report.validity.iter().map(|reason| reason.validity).max();
    assert_eq!(worst, Some(Validity::Invalid));
    let (kind, words) = (error.kind, error.words.clone());
    (report, kind, words, stderr)
}

#[test]
fn chunked_content() {
    let response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: x\r\n\r\n";
    assert_eq!(right(response), (200, 11, true));
}

#[test]
fn interim_responses_are_not_the_response() {
    let response = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    assert_eq!(right(response), (200, 2, true));
}

#[test]
fn responses_without_content() {
    assert_eq!(right(b"HTTP/1.1 204 No Content\r\n\r\n"), (204, 0, true));
    let not_modified = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1024\r\n\r\n";
    assert_eq!(right(not_modified), (304, 0, true));
    let empty = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(right(empty), (200, 0, true));
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
fn a_connection_that_is_not_to_be_kept() {
    for response in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"[..],
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    ] {
        // The server would go on; it is the client who has to keep the rule.
        assert_eq!(right(response), (200, 2, false));
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

#[test]
fn closed_without_an_answer() {
    let peer = Peer::start(|exchange| {
        exchange.read_request();
        exchange.close();
    });
    let (report, kind, words, _) = failing(&peer, "");
    assert_eq!(kind, ErrorKind::ClosedUnanswered);
    assert_eq!(words, "closed before any byte of the response");
    assert!(report.counts.reconnects >= ASKED - 1);
}

#[test]
fn closed_in_the_middle() {
    for begun in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 2",
    ] {
        let (_, kind, _, _) = failing(&Peer::answering_once(begun), "");
        assert_eq!(kind, ErrorKind::ClosedEarly, "{}", begun.escape_ascii());
    }
}

#[test]
fn reset() {
    let peer = Peer::start(|exchange| {
        exchange.read_request();
        exchange.reset();
    });
    let (_, kind, words, _) = failing(&peer, "");
    assert_eq!(kind, ErrorKind::Receive);
    assert_eq!(words, "Connection reset by peer (os error 104)");
}

#[test]
fn not_http() {
    let (_, kind, _, stderr) = failing(&Peer::answering_once(b"SSH-2.0-OpenSSH_9.2\r\n"), "");
    assert_eq!(kind, ErrorKind::Malformed);
    assert!(!stderr.contains("hint:"), "{stderr}");
}

#[test]
fn tls_on_the_port_is_named() {
    // The alert `record_overflow`, as a server sends it that read a request as a TLS record.
    let peer = Peer::answering_once(b"\x15\x03\x03\x00\x02\x02\x16");
    let (_, kind, words, stderr) = failing(&peer, "");
    assert_eq!(kind, ErrorKind::Malformed);
    assert_eq!(words, "the port speaks TLS, not http in clear");
    assert!(stderr.contains("\nhint: "), "{stderr}");
    assert_eq!(stderr.lines().count(), 2, "{stderr}");
}

#[test]
fn never_answered() {
    let peer = Peer::start(crate::peer::Exchange::swallow);
    let (report, kind, words, _) = failing(&peer, "-T 50ms");
    assert_eq!(kind, ErrorKind::Timeout);
    assert_eq!(words, "no complete response within the timeout");
    assert_eq!(report.censored.in_flight, ASKED);
    assert!(report.censored.oldest_ns >= 50_000_000);
    assert_eq!(report.response_time.count, 0);
}

#[test]
fn bytes_that_nobody_asked_for() {
    let peer = Peer::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi, there");
    let report = answered(&peer);
    let [error] = &report.errors[..] else {
        panic!("{:?}", report.errors)
    };
    assert_eq!((error.kind, error.count), (ErrorKind::Unsolicited, ASKED));
}

#[test]
fn closed_between_requests_is_answered_or_an_error_and_never_lost() {
    // The next request may cross the end of the connection under way (RFC 9112 §9.5).
    let peer = Peer::answering_once(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    let (report, _) = report(&format!("-n 50 -c 1 {}", peer.url()));
    let failed: u64 = report.errors.iter().map(|error| error.count).sum();
    assert_eq!(
        report.counts.completed_whole + failed,
        50,
        "{:?}",
        report.errors
    );
    assert!(report.counts.completed_whole >= 25, "{:?}", report.errors);
    assert!(report.counts.reconnects >= report.counts.completed_whole - 1);
}

#[test]
fn failures_are_counted_by_status() {
    let busy = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let report = answered(&Peer::answering(busy));
    assert_eq!(
        (report.statuses[0].status, report.statuses[0].count),
        (503, ASKED)
    );
    let worst = report.validity.iter().map(|reason| reason.validity).max();
    assert_eq!(worst, Some(Validity::Invalid), "{:?}", report.validity);
}
