//! Numbers that look random and are the same every time.

/// A generator of numbers (SplitMix64, Steele, Lea and Flood 2014).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// With this seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// With a seed made of bytes (FNV-1a).
    pub fn of(bytes: &[u8]) -> Dice {
        let seed = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Dice(seed)
    }

    /// A number from 0 to `end`, without `end` itself, which is not 0. Not perfectly even, which matters
    /// to nobody here.
    pub fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // Fits: the remainder is below a u32.
        ((mixed ^ (mixed >> 31)) % u64::from(end)) as u32
    }
}
