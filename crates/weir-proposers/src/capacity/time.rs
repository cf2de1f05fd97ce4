//! Estimated lengths of searches, and the time available to them.

use std::time::Duration;

use weir_model::study::Study;
use weir_search::Goal;

use super::arm::Searched;
use super::closed;
use super::seen::Frame;
use crate::budget::{ENDING, SWITCH};
use crate::cell::ArmId;

/// Seconds of an arm's trials in addition to two holds, unless a budget leaves less.
const DWELLS_S: f64 = 80.0;
/// Usual seconds of a search's ramp and dwells. They surround [`LIKELY_HOLDS`] holds, since the second is often not
/// needed.
const LIKELY_S: f64 = 60.0;
const LIKELY_HOLDS: f64 = 1.5;
/// Seconds of trials before the first hold, without which no claim is possible.
const LEAST_S: f64 = 55.0;
/// Usual seconds of trials until one rate has held and another has broken.
const RAMP_S: f64 = 20.0;
/// Seconds of trials between a hold that broke and the next hold.
const BEFORE_ANOTHER_S: f64 = 25.0;
/// Seconds kept for a trial's end: a trial that has begun ends whatever the budget.
const STEP_S: f64 = 8.0;
/// Time in addition to trials, as a share of them: new instances, connections.
const BESIDE: f64 = 0.08;

/// Returns the seconds of trials of each arm: its share of the budget, less `closed_s` seconds of closed loops and time
/// without trials.
pub(crate) fn trials_s(study: &Study, closed_s: f64) -> f64 {
    let usual_s = DWELLS_S + 2.0 * hold_s(study);
    let Some(budget) = study.budget else {
        return usual_s;
    };
    let arms = study.arms.len().max(1);
    let remaining = budget.saturating_sub(ENDING + switching(study, arms));
    (remaining.as_secs_f64() / (1.0 + BESIDE) / arms as f64 - closed_s).max(0.0)
}

/// Returns the additional seconds of trials for an arm that has not carried any hold. They are 0 with a budget; without
/// one, the answer is worth them.
pub(crate) fn until_held_s(study: &Study) -> f64 {
    match study.budget {
        None => hold_s(study) + BEFORE_ANOTHER_S,
        Some(_) => 0.0,
    }
}

/// Returns the maximum length of a study's searches, everything included.
pub fn at_most(study: &Study) -> Duration {
    let connections = study.loads[0].main.connections;
    let closed_s = closed::most_s(connections, study.search.most_connections);
    let all = of_all(
        study,
        closed_s + trials_s(study, closed_s) + Goal::MOST_FURTHER * until_held_s(study),
    );
    all.min(study.budget.unwrap_or(all))
}

/// Estimates the length of a study's searches, everything included.
pub(crate) fn takes(study: &Study) -> Duration {
    let closed_s = closed::likely_s();
    of_all(study, closed_s + likely_s(study))
}

/// Estimates the seconds of trials of one search.
fn likely_s(study: &Study) -> f64 {
    let likely_s = LIKELY_S + LIKELY_HOLDS * hold_s(study);
    likely_s.min(trials_s(study, closed::likely_s()))
}

/// Returns the shortest time in which a study's searches can make a claim, everything included.
pub fn claiming(study: &Study) -> Duration {
    of_all(study, closed::likely_s() + LEAST_S + hold_s(study)) + ENDING
}

/// Returns the shortest time in which a study's searches try some rates for some seconds each, everything included.
pub fn least(study: &Study) -> Duration {
    of_all(study, closed::likely_s() + RAMP_S) + ENDING
}

/// Returns the clock time of `each` seconds of trials for every arm.
fn of_all(study: &Study, each: f64) -> Duration {
    let arms = study.arms.len();
    Duration::from_secs_f64((1.0 + BESIDE) * each * arms as f64) + switching(study, arms)
}

/// Returns the time until the settings of so many arms are in force, if they have one proxy in turn; otherwise zero.
fn switching(study: &Study, arms: usize) -> Duration {
    if study.is_in_turn() { SWITCH * arms as u32 } else { Duration::ZERO }
}

/// Returns the budget, seconds by the clock, of a run that has worked for `passed` and whose arms need `more_s` more
/// seconds of trials each. `None` if the study has no budget, or no budget gives a search that much.
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

/// Returns the time that each of `arms` arms has left if the run has worked for `passed`; `None` if the study has no
/// budget.
pub(crate) fn share_of_budget(study: &Study, passed: Duration, arms: usize) -> Option<Duration> {
    let remaining = study.budget?.saturating_sub(passed + ENDING);
    Some(remaining / (arms as u32).max(1))
}

/// Divides `left_s` among arms in proportion to the seconds that each has not used of its share. The arm `first`, if
/// any, gets at least the given seconds.
pub(crate) fn parts_s(left_s: f64, unused_s: &[f64], first: Option<(ArmId, f64)>) -> Vec<f64> {
    let all_s = unused_s.iter().sum::<f64>().max(1e-9);
    let Some((first, least_s)) = first else {
        return unused_s.iter().map(|unused_s| left_s * unused_s / all_s).collect();
    };
    let first_s = least_s.max(left_s * unused_s[first] / all_s);
    let others_s = (all_s - unused_s[first]).max(1e-9);
    (unused_s.iter().enumerate())
        .map(
            |(arm, unused_s)| {
                if arm == first { first_s } else { (left_s - first_s) * unused_s / others_s }
            },
        )
        .collect()
}

/// Returns the seconds of trials that fit into a clock time.
pub(crate) fn of_trials_s(time: Duration) -> f64 {
    time.as_secs_f64() / (1.0 + BESIDE)
}

/// Estimates how long the searches take from here on, if the run has worked for `passed`: no longer than its budget.
pub(crate) fn left(frame: &Frame, arms: &[Searched], passed: Duration) -> Duration {
    let study = &frame.header.study;
    let searches_s = arms.iter().map(|arm| arm.left_s().unwrap_or_else(|| likely_s(study)));
    let new = arms.iter().filter(|arm| arm.left_s().is_none()).count();
    let estimate =
        Duration::from_secs_f64((1.0 + BESIDE) * searches_s.sum::<f64>()) + switching(study, new);
    let most = study.budget.map(|budget| budget.saturating_sub(passed));
    estimate.min(most.unwrap_or(estimate))
}

fn hold_s(study: &Study) -> f64 {
    study.search.hold.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_time_are_as_what_is_unused_and_one_arm_may_be_served_first() {
        type Case<'a> = (&'a [f64], Option<(usize, f64)>, &'a [f64]);
        let cases: [Case<'_>; 5] = [
            (&[50.0, 50.0], None, &[50.0, 50.0]),
            (&[30.0, 10.0], None, &[75.0, 25.0]),
            (&[50.0, 50.0], Some((1, 70.0)), &[30.0, 70.0]),
            (&[50.0, 50.0], Some((1, 20.0)), &[50.0, 50.0]),
            (&[50.0, 0.0], Some((0, 10.0)), &[100.0, 0.0]),
        ];
        for (unused_s, first, expected) in cases {
            let shares_s = parts_s(100.0, unused_s, first);
            assert_eq!(shares_s, expected, "{unused_s:?} {first:?}");
        }
    }
}
