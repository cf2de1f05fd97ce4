//! Objectives that responses must meet, in the words of a service's operator: `p99 < 30ms`, `errors < 0.01%`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::quantity::parse_duration;

/// One objective that responses must meet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Upper bound of a quantile (0..1, exclusive) of the response time.
    Quantile(f64, Duration),
    /// Upper bound of the mean response time.
    Mean(Duration),
    /// Upper bound of the share (0..1) of requests that fail or are not answered.
    Errors(f64),
}

/// Error for a text that is not a valid objective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no objective: {what}")]
pub struct LimitError {
    /// The text that is not valid.
    pub text: String,
    /// Description of the error, and advice on what to write.
    pub what: String,
}

impl Limit {
    /// Reads limits separated by commas: `p99 < 30ms, p99.9 < 100ms, mean < 5ms, errors < 0.01%`.
    ///
    /// # Errors
    /// A part is none of these, has a number out of range, is there twice, or is redundant because a higher quantile
    /// has no more time.
    pub fn parse_all(text: &str) -> Result<Vec<Limit>, LimitError> {
        let mut limits: Vec<Limit> = Vec::new();
        for part in text.split(',') {
            let limit = Limit::parse(part.trim())?;
            if limits.iter().any(|known| known.subject() == limit.subject()) {
                let problem = format!("{} has a limit already", limit.subject());
                return Err(wrong(part.trim(), problem));
            }
            limits.push(limit);
        }
        match limits.iter().find_map(|one| Some((one, one.hidden_by(&limits)?))) {
            Some((one, stricter)) => Err(wrong(
                &one.to_string(),
                format!(
                    "{stricter} is stricter, so it could never decide: leave it out, or give {} more time",
                    stricter.subject()
                ),
            )),
            None => Ok(limits),
        }
    }

    /// Returns a stricter limit that makes this one redundant: one for a higher quantile with the same time or less.
    fn hidden_by<'l>(&self, all: &'l [Limit]) -> Option<&'l Limit> {
        let Limit::Quantile(own, time) = self else {
            return None;
        };
        all.iter().find(|other| {
            matches!(other, Limit::Quantile(quantile, shorter) if quantile > own && shorter <= time)
        })
    }

    /// Reads one limit, as it is displayed: `p99 < 30ms`.
    ///
    /// # Errors
    /// It is none, or has a number out of range.
    pub fn parse(text: &str) -> Result<Limit, LimitError> {
        let Some((name, at_most)) = text.split_once('<') else {
            let advice = "write what is to be below what, such as p99 < 30ms".to_owned();
            return Err(wrong(text, advice));
        };
        // `<=` is as good: nothing is measured so exactly.
        let bound = at_most.strip_prefix('=').unwrap_or(at_most).trim();
        let subject = name.trim().to_ascii_lowercase();
        match &*subject {
            "errors" => share(text, bound).map(Limit::Errors),
            "mean" => time(text, bound).map(Limit::Mean),
            _ => {
                let percent = subject.strip_prefix('p').and_then(|of| of.parse().ok());
                let Some(percent) =
                    percent.filter(|percent: &f64| (50.0..=99.99).contains(percent))
                else {
                    let advice = "p50 to p99.99, mean and errors can have a limit".to_owned();
                    return Err(wrong(text, advice));
                };
                Ok(Limit::Quantile(rounded(percent) / 100.0, time(text, bound)?))
            }
        }
    }

    /// Name of the limited quantity: `p99.9`, `mean`, `errors`.
    pub fn subject(&self) -> String {
        match self {
            Limit::Quantile(quantile, _) => {
                // As many digits as it was written with, and not those of its binary neighbour.
                let percent = (quantile * 1e8).round() / 1e6;
                format!("p{percent}")
            }
            Limit::Mean(_) => "mean".to_owned(),
            Limit::Errors(_) => "errors".to_owned(),
        }
    }

    /// Bound of the response time; `None` for errors.
    pub fn time(&self) -> Option<Duration> {
        match self {
            Limit::Quantile(_, time) | Limit::Mean(time) => Some(*time),
            Limit::Errors(_) => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = match self {
            Limit::Quantile(_, time) | Limit::Mean(time) => exact(*time),
            Limit::Errors(share) => format!("{}%", (share * 1e8).round() / 1e6),
        };
        write!(f, "{} < {bound}", self.subject())
    }
}

/// Returns a percentage with as many decimals as are displayed, so that a limit reads back as it was.
fn rounded(percent: f64) -> f64 {
    (percent * 1e6).round() / 1e6
}

/// Writes a time without rounding it: `30ms`, `1.234567ms`, `1.5s`.
fn exact(time: Duration) -> String {
    let (ns_of_unit, digits, unit) = match time.as_nanos() {
        0..1_000 => (1, 0, "ns"),
        1_000..1_000_000 => (1_000, 3, "us"),
        1_000_000..1_000_000_000 => (1_000_000, 6, "ms"),
        _ => (1_000_000_000, 9, "s"),
    };
    let (whole, rest) = (time.as_nanos() / ns_of_unit, time.as_nanos() % ns_of_unit);
    let decimals = format!("{rest:0digits$}");
    match decimals.trim_end_matches('0') {
        "" => format!("{whole}{unit}"),
        decimals => format!("{whole}.{decimals}{unit}"),
    }
}

fn wrong(text: &str, what: String) -> LimitError {
    LimitError { text: text.to_owned(), what }
}

fn time(text: &str, bound: &str) -> Result<Duration, LimitError> {
    // A bare number would be seconds, which nobody means here.
    let has_unit = bound.ends_with(|c: char| c.is_ascii_alphabetic());
    let parsed = parse_duration(bound).ok().filter(|_| has_unit);
    let most = Duration::from_secs(60);
    parsed
        .filter(|time| (Duration::from_micros(1)..=most).contains(time))
        .ok_or_else(|| wrong(text, "give a time from 1us to 60s, such as 30ms".to_owned()))
}

fn share(text: &str, bound: &str) -> Result<f64, LimitError> {
    let percent = bound.strip_suffix('%').map(str::trim);
    let parsed = percent.and_then(|percent| percent.parse::<f64>().ok());
    parsed
        .filter(|percent| (0.0001..50.0).contains(percent))
        .map(|percent| rounded(percent) / 100.0)
        .ok_or_else(|| {
            let advice = "give a share from 0.0001% to 50%, such as 0.1%; that nothing at all fails, no test of \
                        any length can show";
            wrong(text, advice.to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_written_in_the_words_of_their_users() {
        for (text, written) in [
            ("p99 < 30ms", "p99 < 30ms"),
            ("P99.9<=0.1s", "p99.9 < 100ms"),
            ("p99.99 < 1.5s", "p99.99 < 1.5s"),
            ("mean < 5 ms", "mean < 5ms"),
            ("errors < 0.01 %", "errors < 0.01%"),
            ("p50<250us, errors<1%", "p50 < 250us, errors < 1%"),
            ("p99 < 1.001ms, p99.9 < 1.002ms", "p99 < 1.001ms, p99.9 < 1.002ms"),
            ("p99 < 99.999999ms, mean < 59.999999999s", "p99 < 99.999999ms, mean < 59.999999999s"),
            ("p99.1234567 < 1us, errors < 0.0001234%", "p99.123457 < 1us, errors < 0.000123%"),
        ] {
            let limits = Limit::parse_all(text).unwrap_or_else(|error| panic!("{error}"));
            let again: Vec<String> = limits.iter().map(Limit::to_string).collect();
            assert_eq!(again.join(", "), written);
            assert_eq!(Limit::parse_all(written).as_ref(), Ok(&limits), "{text}");
        }
    }

    #[test]
    fn what_is_no_limit_is_refused_with_what_to_write() {
        for (text, what) in [
            ("", "such as p99 < 30ms"),
            ("p99 > 30ms", "such as p99 < 30ms"),
            ("p99 < 30", "such as 30ms"),
            ("p99 < -1ms", "such as 30ms"),
            ("p99 < 2m", "such as 30ms"),
            ("p100 < 30ms", "p50 to p99.99"),
            ("p9 < 30ms", "p50 to p99.99"),
            ("max < 30ms", "p50 to p99.99"),
            ("errors < 0%", "nothing at all fails"),
            ("errors < 5", "such as 0.1%"),
            ("p99 < 30ms, p99.0 < 40ms", "has a limit already"),
            ("p99 < 5ms, p99.9 < 1ms", "p99.9 < 1ms is stricter"),
            ("p99.9 < 5ms, p50 < 5ms", "p99.9 < 5ms is stricter"),
        ] {
            let error = Limit::parse_all(text).expect_err(text).to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
