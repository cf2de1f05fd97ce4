use super::*;
use crate::edge::Closed;
use crate::goal::Bound;

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

/// Asks a target of which is known how many are bad at a rate, until there is an answer; how many trials that took.
fn ask(goal: Goal, bad: &mut dyn FnMut(&Trial) -> f64) -> (Answer, usize) {
    let most = goal.closed.rate;
    let mut search = Search::new(goal);
    for trials in 0..500 {
        let trial = match search.propose() {
            Ok(trial) => trial,
            Err(answer) => return (answer, trials),
        };
        let mut windows = Vec::new();
        while windows.len() < trial.windows && search.go_on(&trial, &windows) {
            windows.push(Seen {
                bad: vec![bad(&trial)],
                value: Vec::new(),
                due: trial.rate,
                sent: 1.0,
                completed: trial.rate.min(most),
            });
        }
        search.seen(&trial, &windows);
    }
    panic!("no end after 500 trials");
}

/// M/M/1 of 2000/s: capacity 2000 - ln(100)/0.03. What is bad comes in clusters of one memory of the queue.
fn queue(rng: &mut SplitMix64, trial: &Trial) -> f64 {
    let share = (-(2000.0 - trial.rate) * 0.03).min(0.0).exp();
    let margin = (2000.0 / trial.rate).ln().max(0.01);
    let seconds = trial.measure_s / trial.windows as f64;
    let clusters = (trial.rate * seconds * margin * margin / 2.0)
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
        assert!(answer.verified > 0.0, "{answer:?}");
        answer.interval.0 <= truth && truth <= answer.interval.1
    };
    let count = (0..40).filter(covers).count();
    assert!(count >= 36, "{count} of 40");
}

#[test]
fn an_edge_that_is_a_cliff_is_found_to_a_per_cent() {
    let mut cliff = |trial: &Trial| f64::from(u8::from(trial.rate > 1200.0));
    let (answer, trials) = ask(goal(1), &mut cliff);
    assert!(
        answer.verified <= 1200.0 && answer.verified > 1140.0,
        "{answer:?}"
    );
    assert!(
        answer.interval.1 >= 1200.0 && trials < 60,
        "{answer:?}, {trials}"
    );
}

#[test]
fn what_no_rate_avoids_ends_the_search() {
    // One that fails always as often, one that is slow from the first request on.
    for (name, always) in [("fails 3 %", 0.03), ("slow", 1.0)] {
        let (answer, trials) = ask(goal(1), &mut |_| always);
        assert_eq!(answer.why, Why::Never, "{name}");
        assert!(trials <= 12, "{name}: {trials}");
    }
}

#[test]
fn what_only_a_long_trial_shows_is_not_claimed() {
    // Nothing is bad for ten seconds, then everything is above 900/s: the search is right about trials of that
    // length, and wrong.
    let mut lasting = |trial: &Trial| match trial.measure_s > 10.0 {
        true => f64::from(u8::from(trial.rate > 900.0)),
        false => f64::from(u8::from(trial.rate > 1200.0)),
    };
    let (answer, _) = ask(goal(1), &mut lasting);
    assert!(
        answer.verified > 0.0 && answer.verified <= 900.0,
        "{answer:?}"
    );
    assert!(answer.interval.0 <= 900.0, "{answer:?}");
}

#[test]
fn a_hopeless_verification_ends_early() {
    let search = Search::new(goal(1));
    let trial = Trial {
        stage: Stage::Hold,
        rate: 1000.0,
        rest_s: 0.0,
        settle_s: 1.0,
        measure_s: 130.0,
        windows: 26,
        is_fresh: true,
    };
    let seen = |bad: f64| Seen {
        bad: vec![bad],
        value: Vec::new(),
        due: 1000.0,
        sent: 1.0,
        completed: 1000.0,
    };
    assert!(search.go_on(&trial, &[seen(0.1)]), "the rest may be clean");
    assert!(!search.go_on(&trial, &[seen(0.1), seen(0.1), seen(0.1)]));
}
