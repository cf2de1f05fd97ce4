//! Errors of a run.

use std::path::PathBuf;

use weir_agent::{AgentError, FailureKind};
use weir_hosts::HostError;
use weir_kube::KubeError;
use weir_proposers::MeasureError;
use weir_record::RecordError;

/// Cause of an error, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The user's input has to change.
    Input,
    /// The input was right, but the work could not be done.
    Work,
}

/// Reason why a run could not be made, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A host could not be reached, or could not do the job it was given.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The run folder cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A proposer could not decide.
    #[error("{0}")]
    Proposer(MeasureError),
    /// The load engine failed.
    #[error("load `{load}`: {source}")]
    Load {
        /// Name of the load.
        load: String,
        /// Error of the agent.
        source: AgentError,
    },
    /// The controller of the proxy in a cluster cannot be used.
    #[error("{0}")]
    Controller(String),
    /// A roll-out that began before the run does not end.
    #[error(
        "{workload} was being rolled out before this run changed anything, and that does not end: {error}"
    )]
    Rolling {
        /// Workload that is rolled out.
        workload: String,
        /// Reason why the roll-out does not end.
        error: Box<KubeError>,
    },
    /// An arm's settings did not come into force in the cluster.
    #[error("arm `{arm}`: {what}")]
    NotInForce {
        /// Name of the arm.
        arm: String,
        /// Settings read instead, or the cluster's message.
        what: String,
        /// Remedy, if known.
        hint: Option<String>,
    },
    /// An arm that has ended was to be measured: a bug in weir.
    #[error("arm `{arm}` does not run")]
    NotRunning {
        /// Name of the arm.
        arm: String,
    },
    /// An arm does not answer as it should, before anything is measured.
    #[error("arm `{arm}` does not answer as it should: {what}")]
    Answer {
        /// Name of the arm.
        arm: String,
        /// Description of the actual answer.
        what: String,
        /// True if weir started the proxy.
        is_started: bool,
    },
    /// An arm answers with a status that the study does not expect.
    #[error(
        "arm `{arm}` answers with status {status} under load `{load}`, but its `expect` allows {expected}"
    )]
    Unexpected {
        /// Name of the arm.
        arm: String,
        /// Name of the load.
        load: String,
        /// Status of the answer.
        status: u16,
        /// Statuses that the study expects.
        expected: String,
        /// True if weir started the proxy.
        is_started: bool,
    },
    /// The study changes settings of a whole host, which is not allowed.
    #[error("this study changes settings of the whole host: {names}")]
    HostSettings {
        /// Names of the settings.
        names: String,
    },
    /// The run is complete; nothing is left to measure.
    #[error("the run in {} is complete: there is nothing to resume", .0.display())]
    Complete(PathBuf),
    /// A run cannot be resumed.
    #[error("cannot resume this run: {0}")]
    Resume(String),
    /// The user has stopped the run while an arm was asked whether it answers.
    #[error("interrupted before an arm has answered")]
    Interrupted,
    /// A request of the study cannot be sent.
    #[error("load `{load}`: {what}")]
    Request {
        /// Name of the load.
        load: String,
        /// Description of the fault.
        what: String,
    },
}

impl From<MeasureError> for LabError {
    /// Returns the lab's own error that a proposer passes on.
    fn from(error: MeasureError) -> LabError {
        let error = match error.downcast::<LabError>() {
            Ok(error) => return *error,
            Err(error) => error,
        };
        match error.downcast::<RecordError>() {
            Ok(error) => LabError::Record(*error),
            Err(error) => LabError::Proposer(error),
        }
    }
}

impl From<AgentError> for LabError {
    fn from(error: AgentError) -> LabError {
        LabError::Host(error.into())
    }
}

impl From<KubeError> for LabError {
    fn from(error: KubeError) -> LabError {
        LabError::Host(error.into())
    }
}

impl LabError {
    /// Returns true if a server that weir did not start does not answer, or not as it should.
    fn is_of_a_server(&self) -> bool {
        matches!(
            self,
            LabError::Answer { is_started, .. } | LabError::Unexpected { is_started, .. } if !is_started
        )
    }

    /// Returns true if the user has to change the study, a file that it names, the way to a host or a server that weir
    /// did not start: an arm could not be started, or could not be sent requests, with them. Such a run leaves no
    /// folder.
    pub fn is_refused(&self) -> bool {
        match self {
            LabError::Host(error) => error.is_refused(),
            LabError::Request { .. } | LabError::Unexpected { .. } => true,
            _ => self.is_of_a_server(),
        }
    }

    /// Returns the cause of the error. Before the run's folder exists, nothing has been started, so a refusal means
    /// that the input has to change; unless a host, the way to it, or a server that weir did not start has failed.
    pub fn blame(&self, has_begun: bool) -> Blame {
        let is_of_a_host = match self {
            LabError::Host(error) => error.is_of_a_host(),
            LabError::NotInForce { .. } | LabError::Rolling { .. } => true,
            _ => false,
        };
        let is_input = match self {
            _ if is_of_a_host || self.is_of_a_server() => false,
            _ if !has_begun || self.is_refused() => true,
            LabError::Host(error) => error.is_input(),
            LabError::Resume(_) | LabError::Complete(_) | LabError::HostSettings { .. } => true,
            LabError::Record(error) => !error.is_of_writing(),
            _ => false,
        };
        if is_input { Blame::Input } else { Blame::Work }
    }

    /// Returns the name of the broken arm, if there is one: it no longer runs, or refuses requests that it took before.
    pub fn broken_arm(&self) -> Option<&str> {
        match self {
            LabError::Host(error) => error.broken_arm(),
            LabError::NotInForce { arm, .. } => Some(arm),
            _ => None,
        }
    }

    /// Returns true if the user stopped the run before there was anything to report.
    pub fn is_interruption(&self) -> bool {
        match self {
            LabError::Host(error) => error.is_interruption(),
            LabError::Interrupted => true,
            _ => false,
        }
    }

    /// Returns true if no connection could be opened.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self, LabError::Load { source: AgentError::Failed(failure), .. }
            if failure.kind == FailureKind::NoConnection)
    }

    /// Returns the remedy, if known.
    pub fn hint(&self) -> Option<String> {
        match self {
            LabError::Host(error) => error.hint(),
            LabError::Load { source, .. } => source.hint(),
            LabError::Rolling { error, .. } => error.hint(),
            LabError::NotInForce { hint, .. } => hint.clone(),
            LabError::Record(error) => error.hint().map(str::to_owned),
            LabError::Answer { is_started: false, .. } => Some(
                "check that the proxy is running and can be reached from here: weir did not start it".to_owned(),
            ),
            LabError::Answer { .. } => {
                Some("look at the proxy's error log in the run folder, under arms/".to_owned())
            }
            LabError::Unexpected { status, .. } => Some(format!(
                "write `expect: status={status}` in the study if that status is right"
            )),
            LabError::Complete(folder) => Some(format!(
                "show its results: weir report {}",
                weir_host::journal::quoted(&folder.display().to_string())
            )),
            LabError::HostSettings { .. } => Some(
                "they apply to everything on the host while the run lasts; if that is acceptable, add \
                 --allow-host-settings: weir restores them after the run"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_a_proposer_passes_on_are_themselves_again() {
        let of_records = RecordError::NotARun("run".into());
        assert!(matches!(LabError::from(MeasureError::from(of_records)), LabError::Record(_)));
        let of_the_lab = MeasureError::from(LabError::Interrupted);
        assert!(matches!(LabError::from(of_the_lab), LabError::Interrupted));
        let of_others = MeasureError::from("the disk is gone");
        assert!(matches!(LabError::from(of_others), LabError::Proposer(_)));
    }
}
