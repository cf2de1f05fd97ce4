//! Output of `wrk2 --latency`, identical to the byte, so that scripts and plotters for it continue to work.
//!
//! Differences in the data of the two programs:
//! - `Latency` is response_time, which is what wrk2 records: from the intended start.
//! - The lines `Thread calibration: …` are absent: nothing is calibrated, and wrk2 itself omits them in tests shorter
//!   than ten seconds, so every reader must work without them.
//! - Requests, bytes and rates are for `sustain` alone; wrk2 includes its calibration.
//! - `Req/Sec` is sampled once a second; wrk2 chooses an interval from 10 ms up.
//! - Requests that never ended have no place in this format.
//!
//! Times are rounded to wrk2's microseconds by recording them into a histogram like wrk2's.

use hdrhistogram::Histogram;
use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;

use super::extended::Extended;
use super::spectrum::{list_rows, mean_and_stdev, value_at, within_stdev};
use super::times::{HistogramError, histogram};

/// Longest time of wrk2, microseconds: a day.
const LONGEST_US: u64 = 86_400_000_000;
/// Number of buckets of a histogram from 1 to [`LONGEST_US`] with three digits, in HdrHistogram's C port.
const BUCKETS: u32 = 27;
const SUB_BUCKETS: u32 = 2048;
/// Shortest interval for which wrk2 samples the rate, in seconds.
const SHORTEST_SAMPLE: f64 = 0.01;
/// Text that C prints for the mean of no values, 0/0.
const NAN: &str = "-nan";
/// Percentiles that wrk2 lists of the distribution.
const LISTED: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// Formats the result as `wrk2 --latency` would print it.
///
/// # Errors
/// Returns an error if the document's histogram of response_time cannot be decoded.
pub fn wrk2(report: &LoadReport) -> Result<String, HistogramError> {
    Ok(printed(report, &histogram(&report.results.response_time)?))
}

fn printed(report: &LoadReport, response_ns: &Histogram<u64>) -> String {
    let latency = microseconds(response_ns);
    let parts =
        [heading(report), thread_stats(report, &latency), distribution(&latency), totals(report)];
    parts.concat()
}

/// Converts the times to microseconds in a histogram like wrk2's. The middle of a bucket represents its values, so that
/// the second rounding has no bias.
fn microseconds(nanoseconds: &Histogram<u64>) -> Histogram<u64> {
    let mut microseconds = empty();
    for bucket in nanoseconds.iter_recorded() {
        let middle = nanoseconds.median_equivalent(bucket.value_iterated_to());
        microseconds.saturating_record_n((middle + 500) / 1000, bucket.count_at_value());
    }
    microseconds
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, 3).expect("the bounds are constant and valid")
}

fn heading(report: &LoadReport) -> String {
    let seconds = report.phases.sustain.round();
    let duration = scaled(Extended::new(seconds), SECONDS, 0);
    let (threads, connections) = (report.results.load.cpus.len(), report.results.load.connections);
    let url = &report.results.target.url;
    format!("Running {duration} test @ {url}\n  {threads} threads and {connections} connections\n")
}

fn thread_stats(report: &LoadReport, latency: &Histogram<u64>) -> String {
    let (rates, max) = rates_per_thread(report);
    let latency = stats_row("Latency", latency, largest(latency), time);
    let rates = stats_row("Req/Sec", &rates, max, metric);
    format!("  Thread Stats   Avg      Stdev     Max   +/- Stdev\n{latency}{rates}")
}

/// Returns the largest value as wrk2 states it here: the lower end of the last bucket, unlike in its other lines.
fn largest(values: &Histogram<u64>) -> u64 {
    if values.is_empty() {
        return 0;
    }
    values.lowest_equivalent(values.max())
}

/// Returns completed requests per second and thread, in whole numbers like wrk2's samples, and the largest of them.
fn rates_per_thread(report: &LoadReport) -> (Histogram<u64>, u64) {
    let threads = report.results.load.cpus.len().max(1) as f64;
    let mut rates = empty();
    let mut max = 0;
    for second in &report.over_time {
        if second.seconds >= SHORTEST_SAMPLE {
            let rate = (second.completed as f64 / second.seconds / threads) as u64;
            rates.saturating_record(rate);
            max = max.max(rate);
        }
    }
    (rates, max)
}

fn stats_row(
    name: &str,
    values: &Histogram<u64>,
    max: u64,
    format: impl Fn(f64) -> String,
) -> String {
    let (mean, stdev) = mean_and_stdev(values);
    let within = within_stdev(values, mean, stdev);
    let columns = [(mean, 8), (stdev, 10), (max as f64, 9)]
        .map(|(value, width)| column(&format(value), width));
    format!("    {name:<10}{}{within:8.2}%\n", columns.concat())
}

fn distribution(latency: &Histogram<u64>) -> String {
    let mut text = "  Latency Distribution (HdrHistogram - Recorded Latency)\n".to_owned();
    for percent in LISTED {
        let value = time(value_at(latency, percent) as f64);
        text += &format!("{percent:7.3}%{}\n", column(&value, 10));
    }
    text += "\n  Detailed Percentile spectrum:\n\
             \x20      Value   Percentile   TotalCount 1/(1-Percentile)\n\n";
    for row in list_rows(latency) {
        let milliseconds = row.value as f64 / 1e3;
        let (quantile, count, one_in) = (row.quantile, row.count, row.one_in());
        text += &format!("{milliseconds:12.3} {quantile:12.6} {count:12} {one_in:12.2}\n");
    }
    let (mean, stdev) = mean_and_stdev(latency);
    let (mean, stdev) = (milliseconds(mean), milliseconds(stdev));
    let (max, total) = (largest(latency) as f64 / 1e3, latency.len());
    let footer = format!(
        "#[Mean    = {mean:>12}, StdDeviation   = {stdev:>12}]\n\
         #[Max     = {max:12.3}, Total count    = {total:12}]\n\
         #[Buckets = {BUCKETS:12}, SubBuckets     = {SUB_BUCKETS:12}]\n\
         ----------------------------------------------------------\n"
    );
    text + &footer
}

fn totals(report: &LoadReport) -> String {
    let sustain = report.phases.sustain;
    let requests = report.results.counts.completed;
    let duration = time((sustain * 1e6).trunc());
    let bytes_per_second = report.results.rates.received_bytes;
    let bytes = binary(bytes_per_second * sustain);
    let mut text = format!("  {requests} requests in {duration}, {bytes}B read\n");
    let error_counts = ["connect", "read", "write", "timeout"].map(|kind| {
        let errors = report.results.errors.iter().filter(|error| socket_error(error.kind) == kind);
        (kind, errors.map(|error| error.count).sum::<u64>())
    });
    if error_counts.iter().any(|(_, count)| *count > 0) {
        let counts = error_counts.map(|(kind, count)| format!("{kind} {count}"));
        text += &format!("  Socket errors: {}\n", counts.join(", "));
    }
    let refused = report.results.statuses.iter().filter(|status| status.status > 399);
    let refused: u64 = refused.map(|status| status.count).sum();
    if refused > 0 {
        text += &format!("  Non-2xx or 3xx responses: {refused}\n");
    }
    let (rate, transfer) = (report.results.rates.completed, binary(bytes_per_second));
    text + &format!("Requests/sec: {rate:9.2}\nTransfer/sec: {transfer:>10}B\n")
}

/// Returns wrk2's category of an error. Anything that spoils a response is a read error.
fn socket_error(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Connect => "connect",
        ErrorKind::Send => "write",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Receive
        | ErrorKind::ClosedEarly
        | ErrorKind::ClosedUnanswered
        | ErrorKind::Malformed
        | ErrorKind::HeadTooLarge
        | ErrorKind::Unsolicited
        | ErrorKind::Unexpected
        | ErrorKind::Tls => "read",
    }
}

/// Units in which wrk2 prints a quantity: the factor between neighbouring units, and the units from the smallest up.
type Units = (u32, &'static [&'static str]);

// wrk2 never reaches the last unit of its own tables (hours, say); these end where it stops.
const MICROSECONDS: Units = (1000, &["us", "ms"]);
const SECONDS: Units = (60, &["s", "m"]);
const BINARY: Units = (1024, &["", "K", "M", "G", "T"]);
const METRIC: Units = (1000, &["", "k", "M", "G", "T"]);

/// Formats a value in the unit that wrk2 would use: the next larger unit from 0.85 of it on.
fn scaled(mut value: Extended, (factor, units): Units, digits: u32) -> String {
    let mut unit = units[0];
    for larger in &units[1..] {
        if value.to_f64() >= f64::from(factor) * 0.85 {
            value = value.divided_by(factor);
            unit = larger;
        }
    }
    format!("{}{unit}", value.to_decimal(digits))
}

/// Formats a time given in microseconds.
fn time(us: f64) -> String {
    if us.is_nan() {
        return format!("{NAN}us");
    }
    let us = Extended::new(us);
    if us.to_f64() >= 1e6 {
        return scaled(us.divided_by(1_000_000), SECONDS, 2);
    }
    scaled(us, MICROSECONDS, 2)
}

fn metric(value: f64) -> String {
    if value.is_nan() {
        return NAN.to_owned();
    }
    scaled(Extended::new(value), METRIC, 2)
}

fn binary(bytes: f64) -> String {
    scaled(Extended::new(bytes), BINARY, 2)
}

/// Formats a value of the spectrum's footer, given in microseconds.
fn milliseconds(us: f64) -> String {
    if us.is_nan() {
        return NAN.to_owned();
    }
    format!("{:.3}", us / 1e3)
}

/// Right-aligns a figure so that last digits are aligned whether the unit has two letters, one or none. Cuts it to the
/// width, like wrk2.
fn column(text: &str, width: usize) -> String {
    let last = text.chars().rev().take(2);
    let pad = 2 - last.filter(char::is_ascii_alphabetic).count();
    let width = width - pad;
    format!("{text:>width$.width$}{:pad$}", "")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// Output of wrk2's own functions for the distribution in [`sample::known_to_wrk2`].
    const GOLDEN: &str = include_str!("testdata/wrk2.txt");

    #[test]
    fn the_bytes_are_those_of_wrk2() {
        let (report, response_ns) = sample::known_to_wrk2();
        assert_eq!(printed(&report, &response_ns), GOLDEN);
    }

    #[test]
    fn error_lines_appear_only_when_there_are_errors() {
        let (mut report, response_ns) = sample::known_to_wrk2();
        report.results.errors.clear();
        report.results.statuses.retain(|status| status.status < 400);
        let text = printed(&report, &response_ns);
        assert!(!text.contains("Socket errors") && !text.contains("Non-2xx"));
        assert!(text.contains("B read\nRequests/sec:   1010.00\n"));
    }

    #[test]
    fn without_answers_it_prints_what_wrk2_prints() {
        let text = wrk2(&sample::nothing_answered()).unwrap();
        for line in [
            "    Latency     -nanus    -nanus   0.00us    0.00%",
            "100.000%    0.00us",
            "#[Mean    =         -nan, StdDeviation   =         -nan]",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}: {text}");
        }
    }

    #[test]
    fn units_change_where_wrk2_changes_them() {
        let written = [0.0, 849.9, 850.0, 1e6, 50.9e6, 51e6].map(time);
        let texts = ["0.00us", "849.90us", "0.85ms", "1.00s", "50.90s", "0.85m"];
        assert_eq!(written, texts);
        assert_eq!(scaled(Extended::new(7200.0), SECONDS, 0), "120m");
        assert_eq!(binary(870.0), "870.00");
        assert_eq!(binary(871.0), "0.85K");
    }

    #[test]
    fn columns_align_the_last_digit() {
        assert_eq!(column("1.57s", 10), "    1.57s ");
        assert_eq!(column("835.00us", 10), "  835.00us");
        assert_eq!(column("300.00", 9), " 300.00  ");
    }

    /// Values that a script reads from wrk2's output.
    struct ParsedOutput {
        rows: Vec<(f64, f64, u64, f64)>,
        requests: u64,
        rate: f64,
        mean: f64,
    }

    fn read_like_a_script(text: &str) -> ParsedOutput {
        let spectrum = text.split("1/(1-Percentile)\n\n").nth(1).unwrap();
        let rows = spectrum.lines().take_while(|line| !line.starts_with("#[")).map(|line| {
            let columns: Vec<f64> =
                line.split_whitespace().map(|text| text.parse().unwrap()).collect();
            assert_eq!(columns.len(), 4, "{line}");
            (columns[0], columns[1], columns[2] as u64, columns[3])
        });
        let mut lines = text.lines();
        let requests = lines.find(|line| line.contains(" requests in ")).unwrap();
        ParsedOutput {
            rows: rows.collect(),
            requests: requests.split_whitespace().next().unwrap().parse().unwrap(),
            rate: number_after(text, "Requests/sec:"),
            mean: number_after(text, "#[Mean    ="),
        }
    }

    fn number_after(text: &str, marker: &str) -> f64 {
        let (_, tail) = text.split_once(marker).expect(marker);
        tail.split_whitespace().next().unwrap().trim_end_matches(',').parse().unwrap()
    }

    #[test]
    fn a_script_reads_the_distribution_that_was_measured() {
        let values = sample::response_times_ns();
        let report = sample::open_loop();
        let read = read_like_a_script(&wrk2(&report).unwrap());
        assert_eq!(read.requests, report.results.counts.completed);
        assert!((read.rate - report.results.rates.completed).abs() < 0.005);
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64 / 1e6;
        assert!((read.mean - mean).abs() < mean * 0.002, "{mean}");
        for &(ms, quantile, count, one_in) in &read.rows {
            // A row's value is right to three digits: bound the count by the values around it.
            let below = |ms: f64| values.iter().filter(|&&ns| ns as f64 / 1e6 <= ms).count() as u64;
            assert!(below(ms * 0.998 - 0.001) <= count && count <= below(ms * 1.002 + 0.001));
            assert!(count as f64 / values.len() as f64 >= quantile - 1e-6);
            let expected = 1.0 / (1.0 - quantile);
            assert!(one_in == expected || (one_in - expected).abs() < expected * 0.01);
        }
        let last = read.rows[read.rows.len() - 1];
        let (count, end) = (values.len() as u64, f64::INFINITY);
        assert_eq!((last.1, last.2, last.3), (1.0, count, end));
        assert_eq!(read.rows[0].1, 0.0);
    }
}
