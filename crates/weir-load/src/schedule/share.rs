//! How threads deal arrivals among themselves.

/// One thread's share of a contiguous range of arrivals: every `step`-th.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The next arrival of this thread.
    pub next: u64,
    /// First arrival behind the range.
    pub end: u64,
}

impl Share {
    /// The arrivals in `from..end` that fall to `thread` of `threads`.
    pub fn new(from: u64, end: u64, thread: u64, threads: u64) -> Share {
        let behind = (thread + threads - from % threads) % threads;
        Share {
            next: from + behind,
            end,
        }
    }

    /// Those of the same thread that are not before `first`.
    #[must_use]
    pub fn not_before(&self, first: u64, thread: u64, threads: u64) -> Share {
        Share::new(first.max(self.next), self.end, thread, threads)
    }

    /// How many are left.
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
                let left = share.left(threads);
                let before = dealt.len() as u64;
                while share.next < share.end {
                    dealt.push(share.next);
                    share.next += threads;
                }
                prop_assert_eq!(dealt.len() as u64 - before, left);
            }
            dealt.sort_unstable();
            prop_assert_eq!(dealt, (from..from + length).collect::<Vec<_>>());
        }
    }
}
