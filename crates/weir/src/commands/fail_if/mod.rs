//! `--fail-if`: conditions on a result that decide the exit code.
//!
//! A condition is *true*, *false* or *unknown*. What rests on figures that nobody may use is unknown, and so never passes.

use std::time::Duration;

use weir_model::limit::Limit;
use weir_model::quantity::{format_duration, parse_duration, parse_rate};
use weir_report::number;

use crate::failure::Failure;
use crate::terminal;

pub(super) mod capacity;
pub(super) mod load;
pub(super) mod study;

/// What a condition of a load or a study says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    /// As it was typed.
    text: String,
    /// The arm that it is about, if it names one.
    arm: Option<String>,
    says: Says,
}

#[derive(Debug, Clone, PartialEq)]
enum Says {
    /// A word of the command's own: `invalid`, `worse`.
    Word(&'static str),
    /// A figure is beyond its bound.
    Figure {
        figure: Figure,
        /// Whether it is true above the bound, and else below it.
        above: bool,
        /// Nanoseconds, a share from 0 to 1, or requests per second.
        bound: f64,
        /// The length of the windows that it is held against, instead of the whole.
        window: Option<Duration>,
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

/// What a command lets conditions say.
struct Vocabulary {
    words: &'static [&'static str],
    /// Ready to be typed.
    example: &'static str,
}

impl Figure {
    /// With its unit.
    fn shown(self, value: f64) -> String {
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

/// What somebody is told who writes a threshold of k6.
const THRESHOLDS: &str = "k6's `p(95)<500` says what must hold, and a condition here what must not: --fail-if 'p95 > 500ms'";

impl Vocabulary {
    fn read(&self, texts: &[String]) -> Result<Vec<Condition>, Failure> {
        let one = |text: &String| {
            self.one(text).map_err(|what| {
                let example = self.example;
                let hint = match text.contains("p(") {
                    true => THRESHOLDS.to_owned(),
                    false => format!("write --fail-if '{example}'"),
                };
                Failure::input(format!("--fail-if `{text}`: {what}")).hint(hint)
            })
        };
        texts.iter().map(one).collect()
    }

    fn one(&self, text: &str) -> Result<Condition, String> {
        let (said, above, bound) = match text.split_once(['<', '>']) {
            None => (text, false, None),
            Some((said, bound)) => {
                let bound = bound.strip_prefix('=').unwrap_or(bound);
                (
                    said,
                    text[said.len()..].starts_with('>'),
                    Some(bound.trim()),
                )
            }
        };
        let said = said.trim();
        let (arm, subject) = match said.rsplit_once(char::is_whitespace) {
            Some((arm, subject)) => (Some(arm.trim().to_owned()), subject),
            None => (None, said),
        };
        let says = match bound {
            None => self
                .words
                .iter()
                .find(|word| **word == subject)
                .map(|word| Says::Word(word)),
            Some(bound) => Some(figure(subject, above, bound)?),
        };
        let says = says.ok_or_else(|| match self.words {
            words if words.contains(&subject) => format!("`{subject}` has no bound"),
            words => format!(
                "`{subject}` is none of {}, and has no bound",
                words.join(", ")
            ),
        })?;
        Ok(Condition {
            text: text.trim().to_owned(),
            arm,
            says,
        })
    }
}

/// A figure and its bound, with the length of windows behind it: `30ms in 10s`.
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
    let (figure, bound) = match (subject, bound) {
        ("rate", bound) => (
            Figure::Rate,
            parse_rate(bound).map_err(|error| error.to_string())?,
        ),
        ("errors", "0" | "0%") => (Figure::Errors, 0.0),
        _ => limit(subject, bound)?,
    };
    Ok(Says::Figure {
        figure,
        above,
        bound,
        window,
    })
}

/// What a figure has in common with an objective's limit.
fn limit(subject: &str, bound: &str) -> Result<(Figure, f64), String> {
    let read = Limit::parse_all(&format!("{subject} < {bound}"));
    let read = read.map_err(|error| {
        error
            .what
            .replace(" can have a limit", ", or rate, can have a bound")
    })?;
    let ns = |time: Duration| time.as_nanos() as f64;
    match read[..] {
        // As many digits as were written, and not those of its binary neighbour.
        [Limit::Quantile(quantile, time)] => {
            Ok((Figure::Quantile((quantile * 1e8).round() / 1e8), ns(time)))
        }
        [Limit::Mean(time)] => Ok((Figure::Mean, ns(time))),
        [Limit::Errors(share)] => Ok((Figure::Errors, share)),
        _ => Err("write one figure and one bound".to_owned()),
    }
}

/// What a condition comes to.
#[derive(Debug, Clone, PartialEq)]
enum Held {
    True,
    False,
    /// Nothing may be claimed.
    Unknown,
}

/// A condition, held against a result.
pub(super) struct Judged {
    /// The condition as it was typed.
    pub(super) text: String,
    /// `None`: of nothing true for sure, and of something it is not known.
    pub(super) is_true: Option<bool>,
    /// What decided, in half a sentence each.
    why: Vec<String>,
}

impl Judged {
    /// A condition that is true if it is of any of these: what it comes to of each, and why.
    fn of_any(text: &str, each: Vec<(Held, String)>) -> Judged {
        let of = |wanted: Held| -> Vec<String> {
            let decided = each.iter().filter(|(held, _)| *held == wanted);
            decided.map(|(_, why)| why.clone()).collect()
        };
        let (is_true, why) = match (of(Held::True), of(Held::Unknown)) {
            (of_true, _) if !of_true.is_empty() => (Some(true), of_true),
            (_, unknown) if !unknown.is_empty() => (None, unknown),
            _ => (Some(false), Vec::new()),
        };
        Judged {
            text: text.to_owned(),
            is_true,
            why,
        }
    }
}

/// Fails where a condition is true, or cannot be judged, with a line on standard error about every condition that is
/// false and has something to say.
pub(super) fn conclude(judged: &[Judged]) -> Result<(), Failure> {
    for open in judged.iter().filter(|one| one.is_true == Some(false)) {
        if let Some(why) = open.why.first() {
            terminal::tell(&format!("--fail-if {}: {why}\n", open.text));
        }
    }
    let said = |one: &Judged| format!("--fail-if {}: {}", one.text, one.why.join("; "));
    let all_true: Vec<String> = judged
        .iter()
        .filter(|one| one.is_true == Some(true))
        .map(said)
        .collect();
    if !all_true.is_empty() {
        return Err(Failure::condition(all_true.join("\n")));
    }
    match judged.iter().find(|one| one.is_true.is_none()) {
        Some(one) => Err(Failure::failed(format!(
            "{}, so it cannot be judged",
            said(one)
        ))),
        None => Ok(()),
    }
}

/// A figure beside its bound, where it is beyond it.
fn beyond(figure: Figure, above: bool, bound: f64, value: f64) -> Option<String> {
    let (is_beyond, than) = match above {
        true => (value > bound, "above"),
        false => (value < bound, "below"),
    };
    if is_beyond && value.is_infinite() {
        let name = figure.name();
        return Some(format!(
            "{name} falls among requests that were not answered, {than} {}",
            figure.shown(bound)
        ));
    }
    is_beyond.then(|| {
        format!(
            "{} is {}, {than} {}",
            figure.name(),
            figure.shown(value),
            figure.shown(bound)
        )
    })
}

/// `10s`, of a window.
fn shown(window: Duration) -> String {
    format_duration(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_read_strictly() {
        let vocabulary = Vocabulary {
            words: &["invalid"],
            example: "p99 > 30ms",
        };
        let figure = |figure, above, bound, window: Option<u64>| Says::Figure {
            figure,
            above,
            bound,
            window: window.map(Duration::from_secs),
        };
        for (text, arm, says) in [
            (
                "p99 > 30ms",
                None,
                figure(Figure::Quantile(0.99), true, 30e6, None),
            ),
            (
                " p99.9>=1s in 1m ",
                None,
                figure(Figure::Quantile(0.999), true, 1e9, Some(60)),
            ),
            (
                "errors > 0.1%",
                None,
                figure(Figure::Errors, true, 0.001, None),
            ),
            ("errors > 0", None, figure(Figure::Errors, true, 0.0, None)),
            (
                "rate < 5k/s",
                None,
                figure(Figure::Rate, false, 5000.0, None),
            ),
            (
                "with cache mean > 5ms",
                Some("with cache"),
                figure(Figure::Mean, true, 5e6, None),
            ),
            ("invalid", None, Says::Word("invalid")),
        ] {
            let read = vocabulary.one(text).unwrap();
            assert_eq!((read.arm.as_deref(), read.says), (arm, says), "{text}");
        }
        let said = beyond(Figure::Rate, false, 5000.0, 4321.4);
        assert_eq!(said.as_deref(), Some("rate is 4,321/s, below 5,000/s"));
        for (text, what) in [
            ("", "`` is none of invalid, and has no bound"),
            ("p99", "`p99` is none of invalid"),
            (
                "invalid > 3",
                "p50 to p99.99, mean and errors, or rate, can have a bound",
            ),
            ("p99 > 30", "give a time from 1us to 60s"),
            ("p99 > 30ms in 1.5s", "whole seconds"),
            ("rate < 10/m", "is not a rate"),
            ("errors > 1", "give a share"),
            ("p99 > 1ms, mean > 1ms", "one figure and one bound"),
        ] {
            let refused = vocabulary
                .read(&[text.to_owned()])
                .unwrap_err()
                .rendered(false);
            assert!(
                refused.contains(what) && refused.contains("hint: write"),
                "{text}: {refused}"
            );
        }
    }
}
