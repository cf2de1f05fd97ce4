//! Search for another level of a parameter in one direction, far enough for its effect to be visible.

use std::time::Duration;

use crate::level::LevelKind;

/// Factor by which a level is multiplied or divided.
const FACTOR: u64 = 8;
/// Level that is taken upwards from 0, or from a word such as `off`.
const FROM_WORD: u64 = 64;
/// Lowest port of the widest range. Ports below it belong to services (RFC 6335 section 6).
const FIRST_PORT: u64 = 1024;

impl LevelKind {
    /// Returns a level that is well above (`up`) or below `level`. `None` if there is none, or the levels have no
    /// order.
    pub fn further(&self, level: &str, up: bool) -> Option<String> {
        let is_word = self.words().any(|word| word == level);
        let turned = match self {
            LevelKind::Switch => if up { "on" } else { "off" }.to_owned(),
            LevelKind::Integer { min, max, .. } if is_word || level == "0" => {
                up.then(|| FROM_WORD.clamp(*min, *max).to_string())?
            }
            LevelKind::Integer { min, max, .. } => {
                turn_number(level.parse().ok()?, up, *min, *max).to_string()
            }
            LevelKind::Size { min, max, .. } if !is_word => {
                turn_number(weir_model::quantity::parse_bytes(level).ok()?, up, *min, *max)
                    .to_string()
            }
            LevelKind::Duration { min, max, .. } => {
                let now = weir_model::quantity::parse_duration(level).ok()?;
                let seconds =
                    turn_number(now.as_secs().max(1), up, min.as_secs().max(1), max.as_secs());
                weir_model::quantity::format_duration(Duration::from_secs(seconds))
            }
            // A range is wider by both of its ends.
            LevelKind::Integers { names, min, max } if up && names.len() == 2 => {
                format!("{} {max}", FIRST_PORT.max(*min))
            }
            _ => return None,
        };
        let turned = self.check(&turned).ok()?;
        (self.check(level).ok().as_ref() != Some(&turned)).then_some(turned)
    }
}

fn turn_number(now: u64, up: bool, min: u64, max: u64) -> u64 {
    if up {
        now.saturating_mul(FACTOR).max(now.saturating_add(1)).clamp(min, max)
    } else {
        (now / FACTOR).clamp(min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_turned_within_its_bounds() {
        let integer = LevelKind::Integer { min: 1, max: 1000, words: vec!["off".to_owned()] };
        let ports = LevelKind::Integers {
            names: vec!["first".to_owned(), "last".to_owned()],
            min: 1,
            max: 65535,
        };
        let time = LevelKind::Duration {
            min: Duration::ZERO,
            max: Duration::from_secs(3600),
            step: Duration::from_secs(1),
        };
        for (kind, from, up, to) in [
            (&integer, "16", true, Some("128")),
            (&integer, "16", false, Some("2")),
            (&integer, "1", false, None),
            (&integer, "500", true, Some("1000")),
            (&integer, "1000", true, None),
            (&integer, "off", true, Some("64")),
            (&integer, "off", false, None),
            (&integer, "0", true, Some("64")),
            (&LevelKind::Switch, "off", true, Some("on")),
            (&LevelKind::Switch, "on", true, None),
            (&ports, "20000 20199", true, Some("1024 65535")),
            (&ports, "20000 20199", false, None),
            (&time, "10s", true, Some("80s")),
            (&LevelKind::Choice(vec!["a".to_owned()]), "a", true, None),
        ] {
            assert_eq!(kind.further(from, up).as_deref(), to, "{from} {up}");
        }
    }
}
