//! Numbers that look random and are the same every time.

use weir_stats::SplitMix64;

/// A generator of numbers.
#[derive(Debug, Clone)]
pub struct Dice(SplitMix64);

impl Dice {
    /// With this seed.
    pub fn new(seed: u64) -> Dice {
        Dice(SplitMix64::new(seed))
    }

    /// With a seed made of bytes (FNV-1a).
    pub fn of(bytes: &[u8]) -> Dice {
        let seed = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Dice::new(seed)
    }

    /// A number from 0 to `end`, without `end` itself, which is not 0.
    pub fn below(&mut self, end: u32) -> u32 {
        // Fits: it is below a u32.
        self.0.below(end.into()) as u32
    }
}
