//! A factor for the connections and rates of a study, which fits it to a machine.

use std::fmt;
use std::str::FromStr;

/// Factor for connections and rates: above 0, at most 100.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale(f64);

/// A text that is not a valid scale.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a scale such as 25%, 0.25 or 2x, above 0 and at most 100x")]
pub struct ScaleError(String);

/// Largest factor. Larger ones are typing errors, because no study requests a hundredth of a machine's capacity.
const LARGEST: f64 = 100.0;

impl Scale {
    /// The scale that changes nothing.
    pub const ONE: Scale = Scale(1.0);

    /// Returns the factor.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// Returns the factor, or `None` if it changes nothing.
    pub(crate) fn change(self) -> Option<f64> {
        (self != Scale::ONE).then_some(self.0)
    }

    /// Scales a number of connections to a whole number, never below 1.
    pub(crate) fn connections(self, number: u32) -> u32 {
        self.held(number).max(1)
    }

    /// Scales a number of held connections. 0 stays 0.
    pub(crate) fn held(self, number: u32) -> u32 {
        match self.change() {
            Some(factor) => (f64::from(number) * factor).round() as u32,
            None => number,
        }
    }

    /// Scales a rate in requests per second to a whole number, never below 1.
    pub(crate) fn rate(self, rate: f64) -> f64 {
        match self.change() {
            Some(factor) => (rate * factor).round().max(1.0),
            None => rate,
        }
    }
}

impl FromStr for Scale {
    type Err = ScaleError;

    /// Parses `25%`, `0.25` or `2x`.
    fn from_str(text: &str) -> Result<Scale, ScaleError> {
        let trimmed = text.trim();
        let (digits, unit) = match (trimmed.strip_suffix('%'), trimmed.strip_suffix('x')) {
            (Some(percent), _) => (percent, 100.0),
            (None, Some(times)) => (times, 1.0),
            (None, None) => (trimmed, 1.0),
        };
        let number = digits.trim_end().parse::<f64>().ok();
        number
            .map(|number| number / unit)
            .filter(|factor| *factor > 0.0 && *factor <= LARGEST)
            .map(Scale)
            .ok_or_else(|| ScaleError(text.to_owned()))
    }
}

impl fmt::Display for Scale {
    /// Formats the scale as a user may type it: `25%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Multiplication by 100 leaves digits behind that nobody typed.
        let percent = (self.0 * 1e8).round() / 1e6;
        write!(f, "{percent}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_read_in_three_spellings_and_written_in_one() {
        for (text, factor, written) in [
            ("25%", 0.25, "25%"),
            ("0.25", 0.25, "25%"),
            ("2x", 2.0, "200%"),
            (" 150 % ", 1.5, "150%"),
            ("0.1%", 0.001, "0.1%"),
            ("33.3%", 0.333, "33.3%"),
            ("1", 1.0, "100%"),
        ] {
            let scale: Scale = text.parse().unwrap();
            assert!((scale.factor() - factor).abs() < 1e-12, "{text}");
            assert_eq!(scale.to_string(), written);
            assert_eq!(scale.to_string().parse(), Ok(scale), "{text}");
        }
        for text in
            ["", "%", "x", "0", "0%", "-1", "nan", "inf", "101x", "1e9", "2 x 3", "25%x", "half"]
        {
            assert!(text.parse::<Scale>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_whole_and_nothing_becomes_nothing() {
        let scale: Scale = "25%".parse().unwrap();
        assert_eq!([1, 2, 50, 101].map(|n| scale.connections(n)), [1, 1, 13, 25]);
        assert_eq!([0, 1, 10_000].map(|n| scale.held(n)), [0, 0, 2500]);
        assert_eq!([0.5, 1.0, 250.0].map(|rate| scale.rate(rate)), [1.0, 1.0, 63.0]);
        assert_eq!(Scale::ONE.rate(0.5), 0.5, "as the file says");
    }
}
