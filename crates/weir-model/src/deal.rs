//! Distribution of a load among the threads of one generator or of several.

use serde::{Deserialize, Serialize};

/// Threads of other generators that carry out the same load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherThreads {
    /// Number of threads with smaller numbers.
    pub before: u32,
    /// Number of threads with larger numbers.
    pub behind: u32,
}

impl OtherThreads {
    /// Returns the deal for a generator with `own` threads beside these.
    pub fn beside(self, own: usize) -> Deal {
        let (first, own) = (u64::from(self.before), own as u64);
        Deal { first, own, all: first + own + u64::from(self.behind) }
    }
}

/// The threads of one generator among those of all generators. Everything that has a number (arrivals, connections,
/// requests of a limited number) goes to the thread `number % all`. Pacing is thus global, whichever generator sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deal {
    first: u64,
    own: u64,
    all: u64,
}

impl Deal {
    /// Number of threads of all generators.
    pub fn all(self) -> u64 {
        self.all
    }

    /// Number of one of the generator's own threads among all threads.
    pub fn number(self, thread: usize) -> u64 {
        self.first + thread as u64
    }

    /// Returns how many of `total` items go to one of the generator's own threads.
    pub fn share(self, total: u64, thread: usize) -> u64 {
        self.before(total, self.number(thread) + 1) - self.before(total, self.number(thread))
    }

    /// Returns how many of `total` items go to threads with smaller numbers, including those of other generators.
    pub fn share_before(self, total: u64, thread: usize) -> u64 {
        self.before(total, self.number(thread))
    }

    /// Returns how many of `total` items go to this generator.
    pub fn part(self, total: u64) -> u64 {
        self.before(total, self.first + self.own) - self.before(total, self.first)
    }

    /// Returns true if the item with this number goes to this generator.
    pub fn has(self, number: u64) -> bool {
        (self.first..self.first + self.own).contains(&(number % self.all))
    }

    /// Returns how many of `total` items go to threads with numbers below `number`.
    fn before(self, total: u64, number: u64) -> u64 {
        number * (total / self.all) + number.min(total % self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_generators_together_have_everything_once() {
        for threads in [&[1][..], &[3], &[1, 1], &[2, 2, 2, 2], &[1, 4, 2]] {
            let all: u32 = threads.iter().sum();
            for total in 0..50_u64 {
                let (mut before, mut dealt) = (0, vec![0; total as usize]);
                for &own in threads {
                    let behind = all - before - own;
                    let deal = OtherThreads { before, behind }.beside(own as usize);
                    let shares = (0..own as usize).map(|thread| deal.share(total, thread));
                    assert_eq!(shares.sum::<u64>(), deal.part(total));
                    let numbers: Vec<u64> = (0..total).filter(|it| deal.has(*it)).collect();
                    assert_eq!(numbers.len() as u64, deal.part(total));
                    numbers.iter().for_each(|it| dealt[*it as usize] += 1);
                    before += own;
                }
                assert_eq!(dealt, vec![1; total as usize], "{total} among {threads:?}");
            }
        }
    }
}
