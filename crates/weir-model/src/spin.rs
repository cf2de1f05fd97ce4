//! Time for which a generator's thread stays awake before a request is due.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::quantity::{QuantityError, format_duration, parse_duration};

/// Longest time that a thread may stay awake for a request.
const LONGEST: Duration = Duration::from_secs(1);

/// Time for which a generator's thread stays awake before a request is due. A thread that sleeps until then wakes up
/// some tens of microseconds late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spin {
    /// Automatic: the lateness of this machine's wake-ups as measured, within a budget of CPU time.
    Auto,
    /// Fixed time, whatever the cost in CPU time.
    #[serde(untagged)]
    For(Duration),
}

impl Spin {
    /// Sleep until a request is due.
    pub const OFF: Spin = Spin::For(Duration::ZERO);

    /// Returns true if the thread sleeps until a request is due.
    pub fn is_off(&self) -> bool {
        *self == Spin::OFF
    }
}

impl Default for Spin {
    /// Returns [`Spin::OFF`], the value for records without this setting.
    fn default() -> Spin {
        Spin::OFF
    }
}

impl FromStr for Spin {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Spin, QuantityError> {
        if text == "auto" {
            return Ok(Spin::Auto);
        }
        match parse_duration(text) {
            Ok(lead) if lead > LONGEST => Err(QuantityError::OutOfRange {
                text: text.to_owned(),
                reason: "it is longer than 1s".to_owned(),
            }),
            Ok(lead) => Ok(Spin::For(lead)),
            Err(QuantityError::Malformed { text, .. }) => Err(QuantityError::Malformed {
                text,
                expected: "auto or a duration such as 60us or 0s",
            }),
            Err(other) => Err(other),
        }
    }
}

impl fmt::Display for Spin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spin::Auto => f.write_str("auto"),
            Spin::For(duration) => f.write_str(&format_duration(*duration)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_as_it_is_written_and_old_records_are_durations() {
        let cases = [
            ("auto", Spin::Auto, r#""auto""#),
            ("60us", Spin::For(Duration::from_micros(60)), r#"{"secs":0,"nanos":60000}"#),
            ("0ns", Spin::OFF, r#"{"secs":0,"nanos":0}"#),
        ];
        for (text, spin, json) in cases {
            assert_eq!(text.parse(), Ok(spin));
            assert_eq!(spin.to_string(), text);
            assert_eq!(serde_json::to_string(&spin).unwrap(), json);
            assert_eq!(serde_json::from_str::<Spin>(json).unwrap(), spin);
        }
        for (text, error) in [("soon", "auto or a duration"), ("-1us", "negative"), ("", "auto")] {
            let message = text.parse::<Spin>().unwrap_err().to_string();
            assert!(message.contains(error), "{message}");
        }
        assert!(serde_json::from_str::<Spin>(r#""soon""#).is_err());
    }
}
