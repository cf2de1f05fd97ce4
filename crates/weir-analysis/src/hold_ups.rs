//! Slices in which the machine stood still: what they are left out of, and when.
//!
//! They are left out of typical p99s alone. A hold-up of a few milliseconds is all that is beyond the p99 of a short
//! time, whatever the arm does; medians, rates, CPU time and pooled quantiles bear it or are to hold it. Which slices
//! these are was decided when they were recorded, by meters; here it is decided once for all arms under a load whether
//! they are left out. They are not where that would take half of the blocks of a comparison: then such moments are what
//! this machine's p99 is made of, and what would be left is a choice of few. Nor are they where one of two arms that are
//! compared has clearly more of them: then they may be of the arm's own making.

use crate::blocks::LoadData;
use crate::findings::HoldUpFindings;

/// Standard errors.
const CLEARLY: f64 = 4.0;

/// Whether an arm's trial in a block is usable and has a slice in which the machine did not stand still.
pub(crate) fn has_undisturbed(data: &LoadData<'_>, block: usize, arm: usize) -> bool {
    let slices = data.usable(block, arm).map(|trial| &trial.slices);
    slices.is_some_and(|slices| slices.iter().any(|slice| !slice.stood_still))
}

/// What meters say of the slices of an open loop; `None` where there were none.
pub(crate) fn seen(data: &LoadData<'_>) -> Option<HoldUpFindings> {
    let trials = data.blocks.iter().flatten().flatten();
    let slices = || trials.clone().flat_map(|judged| &judged.trial.slices);
    let of = slices().filter(|slice| !slice.held_up.is_unknown()).count();
    let still = slices().filter(|slice| slice.stood_still).count();
    let arms = || data.study.arms.iter().enumerate();
    let enough = arms().all(|(arm, spec)| {
        let both = |block: &&usize| {
            has_undisturbed(data, **block, arm) && has_undisturbed(data, **block, spec.against)
        };
        let blocks = data.usable_pairs(arm, spec.against);
        2 * blocks.iter().filter(both).count() > blocks.len()
    });
    let more_often_of = arms().find_map(|(arm, spec)| more_often(data, arm, spec.against));
    let more_often_of = more_often_of.map(|arm| data.study.arms[arm].name.clone());
    (data.open && of > 0).then_some(HoldUpFindings {
        slices: still as u32,
        of: of as u32,
        left_out: enough && more_often_of.is_none() && still > 0,
        more_often_of,
    })
}

/// The one of two arms that has clearly more of these slices: by more standard errors of the difference of two shares
/// than chance has in a thousand comparisons, those of a hold-up that several slices share included.
fn more_often(data: &LoadData<'_>, arm: usize, against: usize) -> Option<usize> {
    let counts = [arm, against].map(|arm| {
        let slices = || data.usable_of(arm).flat_map(|trial| &trial.slices);
        let still = slices().filter(|slice| slice.stood_still).count();
        (still as f64, slices().count() as f64)
    });
    let [(own, n), (others, m)] = counts;
    let share = (own + others) / (n + m);
    let error = (share * (1.0 - share) * (1.0 / n + 1.0 / m)).sqrt();
    let difference = own / n - others / m;
    let is_more = difference.abs() > CLEARLY * error;
    is_more.then_some(if difference > 0.0 { arm } else { against })
}
