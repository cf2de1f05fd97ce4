//! Failures as data: what they are about, what was seen, what to do. Text is made of them at the last moment.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What a caller must know of it.
    pub kind: FailureKind,
    /// The host that it happened on, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// What was seen.
    pub evidence: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What a failure is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// An arm, by its name.
    Arm(String),
}

/// What a caller must know of a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Nothing in particular.
    #[default]
    Other,
    /// Not one connection of a load could be opened.
    NoConnection,
    /// The study, or a file that it names, has to be changed.
    BadInput,
    /// A proxy does not run any more as it was started.
    ArmEnded,
}

impl Failure {
    /// One of which nothing in particular is known.
    pub fn other(evidence: impl fmt::Display) -> Failure {
        Failure {
            kind: FailureKind::Other,
            host: None,
            subject: None,
            evidence: evidence.to_string(),
            hint: None,
        }
    }

    /// The same with what to do about it.
    pub fn with_hint(self, hint: Option<String>) -> Failure {
        Failure { hint, ..self }
    }

    /// The same, said of an arm.
    pub fn of_arm(self, arm: &str) -> Failure {
        Failure {
            subject: Some(Subject::Arm(arm.to_owned())),
            ..self
        }
    }

    /// The arm that it is about.
    pub fn arm(&self) -> Option<&str> {
        self.subject.as_ref().map(|Subject::Arm(arm)| arm.as_str())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Subject::Arm(arm)) = &self.subject {
            write!(to, "arm `{arm}`: ")?;
        }
        if let Some(host) = &self.host {
            write!(to, "{host}: ")?;
        }
        to.write_str(&self.evidence)
    }
}

impl std::error::Error for Failure {}
