//! Limits how often expensive work is done: the longer it takes, the less often.

use std::time::{Duration, Instant};

/// Ratio of rest to work: the work takes at most a five-hundredth of one CPU.
const REST: u32 = 500;

/// Allows work only after a rest of 500 times the duration of the last work.
#[derive(Debug, Default)]
pub(super) struct Pace {
    next: Option<Instant>,
}

impl Pace {
    /// Does the work if it is due; `None` if not.
    pub(super) fn paced<T>(&mut self, work: impl FnOnce() -> T) -> Option<T> {
        let begun = Instant::now();
        if self.next.is_some_and(|next| begun < next) {
            return None;
        }
        let done = work();
        self.next = Some(begun + begun.elapsed() * REST);
        Some(done)
    }

    /// Does the work if it is due, and at most once per `rest`.
    pub(super) fn every<T>(&mut self, rest: Duration, work: impl FnOnce() -> T) -> Option<T> {
        let begun = Instant::now();
        let done = self.paced(work)?;
        self.next = self.next.max(Some(begun + rest));
        Some(done)
    }

    /// Makes the work due at once.
    pub(super) fn hurry(&mut self) {
        self.next = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_done_seldom() {
        let mut pace = Pace::default();
        let slow = || std::thread::sleep(Duration::from_millis(2));
        assert!(pace.paced(slow).is_some());
        assert!(pace.paced(slow).is_none());
        pace.hurry();
        assert!(pace.every(Duration::from_secs(3600), || ()).is_some());
        std::thread::sleep(Duration::from_millis(2));
        assert!(pace.paced(|| ()).is_none());
    }
}
