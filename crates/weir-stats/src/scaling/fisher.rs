//! The F distribution, by the incomplete beta function.

/// Largest number of terms of the continued fraction; it needs about the root of the degrees of freedom.
const TERMS: u32 = 300;

/// Returns the probability of an F of at least `f` with these degrees of freedom.
pub(super) fn upper_tail(f: f64, above: usize, below: usize) -> f64 {
    let (a, b) = (0.5 * below as f64, 0.5 * above as f64);
    let x = below as f64 / (below as f64 + above as f64 * f);
    if x >= (a + 1.0) / (a + b + 2.0) { 1.0 - fraction(b, a, 1.0 - x) } else { fraction(a, b, x) }
}

/// Returns the regularised incomplete beta function, for x below (a + 1) / (a + b + 2): the continued fraction of DLMF
/// 8.17.22, by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front =
        (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    let (mut c, mut d) = (1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0)));
    let mut product = d;
    for term in 1..TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for coefficient in [even, odd] {
            d = 1.0 / (1.0 + coefficient * d);
            c = 1.0 + coefficient / c;
            product *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-12 {
            break;
        }
    }
    front * product / a
}

/// Returns ln Γ(x) of a positive number, by Stirling's series.
fn log_gamma(x: f64) -> f64 {
    if x < 10.0 {
        return log_gamma(x + 1.0) - x.ln();
    }
    let square = 1.0 / (x * x);
    let series = (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0)) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

#[cfg(test)]
mod tests {
    use super::upper_tail;

    /// R: `pf(c(4.3, 1, 0.2, 3.49, 9), c(2, 5, 3, 3, 1), c(12, 5, 70, 12, 1000), lower.tail = FALSE)`.
    #[test]
    fn table_values() {
        for (f, above, below, p) in [
            (3.885_294, 2, 12, 0.05),
            (1.0, 5, 5, 0.5),
            (3.490_295, 3, 12, 0.05),
            (3.850_793, 1, 1000, 0.05),
            (9.330_212, 1, 12, 0.01),
        ] {
            let tail = upper_tail(f, above, below);
            assert!((tail - p).abs() < 1e-5, "{f} {above} {below}: {tail}");
        }
    }
}
