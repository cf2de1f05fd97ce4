//! Tests of `weir load` with peers that behave as proxies and servers do on bad days.

use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;
use weir_model::record::{Observation, Validity};
use weir_testkit::faulty::{After, Faulty, RIGHT, Victim};
use weir_testkit::loads::{Error, Server, only_error};
use weir_testkit::program::HasAll;

use crate::load_faults::{
    CLOSED_EARLY, CLOSED_UNANSWERED, Does, NO_HTTP, RESET, TIMEOUT, malformed,
};

/// Requests to each peer, over one connection at a time, so that counts are exact.
const ASKED: u64 = 5;

/// Returns the report about a peer that answers every request.
fn answered(peer: &Faulty) -> LoadReport {
    let report = peer.reported(&format!("-n {ASKED} -c 1"));
    assert_eq!(report.results.counts.completed_whole, ASKED, "{:?}", report.results.errors);
    assert_eq!(report.results.response_time.count, ASKED);
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
        let report = answered(&Faulty::answering(response));
        let escaped = response.escape_ascii();
        assert!(report.results.errors.is_empty(), "{escaped}: {:?}", report.results.errors);
        let [all] = &report.results.statuses[..] else {
            panic!("{escaped}: {:?}", report.results.statuses)
        };
        assert_eq!(all.count, ASKED, "{escaped}");
        let is_kept = report.results.counts.reconnects == 0;
        let response_seen = (all.status, report.results.counts.content_bytes / ASKED, is_kept);
        assert_eq!(response_seen, expected, "{escaped}");
    }
}

#[test]
fn content_that_ends_with_the_connection() {
    for response in
        [&b"HTTP/1.1 200 OK\r\n\r\nto the end"[..], b"HTTP/1.0 200 OK\r\n\r\nto the end"]
    {
        let report = answered(&Faulty::requests(1, |victim| victim.close_after(response)));
        assert!(report.results.errors.is_empty(), "{:?}", report.results.errors);
        assert_eq!(report.results.counts.content_bytes, ASKED * 10);
        assert!(report.results.counts.reconnects >= ASKED - 1);
    }
}

#[test]
fn a_response_in_single_bytes_with_many_and_long_fields() {
    let fields: String = (0..200).map(|n| format!("X-Field-{n}: {n}\r\n")).collect();
    let long = "v".repeat(20_000);
    let response =
        format!("HTTP/1.1 200 OK\r\n{fields}X-Long: {long}\r\nContent-Length: 3\r\n\r\nabc");
    let peer = Faulty::requests(1, move |victim| {
        let (first, tail) = response.as_bytes().split_at(300);
        first.chunks(1).all(|byte| victim.send(byte));
        victim.send(tail);
        After::Keep
    });
    let report = answered(&peer);
    assert!(report.results.errors.is_empty(), "{:?}", report.results.errors);
    assert_eq!(report.results.counts.content_bytes, ASKED * 3);
}

/// The alert `record_overflow`, as sent by a server that read a request as a TLS record.
const TLS: &[u8] = b"\x15\x03\x03\x00\x02\x02\x16";
const TLS_HERE: Error = malformed("the port speaks TLS, not http in clear");
const HALF: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
const CHUNK: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";

/// Peers that never answer correctly: their action after a request with its bytes, and the only error.
const FAILING: [(Does, &[u8], Error); 8] = [
    (|victim, _| victim.half_close(), b"", CLOSED_UNANSWERED),
    (Victim::close_after, HALF, CLOSED_EARLY),
    (Victim::close_after, CHUNK, CLOSED_EARLY),
    (Victim::close_after, b"HTTP/1.1 2", CLOSED_EARLY),
    (|victim, _| victim.reset(), b"", RESET),
    (Victim::close_after, b"SSH-2.0-OpenSSH_9.2\r\n", NO_HTTP),
    (Victim::close_after, TLS, TLS_HERE),
    (|victim, _| victim.stall(), b"", TIMEOUT),
];

#[test]
fn a_peer_that_never_answers_rightly_is_the_one_error() {
    for (does, bytes, error) in FAILING {
        let peer = Faulty::requests(1, move |victim| does(victim, bytes));
        let is_silent = error == TIMEOUT;
        let more = if is_silent { "-T 50ms" } else { "" };
        let (report, ended) = peer.report(&format!("-n {ASKED} -c 1 {more}"));
        let stderr = ended.with_code(1).stderr;
        let (kind, words) = error;
        assert_eq!(only_error(&report), (kind, words, ASKED));
        let message = format!("weir: {}: not one request was answered: ", peer.url());
        assert!(stderr.starts_with(&message), "{stderr}");
        stderr.has(words);
        // One says what to do.
        let has_hint = error == TLS_HERE;
        assert_eq!(stderr.contains("\nhint: "), has_hint, "{stderr}");
        assert_eq!(stderr.lines().count(), 1 + usize::from(has_hint), "{stderr}");
        assert_eq!(worst(&report), Some(Validity::Invalid));
        assert_eq!(report.results.counts.completed_whole, 0);
        assert_eq!(report.results.response_time.count, 0);
        assert!(report.results.counts.reconnects >= ASKED - 1, "{words}");
        let in_flight = if is_silent { ASKED } else { 0 };
        assert_eq!(report.results.censored.in_flight, in_flight, "{words}");
        assert!(!is_silent || report.results.censored.oldest_ns >= 50_000_000);
    }
}

#[test]
fn a_request_that_failed_is_counted_once_among_all() {
    const BEYOND: &str = "status code outside of 100 to 599 (RFC 9110 §15)";
    const SURPLUS: &str = "bytes after the end of the response";
    // What is answered to every request, how it is asked, and the error.
    let rows: [(&[u8], &str, Error); 4] = [
        (b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nhi", "", (ErrorKind::Unexpected, BEYOND)),
        (
            b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nhi",
            "-e status=200",
            (ErrorKind::Unexpected, BEYOND),
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\nhi", "", (ErrorKind::Unsolicited, SURPLUS)),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            "-m HEAD",
            (ErrorKind::Unsolicited, SURPLUS),
        ),
    ];
    for (response, how, (kind, words)) in rows {
        let peer = Faulty::answering(response);
        let line = format!("-n {ASKED} -c 1 {how}");
        let report = answered_with_errors(&peer, &line);
        assert_eq!(only_error(&report), (kind, words, ASKED), "{line}");
        let mut observations = report.validity.iter().map(|reason| &reason.observation);
        let have_failed = observations.any(|observation| {
            matches!(observation, Observation::Failures { failed: 5, requests: 5, .. })
        });
        assert!(have_failed, "{line}: {:?}", report.validity);
        peer.load(&format!("{line} --fail-if errors>49%")).with_code(3);
    }
}

fn answered_with_errors(peer: &Faulty, line: &str) -> LoadReport {
    let report = peer.reported(line);
    assert_eq!(report.results.counts.completed_whole, ASKED, "{line}");
    report
}

fn worst(report: &LoadReport) -> Option<Validity> {
    report.validity.iter().map(|reason| reason.validity).max()
}

#[test]
fn closed_between_requests_is_answered_or_an_error_and_never_lost() {
    // The next request may cross the end of the connection under way (RFC 9112 §9.5).
    let peer = Faulty::requests(1, |victim| victim.close_after(RIGHT));
    let (report, _) = peer.report("-n 50 -c 1");
    let failed: u64 = report.results.errors.iter().map(|error| error.count).sum();
    let done = report.results.counts.completed_whole;
    assert_eq!(done + failed, 50, "{:?}", report.results.errors);
    assert!(done >= 25, "{:?}", report.results.errors);
    assert!(report.results.counts.reconnects >= done - 1);
}

#[test]
fn failures_are_counted_by_status() {
    let busy = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let report = answered(&Faulty::answering(busy));
    let all = &report.results.statuses[0];
    assert_eq!((all.status, all.count), (503, ASKED));
    assert_eq!(worst(&report), Some(Validity::Invalid));
}
