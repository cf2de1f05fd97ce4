//! Difference of two independent estimates.

use crate::signed_rank::Interval;

/// Returns the interval of `one` minus `other`, each an estimate with its interval, from independent samples. It is
/// recovered from the two intervals, which may be of different widths and need not be symmetric (Zou & Donner,
/// "Construction of confidence limits about effect measures: a general approach", Statistics in Medicine 27, 2008). Its
/// confidence is the lower one of the two.
pub fn difference((one, of_one): (f64, Interval), (other, of_other): (f64, Interval)) -> Interval {
    let value = one - other;
    Interval {
        low: value - (one - of_one.low).hypot(of_other.high - other),
        high: value + (of_one.high - one).hypot(other - of_other.low),
        confidence: of_one.confidence.min(of_other.confidence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_difference_is_recovered_from_two() {
        // Symmetric ones: squares of half-widths add up.
        let combined =
            difference((10.0, interval(7.0, 13.0, 0.96)), (2.0, interval(-2.0, 6.0, 0.95)));
        assert_eq!((combined.low, combined.high, combined.confidence), (3.0, 13.0, 0.95));
        // What one may be too high by counts below, what the other may be too low by above.
        let combined =
            difference((0.0, interval(-3.0, 0.0, 0.95)), (0.0, interval(0.0, 4.0, 0.95)));
        assert_eq!((combined.low, combined.high), (-5.0, 0.0));
    }

    fn interval(low: f64, high: f64, confidence: f64) -> Interval {
        Interval { low, high, confidence }
    }
}
