//! The standard normal distribution, for samples too large for exact tables.

/// Returns the probability of a value at most `x`. Inside ±6 by Marsaglia's series ("Evaluating the Normal
/// Distribution", J. Stat. Software 11(4), 2004), outside by the continued fraction of the tail (Abramowitz & Stegun
/// 26.2.14), which keeps its relative precision when the series cancels.
pub fn cdf(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    if x.abs() > 6.0 {
        let fraction = (1..=40).rev().fold(x.abs(), |rest, k| x.abs() + f64::from(k) / rest);
        let tail = density / fraction;
        return if x < 0.0 { tail } else { 1.0 - tail };
    }
    let (mut sum, mut term, mut k) = (x, x, 1.0);
    loop {
        k += 2.0;
        term *= x * x / k;
        if sum + term == sum {
            return 0.5 + sum * density;
        }
        sum += term;
    }
}

/// Returns the value below which a share `p` (0..1, exclusive) lies; exact to about 1e-12.
pub(crate) fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if cdf(middle) < p {
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

    #[test]
    fn table_values() {
        let cases = [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_542_9),
            (-1.959_963_984_540_054, 0.025),
            (-5.0, 2.866_515_718_791_94e-7),
            (-6.5, 4.016_000_583_859_12e-11),
            (-10.0, 7.619_853_024_160_527e-24),
        ];
        for (x, want) in cases {
            let p = cdf(x);
            assert!((p / want - 1.0).abs() < 1e-9, "cdf({x}) = {p}, not {want}");
            assert!((cdf(-x) - (1.0 - want)).abs() < 1e-12);
        }
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-10);
        assert!((quantile(0.005) + 2.575_829_303_548_901).abs() < 1e-10);
    }
}
