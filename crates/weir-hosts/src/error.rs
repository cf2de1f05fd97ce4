//! Errors of reaching and checking hosts.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use weir_agent::ssh::SshError;
use weir_agent::{AgentError, FailureKind};
use weir_kube::KubeError;
use weir_probe::ProbeError;

/// Reason why the hosts of a run cannot be used, or not any longer.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The proxy's program is missing, or is another program.
    #[error("{0}")]
    Program(AgentError),
    /// A host could not do the job it was given.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The host's counters cannot be read.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A host cannot be reached.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// Generators in pods cannot be started.
    #[error(transparent)]
    Kube(#[from] KubeError),
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
    /// An arm has more CPUs than the proxies have.
    #[error("arm `{arm}` has {count} CPUs, and the proxies have only {proxies}")]
    TooFewCpus {
        /// Name of the arm.
        arm: String,
        /// Number of its CPUs.
        count: usize,
        /// CPUs of the proxies.
        proxies: String,
    },
    /// The study needs network namespaces, which weir cannot create.
    #[error("this study needs network namespaces, which weir cannot create here: {0}")]
    NoNetworks(String),
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
    /// The network of a run that is resumed is not the one that it had.
    #[error("cannot resume this run: {0}")]
    Network(String),
}

impl HostError {
    /// Returns true if an arm could not be started, or could not be sent requests, with what the user wrote.
    pub fn is_refused(&self) -> bool {
        match self {
            HostError::Address { .. } | HostError::Addresses { .. } => true,
            HostError::Agent(AgentError::Failed(failure)) => {
                failure.arm().is_some() && failure.kind == FailureKind::BadInput
            }
            _ => false,
        }
    }

    /// Returns true if a host, or the way to it, has failed, whatever the user wrote.
    pub fn is_of_a_host(&self) -> bool {
        match self {
            HostError::Ssh(error) => !error.is_input(),
            HostError::Kube(error) => !error.is_input(),
            HostError::Agent(error) | HostError::Program(error) => {
                matches!(error, AgentError::Lost { .. })
            }
            _ => false,
        }
    }

    /// Returns true if the user's input has to change even after the run has begun.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            HostError::DiskSpace { .. }
                | HostError::Descriptors { .. }
                | HostError::Ports { .. }
                | HostError::Version { .. }
                | HostError::Image { .. }
                | HostError::Kube(_)
                | HostError::Cpus { .. }
                | HostError::TooFewCpus { .. }
                | HostError::Network(_)
                | HostError::Program(AgentError::Failed(_))
                | HostError::NoNetworks(_)
                | HostError::Ssh(_)
        )
    }

    /// Returns the name of the broken arm, if there is one: it no longer runs, or refuses requests that it took before.
    pub fn broken_arm(&self) -> Option<&str> {
        match self {
            HostError::Agent(AgentError::Failed(failure)) => failure.arm(),
            _ => None,
        }
    }

    /// Returns true if the user stopped the run.
    pub fn is_interruption(&self) -> bool {
        matches!(
            self,
            HostError::Kube(KubeError::Interrupted) | HostError::Ssh(SshError::Interrupted(_))
        )
    }

    /// Returns the remedy, if known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            HostError::Program(source) | HostError::Agent(source) => return source.hint(),
            HostError::Ssh(error) => return error.hint(),
            HostError::Kube(error) => return error.hint(),
            HostError::Copy { hint, .. } => return hint.clone(),
            HostError::Descriptors { needed, .. } => {
                return Some(format!(
                    "raise the limit (ulimit -n {needed}), or use fewer connections"
                ));
            }
            HostError::Image { .. } => {
                "write this weir's image with `weir kube image weir.tar`, push it, and name it with --image"
            }
            HostError::DiskSpace { .. } => {
                "make room, or choose another place with --out or TMPDIR"
            }
            HostError::NoNetworks(_) => {
                "run weir as root on one host; otherwise it can vary only settings of the proxy"
            }
            HostError::Ports { .. } => {
                "widen net.ipv4.ip_local_port_range there, use fewer connections, or run all roles on one host"
            }
            HostError::Address { .. } => {
                "give the host's address as HostName in ~/.ssh/config: weir sends load to that address"
            }
            HostError::Addresses { .. } => {
                "run that role on a host that all generators reach over one network, named with --place"
            }
            HostError::Elsewhere { .. } => {
                "weir sends load to the places that you named and to nobody else: check which program runs as weir on that host"
            }
            HostError::Version { .. } => {
                "install this version of weir there, or leave out --agent: weir then copies itself"
            }
            HostError::TooFewCpus { .. } => {
                "leave that level out, or name more CPUs for `proxy` under `cpus` in the study"
            }
            HostError::Cpus { .. } => "change `cpus` in the study, or --cpus",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
