//! Arrivals in the notation that people write: the rate (`2000`, `100..5000`, `1k@10s,0@5s,2k`) and the spacing
//! (`even`, `poisson:7`, `burst:50`).
//!
//! This module only reads the notation; the load engine defines its meaning.

use std::time::Duration;

use crate::load::{Segment, Spacing};
use crate::nearest::nearest;
use crate::quantity::{QuantityError, format_duration, parse_rate, parse_rate_or_none, parse_time};

/// Default seed of `poisson`; any would do, but it must be the same each time.
const DEFAULT_SEED: u64 = 1;

/// Maximum number of steps, more than anybody types; a longer text is not a rate.
const MOST_STEPS: usize = 10_000;

/// An error in arrivals as the user typed them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArrivalsError {
    /// A number in the text is not valid.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// The text is neither one rate, nor two with `..`, nor steps.
    #[error(
        "`{text}` is not a rate over time: write one rate (2000), a range to grow over evenly \
         (100..5000), or steps of equal length (1000,2000,5000) or of lengths given \
         (1000@10s,2000@20s,500)"
    )]
    Shape {
        /// Text as typed.
        text: String,
    },
    /// Groups of three digits, of which one would be a step of zeros before its number.
    #[error(
        "`{text}` is not a rate: write {} without commas between its digits; steps are written 1000,2000",
        text.replace(',', "")
    )]
    Grouped {
        /// Text as typed.
        text: String,
    },
    /// Some steps have a length, but one before the last has none.
    #[error(
        "step `{step}` of `{text}` has no length: write one as in `{step}@10s`; the last step alone \
         may go without"
    )]
    StepWithoutLength {
        /// Text as typed.
        text: String,
        /// Step without a length.
        step: String,
    },
    /// A step has the length zero.
    #[error("step `{step}` of `{text}` lasts no time: give it a length or leave it out")]
    EmptyStep {
        /// Text as typed.
        text: String,
        /// Step with the length zero.
        step: String,
    },
    /// The steps take longer than the load.
    #[error(
        "the steps of `{text}` take {}{}, but there are only {}: make them shorter, or the time longer",
        format_duration(*.steps), if *.rest { " and the last needs time too" } else { "" },
        format_duration(*.load)
    )]
    TooLong {
        /// Text as typed.
        text: String,
        /// Total length of the steps that have one.
        steps: Duration,
        /// True if the last step has no length and gets the remaining time.
        rest: bool,
        /// Duration of the load.
        load: Duration,
    },
    /// Every rate in the text is zero.
    #[error("`{text}` never sends anything: at least one rate must be above zero")]
    Nothing {
        /// Text as typed.
        text: String,
    },
    /// The word is not the name of a spacing.
    #[error(
        "`{text}` is not a spacing of arrivals: write even, poisson, poisson:SEED or burst:SIZE{}",
        .nearest.map(|word| format!("; the nearest is `{word}`")).unwrap_or_default()
    )]
    Spacing {
        /// Text as typed.
        text: String,
        /// Valid word that is closest to the one typed; `None` if none is close.
        nearest: Option<&'static str>,
    },
    /// The word is the name of a spacing, but the number after it is not valid.
    #[error("`{text}` has {problem}: write {example}")]
    SpacingNumber {
        /// Text as typed.
        text: String,
        /// Description of the error in the number.
        problem: &'static str,
        /// Example of a valid spacing.
        example: &'static str,
    },
}

/// Reads a rate over time, in requests per second, for a load that lasts `duration`:
///
/// * `2000` or `2k`: one rate;
/// * `100..5000`: grows (or falls) evenly over the duration;
/// * `1000,2000,5000`: steps of equal length;
/// * `1000@10s,2000@20s,500`: steps of lengths given; the last may go without and gets what
///   remains. A step may be a range, and its rate may be zero: `0..5k@1m,5k@5m,0@10s,5k`.
///
/// There is at least one segment, and its rate is above zero somewhere. Steps may be shorter than the
/// duration; the last rate then stays.
///
/// # Errors
/// The text is none of these, sends nothing, or takes longer than the duration.
pub fn parse_segments(text: &str, duration: Duration) -> Result<Vec<Segment>, ArrivalsError> {
    let steps = parse_steps(text)?;
    let lengths = lengths_of_steps(text, &steps, duration)?;
    let segments: Vec<_> = steps
        .iter()
        .zip(lengths)
        .map(|(step, ns)| Segment { from: step.from, to: step.to, ns })
        .collect();
    if segments.iter().all(|step| step.from + step.to == 0.0) {
        Err(ArrivalsError::Nothing { text: text.to_owned() })
    } else {
        Ok(segments)
    }
}

/// Returns the total length of the steps of a rate over time, which is the duration of a load that was given none;
/// `None` if a step has no length.
///
/// # Errors
/// The text is not a rate over time.
pub fn length_of_steps(text: &str) -> Result<Option<Duration>, ArrivalsError> {
    let steps = parse_steps(text)?;
    Ok(steps.iter().map(|step| step.length).sum())
}

/// Reads a spacing of arrivals: `even`, `poisson` (with the seed 1), `poisson:SEED` or `burst:SIZE`.
///
/// # Errors
/// The text is none of these; the error has the closest valid word.
pub fn parse_spacing(text: &str) -> Result<Spacing, ArrivalsError> {
    let (word, number) = match text.split_once(':') {
        Some((word, number)) => (word.trim(), Some(number.trim())),
        None => (text.trim(), None),
    };
    let wrong = |problem, example| {
        Err(ArrivalsError::SpacingNumber { text: text.to_owned(), problem, example })
    };
    match (word, number) {
        ("even", None) => Ok(Spacing::Even),
        ("even", Some(_)) => wrong("a number, which `even` does not take", "even"),
        ("poisson", None) => Ok(Spacing::Poisson { seed: DEFAULT_SEED }),
        ("poisson", Some(number)) => match number.parse() {
            Ok(seed) => Ok(Spacing::Poisson { seed }),
            Err(_) => wrong("a seed that is not a whole number", "poisson:7"),
        },
        ("burst", None) => wrong("no size", "burst:50"),
        ("burst", Some(number)) => match number.parse() {
            Ok(size) if size > 0 => Ok(Spacing::Burst { size }),
            _ => wrong("a size that is not a whole number above zero", "burst:50"),
        },
        _ => Err(ArrivalsError::Spacing { text: text.to_owned(), nearest: nearest_spacing(word) }),
    }
}

fn nearest_spacing(word: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 9] = [
        ("even", "even"),
        ("poisson", "poisson"),
        ("burst", "burst:50"),
        // What others call the same.
        ("constant", "even"),
        ("uniform", "even"),
        ("fixed", "even"),
        ("exponential", "poisson"),
        ("random", "poisson"),
        ("batch", "burst:50"),
    ];
    let names = WORDS.map(|(name, _)| name);
    let nearest_word = nearest(word, &names)?;
    WORDS.iter().find(|(name, _)| *name == nearest_word).map(|(_, meant)| *meant)
}

/// A step as it was typed.
struct Step<'a> {
    text: &'a str,
    from: f64,
    to: f64,
    length: Option<Duration>,
}

fn parse_steps(text: &str) -> Result<Vec<Step<'_>>, ArrivalsError> {
    let parts: Vec<_> = text.split(',').map(str::trim).collect();
    if let [only] = parts[..]
        && !only.contains("..")
        && !only.contains('@')
    {
        // The plain case has the plain messages.
        let rate = parse_rate(only)?;
        return Ok(vec![Step { text: only, from: rate, to: rate, length: None }]);
    }
    if parts.len() > MOST_STEPS || parts.contains(&"") {
        return Err(ArrivalsError::Shape { text: text.to_owned() });
    }
    // `1,000`: nobody writes a rate of a step as `000` or `050`.
    let mut groups = parts[1..].iter().filter_map(|part| part.split(['@', '.']).next());
    if groups.any(|group| {
        group.len() == 3
            && group.starts_with('0')
            && group.bytes().all(|byte| byte.is_ascii_digit())
    }) {
        return Err(ArrivalsError::Grouped { text: text.to_owned() });
    }
    parts.into_iter().map(|part| parse_step(text, part)).collect()
}

fn parse_step<'a>(text: &str, step: &'a str) -> Result<Step<'a>, ArrivalsError> {
    let (rate, length) = match step.split_once('@') {
        Some((rate, length)) => (rate.trim(), Some(parse_time(length.trim())?)),
        None => (step, None),
    };
    if length == Some(Duration::ZERO) {
        return Err(ArrivalsError::EmptyStep { text: text.to_owned(), step: step.to_owned() });
    }
    let (from, to) = rate.split_once("..").unwrap_or((rate, rate));
    if from.trim().is_empty() || to.trim().is_empty() || to.contains("..") || to.starts_with('.') {
        return Err(ArrivalsError::Shape { text: text.to_owned() });
    }
    Ok(Step {
        text: step,
        from: parse_rate_or_none(from.trim())?,
        to: parse_rate_or_none(to.trim())?,
        length,
    })
}

/// Returns the length of each step in nanoseconds.
fn lengths_of_steps(
    text: &str,
    steps: &[Step<'_>],
    load: Duration,
) -> Result<Vec<u64>, ArrivalsError> {
    let load_ns = load.as_nanos() as u64;
    if steps.iter().all(|step| step.length.is_none()) {
        // Whole nanoseconds that add up to the duration.
        let count = steps.len() as u64;
        let edges: Vec<u64> = (0..=count)
            .map(|i| (u128::from(load_ns) * u128::from(i) / u128::from(count)) as u64)
            .collect();
        return Ok(edges.windows(2).map(|edge| edge[1] - edge[0]).collect());
    }
    let Some((last, earlier)) = steps.split_last() else {
        return Ok(Vec::new());
    };
    if let Some(step) = earlier.iter().find(|step| step.length.is_none()) {
        return Err(ArrivalsError::StepWithoutLength {
            text: text.to_owned(),
            step: step.text.to_owned(),
        });
    }
    let total: Duration = steps.iter().filter_map(|step| step.length).sum();
    let is_open = last.length.is_none();
    if total > load || (is_open && total == load) {
        return Err(ArrivalsError::TooLong {
            text: text.to_owned(),
            steps: total,
            rest: is_open,
            load,
        });
    }
    Ok(steps.iter().map(|step| step.length.unwrap_or(load - total).as_nanos() as u64).collect())
}

#[cfg(test)]
mod tests;
