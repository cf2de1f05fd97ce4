//! Kinds of levels: the values that may be written for a parameter, each with one canonical spelling.
//!
//! A level ends up in a configuration file, so every kind accepts a closed grammar only: no checked level can carry a
//! `;`, a brace, a quote or a line break.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use weir_model::quantity::{parse_bytes, parse_duration};

use crate::grammar::{
    cpus, integer, integers, is_cipher_list, is_name, media_types, memory, pairs, pairs_allowed,
    ports, set, stepped,
};
use crate::placing;

/// Kind and range of the levels of a parameter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LevelKind {
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Choice(Vec<String>),
    /// A whole number.
    Integer {
        /// Smallest number.
        min: u64,
        /// Largest number.
        max: u64,
        /// Words that may replace the number.
        #[serde(default)]
        words: Vec<String>,
    },
    /// A size in bytes.
    Size {
        /// Smallest size, in bytes.
        #[serde(deserialize_with = "bytes")]
        min: u64,
        /// Largest size, in bytes.
        #[serde(deserialize_with = "bytes")]
        max: u64,
        /// Words that may replace the size.
        #[serde(default)]
        words: Vec<String>,
    },
    /// A duration.
    Duration {
        /// Shortest duration.
        #[serde(deserialize_with = "duration")]
        min: Duration,
        /// Longest duration.
        #[serde(deserialize_with = "duration")]
        max: Duration,
        /// Unit in which the proxy counts. The duration must be a multiple of it.
        #[serde(deserialize_with = "duration")]
        step: Duration,
    },
    /// Words of the form `key=value`, each key once.
    Pairs {
        /// Keys with whole numbers, which must be present.
        required: BTreeMap<String, Bounds>,
        /// Keys with durations, which may be present, and the step that each must be a multiple of.
        #[serde(default, deserialize_with = "durations")]
        optional_durations: BTreeMap<String, Duration>,
        /// Words that may replace the pairs.
        #[serde(default)]
        words: Vec<String>,
    },
    /// Media types, separated by blanks.
    MediaTypes,
    /// One or more of these words, separated by blanks, each once.
    Set(Vec<String>),
    /// Several whole numbers in one value, separated by blanks, none smaller than the one before.
    Integers {
        /// Name of each number, in order.
        names: Vec<String>,
        /// Smallest number.
        min: u64,
        /// Largest number.
        max: u64,
    },
    /// Ports and ranges of ports, separated by commas, in the format of net.ipv4.ip_local_reserved_ports:
    /// `8080,9000-9010`.
    Ports,
    /// A cipher list in OpenSSL's grammar (openssl-ciphers(1)): names and operators, separated by colons. OpenSSL
    /// decides if the names are valid.
    CipherList,
    /// A name that a study gives to something that it defines: lower-case letters, digits and dashes.
    Name,
    /// CPUs as Kubernetes writes them, such as `2` or `500m`. The minimum is 10m, because the kernel gives no shorter
    /// shares of time.
    Cpus,
    /// Memory as Kubernetes writes it, such as `512Mi`. The minimum is 1Mi.
    Memory,
    /// Kubernetes labels with their values: `key=value,key=value`.
    Labels,
    /// Taints of nodes that pods tolerate, as `kubectl taint` writes them, separated by commas: `key=value:NoSchedule`,
    /// or `key:NoSchedule` for any value.
    Tolerations,
}

/// Bounds of a whole number, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Smallest number.
    pub min: u64,
    /// Largest number.
    pub max: u64,
}

/// A text that is not a valid level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{level}` is not {allowed}")]
pub struct LevelError {
    /// The text as it was written.
    pub level: String,
    /// Description of the valid levels, fit to stand after "is not".
    pub allowed: String,
    /// The valid level that is nearest to the text, if any is similar.
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

/// Spells a duration as proxies of nginx's family do: whole seconds, else milliseconds.
pub(crate) fn write_duration(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{}s", duration.as_secs()),
        _ => format!("{}ms", duration.as_millis()),
    }
}

/// Spells a size as nginx does, with the largest of `m`, `k` and no unit that divides it. nginx accepts `g` for offsets
/// only.
fn write_bytes(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        b if b % (1 << 20) == 0 => format!("{}m", b >> 20),
        b if b % (1 << 10) == 0 => format!("{}k", b >> 10),
        b => b.to_string(),
    }
}

impl LevelKind {
    /// Returns the canonical spelling of `level`.
    ///
    /// # Errors
    /// Returns an error if `level` is not a level of this kind.
    pub fn check(&self, level: &str) -> Result<String, LevelError> {
        let trimmed = level.trim();
        self.canonical(trimmed).ok_or_else(|| LevelError {
            level: trimmed.to_owned(),
            allowed: self.allowed(),
            nearest: self.nearest(trimmed),
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
                (*min..=*max).contains(&duration).then(|| write_duration(duration))
            }
            LevelKind::Pairs { required, optional_durations, .. } => {
                pairs(level, required, optional_durations)
            }
            LevelKind::MediaTypes => media_types(level),
            LevelKind::Set(words) => set(level, words),
            LevelKind::Integers { names, min, max } => integers(level, names.len(), *min, *max),
            LevelKind::Ports => ports(level),
            LevelKind::CipherList => is_cipher_list(level).then(|| level.to_owned()),
            LevelKind::Name => is_name(level).then(|| level.to_owned()),
            LevelKind::Cpus => cpus(level),
            LevelKind::Memory => memory(level),
            LevelKind::Labels => placing::labels(level),
            LevelKind::Tolerations => placing::tolerations(level),
        }
    }

    /// Returns a canonical level as JSON for an object of a cluster: a number, `true` or `false`, an object or a list,
    /// else text.
    pub(crate) fn json(&self, level: &str) -> Value {
        match self {
            LevelKind::Switch => Value::Bool(level == "on"),
            LevelKind::Integer { .. } => {
                level.parse().map_or_else(|_| level.into(), |number: u64| number.into())
            }
            LevelKind::Labels => placing::labels_json(level),
            LevelKind::Tolerations => placing::tolerations_json(level),
            _ => level.into(),
        }
    }

    /// Returns the level that a value in an object of a cluster stands for. A value of no level is returned as it is.
    /// Empty if the value holds only what the cluster added.
    pub(crate) fn told(&self, value: &Value) -> String {
        match (self, value) {
            (_, Value::Bool(is_on)) => if *is_on { "on" } else { "off" }.to_owned(),
            (_, Value::String(text)) => self.canonical(text).unwrap_or_else(|| text.clone()),
            (LevelKind::Labels, value) => placing::labels_told(value),
            (LevelKind::Tolerations, value) => placing::tolerations_told(value),
            (_, other) => other.to_string(),
        }
    }

    /// Returns the words that are levels by themselves.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let (fixed, listed): (&[&str], &[String]) = match self {
            LevelKind::Switch => (&["on", "off"], &[]),
            LevelKind::Choice(words)
            | LevelKind::Integer { words, .. }
            | LevelKind::Size { words, .. }
            | LevelKind::Pairs { words, .. } => (&[], words),
            LevelKind::Duration { .. }
            | LevelKind::MediaTypes
            | LevelKind::Set(_)
            | LevelKind::Integers { .. }
            | LevelKind::Ports
            | LevelKind::CipherList
            | LevelKind::Name
            | LevelKind::Cpus
            | LevelKind::Memory
            | LevelKind::Labels
            | LevelKind::Tolerations => (&[], &[]),
        };
        fixed.iter().copied().chain(listed.iter().map(String::as_str))
    }

    /// Describes the valid levels in words that fit after "is not".
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
            LevelKind::Pairs { required, optional_durations, .. } => {
                Some(pairs_allowed(required, optional_durations))
            }
            LevelKind::MediaTypes => {
                Some("a list of media types such as `text/css application/json`".to_owned())
            }
            LevelKind::Set(words) => Some(format!("one or more of {}", words.join(" "))),
            LevelKind::Integers { names, min, max } => Some(format!(
                "{} whole numbers from {min} to {max} in one value (`{}`), none smaller than the \
                 one before",
                names.len(),
                names.join(" ")
            )),
            LevelKind::Ports => Some("ports and ranges such as `8080,9000-9010`".to_owned()),
            LevelKind::CipherList => Some("a cipher list such as `HIGH:!aNULL:!MD5`".to_owned()),
            LevelKind::Name => Some("a name of lower-case letters, digits and dashes".to_owned()),
            LevelKind::Cpus => Some("a number of CPUs from 10m on, such as 2 or 500m".to_owned()),
            LevelKind::Memory => Some("an amount of memory from 1Mi on, such as 512Mi".to_owned()),
            LevelKind::Labels => {
                Some("labels with their values such as `pool=ingress,zone=a`".to_owned())
            }
            LevelKind::Tolerations => Some(format!(
                "taints such as `dedicated=ingress:NoSchedule` or, for any value, `dedicated:NoSchedule`, with commas between \
                 them, none of them the cluster's own ({})",
                placing::OF_CLUSTER
            )),
        };
        let mut parts: Vec<String> =
            self.words().map(|word| format!("`{word}`")).chain(numbers).collect();
        let last = parts.pop().unwrap_or_default();
        if parts.is_empty() { last } else { format!("{} or {last}", parts.join(", ")) }
    }

    /// Describes the valid levels briefly, for a column of a table.
    pub fn brief(&self) -> String {
        let kind = match self {
            LevelKind::Switch | LevelKind::Choice(_) => None,
            // What ends where the kernel's own integers do has no end that matters.
            LevelKind::Integer { min, max, .. } if *max >= u64::from(i32::MAX.unsigned_abs()) => {
                Some(format!("from {min}"))
            }
            LevelKind::Integer { min, max, .. } => Some(format!("{min} to {max}")),
            LevelKind::Size { min, max, .. } => {
                Some(format!("{} to {}", write_bytes(*min), write_bytes(*max)))
            }
            LevelKind::Duration { min, max, .. } => {
                let (min, max) = (write_duration(*min), write_duration(*max));
                Some(format!("{min} to {max}"))
            }
            LevelKind::Pairs { required, .. } => {
                let keys = required.keys().map(|key| format!("{key}=N"));
                Some(keys.collect::<Vec<_>>().join(" "))
            }
            LevelKind::MediaTypes => Some("media types".to_owned()),
            LevelKind::Set(words) => Some(format!("some of {}", words.join(" "))),
            LevelKind::Integers { names, .. } => Some(names.join(" ")),
            LevelKind::Ports => Some("ports".to_owned()),
            LevelKind::CipherList => Some("cipher list".to_owned()),
            LevelKind::Name => Some("name".to_owned()),
            LevelKind::Cpus => Some("CPUs".to_owned()),
            LevelKind::Memory => Some("memory".to_owned()),
            LevelKind::Labels => Some("labels".to_owned()),
            LevelKind::Tolerations => Some("tolerations".to_owned()),
        };
        self.words().map(str::to_owned).chain(kind).collect::<Vec<_>>().join(", ")
    }

    /// Returns the level that was most likely meant by `level`.
    fn nearest(&self, level: &str) -> Option<String> {
        self.nearest_word(level).or_else(|| self.nearest_number(level))
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
            LevelKind::Integers { names, min, max } => {
                let mut numbers: Vec<u64> =
                    level.split([' ', ',', '-']).map(integer).collect::<Option<_>>()?;
                numbers.sort_unstable();
                let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
                integers(&words.join(" "), names.len(), *min, *max)
            }
            _ => None,
        }
    }
}
