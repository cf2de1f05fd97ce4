//! Delays, drawn from their distributions.

use std::time::Duration;

use weir_model::study::DelaySpec;
use weir_stats::SplitMix64;

/// Draws delays.
#[derive(Debug)]
pub(crate) struct Delays {
    spec: DelaySpec,
    random: SplitMix64,
}

impl Delays {
    /// Every thread has its own, with a `seed` of its own.
    pub(crate) fn new(spec: DelaySpec, seed: u64) -> Delays {
        Delays {
            spec,
            random: SplitMix64::new(seed),
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
