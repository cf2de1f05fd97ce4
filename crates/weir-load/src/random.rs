//! A small generator of random numbers.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }
}
