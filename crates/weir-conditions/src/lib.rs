//! `--fail-if`: conditions on a result that decide the exit code.
//!
//! A condition is *true*, *false* or *unknown*. A condition that rests on invalid figures is unknown, and so never
//! passes.

use std::time::Duration;

use weir_model::limit::Limit;
use weir_model::quantity::{format_duration, parse_duration, parse_rate};
use weir_report::number;

pub mod capacity;
pub mod history;
mod junit;
pub mod load;
pub mod runs;
pub mod study;

pub use junit::junit;

/// A condition that cannot be read, or has a subject that its result lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--fail-if `{text}`: {what}")]
pub struct ConditionError {
    /// The condition as it was typed.
    pub text: String,
    /// Description of the fault.
    pub what: String,
    /// Remedy, if known.
    pub hint: Option<String>,
}

/// A condition on a load or a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The condition as it was typed.
    text: String,
    /// Arm that the condition is limited to, if it names one.
    arm: Option<String>,
    says: Says,
}

#[derive(Debug, Clone, PartialEq)]
enum Says {
    /// A word that the command defines: `invalid`, `worse`.
    Word(&'static str),
    /// A figure is beyond its bound.
    Figure {
        figure: Figure,
        /// True if the condition holds above the bound, false if it holds below.
        above: bool,
        /// Nanoseconds, a share from 0 to 1, or requests per second.
        bound: f64,
        /// Length of the windows to judge; `None` means the whole load.
        window: Option<Duration>,
    },
    /// A figure of a change differs from the baseline's by more than its bound.
    Change {
        figure: Figure,
        /// True if the condition holds above the bound, false if it holds below.
        above: bool,
        /// Relative difference: 0.03 is 3 % more.
        by: f64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    /// A quantile of the response time, 0..1.
    Quantile(f64),
    /// The mean response time.
    Mean,
    /// The share of requests that failed.
    Errors,
    /// Responses per second.
    Rate,
}

/// Words and example of the conditions that a command accepts.
struct Vocabulary {
    words: &'static [&'static str],
    /// Conditions for the hint of an error, without the outer quotes.
    example: &'static str,
}

impl Figure {
    /// Formats a value with its unit.
    fn format_value(self, value: f64) -> String {
        match self {
            Figure::Quantile(_) | Figure::Mean => number::time(value),
            Figure::Errors => format!("{}%", (value * 1e6).round() / 1e4),
            Figure::Rate => format!("{}/s", number::asked(value)),
        }
    }

    fn name(self) -> String {
        match self {
            Figure::Quantile(quantile) => format!("p{}", (quantile * 1e8).round() / 1e6),
            Figure::Mean => "mean".to_owned(),
            Figure::Errors => "errors".to_owned(),
            Figure::Rate => "rate".to_owned(),
        }
    }
}

/// Hint for a condition written as a k6 threshold.
const THRESHOLDS: &str = "k6's `p(95)<500` says what must hold, and a condition here what must not: --fail-if 'p95 > 500ms'";

impl Vocabulary {
    fn read(&self, texts: &[String]) -> Result<Vec<Condition>, ConditionError> {
        texts
            .iter()
            .map(|text| {
                self.parse_condition(text).map_err(|what| {
                    let example = self.example;
                    let hint = if text.contains("p(") {
                        THRESHOLDS.to_owned()
                    } else {
                        format!("write --fail-if '{example}'")
                    };
                    ConditionError { text: text.clone(), what, hint: Some(hint) }
                })
            })
            .collect()
    }

    fn parse_condition(&self, text: &str) -> Result<Condition, String> {
        let (left_side, above, bound) = match text.split_once(['<', '>']) {
            None => (text.trim(), false, None),
            Some((before, after)) => {
                let bound = after.strip_prefix('=').unwrap_or(after);
                (before.trim(), text[before.len()..].starts_with('>'), Some(bound.trim()))
            }
        };
        let (arm, subject) = match left_side.rsplit_once(char::is_whitespace) {
            Some((arm, subject)) => (Some(arm.trim().to_owned()), subject),
            None => (None, left_side),
        };
        let says = match bound {
            None => self.words.iter().find(|word| **word == subject).map(|word| Says::Word(word)),
            Some(bound) => Some(figure(subject, above, bound)?),
        }
        .ok_or_else(|| match self.words {
            words if words.contains(&subject) => format!("`{subject}` has no bound"),
            words => format!("`{subject}` is none of {}, and has no bound", words.join(", ")),
        })?;
        Ok(Condition { text: text.trim().to_owned(), arm, says })
    }
}

/// Reads a figure and its bound, which may end with the length of windows: `30ms in 10s`.
fn figure(subject: &str, above: bool, bound: &str) -> Result<Says, String> {
    if bound.contains([',', '<', '>']) {
        return Err("write one figure and one bound; --fail-if may be given many times".to_owned());
    }
    let (bound, window) = match bound.split_once(" in ") {
        None => (bound, None),
        Some((bound, window)) => {
            let window = parse_duration(window.trim()).map_err(|error| error.to_string())?;
            if window.is_zero() || window.subsec_nanos() > 0 {
                return Err("a window is whole seconds long, such as 10s".to_owned());
            }
            (bound.trim(), Some(window))
        }
    };
    if let Some(by) = relative(bound)? {
        let (figure, _) = match subject {
            "rate" => (Figure::Rate, 0.0),
            _ => limit(subject, "1s")?,
        };
        return match window {
            None => Ok(Says::Change { figure, above, by }),
            Some(_) => Err("a change has no windows: leave ` in …` out".to_owned()),
        };
    }
    let (figure, bound) = match (subject, bound) {
        ("rate", bound) => (Figure::Rate, parse_rate(bound).map_err(|error| error.to_string())?),
        ("errors", "0" | "0%") => (Figure::Errors, 0.0),
        _ => limit(subject, bound)?,
    };
    Ok(Says::Figure { figure, above, bound, window })
}

/// Reads a relative difference such as `+3%`; `None` for a bound without a sign.
fn relative(bound: &str) -> Result<Option<f64>, String> {
    if !bound.starts_with(['+', '-']) {
        return Ok(None);
    }
    let percent = bound.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    match percent.filter(|percent| percent.is_finite() && *percent > -100.0) {
        Some(percent) => Ok(Some(percent / 100.0)),
        None => Err(format!("`{bound}` is not a change such as +3% or -2.5%")),
    }
}

/// Reads a figure and a bound that an objective can have as well.
fn limit(subject: &str, bound: &str) -> Result<(Figure, f64), String> {
    let read = Limit::parse_all(&format!("{subject} < {bound}"))
        .map_err(|error| error.what.replace(" can have a limit", ", or rate, can have a bound"))?;
    match read[..] {
        // As many digits as were written, and not those of its binary neighbour.
        [Limit::Quantile(quantile, time)] => {
            let quantile = (quantile * 1e8).round() / 1e8;
            Ok((Figure::Quantile(quantile), time.as_nanos() as f64))
        }
        [Limit::Mean(time)] => Ok((Figure::Mean, time.as_nanos() as f64)),
        [Limit::Errors(share)] => Ok((Figure::Errors, share)),
        _ => Err("write one figure and one bound".to_owned()),
    }
}

/// Result of a condition.
#[derive(Debug, Clone, PartialEq)]
enum Held {
    True,
    False,
    /// The result does not allow a claim.
    Unknown,
}

/// A condition with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The condition as it was typed.
    pub text: String,
    /// `None` if the condition is unknown for some part of the result and true for none.
    pub is_true: Option<bool>,
    /// Reasons for the result, half a sentence each.
    pub why: Vec<String>,
}

impl Judged {
    /// Combines results for parts into one: true if any is true, else unknown if any is unknown.
    fn combine(text: &str, results: Vec<(Held, String)>) -> Judged {
        let [of_true, unknown] = [Held::True, Held::Unknown].map(|wanted| -> Vec<String> {
            let reasons = results.iter().filter(|(held, _)| *held == wanted);
            reasons.map(|(_, why)| why.clone()).collect()
        });
        let (is_true, why) = match (of_true, unknown) {
            (of_true, _) if !of_true.is_empty() => (Some(true), of_true),
            (_, unknown) if !unknown.is_empty() => (None, unknown),
            _ => {
                let reasons = results.into_iter().map(|(_, why)| why);
                (Some(false), reasons.filter(|why| !why.is_empty()).collect())
            }
        };
        Judged { text: text.to_owned(), is_true, why }
    }

    /// Describes the condition with the reasons for its result.
    pub fn description(&self) -> String {
        format!("--fail-if {}: {}", self.text, self.why.join("; "))
    }
}

/// Describes a value that is beyond its bound; `None` if it is not.
fn beyond(figure: Figure, above: bool, bound: f64, value: f64) -> Option<String> {
    let (is_beyond, than) = if above { (value > bound, "above") } else { (value < bound, "below") };
    if is_beyond && value.is_infinite() {
        let name = figure.name();
        return Some(format!(
            "{name} falls among requests that were not answered, {than} {}",
            figure.format_value(bound)
        ));
    }
    is_beyond.then(|| {
        format!(
            "{} is {}, {than} {}",
            figure.name(),
            figure.format_value(value),
            figure.format_value(bound)
        )
    })
}

/// Formats a window's length: `10s`.
fn format_window(window: Duration) -> String {
    format_duration(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_read_strictly() {
        let vocabulary = Vocabulary { words: &["invalid"], example: "p99 > 30ms" };
        let figure = |figure, above, bound, window: Option<u64>| Says::Figure {
            figure,
            above,
            bound,
            window: window.map(Duration::from_secs),
        };
        for (text, arm, says) in [
            ("p99 > 30ms", None, figure(Figure::Quantile(0.99), true, 30e6, None)),
            (" p99.9>=1s in 1m ", None, figure(Figure::Quantile(0.999), true, 1e9, Some(60))),
            ("errors > 0.1%", None, figure(Figure::Errors, true, 0.001, None)),
            ("errors > 0", None, figure(Figure::Errors, true, 0.0, None)),
            ("rate < 5k/s", None, figure(Figure::Rate, false, 5000.0, None)),
            ("with cache mean > 5ms", Some("with cache"), figure(Figure::Mean, true, 5e6, None)),
            ("invalid", None, Says::Word("invalid")),
            (
                "p99 > +3%",
                None,
                Says::Change { figure: Figure::Quantile(0.99), above: true, by: 0.03 },
            ),
            (
                "new rate < -2.5%",
                Some("new"),
                Says::Change { figure: Figure::Rate, above: false, by: -0.025 },
            ),
        ] {
            let read = vocabulary.parse_condition(text).unwrap();
            assert_eq!((read.arm.as_deref(), read.says), (arm, says), "{text}");
        }
        let message = beyond(Figure::Rate, false, 5000.0, 4321.4);
        assert_eq!(message.as_deref(), Some("rate is 4,321/s, below 5,000/s"));
        for (text, what) in [
            ("", "`` is none of invalid, and has no bound"),
            ("p99", "`p99` is none of invalid"),
            ("invalid > 3", "p50 to p99.99, mean and errors, or rate, can have a bound"),
            ("p99 > 30", "give a time from 1us to 60s"),
            ("p99 > 30ms in 1.5s", "whole seconds"),
            ("rate < 10/m", "is not a rate"),
            ("errors > 1", "give a share"),
            ("p99 > +3", "`+3` is not a change such as +3%"),
            ("rate < -100%", "is not a change"),
            ("p99 > +3% in 10s", "no windows"),
            ("p99 > 1ms, mean > 1ms", "one figure and one bound"),
        ] {
            let refused = vocabulary.read(&[text.to_owned()]).unwrap_err();
            assert!(refused.what.contains(what), "{text}: {refused}");
            assert!(refused.hint.is_some_and(|hint| hint.starts_with("write")), "{text}");
        }
    }
}
