//! Noise over time.

use crate::chance::Chance;
use crate::model::Noise;

pub(crate) const NS_PER_S: f64 = 1e9;

/// State of the noise at a moment.
#[derive(Debug, Clone)]
pub(crate) struct NoiseState {
    of: Noise,
    chance: Chance,
    /// Time of the state, seconds of the world.
    at_s: f64,
    /// Logarithm of the part that persists for a while.
    correlated: f64,
    /// True during a burst; `changes_s` is the time at which that changes.
    burst: bool,
    changes_s: f64,
}

impl NoiseState {
    pub(crate) fn new(of: &Noise, seed: u64) -> NoiseState {
        let mut chance = Chance::new(seed);
        // In the long run from the first moment.
        let correlated = of.correlated.map_or(0.0, |part| part.sd * chance.normal());
        let changes_s = of.bursts.map_or(0.0, |bursts| chance.exponential(bursts.every_s));
        NoiseState { of: of.clone(), chance, at_s: 0.0, correlated, burst: false, changes_s }
    }

    /// Returns the factor for times at a moment, nanoseconds of the world. Moments must ascend from call to call.
    pub(crate) fn factor(&mut self, at_ns: u64) -> f64 {
        let at_s = at_ns as f64 / NS_PER_S;
        if let Some(part) = self.of.correlated {
            // Its exact transition over any stretch of time.
            let stays = (-(at_s - self.at_s) / part.time_s).exp();
            let new = part.sd * (1.0 - stays * stays).sqrt() * self.chance.normal();
            self.correlated = self.correlated * stays + new;
        }
        self.at_s = at_s;
        let white = self.of.white * self.white();
        let drift = self.of.drift_per_s * at_s;
        let smooth = (self.correlated + white + drift).exp();
        smooth * self.outlier_factor() * self.burst_factor(at_s) * self.step_factor(at_s)
    }

    /// Returns a number with standard normal distribution, or Student's t.
    fn white(&mut self) -> f64 {
        let normal = self.chance.normal();
        let squares: f64 = (0..self.of.freedom).map(|_| self.chance.normal().powi(2)).sum();
        match self.of.freedom {
            0 => normal,
            freedom => normal / (squares / f64::from(freedom)).sqrt(),
        }
    }

    fn outlier_factor(&mut self) -> f64 {
        match self.of.outliers {
            Some(outliers) if self.chance.happens(outliers.share) => outliers.factor,
            _ => 1.0,
        }
    }

    fn burst_factor(&mut self, at_s: f64) -> f64 {
        let Some(bursts) = self.of.bursts else {
            return 1.0;
        };
        while self.changes_s <= at_s {
            self.burst = !self.burst;
            let mean = if self.burst { bursts.length_s } else { bursts.every_s };
            self.changes_s += self.chance.exponential(mean).max(1e-9);
        }
        if self.burst { bursts.factor } else { 1.0 }
    }

    fn step_factor(&self, at_s: f64) -> f64 {
        self.of.steps.iter().filter(|(from, _)| at_s >= *from).map(|(_, factor)| factor).product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Bursts, Correlated, Outliers};

    /// Returns the factors at every 100 ms for a number of seconds.
    fn factors(of: &Noise, seconds: u64) -> Vec<f64> {
        let mut state = NoiseState::new(of, 5);
        (0..seconds * 10).map(|tenth| state.factor(tenth * 100_000_000)).collect()
    }

    /// Returns mean and standard deviation of the logarithms, and the correlation of neighbours.
    fn moments(factors: &[f64]) -> (f64, f64, f64) {
        let logs: Vec<f64> = factors.iter().map(|factor| factor.ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let part = |lag: usize| {
            logs.iter().zip(&logs[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>()
                / logs.len() as f64
        };
        (mean, part(0).sqrt(), part(1) / part(0))
    }

    #[test]
    fn each_kind_of_noise_is_what_it_says() {
        assert!(factors(&Noise::default(), 10).iter().all(|factor| *factor == 1.0));
        let white = Noise { white: 0.05, ..Noise::default() };
        let (_, sd, correlation) = moments(&factors(&white, 2000));
        assert!((sd - 0.05).abs() < 0.002 && correlation.abs() < 0.03, "{sd} {correlation}");
        let correlated =
            Noise { correlated: Some(Correlated { sd: 0.1, time_s: 1.0 }), ..Noise::default() };
        let (_, sd, correlation) = moments(&factors(&correlated, 5000));
        let wanted = (-0.1_f64).exp();
        assert!((sd - 0.1).abs() < 0.01 && (correlation - wanted).abs() < 0.02, "{sd}");
        let drift = Noise { drift_per_s: 0.01, steps: vec![(5.0, 2.0)], ..Noise::default() };
        let all = factors(&drift, 10);
        assert!((all[10].ln() - 0.01).abs() < 1e-9, "after a second");
        assert!((all[60] / all[40] - 2.0 * 0.02_f64.exp()).abs() < 1e-9, "a step between");
        let bursts = Noise {
            bursts: Some(Bursts { every_s: 3.0, length_s: 1.0, factor: 4.0 }),
            ..Noise::default()
        };
        let all = factors(&bursts, 20_000);
        let share = all.iter().filter(|factor| **factor == 4.0).count() as f64 / all.len() as f64;
        assert!((share - 0.25).abs() < 0.02, "{share}");
    }

    #[test]
    fn outliers_and_heavy_tails_are_as_frequent_as_they_say() {
        let outliers =
            Noise { outliers: Some(Outliers { share: 0.03, factor: 2.0 }), ..Noise::default() };
        let all = factors(&outliers, 2000);
        let share = all.iter().filter(|factor| **factor == 2.0).count() as f64 / all.len() as f64;
        assert!((share - 0.03).abs() < 0.005, "{share}");
        let tailed = Noise { white: 0.01, freedom: 3, ..Noise::default() };
        let all = factors(&tailed, 2000);
        let share = all.iter().filter(|factor| factor.ln().abs() > 0.05841).count() as f64
            / all.len() as f64;
        assert!((share - 0.01).abs() < 0.003, "t of 3 exceeds 5.841 in one of a hundred: {share}");
    }
}
