//! The messages: what an agent can be asked, and what it answers.
//!
//! Every [`Ask`] has a number, and every [`Reply`] names it; a reply is an event (there may be any
//! number of them before the end), the end with its answer, or a failure. An ask that the server does
//! not understand is answered with a failure, and the server goes on; a frame that is no request at all
//! (there is no number to answer to) ends it, as if its peer had gone.

mod load;
mod watch;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use weir_host::journal::Restored;
use weir_model::environment::Environment;
use weir_model::quantity::CpuSet;
use weir_model::study::{
    ExternalSpec, LauncherSpec, OriginSpec, OwnConfiguration, ProxyKind, ProxyRole, Settings,
};

pub use load::{FlowEnd, FlowJob, LoadEnd, LoadEvent, LoadJob, SliceCounts, SliceJob, TraceJob};
pub use watch::{Reading, WatchEnd, WatchJob};

/// One thing that an agent is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// Its number, chosen by whoever asks and never used twice.
    pub id: u64,
    /// What.
    pub ask: Ask,
}

/// A request as it is read: what is asked is looked at only when it is known whom to answer.
#[derive(Debug, Deserialize)]
pub struct Incoming {
    /// Its number.
    pub id: u64,
    ask: Box<RawValue>,
}

impl Incoming {
    /// What is asked.
    ///
    /// # Errors
    /// Nothing that this weir knows. Both speak one version of the protocol, so that takes another
    /// build, or somebody who is no weir.
    pub fn understand(&self) -> Result<Ask, Failure> {
        serde_json::from_str(self.ask.get()).map_err(|error| Failure {
            words: format!("the agent does not understand what it is asked: {error}"),
            hint: Some("let the same build of weir run on both sides".to_owned()),
            kind: FailureKind::Other,
        })
    }
}

/// What an agent can be asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// To say that it lives: `()`.
    Ping,
    /// What its clock shows: CLOCK_MONOTONIC in nanoseconds, [`u64`].
    Clock,
    /// To end the request of this number early: `()`, at once; the request itself then ends.
    Stop(u64),
    /// What its host is: [`Description`].
    Describe,
    /// To keep itself to these CPUs from now on, with all that it starts by itself: `()`.
    Settle(CpuSet),
    /// To know the rows of users' files as well, each with its name: `()`.
    Rows(Vec<(String, String)>),
    /// The proxy's program and its version: [`Program`].
    Program {
        /// Which.
        kind: ProxyKind,
        /// Where it is said to be.
        executable: Option<PathBuf>,
    },
    /// What its host does not have of what arms are to be started with: [`Missing`].
    Missing(Wanted),
    /// To make network namespaces and link them: `()`.
    Networks(NetworksJob),
    /// To give settings of the whole host the levels of the arm whose turn it is, from now on: `()`.
    /// They are in the journal before that.
    Settings(SettingsJob),
    /// To put them back: `Vec<Restored>`.
    PutBack,
    /// What an earlier weir has left changed on the host, and to put it back unless only told:
    /// [`Leftovers`].
    Restore {
        /// Only tell.
        dry_run: bool,
    },
    /// To start an origin server with a listener for each arm: its addresses, `Vec<SocketAddr>`.
    Origin(OriginJob),
    /// To make a certificate for a host name, which all proxies show from then on: its PEM text.
    Certificate(String),
    /// To configure and start a proxy: [`ArmStarted`].
    Start(Box<ArmJob>),
    /// To end an arm's proxy and start a new instance with the same configuration:
    /// [`ArmRenewed`].
    Renew(usize),
    /// Whether every proxy still runs as it was started: `()`.
    Alive,
    /// The end of an arm's error log: text.
    Log(usize),
    /// What an arm's proxy has counted of itself: `BTreeMap<String, u64>`.
    Counters(usize),
    /// To ask an arm once, from the generator's place: its status code, `u16`.
    Once(OnceJob),
    /// To carry a load out: [`LoadEvent`]s, then [`LoadEnd`].
    Load(Box<LoadJob>),
    /// To read counters at given times: [`Reading`]s, then [`WatchEnd`].
    Watch(WatchJob),
}

/// An answer, or a part of one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    /// Number of the request.
    pub id: u64,
    /// What.
    pub body: Body,
}

/// An answer, or a part of one; what is in it follows from the request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// More is to come.
    Event(Box<RawValue>),
    /// This is all.
    Done(Box<RawValue>),
    /// It could not be done.
    Failed(Failure),
}

/// Why something could not be done, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{words}")]
pub struct Failure {
    /// What happened.
    pub words: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What the caller must know of it.
    #[serde(default)]
    pub kind: FailureKind,
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
}

/// What a host is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Kernel, CPUs, memory, limits, settings.
    pub environment: Environment,
    /// CPUs that the agent may use.
    pub cpus: CpuSet,
    /// Local ports for each source address.
    pub local_ports: u64,
    /// Descriptors that a process may have at most.
    pub most_descriptors: u64,
    /// Where the agent keeps files of proxies that run.
    pub temp_folder: PathBuf,
    /// Bytes that are free there.
    pub temp_free_bytes: u64,
    /// Whether each thread of the load engine can have a table of descriptors of its own.
    pub own_tables: bool,
    /// Why the agent may not make network namespaces; absent: it may.
    pub no_networks: Option<String>,
}

/// A program that is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Name for people and records: `nginx`.
    pub name: String,
    /// Version as it prints it.
    pub version: String,
}

/// What arms are to be started with, besides a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Ways to start a process, by name.
    pub launchers: BTreeMap<String, LauncherSpec>,
    /// Whether some arm's bytes are to go past the kernel's TCP.
    pub sockmap: bool,
}

/// What is not there of it, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// By the launcher's name.
    pub launchers: BTreeMap<String, String>,
    /// Why bytes cannot go past the kernel's TCP.
    pub sockmap: Option<String>,
}

/// Namespaces for a generator, an origin server and some arms, each arm linked with both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworksJob {
    /// How many arms.
    pub arms: usize,
    /// MTU of all links, bytes.
    pub mtu: u32,
    /// Source addresses of the generator towards each arm, 1 to 253.
    pub sources: u8,
}

/// Settings of a whole host, by arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsJob {
    /// What is being done, for whoever finds the host's journal locked.
    pub purpose: String,
    /// For each arm the value of each setting; all have the same settings.
    pub arms: Vec<BTreeMap<String, String>>,
}

/// What an earlier weir has left on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// Settings, and what becomes of them.
    pub settings: Vec<Restored>,
    /// Whether a weir that lives has them, and what it says of itself.
    pub held: Option<String>,
    /// Folders of proxies.
    pub folders: Vec<PathBuf>,
}

/// An origin server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OriginJob {
    /// What it answers.
    pub spec: OriginSpec,
    /// Sizes of content that are asked for by the request target, beside that.
    pub sizes: Vec<u64>,
    /// A listener for each of so many arms.
    pub arms: usize,
    /// Where it listens when it has no namespace of its own.
    pub address: IpAddr,
    /// CPUs, a thread for each.
    pub cpus: CpuSet,
    /// Descriptors that it may need.
    pub descriptors: u64,
}

/// A proxy to be started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmJob {
    /// Place among the arms; they are started in order.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Which program.
    pub kind: ProxyKind,
    /// Where it is said to be.
    pub executable: Option<PathBuf>,
    /// What it does.
    pub role: ProxyRole,
    /// Its settings, those of the kernel among them.
    pub settings: Settings,
    /// The user's configuration on this host, which the arm is to be a copy of.
    pub own: Option<OwnConfiguration>,
    /// Where it is, when it is not to be started.
    pub external: Option<ExternalSpec>,
    /// What it is to be started through, when that is not itself alone.
    pub launcher: Option<LauncherSpec>,
    /// Where it listens when it has no namespace of its own.
    pub address: IpAddr,
    /// Whether it has a listener for TLS as well.
    pub tls: bool,
    /// Its origin server.
    pub origin: Option<SocketAddr>,
    /// Sizes of files that are asked for.
    pub sizes: Vec<u64>,
    /// CPUs.
    pub cpus: CpuSet,
    /// Soft limit of descriptors that it starts with, unless its settings say another.
    pub nofile: u64,
}

/// A proxy that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmStarted {
    /// Where it is asked in clear.
    pub listen: SocketAddr,
    /// Where it is asked over TLS.
    pub tls_listen: Option<SocketAddr>,
    /// Program and version; empty for one that weir did not start.
    pub program: String,
    /// Its configuration as weir wrote it: names of files and their texts, the main one first.
    pub written: Vec<(String, String)>,
    /// What was changed in the user's configuration, and how to change it back, as unified diffs.
    pub patch: Option<(String, String)>,
    /// Sums of the user's files as they were read, as sha256sum(1) prints them; empty where weir wrote the
    /// configuration.
    pub sums: String,
    /// Its configuration as it understood it.
    pub effective_text: String,
    /// Levels that are really in force: of the proxy, the kernel and the process.
    pub effective: BTreeMap<String, String>,
    /// Soft limit of descriptors of its first worker; 0 for one that weir did not start.
    pub nofile: u64,
    /// Master process; 0 for one that weir did not start.
    pub pid: u32,
    /// What the proxy remarks about its configuration.
    pub remarks: Vec<String>,
}

/// A new instance of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmRenewed {
    /// Master process.
    pub pid: u32,
}

/// One request, for one response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnceJob {
    /// Whom to ask, in clear.
    pub address: SocketAddr,
    /// The flow whose first request is sent.
    pub flow: Box<FlowJob>,
    /// Files that its description names.
    pub files: BTreeMap<String, Bytes>,
    /// How long it may take.
    pub timeout: Duration,
}

/// Bytes, as base64 where they are written down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use base64::Engine as _;
        to.serialize_str(&base64::engine::general_purpose::STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        use base64::Engine as _;
        let text = String::deserialize(from)?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text);
        bytes.map(Bytes).map_err(serde::de::Error::custom)
    }
}
