//! Prediction of one more value from earlier ones, which tells if a new value is one of their kind.

use crate::student::{quantile, two_sided};

/// Minimum number of earlier values: of fewer, the interval is wider than any change that matters.
pub const LEAST_VALUES: usize = 5;

/// A new value beside the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Mean of the earlier values.
    pub mean: f64,
    /// Standard deviation of the earlier values.
    pub sd: f64,
    /// Half-width of the interval of the new value's distance from the mean: a value of the same kind is within it with
    /// the requested confidence.
    pub half_width: f64,
    /// Probability that a value of the same kind is as high as the new one, or higher.
    pub p_higher: f64,
}

/// Holds a new value against earlier ones by Student's t with n - 1 degrees of freedom and the standard error s √(1 +
/// 1/n) (Hahn & Meeker, Statistical Intervals, 1991, section 4.8). `None` for fewer than [`LEAST_VALUES`] earlier
/// values, or values that do not differ at all.
pub fn predict(earlier: &[f64], new: f64, confidence: f64) -> Option<Prediction> {
    let n = earlier.len() as f64;
    if earlier.len() < LEAST_VALUES {
        return None;
    }
    let mean = earlier.iter().sum::<f64>() / n;
    let squares: f64 = earlier.iter().map(|value| (value - mean).powi(2)).sum();
    let sd = (squares / (n - 1.0)).sqrt();
    let error = sd * (1.0 + 1.0 / n).sqrt();
    // The mean of equal values is off by what their sum is rounded by.
    let rounding = n * f64::EPSILON * mean.abs();
    if !(error.is_finite() && error > rounding && new.is_finite()) {
        return None;
    }
    let freedom = earlier.len() as u32 - 1;
    let half_width = quantile(1.0 - confidence, freedom) * error;
    let t = (new - mean) / error;
    let tail = two_sided(t, freedom) / 2.0;
    let p_higher = if t >= 0.0 { tail } else { 1.0 - tail };
    Some(Prediction { mean, sd, half_width, p_higher })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    /// Draws a value that is nearly normal.
    fn draw(rng: &mut SplitMix64) -> f64 {
        (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
    }

    #[test]
    fn the_interval_is_that_of_the_book() {
        // Hahn & Meeker 1991, section 4.8.1: n = 5, mean 50.10, s = 1.31, 95 %: 46.1 to 54.1.
        let values = [51.4, 49.5, 48.7, 49.3, 51.6];
        let Prediction { mean, sd, half_width, p_higher } = predict(&values, 50.1, 0.95).unwrap();
        assert!((mean - 50.1).abs() < 1e-9 && (sd - 1.31).abs() < 0.01, "{mean} {sd}");
        assert!((half_width - 3.98).abs() < 0.02, "{half_width}");
        assert!((p_higher - 0.5).abs() < 1e-9, "{p_higher}");
        assert!(predict(&values, 60.0, 0.95).unwrap().p_higher < 0.002);
        assert!(predict(&values, 40.0, 0.95).unwrap().p_higher > 0.998);
    }

    #[test]
    fn too_little_gives_no_prediction() {
        assert_eq!(predict(&[1.0, 2.0, 3.0, 4.0], 2.0, 0.95), None);
        assert_eq!(predict(&[1.0; 9], 2.0, 0.95), None);
        let mut rng = SplitMix64::new(7);
        for _ in 0..1000 {
            let equal = [(20_000.0 * rng.unit()).ln(); 7];
            assert_eq!(predict(&equal, 2.0, 0.95), None, "{equal:?}");
        }
        assert_eq!(predict(&[1.0, 2.0, 3.0, 4.0, 5.0], f64::NAN, 0.95), None);
    }

    #[test]
    fn one_in_twenty_of_the_same_kind_is_beyond_it() {
        let mut rng = SplitMix64::new(7);
        let mut high = 0;
        for _ in 0..20_000 {
            let values: Vec<f64> = (0..11).map(|_| draw(&mut rng)).collect();
            let prediction = predict(&values[..10], values[10], 0.95).unwrap();
            high += u32::from(prediction.p_higher < 0.05);
        }
        assert!((900..1100).contains(&high), "{high} of 20000");
    }
}
