//! Early decisions: the part of its error that a study may spend at each of several looks, and the critical values for
//! the claims at each.
//!
//! A study that is looked at repeatedly with the level of a single look claims too much (Armitage, McPherson & Rowe,
//! "Repeated significance tests on accumulating data", JRSS A 132, 1969). Here each look may spend a part of the error
//! that is fixed beforehand (Lan & DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70, 1983).
//! The intervals of all looks together then keep their confidence, whatever made the study end (Jennison & Turnbull,
//! "Interim analyses: the repeated confidence interval approach", JRSS B 51, 1989), and are therefore valid for better,
//! worse, equivalent and inconclusive alike.

use crate::normal;

/// Part of the error that is spent like Pocock, whose looks can claim about equally much; the rest is spent like
/// O'Brien and Fleming, who keep nearly all for the end. The first finds large effects at the first look, the second
/// keeps the last interval narrow, which equivalence needs.
const OF_POCOCK: f64 = 0.5;
/// Number of subintervals of the grid on which the density of the statistic is kept; even, for Simpson's rule.
const GRID: usize = 96;
/// A boundary that nothing crosses, in standard errors.
const FARTHEST: f64 = 12.0;

/// Returns the part of `alpha` that may be spent up to the time at which this share of the information (0..1) is
/// available.
fn spent(alpha: f64, share: f64) -> f64 {
    if share >= 1.0 {
        return alpha;
    }
    let fleming = 2.0 * normal::cdf(normal::quantile(alpha / 2.0) / share.sqrt());
    let pocock = alpha * (1.0 + (std::f64::consts::E - 1.0) * share).ln();
    (1.0 - OF_POCOCK) * fleming + OF_POCOCK * pocock
}

/// Returns the two-sided critical values, in standard errors, of looks after these numbers of replicates (ascending,
/// none of them 0) in a study of `planned` ones, which together err with probability `alpha` (0..1). `is_last`: the
/// last of these is the study's last look, however many were planned, and spends the rest.
///
/// The probability to cross no boundary before is integrated from look to look (Armitage, McPherson & Rowe 1969;
/// Jennison & Turnbull, "Group Sequential Methods", 2000, ch. 19).
pub fn critical_values(looks: &[u32], planned: u32, is_last: bool, alpha: f64) -> Vec<f64> {
    let mut density = Density::at_start();
    let (mut found, mut before) = (Vec::new(), 0.0);
    for (place, &replicates) in looks.iter().enumerate() {
        let share = if is_last && place + 1 == looks.len() {
            1.0
        } else {
            f64::from(replicates) / f64::from(planned.max(1))
        };
        let up_to = spent(alpha, share);
        let time = f64::from(replicates);
        let critical = density.critical(time, up_to - before);
        density = density.after(time, critical);
        before = up_to;
        found.push(critical);
    }
    found
}

/// Returns the two-sided level of a single test, or 1 minus the confidence of a single interval, with this critical
/// value.
pub fn level_of(critical: f64) -> f64 {
    2.0 * normal::cdf(-critical)
}

/// Returns the critical value in standard errors of a two-sided level.
pub fn critical_of(level: f64) -> f64 {
    -normal::quantile(level.clamp(1e-300, 1.0) / 2.0)
}

/// Returns the chance that a future look distinguishes a difference from 0 or finds it within `band`, given a present
/// estimate with this `error`. `share` (0..1) is the present number of replicates relative to that at the future look;
/// `interval` and `test` are its critical values. The truth is assumed to be distributed as the estimate allows.
pub fn chance_to_decide(
    (estimate, error): (f64, f64),
    share: f64,
    band: f64,
    (interval, test): (f64, f64),
) -> f64 {
    if error <= 0.0 {
        return 1.0;
    }
    let then = error * share.sqrt();
    let moves = (error * (1.0 - share).sqrt()).max(1e-12);
    let [undecided, equivalent] =
        [interval.max(test) * then, band - interval * then].map(|reach| {
            if reach > 0.0 {
                normal::cdf((reach - estimate) / moves) - normal::cdf((-reach - estimate) / moves)
            } else {
                0.0
            }
        });
    (1.0 - undecided + equivalent).min(1.0)
}

/// Probability that nothing has been claimed yet, by the statistic's value: a process of independent normal steps whose
/// variance is the number of replicates, at the points of a symmetric grid.
struct Density {
    time: f64,
    /// Value, and density times the weight of its point; before the first look all of it is at 0.
    points: Vec<(f64, f64)>,
}

impl Density {
    fn at_start() -> Density {
        Density { time: 0.0, points: vec![(0.0, 1.0)] }
    }

    /// Returns the chance that the statistic is beyond `critical` standard errors at a time and was within before.
    fn beyond(&self, time: f64, critical: f64) -> f64 {
        let (bound, step) = (critical * time.sqrt(), (time - self.time).max(1e-9).sqrt());
        self.points
            .iter()
            .map(|(value, weight)| {
                let above = normal::cdf((value - bound) / step);
                weight * (above + normal::cdf((-bound - value) / step))
            })
            .sum()
    }

    /// Returns the critical value that spends this much at this time.
    fn critical(&self, time: f64, spend: f64) -> f64 {
        let (mut low, mut high) = (0.0, FARTHEST);
        for _ in 0..26 {
            let middle = 0.5 * (low + high);
            if self.beyond(time, middle) > spend {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// Returns the density left within the boundary of a look.
    fn after(&self, time: f64, critical: f64) -> Density {
        let step = (time - self.time).max(1e-9);
        let bound = critical.min(8.0) * time.sqrt();
        let width = 2.0 * bound / GRID as f64;
        let points = (0..=GRID).map(|place| {
            let value = width.mul_add(place as f64, -bound);
            let simpson = match place {
                0 | GRID => 1.0,
                odd if odd % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let density = self
                .points
                .iter()
                .map(|(from, weight)| weight * (-0.5 * (value - from).powi(2) / step).exp())
                .sum::<f64>()
                / (std::f64::consts::TAU * step).sqrt();
            (value, density * width * simpson / 3.0)
        });
        Density { time, points: points.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    #[test]
    fn one_look_is_the_usual_test_and_more_looks_share_its_error() {
        let single_look = critical_values(&[40], 40, true, 0.05);
        assert!((single_look[0] - 1.959_964).abs() < 1e-4, "{single_look:?}");
        // The same boundary at five equal looks that together err one time in twenty is Pocock's 2.413; a
        // mixture that spends less at first has its first one above and its last one below that.
        let five = critical_values(&[8, 16, 24, 32, 40], 40, true, 0.05);
        assert!(five.is_sorted_by(|a, b| a > b), "{five:?}");
        assert!(five[0] > 2.5 && five[4] > 1.96 && five[4] < 2.413, "{five:?}");
        // A run whose time is up spends at its last look what is left.
        let [planned, last] =
            [false, true].map(|is_last| critical_values(&[12, 20], 40, is_last, 0.05));
        assert_eq!(planned[0], last[0]);
        assert!(planned[1] > last[1] + 0.2, "{planned:?} {last:?}");
    }

    /// Jennison & Turnbull 2000, Table 2.1: Pocock's constant for K = 5 and alpha = 0.05 is 2.413, so a process
    /// with this boundary at five equal looks crosses it with probability 0.05.
    #[test]
    fn the_integration_agrees_with_published_constants() {
        for (looks, constant) in [(2, 2.178), (5, 2.413), (10, 2.555)] {
            let mut density = Density::at_start();
            let mut crossed = 0.0;
            for look in 1..=looks {
                crossed += density.beyond(f64::from(look), constant);
                density = density.after(f64::from(look), constant);
            }
            assert!((crossed - 0.05).abs() < 2e-4, "{looks}: {crossed}");
        }
    }

    #[test]
    fn looks_at_noise_claim_as_often_as_one() {
        let looks = [12, 18, 27, 40];
        let critical = critical_values(&looks, 40, true, 0.05);
        let mut rng = SplitMix64::new(7);
        let mut claims = 0;
        for _ in 0..20_000 {
            let (mut sum, mut at) = (0.0, 0);
            let is_claimed = looks.iter().zip(&critical).any(|(look, critical)| {
                while at < *look {
                    sum += (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
                    at += 1;
                }
                f64::abs(sum) > critical * f64::from(*look).sqrt()
            });
            claims += u32::from(is_claimed);
        }
        let share = f64::from(claims) / 20_000.0;
        assert!((0.045..0.055).contains(&share), "{share}");
    }

    #[test]
    fn the_chance_to_decide_knows_the_hopeless_and_the_clear() {
        let chance = |estimate, error| chance_to_decide((estimate, error), 0.5, 0.02, (2.1, 2.3));
        assert!(chance(0.3, 0.01) > 0.999, "a large effect");
        assert!(chance(0.0, 0.004) > 0.99, "a precise nothing");
        assert!(chance(0.0, 0.05) < 0.05, "a loud nothing: {}", chance(0.0, 0.05));
        let open = chance(0.03, 0.015);
        assert!((0.1..0.9).contains(&open), "{open}");
    }
}
