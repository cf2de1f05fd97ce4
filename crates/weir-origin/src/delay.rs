//! Random numbers, and the delays that are drawn from them.

use std::time::Duration;

use weir_model::study::DelaySpec;

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). Good
/// enough for delays, and the same everywhere.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Evenly in 0..1, in steps of 2^-53; never 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Draws delays.
#[derive(Debug)]
pub(crate) struct Delays {
    spec: DelaySpec,
    random: Random,
}

impl Delays {
    /// Every thread has its own, with a `seed` of its own.
    pub(crate) fn new(spec: DelaySpec, seed: u64) -> Delays {
        Delays {
            spec,
            random: Random::new(seed),
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.spec == DelaySpec::None
    }

    /// The next request's delay in nanoseconds.
    pub(crate) fn draw(&mut self) -> u64 {
        match self.spec {
            DelaySpec::None => 0,
            DelaySpec::Fixed(delay) => nanoseconds(delay),
            DelaySpec::Uniform(least, most) => {
                let (least, most) = (nanoseconds(least), nanoseconds(most));
                let width = most.saturating_sub(least) as f64;
                least + (width * self.random.unit()) as u64
            }
            // The inverse of the distribution function; 1 - u is never 0.
            DelaySpec::Exponential(mean) => {
                (-(1.0 - self.random.unit()).ln() * nanoseconds(mean) as f64) as u64
            }
        }
    }
}

/// Saturates after 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(spec: DelaySpec) -> Vec<f64> {
        let mut delays = Delays::new(spec, 7);
        (0..100_000).map(|_| delays.draw() as f64).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn splitmix64_gives_the_published_sequence() {
        let mut random = Random::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317_u64,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(expected, [random.next(), random.next(), random.next()]);
    }

    #[test]
    fn delays_have_their_distribution() {
        let ms = Duration::from_millis;
        assert!(draws(DelaySpec::None).iter().all(|delay| *delay == 0.0));
        let fixed = draws(DelaySpec::Fixed(ms(3)));
        assert!(fixed.iter().all(|delay| *delay == 3e6));

        let uniform = draws(DelaySpec::Uniform(ms(2), ms(6)));
        assert!(uniform.iter().all(|delay| (2e6..6e6).contains(delay)));
        // Four standard errors: 4 * 4 ms / sqrt(12 * 100000).
        assert!((mean(&uniform) - 4e6).abs() < 15e3, "{}", mean(&uniform));

        let exponential = draws(DelaySpec::Exponential(ms(5)));
        // Four standard errors: 4 * 5 ms / sqrt(100000).
        let mean = mean(&exponential);
        assert!((mean - 5e6).abs() < 64e3, "{mean}");
        let above = exponential.iter().filter(|delay| **delay > 5e6).count() as f64 / 1e5;
        assert!((above - (-1_f64).exp()).abs() < 0.007, "{above}");
    }

    #[test]
    fn the_same_seed_gives_the_same_delays() {
        let spec = DelaySpec::Exponential(Duration::from_millis(5));
        let [a, b, c] = [1, 1, 2].map(|seed| {
            let mut delays = Delays::new(spec, seed);
            [(); 9].map(|()| delays.draw())
        });
        assert_eq!(a, b);
        assert_ne!(a, c);
    }
}
