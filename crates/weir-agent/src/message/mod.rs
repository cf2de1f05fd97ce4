//! The messages: what an agent can be asked, and what it answers.
//!
//! Every [`Request`] has a number, and every [`Reply`] names it; a reply is an event (there may be any
//! number of them before the end), the end with its answer, or a failure. An ask that the server does
//! not understand is answered with a failure, and the server goes on; a frame that is no request at all
//! (there is no number to answer to) ends it, as if its peer had gone.

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
pub use wanted::{CopyJob, Missing, Wanted};
pub use watch::{Reading, WatchEnd, WatchJob};

/// What an agent can be asked, and what it answers: one type for each question, which names the type of its
/// answer and of what is told before the answer. Whoever asks gets that type and whoever serves must give it, so
/// a wrong pair does not compile.
pub trait Question: Serialize + DeserializeOwned + Send + 'static {
    /// What is told while the request goes on; [`Nothing`] for most.
    type Event: Serialize + DeserializeOwned + Send + 'static;
    /// The answer.
    type Answer: Serialize + DeserializeOwned + Send + 'static;

    /// The question as it goes over the wire.
    fn ask(self) -> Ask;
}

/// A question that is answered by doing one thing, in the order of asking.
pub trait Task: Question<Event = Nothing> {
    /// Has it done.
    ///
    /// # Errors
    /// What could not be done, and why.
    fn put_to(self, hands: &mut dyn Hands) -> Result<Self::Answer, Failure>;
}

/// No event at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Nothing {}

/// Questions by how they are answered; of each its type, its name on the wire, the types of its events
/// and its answer.
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

        /// Whoever can do every [`Task`]: a host's agent, or the model of one.
        #[allow(missing_docs, clippy::missing_errors_doc)] // Each is documented at its type.
        pub trait Hands {
            $(fn $method(&mut self, task: $task) -> Result<$answer, Failure>;)*
        }

        /// Does what is asked, where it is a [`Task`]; the answer as it goes over the wire.
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
        Wanted.missing -> Missing,
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

/// An answer as it goes over the wire.
pub(crate) fn raw(answer: &impl Serialize) -> Result<Box<RawValue>, Failure> {
    to_raw_value(answer).map_err(Failure::other)
}

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
            hint: Some("run the same build of weir on both sides".to_owned()),
            ..Failure::other(format!(
                "the agent does not understand what it is asked: {error}"
            ))
        })
    }
}

/// Whether it lives.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Ping;

/// What its clock shows: CLOCK_MONOTONIC in nanoseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Clock;

/// To end the request of this number early, at once; the request itself then ends.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Stop(pub u64);

/// What its host is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Describe;

/// To keep itself to these CPUs from now on, with all that it starts by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Settle(pub CpuSet);

/// To know the rows of users' files as well, each with its name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rows(pub Vec<(String, String)>);

/// The proxy's program and its version.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindProgram {
    /// Which.
    pub kind: ProxyKind,
    /// Where it is said to be.
    pub executable: Option<PathBuf>,
}

/// To put settings of the whole host back.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct PutBack;

/// What an earlier weir has left changed on the host, and to put it back unless only told.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Restore {
    /// Only tell.
    pub dry_run: bool,
}

/// To make certificates for these host names, which proxies that are started from then on show.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MakeCertificates(pub Vec<String>);

/// To open a listener of the origin server for the arm in this slot.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct OriginListener {
    /// The arm's slot.
    pub slot: usize,
    /// What it lacks of the server's speed, per cent.
    #[serde(default)]
    pub taken: u32,
}

/// To end the proxy in a slot and start a new instance of it with the same configuration.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Renew(pub usize);

/// To end the arm in a slot, which is free then.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct End(pub usize);

/// Whether every proxy still runs as it was started. The failure names the arm that does not.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Alive;

/// The end of the error log of the arm in a slot.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Log(pub usize);

/// What the proxy in a slot has counted of itself, by its own names.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Counters(pub usize);

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

/// Namespaces for a generator, an origin server, and each arm that is started from then on, which is linked
/// with both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworksJob {
    /// MTU of all links, bytes.
    pub mtu: u32,
    /// Source addresses of the generator towards each arm, 1 to 253.
    pub sources: u8,
}

/// To keep settings of the whole host at the levels of the arm whose turn it is, from now on. Every level is in
/// the journal before it is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSettingsJob {
    /// What is being done, for whoever finds the host's journal locked.
    pub purpose: String,
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

/// To start an origin server; arms get listeners of it by [`OriginListener`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OriginJob {
    /// What it answers.
    pub spec: OriginSpec,
    /// Sizes of content that are asked for by the request target, beside that.
    pub sizes: Vec<u64>,
    /// Where it listens when it has no namespace of its own.
    pub address: IpAddr,
    /// CPUs, a thread for each.
    pub cpus: CpuSet,
    /// Descriptors that it may need.
    pub descriptors: u64,
}

/// To configure and start a proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmJob {
    /// A slot where no arm is, 0 to 255: what tells arms that run at the same time apart.
    pub slot: usize,
    /// Its name.
    pub name: String,
    /// The program.
    pub kind: ProxyKind,
    /// Where it is said to be.
    pub executable: Option<PathBuf>,
    /// What it does.
    pub role: ProxyRole,
    /// Its settings, those of the kernel and of the whole host among them.
    pub settings: Settings,
    /// The user's configuration on this host, which the arm is to be a copy of.
    pub own: Option<OwnConfiguration>,
    /// Whether it is to log every request for samples of these.
    #[serde(default)]
    pub request_log: bool,
    /// What loads ask of that; each gets an address.
    #[serde(default)]
    pub asks: Vec<AskSpec>,
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
    /// The certificate that it shows there, PEM, where weir made it.
    pub certificate: Option<String>,
    /// Of a copy of the user's configuration: what each of the job's asks meets there, and where it is asked for that.
    pub asked: Vec<(SocketAddr, AskedRecord)>,
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
    /// What its processes took to start, nanoseconds; 0 for one that weir did not start.
    #[serde(default)]
    pub start_ns: u64,
    /// What the proxy remarks about its configuration.
    pub remarks: Vec<String>,
}

impl ArmStarted {
    /// Every address that load may be sent to for it.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let asked = self.asked.iter().map(|(at, _)| *at);
        std::iter::once(self.listen)
            .chain(self.tls_listen)
            .chain(asked)
    }
}

/// A new instance of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmRenewed {
    /// Master process.
    pub pid: u32,
}

/// To ask an arm once, from the generator's place: its status code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnceJob {
    /// Whom to ask.
    pub address: SocketAddr,
    /// Whether over TLS, as the flow's description has it.
    #[serde(default)]
    pub tls: bool,
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
