//! Order of measurements: seeded random numbers and the order of arms in a block.

/// A small generator of random numbers, which gives the same numbers for a seed on every machine and in every version:
/// SplitMix64 (Steele, Lea & Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). Good enough for
/// orders and simulations; not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Creates the sequence of `seed`. All seeds are equally good.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64 { state: seed }
    }

    /// Returns the next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in 0..1, 1 excluded, on a grid of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a whole number in `0..bound`, each equally likely; 0 when `bound` is 0. Uses Lemire's method ("Fast
    /// random integer generation in an interval", ACM TOMACS 29, 2019).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            let low = product as u64;
            // Products whose low half is small would favour some results; they are drawn again. The first
            // test decides nearly always, and spares the division.
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns a whole number in `0..=last`, each equally likely.
    #[inline]
    pub fn up_to(&mut self, last: u64) -> u64 {
        match last.checked_add(1) {
            Some(bound) => self.below(bound),
            None => self.next_u64(),
        }
    }

    /// Puts `items` in a random order, each equally likely (Fisher & Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// Returns the order of slices in one block of `arms` arms: a random permutation, then its mirror image, so ABBA or
/// BAAB for two. Every arm comes twice, and the mean position of all is the same: a drift that is linear over the block
/// cancels in every ratio, and effects of one arm on the next average out over blocks with other orders.
pub fn block_order(arms: usize, rng: &mut SplitMix64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..arms).collect();
    rng.shuffle(&mut order);
    order.extend_from_within(..);
    order[arms..].reverse();
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// First outputs of the reference implementation (Vigna's splitmix64.c) for seed 1234567.
    #[test]
    fn the_sequence_is_the_reference() {
        let mut rng = SplitMix64::new(1_234_567);
        let want = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(want.map(|_| rng.next_u64()), want);
    }

    #[test]
    fn all_orders_of_three_are_equally_likely() {
        let mut rng = SplitMix64::new(5);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            *counts.entry(block_order(3, &mut rng)).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        // Expected 1000 each, sd 29.
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut rng = SplitMix64::new(1);
        assert_eq!(rng.below(0), 0);
        assert!((0..1000).all(|_| rng.below(7) < 7));
        assert_eq!(rng.up_to(0), 0);
        rng.up_to(u64::MAX);
        // Three quarters of the range: without drawing again the lower values come twice as often.
        let low = (0..4_000).filter(|_| rng.up_to(3 << 62) < 1 << 62).count();
        assert!((1_200..1_467).contains(&low), "{low}");
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit())));
    }

    proptest! {
        #[test]
        fn a_linear_drift_cancels(arms in 1_usize..12, seed in any::<u64>()) {
            let order = block_order(arms, &mut SplitMix64::new(seed));
            prop_assert_eq!(order.len(), 2 * arms);
            for arm in 0..arms {
                let places: Vec<usize> = (0..order.len()).filter(|&i| order[i] == arm).collect();
                prop_assert_eq!(places.len(), 2);
                prop_assert_eq!(places.iter().sum::<usize>(), 2 * arms - 1);
            }
            prop_assert_eq!(order, block_order(arms, &mut SplitMix64::new(seed)));
        }
    }
}
