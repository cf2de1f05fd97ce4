//! Settings that the journal covers: how they are named, shown and set by hand.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A setting of the host's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// A kernel setting by its name, such as `net.core.somaxconn`.
    Sysctl(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key::Sysctl(name) = self;
        f.write_str(name)
    }
}

/// Returns the command that gives a setting a value by hand.
pub fn put_back_command(key: &Key, value: &str) -> String {
    let Key::Sysctl(name) = key;
    format!("sysctl -w {}={}", quoted(name), quoted(&normal(value)))
}

/// Quotes a word for the shell.
pub fn quoted(word: &str) -> Cow<'_, str> {
    // Fails for NUL alone, which no setting has.
    shlex::try_quote(word).unwrap_or(Cow::Borrowed(word))
}

/// Returns a value with single spaces between its parts, as sysctl(8) accepts it; the kernel separates the items of a
/// list by tabs.
pub(super) fn normal(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lists values for a message: each in backquotes, joined by "or".
pub(super) fn in_words(values: &[String]) -> String {
    let quoted: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
    quoted.join(" or ")
}
