//! Errors of requests to an agent.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::message::Failure;

/// Error of a request to an agent.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AgentError {
    /// The agent tried, and reports the reason for the failure.
    #[error(transparent)]
    Failed(Box<Failure>),
    /// The agent is gone.
    #[error("the agent on {place} is gone: {words}")]
    Lost {
        /// Place of the agent.
        place: String,
        /// Symptom of the loss.
        words: String,
        /// Options of `weir restore` that name this place.
        restore: String,
    },
    /// The answer does not fit the request: a mistake of weir's.
    #[error("the agent on {place} sent an unexpected answer: {words}")]
    Confused {
        /// Place of the agent.
        place: String,
        /// Description of the mismatch.
        words: String,
    },
}

impl AgentError {
    /// Returns advice on what to do about the error; `None` if there is none.
    pub fn hint(&self) -> Option<String> {
        match self {
            AgentError::Failed(failure) => failure.hint.clone(),
            AgentError::Lost { restore, .. } => Some(format!(
                "when the host is back, `weir restore {restore}` shows whether anything is left \
                 there; the agent restores everything by itself when it no longer hears from weir"
            )),
            AgentError::Confused { .. } => None,
        }
    }
}

impl From<Failure> for AgentError {
    fn from(failure: Failure) -> AgentError {
        AgentError::Failed(Box::new(failure))
    }
}

impl AgentError {
    /// The same with the last words of an agent that is gone.
    pub(super) fn after(self, last: &str) -> AgentError {
        match self {
            AgentError::Lost { place, words, restore } if !last.is_empty() => {
                AgentError::Lost { place, words: format!("{words}\n{last}"), restore }
            }
            other => other,
        }
    }

    /// Attributes a failure to an arm, unless it already has a subject.
    pub fn of_arm(self, arm: &str) -> AgentError {
        match self {
            AgentError::Failed(failure) if failure.subject.is_none() => {
                AgentError::from(failure.of_arm(arm))
            }
            other => other,
        }
    }
}

/// Parses a part of an answer.
pub(super) fn understand<A: DeserializeOwned>(
    place: &str,
    value: &RawValue,
) -> Result<A, AgentError> {
    serde_json::from_str(value.get())
        .map_err(|error| AgentError::Confused { place: place.to_owned(), words: error.to_string() })
}
