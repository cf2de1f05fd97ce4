//! The slope of a series, hardly moved by outliers.

use crate::critical_of;
use crate::monitor::widening;

/// A slope with its interval, in units of y per unit of x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// Median of the slopes between all pairs of points.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Minimum number of points.
const LEAST_POINTS: usize = 5;

/// Returns the slope of points (x, y) in order of x: the median of Theil ("A rank-invariant method of linear and
/// polynomial regression analysis", 1950) with the interval of Sen ("Estimates of the regression coefficient based on
/// Kendall's tau", JASA 63, 1968). The variance of Kendall's S grows with the autocorrelation of what the line leaves
/// (Hamed & Rao, "A modified Mann-Kendall trend test for autocorrelated data", J. Hydrol. 204, 1998; here lag 1 alone).
/// `None` with fewer than five points, with equal x alone, or if a value is not finite.
pub fn slope_of(points: &[(f64, f64)], confidence: f64) -> Option<Slope> {
    let is_finite = points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
    if points.len() < LEAST_POINTS || !is_finite {
        return None;
    }
    let mut slopes: Vec<f64> = points
        .iter()
        .enumerate()
        .flat_map(|(index, first)| points[index + 1..].iter().map(move |second| (first, second)))
        .filter(|(first, second)| second.0 > first.0)
        .map(|(first, second)| (second.1 - first.1) / (second.0 - first.0))
        .collect();
    if slopes.is_empty() {
        return None;
    }
    slopes.sort_by(f64::total_cmp);
    let count = slopes.len();
    let value = f64::midpoint(slopes[(count - 1) / 2], slopes[count / 2]);
    let residuals: Vec<f64> = points.iter().map(|(x, y)| y - value * x).collect();
    let mean = residuals.iter().sum::<f64>() / residuals.len() as f64;
    let centred: Vec<f64> = residuals.iter().map(|residual| residual - mean).collect();
    let n = points.len() as f64;
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0 * widening(&centred);
    let reach = critical_of(1.0 - confidence) * variance.sqrt();
    let [low, high] = [-reach, reach].map(|side| {
        let rank = (count as f64 + side) / 2.0;
        slopes[(rank.max(0.0) as usize).min(count - 1)]
    });
    Some(Slope { value, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    #[test]
    fn an_outlier_does_not_turn_the_line_and_the_interval_has_the_slope() {
        let mut rng = SplitMix64::new(3);
        let mut covered = 0;
        for _ in 0..1_000 {
            let mut points: Vec<(f64, f64)> =
                (0..30).map(|x| (f64::from(x), 0.1 * f64::from(x) + rng.unit())).collect();
            points[4].1 = 1e6;
            let slope = slope_of(&points, 0.95).expect("finite");
            assert!((slope.value - 0.1).abs() < 0.05, "{slope:?}");
            covered += u32::from(slope.low <= 0.1 && 0.1 <= slope.high);
        }
        assert!(covered >= 930, "{covered}");
    }

    #[test]
    fn too_little_has_no_slope() {
        assert_eq!(slope_of(&[(0.0, 1.0); 4], 0.95), None);
        assert_eq!(slope_of(&[(0.0, 1.0); 9], 0.95), None);
        assert_eq!(slope_of(&[(0.0, f64::NAN); 9], 0.95), None);
    }
}
