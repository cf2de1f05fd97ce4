//! Which trials are left out because the machine stood still: decided by its meters alone, with one limit for all
//! arms under a load.
//!
//! A comparison rests on the blocks in which neither of its two arms was held up for longer. Where that would be
//! fewer than half of them the limit is raised until it is half: a machine that stands still all the time would
//! leave nothing to compare, and the shorter hold-ups are then in all blocks alike.

use weir_model::record::{SliceRecord, TrialRecord};
use weir_model::study::Study;

/// Hold-ups up to this length are borne, nanoseconds. Twelve requests in a millisecond are half of what is beyond
/// the p99 in two slices of 100 ms at 12,000/s.
const LIMIT_NS: u64 = 1_000_000;

/// How long a trial was held up, and how long it may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldUpFor {
    pub(crate) longest_ns: u64,
    /// Whose CPUs stood still.
    pub(crate) role: &'static str,
    pub(crate) limit: Limit,
}

/// How long trials of a load may be held up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) ns: u64,
    /// Whether it was raised, so that half of the blocks are left.
    pub(crate) is_raised: bool,
}

impl HeldUpFor {
    /// How long it was held up, of what is borne.
    pub(crate) fn share(&self) -> f64 {
        self.longest_ns as f64 / self.limit.ns as f64
    }

    pub(crate) fn seen(&self) -> String {
        let because = match self.limit.is_raised {
            true => " here, since less would leave out half of the blocks",
            false => "",
        };
        format!(
            "the machine stood still for {:.1} ms on a CPU of the {}; up to {:.1} ms are borne{because}",
            self.longest_ns as f64 / 1e6,
            self.role,
            self.limit.ns as f64 / 1e6,
        )
    }
}

/// The longest hold-up of any CPU in use in a trial's slices, and the CPU's role; `None` without a meter.
fn longest(trial: &TrialRecord) -> Option<(u64, &'static str)> {
    let roles = |slice: &SliceRecord| slice.held_up.roles();
    let seen = trial.slices.iter().flat_map(roles);
    let seen = seen.filter_map(|(role, held_up)| Some((held_up?.longest_ns, role)));
    seen.max_by_key(|(ns, _)| *ns)
}

impl Limit {
    /// The limit of a load whose blocks these are: trials by the arm's index.
    pub(crate) fn of(blocks: &[Vec<Option<&TrialRecord>>], study: &Study) -> Limit {
        let known = |block: &[Option<&TrialRecord>], arm: usize| {
            let longest = block.get(arm).copied().flatten().and_then(longest);
            longest.map(|(ns, _)| ns)
        };
        let typical = |(arm, against): (usize, usize)| {
            let both = blocks.iter().filter_map(|block| {
                let worst = known(block, arm)?.max(known(block, against)?);
                Some(worst)
            });
            let mut both: Vec<u64> = both.collect();
            both.sort_unstable();
            // With this as the limit the larger half is left.
            both.get(both.len().saturating_sub(1).div_ceil(2)).copied()
        };
        let arms = study.arms.iter().enumerate();
        let pairs = arms.map(|(index, arm)| (index, arm.against));
        let half = pairs.filter_map(typical).max().unwrap_or(0);
        Limit {
            ns: half.max(LIMIT_NS),
            is_raised: half > LIMIT_NS,
        }
    }

    /// What meters say of a trial; `None` without one.
    pub(crate) fn held_up(self, trial: &TrialRecord) -> Option<HeldUpFor> {
        let (longest_ns, role) = longest(trial)?;
        Some(HeldUpFor {
            longest_ns,
            role,
            limit: self,
        })
    }
}
