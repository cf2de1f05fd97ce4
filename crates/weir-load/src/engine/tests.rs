//! Tests of the engine on a simulated network: exact and deterministic.

use std::fmt::Debug;
use std::ops::RangeBounds;
use std::sync::mpsc::{channel, sync_channel};
use std::time::Duration;

use weir_model::deal::OtherThreads;
use weir_model::load::{Arrivals, Assignment, ErrorKind, Overflow, Segment, Spacing};

use super::*;
use crate::ledger::SliceData;
use crate::plan::{Flow, Plan, Slice};
use crate::reactor::Io;
use crate::reactor::simulated::{Answer, CONNECT_NS, Instants, Server, Simulated};

mod policies;
mod punctual;
use crate::request_set::RequestSet;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn constant(rate: f64) -> Arrivals {
    Arrivals::Constant { rate }
}

fn flow(arrivals: Arrivals, connections: u32) -> Flow {
    let peer = "127.0.0.1:80".parse().expect("an address");
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    let requests = RequestSet::plain(request, false);
    Flow::new(peer, requests, connections, arrivals)
}

fn build_plan(arrivals: Arrivals, connections: u32, slices: Vec<Slice>) -> Plan {
    let arms = 1 + slices.iter().map(|slice| slice.arm).max().unwrap_or(0);
    let first = flow(arrivals, connections);
    let flows = (0..arms).map(|arm| Flow { arm, ..first.clone() }).collect();
    Plan { flows, ..Plan::single(first, slices, Io::Epoll) }
}

fn seconds(count: u64) -> Vec<Slice> {
    Plan::seconds(Duration::ZERO, Duration::from_secs(count))
}

/// Creates `count` slices of 100 ms for the arms in `order`, repeated; the first `uncounted` nanoseconds of each are
/// not measured.
fn turns(count: u64, order: &[usize], uncounted: u64) -> Vec<Slice> {
    (0..count)
        .map(|i| Slice {
            arm: order[i as usize % order.len()],
            start: i * 100 * MS,
            measure_from: i * 100 * MS + uncounted,
            end: (i + 1) * 100 * MS,
        })
        .collect()
}

struct Ran {
    slices: Vec<(usize, Vec<SliceData>)>,
    totals: ThreadTotals,
}

fn sum<'d>(data: impl Iterator<Item = &'d SliceData>) -> SliceData {
    let mut all = SliceData::new();
    data.for_each(|data| all.add(data));
    all
}

impl Ran {
    fn all(&self) -> SliceData {
        sum(self.slices.iter().flat_map(|(_, data)| data))
    }

    /// Sums the figures of one flow over all slices.
    fn flow(&self, place: usize) -> SliceData {
        sum(self.slices.iter().map(|(_, data)| &data[place]))
    }

    fn slice(&self, number: usize) -> &SliceData {
        let slice = self.slices.iter().find(|(slice, _)| *slice == number);
        &slice.expect("the slice was delivered").1[0]
    }
}

fn simulate_with(plan: &Plan, server: Server, change: impl FnOnce(&mut Simulated)) -> Ran {
    simulate_opening(plan, server, change, plan.connections_of(0))
}

/// Simulates a plan of whose connections only `opens` can be opened.
fn simulate_opening(
    plan: &Plan,
    server: Server,
    change: impl FnOnce(&mut Simulated),
    opens: usize,
) -> Ran {
    let (full, deliveries) = sync_channel(4096);
    let (_back, empty) = channel();
    let mut reactor = Simulated::new(plan.connections_of(0), server);
    change(&mut reactor);
    let progress = Progress::default();
    let stop = AtomicBool::new(false);
    let setup = Setup {
        plan,
        progress: &progress,
        stop: &stop,
        outlet: Outlet { thread: 0, full, empty },
        hook: None,
    };
    let mut engine = Engine::new(reactor, setup);
    let (begun, most) = (engine.reactor.now(), 10 * SECOND);
    let open = engine.open(most);
    assert_eq!(open, opens.min(engine.connections()), "connections open");
    // Nobody waits for what is refused again and again as long as for what nothing is heard of.
    assert!(engine.reactor.now() - begun < most);
    engine.practise();
    let start = engine.reactor.now() + MS;
    let (totals, _) = engine.run(start);
    let slices = deliveries.into_iter().map(|(_, slice, data)| (slice, data.into_vec())).collect();
    Ran { slices, totals }
}

fn simulate(plan: &Plan, server: Server) -> Ran {
    simulate_with(plan, server, |_| {})
}

/// Creates a server that answers everything after `service` nanoseconds.
fn steady(service: u64) -> Server {
    Box::new(move |_, _, _| Answer::after(service, OK))
}

/// Creates a server whose first answer is `answer`; all others are good.
fn first(answer: Answer) -> Server {
    Box::new(move |_, _, n| match n {
        0 => answer.clone(),
        _ => Answer::after(MS, OK),
    })
}

/// Creates a server like that of [`steady`], but frozen for one second, 2 s after the first request.
fn freezing(service: u64) -> Server {
    let mut first = None;
    Box::new(move |now, _, _| {
        let since = now - *first.get_or_insert(now);
        let frozen = (2 * SECOND..3 * SECOND).contains(&since);
        let wait = if frozen { 3 * SECOND - since } else { 0 };
        Answer::after(wait + service, OK)
    })
}

#[track_caller]
fn assert_in<T: PartialOrd + Debug>(actual: T, range: impl RangeBounds<T> + Debug) {
    assert!(range.contains(&actual), "{actual:?} is not in {range:?}");
}

/// Asserts that `actual` equals `expected` within 0.1 %.
#[track_caller]
fn assert_near(actual: u64, expected: u64) {
    let error = actual.abs_diff(expected) as f64 / expected as f64;
    let within = error <= 0.001;
    assert!(within, "{actual} is not {expected} within 0.1 %");
}

#[test]
fn a_frozen_server_gives_the_response_times_that_theory_says() {
    // One freeze of 1 s in 10 s under an open loop: a tenth of the requests wait evenly between 0
    // and 1 s, all others take the service time.
    let plan = build_plan(constant(1000.0), 2000, seconds(10));
    let all = simulate(&plan, freezing(MS)).all();
    assert_eq!((all.due, all.offered), (10_000, 10_000));
    let response = all.histograms.response;
    assert_eq!(response.len(), 10_000);
    assert_eq!(all.histograms.dispatch_lag.max(), 0);
    assert_near(response.value_at_quantile(0.5), MS);
    for quantile in [0.91, 0.95, 0.99, 0.999] {
        let expected = ((quantile - 0.9) * 10.0 * SECOND as f64) as u64 + MS;
        assert_near(response.value_at_quantile(quantile), expected);
    }
    assert_near(response.max(), SECOND + MS);
}

#[test]
fn four_generators_send_in_each_slice_what_one_sends() {
    let spacings = [Spacing::Poisson { seed: 7 }, Spacing::Burst { size: 6 }];
    let [poisson, burst] = spacings.map(|spacing| Arrivals::Varied {
        segments: vec![Segment { from: 500.0, to: 1500.0, ns: 4 * SECOND }],
        spacing,
    });
    for arrivals in [constant(1000.0), poisson, burst] {
        let plan = build_plan(arrivals, 400, turns(40, &[0], 20 * MS));
        let alone = simulate(&plan, steady(MS));
        let runs: Vec<Ran> = (0..4)
            .map(|before| {
                let plan =
                    Plan { others: OtherThreads { before, behind: 3 - before }, ..plan.clone() };
                simulate(&plan, steady(MS))
            })
            .collect();
        for slice in 0..40 {
            let (one, own) = (alone.slice(slice), runs.iter().map(|ran| ran.slice(slice)));
            assert!(own.clone().all(|own| own.due > 0 && own.due < one.due));
            let together = sum(own);
            assert_eq!((together.due, together.offered), (one.due, one.offered));
            assert_eq!(together.histograms.response, one.histograms.response);
        }
        let connections = runs.iter().map(|ran| ran.totals.flows[0].connections);
        assert_eq!(connections.collect::<Vec<u64>>(), [100; 4]);
    }
}

#[test]
fn too_few_connections_hide_a_freeze_from_service_time_but_not_from_response_time() {
    let plan = build_plan(constant(1000.0), 10, seconds(10));
    let times = simulate(&plan, freezing(MS)).all().histograms;
    assert_eq!(times.response.len(), 10_000);
    // Ten requests are caught by the freeze; a thousand suffer from it.
    assert_near(times.service.value_at_quantile(0.99), MS);
    assert_in(times.response.value_at_quantile(0.99), 500 * MS + 1..);
    // Waiting for a connection is not the engine's lateness.
    assert_eq!(times.dispatch_lag.max(), 0);
}

#[test]
fn connections_that_the_server_closes_while_another_arm_has_the_load_are_counted_apart() {
    // Each goes 150 ms after the first request on it: in the middle of the arm's rest.
    let server: Server = Box::new(|_, _, _| Answer::after(MS, OK).ending(150 * MS, false));
    let ran = simulate(&build_plan(Arrivals::Closed, 10, turns(10, &[0, 1], 20 * MS)), server);
    // The second arm rests four times before the trial ends, the first five times.
    let lost = ran.totals.flows.iter().map(|flow| flow.lost_at_rest);
    assert_eq!(lost.collect::<Vec<u64>>(), [50, 40]);
    let within = ran.slices.iter().flat_map(|(_, data)| data);
    assert_eq!(within.map(|data| data.lost).sum::<u64>(), 0);
}

#[test]
fn an_engine_that_wakes_late_loses_no_request_and_says_how_late_it_was() {
    // 5,000/s, each wake-up 50 µs late. The one due at the very end may be sent after it.
    let plan = build_plan(constant(5000.0), 50, seconds(4));
    let ran = simulate_with(&plan, steady(MS), |reactor| {
        reactor.oversleep = Box::new(|_| MS / 20);
    });
    let all = ran.all();
    assert_eq!(all.due, 20_000);
    assert_in(all.offered, 19_999..);
    let times = &all.histograms;
    assert_eq!(times.response.len(), 20_000);
    assert_near(times.dispatch_lag.value_at_quantile(0.5), MS / 20);
    assert_near(all.switch_late_ns, MS / 20);
    // The lateness is in it.
    assert_near(times.response.value_at_quantile(0.5), MS + MS / 20);
    assert_near(times.service.value_at_quantile(0.5), MS);
}

#[test]
fn a_closed_loop_completes_what_little_says() {
    // 10 connections, 1 ms each: 10,000 per second.
    let ran = simulate(&build_plan(Arrivals::Closed, 10, seconds(3)), steady(MS));
    for second in 0..3 {
        assert_in(ran.slice(second).completed, 9_990..=10_000);
    }
    let all = ran.all();
    assert_eq!(all.completed_whole, all.histograms.response.len());
}

#[test]
fn a_number_of_requests_is_kept_to_the_last_one() {
    let mut plan = build_plan(Arrivals::Closed, 7, seconds(60));
    plan.flows[0].limit = Some(1000);
    let ran = simulate(&plan, steady(MS));
    assert_eq!(ran.all().completed_whole, 1000);
    // It ends when the last response is there.
    assert_in(ran.totals.ended_at, ..SECOND);
}

#[test]
fn requests_unfinished_at_the_end_are_censored_not_forgotten() {
    let mut plan = build_plan(constant(100.0), 10, seconds(1));
    plan.flows[0].timeout = Duration::from_secs(60);
    plan.drain = Duration::from_millis(500);
    let all = simulate(&plan, Box::new(|_, _, _| Answer::default())).all();
    assert_eq!((all.censored.in_flight, all.censored.queued), (10, 90));
    assert_near(all.censored.oldest_ns, SECOND + 500 * MS);
    assert_eq!(all.histograms.response.len(), 0);
}

#[test]
fn a_timeout_is_an_error_and_the_connection_is_opened_again() {
    let mut plan = build_plan(Arrivals::Closed, 1, seconds(1));
    plan.flows[0].timeout = Duration::from_millis(100);
    let all = simulate(&plan, first(Answer::default())).all();
    assert_eq!(all.errors.counts()[0].kind, ErrorKind::Timeout);
    assert_eq!((all.errors.total(), all.reconnects), (1, 1));
    assert_in(all.completed, 801..);
}

#[test]
fn slices_switch_the_load_and_keep_the_arms_apart() {
    // Arm 0 answers in 1 ms, arm 1 in 2 ms; ABBA in slices of 100 ms, the first 20 ms not counted.
    let order = [0, 1, 1, 0];
    let plan = build_plan(Arrivals::Closed, 10, turns(40, &order, 20 * MS));
    let ran = simulate(
        &plan,
        Box::new(|_, conn, _| Answer::after(if conn < 10 { MS } else { 2 * MS }, OK)),
    );
    assert_eq!(ran.slices.len(), 40);
    for (number, data) in &ran.slices {
        let data = &data[0];
        let (service, per_slice) = [(MS, 800), (2 * MS, 400)][order[number % 4]];
        assert_in(data.completed, per_slice - 10..=per_slice + 10);
        assert_near(data.histograms.service.max(), service);
        // Requests on their way when the load moves on are waited for, in their own slice's data.
        assert!(data.completed_whole >= data.completed);
        assert_eq!(data.censored.in_flight, 0);
    }
}

#[test]
fn an_arm_too_slow_for_the_open_loop_does_not_burden_the_next_slice() {
    for (assignment, overflow) in [
        (Assignment::Global, Overflow::Queue),
        (Assignment::PerConnection, Overflow::Queue),
        (Assignment::Global, Overflow::Drop),
    ] {
        let mut plan = build_plan(constant(1000.0), 1, turns(10, &[0, 1], 20 * MS));
        for flow in &mut plan.flows {
            (flow.assignment, flow.overflow) = (assignment, overflow);
        }
        // Arm 0 carries 200/s of the 1000/s, arm 1 all of it.
        let server =
            |_, conn: ConnId, _| Answer::after(if conn == 0 { 5 * MS } else { MS / 10 }, OK);
        for (number, data) in simulate(&plan, Box::new(server)).slices {
            let data = &data[0];
            let case = format!("{number}, {assignment:?}, {overflow:?}");
            // What was due in the measured part is accounted for, and it alone.
            let sent = data.histograms.dispatch_lag.len();
            assert_eq!(data.due, 80, "{case}");
            assert_eq!(sent + data.queued + data.dropped, 80, "{case}");
            // Those that a slow arm is not given before the end of its slice.
            let lost = data.queued + data.dropped;
            match number % 2 {
                0 => assert!((60..=80).contains(&lost), "{lost}: {case}"),
                _ => {
                    let counts = (data.offered, lost, data.censored.queued);
                    assert_eq!(counts, (80, 0, 0), "{case}");
                }
            }
            let drops = lost > 0 && overflow == Overflow::Drop;
            assert_eq!(data.dropped > 0, drops, "{case}");
        }
    }
}

#[test]
fn a_ramp_grows_the_load_evenly_in_both_loops() {
    let ramp = Duration::from_secs(2);
    for arrivals in [Arrivals::Closed, constant(10_000.0)] {
        let mut plan = build_plan(arrivals, 10, Plan::seconds(ramp, Duration::from_secs(2)));
        plan.ramp_up = ramp;
        let ran = simulate(&plan, steady(MS));
        // Of 10,000 in the ramp, which gives no figures, and of 20,000 afterwards.
        assert_in(ran.slice(0).completed_whole, 9_000..=11_000);
        assert_eq!(ran.slice(0).histograms.response.len(), 0);
        let after: u64 = (1..3).map(|slice| ran.slice(slice).completed).sum();
        assert_in(after, 19_900..=20_010);
    }
}

/// Ten connections are answered together: the count of whole answers grows in steps of ten, the count of shares
/// continuously.
#[test]
fn requests_are_counted_by_their_shares_of_the_measured_time() {
    let mut completed = Vec::new();
    for service in [3_300_000, 3_350_000, 3_400_000] {
        let plan = build_plan(Arrivals::Closed, 10, turns(4, &[0, 1], 20 * MS));
        let ran = simulate(&plan, steady(service));
        let data = ran.slice(2);
        let served_ns = plan.slices[2].served_until() - plan.slices[2].measure_from;
        let expected = 10_000 * served_ns / service;
        let off = data.served_thousandths.abs_diff(expected);
        // The reactor takes time of its own, some microseconds a request.
        assert!(off * 200 < expected, "{} of {expected}", data.served_thousandths);
        completed.push(data.completed);
    }
    assert!(completed.iter().all(|count| count % 10 == 0), "{completed:?}");
}

#[test]
fn refused_connections_are_tried_again_and_counted() {
    let plan = build_plan(Arrivals::Closed, 4, seconds(1));
    let ran = simulate_with(&plan, steady(MS), |reactor| reactor.refuse = 6);
    let flow = &ran.totals.flows[0];
    assert_eq!(flow.connects, 4);
    assert_near(flow.connect_time.max(), CONNECT_NS);
    let error = &ran.totals.errors.counts()[0];
    assert_eq!((error.kind, error.count), (ErrorKind::Connect, 6));
    // The kernel's words.
    assert!(error.words.contains("refused"), "{}", error.words);
}

#[test]
fn a_trial_begins_soon_without_connections_that_are_refused_again_and_again() {
    let mut plan = build_plan(Arrivals::Constant { rate: 100.0 }, 4, seconds(1));
    plan.flows[0].timeout = Duration::from_secs(30);
    let ran = simulate_opening(&plan, steady(MS), |reactor| reactor.refuse = u32::MAX, 0);
    assert_eq!(ran.all().completed_whole, 0);
    let error = &ran.totals.errors.counts()[0];
    assert_eq!(error.kind, ErrorKind::Connect);
}

#[test]
fn a_number_of_requests_is_given_up_when_the_server_is_gone_for_good() {
    let mut plan = build_plan(Arrivals::Closed, 4, seconds(3600));
    plan.flows[0].limit = Some(1000);
    let server: Server = Box::new(move |_, _, n| match n {
        0..500 => Answer::after(MS, OK),
        _ => Answer::default().ending(MS, true),
    });
    let ran = simulate_with(&plan, server, |reactor| reactor.gone_after = 500);
    assert_eq!(ran.all().completed_whole, 500);
    // It does not try for an hour.
    assert_in(ran.totals.ended_at, ..20 * SECOND);
    let errors = ran.all().errors.counts();
    let refused = errors.iter().any(|error| error.kind == ErrorKind::Connect);
    assert!(refused, "{errors:?}");
}

#[test]
fn a_request_that_the_kernel_takes_in_parts_is_sent_whole() {
    let mut plan = build_plan(Arrivals::Closed, 2, seconds(1));
    plan.flows[0].limit = Some(10);
    let ran = simulate_with(&plan, steady(MS), |reactor| reactor.send_at_most = 5);
    assert_eq!(ran.all().completed_whole, 10);
    assert_eq!(ran.all().errors.total(), 0);
}

#[test]
fn every_way_a_server_can_fail_is_counted_by_kind() {
    let reset = Answer::default().ending(MS, true);
    let unanswered = Answer::default().ending(MS, false);
    let early = Answer::after(MS, &OK[..30]).ending(2 * MS, false);
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
        let plan = build_plan(Arrivals::Closed, 1, seconds(1));
        let all = simulate(&plan, first(answer.clone())).all();
        let error = &all.errors.counts()[0];
        assert_eq!((error.kind, error.count), (kind, 1), "{answer:?}");
        assert!(error.words.contains(words), "{}", error.words);
        assert!(all.completed > 900, "the trial goes on after {kind:?}");
        assert_eq!(all.reconnects, 1);
    }
}

#[test]
fn a_close_that_was_announced_is_no_error() {
    let closing: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let until_close = Answer::after(MS, b"HTTP/1.1 200 OK\r\n\r\nhello").ending(2 * MS, false);
    for answer in [Answer::after(MS, closing), until_close] {
        let mut plan = build_plan(Arrivals::Closed, 1, seconds(10));
        plan.flows[0].limit = Some(20);
        let all = simulate(&plan, Box::new(move |_, _, _| answer.clone())).all();
        assert_eq!((all.completed_whole, all.errors.total()), (20, 0));
        assert_eq!(all.reconnects, 19);
    }
}
