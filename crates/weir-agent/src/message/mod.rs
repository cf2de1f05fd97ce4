//! Messages: the requests that an agent takes, and their answers.
//!
//! Every [`Request`] has a number, and every [`Reply`] names it. A reply is an event (any number of them may precede
//! the end), the end with its answer, or a failure. A request whose content the server does not understand is answered
//! with a failure, and the server goes on. A frame that is no request at all has no number to answer to, so it ends the
//! server, as if its peer had gone.

mod failure;
mod link;
mod load;
mod sample;
mod slice;
mod wanted;
mod watch;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use weir_host::journal::Restored;
use weir_model::environment::Environment;
use weir_model::quantity::CpuSet;
use weir_model::record::{AskedRecord, HostFacts};
use weir_model::sample::SampleRow;
use weir_model::study::{
    AskSpec, ExternalSpec, LauncherSpec, OriginSpec, OwnConfiguration, ProxyKind, ProxyRole,
    Settings,
};

pub use failure::{Failure, FailureKind, Subject};
pub use link::{FactsJob, LinkFigures, LinkJob, LinkListener, LinkWay};
pub use load::{
    FlowEnd, FlowJob, LoadEnd, LoadEvent, LoadJob, SliceJob, StartLoad, TraceJob, WholeEnd,
};
pub use sample::{SampleEnd, SampleJob};
pub use wanted::{CopyJob, HostRequirements, Missing};
pub use watch::{Reading, WatchEnd, WatchJob};

/// A request to an agent. There is one type for each question, which names the type of its answer and of the events
/// before it. The client gets these types and the server must return them, so a wrong pair does not compile.
pub trait Question: Serialize + DeserializeOwned + Send + 'static {
    /// Event that is sent while the request goes on; [`Nothing`] for most.
    type Event: Serialize + DeserializeOwned + Send + 'static;
    /// Type of the answer.
    type Answer: Serialize + DeserializeOwned + Send + 'static;

    /// Converts the question to its form on the wire.
    fn ask(self) -> Ask;
}

/// A question that is answered by one action. Tasks are done in the order in which they were requested.
pub trait Task: Question<Event = Nothing> {
    /// Carries out the task.
    ///
    /// # Errors
    /// The task failed, with the reason.
    fn put_to(self, hands: &mut dyn Hands) -> Result<Self::Answer, Failure>;
}

/// Event type of questions without events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Nothing {}

/// List of all questions, grouped by the way in which they are answered. Each entry has the question's type, its name
/// on the wire, and the types of its events and its answer.
macro_rules! questions {
    (
        at_once { $($at_once:ident -> $at_once_answer:ty,)* }
        in_order { $($task:ident.$method:ident -> $answer:ty,)* }
        going_on { $($long:ident($event:ty) -> $end:ty,)* }
    ) => {
        /// Any question.
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs)] // Each is documented at its type.
        pub enum Ask {
            $($at_once($at_once),)*
            $($task(Box<$task>),)*
            $($long(Box<$long>),)*
        }

        $(impl Question for $at_once {
            type Event = Nothing;
            type Answer = $at_once_answer;
            fn ask(self) -> Ask { Ask::$at_once(self) }
        })*
        $(impl Question for $task {
            type Event = Nothing;
            type Answer = $answer;
            fn ask(self) -> Ask { Ask::$task(Box::new(self)) }
        }
        impl Task for $task {
            fn put_to(self, hands: &mut dyn Hands) -> Result<$answer, Failure> { hands.$method(self) }
        })*
        $(impl Question for $long {
            type Event = $event;
            type Answer = $end;
            fn ask(self) -> Ask { Ask::$long(Box::new(self)) }
        })*

        /// Something that can carry out every [`Task`]: a host's agent, or a model of one.
        #[allow(missing_docs, clippy::missing_errors_doc)] // Each is documented at its type.
        pub trait Hands {
            $(fn $method(&mut self, task: $task) -> Result<$answer, Failure>;)*
        }

        /// Carries out a question if it is a [`Task`]; returns the answer in its form on the wire.
        pub(crate) fn answered(ask: Ask, hands: &mut dyn Hands) -> Result<Box<RawValue>, Failure> {
            match ask {
                $(Ask::$task(task) => raw(&task.put_to(hands)?),)*
                $(Ask::$at_once(_) => raw(&()),)*
                $(Ask::$long(_) => raw(&()),)*
            }
        }
    };
}

questions! {
    at_once {
        Ping -> (),
        Clock -> u64,
        Stop -> (),
        StartLoad -> (),
    }
    in_order {
        Describe.describe -> Description,
        Settle.settle -> (),
        Rows.rows -> (),
        FindProgram.find_program -> Program,
        HostRequirements.missing -> Missing,
        NetworksJob.make_networks -> (),
        HostSettingsJob.begin_settings -> (),
        PutBack.put_back -> Vec<Restored>,
        Restore.restore -> Leftovers,
        OriginJob.start_origin -> (),
        OriginListener.open_origin -> SocketAddr,
        MakeCertificates.make_certificates -> (),
        ArmJob.start -> ArmStarted,
        Renew.renew -> ArmRenewed,
        End.end_arm -> (),
        Alive.alive -> (),
        Log.log -> String,
        Counters.counters -> BTreeMap<String, u64>,
        OnceJob.once -> u16,
        LinkListener.listen_for_link -> SocketAddr,
        LinkJob.measure_link -> LinkFigures,
        FactsJob.facts -> HostFacts,
    }
    going_on {
        LoadJob(LoadEvent) -> LoadEnd,
        WatchJob(Reading) -> WatchEnd,
        SampleJob(Vec<SampleRow>) -> SampleEnd,
    }
}

/// Converts an answer to its form on the wire.
pub(crate) fn raw(answer: &impl Serialize) -> Result<Box<RawValue>, Failure> {
    to_raw_value(answer).map_err(Failure::other)
}

/// A request to an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// Number, chosen by the client and never used twice.
    pub id: u64,
    /// The question.
    pub ask: Ask,
}

/// A request as it is read. Its question is parsed later, once the number to answer to is known.
#[derive(Debug, Deserialize)]
pub struct Incoming {
    /// Number of the request.
    pub id: u64,
    ask: Box<RawValue>,
}

impl Incoming {
    /// Parses the question.
    ///
    /// # Errors
    /// The question is unknown to this weir. Both sides speak the same protocol version, so the peer is another build,
    /// or not weir at all.
    pub fn understand(&self) -> Result<Ask, Failure> {
        serde_json::from_str(self.ask.get()).map_err(|error| Failure {
            hint: Some("run the same build of weir on both sides".to_owned()),
            ..Failure::other(format!("the agent does not understand what it is asked: {error}"))
        })
    }
}

/// Request for a sign of life.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Ping;

/// Request for the agent's CLOCK_MONOTONIC, in nanoseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Clock;

/// Request to end the long-running request of this number early. It is handled at once; the other request then ends.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Stop(pub u64);

/// Request for a [`Description`] of the host.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Describe;

/// Request to restrict the agent, and its own threads that it starts later, to these CPUs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Settle(pub CpuSet);

/// Request to add the catalog rows of users' files, each with its file name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rows(pub Vec<(String, String)>);

/// Request for the proxy's program and its version.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindProgram {
    /// The proxy to look for.
    pub kind: ProxyKind,
    /// Path of its executable as the user gave it; `None`: to be searched for.
    pub executable: Option<PathBuf>,
}

/// Request to put the settings of the whole host back.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct PutBack;

/// Request for the changes that an earlier weir left on the host. They are put back, unless it is a dry run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Restore {
    /// True if changes are only listed.
    pub dry_run: bool,
}

/// Request to make certificates for these host names. Proxies that are started later use them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MakeCertificates(pub Vec<String>);

/// Request to open a listener of the origin server for the arm in this slot.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct OriginListener {
    /// The arm's slot.
    pub slot: usize,
    /// Share of the server's speed that is taken from this listener, per cent.
    #[serde(default)]
    pub taken: u32,
}

/// Request to end the proxy in a slot and start a new instance of it with the same configuration.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Renew(pub usize);

/// Request to end the arm in a slot, which frees the slot.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct End(pub usize);

/// Request to check that every proxy still runs as it was started. The failure names the arm whose proxy does not.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Alive;

/// Request for the end of the error log of the arm in a slot.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Log(pub usize);

/// Request for the counters of the proxy in a slot, by the proxy's own names.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Counters(pub usize);

/// An answer, or a part of one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    /// Number of the request.
    pub id: u64,
    /// Content of the reply.
    pub body: Body,
}

/// Content of a reply. Its type follows from the request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// An intermediate part; more parts follow.
    Event(Box<RawValue>),
    /// The answer.
    Done(Box<RawValue>),
    /// The request failed.
    Failed(Failure),
}

/// Description of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Kernel, CPUs, memory, limits, settings.
    pub environment: Environment,
    /// CPUs that the agent may use.
    pub cpus: CpuSet,
    /// Number of local ports for each source address.
    pub local_ports: u64,
    /// Maximum number of descriptors of a process.
    pub most_descriptors: u64,
    /// Folder in which the agent keeps files of running proxies.
    pub temp_folder: PathBuf,
    /// Free bytes in that folder.
    pub temp_free_bytes: u64,
    /// True if each thread of the load engine can have a descriptor table of its own.
    pub own_tables: bool,
    /// Reason why the agent may not create network namespaces; `None`: it may.
    pub no_networks: Option<String>,
}

/// A program that is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Name for people and records: `nginx`.
    pub name: String,
    /// Version as the program prints it.
    pub version: String,
    /// SHA-256 of its file and its path, as sha256sum(1) prints them; empty if weir does not start it.
    pub sum: String,
}

/// Request to make namespaces for a generator, an origin server, and each arm that is started later. Each arm is linked
/// with both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworksJob {
    /// MTU of all links, bytes.
    pub mtu: u32,
    /// Number of source addresses of the generator towards each arm, 1 to 253.
    pub sources: u8,
}

/// Request to keep settings of the whole host at the levels of the arm whose turn it is, from now on. Every level is
/// written to the journal before it is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSettingsJob {
    /// Description of the run, shown to anybody who finds the host's journal locked.
    pub purpose: String,
}

/// Changes that an earlier weir left on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// Settings, and what became of each.
    pub settings: Vec<Restored>,
    /// Description of the running weir that still holds the settings; `None` if there is none.
    pub held: Option<String>,
    /// Folders of proxies.
    pub folders: Vec<PathBuf>,
}

/// Request to start an origin server. Arms get listeners of it by [`OriginListener`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OriginJob {
    /// Description of the server's answers.
    pub spec: OriginSpec,
    /// Content sizes that request targets name, in addition to the description's.
    pub sizes: Vec<u64>,
    /// Address to listen on if the server has no namespace of its own.
    pub address: IpAddr,
    /// CPUs; one thread runs on each.
    pub cpus: CpuSet,
    /// File descriptors that the server may need.
    pub descriptors: u64,
}

/// Request to configure and start a proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmJob {
    /// A free slot, 0 to 255. It tells arms that run at the same time apart.
    pub slot: usize,
    /// Name of the arm.
    pub name: String,
    /// Kind of the proxy's program.
    pub kind: ProxyKind,
    /// Path of the executable as the user gave it; `None`: to be searched for.
    pub executable: Option<PathBuf>,
    /// Task of the proxy.
    pub role: ProxyRole,
    /// Settings of the arm, including those of the kernel and of the whole host.
    pub settings: Settings,
    /// The user's configuration on this host, of which the arm is a copy; `None`: weir writes the configuration.
    pub own: Option<OwnConfiguration>,
    /// True if the proxy logs every request, for samples of requests.
    #[serde(default)]
    pub request_log: bool,
    /// Requests that loads send to the copy of the user's configuration. Each entry gets an address.
    #[serde(default)]
    pub asks: Vec<AskSpec>,
    /// Address of a running proxy, which is used instead of starting one; `None`: weir starts the proxy.
    pub external: Option<ExternalSpec>,
    /// Launcher that the proxy is started through; `None`: it is started directly.
    pub launcher: Option<LauncherSpec>,
    /// Address to listen on if the arm has no namespace of its own.
    pub address: IpAddr,
    /// True if the proxy also listens for TLS.
    pub tls: bool,
    /// Address of the arm's origin server.
    pub origin: Option<SocketAddr>,
    /// Sizes of the files that are requested, bytes.
    pub sizes: Vec<u64>,
    /// CPUs of the proxy.
    pub cpus: CpuSet,
    /// Soft limit of descriptors that the proxy starts with, unless its settings name another.
    pub nofile: u64,
}

/// A running proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmStarted {
    /// Address for requests without TLS.
    pub listen: SocketAddr,
    /// Address for requests over TLS; `None`: no such listener.
    pub tls_listen: Option<SocketAddr>,
    /// Certificate of the TLS listener, PEM; `None` if weir did not make one.
    pub certificate: Option<String>,
    /// For a copy of the user's configuration: the address of each of the job's asks, and the parts of the
    /// configuration that answer it.
    pub asked: Vec<(SocketAddr, AskedRecord)>,
    /// Program and version; empty if weir did not start the proxy.
    pub program: String,
    /// Configuration as weir wrote it: names of files and their texts, the main file first.
    pub written: Vec<(String, String)>,
    /// Changes to the user's configuration, and how to undo them, as unified diffs; `None` if there was nothing to
    /// change.
    pub patch: Option<(String, String)>,
    /// Checksums of the user's files as they were read, in the format of sha256sum(1); empty if weir wrote the
    /// configuration.
    pub sums: String,
    /// Configuration as the proxy understood it.
    pub effective_text: String,
    /// Levels that are in force: of the proxy, the kernel and the process.
    pub effective: BTreeMap<String, String>,
    /// Soft limit of descriptors of the first worker; 0 if weir did not start the proxy.
    pub nofile: u64,
    /// Process number of the master process; 0 if weir did not start the proxy.
    pub pid: u32,
    /// Time that the proxy's processes took to start, nanoseconds; 0 if weir did not start the proxy.
    #[serde(default)]
    pub start_ns: u64,
    /// Remarks of the proxy about its configuration.
    pub remarks: Vec<String>,
}

impl ArmStarted {
    /// Returns every address of the proxy that load may be sent to.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.listen)
            .chain(self.tls_listen)
            .chain(self.asked.iter().map(|(at, _)| *at))
    }
}

/// A new instance of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmRenewed {
    /// Process number of the master process.
    pub pid: u32,
}

/// Request to send one request to an arm, from the generator's place. The answer is the response's status code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnceJob {
    /// Address to send to.
    pub address: SocketAddr,
    /// True to use TLS, as the flow's description specifies it.
    #[serde(default)]
    pub tls: bool,
    /// The flow whose first request is sent.
    pub flow: Box<FlowJob>,
    /// Contents of the files that the flow's description names, by that name.
    pub files: BTreeMap<String, Bytes>,
    /// Time limit.
    pub timeout: Duration,
}

/// Bytes, serialized as base64.
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
