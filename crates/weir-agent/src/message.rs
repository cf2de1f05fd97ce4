//! The messages: what an agent can be asked, and what it answers.
//!
//! Every [`Ask`] has a number, and every [`Reply`] names it; a reply is an event (there may be any
//! number of them before the end), the end with its answer, or a failure. An ask that the server does
//! not understand is answered with a failure, and the server goes on; a frame that is no request at all
//! (there is no number to answer to) ends it, as if its peer had gone.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use weir_host::journal::Restored;
use weir_model::environment::Environment;
use weir_model::load::{Arrivals, Censored, ErrorCount, Lifetime};
use weir_model::load_report::TlsReport;
use weir_model::quantity::CpuSet;
use weir_model::record::ConnectionCounts;
use weir_model::study::{OriginSpec, ProxyKind, ProxyRole, Settings, TlsOffer};

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
    /// Its configuration as weir wrote it.
    pub written: String,
    /// Its configuration as it understood it.
    pub effective_text: String,
    /// Levels that are really in force: of the proxy, the kernel and the process.
    pub effective: BTreeMap<String, String>,
    /// Soft limit of descriptors of its first worker.
    pub nofile: u64,
    /// Master process.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnceJob {
    /// Whom to ask, in clear.
    pub address: SocketAddr,
    /// The request's bytes.
    pub request: Bytes,
    /// Whether it is a HEAD request.
    pub head: bool,
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

/// A continuous trial over several arms, as the load engine sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadJob {
    /// One for each arm.
    pub flows: Vec<FlowJob>,
    /// When the connections that ask do so.
    pub arrivals: Arrivals,
    /// Who has the load when.
    pub slices: Vec<SliceJob>,
    /// How long is waited at the end for what is still in flight.
    pub drain: Duration,
    /// The engine's threads, each with its CPU.
    pub threads: Vec<Option<u32>>,
    /// Descriptors that one of them may need.
    pub descriptors: u64,
}

/// All that the engine has to know about one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowJob {
    /// Place among the arms.
    pub arm: usize,
    /// Whom to ask.
    pub peer: SocketAddr,
    /// How, over TLS; absent: in clear.
    pub tls: Option<TlsJob>,
    /// The request, as it goes over the wire (inside TLS where there is TLS).
    pub request: Bytes,
    /// Whether it is a HEAD request.
    pub head: bool,
    /// Connections that ask.
    pub connections: u32,
    /// How long each of them is used.
    pub lifetime: Lifetime,
    /// Connections beside those, opened before the trial, never used, and opened again when the
    /// proxy closes them.
    pub held: u32,
    /// Addresses to connect from, in turn; empty: the kernel's choice is enough.
    pub sources: Vec<Ipv4Addr>,
    /// How long a response may take.
    pub timeout: Duration,
}

/// TLS as a client speaks it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TlsJob {
    /// What it offers.
    pub offer: TlsOffer,
    /// Name for SNI, and that the certificate is for.
    pub server_name: String,
    /// The one certificate to trust, PEM.
    pub trust: String,
}

/// One slice; times in nanoseconds since the trial's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceJob {
    /// The arm that has the load.
    pub arm: usize,
    /// Begin.
    pub start: u64,
    /// Figures are taken from here on.
    pub measure_from: u64,
    /// End.
    pub end: u64,
}

/// What happens while a load goes on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadEvent {
    /// All connections are open, and slices begin.
    Started {
        /// Start of the trial by the generator's CLOCK_MONOTONIC, nanoseconds.
        at_ns: u64,
    },
    /// A slice and all its requests have ended.
    Slice {
        /// Its place.
        slice: usize,
        /// What the connections that ask have counted.
        counts: Box<SliceCounts>,
    },
}

/// What a slice counted; the fields of `weir_load::SliceData` that records are made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SliceCounts {
    /// Requests sent in the measured part.
    pub offered: u64,
    /// Responses completed in the measured part.
    pub completed: u64,
    /// Responses to requests intended anywhere in the slice.
    pub completed_whole: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Connections opened again.
    pub reconnects: u64,
    /// Responses by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Errors.
    pub errors: Vec<ErrorCount>,
    /// Requests that never ended.
    pub censored: Censored,
    /// CPU time of the generator's threads, nanoseconds.
    pub cpu_ns: u64,
    /// Response times, HdrHistogram V2.
    pub response: Bytes,
    /// Service times.
    pub service: Bytes,
    /// Dispatch lags.
    pub dispatch_lag: Bytes,
    /// Response times above the histogram's range.
    pub overflow: u64,
}

/// What a load leaves beside its slices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadEnd {
    /// By arm.
    pub arms: Vec<FlowEnd>,
    /// Errors that belong to no slice.
    pub errors: Vec<ErrorCount>,
    /// Threads of the engine.
    pub threads: u32,
    /// How often received bytes had to wait for a buffer.
    pub starved: u64,
    /// How the kernel was asked: `io_uring` or `epoll`.
    pub io: String,
}

/// What became of the connections to one arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowEnd {
    /// Those that ask.
    pub asking: ConnectionCounts,
    /// Those that are held.
    pub held: ConnectionCounts,
    /// Handshakes of those that ask; absent in clear.
    pub tls: Option<TlsReport>,
}

/// Counters to be read at the begin of every slice and at the end of the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchJob {
    /// The trial's start by this host's CLOCK_MONOTONIC, nanoseconds.
    pub start_ns: u64,
    /// Begin of each slice since then, nanoseconds; and the end of the last.
    pub times: Vec<u64>,
    /// The arm of each slice.
    pub arms: Vec<usize>,
    /// Whether the proxies are on this host, and the CPUs that they have.
    pub proxies: Option<CpuSet>,
    /// Whether the generator is, and its CPUs.
    pub generator: Option<CpuSet>,
    /// Whether the origin server is.
    pub origin: bool,
}

/// Counters at the begin of a slice, as far as they are this host's; the others are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The slice; their number at the end of the trial.
    pub slice: usize,
    /// The arm whose counters these are.
    pub arm: usize,
    /// CPU time of the arm's proxy, nanoseconds.
    pub proxy_cpu_ns: u64,
    /// Requests that the arm's origin listener has received.
    pub origin_requests: u64,
    /// Connections that it has accepted.
    pub origin_connects: u64,
    /// CPU time of the origin server.
    pub origin_cpu_ns: u64,
    /// Steal of the proxy's CPUs.
    pub proxy_steal_ns: u64,
    /// Idle time of the proxy's CPUs.
    pub proxy_idle_ns: u64,
    /// Steal of the generator's CPUs.
    pub generator_steal_ns: u64,
    /// How late it was read, nanoseconds.
    pub late_ns: u64,
}

impl Reading {
    /// Puts what another host has read at the same time beside this: every counter is one host's.
    pub fn add(&mut self, other: &Reading) {
        self.proxy_cpu_ns += other.proxy_cpu_ns;
        self.origin_requests += other.origin_requests;
        self.origin_connects += other.origin_connects;
        self.origin_cpu_ns += other.origin_cpu_ns;
        self.proxy_steal_ns += other.proxy_steal_ns;
        self.proxy_idle_ns += other.proxy_idle_ns;
        self.generator_steal_ns += other.generator_steal_ns;
        self.late_ns = self.late_ns.max(other.late_ns);
    }
}

/// What a watch leaves beside its readings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchEnd {
    /// Connections that found a full listen queue meanwhile, whoever listened.
    pub listen_overflows: u64,
    /// Connections that found the arm's own listen queue full, where it has a namespace of its own.
    pub arm_overflows: Vec<u64>,
    /// Memory of each arm's proxy before the last slice, bytes.
    pub memory: Vec<u64>,
    /// How late a reading was at most, nanoseconds.
    pub late_ns: u64,
}
