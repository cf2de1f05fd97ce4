//! One setting that weir has changed, and the rule by which it is put back.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::key::{Key, normal};
use super::place;
use super::settings::{SettingError, Settings};

/// What became of a setting, or would become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// It had a value of weir's, and has its value before again.
    PutBack,
    /// It had its value before.
    Already,
    /// It has a value that weir did not give it. Left alone.
    Differs {
        /// That value.
        found: String,
    },
    /// There is no such setting now, or its network namespace is gone.
    Gone,
    /// It was changed before the last boot, which sysctls do not survive.
    OtherBoot,
    /// It was changed in a network namespace that the calling thread is not in. Left alone.
    Elsewhere {
        /// Which, such as `net:[4026532281]`.
        namespace: String,
    },
    /// It could not be read or put back.
    Failed {
        /// Why.
        words: String,
    },
}

impl Outcome {
    /// Whether nothing of weir's is left.
    pub fn is_restored(&self) -> bool {
        use Outcome::{Already, Gone, OtherBoot, PutBack};
        matches!(self, PutBack | Already | Gone | OtherBoot)
    }

    /// Whether the journal has no more business with the setting once the user knows.
    pub(super) fn closes(&self) -> bool {
        self.is_restored() || matches!(self, Outcome::Differs { .. })
    }
}

/// A setting that weir changed, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Restored {
    /// The setting.
    pub key: Key,
    /// Its value before weir.
    pub before: String,
    /// The values that weir gave it, or had announced.
    pub given: Vec<String>,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// A setting that weir has changed or may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Entry {
    pub(super) key: Key,
    /// The network namespace in which it was changed, of a setting that is another in each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    /// As the kernel told it: blanks may mean something to the setting.
    pub(super) before: String,
    pub(super) given: Vec<String>,
}

impl Entry {
    /// Whether this is about a setting, as a network namespace has it.
    pub(super) fn is_of(&self, key: &Key, namespace: Option<&str>) -> bool {
        self.key == *key && self.namespace.as_deref() == namespace
    }

    /// Whether weir has said that it may give this value.
    pub(super) fn announces(&self, value: &str) -> bool {
        self.given.iter().any(|given| same(given, value))
    }

    /// Whether a value is one that weir knows of: the one before or one that weir gave.
    pub(super) fn knows(&self, value: &str) -> bool {
        same(value, &self.before) || self.announces(value)
    }

    /// What putting it back would come to; `boot` tells whether it was changed since the last one.
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
            Ok(found) if same(&found, &self.before) => Outcome::Already,
            Ok(found) if self.announces(&found) => Outcome::PutBack,
            Ok(found) => Outcome::Differs {
                found: normal(&found),
            },
        }
    }

    /// Puts it back, if it has a value of weir's. The kernel has no compare-and-swap for settings:
    /// who changes it in the microseconds between the look and the write is overwritten.
    pub(super) fn put_back(&self, settings: &dyn Settings, same_boot: bool) -> Outcome {
        let outlook = self.outlook(settings, same_boot);
        if outlook != Outcome::PutBack {
            return outlook;
        }
        match settings.write(&self.key, &self.before) {
            Err(SettingError::Absent) => Outcome::Gone,
            Err(SettingError::Refused(words)) => Outcome::Failed { words },
            Ok(()) => match settings.read(&self.key) {
                Ok(found) if !same(&found, &self.before) => failed(format!(
                    "`{}` was written and `{found}` read back",
                    self.before
                )),
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
            Some(namespace) if place::namespace_lives(namespace) => Outcome::Elsewhere {
                namespace: namespace.clone(),
            },
            _ => Outcome::Gone,
        }
    }
}

fn failed(words: impl fmt::Display) -> Outcome {
    Outcome::Failed {
        words: words.to_string(),
    }
}

/// Whether two values differ in their blanks at most.
pub(super) fn same(a: &str, b: &str) -> bool {
    a.split_whitespace().eq(b.split_whitespace())
}
