//! Tests of `weir load` with a server that has occasional faults: they are counted by kind, in the words of the code
//! that noticed them, and the other requests are counted as without faults.
//!
//! Each fault is tested with a closed and an open loop.

use std::time::Duration;
use std::{fs, thread};

use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;
use weir_testkit::faulty::{After, Faulty, RIGHT_CONTENT, Victim, start_origin};
use weir_testkit::loads::{Error, Server, only_error};
use weir_testkit::program::{HasAll, Running, behind, row, within};

use crate::load_endless::flood;

/// Requests of each trial.
pub(crate) const ASKED: u64 = 40;

/// Period of faults: one request in so many has one.
pub(crate) const EACH: u64 = 5;

/// Number of faults in each trial.
const FAULTS: u64 = ASKED / EACH;

/// The two kinds of load, each of [`ASKED`] requests.
pub(crate) const LOADS: [&str; 2] = ["-n 40", "-R 80 -d 500ms"];

/// Timeout for answers that come: a busy machine may be slow.
const LONG: &str = "-T 30s";
/// Timeout for answers that stall: on a busy machine, others must not take as long.
const STALL: &str = "-T 1s";

/// Errors of the engine, and one of the kernel.
pub(crate) const TIMEOUT: Error = (ErrorKind::Timeout, "no complete response within the timeout");
pub(crate) const CLOSED_EARLY: Error =
    (ErrorKind::ClosedEarly, "closed in the middle of the response");
pub(crate) const CLOSED_UNANSWERED: Error =
    (ErrorKind::ClosedUnanswered, "closed before any byte of the response");
pub(crate) const NO_HTTP: Error = malformed("status line is not HTTP/1.x and three digits");
const HEAD_TOO_LARGE: Error = (ErrorKind::HeadTooLarge, "head is longer than 1048576 bytes");
pub(crate) const RESET: Error = (ErrorKind::Receive, "Connection reset by peer (os error 104)");

pub(crate) const fn malformed(words: &'static str) -> Error {
    (ErrorKind::Malformed, words)
}

pub(crate) type Fault = fn(&mut Victim) -> After;

/// A fault that uses some bytes.
pub(crate) type Does = fn(&mut Victim, &[u8]) -> After;

/// Tests a server with a fault on each [`EACH`]-th request, by both kinds of load.
pub(crate) fn meet(
    name: &str,
    more: &str,
    start: impl Fn() -> Faulty,
    check: impl Fn(&LoadReport),
) {
    for load in LOADS {
        row(&format!("{name}, {load}"));
        let server = start();
        let timeout = if more.contains("-T") { "" } else { LONG };
        let (report, ended) = server.report(&format!("{load} -c 4 -t 1 {more} {timeout}"));
        assert_eq!(ended.with_code(0).stderr, "", "{load}");
        assert_eq!(report.outcome, "complete", "{load}");
        assert_eq!((server.faults(), server.request_count()), (FAULTS, ASKED), "{load}");
        check(&report);
    }
}

/// Returns a function that starts a server with the fault on each [`EACH`]-th request.
fn faulty(does: Does, bytes: &'static [u8]) -> impl Fn() -> Faulty {
    move || Faulty::requests(EACH, move |victim| does(victim, bytes))
}

/// Checks that every fault is one error of this kind, and costs one answer.
#[track_caller]
pub(crate) fn assert_lost(report: &LoadReport, (kind, words): Error) {
    assert_eq!(only_error(report), (kind, words, FAULTS));
    let answered = ASKED - FAULTS;
    assert_eq!(report.results.counts.completed_whole, answered);
    assert_eq!(report.results.counts.content_bytes, answered * RIGHT_CONTENT);
    assert_eq!(report.results.response_time.count, answered);
    let (status, count) = (report.results.statuses[0].status, report.results.statuses[0].count);
    assert_eq!((status, count, report.results.statuses.len()), (200, answered, 1));
    let of_seconds: u64 = report.over_time.iter().map(|second| second.errors).sum();
    assert_eq!(of_seconds, FAULTS, "the figures over time know of them");
    let reasons = &report.validity;
    assert!(!reasons.is_empty(), "a fifth has failed, and nobody minds");
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n";
const HALF_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Le";
const SHORT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi";
pub(crate) const TO_THE_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi";
const NO_CHUNKS: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello";
const ZEROS: &[u8] = b"HTTP/1.1 200 OK\r\n\0\0\0\0\r\n\r\n";
const NO_FIELD: Error = malformed("field line is not a name and a colon");
const BROKEN: Error = malformed("chunked content is broken");

/// Faults that cost an answer: name, action of the server with its bytes, and error.
#[rustfmt::skip]
const LOST: [(&str, Does, &[u8], Error); 12] = [
    ("reset in a head", Victim::reset_after, HALF_HEAD, RESET),
    ("reset in content", Victim::reset_after, SHORT, RESET),
    ("closed in a head", Victim::close_after, HALF_HEAD, CLOSED_EARLY),
    ("closed in content", Victim::close_after, SHORT, CLOSED_EARLY),
    ("closed", Victim::close_after, b"", CLOSED_UNANSWERED),
    ("half closed", |victim, _| victim.half_close(), b"", CLOSED_UNANSWERED),
    ("noise", noise, b"", NO_HTTP),
    ("zeros among the fields", Victim::stall_after, ZEROS, NO_FIELD),
    ("chunks that are none", Victim::stall_after, NO_CHUNKS, BROKEN),
    ("fields for ever", fields, b"X-Field: value\r\n", HEAD_TOO_LARGE),
    ("a field for ever", long_field, b"X-Field: ", HEAD_TOO_LARGE),
    // Of interest, and so remembered up to the limit.
    ("a field of interest for ever", long_field, b"Connection: ", HEAD_TOO_LARGE),
];

fn noise(victim: &mut Victim, _: &[u8]) -> After {
    let noise: Vec<u8> = (0..5000_u32).map(|n| ((n * n) >> 3) as u8 | 0x80).collect();
    victim.stall_after(&noise)
}

fn fields(victim: &mut Victim, field: &[u8]) -> After {
    flood(victim, HEAD, field)
}

fn long_field(victim: &mut Victim, field: &[u8]) -> After {
    flood(victim, &[HEAD, field].concat(), b"close, ")
}

#[test]
fn a_fault_is_counted_by_its_kind_and_in_the_words_of_whoever_noticed_it() {
    for (name, does, bytes, error) in LOST {
        meet(name, "", faulty(does, bytes), |report| {
            assert_lost(report, error);
            assert!(report.results.counts.reconnects >= FAULTS - 4);
        });
    }
}

/// Answers that never end: name, and action of the server with its bytes.
#[rustfmt::skip]
const STALLED: [(&str, Does, &[u8]); 5] = [
    ("a head", Victim::stall_after, HALF_HEAD),
    ("content shorter than its length", Victim::stall_after, SHORT),
    ("content to the close that never comes", Victim::stall_after, TO_THE_CLOSE),
    ("interim responses for ever", drip, b"HTTP/1.1 100 Continue\r\n\r\n"),
    ("content for ever", endless, b"and so on, "),
];

fn drip(victim: &mut Victim, bytes: &[u8]) -> After {
    while victim.send(bytes) {
        thread::sleep(Duration::from_millis(1));
    }
    After::Close
}

fn endless(victim: &mut Victim, bytes: &[u8]) -> After {
    victim.send(TO_THE_CLOSE);
    drip(victim, bytes)
}

#[test]
fn an_answer_that_never_ends_takes_all_the_time_that_it_is_given() {
    for (name, does, bytes) in STALLED {
        meet(name, STALL, faulty(does, bytes), stalled);
    }
}

#[track_caller]
fn stalled(report: &LoadReport) {
    assert_eq!(report.results.censored.in_flight, FAULTS);
    assert!(report.results.censored.oldest_ns >= 1_000_000_000);
    if report.results.counts.due == 0 {
        return assert_lost(report, TIMEOUT);
    }
    // An open loop's last ones may still be in flight when the drain is over: censored, and no errors.
    assert_eq!(report.results.counts.completed_whole, ASKED - FAULTS);
    let (kind, words, count) = only_error(report);
    assert_eq!((kind, words), TIMEOUT);
    within(count, 1..=FAULTS);
}

#[test]
fn errors_are_told_to_people_too() {
    let server = Faulty::requests(EACH, Victim::reset);
    let ended = server.load(&format!("-q -n {ASKED} -c 4 -t 1")).with_code(0);
    assert_eq!(ended.stderr, "");
    let line = ended
        .stdout
        .lines()
        .find(|line| line.contains(RESET.1))
        .unwrap_or_else(|| panic!("{}", ended.stdout));
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    assert!(numbers.any(|number: u64| number == FAULTS), "{line}");
    ended.stdout.has_all(&["2xx 32", "INVALID"]);
}

#[test]
fn content_longer_than_its_length() {
    // In one piece: later it would be taken for the begin of the next answer.
    let longer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi, there";
    meet("", "", faulty(Victim::stall_after, longer), |report| {
        let words = "bytes after the end of the response";
        assert_eq!(only_error(report), (ErrorKind::Unsolicited, words, FAULTS));
        assert_eq!(report.results.counts.completed_whole, ASKED);
        assert_eq!(report.results.counts.content_bytes, ASKED * RIGHT_CONTENT);
    });
}

/// Sends a response byte by byte.
fn trickle(victim: &mut Victim, response: &[u8]) -> After {
    for byte in response {
        victim.send(&[*byte]);
        // So that the bytes come one by one.
        thread::sleep(Duration::from_micros(200));
    }
    After::Keep
}

fn many_fields(victim: &mut Victim, content: &[u8]) -> After {
    let fields: String = (0..65_536).map(|n| format!("X-{n}: y\r\n")).collect();
    let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\n");
    victim.send(&[head.as_bytes(), content].concat());
    After::Keep
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n\
    2;x=y\r\nhi\r\n0\r\nTrailer: t\r\n\r\n";

/// Odd but correct answers: name, action of the server with its bytes, and least number of bytes received.
#[rustfmt::skip]
const RIGHT: [(&str, Does, &[u8], u64); 2] = [
    ("a response that trickles", trickle, CHUNKED, 80),
    ("a response with 65536 fields", many_fields, b"hi", 65_536 * 8 + 1),
];

#[test]
fn answers_that_are_odd_are_right() {
    for (name, does, content, bytes) in RIGHT {
        meet(name, "", faulty(does, content), |report| {
            assert!(report.results.errors.is_empty(), "{:?}", report.results.errors);
            assert_eq!(report.results.counts.completed_whole, ASKED);
            assert_eq!(report.results.response_time.count, ASKED);
            assert_eq!(report.results.counts.content_bytes, ASKED * RIGHT_CONTENT);
            assert_eq!(report.results.counts.reconnects, 0);
            assert!(report.results.counts.received_bytes >= FAULTS * bytes);
        });
    }
}

/// Returns shell commands that enter a control group, of either version, with a limit on tasks.
fn few_tasks(most: u32) -> String {
    format!(
        "for group in /sys/fs/cgroup/pids/weir-few-{most} /sys/fs/cgroup/weir-few-{most}; do \
         mkdir -p $group && echo {most} >$group/pids.max && echo $$ >$group/cgroup.procs && break; \
         rmdir $group; done 2>/dev/null"
    )
}

#[test]
fn a_thread_that_cannot_start_is_the_end_and_no_bug() {
    let server = start_origin();
    let mut ended_early = 0;
    // Of four threads that send, and some beside them.
    for most in 2..=9 {
        row(&format!("{most} tasks"));
        let line = format!("load -t 4 -c 8 -d 200ms {}", server.url());
        let ended = Running::start(&mut behind(&few_tasks(most), &line)).end();
        ["pids/", ""]
            .map(|tree| format!("/sys/fs/cgroup/{tree}weir-few-{most}"))
            .iter()
            .for_each(|group| drop(fs::remove_dir(group)));
        let code = ended.code;
        assert!(matches!(code, Some(0 | 1)), "{code:?}: {}", ended.stderr);
        if code == Some(1) {
            ended_early += 1;
            ended.stderr.has("Resource temporarily unavailable");
            ended.stderr.has_none(&["a bug in weir"]);
        }
    }
    if ended_early == 0 {
        println!("skipped: no control groups may be made here");
    }
}

#[test]
fn limits_of_the_process_are_errors_or_an_orderly_end() {
    let server = start_origin();
    let folder = tempfile::tempdir().expect("a folder");
    let result = folder.path().join("result.json");
    let line = format!("load -q -n 1 -o {} {}", result.display(), server.url());
    Running::start(&mut behind("ulimit -f 0", &line)).end().with_code(1).says(&["File too large"]);
    // Of CPU time, softly: what was measured until then is reported.
    let line = format!("load -q -c 8 -d 60s {}", server.url());
    let ended = Running::start(&mut behind("ulimit -S -t 1", &line)).end();
    ended.with_code(130).stdout.has("interrupted");
}

/// Servers that answer wrongly every time, whatever comes first: the cause is told, and no header that they might demand.
#[test]
fn what_is_wrong_with_every_answer_is_said() {
    const SWITCHED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
    for (response, words) in [
        (SHORT, CLOSED_EARLY.1),
        (HALF_HEAD, CLOSED_EARLY.1),
        (NO_CHUNKS, BROKEN.1),
        (SWITCHED, "101"),
    ] {
        let server = Faulty::requests(1, move |victim| victim.close_after(response));
        let (_, ended) = server.report("-n 4 -c 2 -t 1");
        let stderr = ended.with_code(1).stderr;
        stderr.has_all(&["not one request was answered: ", words]);
        stderr.has_none(&["PROXY"]);
    }
}
