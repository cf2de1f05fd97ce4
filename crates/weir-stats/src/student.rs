//! Student's t distribution ("The probable error of a mean", Biometrika 6, 1908), for spreads estimated from a few
//! values.

use crate::normal;

/// Number of degrees of freedom above which the normal distribution is used; they agree to 1e-3 there.
const NEARLY_NORMAL: u32 = 1000;

/// Returns the probability of a value at least as far from 0 as `t`, on either side, with this many degrees of freedom:
/// the finite series of Abramowitz & Stegun 26.7.3 and 26.7.4. 1 without any degrees of freedom.
pub fn two_sided(t: f64, freedom: u32) -> f64 {
    let distance = t.abs();
    if freedom == 0 || distance.is_nan() {
        return 1.0;
    }
    if freedom > NEARLY_NORMAL {
        return 2.0 * normal::cdf(-distance);
    }
    let angle = (distance / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = freedom % 2;
    // Of an odd number the series is in odd powers of the cosine, and begins a term later.
    let (mut term, mut sum) = match odd {
        1 => (cosine, 0.0),
        _ => (1.0, 0.0),
    };
    let mut below = 1 + odd;
    while below < freedom {
        sum += term;
        term *= cosine * cosine * f64::from(below) / f64::from(below + 1);
        below += 2;
    }
    let within = match odd {
        1 => (angle + sine * sum) * std::f64::consts::FRAC_2_PI,
        _ => sine * sum,
    };
    (1.0 - within).clamp(0.0, 1.0)
}

/// Returns the value that is exceeded, on either side, with probability `tail` (0..1); infinite without degrees of
/// freedom.
pub fn quantile(tail: f64, freedom: u32) -> f64 {
    if freedom == 0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, freedom) > tail && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if two_sided(middle, freedom) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: `qt(0.975, c(1, 2, 3, 7, 10, 30, 1000, 5000))`.
    #[test]
    fn table_values() {
        let table = [
            (1, 12.706_205),
            (2, 4.302_653),
            (3, 3.182_446),
            (7, 2.364_624),
            (10, 2.228_139),
            (30, 2.042_272),
            (1000, 1.962_339),
            (5000, 1.960_439),
        ];
        for (freedom, want) in table {
            let critical = quantile(0.05, freedom);
            assert!((critical / want - 1.0).abs() < 3e-4, "{freedom}: {critical}");
            assert!((two_sided(want, freedom) - 0.05).abs() < 1e-4, "{freedom}");
        }
        assert_eq!(two_sided(0.0, 3), 1.0);
        assert_eq!((two_sided(9.0, 0), quantile(0.05, 0)), (1.0, f64::INFINITY));
    }
}
