//! Threads that wake up late, and are nevertheless awake in time.

use weir_model::spin::Spin;
use weir_stats::SplitMix64;

use super::*;

const US: u64 = 1000;

/// Duration of one turn without sleep, nanoseconds.
const LOOK: u64 = US / 2;

/// CPU time of a sleep, nanoseconds.
const NAP: u64 = 15 * US;

/// Allowance for spinning beyond a twentieth of the time, nanoseconds.
const ALLOWANCE: u64 = 10 * MS;

/// Lateness of a wake-up, in nanoseconds, by its requested time since the beginning.
type Late = fn(u64, &mut SplitMix64) -> u64;

/// Returns a lateness of 25 to 75 µs; one in 250 is a millisecond.
fn as_seen(_: u64, random: &mut SplitMix64) -> u64 {
    match random.unit() {
        unit if unit < 0.004 => MS,
        _ => 25 * US + (random.unit() * 50_000.0) as u64,
    }
}

fn late_from_the_third_second(at: u64, random: &mut SplitMix64) -> u64 {
    as_seen(at, random) + if at < 3 * SECOND { 0 } else { 100 * US }
}

fn punctual_from_the_third_second(at: u64, _: &mut SplitMix64) -> u64 {
    if at < 3 * SECOND { 200 * US } else { 0 }
}

/// Simulates four seconds of requests answered after `service` nanoseconds, on a thread whose wake-ups are late by
/// `late`.
fn spinning(arrivals: Arrivals, spin: Spin, service: u64, late: Late) -> Ran {
    let plan = Plan { spin, ..build_plan(arrivals, 50, seconds(4)) };
    let mut random = SplitMix64::new(1);
    simulate_with(&plan, steady(service), |reactor| {
        (reactor.look_ns, reactor.nap_ns) = (LOOK, NAP);
        reactor.oversleep = Box::new(move |until| late(until, &mut random));
    })
}

#[test]
fn a_thread_learns_how_late_it_is_woken_and_is_awake_in_time_within_its_budget() {
    #[rustfmt::skip]
    let cases: [(f64, Late, [u64; 2]); 7] = [
        // Dispatch lag at p50 and p99 of the last second, in microseconds, at most.
        (100.0, as_seen, [1, 1]),
        (500.0, as_seen, [1, 1]),
        (500.0, late_from_the_third_second, [1, 20]),
        (500.0, punctual_from_the_third_second, [1, 1]),
        (2_000.0, as_seen, [10, 30]),
        // 2.5 µs for each arrival: what all wake-ups have in common, and some more.
        (20_000.0, as_seen, [30, 60]),
        // Those that are later than the longest lead stay late.
        (500.0, |_, _| 400 * US, [145, 145]),
    ];
    for (row, (rate, late, at_most)) in cases.into_iter().enumerate() {
        let ran = spinning(constant(rate), Spin::Auto, MS / 10, late);
        let last = &ran.slice(3).histograms.dispatch_lag;
        let lag = [0.5, 0.99].map(|quantile| last.value_at_quantile(quantile) / US);
        let within = lag[0] <= at_most[0] && lag[1] <= at_most[1];
        assert!(within, "row {row}: {lag:?}");
        assert_in(ran.totals.spun_ns, 0..=4 * SECOND / 20 + ALLOWANCE);
        assert_eq!(ran.all().due, 4 * rate as u64, "row {row}");
    }
}

#[test]
fn what_is_spun_is_as_long_as_was_asked_for_and_none_where_nothing_is_due() {
    let always = Spin::For(Duration::from_micros(100));
    #[rustfmt::skip]
    let cases = [
        // 400 ms for 4,000 arrivals, less the 25 to 75 µs of each wake-up.
        (constant(1000.0), always, 190 * MS..=210 * MS, 0..=US),
        (constant(1000.0), Spin::OFF, 0..=0, 40 * US..=60 * US),
        (Arrivals::Closed, always, 0..=0, 0..=0),
        (Arrivals::Closed, Spin::Auto, 0..=0, 0..=0),
    ];
    for (arrivals, spin, spun, half) in cases {
        let ran = spinning(arrivals, spin, MS / 10, as_seen);
        assert_in(ran.totals.spun_ns, spun);
        assert_in(ran.all().histograms.dispatch_lag.value_at_quantile(0.5), half);
    }
}

#[test]
fn who_is_woken_by_a_response_shortly_before_an_arrival_stays_awake_for_nothing() {
    // 20,000/s, each answered 14 µs before the next one is due: less than a sleep would take.
    let service = 36 * US;
    let ran = spinning(constant(20_000.0), Spin::Auto, service, as_seen);
    let last = &ran.slice(3).histograms.dispatch_lag;
    assert_in(last.value_at_quantile(0.5), 0..=US);
    // It is what the responses saved, and not the budget.
    assert_in(ran.totals.spun_ns, SECOND / 2..=4 * SECOND * 15 / 50 + ALLOWANCE);
}

#[test]
fn responses_that_come_while_a_thread_spins_are_taken_at_once() {
    // A request each 2 ms, answered 10 µs before the next one is due.
    let service = 2 * MS - 10 * US;
    let ran = spinning(constant(500.0), Spin::Auto, service, as_seen);
    let times = &ran.slice(3).histograms.service;
    assert_in(times.max(), service..=service + LOOK + service / 1000);
}

#[test]
fn every_request_that_is_sent_is_counted_wherever_a_slice_ends() {
    for arrivals in [Arrivals::Closed, constant(5000.0)] {
        let (plan, requests) = (build_plan(arrivals, 50, seconds(4)), Instants::default());
        let noted = requests.clone();
        let server: Server = Box::new(move |now, _, _| {
            noted.note(now);
            Answer::after(MS, OK)
        });
        // A turn of 50 requests takes longer than a millisecond.
        let ran = simulate_with(&plan, server, |reactor| reactor.step_ns = MS / 40);
        let (all, sent) = (ran.all(), requests.take());
        let end = sent[0] + 4 * SECOND - MS;
        let measured = sent.iter().filter(|&&at| at < end).count() as u64;
        assert_in(all.offered, measured..=sent.len() as u64);
        assert_eq!(all.completed_whole, sent.len() as u64);
    }
}
