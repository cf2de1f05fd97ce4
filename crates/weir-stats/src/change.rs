//! Detection of changes in a series.

use std::ops::Range;

use crate::ascending;

/// Returns the position at which a sample, in order of time, most likely changes from one level to another, as the
/// number of values before, and the p of there being no change: Pettitt's test ("A Non-parametric Approach to the
/// Change-point Problem", J. R. Stat. Soc. C 28, 1979), which compares ranks before and after each position and is thus
/// robust to outliers. The p is his approximation, a little too large for small values. `None` with fewer than four
/// values, or one that is not finite.
pub fn change_point(sample: &[f64]) -> Option<(usize, f64)> {
    let sorted = ascending(sample).filter(|sorted| sorted.len() >= 4)?;
    let n = sample.len() as f64;
    let mut sum = 0.0;
    let (place, largest) = sample
        .iter()
        .enumerate()
        .map(|(place, value)| {
            // Mid-rank of each, doubled: equal values share one.
            let below = sorted.partition_point(|other| other < value);
            let up_to = sorted.partition_point(|other| other <= value);
            sum += (below + up_to + 1) as f64 - (n + 1.0);
            (place + 1, sum.abs())
        })
        .take(sample.len() - 1)
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let p = 2.0 * (-6.0 * largest * largest / (n.powi(3) + n.powi(2))).exp();
    Some((place, p.min(1.0)))
}

/// Returns the runs of at least `shortest` consecutive values that all lie more than `limit` from the median on the
/// same side: temporary changes, which [`change_point`] overlooks. Each comes with the p of so long a run among as many
/// values beyond the limit in a random order: the chance that one begins at any given position, times the positions
/// (Mood, "The Distribution Theory of Runs", Ann. Math. Statist. 11, 1940). Empty for a sample that is not finite.
pub fn excursions(sample: &[f64], limit: f64, shortest: usize) -> Vec<(Range<usize>, f64)> {
    let Some(sorted) = ascending(sample).filter(|sorted| !sorted.is_empty()) else {
        return Vec::new();
    };
    let n = sample.len();
    let middle = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
    let mut stretches = Vec::new();
    for side in [-1.0, 1.0] {
        let is_beyond = |value: &f64| side * (value - middle) > limit;
        let beyond = sample.iter().filter(|value| is_beyond(value)).count();
        let mut begin = 0;
        for run in sample.chunk_by(|a, b| is_beyond(a) == is_beyond(b)) {
            let range = begin..begin + run.len();
            begin = range.end;
            if run.len() >= shortest && is_beyond(&run[0]) {
                let chances = (0..run.len()).map(|i| (beyond - i) as f64 / (n - i) as f64);
                let p = (n - run.len() + 1) as f64 * chances.product::<f64>();
                stretches.push((range, p.min(1.0)));
            }
        }
    }
    stretches
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
        assert!((20..=100).contains(&steps), "{steps} of 2,000 without a step at 5 %");
        assert_eq!(change_point(&[1.0; 3]), None);
        assert_eq!(change_point(&[1.0; 8]).unwrap().1, 1.0);
    }

    #[test]
    fn a_stretch_that_passes_is_found_and_scattered_outliers_are_not() {
        let mut rng = SplitMix64::new(6);
        let (mut wrong, mut alone) = (0, 0);
        for _ in 0..2000 {
            let mut sample: Vec<f64> = (0..56).map(|_| rng.unit()).collect();
            for _ in 0..8 {
                sample[rng.below(56) as usize] -= 10.0;
            }
            let all = excursions(&sample, 2.0, 4);
            wrong += usize::from(all.iter().any(|(_, p)| *p < 0.01));
            sample[24..33].iter_mut().for_each(|value| *value = -50.0);
            let stretches = excursions(&sample, 2.0, 4);
            assert!(
                stretches
                    .iter()
                    .any(|(range, p)| range.start <= 24 && 33 <= range.end && *p < 1e-3),
                "{stretches:?}"
            );
            alone += usize::from(change_point(&sample).unwrap().1 < 1e-3);
        }
        assert!(wrong <= 20, "{wrong} of 2,000 with scattered outliers at 1 %");
        assert!(alone < 500, "{alone}: it needs no search of its own");
        assert_eq!(excursions(&[1.0; 9], 0.1, 4), []);
        assert_eq!(excursions(&[], 0.1, 4), []);
    }
}
