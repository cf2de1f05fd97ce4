//! Deterministic pseudo-random numbers.

use weir_stats::SplitMix64;

/// A pseudo-random number generator.
#[derive(Debug, Clone)]
pub struct Dice(SplitMix64);

impl Dice {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Dice {
        Dice(SplitMix64::new(seed))
    }

    /// Creates a generator whose seed is the FNV-1a hash of bytes.
    pub fn of(bytes: &[u8]) -> Dice {
        let seed = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Dice::new(seed)
    }

    /// Returns a number from 0 up to, but not including, `end`, which must not be 0.
    pub fn below(&mut self, end: u32) -> u32 {
        // Fits: it is below a u32.
        self.0.below(end.into()) as u32
    }
}
