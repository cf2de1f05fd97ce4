//! Why a run could not be made.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use weir_agent::ssh::SshError;
use weir_agent::{AgentError, FailureKind};
use weir_kube::KubeError;
use weir_probe::ProbeError;
use weir_record::RecordError;

/// Whose fault an error is, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// What was asked for has to change.
    Input,
    /// It was right; the work could not be done.
    Work,
}

/// Why a run could not be made, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The proxy's program is not there, or is something else.
    #[error("{0}")]
    Program(AgentError),
    /// A host could not do what it was asked.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The run folder.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The host's counters.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The load engine.
    #[error("load `{load}`: {source}")]
    Load {
        /// The load.
        load: String,
        /// What happened.
        source: AgentError,
    },
    /// A host cannot be reached.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// Generators in pods cannot be had.
    #[error(transparent)]
    Kube(#[from] KubeError),
    /// What configures the proxy in a cluster cannot be asked.
    #[error("{0}")]
    Controller(String),
    /// A roll-out that was under way before the run does not end.
    #[error(
        "{workload} was being rolled out before this run changed anything, and that does not end: {error}"
    )]
    Rolling {
        /// The workload.
        workload: String,
        /// What keeps it from it.
        error: Box<KubeError>,
    },
    /// An arm's settings did not come into force in the cluster.
    #[error("arm `{arm}`: {what}")]
    NotInForce {
        /// The arm.
        arm: String,
        /// What was read instead, or what the cluster says.
        what: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The image of the pods has another weir.
    #[error(
        "the image {image} has weir {theirs}, and this is weir {ours}: both must be the same version"
    )]
    Image {
        /// The image.
        image: String,
        /// Its version.
        theirs: String,
        /// This one's.
        ours: String,
    },
    /// An arm is to be measured that was ended: a mistake of weir's.
    #[error("arm `{arm}` does not run")]
    NotRunning {
        /// The arm.
        arm: String,
    },
    /// An arm does not answer as it should, before anything was measured.
    #[error("arm `{arm}` does not answer as it should: {what}")]
    Answer {
        /// The arm.
        arm: String,
        /// What came instead.
        what: String,
        /// Whether weir started the proxy.
        is_started: bool,
    },
    /// An arm answers, and its status is not one of those that the study expects.
    #[error(
        "arm `{arm}` answers with status {status} under load `{load}`, but its `expect` allows {expected}"
    )]
    Unexpected {
        /// The arm.
        arm: String,
        /// The load.
        load: String,
        /// What came.
        status: u16,
        /// What is expected.
        expected: String,
        /// Whether weir started the proxy.
        is_started: bool,
    },
    /// Too little room for logs and records.
    #[error("{}: {free_mib} MiB free, this run may need {needed_mib} MiB", path.display())]
    DiskSpace {
        /// Where.
        path: PathBuf,
        /// What there is.
        free_mib: u64,
        /// What may be needed.
        needed_mib: u64,
    },
    /// Too few descriptors for all connections.
    #[error(
        "this run needs {needed} open descriptors on {host}, but a process may have {limit} there"
    )]
    Descriptors {
        /// Where.
        host: String,
        /// What is needed.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// Too few local ports for all connections, and no further source addresses.
    #[error(
        "load `{load}` needs {needed} local ports to each arm, but {host} has {ports} \
         (net.ipv4.ip_local_port_range)"
    )]
    Ports {
        /// The load.
        load: String,
        /// The generator's host.
        host: String,
        /// What is needed.
        needed: u64,
        /// What there is.
        ports: u64,
    },
    /// Others could not send anything there.
    #[error(
        "the address of {host} is not known: its name does not resolve here, or ssh reaches it through another host"
    )]
    Address {
        /// The host.
        host: String,
    },
    /// Several generators would not ask the same listener.
    #[error("{host} is reached at {} by {}, and at {} by {}: all generators must reach it at one address", ways[0].1, ways[0].0, ways[1].1, ways[1].0)]
    Addresses {
        /// The host that is asked.
        host: String,
        /// Two of those that ask, each with the address.
        ways: Box<[(String, IpAddr); 2]>,
    },
    /// An agent tells an address of somebody else's.
    #[error(
        "the agent on {host} says that its {what} listens at {told}, but the place that was named is {named}"
    )]
    Elsewhere {
        /// The agent's host.
        host: String,
        /// What listens there.
        what: &'static str,
        /// What the agent says.
        told: SocketAddr,
        /// Where it was to be.
        named: String,
    },
    /// The weir there is another one.
    #[error(
        "{host}: the agent is weir {theirs}, and this is weir {ours}: both must be the same version"
    )]
    Version {
        /// The host.
        host: String,
        /// The agent's version.
        theirs: String,
        /// This one's.
        ours: String,
    },
    /// A CPU that the study names is not one that weir may use.
    #[error("CPUs {wanted} are asked for, but weir may use {allowed} on {host}")]
    Cpus {
        /// Where.
        host: String,
        /// Asked for.
        wanted: String,
        /// What there is.
        allowed: String,
    },
    /// The study needs network namespaces.
    #[error("this study needs network namespaces, which weir cannot create here: {0}")]
    NoNetworks(String),
    /// The study changes settings of a whole host.
    #[error("this study changes settings of the whole host: {names}")]
    HostSettings {
        /// Which.
        names: String,
    },
    /// What the baseline is started with is not there.
    #[error("the baseline, arm `{arm}`, is not available on this host: {why}")]
    Baseline {
        /// Its name.
        arm: String,
        /// Why.
        why: String,
    },
    /// There can be no copy of the baseline's configuration.
    #[error("arm `{arm}`: {what}")]
    Copy {
        /// Its name.
        arm: String,
        /// Why, with the place in the user's file.
        what: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// Nothing that was to be compared is available here.
    #[error("nothing is left to compare: {0}")]
    NothingLeft(String),
    /// There is nothing left to measure.
    #[error("the run in {} is complete: there is nothing to resume", .0.display())]
    Complete(PathBuf),
    /// A run cannot go on here.
    #[error("cannot resume this run: {0}")]
    Resume(String),
    /// The user has stopped the run while an arm was asked whether it answers.
    #[error("interrupted before an arm has answered")]
    Interrupted,
    /// A request that the study asks for cannot be sent.
    #[error("load `{load}`: {what}")]
    Request {
        /// The load.
        load: String,
        /// What is wrong.
        what: String,
    },
}

impl LabError {
    /// Whether somebody else's server does not answer, or not as it should.
    fn is_of_a_server(&self) -> bool {
        matches!(
            self,
            LabError::Answer { is_started, .. } | LabError::Unexpected { is_started, .. } if !is_started
        )
    }

    /// Whether the study, a file that it names, the way to a host or a server that weir did not start has to be
    /// changed: an arm could not be started, or asked, with what it says. Such a run leaves no folder.
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

    /// Whose fault it is. Before the run's folder was there nothing had been started, so whatever was refused
    /// has to be asked for in another way; unless a host, the way to it, or a server that weir did not start has failed.
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
        match is_input {
            true => Blame::Input,
            false => Blame::Work,
        }
    }

    /// The arm that is broken, where it is one: it does not run any more, or refuses what it took before.
    pub fn broken_arm(&self) -> Option<&str> {
        match self {
            LabError::Agent(AgentError::Failed(failure)) => failure.arm(),
            LabError::NotInForce { arm, .. } => Some(arm),
            _ => None,
        }
    }

    /// Whether the user stopped it before there was anything to report.
    pub fn is_interruption(&self) -> bool {
        matches!(
            self,
            LabError::Interrupted
                | LabError::Kube(KubeError::Interrupted)
                | LabError::Ssh(SshError::Interrupted(_))
        )
    }

    /// Whether nobody could be connected to.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self, LabError::Load { source: AgentError::Failed(failure), .. }
            if failure.kind == FailureKind::NoConnection)
    }

    /// What the user can do about it, when that is known.
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
