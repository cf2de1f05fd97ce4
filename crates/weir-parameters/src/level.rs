//! Kinds of levels: what may be written for a parameter, and its one canonical spelling.
//!
//! A level ends up in a configuration file, so every kind accepts a closed grammar only: nothing
//! that was checked here can carry a `;`, a brace, a quote or a line break.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use weir_model::quantity::{parse_bytes, parse_duration};

/// The levels that a parameter has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LevelKind {
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Choice(Vec<String>),
    /// A whole number.
    Integer {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
        /// Words that may stand instead of a number.
        #[serde(default)]
        words: Vec<String>,
    },
    /// A size in bytes.
    Size {
        /// Smallest, in bytes.
        #[serde(deserialize_with = "bytes")]
        min: u64,
        /// Largest, in bytes.
        #[serde(deserialize_with = "bytes")]
        max: u64,
        /// Words that may stand instead of a size.
        #[serde(default)]
        words: Vec<String>,
    },
    /// A duration.
    Duration {
        /// Shortest.
        #[serde(deserialize_with = "duration")]
        min: Duration,
        /// Longest.
        #[serde(deserialize_with = "duration")]
        max: Duration,
        /// What it must be a multiple of, because the proxy counts in it.
        #[serde(deserialize_with = "duration")]
        step: Duration,
    },
    /// Words of the form `key=value`, each key once.
    Pairs {
        /// Whole numbers that must be there.
        required: BTreeMap<String, Bounds>,
        /// Durations that may be there, and the step that they must be a multiple of.
        #[serde(default, deserialize_with = "durations")]
        optional_durations: BTreeMap<String, Duration>,
        /// Words that may stand instead of the pairs.
        #[serde(default)]
        words: Vec<String>,
    },
    /// Media types, separated by blanks.
    MediaTypes,
    /// One or more of these words, separated by blanks, each once.
    Set(Vec<String>),
    /// A cipher list in OpenSSL's grammar (openssl-ciphers(1)): names and operators with colons
    /// between them. Whether the names mean anything is for OpenSSL to say.
    CipherList,
}

/// Bounds of a whole number, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
}

/// What is wrong with a level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{level}` is not {allowed}")]
pub struct LevelError {
    /// What was written.
    pub level: String,
    /// What would have been accepted, fit to stand after "is not".
    pub allowed: String,
    /// The valid level that comes nearest, when one does.
    pub nearest: Option<String>,
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    parse_bytes(&text).map_err(serde::de::Error::custom)
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse_duration(&text).map_err(serde::de::Error::custom)
}

fn durations<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Duration>, D::Error> {
    BTreeMap::<String, String>::deserialize(from)?
        .into_iter()
        .map(|(key, text)| Ok((key, parse_duration(&text)?)))
        .collect::<Result<_, weir_model::quantity::QuantityError>>()
        .map_err(serde::de::Error::custom)
}

/// The way a proxy of nginx's family writes durations: whole seconds, else milliseconds.
fn write_duration(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{}s", duration.as_secs()),
        _ => format!("{}ms", duration.as_millis()),
    }
}

/// The way nginx writes sizes: the largest of `m`, `k` and nothing that divides it. It knows no `g`
/// outside of offsets.
fn write_bytes(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        b if b % (1 << 20) == 0 => format!("{}m", b >> 20),
        b if b % (1 << 10) == 0 => format!("{}k", b >> 10),
        b => b.to_string(),
    }
}

impl LevelKind {
    /// The canonical spelling of `level`.
    ///
    /// # Errors
    /// It is not a level of this kind.
    pub fn check(&self, level: &str) -> Result<String, LevelError> {
        let level = level.trim();
        self.canonical(level).ok_or_else(|| LevelError {
            level: level.to_owned(),
            allowed: self.allowed(),
            nearest: self.nearest(level),
        })
    }

    fn canonical(&self, level: &str) -> Option<String> {
        if self.words().any(|word| word == level) {
            return Some(level.to_owned());
        }
        match self {
            LevelKind::Switch | LevelKind::Choice(_) => None,
            LevelKind::Integer { min, max, .. } => {
                let number = integer(level)?;
                (*min..=*max).contains(&number).then(|| number.to_string())
            }
            LevelKind::Size { min, max, .. } => {
                let size = parse_bytes(level).ok()?;
                (*min..=*max).contains(&size).then(|| write_bytes(size))
            }
            LevelKind::Duration { min, max, step } => {
                let duration = stepped(level, *step)?;
                (*min..=*max)
                    .contains(&duration)
                    .then(|| write_duration(duration))
            }
            LevelKind::Pairs {
                required,
                optional_durations,
                ..
            } => pairs(level, required, optional_durations),
            LevelKind::MediaTypes => media_types(level),
            LevelKind::Set(words) => set(level, words),
            LevelKind::CipherList => is_cipher_list(level).then(|| level.to_owned()),
        }
    }

    /// Words that are levels by themselves.
    fn words(&self) -> impl Iterator<Item = &str> {
        let (fixed, listed): (&[&str], &[String]) = match self {
            LevelKind::Switch => (&["on", "off"], &[]),
            LevelKind::Choice(words)
            | LevelKind::Integer { words, .. }
            | LevelKind::Size { words, .. }
            | LevelKind::Pairs { words, .. } => (&[], words),
            LevelKind::Duration { .. }
            | LevelKind::MediaTypes
            | LevelKind::Set(_)
            | LevelKind::CipherList => (&[], &[]),
        };
        fixed
            .iter()
            .copied()
            .chain(listed.iter().map(String::as_str))
    }

    /// What is accepted, in words that fit after "is not".
    pub fn allowed(&self) -> String {
        let numbers = match self {
            LevelKind::Switch | LevelKind::Choice(_) => None,
            LevelKind::Integer { min, max, .. } => {
                Some(format!("a whole number from {min} to {max}"))
            }
            LevelKind::Size { min, max, .. } => Some(format!(
                "a size from {} to {}, such as 600 or 4k",
                write_bytes(*min),
                write_bytes(*max)
            )),
            LevelKind::Duration { min, max, step } => Some(format!(
                "a duration from {} to {} in steps of {}",
                write_duration(*min),
                write_duration(*max),
                write_duration(*step)
            )),
            LevelKind::Pairs {
                required,
                optional_durations,
                ..
            } => Some(pairs_allowed(required, optional_durations)),
            LevelKind::MediaTypes => {
                Some("a list of media types such as `text/css application/json`".to_owned())
            }
            LevelKind::Set(words) => Some(format!("one or more of {}", words.join(" "))),
            LevelKind::CipherList => Some("a cipher list such as `HIGH:!aNULL:!MD5`".to_owned()),
        };
        let words = self.words().map(|word| format!("`{word}`"));
        let mut parts: Vec<String> = words.chain(numbers).collect();
        let last = parts.pop().unwrap_or_default();
        match parts.is_empty() {
            true => last,
            false => format!("{} or {last}", parts.join(", ")),
        }
    }

    /// The level that somebody who wrote `level` most likely meant.
    fn nearest(&self, level: &str) -> Option<String> {
        self.nearest_word(level)
            .or_else(|| self.nearest_number(level))
    }

    fn nearest_word(&self, level: &str) -> Option<String> {
        let meant = match level.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" | "enabled" => "on".to_owned(),
            "false" | "no" | "0" | "none" | "disabled" => "off".to_owned(),
            other => other.to_owned(),
        };
        self.words()
            .map(|word| (strsim::damerau_levenshtein(word, &meant), word))
            .filter(|(distance, word)| *distance <= word.len().div_ceil(3))
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, word)| word.to_owned())
    }

    fn nearest_number(&self, level: &str) -> Option<String> {
        match self {
            LevelKind::Integer { min, max, .. } => {
                let number: f64 = level.replace('_', "").parse().ok()?;
                // A cast from float to integer saturates, which is what is wanted here.
                Some((number.round() as u64).clamp(*min, *max).to_string())
            }
            LevelKind::Size { min, max, .. } => {
                let size = parse_bytes(level).ok()?;
                Some(write_bytes(size.clamp(*min, *max)))
            }
            LevelKind::Duration { min, max, step } => {
                let steps = parse_duration(level).ok()?.as_nanos() / step.as_nanos().max(1);
                let duration = step.saturating_mul(u32::try_from(steps).ok()?);
                Some(write_duration(duration.clamp(*min, *max)))
            }
            _ => None,
        }
    }
}

/// Digits only: no sign, no blank, no separator, so that the text is as the proxy reads it.
fn integer(text: &str) -> Option<u64> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// A duration that is a whole number of steps.
fn stepped(text: &str, step: Duration) -> Option<Duration> {
    let duration = parse_duration(text).ok()?;
    (duration.as_nanos() % step.as_nanos().max(1) == 0).then_some(duration)
}

/// `max=1024 inactive=10s`: required keys first, in the order of their names.
fn pairs(
    text: &str,
    required: &BTreeMap<String, Bounds>,
    durations: &BTreeMap<String, Duration>,
) -> Option<String> {
    let mut written = BTreeMap::new();
    for word in text.split_whitespace() {
        let (key, value) = word.split_once('=')?;
        let value = match (required.get(key), durations.get(key)) {
            (Some(range), _) => integer(value)
                .filter(|number| (range.min..=range.max).contains(number))?
                .to_string(),
            (None, Some(step)) => write_duration(stepped(value, *step).filter(|d| !d.is_zero())?),
            (None, None) => return None,
        };
        if written.insert(key, format!("{key}={value}")).is_some() {
            return None;
        }
    }
    let mut words = Vec::new();
    for key in required.keys() {
        words.push(written.remove(key.as_str())?);
    }
    words.extend(written.into_values());
    Some(words.join(" "))
}

fn pairs_allowed(
    required: &BTreeMap<String, Bounds>,
    durations: &BTreeMap<String, Duration>,
) -> String {
    let required = required
        .iter()
        .map(|(key, range)| format!("{key}=N (N from {} to {})", range.min, range.max));
    let durations = durations
        .iter()
        .map(|(key, step)| format!("[{key}=DURATION in steps of {}]", write_duration(*step)));
    required.chain(durations).collect::<Vec<_>>().join(" ")
}

/// Media types (RFC 9110 §8.3.1) without parameters; sorted, each once.
fn media_types(text: &str) -> Option<String> {
    let mut types: Vec<&str> = text.split_whitespace().collect();
    types.sort_unstable();
    types.dedup();
    let all_valid = types.iter().all(|media_type| {
        media_type
            .split_once('/')
            .is_some_and(|(kind, subtype)| is_media_name(kind) && is_media_name(subtype))
    });
    (all_valid && !types.is_empty()).then(|| types.join(" "))
}

/// Words out of `words`, in their order there; a word that is repeated is none.
fn set(text: &str, words: &[String]) -> Option<String> {
    let given: Vec<&str> = text.split_whitespace().collect();
    let known = words.iter().filter(|word| given.contains(&&***word));
    let known: Vec<&str> = known.map(String::as_str).collect();
    (!known.is_empty() && known.len() == given.len()).then(|| known.join(" "))
}

/// Nothing but what names and operators of openssl-ciphers(1) are made of.
fn is_cipher_list(text: &str) -> bool {
    let fit = |b: u8| b.is_ascii_alphanumeric() || b"-_+!@=:".contains(&b);
    let is_item = |item: &str| item.bytes().any(|b| b.is_ascii_alphanumeric());
    text.len() <= 1024 && text.bytes().all(fit) && text.split(':').all(is_item)
}

/// A restricted name (RFC 6838 §4.2): what every registered type keeps to.
fn is_media_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#&-^_.+".contains(&b))
}
