//! Division of arrivals among threads.

/// One thread's share of a contiguous range of arrivals: every n-th of them, with n threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the next arrival of this thread.
    pub next: u64,
    /// Number of the first arrival after the range.
    pub end: u64,
}

impl Share {
    /// Creates the share of `thread` of `threads` in the arrivals `from..end`.
    pub fn new(from: u64, end: u64, thread: u64, threads: u64) -> Share {
        let behind = (thread + threads - from % threads) % threads;
        Share { next: from + behind, end }
    }

    /// Returns the part of this thread's share that is not before `first`.
    #[must_use]
    pub fn not_before(&self, first: u64, thread: u64, threads: u64) -> Share {
        Share::new(first.max(self.next), self.end, thread, threads)
    }

    /// Returns the number of arrivals left.
    pub fn left(&self, threads: u64) -> u64 {
        self.end.saturating_sub(self.next).div_ceil(threads)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn threads_deal_every_arrival_exactly_once(
            from in 0_u64..1000, length in 0_u64..200, threads in 1_u64..9,
        ) {
            let mut dealt = Vec::new();
            for thread in 0..threads {
                let mut share = Share::new(from, from + length, thread, threads);
                prop_assert_eq!(share.next % threads, thread);
                let remaining = share.left(threads);
                let before = dealt.len() as u64;
                while share.next < share.end {
                    dealt.push(share.next);
                    share.next += threads;
                }
                prop_assert_eq!(dealt.len() as u64 - before, remaining);
            }
            dealt.sort_unstable();
            prop_assert_eq!(dealt, (from..from + length).collect::<Vec<_>>());
        }
    }
}
