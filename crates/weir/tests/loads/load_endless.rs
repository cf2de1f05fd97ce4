//! Tests of `weir load` with answers that never end: time and memory stay bounded.

use rustix::process::Signal;
use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;
use weir_testkit::faulty::{After, Faulty, Victim};
use weir_testkit::loads::Server;
use weir_testkit::program::{Running, peak_of_its_own_kib, weir, within};

use crate::load_faults::{EACH, Fault};

/// Sends `first`, then `again` as long as the client takes it.
pub(crate) fn flood(victim: &mut Victim, first: &[u8], again: &[u8]) -> After {
    let block = again.repeat(1 + 256 * 1024 / again.len());
    let mut more = victim.send(first);
    while more {
        more = victim.send(&block);
    }
    After::Close
}

#[test]
fn a_flood_does_not_keep_a_trial_from_ending() {
    // As fast as the kernel takes it, which may be faster than it can be looked at: how many
    // requests are left for the others is the machine's affair.
    let floods: [Fault; 3] = [
        // The long chunk has the kernel widen the window; the short ones take long to look at.
        |victim| {
            victim.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4000000\r\n");
            victim.send(&vec![b'x'; 0x400_0000]);
            flood(victim, b"\r\n", b"1\r\na\r\n")
        },
        |victim| flood(victim, b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        |victim| flood(victim, b"HTTP/1.1 200 OK\r\n\r\n", b"and so on, "),
    ];
    for fault in floods {
        for load in ["", "-R 80"] {
            let server = Faulty::requests(EACH, fault);
            let report = server.reported(&format!("{load} -d 300ms -T 200ms -c 4 -t 1"));
            assert!(report.results.counts.completed_whole > 0, "{load}");
            let given_up = report.results.censored.in_flight;
            assert!(given_up > 0, "{load}: {:?}", report.results.errors);
            let timeouts = report.results.errors.iter().map(|error| (error.kind, error.count));
            for (kind, count) in timeouts {
                assert_eq!(kind, ErrorKind::Timeout, "{load}");
                assert!(count <= given_up, "{load}");
            }
            if report.results.counts.due > 0 {
                let accounted = report.results.counts.completed_whole
                    + given_up
                    + report.results.censored.queued;
                assert_eq!(accounted, report.results.counts.due, "{load}");
            }
        }
    }
}

#[test]
fn endless_heads_need_no_memory() {
    const MOST: u64 = 48 * 1024;
    let server =
        Faulty::requests(1, |victim| flood(victim, b"HTTP/1.1 200 OK\r\nConnection: ", b"close, "));
    let line = format!("load -q --format json -d 1h -c 8 -t 1 {}", server.url());
    let mut load = Running::start(&mut weir(line.split_whitespace()));
    // Five for each connection: those that fail again and again are paced.
    load.wait_until("faults on every connection", |_| server.faults() >= 40);
    let peak = peak_of_its_own_kib(load.pid()).expect("it runs");
    load.signal(Signal::INT);
    let report: LoadReport = load.end().with_code(130).document();
    assert_eq!(report.results.errors[0].kind, ErrorKind::HeadTooLarge);
    within(peak, ..MOST);
}
