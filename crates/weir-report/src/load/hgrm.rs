//! HdrHistogram's `.hgrm`: a percentile spectrum in text, as its Java original writes it and its
//! plotters read it.
//!
//! Values are milliseconds with all six decimals down to the nanosecond: the original prints three,
//! which would leave one digit of a dispatch lag. Readers split at white space.

use std::fmt::Write as _;

use weir_model::load_report::{LoadReport, TimeReport};

use super::spectrum::{mean_and_stdev, rows};
use super::times::{HistogramError, histogram};

/// The distributions of a [`LoadReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// From the intended start to the last byte.
    ResponseTime,
    /// From the actual send to the last byte.
    ServiceTime,
    /// From the actual send to the first byte.
    FirstByte,
    /// The engine's own lateness.
    DispatchLag,
    /// Time to open a connection.
    ConnectTime,
}

impl Distribution {
    /// All of them, in the document's order.
    pub const ALL: [Distribution; 5] = [
        Distribution::ResponseTime,
        Distribution::ServiceTime,
        Distribution::FirstByte,
        Distribution::DispatchLag,
        Distribution::ConnectTime,
    ];

    /// The field's name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Distribution::ResponseTime => "response_time",
            Distribution::ServiceTime => "service_time",
            Distribution::FirstByte => "first_byte",
            Distribution::DispatchLag => "dispatch_lag",
            Distribution::ConnectTime => "connect_time",
        }
    }

    /// The distribution in `report`.
    pub fn of(self, report: &LoadReport) -> &TimeReport {
        match self {
            Distribution::ResponseTime => &report.response_time,
            Distribution::ServiceTime => &report.service_time,
            Distribution::FirstByte => &report.first_byte,
            Distribution::DispatchLag => &report.dispatch_lag,
            Distribution::ConnectTime => &report.connect_time,
        }
    }
}

/// One distribution as `.hgrm`, in milliseconds.
///
/// # Errors
/// The document's histogram cannot be read back.
pub fn hgrm(report: &LoadReport, which: Distribution) -> Result<String, HistogramError> {
    let time = which.of(report);
    let histogram = histogram(time)?;
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    for row in rows(&histogram) {
        let (ms, quantile, count) = (row.value as f64 / 1e6, row.quantile, row.count);
        let _ = write!(text, "{ms:12.6} {quantile:.12} {count:10}");
        // The original leaves the infinite one out, and plotters skip a row of three columns.
        if quantile < 1.0 {
            let _ = write!(text, " {:14.2}", row.one_in());
        }
        text.push('\n');
    }
    let (mean, stdev) = match histogram.is_empty() {
        true => (0.0, 0.0),
        false => mean_and_stdev(&histogram),
    };
    let (mean, stdev, max) = (mean / 1e6, stdev / 1e6, time.max as f64 / 1e6);
    let (total, buckets) = (histogram.len(), histogram.buckets());
    let sub_buckets = (2 * 10_u32.pow(u32::from(histogram.sigfig()))).next_power_of_two();
    let _ = writeln!(
        text,
        "#[Mean    = {mean:12.6}, StdDeviation   = {stdev:12.6}]"
    );
    let _ = writeln!(text, "#[Max     = {max:12.6}, Total count    = {total:12}]");
    let _ = writeln!(
        text,
        "#[Buckets = {buckets:12}, SubBuckets     = {sub_buckets:12}]"
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn it_looks_like_the_original() {
        let text = hgrm(&sample::open_loop(), Distribution::ResponseTime).unwrap();
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_plotter_finds_four_columns_in_all_rows_but_the_last() {
        for which in Distribution::ALL {
            let report = sample::open_loop();
            let text = hgrm(&report, which).unwrap();
            let rows = text
                .lines()
                .skip(2)
                .take_while(|line| !line.starts_with('#'));
            let widths: Vec<_> = rows.map(|row| row.split_whitespace().count()).collect();
            let (last, others) = widths.split_last().unwrap();
            assert_eq!(*last, 3, "{}", which.name());
            assert!(others.iter().all(|&width| width == 4), "{}", which.name());
        }
    }

    #[test]
    fn no_values_are_written_without_nan() {
        let text = hgrm(&sample::nothing_answered(), Distribution::ServiceTime).unwrap();
        assert!(!text.contains("NaN"), "{text}");
    }
}
