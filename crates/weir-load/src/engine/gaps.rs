//! Gaps in which a thread did not run although it had not requested to wait.
//!
//! A process that is stopped, a container that is paused, a CPU used by others: nothing is sent meanwhile, and events
//! get late time stamps. A closed loop has no schedule that would reveal this, so every turn is compared with the time
//! at which the thread itself wanted to continue.

/// Times of a thread's turns.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// End of the last wait.
    at: u64,
    /// Longest time without a turn, minus the wait that the thread requested, nanoseconds.
    pub(super) longest_gap: u64,
}

impl Gaps {
    /// Records a wait that began at `from`, was to end at `until` and ended at `stamp`. Time before `since` is not
    /// measured.
    #[inline]
    pub(super) fn turned(&mut self, (from, until, stamp): (u64, u64, u64), since: u64) {
        let begin = std::mem::replace(&mut self.at, stamp).max(since);
        let busy = from.saturating_sub(begin);
        // What came before `until` may have come at any time: it is not known to be late.
        let late = stamp.saturating_sub(until.max(from).max(since));
        self.longest_gap = self.longest_gap.max(busy + late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_that_the_thread_did_not_ask_for_is_a_gap() {
        // The last turn, then begin, asked end and end of a wait, since when is measured, and the gap.
        let rows = [
            ("asked for", 100, (100, 900, 900), 0, 0),
            ("woken by a response", 100, (100, 900, 300), 0, 0),
            ("woken late", 100, (100, 900, 950), 0, 50),
            ("busy", 100, (180, 900, 900), 0, 80),
            ("busy beyond its next turn", 100, (980, 900, 990), 0, 890),
            ("busy, then late", 100, (180, 900, 950), 0, 130),
            ("before it is measured", 100, (180, 400, 500), 500, 0),
            ("from when it is measured", 100, (180, 400, 700), 500, 200),
            ("busy until after that", 100, (700, 700, 710), 500, 210),
        ];
        for (name, at, wait, since, expected) in rows {
            let mut gaps = Gaps { at, longest_gap: 0 };
            gaps.turned(wait, since);
            assert_eq!((gaps.longest_gap, gaps.at), (expected, wait.2), "{name}");
            gaps.turned((wait.2, wait.2 + 9, wait.2 + 9), since);
            assert_eq!(gaps.longest_gap, expected, "{name}: the longest stays");
        }
    }
}
