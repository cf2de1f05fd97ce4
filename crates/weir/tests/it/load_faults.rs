//! `weir load` against a server that is right most of the time: what went wrong is counted by its
//! kind and in the words of whoever noticed it, and the rest is counted as if nothing had been.
//!
//! Each fault is met by a closed and by an open loop.

use std::thread;
use std::time::Duration;

use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;

use crate::faulty::{After, Faulty, RIGHT_CONTENT, Victim};
use crate::load::{only_error, report};
use crate::load_endless::flood;
use crate::program::{HasAll, row, run};

/// Requests of each trial.
pub(crate) const ASKED: u64 = 40;

/// One of so many meets the fault.
pub(crate) const EACH: u64 = 5;

/// How many do.
const FAULTS: u64 = ASKED / EACH;

/// The two kinds of load, each of [`ASKED`] requests.
pub(crate) const LOADS: [&str; 2] = ["-n 40", "-R 80 -d 500ms"];

/// As long as a stalled answer is waited for: others must not take so long on a busy machine.
const STALL: &str = "-T 500ms";

/// Messages of the engine, and one of the kernel.
pub(crate) const TIMEOUT: &str = "no complete response within the timeout";
pub(crate) const CLOSED_EARLY: &str = "closed in the middle of the response";
pub(crate) const CLOSED_UNANSWERED: &str = "closed before any byte of the response";
pub(crate) const HEAD_TOO_LARGE: &str = "head is longer than 1048576 bytes";
pub(crate) const RESET: &str = "Connection reset by peer (os error 104)";

pub(crate) type Fault = fn(&mut Victim) -> After;

/// Loads a server of which each [`EACH`]-th request meets `fault`, in both ways.
pub(crate) fn meet(name: &str, more: &str, fault: Fault, check: impl Fn(&Faulty, &LoadReport)) {
    for load in LOADS {
        row(&format!("{name}, {load}"));
        let server = Faulty::requests(EACH, fault);
        let (report, ended) = report(&format!("{load} -c 4 -t 1 {more} {}", server.url()));
        let ended = ended.with_code(0);
        assert_eq!(ended.stderr, "", "{load}");
        assert_eq!(report.outcome, "complete", "{load}");
        assert_eq!(server.faults(), FAULTS, "{load}");
        assert_eq!(server.seen(), ASKED, "{load}");
        check(&server, &report);
    }
}

/// Every fault is one error of this kind, and costs one answer.
#[track_caller]
pub(crate) fn lost(report: &LoadReport, kind: ErrorKind, words: &str) {
    assert_eq!(only_error(report), (kind, words, FAULTS));
    let answered = ASKED - FAULTS;
    assert_eq!(report.counts.completed_whole, answered);
    assert_eq!(report.counts.content_bytes, answered * RIGHT_CONTENT);
    assert_eq!(report.response_time.count, answered);
    let (status, count) = (report.statuses[0].status, report.statuses[0].count);
    assert_eq!((status, count, report.statuses.len()), (200, answered, 1));
    let of_seconds: u64 = report.over_time.iter().map(|second| second.errors).sum();
    assert_eq!(of_seconds, FAULTS, "the figures over time know of them");
    let seen = &report.validity;
    assert!(!seen.is_empty(), "a fifth has failed, and nobody minds");
}

/// A fault that costs an answer: its name, what the server does, and the error.
type Lost = (&'static str, Fault, ErrorKind, &'static str);

const LOST: [Lost; 12] = [
    (
        "reset in the middle of a head",
        |victim| victim.reset_after(b"HTTP/1.1 200 OK\r\nContent-Le"),
        ErrorKind::Receive,
        RESET,
    ),
    (
        "reset in the middle of content",
        |victim| victim.reset_after(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
        ErrorKind::Receive,
        RESET,
    ),
    (
        "closed in the middle of a head",
        |victim| victim.close_after(b"HTTP/1.1 200 OK\r\nContent-Le"),
        ErrorKind::ClosedEarly,
        CLOSED_EARLY,
    ),
    (
        "content shorter than its length",
        |victim| victim.close_after(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi"),
        ErrorKind::ClosedEarly,
        CLOSED_EARLY,
    ),
    (
        "closed without an answer",
        |_| After::Close,
        ErrorKind::ClosedUnanswered,
        CLOSED_UNANSWERED,
    ),
    (
        "half closed without an answer",
        Victim::half_close,
        ErrorKind::ClosedUnanswered,
        CLOSED_UNANSWERED,
    ),
    (
        "noise",
        |victim| {
            let noise: Vec<u8> = (0..5000_u32).map(|n| ((n * n) >> 3) as u8 | 0x80).collect();
            victim.stall_after(&noise)
        },
        ErrorKind::Malformed,
        "status line is not HTTP/1.x and three digits",
    ),
    (
        "zeros among the fields",
        |victim| victim.stall_after(b"HTTP/1.1 200 OK\r\n\0\0\0\0\r\n\r\n"),
        ErrorKind::Malformed,
        "field line is not a name and a colon",
    ),
    (
        "chunks that are none",
        |victim| victim.stall_after(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello"),
        ErrorKind::Malformed,
        "chunked content is broken",
    ),
    (
        "fields for ever",
        |victim| flood(victim, b"HTTP/1.1 200 OK\r\n", b"X-Field: value\r\n"),
        ErrorKind::HeadTooLarge,
        HEAD_TOO_LARGE,
    ),
    (
        "a field for ever",
        |victim| flood(victim, b"HTTP/1.1 200 OK\r\nX-Field: ", b"v"),
        ErrorKind::HeadTooLarge,
        HEAD_TOO_LARGE,
    ),
    (
        // Of interest, and so remembered up to the limit.
        "a field of interest for ever",
        |victim| flood(victim, b"HTTP/1.1 200 OK\r\nConnection: ", b"close, "),
        ErrorKind::HeadTooLarge,
        HEAD_TOO_LARGE,
    ),
];

#[test]
fn a_fault_is_counted_by_its_kind_and_in_the_words_of_whoever_noticed_it() {
    for (name, fault, kind, words) in LOST {
        meet(name, "", fault, |_, report| {
            lost(report, kind, words);
            assert!(report.counts.reconnects >= FAULTS - 4);
        });
    }
}

/// Answers that never end, and what the server does.
const STALLED: [(&str, Fault); 5] = [
    ("a head", |victim| {
        victim.stall_after(b"HTTP/1.1 200 OK\r\nContent-Le")
    }),
    ("content shorter than its length", |victim| {
        victim.stall_after(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi")
    }),
    ("content to the close that never comes", |victim| {
        victim.stall_after(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi")
    }),
    ("interim responses for ever", |victim| {
        while victim.send(b"HTTP/1.1 100 Continue\r\n\r\n") {
            thread::sleep(Duration::from_millis(1));
        }
        After::Close
    }),
    ("content for ever", |victim| {
        victim.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        while victim.send(b"and so on, ") {
            thread::sleep(Duration::from_millis(1));
        }
        After::Close
    }),
];

#[test]
fn an_answer_that_never_ends_takes_all_the_time_that_it_is_given() {
    for (name, fault) in STALLED {
        meet(name, STALL, fault, stalled);
    }
}

#[track_caller]
fn stalled(_: &Faulty, report: &LoadReport) {
    assert_eq!(report.censored.in_flight, FAULTS);
    assert!(report.censored.oldest_ns >= 500_000_000);
    if report.counts.due == 0 {
        lost(report, ErrorKind::Timeout, TIMEOUT);
        return;
    }
    // An open loop's last ones may still be in flight when the drain is over: censored, and no errors.
    assert_eq!(report.counts.completed_whole, ASKED - FAULTS);
    let (kind, words, count) = only_error(report);
    assert_eq!((kind, words), (ErrorKind::Timeout, TIMEOUT));
    assert!((1..=FAULTS).contains(&count), "{count}");
}

#[test]
fn errors_are_told_to_people_too() {
    let server = Faulty::requests(EACH, Victim::reset);
    let ended = run(&format!("load -q -n {ASKED} -c 4 -t 1 {}", server.url())).with_code(0);
    assert_eq!(ended.stderr, "");
    let line = ended.stdout.lines().find(|line| line.contains(RESET));
    let line = line.unwrap_or_else(|| panic!("{}", ended.stdout));
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    assert!(numbers.any(|number: u64| number == FAULTS), "{line}");
    ended.stdout.has_all(&["2xx 32", "INVALID"]);
}

#[test]
fn content_longer_than_its_length() {
    // In one piece: later it would be taken for the begin of the next answer.
    let fault: Fault =
        |victim| victim.stall_after(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi, there");
    meet("", "", fault, |_, report| {
        let words = "bytes after the end of the response";
        assert_eq!(only_error(report), (ErrorKind::Unsolicited, words, FAULTS));
        assert_eq!(report.counts.completed_whole, ASKED);
        assert_eq!(report.counts.content_bytes, ASKED * RIGHT_CONTENT);
    });
}

/// Answers that are odd, and right; and how many bytes they are at least.
const RIGHT: [(&str, Fault, u64); 2] = [
    (
        "a response that trickles",
        |victim| {
            let response = b"HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n\
                2;x=y\r\nhi\r\n0\r\nTrailer: t\r\n\r\n";
            for byte in response {
                victim.send(&[*byte]);
                // So that the bytes come one by one.
                thread::sleep(Duration::from_micros(200));
            }
            After::Keep
        },
        80,
    ),
    (
        "a response with 65536 fields",
        |victim| {
            let fields: String = (0..65_536).map(|n| format!("X-{n}: y\r\n")).collect();
            let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nhi");
            victim.send(head.as_bytes());
            After::Keep
        },
        65_536 * 8 + 1,
    ),
];

#[test]
fn answers_that_are_odd_are_right() {
    for (name, fault, bytes) in RIGHT {
        meet(name, "", fault, |_, report| {
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            assert_eq!(report.counts.completed_whole, ASKED);
            assert_eq!(report.response_time.count, ASKED);
            assert_eq!(report.counts.content_bytes, ASKED * RIGHT_CONTENT);
            assert_eq!(report.counts.reconnects, 0);
            assert!(report.counts.received_bytes >= FAULTS * bytes);
        });
    }
}
