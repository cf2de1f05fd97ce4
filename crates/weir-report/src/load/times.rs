//! Lossless conversion of histograms to and from the document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use weir_model::load_report::TimeReport;
use weir_record::{decode, empty_histogram};

/// Quantiles that the document states. All others can be computed from the histogram.
const QUANTILES: [f64; 8] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];

/// Error while decoding the histogram of a [`TimeReport`].
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("the histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not a histogram.
    #[error("the histogram cannot be read: {0}")]
    Encoding(#[from] weir_record::HistogramError),
    /// The number of values in the histogram is not `count`.
    #[error("the histogram holds {found} values, but `count` says {expected}")]
    Count {
        /// Value of `count`.
        expected: u64,
        /// Number of values in the histogram.
        found: u64,
    },
}

/// Returns a distribution of times, in nanoseconds, with its encoded histogram.
pub fn time_report(histogram: &Histogram<u64>) -> TimeReport {
    TimeReport { histogram: encode(histogram), ..time_summary(histogram) }
}

/// Returns a distribution of times, in nanoseconds, without its histogram, whose encoding takes a millisecond. All
/// figures of an empty histogram are 0, because JSON has no NaN.
pub fn time_summary(histogram: &Histogram<u64>) -> TimeReport {
    let (mean, stdev) = mean_and_deviation(histogram);
    let quantiles = QUANTILES.into_iter().zip(histogram.value_at_quantiles(QUANTILES));
    TimeReport {
        count: histogram.len(),
        mean,
        stdev,
        min: histogram.min(),
        max: if histogram.is_empty() { 0 } else { histogram.max() },
        quantiles: quantiles.collect(),
        histogram: String::new(),
    }
}

/// Computes the same as `Histogram::mean` and `Histogram::stdev`, which iterate over all buckets three times.
fn mean_and_deviation(histogram: &Histogram<u64>) -> (f64, f64) {
    let total = histogram.len() as f64;
    let buckets: Vec<(f64, f64)> = histogram
        .iter_recorded()
        .map(|bucket| {
            let middle = histogram.median_equivalent(bucket.value_iterated_to());
            (middle as f64, bucket.count_at_value() as f64)
        })
        .collect();
    if buckets.is_empty() {
        return (0.0, 0.0);
    }
    let mean = buckets.iter().fold(0.0, |sum, (value, count)| sum + value * count / total);
    let squares =
        buckets.iter().fold(0.0, |sum, (value, count)| sum + (value - mean).powi(2) * count);
    (mean, (squares / total).sqrt())
}

fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("counts of requests are far below i64::MAX, and memory takes every write");
    STANDARD.encode(bytes)
}

/// Decodes the histogram of a distribution as it was recorded. A report without one (`count` 0) gives an empty
/// histogram.
///
/// # Errors
/// Returns an error if the text is not what [`time_report`] writes, or the number of values is not `count`.
pub fn histogram(time: &TimeReport) -> Result<Histogram<u64>, HistogramError> {
    let histogram = if time.histogram.is_empty() {
        empty_histogram()
    } else {
        decode(&STANDARD.decode(&time.histogram)?)?
    };
    if histogram.len() != time.count {
        return Err(HistogramError::Count { expected: time.count, found: histogram.len() });
    }
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_record::LONGEST_NS;

    fn record_all(values: &[u64]) -> Histogram<u64> {
        let mut histogram = empty_histogram();
        for &value in values {
            histogram.record(value).unwrap();
        }
        histogram
    }

    proptest! {
        #[test]
        fn nothing_is_lost_on_the_way_through_the_document(
            values in prop::collection::vec(0..LONGEST_NS, 0..200)
        ) {
            let before = record_all(&values);
            let after = histogram(&time_report(&before)).unwrap();
            prop_assert_eq!(after, before);
        }

        #[test]
        fn figures_agree_with_the_values(
            mut values in prop::collection::vec(1..LONGEST_NS, 1..200)
        ) {
            let recorded = record_all(&values);
            let report = time_report(&recorded);
            prop_assert_eq!((report.mean, report.stdev), (recorded.mean(), recorded.stdev()));
            values.sort_unstable();
            for (quantile, reported) in report.quantiles {
                let rank = (quantile * values.len() as f64).ceil() as usize;
                let exact = values[rank.max(1) - 1];
                // Three significant digits, reported at the upper end of the bucket.
                prop_assert!(reported >= exact && reported as f64 <= exact as f64 * 1.001 + 1.0);
            }
        }
    }

    #[test]
    fn no_values_give_zeros_and_an_empty_histogram() {
        let report = time_report(&record_all(&[]));
        assert_eq!((report.count, report.min, report.max), (0, 0, 0));
        assert_eq!((report.mean, report.stdev), (0.0, 0.0));
        assert!(histogram(&report).unwrap().is_empty());
        assert!(histogram(&TimeReport::default()).unwrap().is_empty());
    }

    #[test]
    fn what_is_not_a_histogram_is_refused() {
        let good = time_report(&record_all(&[1, 2, 3]));
        let broken =
            |histogram: &str| TimeReport { histogram: histogram.to_owned(), ..good.clone() };
        let text = histogram(&broken("not base64!")).unwrap_err();
        assert!(matches!(text, HistogramError::Base64(_)), "{text}");
        for bytes in ["AAAAAAAA", &good.histogram[..good.histogram.len() / 8 * 4]] {
            let error = histogram(&broken(bytes)).unwrap_err();
            assert!(matches!(error, HistogramError::Encoding(_)), "{error}");
        }
        let lying = TimeReport { count: 4, ..good };
        let error = histogram(&lying).unwrap_err().to_string();
        assert_eq!(error, "the histogram holds 3 values, but `count` says 4");
    }
}
