//! Errors of a run.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use weir_agent::ssh::SshError;
use weir_agent::{AgentError, FailureKind};
use weir_kube::KubeError;
use weir_probe::ProbeError;
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
    /// The proxy's program is missing, or is another program.
    #[error("{0}")]
    Program(AgentError),
    /// A host could not do the job it was given.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The run folder cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A proposer could not decide.
    #[error("{0}")]
    Proposer(MeasureError),
    /// The host's counters cannot be read.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The load engine failed.
    #[error("load `{load}`: {source}")]
    Load {
        /// Name of the load.
        load: String,
        /// Error of the agent.
        source: AgentError,
    },
    /// A host cannot be reached.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// Generators in pods cannot be started.
    #[error(transparent)]
    Kube(#[from] KubeError),
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
    /// The image of the pods contains another version of weir.
    #[error(
        "the image {image} has weir {theirs}, and this is weir {ours}: both must be the same version"
    )]
    Image {
        /// Name of the image.
        image: String,
        /// Version of weir in the image.
        theirs: String,
        /// Version of this weir.
        ours: String,
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
    /// There is too little disk space for logs and records.
    #[error("{}: {free_mib} MiB free, this run may need {needed_mib} MiB", path.display())]
    DiskSpace {
        /// Path of the folder.
        path: PathBuf,
        /// Free space, MiB.
        free_mib: u64,
        /// Space that the run may need, MiB.
        needed_mib: u64,
    },
    /// The limit of open descriptors is too low for all connections.
    #[error(
        "this run needs {needed} open descriptors on {host}, but a process may have {limit} there"
    )]
    Descriptors {
        /// Name of the host.
        host: String,
        /// Number of descriptors needed.
        needed: u64,
        /// Hard limit of a process on that host.
        limit: u64,
    },
    /// There are too few local ports for all connections, and no further source addresses.
    #[error(
        "load `{load}` needs {needed} local ports to each arm, but {host} has {ports} \
         (net.ipv4.ip_local_port_range)"
    )]
    Ports {
        /// Name of the load.
        load: String,
        /// Name of the generator's host.
        host: String,
        /// Number of local ports needed to each arm.
        needed: u64,
        /// Number of local ports available.
        ports: u64,
    },
    /// The address of a host is not known, so others cannot send to it.
    #[error(
        "the address of {host} is not known: its name does not resolve here, or ssh reaches it through another host"
    )]
    Address {
        /// Name of the host.
        host: String,
    },
    /// Several generators would reach a host at different addresses.
    #[error("{host} is reached at {} by {}, and at {} by {}: all generators must reach it at one address", ways[0].1, ways[0].0, ways[1].1, ways[1].0)]
    Addresses {
        /// Host that the generators send to.
        host: String,
        /// Two of the generators, each with the address at which it reaches the host.
        ways: Box<[(String, IpAddr); 2]>,
    },
    /// An agent reports an address that is not its own.
    #[error(
        "the agent on {host} says that its {what} listens at {told}, but the place that was named is {named}"
    )]
    Elsewhere {
        /// Name of the agent's host.
        host: String,
        /// Role of the listener: proxy or origin server.
        what: &'static str,
        /// Address that the agent reports.
        told: SocketAddr,
        /// Address at which it should listen.
        named: String,
    },
    /// An agent is another version of weir.
    #[error(
        "{host}: the agent is weir {theirs}, and this is weir {ours}: both must be the same version"
    )]
    Version {
        /// Name of the host.
        host: String,
        /// Version of the agent.
        theirs: String,
        /// Version of this weir.
        ours: String,
    },
    /// The study names a CPU that weir may not use.
    #[error("CPUs {wanted} are asked for, but weir may use {allowed} on {host}")]
    Cpus {
        /// Name of the host.
        host: String,
        /// CPUs that the study names.
        wanted: String,
        /// CPUs that weir may use.
        allowed: String,
    },
    /// The study needs network namespaces, which weir cannot create.
    #[error("this study needs network namespaces, which weir cannot create here: {0}")]
    NoNetworks(String),
    /// The study changes settings of a whole host, which is not allowed.
    #[error("this study changes settings of the whole host: {names}")]
    HostSettings {
        /// Names of the settings.
        names: String,
    },
    /// The baseline's program, or something else that it is started with, is not available.
    #[error("the baseline, arm `{arm}`, is not available on this host: {why}")]
    Baseline {
        /// Name of the baseline.
        arm: String,
        /// Reason, for people.
        why: String,
    },
    /// The baseline's configuration cannot be copied.
    #[error("arm `{arm}`: {what}")]
    Copy {
        /// Name of the baseline.
        arm: String,
        /// Reason, with the place in the user's file.
        what: String,
        /// Remedy, if known.
        hint: Option<String>,
    },
    /// None of the arms to be compared with the baseline is available.
    #[error("nothing is left to compare: {0}")]
    NothingLeft(String),
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
            LabError::Address { .. }
            | LabError::Addresses { .. }
            | LabError::Request { .. }
            | LabError::Unexpected { .. } => true,
            _ if self.is_of_a_server() => true,
            LabError::Agent(AgentError::Failed(failure)) => {
                failure.arm().is_some() && failure.kind == FailureKind::BadInput
            }
            _ => false,
        }
    }

    /// Returns the cause of the error. Before the run's folder exists, nothing has been started, so a refusal means
    /// that the input has to change; unless a host, the way to it, or a server that weir did not start has failed.
    pub fn blame(&self, has_begun: bool) -> Blame {
        let is_of_a_host = match self {
            LabError::Ssh(error) => !error.is_input(),
            LabError::Kube(error) => !error.is_input(),
            LabError::NotInForce { .. } | LabError::Rolling { .. } => true,
            LabError::Agent(error) | LabError::Program(error) => {
                matches!(error, AgentError::Lost { .. })
            }
            _ => false,
        };
        let is_input = match self {
            _ if is_of_a_host || self.is_of_a_server() => false,
            _ if !has_begun || self.is_refused() => true,
            LabError::DiskSpace { .. }
            | LabError::Descriptors { .. }
            | LabError::Ports { .. }
            | LabError::Version { .. }
            | LabError::Image { .. }
            | LabError::Kube(_)
            | LabError::Cpus { .. }
            | LabError::Resume(_)
            | LabError::Complete(_)
            | LabError::Program(AgentError::Failed(_))
            | LabError::NoNetworks(_)
            | LabError::HostSettings { .. }
            | LabError::Ssh(_) => true,
            LabError::Record(error) => !error.is_of_writing(),
            _ => false,
        };
        if is_input { Blame::Input } else { Blame::Work }
    }

    /// Returns the name of the broken arm, if there is one: it no longer runs, or refuses requests that it took before.
    pub fn broken_arm(&self) -> Option<&str> {
        match self {
            LabError::Agent(AgentError::Failed(failure)) => failure.arm(),
            LabError::NotInForce { arm, .. } => Some(arm),
            _ => None,
        }
    }

    /// Returns true if the user stopped the run before there was anything to report.
    pub fn is_interruption(&self) -> bool {
        matches!(
            self,
            LabError::Interrupted
                | LabError::Kube(KubeError::Interrupted)
                | LabError::Ssh(SshError::Interrupted(_))
        )
    }

    /// Returns true if no connection could be opened.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self, LabError::Load { source: AgentError::Failed(failure), .. }
            if failure.kind == FailureKind::NoConnection)
    }

    /// Returns the remedy, if known.
    pub fn hint(&self) -> Option<String> {
        match self {
            LabError::Load { source, .. } | LabError::Program(source) | LabError::Agent(source) => {
                source.hint()
            }
            LabError::Ssh(error) => error.hint(),
            LabError::Kube(error) => error.hint(),
            LabError::Rolling { error, .. } => error.hint(),
            LabError::Image { .. } => Some(
                "write this weir's image with `weir kube image weir.tar`, push it, and name it with --image".to_owned(),
            ),
            LabError::Copy { hint, .. } | LabError::NotInForce { hint, .. } => hint.clone(),
            LabError::Record(error) => error.hint().map(str::to_owned),
            LabError::Answer {
                is_started: false, ..
            } => Some(
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
            LabError::DiskSpace { .. } => {
                Some("make room, or choose another place with --out or TMPDIR".to_owned())
            }
            LabError::Descriptors { needed, .. } => Some(format!(
                "raise the limit (ulimit -n {needed}), or use fewer connections"
            )),
            LabError::HostSettings { .. } => Some(
                "they apply to everything on the host while the run lasts; if that is acceptable, add \
                 --allow-host-settings: weir restores them after the run"
                    .to_owned(),
            ),
            LabError::NoNetworks(_) => Some(
                "run weir as root on one host; otherwise it can vary only settings of the proxy"
                    .to_owned(),
            ),
            LabError::Ports { .. } => Some(
                "widen net.ipv4.ip_local_port_range there, use fewer connections, or run all \
                 roles on one host"
                    .to_owned(),
            ),
            LabError::Address { .. } => Some(
                "give the host's address as HostName in ~/.ssh/config: weir sends load to that address"
                    .to_owned(),
            ),
            LabError::Addresses { .. } => Some(
                "run that role on a host that all generators reach over one network, named with --place"
                    .to_owned(),
            ),
            LabError::Elsewhere { .. } => Some(
                "weir sends load to the places that you named and to nobody else: check which program runs as weir on that host"
                    .to_owned(),
            ),
            LabError::Version { .. } => Some(
                "install this version of weir there, or leave out --agent: weir then copies itself"
                    .to_owned(),
            ),
            LabError::Cpus { .. } => Some("change `cpus` in the study, or --cpus".to_owned()),
            _ => None,
        }
    }
}
