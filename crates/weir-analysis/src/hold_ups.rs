//! Slices in which the machine stood still, and the decision to leave them out.
//!
//! They are left out of typical p99s only. In a short time, a hold-up of a few milliseconds makes up everything beyond
//! the p99, whatever the arm does; medians, rates, CPU time and pooled quantiles tolerate hold-ups or are meant to
//! include them. Meters decided which slices these are when they were recorded. This module decides, once for all arms
//! under a load, if they are left out. They stay in if leaving them out would cost half of the blocks of a comparison:
//! then such moments are what this machine's p99 consists of, and the rest would be a selection of few. They also stay
//! in if one of two compared arms has clearly more of them, because they may then be the arm's own doing.

use crate::blocks::LoadData;
use crate::findings::HoldUpFindings;

/// Number of standard errors from which on a difference is clear.
const CLEARLY: f64 = 4.0;

/// Returns true if an arm's trial in a block is usable and has a slice in which the machine did not stand still.
pub(crate) fn has_undisturbed(data: &LoadData<'_>, block: usize, arm: usize) -> bool {
    let slices = data.usable(block, arm).map(|trial| &trial.slices);
    slices.is_some_and(|slices| slices.iter().any(|slice| !slice.stood_still))
}

/// Returns the findings of the meters about the slices of an open loop; `None` if there were no meters.
pub(crate) fn seen(data: &LoadData<'_>) -> Option<HoldUpFindings> {
    let trials = data.blocks.iter().flatten().flatten();
    let slices = trials.flat_map(|judged| &judged.trial.slices);
    let metered = slices.clone().filter(|slice| !slice.held_up.is_unknown()).count();
    let still = slices.filter(|slice| slice.stood_still).count();
    let mut arms = data.study.arms.iter().enumerate();
    let enough = arms.clone().all(|(arm, spec)| {
        let blocks = data.usable_pairs(arm, spec.against);
        let undisturbed = blocks.iter().filter(|block| {
            [arm, spec.against].into_iter().all(|arm| has_undisturbed(data, **block, arm))
        });
        2 * undisturbed.count() > blocks.len()
    });
    let more_often_of = arms
        .find_map(|(arm, spec)| more_often(data, arm, spec.against))
        .map(|arm| data.study.arms[arm].name.clone());
    (data.open && metered > 0).then_some(HoldUpFindings {
        slices: still as u32,
        of: metered as u32,
        left_out: enough && more_often_of.is_none() && still > 0,
        more_often_of,
    })
}

/// Returns the arm with clearly more of these slices, if one of the two has. The threshold in standard errors of the
/// difference of two shares is larger than chance reaches in a thousand comparisons, even if several slices share one
/// hold-up.
fn more_often(data: &LoadData<'_>, arm: usize, against: usize) -> Option<usize> {
    let counts = [arm, against].map(|arm| {
        let slices: Vec<_> = data.usable_of(arm).flat_map(|trial| &trial.slices).collect();
        let still = slices.iter().filter(|slice| slice.stood_still).count();
        (still as f64, slices.len() as f64)
    });
    let [(still, n), (still_against, m)] = counts;
    let share = (still + still_against) / (n + m);
    let error = (share * (1.0 - share) * (1.0 / n + 1.0 / m)).sqrt();
    let difference = still / n - still_against / m;
    let is_more = difference.abs() > CLEARLY * error;
    is_more.then_some(if difference > 0.0 { arm } else { against })
}
