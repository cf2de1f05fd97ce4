//! Tests of `weir load` with a server whose connections have faults: not read, closed at once, not accepted.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;
use weir_testkit::faulty::{After, Faulty, RIGHT, Victim};
use weir_testkit::loads::{Server, only_error, reported};
use weir_testkit::program::within;

use crate::load_faults::{ASKED, CLOSED_UNANSWERED, Fault, LOADS, TIMEOUT};

#[test]
fn a_server_that_does_not_read() {
    // More than socket buffers take.
    let mut content = tempfile::NamedTempFile::new().unwrap();
    content.write_all(&vec![b'x'; 16 << 20]).unwrap();
    let path = content.path().display();
    for load in ["-n 4", "-R 8 -d 500ms"] {
        let server = Faulty::connections(1, Victim::ignore);
        let more = format!("-c 2 -t 1 -T 200ms -m POST --content-file {path}");
        let (report, ended) = server.report(&format!("{load} {more}"));
        ended.with_code(1);
        let (kind, words, count) = only_error(&report);
        assert_eq!((kind, words), TIMEOUT);
        assert_eq!((count, report.results.censored.in_flight), (4, 4), "{load}");
        assert_eq!(report.results.counts.completed_whole, 0, "{load}");
    }
}

/// Checks that every request was answered or failed. An error of opening a connection costs no request.
#[track_caller]
fn assert_accounted(report: &LoadReport, requests: u64) {
    let (errors, none) = (&report.results.errors, ErrorKind::Connect);
    let failed: u64 =
        errors.iter().filter(|error| error.kind != none).map(|error| error.count).sum();
    assert_eq!(report.results.counts.completed_whole + failed, requests, "{errors:?}");
}

#[test]
fn every_second_connection_is_closed_at_once() {
    // Whether weir hears of the end before it sends, or before the connection is open, is chance.
    let kinds =
        [ErrorKind::Connect, ErrorKind::ClosedUnanswered, ErrorKind::Receive, ErrorKind::Send];
    let ways: [Fault; 3] = [|_| After::Close, Victim::reset, Victim::half_close];
    for fault in ways {
        for load in LOADS {
            // A connection for each request, so that there are many.
            let server = Faulty::connections(2, fault);
            let report = server.reported(&format!("{load} -c 4 -t 1 -H Connection:close"));
            assert!(server.faults() > 0, "{load}");
            assert_accounted(&report, ASKED);
            let mut errors = report.results.errors.iter();
            assert_eq!(errors.find(|error| !kinds.contains(&error.kind)), None);
            assert!(report.results.counts.completed_whole > 0, "{load}");
        }
    }
}

#[test]
fn every_connection_is_closed_at_once() {
    let server = Faulty::connections(1, Victim::half_close);
    let (report, ended) = server.report(&format!("-n {ASKED} -c 4 -t 1"));
    let (kind, words) = CLOSED_UNANSWERED;
    let message = format!("not one request was answered: {words}");
    ended.with_code(1).says(&[&message]);
    assert_eq!(only_error(&report), (kind, words, ASKED));
    assert_eq!(server.request_count(), 0, "it never read one");
}

#[test]
fn a_backlog_that_overflows() {
    for load in ["-n 1000", "-R 400 -d 1500ms"] {
        let server = Away::start();
        let line = format!("{load} -T 150ms -c 8 -t 1 http://{}/", server.address);
        let report = reported(&line);
        let errors = &report.results.errors;
        // The kernel has room for two or three of the eight.
        let words = "Connection timed out (os error 110)";
        let mut kinds = errors.iter().map(|error| (error.kind, &*error.words));
        assert!(kinds.any(|kind| kind == (ErrorKind::Connect, words)), "{errors:?}");
        within(report.results.counts.completed_whole, 2 * Away::AFTER + 1..);
        assert!(report.results.counts.reconnects > 0);
        if report.results.counts.due == 0 {
            assert_accounted(&report, 1000);
        }
    }
}

/// A server with hardly any backlog that goes away for a while in the middle: it closes its connections, and accepts no
/// others until it is back.
struct Away {
    address: SocketAddr,
}

impl Away {
    /// Requests before it goes away.
    const AFTER: u64 = 100;

    fn start() -> Away {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        rustix::net::listen(&listener, 1).expect("a small backlog");
        let address = listener.local_addr().expect("it has an address");
        let state = Arc::new((AtomicU64::new(0), AtomicBool::new(false)));
        // It ends with the program; nobody waits for it.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (accepted, back) = &*state;
                if accepted.load(Ordering::Relaxed) >= Away::AFTER && !back.load(Ordering::Relaxed)
                {
                    thread::sleep(Duration::from_millis(400));
                    back.store(true, Ordering::Relaxed);
                }
                let state = Arc::clone(&state);
                thread::spawn(move || Away::serve(stream, &state.0, &state.1));
            }
        });
        Away { address }
    }

    fn serve(mut stream: TcpStream, accepted: &AtomicU64, back: &AtomicBool) {
        let mut buffer = [0; 4096];
        while let Ok(1..) = stream.read(&mut buffer) {
            let number = accepted.fetch_add(1, Ordering::Relaxed);
            let away = number >= Away::AFTER && !back.load(Ordering::Relaxed);
            if away || stream.write_all(RIGHT).is_err() {
                return;
            }
        }
    }
}
