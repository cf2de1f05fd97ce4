//! Relative difference: the difference of two values as a share of their mean.
//!
//! For small differences this is the logarithm of their ratio: 2 tanh(ln r / 2), which is ln r minus a twelfth of its
//! cube. But it is bounded, so the result of a comparison does not depend on how close to zero one of the two values
//! is: an arm that stands still in a third of the blocks has lost about a third of its throughput, and not all.

/// Distance from a bound below which one of the two values counts as zero.
const NOTHING: f64 = 1e-9;

/// Returns 2 (a - b) / (a + b), from the ratio a / b: -2 for a ratio of 0, 2 for an infinite one; NaN for NaN.
pub fn relative_difference(ratio: f64) -> f64 {
    match ratio {
        f64::INFINITY => 2.0,
        ratio => 2.0 * (ratio - 1.0) / (ratio + 1.0),
    }
}

/// Returns the ratio a / b of a relative difference; 0 or infinite at its bounds.
pub fn ratio_of(relative_difference: f64) -> f64 {
    match relative_difference {
        d if d >= 2.0 - NOTHING => f64::INFINITY,
        d if d <= NOTHING - 2.0 => 0.0,
        d => (2.0 + d) / (2.0 - d),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_relative_differences_are_the_same_thing() {
        for (ratio, wanted) in
            [(0.0, -2.0), (f64::INFINITY, 2.0), (1.0, 0.0), (3.0, 1.0), (1.0 / 3.0, -1.0)]
        {
            let difference = relative_difference(ratio);
            assert!((difference - wanted).abs() < 1e-12, "{ratio}: {difference}");
            let back = ratio_of(difference);
            assert!(back == ratio || (back / ratio - 1.0).abs() < 1e-12, "{ratio}: {back}");
        }
        assert!(relative_difference(f64::NAN).is_nan());
        for log in [-0.3, -0.01, 0.001, 0.2_f64] {
            let difference = relative_difference(log.exp());
            assert!((difference - log).abs() <= log.abs().powi(3) / 12.0, "{log}");
            assert!((ratio_of(difference).ln() - log).abs() < 1e-12, "{log}");
        }
        assert_eq!((ratio_of(-2.3), ratio_of(2.3)), (0.0, f64::INFINITY));
    }
}
