use proptest::prelude::*;

use super::*;

const S: u64 = 1_000_000_000;

fn constant(rate: f64, ramp_ns: u64) -> Schedule {
    Schedule::new(&Arrivals::Constant { rate }, ramp_ns).unwrap()
}

fn varied(segments: &[Segment], spacing: Spacing, ramp_ns: u64) -> Schedule {
    let arrivals = Arrivals::Varied { segments: segments.to_vec(), spacing };
    Schedule::new(&arrivals, ramp_ns).unwrap()
}

/// Creates a segment from one rate to another within `ns` nanoseconds.
fn segment(from: f64, to: f64, ns: u64) -> Segment {
    Segment { from, to, ns }
}

fn due(schedule: &mut Schedule, arrivals: std::ops::Range<u64>) -> Vec<u64> {
    arrivals.map(|k| schedule.time_of(k)).collect()
}

#[track_caller]
fn assert_counts(schedule: &mut Schedule, counts: &[(u64, u64)]) {
    for &(before, count) in counts {
        assert_eq!(schedule.count_before(before), count, "before {before}");
    }
}

/// Checks all guarantees about a time and the arrivals around it.
fn inverse_at(schedule: &mut Schedule, t: u64) -> Result<(), TestCaseError> {
    let k = schedule.count_before(t);
    prop_assert!(schedule.time_of(k) >= t);
    prop_assert!(k == 0 || schedule.time_of(k - 1) < t);
    // A fresh one, which has not been read before, says the same.
    let mut last = schedule.clone().time_of(k.saturating_sub(200));
    for k in k.saturating_sub(200)..k + 200 {
        let time = schedule.time_of(k);
        prop_assert!(time >= last, "arrival {} at {} after {}", k, time, last);
        last = time;
    }
    Ok(())
}

#[test]
fn a_constant_rate_is_evenly_spaced() {
    let mut schedule = constant(1000.0, 0);
    assert_eq!(schedule.time_of(0), 0);
    assert_eq!(schedule.time_of(1), 1_000_000);
    assert_eq!(schedule.time_of(5000), 5 * S);
    assert_eq!(schedule.count_before(5 * S), 5000);
    // 1/5000 of a second has no exact form in binary: the sum must not fall short of 4 s.
    assert_eq!(constant(5000.0, 0).count_before(4 * S), 20_000);
}

#[test]
fn a_ramp_sends_half_of_what_the_full_rate_would() {
    let mut schedule = constant(1000.0, 2 * S);
    // Half way up, a quarter of the ramp's arrivals have been due.
    assert_counts(&mut schedule, &[(2 * S, 1000), (3 * S, 2000), (S, 250)]);
    assert_eq!(schedule.expected(S, 3 * S), 1750.0);
}

#[test]
fn the_quick_form_of_a_constant_rate_is_the_general_one() {
    for (rate, ramp) in [(0.1, 0), (1000.0, 2 * S), (33_333.3, S / 3), (5e6, 10 * S)] {
        let mut quick = constant(rate, ramp);
        let mut general = varied(&[segment(rate, rate, S)], Spacing::Even, ramp);
        for k in (0..100_000).step_by(97) {
            let apart = quick.time_of(k).abs_diff(general.time_of(k));
            assert!(apart <= 1, "{k} at {rate}");
        }
    }
}

#[test]
fn steps_a_pause_and_the_end() {
    let rates = [(100.0, 100.0, S), (0.0, 0.0, 2 * S), (200.0, 0.0, S)];
    let segments = rates.map(|(from, to, ns)| segment(from, to, ns));
    let mut schedule = varied(&segments, Spacing::Even, 0);
    // The pause begins where the hundredth interval ends.
    assert_eq!(due(&mut schedule, 99..101), [990_000_000, 3 * S]);
    let counts = [(S, 100), (3 * S, 100), (3 * S + 1, 101), (100 * S, 200), (u64::MAX, 200)];
    assert_counts(&mut schedule, &counts);
    assert_eq!(schedule.time_of(200), u64::MAX);
    assert_eq!(schedule.time_of(u64::MAX), u64::MAX);
    assert_eq!(schedule.expected(S / 2, 4 * S), 150.0);
}

#[test]
fn after_the_last_segment_its_rate_stays() {
    let mut schedule = varied(&[segment(0.0, 100.0, S)], Spacing::Even, 0);
    assert_counts(&mut schedule, &[(S, 50), (11 * S, 1050)]);
    // From zero the ramp is a delay.
    let mut later = varied(&[segment(0.0, 100.0, S)], Spacing::Even, 5 * S);
    assert_counts(&mut later, &[(5 * S, 0), (16 * S, 1050)]);
}

#[test]
fn a_burst_is_due_at_one_moment() {
    let bursts = Spacing::Burst { size: 50 };
    let mut schedule = varied(&[segment(1000.0, 1000.0, S)], bursts, 0);
    assert_eq!(schedule.time_of(0), 0);
    assert_eq!(due(&mut schedule, 49..51), [0, 50_000_000]);
    assert_counts(&mut schedule, &[(1, 50), (50_000_000, 50), (S, 1000)]);
}

#[test]
fn a_trace_is_repeated_as_it_was() {
    let times: Arc<[u64]> = Arc::from([0, 5, 5, 70]);
    let mut schedule = Schedule::trace(times.clone(), 10, None);
    assert_eq!(due(&mut schedule, 0..5), [10, 15, 15, 80, u64::MAX]);
    let counts = [(0, 0), (10, 0), (11, 1), (15, 1), (16, 3), (80, 3), (81, 4), (u64::MAX, 4)];
    assert_counts(&mut schedule, &counts);
    assert_eq!(schedule.expected(11, 80), 2.0);
    // And again each time 100 ns have passed.
    let mut schedule = Schedule::trace(times, 10, Some(100));
    assert_eq!(due(&mut schedule, 2..7), [15, 80, 110, 115, 115]);
    let counts = [(0, 0), (80, 3), (81, 4), (110, 4), (111, 5), (181, 8), (1010, 40)];
    assert_counts(&mut schedule, &counts);
    assert_eq!(schedule.expected(210, 310), 4.0);
}

#[test]
fn there_is_no_schedule_without_an_open_loop() {
    assert!(Schedule::new(&Arrivals::Closed, 0).is_none());
    assert!(Schedule::new(&Arrivals::Held, 0).is_none());
}

/// In any interval of a Poisson process with a changing rate, mean and variance of the count equal the difference of Λ.
#[test]
fn poisson_arrivals_follow_ramps_and_steps() {
    const RUNS: u64 = 400;
    let rates = [(100.0, 500.0, 2 * S), (0.0, 0.0, S), (50.0, 50.0, 2 * S)];
    let segments = rates.map(|(from, to, ns)| segment(from, to, ns));
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 6)] {
        let (from, to) = (from * S, to * S);
        let mut counts = Vec::new();
        let mut want = 0.0;
        for seed in 0..RUNS {
            let mut schedule = varied(&segments, Spacing::Poisson { seed }, S);
            want = schedule.expected(from, to);
            counts.push((schedule.count_before(to) - schedule.count_before(from)) as f64);
        }
        let n = RUNS as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // Four standard errors.
        let of_mean = 4.0 * (want / n).sqrt();
        assert!((mean - want).abs() <= of_mean, "{mean}, not {want}");
        let of_variance = 4.0 * want * ((2.0 + 1.0 / want.max(1.0)) / n).sqrt();
        let apart = (variance - want).abs();
        assert!(apart <= of_variance, "{variance}, not {want}");
    }
}

#[test]
fn poisson_arrivals_are_the_same_for_every_number_of_threads() {
    let segments = [segment(1000.0, 5000.0, 3 * S)];
    let mut schedule = varied(&segments, Spacing::Poisson { seed: 7 }, S);
    schedule.prepare(4 * S);
    let count = schedule.count_before(4 * S);
    let times = due(&mut schedule, 0..count);
    assert!((9000..10_000).contains(&count), "{count}");
    for threads in [2, 3, 8] {
        for thread in 0..threads {
            let mut thread_schedule = schedule.clone();
            let mut share = Share::new(0, count, thread, threads);
            while share.next < share.end {
                assert_eq!(thread_schedule.time_of(share.next), times[share.next as usize]);
                share.next += threads;
            }
        }
    }
}

proptest! {
    #[test]
    fn counting_and_timing_are_inverse(
        rate in 0.1_f64..5e6, ramp in 0_u64..5 * S, t in 0_u64..36_000 * S,
    ) {
        inverse_at(&mut constant(rate, ramp), t)?;
    }

    #[test]
    fn counting_and_timing_are_inverse_when_the_rate_changes(
        rates in prop::collection::vec(
            prop_oneof![Just((0.0, 0.0)), (0.1_f64..5e6, 0.1_f64..5e6), (0.0_f64..1.0, 0.0_f64..1e3)],
            1..6,
        ),
        ns in 1_u64..3600 * S,
        ramp in 0_u64..5 * S,
        size in 0_u32..200,
        at in 0.0_f64..1.2,
    ) {
        let segments: Vec<_> =
            rates.iter().map(|&(from, to)| segment(from, to, ns)).collect();
        let spacing = match size {
            0..100 => Spacing::Even,
            size => Spacing::Burst { size: size - 99 },
        };
        let mut schedule = varied(&segments, spacing, ramp);
        let length = ramp + ns * rates.len() as u64;
        inverse_at(&mut schedule, (at * length as f64) as u64)?;
        // The edges of segments are where it would go wrong.
        for edge in 0..=rates.len() as u64 {
            inverse_at(&mut schedule, ramp + edge * ns)?;
        }
    }

    #[test]
    fn counting_and_timing_are_inverse_for_poisson_arrivals(
        rates in prop::collection::vec((0.0_f64..5e4, 0.0_f64..5e4), 1..4),
        ns in 1_u64..20 * S,
        ramp in 0_u64..5 * S,
        seed in any::<u64>(),
        at in 0.0_f64..1.2,
    ) {
        let segments: Vec<_> =
            rates.iter().map(|&(from, to)| segment(from, to, ns)).collect();
        let mut schedule = varied(&segments, Spacing::Poisson { seed }, ramp);
        let length = ramp + ns * rates.len() as u64;
        inverse_at(&mut schedule, (at * length as f64) as u64)?;
    }
}

#[test]
fn a_schedule_does_not_drift_in_a_week() {
    const WEEK: u64 = 7 * 24 * 3600;
    for rate in [3_u64, 2000, 333_333] {
        let mut schedule = constant(rate as f64, 0);
        for k in [rate * WEEK / 2 + 1, rate * WEEK - 1] {
            let exact = (u128::from(k) * u128::from(S)).div_ceil(u128::from(rate));
            let time = u128::from(schedule.time_of(k));
            assert!(
                time.abs_diff(exact) <= 1,
                "{rate}/s: arrival {k} is due at {time}, not {exact}"
            );
        }
        assert_eq!(schedule.count_before(WEEK * S), rate * WEEK);
    }
}
