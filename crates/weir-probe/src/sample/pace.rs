//! How often something that costs much is done: the more it costs, the more seldom.

use std::time::{Duration, Instant};

/// What it may cost, as a share of one CPU: a five-hundredth.
const REST: u32 = 500;

/// Does something only when it has rested 500 times as long as it took the last time.
#[derive(Debug, Default)]
pub(super) struct Pace {
    next: Option<Instant>,
}

impl Pace {
    /// Does it, where it is its time.
    pub(super) fn paced<T>(&mut self, work: impl FnOnce() -> T) -> Option<T> {
        let begun = Instant::now();
        if self.next.is_some_and(|next| begun < next) {
            return None;
        }
        let done = work();
        self.next = Some(begun + begun.elapsed() * REST);
        Some(done)
    }

    /// Does it at most this often.
    pub(super) fn every<T>(&mut self, rest: Duration, work: impl FnOnce() -> T) -> Option<T> {
        let begun = Instant::now();
        let done = self.paced(work)?;
        self.next = self.next.max(Some(begun + rest));
        Some(done)
    }

    /// The next time is now.
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
