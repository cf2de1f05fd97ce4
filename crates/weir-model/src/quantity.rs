//! Quantities in the notation that people write: `10s`, `64KiB`, `5000`, `0,2-3`.
//!
//! This module only reads and writes the notation; the users of a quantity define its meaning.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An error in a quantity as the user typed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text is not a number followed by a known unit.
    #[error("`{text}` is not {expected}")]
    Malformed {
        /// Text as typed.
        text: String,
        /// Description of a valid text, with an example.
        expected: &'static str,
    },
    /// The text is a quantity, but its value is not usable.
    #[error("`{text}` is out of range: {reason}")]
    OutOfRange {
        /// Text as typed.
        text: String,
        /// Reason why the value is not usable.
        reason: String,
    },
}

/// Valid range for numbers of one kind. Studies and options of `weir load` have the same ranges: a number outside is a
/// typing error, and arithmetic with it would overflow.
#[derive(Debug)]
pub struct Limits {
    what: &'static str,
    expected: &'static str,
    from: f64,
    to: f64,
}

impl Limits {
    /// Range of rates: requests, or connections, per second.
    pub const RATE: Limits = Limits {
        what: "a rate",
        expected: "a rate in requests per second such as 500, 2.5k or 30k",
        from: 1e-6,
        to: 1e9,
    };
    /// Range of factors by which the replay of a trace is faster than the recording.
    pub const TRACE_SPEED: Limits = Limits {
        what: "the speed of a trace",
        expected: "a speed of a trace such as 2 or 0.5",
        from: 1e-6,
        to: 1e6,
    };
    /// Range of weights: the frequency of a request relative to others.
    pub const WEIGHT: Limits =
        Limits { what: "a weight", expected: "a weight such as 3 or 0.5", from: 1e-6, to: 1e9 };

    /// Largest valid number.
    pub const fn most(&self) -> f64 {
        self.to
    }

    /// Reads a number without a unit.
    ///
    /// # Errors
    /// The text is not a number, or the number is out of range.
    pub fn read(&self, text: &str) -> Result<f64, QuantityError> {
        self.within(number(text, text, self.expected)?, text)
    }

    fn within(&self, value: f64, text: &str) -> Result<f64, QuantityError> {
        let (what, from, to) = (self.what, self.from, self.to);
        if (from..=to).contains(&value) {
            Ok(value)
        } else {
            Err(out_of_range(text, format!("{what} must be from {from} to {to}")))
        }
    }
}

fn out_of_range(text: &str, reason: impl Into<String>) -> QuantityError {
    QuantityError::OutOfRange { text: text.to_owned(), reason: reason.into() }
}

const DURATION: &str = "a duration such as 250us, 100ms, 10s, 1m30s or 1h";
/// Units that may follow a rate, longest first.
const PER_SECOND: [&str; 5] = ["requests/s", "req/s", "/sec", "/s", "rps"];
const BYTES: &str = "a size such as 600, 1KiB, 64k or 1MB";
const COUNT: &str = "a whole number such as 50, 2k or 1M";
const CPUS: &str = "a list of CPUs such as 0, 0-3 or 0,2-3";

/// Number of CPUs that a list can name: as many as a mask of sched_setaffinity(2) has in glibc.
const CPUS_MOST: usize = 1024;

fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(char::is_alphabetic).unwrap_or(text.len());
    (text[..end].trim(), text[end..].trim())
}

fn number(text: &str, whole: &str, expected: &'static str) -> Result<f64, QuantityError> {
    let value: f64 = text.parse().map_err(|_| malformed(whole, expected))?;
    if !value.is_finite() {
        return Err(malformed(whole, expected));
    }
    if value < 0.0 {
        return Err(out_of_range(whole, "it must not be negative"));
    }
    Ok(value)
}

fn malformed(text: &str, expected: &'static str) -> QuantityError {
    QuantityError::Malformed { text: text.to_owned(), expected }
}

/// Reads a duration: a number with `ns`, `us`, `ms`, `s`, `m` or `h`, or several of them, the largest first: `1m30s`. A
/// number without a unit is in seconds, as in wrk and wrk2.
///
/// # Errors
/// The text is not a duration, is negative, or is longer than ten years.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let (mut rest, mut seconds, mut above) = (text.trim(), 0.0, f64::INFINITY);
    loop {
        let (digits, units) = split_unit(rest);
        let end = units.find(|c: char| !c.is_alphabetic());
        let (unit, next) = units.split_at(end.unwrap_or(units.len()));
        let value = number(digits, text, DURATION)?;
        let factor = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "" if above.is_infinite() => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return Err(malformed(text, DURATION)),
        };
        if factor >= above {
            return Err(malformed(text, DURATION));
        }
        (rest, above) = (next, factor);
        seconds += value * factor;
        if rest.is_empty() {
            break;
        }
    }
    if seconds > 10.0 * 365.0 * 86_400.0 {
        return Err(out_of_range(text, "it is longer than ten years"));
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// Longest time that a load or a wait may be given: a week.
const LONGEST_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// Parses a duration as [`parse_duration`] does, of something that a user waits for: a load, a timeout, the life of a
/// connection.
///
/// # Errors
/// Same as [`parse_duration`], or it is longer than a week.
pub fn parse_time(text: &str) -> Result<Duration, QuantityError> {
    parse_duration(text).and_then(|time| {
        if time > LONGEST_TIME { Err(out_of_range(text, "at most 168h, a week")) } else { Ok(time) }
    })
}

/// Writes a duration in the largest unit that keeps it readable: `100ms`, `1.5s`, `2m`.
pub fn format_duration(duration: Duration) -> String {
    let ns = duration.as_nanos() as f64;
    let (value, unit) = match ns {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "us"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n if n < 120e9 => (n / 1e9, "s"),
        n if n < 7200e9 => (n / 60e9, "m"),
        n => (n / 3600e9, "h"),
    };
    let text = format!("{value:.2}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Reads a size in bytes. `k`, `M`, `G` and `KiB`, `MiB`, `GiB` are powers of 1024; `KB`, `MB`, `GB`
/// are powers of 1000.
///
/// # Errors
/// The text is not a size, is negative, or is above 1 TiB.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    let (digits, unit) = split_unit(text);
    let value = number(digits, text, BYTES)?;
    let factor: f64 = match unit {
        "" | "B" => 1.0,
        "k" | "K" | "KiB" => 1024.0,
        "m" | "M" | "MiB" => 1024.0 * 1024.0,
        "g" | "G" | "GiB" => 1024.0 * 1024.0 * 1024.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => {
            return Err(QuantityError::Malformed { text: text.to_owned(), expected: BYTES });
        }
    };
    let bytes = (value * factor).round();
    if bytes > (1_u64 << 40) as f64 {
        return Err(out_of_range(text, "it is above 1 TiB"));
    }
    Ok(bytes as u64)
}

/// Reads a rate in requests per second; `k` is 1000 and `M` a million, and `/s` may follow.
///
/// # Errors
/// The text is not a rate, or not within [`Limits::RATE`].
pub fn parse_rate(text: &str) -> Result<f64, QuantityError> {
    Limits::RATE.within(parse_rate_or_none(text)?, text)
}

/// Reads a rate as [`parse_rate`] does, but also accepts zero, which is a pause.
pub(crate) fn parse_rate_or_none(text: &str) -> Result<f64, QuantityError> {
    let per_second = PER_SECOND.iter().find_map(|unit| text.trim_end().strip_suffix(unit));
    let (digits, unit) = split_unit(per_second.unwrap_or(text));
    let expected = Limits::RATE.expected;
    let value = number(digits, text, expected)?;
    let rate = match unit {
        "" => value,
        "k" | "K" => value * 1e3,
        "M" => value * 1e6,
        _ => {
            return Err(QuantityError::Malformed { text: text.to_owned(), expected });
        }
    };
    if rate == 0.0 { Ok(rate) } else { Limits::RATE.within(rate, text) }
}

/// Reads how many; `k` is 1000 and `M` a million.
///
/// # Errors
/// The text is not a whole number.
pub fn parse_count(text: &str) -> Result<u64, QuantityError> {
    if let Ok(count) = text.trim().parse() {
        return Ok(count);
    }
    let (digits, unit) = split_unit(text);
    let factor = match unit {
        "k" | "K" => 1e3,
        "M" => 1e6,
        _ => return Err(malformed(text, COUNT)),
    };
    let count = number(digits, text, COUNT)? * factor;
    let rounded = count.round();
    // Beyond, a float has no longer every whole number.
    if (count - rounded).abs() > 1e-6 || rounded > 2_f64.powi(53) {
        return Err(malformed(text, COUNT));
    }
    Ok(rounded as u64)
}

/// A set of CPUs by number, written as the kernel writes it: `0,2-3`. Never empty, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct CpuSet(Vec<u32>);

impl CpuSet {
    /// Creates a set from CPU numbers in any order; `None` if there are none.
    pub fn new(mut cpus: Vec<u32>) -> Option<CpuSet> {
        cpus.sort_unstable();
        cpus.dedup();
        (!cpus.is_empty()).then_some(CpuSet(cpus))
    }

    /// CPU numbers in the set, ascending.
    pub fn cpus(&self) -> &[u32] {
        &self.0
    }

    /// CPUs that are in both sets, ascending.
    pub fn shared_with(&self, other: &CpuSet) -> Vec<u32> {
        self.0.iter().copied().filter(|cpu| other.0.contains(cpu)).collect()
    }
}

impl FromStr for CpuSet {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<CpuSet, QuantityError> {
        // Not gathered one by one: a part that comes again and again takes no memory.
        let mut named = [false; CPUS_MOST];
        for part in text.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.trim().parse().map_err(|_| malformed(text, CPUS))?;
            let last: usize = last.trim().parse().map_err(|_| malformed(text, CPUS))?;
            match named.get_mut(first..=last) {
                Some(part) if first <= last => part.fill(true),
                _ => return Err(malformed(text, CPUS)),
            }
        }
        let cpus = (0..).zip(named).filter(|(_, named)| *named);
        CpuSet::new(cpus.map(|(cpu, _)| cpu).collect()).ok_or_else(|| malformed(text, CPUS))
    }
}

impl TryFrom<String> for CpuSet {
    type Error = QuantityError;

    fn try_from(text: String) -> Result<CpuSet, QuantityError> {
        text.parse()
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> String {
        set.to_string()
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut remaining = &self.0[..];
        let mut comma = "";
        while let Some(&first) = remaining.first() {
            let run = remaining.iter().zip(first..).take_while(|(cpu, want)| *cpu == want).count();
            match run {
                1 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{}", remaining[run - 1])?,
            }
            comma = ",";
            remaining = &remaining[run..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_units_of_wrk2_and_finer_ones() {
        let cases = [
            ("10", 10_000_000_000),
            ("10s", 10_000_000_000),
            ("2m", 120_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1h 1m 0.5s", 3_660_500_000_000),
            ("250µs", 250_000),
        ];
        for (text, ns) in cases {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        assert_eq!(parse_duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_duration("1.5ms"), Ok(Duration::from_micros(1500)));
        for bad in [
            "",
            "s",
            "10 parsecs",
            "-1s",
            "inf",
            "1e300h",
            "9999999h",
            "1m30",
            "30s1m",
            "1s2s",
            "1m-1s",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad} should be refused");
        }
    }

    #[test]
    fn a_written_duration_reads_back() {
        for ns in [0, 999, 50_000, 100_000_000, 1_500_000_000, 600_000_000_000] {
            let duration = Duration::from_nanos(ns);
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }

    #[test]
    fn sizes_tell_powers_of_two_from_powers_of_ten() {
        assert_eq!(parse_bytes("1KiB"), Ok(1024));
        assert_eq!(parse_bytes("1KB"), Ok(1000));
        assert_eq!(parse_bytes("22k"), Ok(22 * 1024));
        assert_eq!(parse_bytes("1MB"), Ok(1_000_000));
        for bad in ["KiB", "-1", "1 furlong", "2000G"] {
            assert!(parse_bytes(bad).is_err(), "{bad} should be refused");
        }
    }

    #[test]
    fn a_rate_is_above_zero() {
        for text in
            ["2.5k", "2500", "2.5k/s", "2500 req/s", "2500rps", "2500/sec", "2.5k requests/s"]
        {
            assert_eq!(parse_rate(text), Ok(2500.0), "{text}");
        }
        for bad in ["0", "-5", "fast", "10q", "10/m", "/s", "10/s/s"] {
            assert!(parse_rate(bad).is_err(), "{bad} should be refused");
        }
    }

    #[test]
    fn counts_are_whole_and_may_be_of_thousands() {
        for (text, count) in
            [("7", 7), ("1k", 1000), ("2.3k", 2300), ("1M", 1_000_000), ("5000M", 5_000_000_000)]
        {
            assert_eq!(parse_count(text), Ok(count));
        }
        for bad in ["1e2", "1_000", "1,000", "0.5", "1.0005k", "-1k", "", "k"] {
            assert!(parse_count(bad).is_err(), "{bad} should be refused");
        }
    }

    #[test]
    fn absurd_numbers_are_refused_with_their_limits() {
        let rate = "a rate must be from 0.000001 to 1000000000";
        let speed = "the speed of a trace must be from 0.000001 to 1000000";
        let weight = "a weight must be from 0.000001 to 1000000000";
        for (limits, text, reason) in [
            (&Limits::RATE, "99999999999999999999", rate),
            (&Limits::RATE, "0.0000001", rate),
            (&Limits::RATE, "1001M", rate),
            (&Limits::TRACE_SPEED, "1e300", speed),
            (&Limits::TRACE_SPEED, "0", speed),
            (&Limits::WEIGHT, "1e308", weight),
        ] {
            let read =
                if limits.what == Limits::RATE.what { parse_rate(text) } else { limits.read(text) };
            assert_eq!(read, Err(out_of_range(text, reason)), "{text}");
        }
        assert_eq!(parse_rate("1000M"), Ok(1e9));
    }

    #[test]
    fn cpu_sets_read_and_write_the_kernels_notation() {
        for text in ["0", "0-3", "0,2-3", "1,3,5-7"] {
            assert_eq!(text.parse::<CpuSet>().map(|set| set.to_string()), Ok(text.to_owned()));
        }
        let again = vec!["0-1023"; 1 << 16].join(",");
        assert_eq!(again.parse::<CpuSet>().unwrap().cpus().len(), 1024);
        for bad in ["", "3-1", "a", "0,,1", "0-99999", "0,5-4", "1024"] {
            assert!(bad.parse::<CpuSet>().is_err(), "{bad} should be refused");
        }
    }
}
