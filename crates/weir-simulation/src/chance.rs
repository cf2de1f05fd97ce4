//! Random numbers of the distributions that models use.

use std::f64::consts::TAU;

use weir_stats::SplitMix64;

use crate::model::Distribution;

/// Random number generator.
#[derive(Debug, Clone)]
pub(crate) struct Chance {
    numbers: SplitMix64,
    /// Second number of a pair of normal numbers, not yet used.
    spare: Option<f64>,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance { numbers: SplitMix64::new(seed), spare: None }
    }

    /// Returns a uniform number in 0..1, never 0.
    fn positive(&mut self) -> f64 {
        1.0 - self.numbers.unit()
    }

    /// Returns a uniform number in 0..1.
    pub(crate) fn unit(&mut self) -> f64 {
        self.numbers.unit()
    }

    /// Returns true with this probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.numbers.unit() < probability
    }

    /// Returns a standard normal number (Box & Muller, "A Note on the Generation of Random Normal Deviates", 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.positive().ln()).sqrt();
        let angle = TAU * self.numbers.unit();
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// Returns an exponential number with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.positive().ln()
    }

    /// Returns a random time, nanoseconds.
    pub(crate) fn time(&mut self, of: Distribution) -> f64 {
        match of {
            Distribution::Fixed(ns) => ns,
            Distribution::Exponential { mean_ns } => self.exponential(mean_ns),
            Distribution::LogNormal { median_ns, sigma } => {
                median_ns * (sigma * self.normal()).exp()
            }
            Distribution::Bimodal { quick_ns, slow_ns, slow_share } => {
                if self.happens(slow_share) {
                    slow_ns
                } else {
                    quick_ns
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_have_their_means_and_medians() {
        let bimodal = Distribution::Bimodal { quick_ns: 1.0, slow_ns: 11.0, slow_share: 0.25 };
        for (of, mean) in [
            (Distribution::Fixed(7.0), 7.0),
            (Distribution::Exponential { mean_ns: 3.0 }, 3.0),
            (bimodal, 3.5),
            (Distribution::LogNormal { median_ns: 100.0, sigma: 0.2 }, 100.0 * 0.02_f64.exp()),
        ] {
            let mut chance = Chance::new(1);
            let sum: f64 = (0..200_000).map(|_| chance.time(of)).sum();
            let sample_mean = sum / 200_000.0;
            assert!((sample_mean / mean - 1.0).abs() < 0.01, "{of:?}: {sample_mean}");
        }
        let mut chance = Chance::new(2);
        let all: Vec<f64> = (0..100_000).map(|_| chance.normal()).collect();
        let variance = all.iter().map(|x| x * x).sum::<f64>() / all.len() as f64;
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
    }
}
