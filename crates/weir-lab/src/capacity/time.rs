//! How long searches take, and the time that they have.

use std::time::Duration;

use weir_model::study::Study;

use super::arm::Searched;
use super::closed;
use super::seen::Frame;
use crate::budget::{ENDING, SWITCH};

/// Seconds of an arm's short trials, and of long ones beyond the first, unless a budget leaves less.
const SHORT_S: f64 = 100.0;
const LONG_S: f64 = 200.0;
/// Seconds of short trials that a search takes as a rule: a ramp of five, and as many ladders as it takes to be precise.
const LIKELY_S: f64 = 80.0;
/// And the fewest with which it can claim anything: a ramp, and two ladders.
const LEAST_S: f64 = 40.0 + STEP_S;
/// The time for short trials ends with a ladder, or with trials above the interval, of so many seconds.
const STEP_S: f64 = 16.0;
/// What is not a trial, as a share of the trials: pauses, new instances, connections.
const BESIDE: f64 = 0.08;

/// The time that each search has, seconds of trials.
pub(crate) struct Budget {
    /// Before the first long one.
    pub(crate) short_s: f64,
    /// For further long ones.
    pub(crate) long_s: f64,
}

/// The share of an arm in what the run may take, less its closed loops (so many seconds), its first long trial and what is
/// no trial.
pub(crate) fn budget(study: &Study, closed_s: f64) -> Budget {
    let Some(budget) = study.budget else {
        return Budget {
            short_s: SHORT_S,
            long_s: LONG_S,
        };
    };
    let arms = study.arms.len().max(1);
    let budget = budget.saturating_sub(ENDING + switching(study, arms));
    let own = budget.as_secs_f64() / (1.0 + BESIDE) / arms as f64 - closed_s - hold_s(study);
    let short_s = (own - STEP_S).clamp(0.0, SHORT_S);
    Budget {
        short_s,
        long_s: (own - STEP_S - short_s).clamp(0.0, LONG_S),
    }
}

/// How long a study's searches take at most, everything included: where the target changes, and where short trials hold
/// what does not last.
pub fn at_most(study: &Study) -> Duration {
    let connections = study.loads[0].main.connections;
    let closed_s = closed::most_s(connections, study.search.most_connections);
    let Budget { short_s, long_s } = budget(study, closed_s);
    let each = closed_s + short_s + STEP_S + long_s + hold_s(study);
    let all = of_all(study, each);
    all.min(study.budget.unwrap_or(all))
}

/// How long a study's searches take, about, everything included.
pub(crate) fn takes(study: &Study) -> Duration {
    let closed_s = closed::likely_s();
    of_all(
        study,
        closed_s + LIKELY_S.min(budget(study, closed_s).short_s) + hold_s(study),
    )
}

/// The least with which a study's searches can claim anything, everything included.
pub fn least(study: &Study) -> Duration {
    of_all(study, closed::likely_s() + LEAST_S + hold_s(study)) + ENDING
}

/// What so many seconds of trials of each arm take by the clock.
fn of_all(study: &Study, each: f64) -> Duration {
    let arms = study.arms.len();
    Duration::from_secs_f64((1.0 + BESIDE) * each * arms as f64) + switching(study, arms)
}

/// What so many arms take until their settings are in force, where they have one proxy in turn.
fn switching(study: &Study, arms: usize) -> Duration {
    match study.is_in_turn() {
        true => SWITCH * arms as u32,
        false => Duration::ZERO,
    }
}

/// The budget, seconds by the clock, of a run that has been at work for so long and whose arms need so many more seconds of
/// trials each; `None` where no budget gives a search that much.
pub(crate) fn enough_s(study: &Study, passed: Duration, more_s: f64) -> Option<f64> {
    let more_s = (1.0 + BESIDE) * (more_s.max(0.0) + STEP_S) * study.arms.len().max(1) as f64;
    // Arms whose turn comes after this one have their share still before them.
    let passed = match (study.is_in_turn(), study.budget) {
        (true, Some(budget)) => passed.max(budget),
        _ => passed,
    };
    let enough = passed + Duration::from_secs_f64(more_s) + ENDING;
    let mut unbound = study.clone();
    unbound.budget = None;
    let is_given = study.budget.is_some() && enough <= at_most(&unbound);
    is_given.then(|| (enough.as_secs_f64() / 10.0).ceil() * 10.0)
}

/// The time that each of so many arms has left, where the study has a budget and the run has been at work for so long.
pub(crate) fn share_of_budget(study: &Study, passed: Duration, arms: usize) -> Option<Duration> {
    let left = study.budget?.saturating_sub(passed + ENDING);
    Some(left / (arms as u32).max(1))
}

/// Seconds of trials that there is room for in such a time.
pub(crate) fn of_trials_s(time: Duration) -> f64 {
    time.as_secs_f64() / (1.0 + BESIDE)
}

/// How long they take from here on, where the run has been at work for so long: no longer than its budget.
pub(crate) fn left(frame: &Frame, arms: &[Searched], passed: Duration) -> Duration {
    let study = &frame.header.study;
    let fresh = LIKELY_S.min(budget(study, closed::likely_s()).short_s) + hold_s(study);
    let each = arms.iter().map(|arm| arm.left_s().unwrap_or(fresh));
    let new = arms.iter().filter(|arm| arm.left_s().is_none()).count();
    let left = Duration::from_secs_f64((1.0 + BESIDE) * each.sum::<f64>()) + switching(study, new);
    let most = study.budget.map(|budget| budget.saturating_sub(passed));
    left.min(most.unwrap_or(left))
}

fn hold_s(study: &Study) -> f64 {
    study.search.hold.as_secs_f64()
}
