//! Distributions of seconds, in the classic buckets of Prometheus and in those of its native histograms.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Schema of native histograms: eight buckets for each doubling, each 9 % wide.
pub const SCHEMA: i32 = 3;

/// Buckets for each doubling.
const PER_DOUBLING: f64 = 8.0;

/// Upper ends of the classic buckets within a decade.
const STEPS: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];

/// Number of classic buckets: seven decades from 10 µs on.
pub const CLASSIC: usize = 6 * 7;

/// Returns the upper ends of the classic buckets, seconds: 10 µs to 70 s.
pub fn bounds() -> [f64; CLASSIC] {
    std::array::from_fn(|index| {
        let decade = index as i32 / 6 - 5;
        // Parsed, so that 0.003 is the number nearest to it and not 3 × 0.001.
        format!("{}e{decade}", STEPS[index % 6]).parse().unwrap_or(f64::MAX)
    })
}

/// Run of native buckets without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Distance from the end of the span before; of the first one, the index of its first bucket.
    pub offset: i32,
    /// Number of buckets.
    pub length: u32,
}

/// A distribution that only grows.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Sum of the values, seconds.
    pub sum: f64,
    /// Number of values that are zero.
    pub zero: u64,
    /// Number of values in each classic bucket, not cumulated; the last one has those above all bounds.
    classic: [u64; CLASSIC + 1],
    /// Number of values by the index of their native bucket.
    native: BTreeMap<i32, u64>,
}

impl Default for Distribution {
    fn default() -> Distribution {
        let (classic, native) = ([0; CLASSIC + 1], BTreeMap::new());
        Distribution { count: 0, sum: 0.0, zero: 0, classic, native }
    }
}

impl Distribution {
    /// Adds the values of a histogram of nanoseconds. Each counts as the upper end of its bucket, which is at most
    /// 0.1 % higher.
    pub fn add(&mut self, times: &Histogram<u64>) {
        let ends = bounds();
        for bucket in times.iter_recorded() {
            let (value, count) = (bucket.value_iterated_to(), bucket.count_at_value());
            let seconds = value as f64 / 1e9;
            self.count += count;
            self.sum += seconds * count as f64;
            self.classic[ends.partition_point(|bound| *bound < seconds)] += count;
            if value == 0 {
                self.zero += count;
            } else {
                *self.native.entry(native_index(seconds)).or_default() += count;
            }
        }
    }

    /// Returns the upper end and the cumulated count of each classic bucket, the one without an end left out.
    pub fn classic(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        bounds().into_iter().zip(self.classic).map(move |(bound, count)| {
            sum += count;
            (bound, sum)
        })
    }

    /// Returns the native buckets: their spans, and the difference of each count from the one before.
    pub fn native(&self) -> (Vec<Span>, Vec<i64>) {
        let mut spans: Vec<Span> = Vec::new();
        let mut deltas = Vec::with_capacity(self.native.len());
        let (mut next, mut before) = (0, 0);
        for (&index, &count) in &self.native {
            match spans.last_mut() {
                Some(span) if index == next => span.length += 1,
                _ => spans.push(Span { offset: index - next, length: 1 }),
            }
            next = index + 1;
            deltas.push(count as i64 - before);
            before = count as i64;
        }
        (spans, deltas)
    }
}

/// Returns the index of the native bucket of a positive value: bucket i ends at 2^(i/8).
fn native_index(seconds: f64) -> i32 {
    (seconds.log2() * PER_DOUBLING).ceil() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_round_numbers_and_grow() {
        let ends = bounds();
        assert_eq!((ends[0], ends[1], ends[CLASSIC - 1]), (1e-5, 1.5e-5, 70.0));
        assert!(ends.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn every_value_is_in_the_bucket_whose_ends_enclose_it() {
        let mut times = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        for (value, count) in [(0, 3), (1, 1), (9_000, 2), (1_000_000, 5), (90_000_000_000, 4)] {
            times.record_n(value, count).unwrap();
        }
        let mut sum = Distribution::default();
        sum.add(&times);
        sum.add(&times);
        assert_eq!((sum.count, sum.zero), (30, 6));
        assert!((sum.sum / 720.01 - 1.0).abs() < 0.001, "{}", sum.sum);
        let cumulated: Vec<(f64, u64)> = sum.classic().collect();
        let at = |bound: f64| cumulated.iter().find(|(end, _)| *end == bound).unwrap().1;
        assert_eq!((at(1e-5), at(7e-4), at(1.5e-3), at(70.0)), (12, 12, 22, 22));
        let (spans, deltas) = sum.native();
        let mut index = 0;
        let mut changes = deltas.into_iter();
        let mut count = 0;
        let mut counts = Vec::new();
        for span in spans {
            index += span.offset;
            for _ in 0..span.length {
                count += changes.next().unwrap();
                counts.push((2f64.powf(f64::from(index) / 8.0), count));
                index += 1;
            }
        }
        assert_eq!(changes.next(), None);
        let counts: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        for ((end, count), (value, wanted)) in
            counts.iter().zip([(1e-9, 2), (9e-6, 4), (1e-3, 10), (90.0, 8)])
        {
            assert!(*end >= value && *end / 2f64.powf(0.125) < value * 1.001, "{end} {value}");
            assert_eq!(*count, wanted);
        }
        assert_eq!(counts.len(), 4);
    }
}
