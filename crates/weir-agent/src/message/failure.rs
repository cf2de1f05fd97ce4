//! Failures as data: subject, evidence and advice. They become text only when they are shown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Failure of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Kind of failure, as far as callers distinguish it.
    pub kind: FailureKind,
    /// Host on which the failure happened; `None`: this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Subject of the failure; `None` if no single arm is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// Observed symptom.
    pub evidence: String,
    /// Advice on what to do about the failure.
    pub hint: Option<String>,
}

/// Subject of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// An arm, by its name.
    Arm(String),
}

/// Kinds of failure that callers distinguish.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No kind that a caller treats specially.
    #[default]
    Other,
    /// None of a load's connections could be opened.
    NoConnection,
    /// The study, or a file that it names, must be changed.
    BadInput,
    /// A proxy no longer runs as it was started.
    ArmEnded,
}

impl Failure {
    /// Creates a failure of kind [`FailureKind::Other`], with evidence alone.
    pub fn other(evidence: impl fmt::Display) -> Failure {
        Failure {
            kind: FailureKind::Other,
            host: None,
            subject: None,
            evidence: evidence.to_string(),
            hint: None,
        }
    }

    /// Replaces the advice.
    pub fn with_hint(self, hint: Option<String>) -> Failure {
        Failure { hint, ..self }
    }

    /// Sets the subject to an arm.
    pub fn of_arm(self, arm: &str) -> Failure {
        Failure { subject: Some(Subject::Arm(arm.to_owned())), ..self }
    }

    /// Returns the name of the arm that the failure is about; `None` if there is none.
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
