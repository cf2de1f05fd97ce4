//! One setting that weir has changed, and the rule by which it is put back.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::key::{Key, normal};
use super::place;
use super::settings::{SettingError, Settings};

/// Outcome of putting a setting back, either actual or expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// The setting had a value that weir gave it, and has its original value again.
    PutBack,
    /// The setting already had its original value.
    Already,
    /// The setting has a value that weir did not give it. Left alone.
    Differs {
        /// Value that the setting has.
        found: String,
    },
    /// The setting no longer exists, or its network namespace is gone.
    Gone,
    /// The setting was changed before the last boot; sysctls do not survive a boot.
    OtherBoot,
    /// The setting was changed in a network namespace that the calling thread is not in. Left alone.
    Elsewhere {
        /// Network namespace of the change, such as `net:[4026532281]`.
        namespace: String,
    },
    /// The setting could not be read or put back.
    Failed {
        /// Reason of the failure.
        words: String,
    },
}

impl Outcome {
    /// Returns true if the setting keeps no value of weir's.
    pub fn is_restored(&self) -> bool {
        use Outcome::{Already, Gone, OtherBoot, PutBack};
        matches!(self, PutBack | Already | Gone | OtherBoot)
    }

    /// Returns true if the journal can close the setting once the user knows the outcome.
    pub(super) fn closes(&self) -> bool {
        self.is_restored() || matches!(self, Outcome::Differs { .. })
    }
}

/// A setting that weir changed, and the outcome of putting it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Restored {
    /// The setting.
    pub key: Key,
    /// Original value, from before weir changed the setting.
    pub before: String,
    /// Values that weir gave the setting, or had announced.
    pub given: Vec<String>,
    /// Outcome of putting the setting back.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// A setting that weir has changed or may have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Entry {
    pub(super) key: Key,
    /// Network namespace in which the setting was changed; None for a setting that all namespaces share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    /// Original value exactly as the kernel reported it, since blanks may matter to the setting.
    pub(super) before: String,
    pub(super) given: Vec<String>,
}

impl Entry {
    /// Returns true if the entry is about this setting in this network namespace.
    pub(super) fn is_of(&self, key: &Key, namespace: Option<&str>) -> bool {
        self.key == *key && self.namespace.as_deref() == namespace
    }

    /// Returns true if weir has announced that it may give this value.
    pub(super) fn announces(&self, value: &str) -> bool {
        self.given.iter().any(|given| same(given, value))
    }

    /// Returns true if a value is the original one or one that weir announced.
    pub(super) fn knows(&self, value: &str) -> bool {
        same(value, &self.before) || self.announces(value)
    }

    /// Returns the outcome that putting the setting back would have; `same_boot` is true if it was changed since the
    /// last boot.
    pub(super) fn outlook(&self, settings: &dyn Settings, same_boot: bool) -> Outcome {
        if !same_boot {
            return Outcome::OtherBoot;
        }
        match place::namespace(&self.key) {
            Err(error) => return failed(error),
            Ok(here) if here != self.namespace => return self.elsewhere(),
            Ok(_) => {}
        }
        match settings.read(&self.key) {
            Err(SettingError::Absent) => Outcome::Gone,
            Err(SettingError::Refused(words)) => Outcome::Failed { words },
            Ok(current) if same(&current, &self.before) => Outcome::Already,
            Ok(current) if self.announces(&current) => Outcome::PutBack,
            Ok(current) => Outcome::Differs { found: normal(&current) },
        }
    }

    /// Puts the setting back if it has a value that weir gave it. The kernel has no compare-and-swap for settings: a
    /// change that somebody else makes in the microseconds between the read and the write is overwritten.
    pub(super) fn put_back(&self, settings: &dyn Settings, same_boot: bool) -> Outcome {
        let outlook = self.outlook(settings, same_boot);
        if outlook != Outcome::PutBack {
            return outlook;
        }
        match settings.write(&self.key, &self.before) {
            Err(SettingError::Absent) => Outcome::Gone,
            Err(SettingError::Refused(words)) => Outcome::Failed { words },
            Ok(()) => match settings.read(&self.key) {
                Ok(current) if !same(&current, &self.before) => {
                    failed(format!("`{}` was written and `{current}` read back", self.before))
                }
                Err(SettingError::Refused(words)) => Outcome::Failed { words },
                _ => Outcome::PutBack,
            },
        }
    }

    pub(super) fn restored(&self, outcome: Outcome) -> Restored {
        Restored {
            key: self.key.clone(),
            before: normal(&self.before),
            given: self.given.clone(),
            outcome,
        }
    }

    fn elsewhere(&self) -> Outcome {
        match &self.namespace {
            Some(namespace) if place::namespace_lives(namespace) => {
                Outcome::Elsewhere { namespace: namespace.clone() }
            }
            _ => Outcome::Gone,
        }
    }
}

fn failed(words: impl fmt::Display) -> Outcome {
    Outcome::Failed { words: words.to_string() }
}

/// Returns true if two values are equal apart from blanks.
pub(super) fn same(a: &str, b: &str) -> bool {
    a.split_whitespace().eq(b.split_whitespace())
}
