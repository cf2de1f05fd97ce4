//! Random numbers for requests: quick, small, the same for the same seed. Not for secrets.

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): eight
/// bytes of state, and every seed is a good one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// A generator whose numbers follow from `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// All 64 bits are random.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..=last`, without bias (Lemire, "Fast random integer generation in an
    /// interval", 2019).
    #[inline]
    pub fn up_to(&mut self, last: u64) -> u64 {
        let Some(count) = last.checked_add(1) else {
            return self.next_u64();
        };
        loop {
            let product = u128::from(self.next_u64()) * u128::from(count);
            let low = product as u64;
            // The first test decides nearly always, and spares the division.
            if low >= count || low >= count.wrapping_neg() % count {
                return (product >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence() {
        // Of the reference implementation (Vigna, splitmix64.c) with seed 1234567.
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| random.next_u64()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(first, published);
    }

    #[test]
    fn bounds_are_reached_and_kept() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[random.up_to(6) as usize] += 1;
        }
        let even = seen.iter().all(|count| (850..1150).contains(count));
        assert!(even, "{seen:?}");
        assert_eq!(random.up_to(0), 0);
        // Three quarters of the range: without rejection the lower values come twice as often.
        let last = 3 << 62;
        let low = (0..4_000).filter(|_| random.up_to(last) < 1 << 62).count();
        assert!((1_200..1_467).contains(&low), "{low}");
        random.up_to(u64::MAX);
    }
}
