//! Connection policies, pipelining, overflow, and several flows in one trial.

use super::*;

/// Creates a plan of two seconds with one flow, modified by `change`.
fn one(arrivals: Arrivals, connections: u32, change: impl FnOnce(&mut Flow)) -> Plan {
    let mut plan = build_plan(arrivals, connections, seconds(2));
    change(&mut plan.flows[0]);
    plan
}

/// Creates such a plan with connections of a given lifetime.
fn living(lifetime: Lifetime, arrivals: Arrivals, connections: u32) -> Plan {
    one(arrivals, connections, |flow| flow.lifetime = lifetime)
}

/// Creates such a plan with up to `depth` requests in flight per connection.
fn piped(depth: u16, arrivals: Arrivals, connections: u32) -> Plan {
    one(arrivals, connections, |flow| flow.pipeline = depth)
}

#[test]
fn a_connection_per_request_has_its_handshake_inside_the_response_time() {
    let ran = simulate(&living(Lifetime::Request, Arrivals::Closed, 10), steady(MS));
    let all = ran.all();
    assert_near(all.histograms.response.min(), MS + CONNECT_NS);
    assert_near(all.histograms.service.max(), MS + CONNECT_NS);
    // Ten at a time, 1.01 ms each.
    assert_in(all.completed, 19_700..=19_810);
    let flow = &ran.totals.flows[0];
    assert_eq!(flow.connects, all.completed_whole, "one for each request");
    assert_near(flow.connect_time.max(), CONNECT_NS);
    assert_eq!(flow.connected, 0, "none is opened beforehand");
    assert_eq!(all.errors.total(), 0);

    let open = living(Lifetime::Request, constant(1000.0), 10);
    let all = simulate(&open, steady(MS)).all();
    assert_eq!(all.offered, 2000);
    assert_near(all.histograms.response.max(), MS + CONNECT_NS);
}

#[test]
fn a_request_whose_connection_is_refused_has_failed() {
    let plan = living(Lifetime::Request, constant(100.0), 10);
    let all = simulate_with(&plan, steady(MS), |reactor| reactor.refuse = 3).all();
    assert_eq!(all.errors.counts()[0].kind, ErrorKind::Connect);
    assert_eq!(all.errors.total(), 3);
    assert_eq!(all.completed_whole, 197, "the trial goes on");
}

#[test]
fn a_request_whose_connection_is_not_opened_in_time_is_counted_once() {
    let mut plan = living(Lifetime::Request, constant(100.0), 10);
    plan.flows[0].timeout = Duration::from_millis(100);
    let all = simulate_with(&plan, steady(MS), |reactor| reactor.lose = 3).all();
    let kinds: Vec<_> = all.errors.counts().iter().map(|e| (e.kind, e.count)).collect();
    assert_eq!(kinds, [(ErrorKind::Connect, 3)]);
    let never = all.censored.in_flight + all.censored.queued;
    assert_eq!((all.completed_whole, never), (197, 0));
}

#[test]
fn connections_are_renewed_after_so_many_requests_or_so_much_time() {
    let plan = living(Lifetime::Requests(100), constant(1000.0), 4);
    let ran = simulate(&plan, steady(MS / 10));
    // 2000 requests take 20 connections, of which the last ones are opened and not used up.
    assert_in(ran.totals.flows[0].connects, 20..=24);
    assert_eq!(ran.all().errors.total(), 0);
    assert_eq!(ran.all().completed, 2000);

    // Idle ones too: each of 4 lives for 300 ms of 2 s.
    let plan = living(Lifetime::Time(300 * MS), Arrivals::Held, 4);
    let ran = simulate(&plan, steady(MS));
    assert_in(ran.totals.flows[0].connects, 4 * 6..=4 * 7);
}

#[test]
fn connections_open_at_their_rate() {
    // 100 connections at 1000/s take 99 gaps of 1 ms.
    let plan = one(Arrivals::Held, 100, |flow| flow.connect_rate = Some(1000.0));
    let mut began = None;
    let opened = Instants::default();
    let ran = simulate_with(&plan, steady(MS), |reactor| {
        began = Some(reactor.now());
        reactor.connects = opened.clone();
    });
    let times = opened.take();
    assert_eq!(times.len(), 100);
    // Not faster than asked for, and not much slower.
    let took = times[99] - began.expect("the trial began");
    assert_in(took, 99 * MS..=110 * MS);
    assert_eq!(ran.totals.flows[0].connected, 100);
}

#[test]
fn held_connections_stay_open_and_closed_ones_are_told() {
    let plan = one(Arrivals::Held, 1000, |_| {});
    let ran = simulate(&plan, steady(MS));
    let flow = &ran.totals.flows[0];
    let counts = [flow.connected, flow.open_at_end, flow.connects];
    assert_eq!(counts, [1000; 3]);
    assert_eq!(ran.all().offered, 0);
    assert_eq!(ran.all().errors.total(), 0);
}

#[test]
fn a_pipeline_keeps_its_depth_and_answers_in_order() {
    // One connection, 8 requests in flight, 1 ms each: 8000/s.
    let ran = simulate(&piped(8, Arrivals::Closed, 1), steady(MS));
    let all = ran.all();
    assert_in(all.completed, 15_980..=16_008);
    assert_near(all.histograms.service.max(), MS);
    assert_eq!(all.errors.total(), 0);
    assert_eq!(ran.totals.flows[0].connects, 1);
    // An open loop spreads over the connections and never waits for an answer while there is room.
    let all = simulate(&piped(8, constant(8000.0), 2), steady(MS)).all();
    assert_eq!(all.completed_whole, 16_000);
    assert_near(all.histograms.response.max(), MS);
}

#[test]
fn a_pipeline_is_answered_to_its_end_before_its_connection_is_renewed() {
    let mut plan = piped(8, Arrivals::Closed, 2);
    plan.flows[0].lifetime = Lifetime::Requests(100);
    let ran = simulate(&plan, steady(MS));
    let all = ran.all();
    assert_eq!(all.errors.total(), 0, "{:?}", all.errors.counts());
    let most = all.completed_whole / 100 + 2;
    assert_in(ran.totals.flows[0].connects, most / 2..=most);
    assert_in(all.completed_whole, 20_001..);
}

#[test]
fn requests_behind_the_last_answer_of_a_pipeline_are_lost_and_counted() {
    const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let mut requests = 0_u64;
    let all = simulate(
        &piped(4, Arrivals::Closed, 1),
        Box::new(move |_, _, _| {
            requests += 1;
            Answer::after(MS, if requests.is_multiple_of(10) { LAST } else { OK })
        }),
    )
    .all();
    let errors = all.errors.counts();
    assert!(errors.iter().all(|e| e.kind == ErrorKind::ClosedUnanswered));
    assert!(all.errors.total() > 100);
    assert!(all.completed_whole > 1000, "the trial goes on");
}

#[test]
fn what_finds_no_idle_connection_waits_or_is_dropped() {
    // 2 connections of 10 ms each carry 200 of 1000 requests per second.
    let mut plan = one(constant(1000.0), 2, |_| {});
    let all = simulate(&plan, steady(10 * MS)).all();
    assert!(all.histograms.response.max() > SECOND);
    assert_eq!(all.dropped, 0);

    plan.flows[0].overflow = Overflow::Drop;
    let all = simulate(&plan, steady(10 * MS)).all();
    // Every one is accounted for, and nothing has waited.
    assert_eq!((all.due, all.offered + all.dropped), (2000, 2000));
    assert_in(all.offered, 398..=402);
    assert_near(all.histograms.response.max(), 10 * MS);
    assert_eq!(all.censored.queued, 0);
}

#[test]
fn arrivals_that_belong_to_connections_wait_for_them() {
    let global = simulate_freeze(Assignment::Global);
    let bound = simulate_freeze(Assignment::PerConnection);
    assert_eq!((global.completed_whole, bound.completed_whole), (200, 200));
    let late =
        [&global, &bound].map(|data| data.histograms.response.count_between(50 * MS, 10 * SECOND));
    // Whatever is due goes to a connection that is free: one request suffers. Bound to the frozen
    // connection, every one of its own that comes due in that second does: 10 of 100.
    assert_eq!(late, [1, 10]);
    assert_eq!(bound.due, bound.offered);
}

/// Freezes connection 0 for a second; the others have nothing to do with it.
fn simulate_freeze(assignment: Assignment) -> SliceData {
    let plan = one(constant(100.0), 10, |flow| flow.assignment = assignment);
    let mut first = None;
    let server: Server = Box::new(move |now, conn, _| {
        let since = now - *first.get_or_insert(now);
        let thaw = (SECOND + SECOND / 2).saturating_sub(since);
        let frozen = conn == 0 && (SECOND / 2..SECOND + SECOND / 2).contains(&since);
        Answer::after(if frozen { thaw + MS } else { MS }, OK)
    });
    simulate(&plan, server).all()
}

#[test]
fn flows_of_one_trial_keep_their_figures_apart() {
    let mut plan = one(constant(500.0), 10, |_| {});
    plan.flows.push(flow(Arrivals::Held, 200));
    let mut third = flow(constant(50.0), 5);
    third.lifetime = Lifetime::Request;
    plan.flows.push(third);
    let ran = simulate(&plan, steady(MS));
    let completed = [0, 1, 2].map(|place| ran.flow(place).completed_whole);
    assert_eq!(completed, [1000, 0, 100]);
    // The first keeps its connections, the third opens one each time.
    assert_near(ran.flow(0).histograms.response.max(), MS);
    assert_near(ran.flow(2).histograms.response.max(), MS + CONNECT_NS);
    assert_eq!(ran.totals.flows[1].open_at_end, 200);
    assert_eq!(ran.totals.flows[2].connects, 100);
}

#[test]
fn poisson_arrivals_are_all_sent_and_counted() {
    let (from, to, ns) = (1000.0, 1000.0, 2 * SECOND);
    let arrivals = Arrivals::Varied {
        segments: vec![Segment { from, to, ns }],
        spacing: Spacing::Poisson { seed: 7 },
    };
    let all = simulate(&one(arrivals, 500, |_| {}), steady(MS)).all();
    assert_eq!((all.due, all.due), (all.offered, all.completed_whole));
    // 2000 expected, standard deviation 45.
    assert_in(all.due, 1800..2200);
    assert_near(all.histograms.response.max(), MS);
}

#[test]
fn a_trace_is_repeated_arrival_by_arrival() {
    let times: Vec<u64> = vec![0, 0, 5 * MS, 5 * MS, 5 * MS, 900 * MS];
    let arrivals = Arrivals::Trace {
        file: "a.log".to_owned(),
        arrivals: 6,
        length_ns: 900 * MS,
        every_ns: None,
        left_out: Vec::new(),
    };
    let plan = one(arrivals, 10, |flow| flow.trace = Some(times.into()));
    let all = simulate(&plan, steady(MS)).all();
    assert_eq!((all.due, all.offered, all.completed_whole), (6, 6, 6));
    assert_near(all.histograms.response.max(), MS);
}

#[test]
fn a_server_that_serves_no_connection_is_not_hammered() {
    // 0, 0.1, 0.3, 0.7 and 1.5 s after the begin, and not every millisecond.
    let turned_away = (Arrivals::Held, Some(MS), 4 * 5..=4 * 6);
    // A second time at once, and then every 100 ms or so, as the machine looks.
    let reset = (Arrivals::Closed, None, 4 * 12..=4 * 22);
    for (arrivals, turn_away_after, expected) in [turned_away, reset] {
        let plan = one(arrivals, 4, |_| {});
        let opened = Instants::default();
        let server: Server =
            Box::new(|_, _, _| Answer { end: Some((MS / 10, true)), ..Answer::default() });
        simulate_with(&plan, server, |reactor| {
            reactor.connects = opened.clone();
            reactor.turn_away_after = turn_away_after;
        });
        assert_in(opened.take().len(), expected);
    }
}

#[test]
fn a_trial_begins_soon_where_connections_are_closed_before_the_last_is_open() {
    // More than are opened at once. That the trial begins in time is checked in `simulate_with`.
    for arrivals in [Arrivals::Held, Arrivals::Closed] {
        let plan = one(arrivals, 1000, |_| {});
        let ran = simulate_with(&plan, steady(MS), |reactor| reactor.turn_away_after = Some(1000));
        let all = ran.all();
        assert_in(all.lost + all.errors.total(), 1..);
    }
}

#[test]
fn a_status_code_that_is_none_is_an_error() {
    let odd = b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n";
    let plan = one(constant(100.0), 4, |_| {});
    let all = simulate(&plan, Box::new(move |_, _, _| Answer::after(MS, odd))).all();
    assert_eq!((all.completed_whole, all.errors.total()), (200, 200));
    assert_eq!(all.errors.counts()[0].kind, ErrorKind::Unexpected);
}
