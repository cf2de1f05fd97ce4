//! Slices in which the machine stood still: what they are left out of, and when.
//!
//! They are left out of typical p99s alone. A hold-up of a few milliseconds is all that is beyond the p99 of a short
//! time, whatever the arm does; medians, rates, CPU time and pooled quantiles bear it or are to hold it. Which slices
//! these are was decided when they were recorded, by meters; here it is decided once for all arms under a load whether
//! they are left out. They are not where that would take half of the blocks of a comparison: then such moments are what
//! this machine's p99 is made of, and what would be left is a choice of few.

use weir_model::record::TrialRecord;
use weir_model::study::Study;

use crate::blocks::{Block, Judged};
use crate::findings::HoldUpFindings;

/// Whether a trial has a slice in which the machine did not stand still.
pub(crate) fn has_undisturbed(trial: &TrialRecord) -> bool {
    trial.slices.iter().any(|slice| !slice.stood_still)
}

/// What meters say of the slices of a load; `None` where there were none.
pub(crate) fn seen(blocks: &[Block<'_>], study: &Study) -> Option<HoldUpFindings> {
    let trials = blocks.iter().flatten().flatten();
    let slices = || trials.clone().flat_map(|judged| &judged.trial.slices);
    let of = slices().filter(|slice| !slice.held_up.is_unknown()).count();
    let still = slices().filter(|slice| slice.stood_still).count();
    let usable_blocks = |pair: [usize; 2], tells: fn(&TrialRecord) -> bool| {
        let is_such = |judged: &Judged<'_>| judged.usable() && tells(judged.trial);
        let own = |block: &Block<'_>, arm: usize| block.get(arm)?.as_ref().map(is_such);
        let both = |block: &&Block<'_>| pair.iter().all(|&arm| own(block, arm) == Some(true));
        blocks.iter().filter(both).count()
    };
    let pairs = study.arms.iter().enumerate();
    let mut pairs = pairs.map(|(arm, spec)| [arm, spec.against]);
    let left_out =
        pairs.all(|pair| 2 * usable_blocks(pair, has_undisturbed) > usable_blocks(pair, |_| true));
    (of > 0).then_some(HoldUpFindings {
        slices: still as u32,
        of: of as u32,
        left_out: left_out && still > 0,
    })
}
