//! The machine on a simulated network: exact, and the same every time.

use std::sync::mpsc::{channel, sync_channel};
use std::time::Duration;

use rustix::io::Errno;
use weir_model::load::{Arrivals, Assignment, ErrorKind, Overflow, Segment, Spacing};

use super::*;
use crate::ledger::SliceData;
use crate::plan::{Flow, Plan, Slice};
use crate::reactor::Io;
use crate::reactor::simulated::{Answer, CONNECT_NS, Instants, Server, Simulated};

mod policies;
use crate::request_set::RequestSet;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn flow(arrivals: Arrivals, connections: u32) -> Flow {
    let peer = "127.0.0.1:80".parse().expect("an address");
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    Flow::new(
        peer,
        RequestSet::plain(request, false),
        connections,
        arrivals,
    )
}

fn plan(arrivals: Arrivals, connections: u32, slices: Vec<Slice>) -> Plan {
    let arms = 1 + slices.iter().map(|slice| slice.arm).max().unwrap_or(0);
    let of_arm = |arm| Flow {
        arm,
        ..flow(arrivals.clone(), connections)
    };
    Plan {
        flows: (0..arms).map(of_arm).collect(),
        slices,
        ramp_up: Duration::ZERO,
        drain: Duration::from_secs(2),
        spin: Duration::ZERO,
        io: Io::Epoll,
        cpus: vec![None],
    }
}

fn seconds(count: u64) -> Vec<Slice> {
    Plan::seconds(Duration::ZERO, Duration::from_secs(count))
}

struct Ran {
    slices: Vec<(usize, Vec<SliceData>)>,
    totals: ThreadTotals,
}

impl Ran {
    fn all(&self) -> SliceData {
        let mut all = SliceData::new();
        let data = self.slices.iter().flat_map(|(_, data)| data);
        data.for_each(|data| all.add(data));
        all
    }

    /// What one flow counted.
    fn flow(&self, place: usize) -> SliceData {
        let mut all = SliceData::new();
        let data = self.slices.iter().map(|(_, data)| &data[place]);
        data.for_each(|data| all.add(data));
        all
    }

    fn slice(&self, number: usize) -> &SliceData {
        let found = self.slices.iter().find(|(slice, _)| *slice == number);
        &found.expect("the slice was delivered").1[0]
    }
}

fn simulate_with(plan: &Plan, server: Server, change: impl FnOnce(&mut Simulated)) -> Ran {
    let (full, deliveries) = sync_channel(4096);
    let (_back, empty) = channel();
    let outlet = Outlet {
        thread: 0,
        full,
        empty,
    };
    let connections = plan
        .flows
        .iter()
        .map(|flow| flow.connections as usize)
        .sum();
    let mut reactor = Simulated::new(connections, server);
    change(&mut reactor);
    let progress = Progress::default();
    let stop = AtomicBool::new(false);
    let setup = Setup {
        plan,
        progress: &progress,
        stop: &stop,
        outlet,
        hook: None,
    };
    let mut engine = Engine::new(reactor, setup);
    let open = engine.open(10 * SECOND);
    assert_eq!(open, engine.connections(), "every connection opens");
    let start = engine.reactor.now() + MS;
    let (totals, _) = engine.run(start);
    let slices = deliveries
        .into_iter()
        .map(|(_, slice, data)| (slice, data.into_vec()))
        .collect();
    Ran { slices, totals }
}

fn simulate(plan: &Plan, server: Server) -> Ran {
    simulate_with(plan, server, |_| {})
}

/// Answers everything after `service` nanoseconds.
fn steady(service: u64) -> Server {
    Box::new(move |_, _, _| Answer::after(service, OK))
}

/// The same, but frozen for a second, 2 s after the first request.
fn freezing(service: u64) -> Server {
    let mut first = None;
    Box::new(move |now, _, _| {
        let since = now - *first.get_or_insert(now);
        let frozen = (2 * SECOND..3 * SECOND).contains(&since);
        let wait = if frozen { 3 * SECOND - since } else { 0 };
        Answer::after(wait + service, OK)
    })
}

/// `actual` is `expected` as far as three significant digits go.
fn assert_resolved(actual: u64, expected: u64, what: &str) {
    let error = actual.abs_diff(expected) as f64 / expected as f64;
    assert!(
        error <= 0.001,
        "{what}: {actual} is not {expected} within 0.1 %"
    );
}

#[test]
fn a_frozen_server_gives_the_response_times_that_theory_says() {
    // One freeze of 1 s in 10 s under an open loop: a tenth of the requests wait evenly between 0
    // and 1 s, all others take the service time.
    let rate = 1000.0;
    let plan = plan(Arrivals::Constant { rate }, 2000, seconds(10));
    let ran = simulate(&plan, freezing(MS));
    let all = ran.all();
    assert_eq!(all.due, 10_000);
    assert_eq!(all.offered, 10_000);
    assert_eq!(all.histograms.response.len(), 10_000);
    assert_eq!(all.histograms.dispatch_lag.max(), 0);
    assert_resolved(all.histograms.response.value_at_quantile(0.5), MS, "median");
    for quantile in [0.91, 0.95, 0.99, 0.999] {
        let expected = ((quantile - 0.9) * 10.0 * SECOND as f64) as u64 + MS;
        let actual = all.histograms.response.value_at_quantile(quantile);
        assert_resolved(actual, expected, &format!("quantile {quantile}"));
    }
    assert_resolved(all.histograms.response.max(), SECOND + MS, "maximum");
}

#[test]
fn too_few_connections_hide_a_freeze_from_service_time_but_not_from_response_time() {
    let plan = plan(Arrivals::Constant { rate: 1000.0 }, 10, seconds(10));
    let ran = simulate(&plan, freezing(MS));
    let all = ran.all();
    assert_eq!(all.histograms.response.len(), 10_000);
    // Ten requests are caught by the freeze; a thousand suffer from it.
    assert_resolved(
        all.histograms.service.value_at_quantile(0.99),
        MS,
        "service p99",
    );
    assert!(all.histograms.response.value_at_quantile(0.99) > 500 * MS);
    // Waiting for a connection is not the engine's lateness.
    assert_eq!(all.histograms.dispatch_lag.max(), 0);
}

#[test]
fn an_engine_that_wakes_late_loses_no_request_and_says_how_late_it_was() {
    // 5,000/s, each wake-up 50 µs late. The one due at the very end may be sent after it.
    let plan = plan(Arrivals::Constant { rate: 5000.0 }, 50, seconds(4));
    let ran = simulate_with(&plan, steady(MS), |reactor| reactor.oversleep = MS / 20);
    let all = ran.all();
    assert_eq!(all.due, 20_000);
    assert!(all.offered >= 19_999, "{} offered", all.offered);
    assert_eq!(all.histograms.response.len(), 20_000);
    assert_resolved(
        all.histograms.dispatch_lag.value_at_quantile(0.5),
        MS / 20,
        "lag",
    );
    let median = all.histograms.response.value_at_quantile(0.5);
    assert_resolved(median, MS + MS / 20, "response time, lateness and all");
    assert_resolved(
        all.histograms.service.value_at_quantile(0.5),
        MS,
        "service time",
    );
}

#[test]
fn a_closed_loop_completes_what_little_says() {
    // 10 connections, 1 ms each: 10,000 per second.
    let ran = simulate(&plan(Arrivals::Closed, 10, seconds(3)), steady(MS));
    for second in 0..3 {
        let completed = ran.slice(second).completed;
        assert!(
            (9_990..=10_000).contains(&completed),
            "{completed} in second {second}"
        );
    }
    assert_eq!(
        ran.all().completed_whole,
        ran.all().histograms.response.len()
    );
}

#[test]
fn a_number_of_requests_is_kept_to_the_last_one() {
    let mut plan = plan(Arrivals::Closed, 7, seconds(60));
    plan.flows[0].limit = Some(1000);
    let ran = simulate(&plan, steady(MS));
    assert_eq!(ran.all().completed_whole, 1000);
    assert!(
        ran.totals.ended_at < SECOND,
        "it ends when the last response is there"
    );
}

#[test]
fn requests_unfinished_at_the_end_are_censored_not_forgotten() {
    let mut plan = plan(Arrivals::Constant { rate: 100.0 }, 10, seconds(1));
    plan.flows[0].timeout = Duration::from_secs(60);
    plan.drain = Duration::from_millis(500);
    let ran = simulate(&plan, Box::new(|_, _, _| Answer::default()));
    let all = ran.all();
    assert_eq!(all.censored.in_flight, 10);
    assert_eq!(all.censored.queued, 90);
    assert_resolved(all.censored.oldest_ns, SECOND + 500 * MS, "oldest");
    assert_eq!(all.histograms.response.len(), 0);
}

#[test]
fn a_timeout_is_an_error_and_the_connection_is_opened_again() {
    let mut plan = plan(Arrivals::Closed, 1, seconds(1));
    plan.flows[0].timeout = Duration::from_millis(100);
    let ran = simulate(
        &plan,
        Box::new(|_, _, n| match n {
            0 => Answer::default(),
            _ => Answer::after(MS, OK),
        }),
    );
    let all = ran.all();
    assert_eq!(all.errors.counts()[0].kind, ErrorKind::Timeout);
    assert_eq!(all.errors.total(), 1);
    assert_eq!(all.reconnects, 1);
    assert!(all.completed > 800);
}

#[test]
fn slices_switch_the_load_and_keep_the_arms_apart() {
    // Arm 0 answers in 1 ms, arm 1 in 2 ms; ABBA in slices of 100 ms, the first 20 ms not counted.
    let order = [0, 1, 1, 0];
    let slices = (0..40_u64).map(|i| Slice {
        arm: order[i as usize % 4],
        start: i * 100 * MS,
        measure_from: i * 100 * MS + 20 * MS,
        end: (i + 1) * 100 * MS,
    });
    let plan = plan(Arrivals::Closed, 10, slices.collect());
    let server = |_, conn: ConnId, _| Answer::after(if conn < 10 { MS } else { 2 * MS }, OK);
    let ran = simulate(&plan, Box::new(server));
    assert_eq!(ran.slices.len(), 40);
    for (number, data) in &ran.slices {
        let data = &data[0];
        let (service, per_slice) = if order[number % 4] == 0 {
            (MS, 800)
        } else {
            (2 * MS, 400)
        };
        assert!(
            data.completed.abs_diff(per_slice) <= 10,
            "{} in slice {number}",
            data.completed
        );
        assert_resolved(data.histograms.service.max(), service, "service time");
        // Requests on their way when the load moves on are waited for, in their own slice's data.
        assert!(data.completed_whole >= data.completed);
        assert_eq!(data.censored.in_flight, 0);
    }
}

#[test]
fn an_arm_too_slow_for_the_open_loop_does_not_burden_the_next_slice() {
    let slices = (0..10_u64).map(|i| Slice {
        arm: i as usize % 2,
        start: i * 100 * MS,
        measure_from: i * 100 * MS + 20 * MS,
        end: (i + 1) * 100 * MS,
    });
    let slices: Vec<Slice> = slices.collect();
    for (assignment, overflow) in [
        (Assignment::Global, Overflow::Queue),
        (Assignment::PerConnection, Overflow::Queue),
        (Assignment::Global, Overflow::Drop),
    ] {
        let mut plan = plan(Arrivals::Constant { rate: 1000.0 }, 1, slices.clone());
        for flow in &mut plan.flows {
            (flow.assignment, flow.overflow) = (assignment, overflow);
        }
        // Arm 0 carries 200/s of the 1000/s, arm 1 all of it.
        let server =
            |_, conn: ConnId, _| Answer::after(if conn == 0 { 5 * MS } else { MS / 10 }, OK);
        let ran = simulate(&plan, Box::new(server));
        for (number, data) in &ran.slices {
            let data = &data[0];
            let said = format!("{number}, {assignment:?}, {overflow:?}");
            let sent = data.histograms.dispatch_lag.len();
            // What was due in the measured part is accounted for, and it alone.
            assert_eq!(
                (data.due, sent + data.queued + data.dropped),
                (80, 80),
                "{said}"
            );
            // Those that a slow arm is not given before the end of its slice.
            let lost = data.queued + data.dropped;
            match number % 2 {
                0 => assert!((60..=80).contains(&lost), "{lost}: {said}"),
                _ => assert_eq!(
                    (data.offered, lost, data.censored.queued),
                    (80, 0, 0),
                    "{said}"
                ),
            }
            assert_eq!(
                data.dropped > 0,
                lost > 0 && overflow == Overflow::Drop,
                "{said}"
            );
        }
    }
}

#[test]
fn a_ramp_grows_the_load_evenly_in_both_loops() {
    let ramp = Duration::from_secs(2);
    for arrivals in [Arrivals::Closed, Arrivals::Constant { rate: 10_000.0 }] {
        let mut plan = plan(arrivals, 10, Plan::seconds(ramp, Duration::from_secs(2)));
        plan.ramp_up = ramp;
        let ran = simulate(&plan, steady(MS));
        let in_ramp = ran.slice(0).completed_whole;
        assert!(
            (9_000..=11_000).contains(&in_ramp),
            "{in_ramp} of 10,000 in the ramp"
        );
        assert_eq!(
            ran.slice(0).histograms.response.len(),
            0,
            "the ramp gives no figures"
        );
        let after: u64 = (1..3).map(|slice| ran.slice(slice).completed).sum();
        assert!(
            (19_900..=20_010).contains(&after),
            "{after} of 20,000 afterwards"
        );
    }
}

#[test]
fn refused_connections_are_tried_again_and_counted() {
    let plan = plan(Arrivals::Closed, 4, seconds(1));
    let ran = simulate_with(&plan, steady(MS), |reactor| reactor.refuse = 6);
    assert_eq!(ran.totals.flows[0].connects, 4);
    let errors = ran.totals.errors.counts();
    assert_eq!((errors[0].kind, errors[0].count), (ErrorKind::Connect, 6));
    assert!(
        errors[0].words.contains("refused"),
        "the kernel's words: {}",
        errors[0].words
    );
    assert_resolved(
        ran.totals.flows[0].connect_time.max(),
        CONNECT_NS,
        "time to connect",
    );
}

#[test]
fn a_number_of_requests_is_given_up_when_the_server_is_gone_for_good() {
    let mut plan = plan(Arrivals::Closed, 4, seconds(3600));
    plan.flows[0].limit = Some(1000);
    let last = Answer {
        pieces: vec![],
        end: Some((MS, Some(Errno::CONNRESET))),
    };
    let server: Server = Box::new(move |_, _, n| match n {
        0..500 => Answer::after(MS, OK),
        _ => last.clone(),
    });
    let ran = simulate_with(&plan, server, |reactor| reactor.gone_after = 500);
    assert_eq!(ran.all().completed_whole, 500);
    assert!(
        ran.totals.ended_at < 20 * SECOND,
        "it does not try for an hour"
    );
    let errors = ran.all().errors.counts();
    assert!(
        errors.iter().any(|error| error.kind == ErrorKind::Connect),
        "{errors:?}"
    );
}

#[test]
fn a_request_that_the_kernel_takes_in_parts_is_sent_whole() {
    let mut plan = plan(Arrivals::Closed, 2, seconds(1));
    plan.flows[0].limit = Some(10);
    let ran = simulate_with(&plan, steady(MS), |reactor| reactor.send_at_most = 5);
    assert_eq!(ran.all().completed_whole, 10);
    assert_eq!(ran.all().errors.total(), 0);
}

#[test]
fn every_way_a_server_can_fail_is_counted_by_kind() {
    let reset = Answer {
        pieces: vec![],
        end: Some((MS, Some(Errno::CONNRESET))),
    };
    let unanswered = Answer {
        pieces: vec![],
        end: Some((MS, None)),
    };
    let early = Answer {
        pieces: vec![(MS, OK[..30].to_vec())],
        end: Some((2 * MS, None)),
    };
    let nonsense = Answer::after(MS, b"SSH-2.0-OpenSSH_9.2\r\n");
    let surplus = Answer::after(MS, &[OK, b"more"].concat());
    let cases = [
        (reset, ErrorKind::Receive, "reset"),
        (unanswered, ErrorKind::ClosedUnanswered, "closed"),
        (early, ErrorKind::ClosedEarly, "closed"),
        (nonsense, ErrorKind::Malformed, ""),
        (surplus, ErrorKind::Unsolicited, "bytes"),
    ];
    for (answer, kind, words) in cases {
        let plan = plan(Arrivals::Closed, 1, seconds(1));
        let bad = answer.clone();
        let ran = simulate(
            &plan,
            Box::new(move |_, _, n| match n {
                0 => bad.clone(),
                _ => Answer::after(MS, OK),
            }),
        );
        let errors = ran.all().errors.counts();
        assert_eq!((errors[0].kind, errors[0].count), (kind, 1), "{answer:?}");
        assert!(errors[0].words.contains(words), "{}", errors[0].words);
        assert!(
            ran.all().completed > 900,
            "the trial goes on after {kind:?}"
        );
        assert_eq!(ran.all().reconnects, 1);
    }
}

#[test]
fn a_close_that_was_announced_is_no_error() {
    let closing: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let until_close: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nhello";
    for (bytes, end) in [(closing, None), (until_close, Some((2 * MS, None)))] {
        let mut plan = plan(Arrivals::Closed, 1, seconds(10));
        plan.flows[0].limit = Some(20);
        let answer = Answer {
            pieces: vec![(MS, bytes.to_vec())],
            end,
        };
        let ran = simulate(&plan, Box::new(move |_, _, _| answer.clone()));
        let all = ran.all();
        assert_eq!(all.completed_whole, 20);
        assert_eq!(all.errors.total(), 0);
        assert_eq!(all.reconnects, 19);
    }
}
