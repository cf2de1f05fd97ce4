//! What a run leaves behind. These types are file formats: fields are only ever added, with a
//! default, and [`FORMAT`] moves when an old reader would be misled.
//!
//! A run folder holds `run.json` (a [`RunHeader`]), `study.yaml` (the text as it was),
//! `records.jsonl` (a [`Record`] per line, appended the moment it is complete),
//! `histograms.hlog` (HdrHistogram log, V2 encoding, one tagged line per histogram) and, under
//! `arms/`, each proxy's configuration as weir wrote it and as the proxy understood it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::quantity::CpuSet;
use crate::study::{Arm, CpuRoles, Study};

mod asked;
mod capacity;
mod confirmation;
mod generators;
mod look;
mod object;
mod part;
mod replaced;
mod surroundings;
mod trial;

pub use asked::{AskedRecord, FROM_FILES, RequestRecord, SpotRecord};
pub use capacity::{
    BracketRecord, BurstRecord, CapacityEnd, CapacityRecord, CeilingOf, CeilingRecord,
    ObservedRecord, SearchStage,
};
pub use confirmation::ConfirmationRecord;
pub use generators::{GeneratorShare, GeneratorStart};
pub use look::{DecidedRecord, LookRecord};
pub use object::ObjectRecord;
pub use part::{ArmConnections, ClockOffset, ConnectionCounts, LoadBlocks, LostNode, PartRecord};
pub use replaced::{ReplacedPart, ReplacedRecord, replaced_sentences};
pub use surroundings::{
    CardFacts, Carried, HostFacts, HostRecord, LinkEnd, LinkRecord, RoundTrips, Surroundings,
    TripKind, Unmeasured,
};
pub use trial::{
    HeldUp, HoldUps, Phase, QuantileSummary, SliceRecord, SocketCounts, TrialRecord, Validity,
    ValidityReason,
};

/// Version of the run folder's formats.
pub const FORMAT: &str = "weir-run/2";

/// Versions that can be read. In the first, trials of pilots were not kept, and all trials were figures.
pub const READABLE: [&str; 2] = ["weir-run/1", FORMAT];

/// First thing written: what will be done, where, and by which weir.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunHeader {
    /// [`FORMAT`] at the time of writing.
    pub format: String,
    /// Name of the run folder.
    pub run: String,
    /// Exact version of weir, with the commit when it is known.
    pub weir_version: String,
    /// When the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// The folder that weir was started in, from which relative names of files in the study start.
    #[serde(default)]
    pub folder: PathBuf,
    /// The study, checked and expanded.
    pub study: Study,
    /// CPUs that each role really had.
    pub cpus: CpuRoles,
    /// What really connected them.
    #[serde(default)]
    pub network: NetworkUsed,
    /// What kept copies of users' configurations from servers and files that are not the run's own;
    /// `None` where no arm ran one, and in runs from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<Protection>,
    /// The host of each role, where it was not the one that weir ran on.
    #[serde(default, skip_serializing_if = "PlacesUsed::is_nothing_said")]
    pub places: PlacesUsed,
    /// The machine, which is the proxies' host.
    pub environment: Environment,
    /// What the network between the roles and their hosts were like before the first trial; `None` in runs of before it
    /// was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// What could not be as the study asks (for example CPUs shared by two roles).
    pub remarks: Vec<Remark>,
    /// Whether baseline and winner are measured one at a time when the plan is done.
    #[serde(default)]
    pub check_alone: bool,
    /// The share of the study's time that was asked for (`weir run --time`), as it was typed; `None` without it, and
    /// in runs of before it was kept. The study has the times that it led to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Files with parameters of the user's own, each with its name: the study cannot be understood
    /// without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<(String, String)>,
}

/// What the reader of a run's figures must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(!from))]
#[serde(from = "RemarkText")]
pub struct Remark {
    /// The arm that it is about; `None`: the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// One sentence, which names the arm.
    pub text: String,
}

/// A remark as it may be written: before they were data, they were sentences alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum RemarkText {
    Sentence(String),
    Remark {
        #[serde(default)]
        arm: Option<String>,
        text: String,
    },
}

impl From<RemarkText> for Remark {
    fn from(text: RemarkText) -> Remark {
        match text {
            RemarkText::Sentence(text) => Remark { arm: None, text },
            RemarkText::Remark { arm, text } => Remark { arm, text },
        }
    }
}

impl Remark {
    /// About the whole run.
    pub fn of_run(text: impl Into<String>) -> Remark {
        Remark {
            arm: None,
            text: text.into(),
        }
    }

    /// About an arm, which the sentence names.
    pub fn of_arm(arm: &str, text: impl Into<String>) -> Remark {
        Remark {
            arm: Some(arm.to_owned()),
            text: text.into(),
        }
    }
}

impl std::fmt::Display for Remark {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.text)
    }
}

/// The host of each role by the name that ssh(1) was given; `None`: the host that weir ran on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlacesUsed {
    /// Of the load engine; of several generators the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<String>,
    /// Hosts of further generators, to which each load is dealt as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_generators: Vec<String>,
    /// Of the proxies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Of the origin server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Context and namespace of the cluster whose pods the generators were; `None`: they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The pods of the proxies, in words, where these were sampled; `None`: they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_pods: Option<String>,
}

impl PlacesUsed {
    /// Whether all is as it is without a word.
    fn is_nothing_said(&self) -> bool {
        *self == PlacesUsed::default()
    }

    /// Whether all roles were on the host that weir ran on.
    pub fn are_here(&self) -> bool {
        let others = PlacesUsed {
            proxy_pods: self.proxy_pods.clone(),
            ..PlacesUsed::default()
        };
        *self == others
    }

    /// How many generators there were.
    pub fn generators(&self) -> usize {
        1 + self.more_generators.len()
    }

    /// Whether one of them was on the host of a role.
    pub fn has_generator(&self, role: &Option<String>) -> bool {
        let more = self.more_generators.iter();
        self.generator == *role || more.map(Some).any(|host| host == role.as_ref())
    }
}

impl RunHeader {
    /// CPUs of all generators.
    pub fn generator_cpus(&self) -> usize {
        self.cpus.generator.cpus().len() * self.places.generators()
    }

    /// How many CPUs the proxies had in common with weir's own roles, and generator and origin server with
    /// one another. CPUs of different hosts are different ones, whatever their numbers.
    pub fn shared_cpus(&self) -> (usize, usize) {
        let (cpus, places) = (&self.cpus, &self.places);
        let shared = |one: &CpuSet, other: &CpuSet, is_one_host: bool| match is_one_host {
            true => one.shared_with(other).len(),
            false => 0,
        };
        let with_generator = |cpus_there: &CpuSet, role: &Option<String>| {
            shared(cpus_there, &cpus.generator, places.has_generator(role))
        };
        let with_origin = shared(&cpus.proxy, &cpus.origin, places.proxy == places.origin);
        let of_weir = with_generator(&cpus.proxy, &places.proxy) + with_origin;
        (of_weir, with_generator(&cpus.origin, &places.origin))
    }
}

/// What connected generator, proxies and origin server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NetworkUsed {
    /// The loopback interface: all arms have the kernel settings of the host.
    #[default]
    Loopback,
    /// Each arm had a network namespace of its own, linked by virtual Ethernet.
    Namespaces {
        /// MTU of the links, bytes.
        mtu: u32,
    },
    /// They were on several hosts, and used those hosts' own network.
    Hosts,
}

/// What keeps copies of users' configurations from servers and files that are not the run's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Every address, socket and written file in a copy was checked to be the run's own.
    Checked,
    /// The same, and the copies ran in network namespaces without a route to any other host.
    CheckedWithoutRoute,
}

impl Protection {
    /// The protection of copies that are connected so.
    pub fn of(network: NetworkUsed) -> Protection {
        match network {
            NetworkUsed::Namespaces { .. } => Protection::CheckedWithoutRoute,
            NetworkUsed::Loopback | NetworkUsed::Hosts => Protection::Checked,
        }
    }
}

/// One line of `records.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// A session began: the first, or one that resumed the run.
    Session(SessionRecord),
    /// What a proxy is really running with.
    Proxy(ProxyRecord),
    /// The pilot's choice of the slice for one load.
    Pilot(PilotRecord),
    /// The measured run of one cell in one block.
    Trial(Box<TrialRecord>),
    /// A continuous trial over all arms ended: what belongs to none of its blocks.
    Part(Box<PartRecord>),
    /// Counters of the proxies while a load lasted.
    Counters(CountersRecord),
    /// An arm that the study does not have was added while the run went on.
    Arm(Box<ArmRecord>),
    /// Somebody decided something by what had been measured.
    Decision(DecisionRecord),
    /// What a search for how much an arm carries knows after a step of it.
    Bracket(BracketRecord),
    /// What came of a search for how much an arm carries.
    Capacity(CapacityRecord),
    /// A parameter that is held to limit an arm was turned.
    Confirmation(ConfirmationRecord),
    /// A load was looked at to see what is decided.
    Look(Box<LookRecord>),
    /// All trials of one load are complete.
    LoadEnd(LoadEndRecord),
    /// The run ended.
    End(EndRecord),
}

/// An arm that was added while the run went on; it stands behind those of the study, in the order of these
/// records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArmRecord {
    /// The session that added it.
    pub session: u32,
    /// What it is.
    pub arm: Arm,
}

/// What was decided by what had been measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecisionRecord {
    /// The session.
    pub session: u32,
    /// The load that it is about; empty: the whole run.
    pub load: String,
    /// The phase that it ended.
    pub phase: Phase,
    /// What was decided: `stop`, `take 800/s`.
    pub decision: String,
    /// Why, with figures.
    pub because: String,
}

/// A weir process began to work on the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionRecord {
    /// 0 for the first, one more for each resume.
    pub session: u32,
    /// RFC 3339 in UTC.
    pub at: String,
}

/// What an instance of an arm's proxy is really running with; one for each instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProxyRecord {
    /// The session that started it.
    pub session: u32,
    /// The arm.
    pub arm: String,
    /// Address it listens on.
    pub address: String,
    /// Program and version as it names itself, `nginx/1.22.1`; empty in records from before there
    /// were several, and of a proxy that weir did not start.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// Settings as read back from the proxy itself, for every parameter that can be read back.
    pub effective: BTreeMap<String, String>,
    /// Limits of its process that matter: soft `nofile` as in /proc/PID/limits.
    pub nofile: u64,
    /// Process number of this instance's master; 0 in records from before it was kept.
    #[serde(default)]
    pub pid: u32,
    /// Levels that were asked for and change nothing as things stand, found by reading back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inert: Vec<Inert>,
    /// What the loads ask of the configuration that it is a copy of; empty where weir wrote it, and in
    /// records from before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedRecord>,
    /// What the objects of a cluster said that arms' settings go into, before weir changed them; in the first record of an
    /// arm in each session, and not in records from before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectRecord>,
}

/// A level that an arm asks for and that changes nothing against the arm it is compared with: what
/// the kernel or the proxy really does is the same as there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inert {
    /// The parameter.
    pub id: String,
    /// The level that was asked for.
    pub requested: String,
    /// What is really in force, with its name: `listen backlog 511`.
    pub effective: String,
    /// What caps it, as a clause: `the listener's own backlog is 511`.
    pub why: String,
}

/// What the proxy of an arm counted of itself in one continuous trial: the difference of its own
/// counters, by the names that it gives them. Absent for a proxy that tells nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountersRecord {
    /// The session.
    pub session: u32,
    /// The load.
    pub load: String,
    /// The arm.
    pub arm: String,
    /// What the trial was for.
    #[serde(default, skip_serializing_if = "Phase::is_usual")]
    pub phase: Phase,
    /// Number of the trial's first block.
    pub first_block: u32,
    /// What it counted, its unmeasured slices included.
    pub counted: BTreeMap<String, u64>,
}

/// What the pilot saw and chose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PilotRecord {
    /// The load it was for.
    pub load: String,
    /// The slice that was chosen, in nanoseconds.
    pub slice_ns: u64,
    /// The one that the residues ask for, where the load has no time for so long ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_ns: Option<u64>,
    /// Rate of the open loop, in requests per second, when the study gave it as a share.
    pub rate: Option<f64>,
    /// How long what an arm has in flight stays behind when the load moves on, of every arm; empty where
    /// the study gives the slice, and in runs of before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residues: Vec<Residue>,
}

/// How long what an arm has in flight stays behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Residue {
    /// The arm.
    pub arm: String,
    /// Nanoseconds.
    pub ns: u64,
}

/// All trials of one load are complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadEndRecord {
    /// The load.
    pub load: String,
    /// Blocks measured over all sessions.
    pub blocks: u32,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndRecord {
    /// RFC 3339 in UTC.
    pub at: String,
    /// `complete`, `interrupted` or `failed`.
    pub outcome: Outcome,
    /// The error, when it failed.
    pub error: String,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything that was planned was measured.
    Complete,
    /// The user stopped it; what was measured is kept.
    Interrupted,
    /// An error stopped it; what was measured is kept.
    Failed,
}
