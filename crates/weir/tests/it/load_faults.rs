//! `weir load` against a server that is right most of the time: what went wrong is counted by its
//! kind and in the words of whoever noticed it, and the rest is counted as if nothing had been.
//!
//! Each fault is met by a closed and by an open loop.

use std::thread;
use std::time::Duration;

use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;

use crate::faulty::{After, Faulty, RIGHT_CONTENT, Victim};
use crate::load::report;
use crate::program::run;

/// Requests of each trial.
pub(crate) const ASKED: u64 = 40;

/// One of so many meets the fault.
pub(crate) const EACH: u64 = 5;

/// How many do.
const FAULTS: u64 = ASKED / EACH;

/// The two kinds of load, each of [`ASKED`] requests.
pub(crate) const LOADS: [&str; 2] = ["-n 40", "-R 80 -d 500ms"];

/// As long as a stalled answer is waited for: others must not take so long on a busy machine.
pub(crate) const STALL: &str = "-T 500ms";

/// The words of the engine.
pub(crate) const TIMEOUT: &str = "no complete response within the timeout";

pub(crate) type Fault = fn(&mut Victim) -> After;

/// Loads a server of which each [`EACH`]-th request meets `fault`, in both ways.
pub(crate) fn meet(more: &str, fault: Fault, check: impl Fn(&Faulty, &LoadReport)) {
    for load in LOADS {
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
    let errors = &report.errors;
    let [error] = &errors[..] else {
        panic!("{errors:?}")
    };
    assert_eq!((error.kind, &*error.words), (kind, words));
    assert_eq!(error.count, FAULTS);
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

#[test]
fn reset_in_the_middle_of_a_head() {
    let fault: Fault = |victim| {
        victim.send(b"HTTP/1.1 200 OK\r\nContent-Le");
        victim.reset()
    };
    meet("", fault, |_, report| {
        lost(
            report,
            ErrorKind::Receive,
            "Connection reset by peer (os error 104)",
        );
        assert!(report.counts.reconnects >= FAULTS - 4);
    });
}

#[test]
fn errors_are_told_to_people_too() {
    let server = Faulty::requests(EACH, Victim::reset);
    let ended = run(&format!("load -q -n {ASKED} -c 4 -t 1 {}", server.url())).with_code(0);
    assert_eq!(ended.stderr, "");
    let words = "Connection reset by peer (os error 104)";
    let line = ended.stdout.lines().find(|line| line.contains(words));
    let line = line.unwrap_or_else(|| panic!("{}", ended.stdout));
    let numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    assert!(
        numbers.into_iter().any(|number: u64| number == FAULTS),
        "{line}"
    );
    assert!(ended.stdout.contains("2xx 32"), "{}", ended.stdout);
    assert!(ended.stdout.contains("INVALID"), "{}", ended.stdout);
}

#[test]
fn reset_in_the_middle_of_content() {
    let fault: Fault = |victim| {
        victim.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        victim.reset()
    };
    meet("", fault, |_, report| {
        lost(
            report,
            ErrorKind::Receive,
            "Connection reset by peer (os error 104)",
        );
    });
}

#[test]
fn closed_in_the_middle_of_a_head() {
    let fault: Fault = |victim| {
        victim.send(b"HTTP/1.1 200 OK\r\nContent-Le");
        After::Close
    };
    meet("", fault, |_, report| {
        lost(
            report,
            ErrorKind::ClosedEarly,
            "closed in the middle of the response",
        );
    });
}

#[test]
fn closed_without_an_answer() {
    for fault in [(|_: &mut Victim| After::Close) as Fault, |victim| {
        victim.half_close()
    }] {
        meet("", fault, |_, report| {
            let words = "closed before any byte of the response";
            lost(report, ErrorKind::ClosedUnanswered, words);
        });
    }
}

#[test]
fn a_head_that_stalls() {
    let fault: Fault = |victim| {
        victim.send(b"HTTP/1.1 200 OK\r\nContent-Le");
        victim.stall()
    };
    meet(STALL, fault, stalled);
}

#[test]
fn content_shorter_than_its_length() {
    let fault: Fault = |victim| {
        victim.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi");
        victim.stall()
    };
    meet(STALL, fault, stalled);
    let fault: Fault = |victim| {
        victim.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi");
        After::Close
    };
    meet("", fault, |_, report| {
        lost(
            report,
            ErrorKind::ClosedEarly,
            "closed in the middle of the response",
        );
    });
}

#[test]
fn content_to_the_close_that_never_comes() {
    let fault: Fault = |victim| {
        victim.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi");
        victim.stall()
    };
    meet(STALL, fault, stalled);
}

/// Each fault has taken all the time that it was given.
#[track_caller]
pub(crate) fn stalled(_: &Faulty, report: &LoadReport) {
    assert_eq!(report.censored.in_flight, FAULTS);
    assert!(report.censored.oldest_ns >= 500_000_000);
    if report.counts.due == 0 {
        lost(report, ErrorKind::Timeout, TIMEOUT);
        return;
    }
    // An open loop's last ones may still be in flight when the drain is over: censored, and no errors.
    assert_eq!(report.counts.completed_whole, ASKED - FAULTS);
    let [error] = &report.errors[..] else {
        panic!("{:?}", report.errors)
    };
    assert_eq!((error.kind, &*error.words), (ErrorKind::Timeout, TIMEOUT));
    assert!((1..=FAULTS).contains(&error.count), "{error:?}");
}

#[test]
fn content_longer_than_its_length() {
    // In one piece: later it would be taken for the begin of the next answer.
    let fault: Fault = |victim| {
        victim.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi, there");
        victim.stall()
    };
    meet("", fault, |_, report| {
        let [error] = &report.errors[..] else {
            panic!("{:?}", report.errors)
        };
        assert_eq!((error.kind, error.count), (ErrorKind::Unsolicited, FAULTS));
        assert_eq!(error.words, "bytes after the end of the response");
        assert_eq!(report.counts.completed_whole, ASKED);
        assert_eq!(report.counts.content_bytes, ASKED * RIGHT_CONTENT);
    });
}

/// Answers that are odd, and right.
#[track_caller]
fn right(report: &LoadReport) {
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    assert_eq!(report.counts.completed_whole, ASKED);
    assert_eq!(report.response_time.count, ASKED);
    assert_eq!(report.counts.content_bytes, ASKED * RIGHT_CONTENT);
    assert_eq!(report.counts.reconnects, 0);
}

#[test]
fn a_response_that_trickles() {
    let fault: Fault = |victim| {
        let response = b"HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n\
            2;x=y\r\nhi\r\n0\r\nTrailer: t\r\n\r\n";
        for byte in response {
            victim.send(&[*byte]);
            // So that the bytes come one by one.
            thread::sleep(Duration::from_micros(200));
        }
        After::Keep
    };
    meet("", fault, |_, report| right(report));
}

#[test]
fn a_response_with_65536_fields() {
    let fault: Fault = |victim| {
        let fields: String = (0..65_536).map(|n| format!("X-{n}: y\r\n")).collect();
        let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nhi");
        victim.send(head.as_bytes());
        After::Keep
    };
    meet("", fault, |_, report| {
        right(report);
        assert!(report.counts.received_bytes > FAULTS * 65_536 * 8);
    });
}

#[test]
fn garbage() {
    for (fault, words) in [
        (
            (|victim: &mut Victim| {
                let noise: Vec<u8> = (0..5000_u32).map(|n| ((n * n) >> 3) as u8 | 0x80).collect();
                victim.send(&noise);
                victim.stall()
            }) as Fault,
            "status line is not HTTP/1.x and three digits",
        ),
        (
            |victim| {
                victim.send(b"HTTP/1.1 200 OK\r\n\0\0\0\0\r\n\r\n");
                victim.stall()
            },
            "field line is not a name and a colon",
        ),
        (
            |victim| {
                victim.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello");
                victim.stall()
            },
            "chunked content is broken",
        ),
    ] {
        meet("", fault, |_, report| {
            lost(report, ErrorKind::Malformed, words);
        });
    }
}
