//! Slices in which the machine stood still: what they are left out of, and when.
//!
//! They are left out of typical p99s alone. A hold-up of a few milliseconds is all that is beyond the p99 of a short
//! time, whatever the arm does; medians, rates, CPU time and pooled quantiles bear it or are to hold it. Which slices
//! these are was decided when they were recorded, by meters; here it is decided once for all arms under a load whether
//! they are left out. They are not where that would take half of the blocks of a comparison: then such moments are what
//! this machine's p99 is made of, and what would be left is a choice of few.

use crate::blocks::LoadData;
use crate::findings::HoldUpFindings;

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
    let mut arms = data.study.arms.iter().enumerate();
    let left_out = arms.all(|(arm, spec)| {
        let both = |block: &&usize| {
            has_undisturbed(data, **block, arm) && has_undisturbed(data, **block, spec.against)
        };
        let blocks = data.usable_pairs(arm, spec.against);
        2 * blocks.iter().filter(both).count() > blocks.len()
    });
    (data.open && of > 0).then_some(HoldUpFindings {
        slices: still as u32,
        of: of as u32,
        left_out: left_out && still > 0,
    })
}
