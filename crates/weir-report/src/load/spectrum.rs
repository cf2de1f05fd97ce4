//! The percentile spectrum of a histogram at the points of HdrHistogram's plots, and the statistics of it that wrk2
//! prints.
//!
//! The standard crate's iterator and quantiles follow HdrHistogram's Java code. wrk2 follows its C port, which rounds
//! ranks differently and ends differently; a comparison of a file of weir with one of wrk2 would show that. Hence these
//! loops, each over recorded buckets only.

use hdrhistogram::Histogram;

/// Number of steps between two halvings of the distance to quantile 1.
const TICKS_PER_HALF_DISTANCE: f64 = 5.0;

/// One line of a percentile spectrum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    /// Largest value in the same bucket as the value at this quantile.
    pub(super) value: u64,
    /// Quantile, 0..=1.
    pub(super) quantile: f64,
    /// Number of values up to and including `value`.
    pub(super) count: u64,
}

impl Row {
    /// Returns 1 / (1 - quantile), which is infinite in the last row.
    pub(super) fn one_in(self) -> f64 {
        1.0 / (1.0 - self.quantile)
    }
}

/// Returns the spectrum as wrk2 iterates over it: from quantile 0 on, a row each time the count reaches the next tick.
/// The last bucket has one row besides the closing row at quantile 1.
pub(super) fn list_rows(histogram: &Histogram<u64>) -> Vec<Row> {
    let total = histogram.len();
    let mut rows = Vec::new();
    // Percent, because adding up fractions would round otherwise than the original does.
    let mut next_tick = 0.0_f64;
    let mut count = 0;
    let mut value = 0;
    for bucket in histogram.iter_recorded() {
        count += bucket.count_at_value();
        value = bucket.value_iterated_to();
        let reached = 100.0 * count as f64 / total as f64;
        while next_tick <= reached {
            rows.push(Row { value, quantile: next_tick / 100.0, count });
            let halvings = ((100.0 / (100.0 - next_tick)).ln() / 2.0_f64.ln()).trunc() + 1.0;
            next_tick += 100.0 / (TICKS_PER_HALF_DISTANCE * halvings.exp2());
            if count == total {
                break;
            }
        }
    }
    rows.push(Row { value, quantile: 1.0, count });
    rows
}

/// Returns the value at a percentile like wrk2: the rank is rounded to the nearest, and the result is the upper end of
/// the bucket. 0 if there are no values.
pub(super) fn value_at(histogram: &Histogram<u64>, percent: f64) -> u64 {
    let rank = ((percent / 100.0) * histogram.len() as f64 + 0.5) as u64;
    let mut count = 0;
    for bucket in histogram.iter_recorded() {
        count += bucket.count_at_value();
        if count >= rank.max(1) {
            return bucket.value_iterated_to();
        }
    }
    0
}

/// Returns mean and standard deviation, computed from the middles of buckets. NaN if there are no values.
pub(super) fn mean_and_stdev(histogram: &Histogram<u64>) -> (f64, f64) {
    let total = histogram.len() as f64;
    let middles = || {
        histogram.iter_recorded().map(|bucket| {
            let middle = histogram.median_equivalent(bucket.value_iterated_to());
            (middle as f64, bucket.count_at_value() as f64)
        })
    };
    let mean = middles().map(|(middle, count)| middle * count).sum::<f64>() / total;
    let squares: f64 = middles().map(|(middle, count)| (middle - mean).powi(2) * count).sum();
    (mean, (squares / total).sqrt())
}

/// Returns the share of values within one standard deviation of the mean, in percent. 0 if there are none. As in wrk2,
/// a bucket that the lower bound cuts is outside, and one that the upper bound cuts inside.
pub(super) fn within_stdev(histogram: &Histogram<u64>, mean: f64, stdev: f64) -> f64 {
    if histogram.is_empty() {
        return 0.0;
    }
    let lower = (mean - stdev).max(0.0) as u64;
    let upper = histogram.highest_equivalent((mean + stdev) as u64 + 1);
    let inside: u64 = histogram
        .iter_recorded()
        .filter(|bucket| {
            let value = bucket.value_iterated_to();
            histogram.lowest_equivalent(value) >= lower && value <= upper
        })
        .map(|bucket| bucket.count_at_value())
        .sum();
    100.0 * inside as f64 / histogram.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record_all(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000_000, 3).unwrap();
        for &value in values {
            histogram.record(value).unwrap();
        }
        histogram
    }

    fn row((value, quantile, count): (u64, f64, u64)) -> Row {
        Row { value, quantile, count }
    }

    proptest! {
        #[test]
        fn each_row_says_how_many_values_are_not_above_its_value(
            values in prop::collection::vec(0_u64..1_000_000, 1..300)
        ) {
            let rows = list_rows(&record_all(&values));
            for row in &rows {
                let naive = values.iter().filter(|&&value| value <= row.value).count() as u64;
                prop_assert_eq!(row.count, naive);
                prop_assert!(row.count as f64 / values.len() as f64 >= row.quantile - 1e-12);
            }
            prop_assert!(rows.is_sorted_by(|a, b| a.quantile < b.quantile && a.value <= b.value));
            prop_assert_eq!(rows[0].quantile, 0.0);
            prop_assert_eq!(rows[rows.len() - 1].count, values.len() as u64);
            prop_assert_eq!(rows[rows.len() - 1].one_in(), f64::INFINITY);
        }

        #[test]
        fn mean_and_deviation_agree_with_the_values(
            values in prop::collection::vec(0_u64..1_000_000, 1..300)
        ) {
            let (mean, stdev) = mean_and_stdev(&record_all(&values));
            let count = values.len() as f64;
            let exact = values.iter().sum::<u64>() as f64 / count;
            let squares = values.iter().map(|&value| (value as f64 - exact).powi(2)).sum::<f64>();
            prop_assert!((mean - exact).abs() <= exact * 1e-3 + 1.0);
            prop_assert!((stdev - (squares / count).sqrt()).abs() <= exact * 2e-3 + 1.0);
        }

        #[test]
        fn small_values_are_counted_exactly_within_the_deviation(
            // Below 2048 a bucket is one value, so the naive count is the exact one.
            values in prop::collection::vec(0_u64..2000, 1..300)
        ) {
            let histogram = record_all(&values);
            let (mean, stdev) = mean_and_stdev(&histogram);
            let low = (mean - stdev).max(0.0) as u64;
            let high = (mean + stdev) as u64 + 1;
            let naive = values.iter().filter(|&&value| (low..=high).contains(&value)).count();
            let expected = 100.0 * naive as f64 / values.len() as f64;
            prop_assert!((within_stdev(&histogram, mean, stdev) - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn a_single_value_has_a_first_row_and_a_last() {
        let [first, last] = [(7, 0.0, 1), (7, 1.0, 1)].map(row);
        assert_eq!(list_rows(&record_all(&[7])), [first, last]);
    }

    #[test]
    fn no_values_have_the_last_row_alone() {
        assert_eq!(list_rows(&record_all(&[])), [row((0, 1.0, 0))]);
        assert_eq!(value_at(&record_all(&[]), 50.0), 0);
    }

    #[test]
    fn ranks_are_rounded_to_the_nearest() {
        let four = record_all(&[10, 20, 30, 40]);
        assert_eq!(value_at(&four, 50.0), 20);
        assert_eq!(value_at(&four, 62.0), 20);
        assert_eq!(value_at(&four, 63.0), 30);
        assert_eq!(value_at(&four, 100.0), 40);
    }
}
