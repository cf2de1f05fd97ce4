//! Why an agent did not do what it was asked.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::message::Failure;

/// Why an agent did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AgentError {
    /// It tried, and says why it could not.
    #[error(transparent)]
    Failed(Box<Failure>),
    /// It is not there any more.
    #[error("the agent on {place} is gone: {words}")]
    Lost {
        /// Where it was.
        place: String,
        /// What was seen.
        words: String,
        /// The options of `weir restore` for what may be left there.
        restore: String,
    },
    /// It answers something else than it was asked: a mistake of weir's.
    #[error("the agent on {place} sent an unexpected answer: {words}")]
    Confused {
        /// Where it is.
        place: String,
        /// What was wrong.
        words: String,
    },
}

impl AgentError {
    /// What to do about it.
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
            AgentError::Lost {
                place,
                words,
                restore,
            } if !last.is_empty() => AgentError::Lost {
                place,
                words: format!("{words}\n{last}"),
                restore,
            },
            other => other,
        }
    }

    /// The same, said of an arm, where it was not said already.
    pub fn of_arm(self, arm: &str) -> AgentError {
        match self {
            AgentError::Failed(failure) if failure.subject.is_none() => {
                AgentError::from(failure.of_arm(arm))
            }
            other => other,
        }
    }
}

/// What a part of an answer holds.
pub(super) fn understand<A: DeserializeOwned>(
    place: &str,
    value: &RawValue,
) -> Result<A, AgentError> {
    serde_json::from_str(value.get()).map_err(|error| AgentError::Confused {
        place: place.to_owned(),
        words: error.to_string(),
    })
}
