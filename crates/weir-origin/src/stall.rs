//! Scripted stalls.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Stall;
use crate::delay::nanoseconds;

/// Time at which the server received its first request, from which stalls are counted. Shared by its threads.
#[derive(Debug)]
pub(crate) struct FirstRequest(AtomicU64);

const NONE_YET: u64 = u64::MAX;

impl FirstRequest {
    pub(crate) fn new() -> FirstRequest {
        FirstRequest(AtomicU64::new(NONE_YET))
    }

    /// Records a request; only the first one counts. The clock is not read for the others.
    pub(crate) fn came(&self, now_ns: impl FnOnce() -> u64) {
        if self.0.load(Ordering::Relaxed) == NONE_YET {
            // Whoever loses the race was not the first.
            let _ =
                self.0.compare_exchange(NONE_YET, now_ns(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn get(&self) -> Option<u64> {
        let at = self.0.load(Ordering::Relaxed);
        (at != NONE_YET).then_some(at)
    }
}

/// The stalls that a thread still has to observe.
#[derive(Debug)]
pub(crate) struct Stalls {
    /// Begin and end of the remaining stalls, in nanoseconds after the first request, the next one last.
    to_come: Vec<(u64, u64)>,
}

impl Stalls {
    pub(crate) fn new(stalls: &[Stall]) -> Stalls {
        let mut to_come: Vec<(u64, u64)> = stalls
            .iter()
            .map(|stall| (nanoseconds(stall.at), nanoseconds(stall.at + stall.length)))
            .collect();
        to_come.sort_unstable_by(|a, b| b.cmp(a));
        Stalls { to_come }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.to_come.is_empty()
    }

    /// Returns the begin of the next stall; `None` if there is none, or before the first request.
    pub(crate) fn next_begin(&self, first: &FirstRequest) -> Option<u64> {
        let (begin, _) = self.to_come.last()?;
        Some(first.get()?.saturating_add(*begin))
    }

    /// Returns the end of the current stall, if there is one. A stall that ended unobserved counts as past.
    pub(crate) fn end_of_current(&mut self, first: &FirstRequest, now_ns: u64) -> Option<u64> {
        let first_ns = first.get()?;
        while let Some((begin, end)) = self.to_come.last() {
            if now_ns < first_ns.saturating_add(*begin) {
                return None;
            }
            let end = first_ns.saturating_add(*end);
            if now_ns < end {
                return Some(end);
            }
            self.to_come.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn stalls_are_counted_from_the_first_request() {
        let mut stalls = Stalls::new(&[stall(500, 100), stall(100, 50), stall(120, 100)]);
        let first = FirstRequest::new();
        assert_eq!(stalls.next_begin(&first), None);
        assert_eq!(stalls.end_of_current(&first, 110), None, "no request yet");
        first.came(|| 1000);
        first.came(|| 2000);
        assert_eq!(stalls.next_begin(&first), Some(1100));
        let ends = [
            (1099, None),
            (1100, Some(1150)),
            (1149, Some(1150)),
            (1150, Some(1220)),
            (1220, None),
            (1499, None),
        ];
        for (now, end) in ends {
            assert_eq!(stalls.end_of_current(&first, now), end, "at {now}");
        }
        assert_eq!(stalls.next_begin(&first), Some(1500));
        assert_eq!(stalls.end_of_current(&first, 9999), None, "nobody looked");
        assert!(stalls.is_over());
    }

    fn stall(at: u64, length: u64) -> Stall {
        Stall { at: Duration::from_nanos(at), length: Duration::from_nanos(length) }
    }
}
