use super::*;
use crate::edge::Closed;
use crate::goal::{Bound, Progress};

mod faults;

fn goal(seed: u64) -> Goal {
    Goal {
        bounds: vec![Bound::quantile(0.99, 0.03)],
        confidence: 0.95,
        half_width: 0.03,
        budget_s: 100.0,
        verify_s: 65.0,
        long_s: 400.0,
        burst_s: None,
        ceiling: None,
        closed: Closed {
            rate: 2000.0,
            off: 0.015,
            wander: 0.0,
        },
        seed,
    }
}

/// A window in which so many broke the only bound.
fn window(trial: &Trial, bad: f64) -> Seen {
    Seen {
        bad: vec![bad],
        value: vec![0.02 + bad],
        due: trial.rate,
        sent: 1.0,
        completed: trial.rate.min(2000.0),
        is_held_up: false,
    }
}

/// What was tried, what it showed, and what was known then.
type Told = Vec<(Trial, Vec<Seen>, Progress)>;

/// Asks a target until there is an answer. It is told the trial and the time since the beginning, seconds.
fn run(goal: Goal, target: &mut dyn FnMut(&Trial, f64) -> Seen) -> (Answer, Told) {
    let mut search = Search::new(goal);
    let (mut told, mut now): (Told, f64) = (Vec::new(), 0.0);
    for _ in 0..500 {
        let trial = match search.propose() {
            Ok(trial) => trial,
            Err(answer) => return (*answer, told),
        };
        now += trial.rest_s + trial.settle_s;
        let mut windows = Vec::new();
        while windows.len() < trial.windows && search.go_on(&trial, &windows) {
            now += trial.window_s();
            windows.push(target(&trial, now));
        }
        search.seen(&trial, &windows);
        told.push((trial, windows, search.progress()));
    }
    panic!("no end after 500 trials");
}

/// The same of a target of which is known how many are bad in a trial.
fn ask(goal: Goal, bad: &mut dyn FnMut(&Trial) -> f64) -> (Answer, usize) {
    let (answer, told) = run(goal, &mut |trial, _| window(trial, bad(trial)));
    (answer, told.len())
}

fn cliff(trial: &Trial, edge: f64) -> f64 {
    f64::from(u8::from(trial.rate > edge))
}

/// M/M/1 of 2000/s: capacity 2000 - ln(100)/0.03. What is bad comes in clusters of one memory of the queue.
fn queue(rng: &mut SplitMix64, trial: &Trial) -> f64 {
    let share = (-(2000.0 - trial.rate) * 0.03).min(0.0).exp();
    let margin = (2000.0 / trial.rate).ln().max(0.01);
    let clusters = (trial.rate * trial.window_s() * margin * margin / 2.0)
        .ceil()
        .max(1.0);
    let bad = (0..clusters as usize)
        .filter(|_| rng.unit() < share)
        .count();
    bad as f64 / clusters
}

#[test]
fn the_interval_covers_what_a_queue_carries() {
    let truth = 2000.0 - 100.0_f64.ln() / 0.03;
    let covers = |seed: &u64| {
        let mut rng = SplitMix64::new(1000 + seed);
        let (answer, _) = ask(goal(*seed), &mut |trial| queue(&mut rng, trial));
        assert!(
            answer.verified > 0.0 && answer.fresh.is_none(),
            "{answer:?}"
        );
        answer.interval.0 <= truth && truth <= answer.interval.1
    };
    let count = (0..10).filter(covers).count();
    assert!(count >= 9, "{count} of 10");
}

#[test]
fn an_edge_that_is_a_cliff_is_found_to_some_per_cent() {
    let (answer, trials) = ask(goal(1), &mut |trial| cliff(trial, 1200.0));
    assert!(
        answer.verified <= 1200.0 && answer.verified > 1110.0,
        "{answer:?}"
    );
    assert!(
        answer.interval.1 >= 1200.0 && trials < 60,
        "{answer:?}, {trials}"
    );
}

#[test]
fn what_no_rate_avoids_ends_the_search_and_is_named() {
    // One that fails always as often, one that is slow from the first request on.
    for (name, always) in [("fails 3 %", 0.03), ("slow", 1.0)] {
        let (answer, trials) = ask(goal(1), &mut |_| always);
        assert_eq!(answer.why, Why::Never, "{name}");
        assert!(
            (answer.floor[0] - always).abs() < 1e-9,
            "{name}: {answer:?}"
        );
        assert!(
            (answer.least[0] - 0.02 - always).abs() < 1e-9,
            "{name}: {answer:?}"
        );
        assert!(trials <= 8, "{name}: {trials}");
    }
}

#[test]
fn what_only_a_long_trial_shows_is_told_apart() {
    // Nothing is bad for ten seconds, then everything is above 900/s; and what fails collapses, or is only late.
    for completes in [0.5, 1.0] {
        let mut lasting = |trial: &Trial, _| {
            let edge = if trial.windows > 1 { 900.0 } else { 1200.0 };
            let bad = cliff(trial, edge);
            let lost = if trial.windows > 1 {
                bad * (1.0 - completes)
            } else {
                0.0
            };
            let completed = trial.rate * (1.0 - lost);
            Seen {
                completed,
                ..window(trial, bad)
            }
        };
        let (answer, told) = run(goal(1), &mut lasting);
        assert!(
            answer.interval.0 <= 900.0 && answer.interval.1 >= 900.0,
            "{answer:?}"
        );
        assert!(answer.interval.1 <= 1.08 * answer.interval.0, "{answer:?}");
        assert_eq!(answer.verified, answer.interval.0);
        let fresh = answer.fresh.unwrap();
        assert!(
            fresh.0 <= 1200.0 && fresh.1 >= 1200.0 && fresh.0 > 1100.0,
            "{answer:?}"
        );
        let long = told.iter().filter(|one| one.0.stage == Stage::Hold).count();
        assert!(long <= 9, "{long}");
    }
}

/// What is done of so many requests in so many seconds, with so many in use.
type Does = fn(f64, f64, f64) -> f64;

#[test]
fn what_is_used_up_for_a_minute_does_not_hide_what_lasts() {
    // Each request takes one of 300,000 for a minute: 5,000/s last. Or each costs more by 1/60,000 for each that is in use, so
    // r · (1 + 60 r / 60,000) = 12,000 lasts.
    let ports: Does = |due, most, used| due.min(300_000.0 - used).min(most).max(0.0);
    let dearer: Does = |due, most, used| due.min(most / (1.0 + used / 60_000.0));
    for (does, lasts, (wide, trials)) in [(ports, 5_000.0, (1.08, 9)), (dearer, 3_000.0, (1.1, 8))]
    {
        let mut used: Vec<(f64, f64)> = Vec::new();
        let mut last = 0.0;
        let mut target = |trial: &Trial, now: f64| {
            let seconds = (trial.window_s() + trial.settle_s).min(now - last);
            last = now;
            used.retain(|(at, _)| now - at < 60.0);
            let in_use = used.iter().map(|(_, count)| count).sum::<f64>();
            let due = trial.rate * seconds;
            let done = does(due, 12_000.0 * seconds, in_use);
            used.push((now, done));
            Seen {
                completed: done / seconds,
                ..window(trial, 1.0 - done / due)
            }
        };
        let closed = Closed {
            rate: 12_000.0,
            ..goal(1).closed
        };
        let (answer, told) = run(Goal { closed, ..goal(1) }, &mut target);
        let (low, high) = answer.interval;
        assert!(low <= 1.02 * lasts && high >= 0.98 * lasts, "{answer:?}");
        assert!(high <= wide * low, "{answer:?}");
        let long = told.iter().filter(|one| one.0.stage == Stage::Hold).count();
        assert!(long <= trials, "{long}");
    }
}

#[test]
fn the_limit_that_breaks_first_decides() {
    for (edges, decides) in [
        ([1500.0, 1200.0], 1),
        ([1200.0, 1500.0], 0),
        ([900.0, 1800.0], 0),
    ] {
        let bounds = vec![Bound::quantile(0.99, 0.03), Bound::errors(0.001)];
        let mut target = |trial: &Trial, _| Seen {
            bad: edges.map(|edge| cliff(trial, edge)).to_vec(),
            ..window(trial, 0.0)
        };
        let (answer, _) = run(Goal { bounds, ..goal(2) }, &mut target);
        let edge = edges[decides];
        assert_eq!(answer.decides, decides, "{answer:?}");
        assert!(
            answer.interval.0 <= edge && edge <= answer.interval.1,
            "{answer:?}"
        );
        assert!(answer.interval.1 < 1.1 * edge, "{answer:?}");
    }
}

#[test]
fn the_mean_of_a_queue_has_its_limit_where_the_search_finds_it() {
    // M/M/1 has a mean of 1 / (2000 - rate): 20 ms at 1950/s, 5 ms at 1800/s.
    for limit_s in [0.02, 0.005] {
        let truth = 2000.0 - 1.0 / limit_s;
        let mut rng = SplitMix64::new(3);
        let mut target = |trial: &Trial, _| {
            let noise = 1.0 + 0.1 * (rng.unit() - 0.5);
            let mean_s = noise / (2000.0 - trial.rate).max(1.0);
            window(trial, Bound::bad_of_mean(mean_s, limit_s))
        };
        let bounds = vec![Bound::mean(limit_s)];
        let (answer, _) = run(Goal { bounds, ..goal(3) }, &mut target);
        assert!(
            answer.interval.0 <= truth && truth <= answer.interval.1,
            "{answer:?}"
        );
        assert!(half_width(answer.interval) < 0.05, "{answer:?}");
    }
}

#[test]
fn a_burst_may_be_higher_than_what_lasts() {
    // 1,200/s, and 1,000 more after a rest: 1,400/s for five seconds.
    let mut target = |trial: &Trial, _| {
        let edge = match trial.stage {
            Stage::Burst => 1200.0 + 1000.0 / trial.measure_s,
            _ => 1200.0,
        };
        window(trial, cliff(trial, edge))
    };
    let goal = Goal {
        burst_s: Some(5.0),
        ..goal(1)
    };
    let (answer, told) = run(goal, &mut target);
    let burst = answer.burst.unwrap();
    assert!(burst.low <= 1400.0 && burst.high > 1400.0, "{burst:?}");
    assert!(
        burst.high / burst.low < 1.11 && burst.confidence > 0.95,
        "{burst:?}"
    );
    let rests = told.iter().filter(|one| one.0.stage == Stage::Burst);
    assert!(rests.clone().count() < 25 && rests.clone().all(|one| one.0.rest_s >= 10.0));
    assert!(
        answer.interval.1 < 1300.0 && answer.seconds.1 > 300.0,
        "{answer:?}"
    );
}

#[test]
fn bursts_that_hold_by_half_widen_the_interval_and_end() {
    let mut rng = SplitMix64::new(9);
    let mut bursts = Bursts::new(1000.0);
    let mut trials = 0;
    let burst = loop {
        if let Some(burst) = bursts.answer(1.0, 1e6) {
            break burst;
        }
        trials += 1;
        // The more often it holds, the lower the rate.
        let share = 1.0 / (1.0 + ((bursts.rate() - 1400.0) / 50.0).exp());
        bursts.put(rng.unit() < share);
    };
    assert!(
        burst.low < 1400.0 && burst.high > 1400.0 && trials <= 40,
        "{burst:?} {trials}"
    );
}

#[test]
fn it_is_known_on_the_way_how_far_it_is() {
    let mut rng = SplitMix64::new(1);
    let goal = Goal {
        burst_s: Some(2.0),
        ..goal(1)
    };
    let (answer, told) = run(goal, &mut |trial, _| window(trial, queue(&mut rng, trial)));
    let ladders = told.iter().filter(|one| one.2.stage == Some(Stage::Ladder));
    assert!(ladders.clone().count() > 10 && ladders.clone().all(|one| one.2.between.is_some()));
    let last = told.last().unwrap().2;
    assert_eq!((last.stage, last.left_s), (None, 0.0));
    assert_eq!(
        (last.seconds, last.between),
        (answer.seconds.1, Some(answer.interval))
    );
    // Half way it is known to within a factor of two.
    let half = told
        .iter()
        .find(|one| one.2.seconds > answer.seconds.1 / 2.0)
        .unwrap()
        .2;
    let left_s = answer.seconds.1 - half.seconds;
    assert!(
        (0.5..2.0).contains(&(half.left_s / left_s)),
        "{half:?} {left_s}"
    );
}

#[test]
fn a_search_that_is_told_the_same_is_where_it_was() {
    let mut rng = SplitMix64::new(1);
    let (answer, told) = run(goal(7), &mut |trial, _| {
        window(trial, queue(&mut rng, trial))
    });
    for resumed_at in [1, 7, told.len() - 1] {
        let mut search = Search::new(goal(7));
        for (trial, windows, progress) in &told[..resumed_at] {
            // Proposed twice where what was proposed was not measured.
            assert_eq!(search.propose(), search.propose());
            assert_eq!(search.propose().as_ref(), Ok(trial));
            search.seen(trial, windows);
            assert_eq!(search.progress(), *progress);
        }
        assert_eq!(search.propose().unwrap(), told[resumed_at].0);
        search.seen(&told[resumed_at].0, &[]);
        assert_eq!(
            search.propose().unwrap(),
            told[resumed_at].0,
            "one without windows was not made"
        );
    }
    assert!(answer.verified > 0.0);
}

#[test]
fn a_hopeless_trial_ends_early_and_one_that_recovers_goes_on() {
    let search = Search::new(goal(1));
    let trial = search.long_trial(1000.0);
    let clean = |count: usize| vec![window(&trial, 0.0); count];
    let every = |nth: usize, other: &Seen| -> Vec<Seen> {
        let one = |at: usize| match at % nth {
            0 => other.clone(),
            _ => window(&trial, 0.0),
        };
        (0..64).map(one).collect()
    };
    let held_up = Seen {
        is_held_up: true,
        ..window(&trial, 0.3)
    };
    let late = Seen {
        sent: 0.7,
        ..window(&trial, 0.3)
    };
    let with = |bad: &[f64], after: usize| -> Vec<Seen> {
        let bad = bad.iter().map(|bad| window(&trial, *bad));
        bad.chain(clean(after)).collect()
    };
    for (windows, goes_on) in [
        (with(&[0.1; 11], 0), true),
        (with(&[0.1; 12], 0), false),
        (clean(64), true),
        (clean(65), false),
        // A stall of seconds.
        (with(&[0.3; 3], 7), true),
        (with(&[0.3; 3], 64), true),
        (with(&[0.3; 3], 65), false),
        (with(&[0.3; 8], 2), false),
        // The longest stretch between stalls says nothing.
        ([with(&[0.5], 10), with(&[0.5], 65)].concat(), true),
        // The machine stands still now and then, or most of the time.
        (every(3, &held_up), true),
        (every(1, &held_up), false),
        // The generator was late in some, and in most.
        (every(3, &late)[..60].to_vec(), true),
        (every(1, &late)[..10].to_vec(), false),
    ] {
        assert_eq!(
            search.go_on(&trial, &windows),
            goes_on,
            "{} windows",
            windows.len()
        );
    }
    let mut after_failure = Search::new(goal(1));
    after_failure.failures = 1;
    assert!(
        after_failure.go_on(&trial, &with(&[1.0; 60], 0)),
        "it still forgets"
    );
    assert!(after_failure.go_on(&trial, &with(&[1.0; 60], 10)));
    assert!(!after_failure.go_on(&trial, &with(&[1.0; 66], 0)));
}

#[test]
fn a_limit_that_nothing_breaks_makes_no_interval_wider() {
    let bounds = vec![Bound::quantile(0.99, 0.1), Bound::errors(0.001)];
    let target = |trial: &Trial| Seen {
        // The backlog takes a while to be as long as the limit.
        bad: vec![0.53 * cliff(trial, 500.0), 0.0],
        value: vec![0.02, 0.0],
        completed: trial.rate.min(500.0),
        ..window(trial, 0.0)
    };
    let closed = Closed {
        rate: 499.0,
        ..goal(1).closed
    };
    let mut search = Search::new(Goal {
        bounds,
        closed,
        ..goal(1)
    });
    for _ in 0..7 {
        let trial = search.propose().expect("a trial");
        let seen = target(&trial);
        search.seen(&trial, &[seen]);
    }
    let (low, high) = search.progress().between.expect("an interval");
    assert!(low > 440.0 && low <= 500.0 && high >= 500.0, "{low} {high}");
}
