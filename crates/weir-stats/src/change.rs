//! When a series becomes another one.

use crate::ascending;

/// The place in a sample, in order of time, where it most likely changes from one level to another, as the
/// number of values before, and the p of there being no change: Pettitt's test ("A Non-parametric Approach
/// to the Change-point Problem", J. R. Stat. Soc. C 28, 1979), which compares ranks before and after each
/// place and so bears outliers. The p is his approximation, a little too large where it is small. `None`
/// with fewer than four values, or one that is not finite.
pub fn change_point(sample: &[f64]) -> Option<(usize, f64)> {
    let sorted = ascending(sample).filter(|sorted| sorted.len() >= 4)?;
    let n = sample.len() as f64;
    // Mid-rank of each, doubled: equal values share one.
    let doubled = |value: f64| {
        let below = sorted.partition_point(|other| *other < value);
        let up_to = sorted.partition_point(|other| *other <= value);
        (below + up_to + 1) as f64
    };
    let mut sum = 0.0;
    let statistics = sample.iter().enumerate().map(|(place, value)| {
        sum += doubled(*value) - (n + 1.0);
        (place + 1, sum.abs())
    });
    let inner = statistics.take(sample.len() - 1);
    let (place, largest) = inner.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let p = 2.0 * (-6.0 * largest * largest / (n.powi(3) + n.powi(2))).exp();
    Some((place, p.min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    #[test]
    fn a_step_is_found_where_it_is_and_noise_has_none() {
        let mut rng = SplitMix64::new(5);
        let mut steps = 0;
        for _ in 0..2000 {
            let mut sample: Vec<f64> = (0..30).map(|_| rng.unit()).collect();
            steps += usize::from(change_point(&sample).unwrap().1 < 0.05);
            sample[20..].iter_mut().for_each(|value| *value += 2.0);
            // An outlier moves it by no more than the high values before the step.
            sample[3] = 1e9;
            let (place, p) = change_point(&sample).unwrap();
            assert!((10..=20).contains(&place) && p < 5e-3, "{place}, {p}");
        }
        assert!(
            (20..=100).contains(&steps),
            "{steps} of 2,000 without a step at 5 %"
        );
        assert_eq!(change_point(&[1.0; 3]), None);
        assert_eq!(change_point(&[1.0; 8]).unwrap().1, 1.0);
    }
}
