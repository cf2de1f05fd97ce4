//! HdrHistogram's `.hgrm` format: a percentile spectrum in text, as its Java original writes it and its plotters read
//! it.
//!
//! Values are milliseconds with all six decimals down to the nanosecond: the original prints three, which would leave
//! one digit of a dispatch lag. Readers split at white space.

use weir_model::load_report::{LoadReport, TimeReport};

use super::spectrum::{list_rows, mean_and_stdev};
use super::times::{HistogramError, histogram};

/// Formats the response times as `.hgrm`, in milliseconds.
///
/// # Errors
/// Returns an error if the document's histogram cannot be decoded.
pub fn hgrm(report: &LoadReport) -> Result<String, HistogramError> {
    of(&report.results.response_time)
}

fn of(time: &TimeReport) -> Result<String, HistogramError> {
    let values = histogram(time)?;
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    for row in list_rows(&values) {
        let (ms, quantile, count) = (row.value as f64 / 1e6, row.quantile, row.count);
        text += &format!("{ms:12.6} {quantile:.12} {count:10}");
        // The original leaves the infinite one out, and plotters skip a row of three columns.
        if quantile < 1.0 {
            text += &format!(" {:14.2}", row.one_in());
        }
        text.push('\n');
    }
    let (mean, stdev) = if values.is_empty() { (0.0, 0.0) } else { mean_and_stdev(&values) };
    let (mean, stdev, max) = (mean / 1e6, stdev / 1e6, time.max as f64 / 1e6);
    let (total, buckets) = (values.len(), values.buckets());
    let sub_buckets = (2 * 10_u32.pow(u32::from(values.sigfig()))).next_power_of_two();
    let footer = format!(
        "#[Mean    = {mean:12.6}, StdDeviation   = {stdev:12.6}]\n\
         #[Max     = {max:12.6}, Total count    = {total:12}]\n\
         #[Buckets = {buckets:12}, SubBuckets     = {sub_buckets:12}]\n"
    );
    Ok(text + &footer)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn it_looks_like_the_original() {
        let text = hgrm(&sample::open_loop()).unwrap();
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_plotter_finds_four_columns_in_all_rows_but_the_last() {
        let report = sample::open_loop();
        for time in [
            &report.results.response_time,
            &report.results.dispatch_lag,
            &report.results.connect_time,
        ] {
            let text = of(time).unwrap();
            let widths: Vec<_> = text
                .lines()
                .skip(2)
                .take_while(|line| !line.starts_with('#'))
                .map(|row| row.split_whitespace().count())
                .collect();
            let (last, others) = widths.split_last().unwrap();
            assert_eq!(*last, 3, "{text}");
            assert!(others.iter().all(|&width| width == 4), "{text}");
        }
    }

    #[test]
    fn no_values_are_written_without_nan() {
        let text = hgrm(&sample::nothing_answered()).unwrap();
        assert!(!text.contains("NaN"), "{text}");
    }
}
