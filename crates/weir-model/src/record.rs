//! Contents of a run folder. These types are file formats: fields are only ever added, with a default, and [`FORMAT`]
//! changes if an old reader would be misled.
//!
//! A run folder holds `run.json` (a [`RunHeader`]), `study.yaml` (the original text), `records.jsonl` (a [`Record`] per
//! line, appended as soon as it is complete), `histograms.hlog` (HdrHistogram log, V2 encoding, one tagged line per
//! histogram) and, under `arms/`, each proxy's configuration as weir wrote it and as the proxy understood it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::quantity::CpuSet;
use crate::study::{Arm, CpuRoles, Study};

mod asked;
mod capacity;
mod changed;
mod confirmation;
mod generators;
mod look;
mod object;
mod observation;
mod part;
mod replaced;
mod surroundings;
mod trial;

pub use asked::{AskedRecord, FROM_FILES, RequestRecord, SpotRecord};
pub use capacity::{
    BracketRecord, BurstRecord, CapacityAnswer, CapacityEnd, CapacityRecord, CeilingOf,
    CeilingRecord, ObservedRecord, SearchStage,
};
pub use changed::{ChangedSetting, SettingEnd};
pub use confirmation::ConfirmationRecord;
pub use generators::{GeneratorShare, GeneratorStart};
pub use look::{DecidedRecord, LookRecord};
pub use object::ObjectRecord;
pub use observation::{CrowdedCpus, HeldBack, LostNode, Observation, Peer};
pub use part::{ArmConnections, ClockOffset, ConnectionCounts, LoadBlocks, PartRecord};
pub use replaced::{ReplacedPart, ReplacedRecord, replaced_sentences};
pub use surroundings::{
    CardFacts, Carried, HostFacts, HostRecord, LinkEnd, LinkRecord, RoundTrips, Surroundings,
    TripKind, Unmeasured,
};
pub use trial::{
    HeldUp, HoldUps, Phase, QuantileSummary, SliceRecord, SocketCounts, TrialRecord, Validity,
    ValidityReason,
};

/// Current format version of run folders.
pub const FORMAT: &str = "weir-run/4";

/// Header of a run, written first: the plan, the environment, and the version of weir.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunHeader {
    /// [`FORMAT`] at the time of writing.
    pub format: String,
    /// Name of the run folder.
    pub run: String,
    /// Exact version of weir, with the commit if it is known.
    pub weir_version: String,
    /// Time when the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// Folder that weir was started in, to which file names in the study are relative.
    pub folder: PathBuf,
    /// The study, checked and expanded.
    pub study: Study,
    /// CPUs that each role really had.
    pub cpus: CpuRoles,
    /// Network that really connected the roles.
    pub network: NetworkUsed,
    /// Protection that kept copies of users' configurations from using servers and files outside the run; `None` if no
    /// arm ran such a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<Protection>,
    /// Host of each role, if it was not the host that weir ran on.
    #[serde(default, skip_serializing_if = "PlacesUsed::is_nothing_said")]
    pub places: PlacesUsed,
    /// Environment of the proxies' host.
    pub environment: Environment,
    /// State of the network between the roles, and of their hosts, before the first trial; `None` if it was not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// Deviations from the study (for example CPUs shared by two roles).
    pub remarks: Vec<Remark>,
    /// True if baseline and winner are also measured one at a time after the plan.
    pub check_alone: bool,
    /// Requested share of the study's time (`weir run --time`), as typed; `None` without the option. The study
    /// contains the resulting times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Name and content of each file with the user's own parameters, without which the study cannot be understood.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<(String, String)>,
}

/// A remark that readers of a run's figures must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remark {
    /// Arm that the remark is about; `None` for the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// One sentence, which names the arm if there is one.
    pub text: String,
}

impl Remark {
    /// Creates a remark about the whole run.
    pub fn of_run(text: impl Into<String>) -> Remark {
        Remark { arm: None, text: text.into() }
    }

    /// Creates a remark about an arm, which the sentence names.
    pub fn of_arm(arm: &str, text: impl Into<String>) -> Remark {
        Remark { arm: Some(arm.to_owned()), text: text.into() }
    }
}

impl std::fmt::Display for Remark {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.text)
    }
}

/// Host of each role by the name that was given to ssh(1); `None` is the host that weir ran on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlacesUsed {
    /// Host of the load generator; if there are several, of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<String>,
    /// Hosts of further generators among which each load is distributed as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_generators: Vec<String>,
    /// Host of the proxies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Host of the origin server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Context and namespace of the cluster if the generators were its pods; `None` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Description of the proxies' pods if these were sampled; `None` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_pods: Option<String>,
}

impl PlacesUsed {
    /// Returns true if all fields have their defaults, so that records leave them out.
    fn is_nothing_said(&self) -> bool {
        *self == PlacesUsed::default()
    }

    /// Returns true if all roles were on the host that weir ran on.
    pub fn are_here(&self) -> bool {
        let here = PlacesUsed { proxy_pods: self.proxy_pods.clone(), ..PlacesUsed::default() };
        *self == here
    }

    /// Number of generators.
    pub fn generators(&self) -> usize {
        1 + self.more_generators.len()
    }

    /// Returns true if a generator was on the host of a role.
    pub fn has_generator(&self, role: &Option<String>) -> bool {
        let more = self.more_generators.iter();
        self.generator == *role || more.map(Some).any(|host| host == role.as_ref())
    }
}

impl RunHeader {
    /// Total number of CPUs of all generators.
    pub fn generator_cpus(&self) -> usize {
        self.cpus.generator.cpus().len() * self.places.generators()
    }

    /// Numbers of shared CPUs: those that the proxies had in common with weir's own roles, and those that generator and
    /// origin server had in common. CPUs of different hosts are never shared, whatever their numbers.
    pub fn shared_cpus(&self) -> (usize, usize) {
        let (cpus, places) = (&self.cpus, &self.places);
        let shared = |one: &CpuSet, other: &CpuSet, is_one_host: bool| {
            if is_one_host { one.shared_with(other).len() } else { 0 }
        };
        let with_generator = |cpus_there: &CpuSet, role: &Option<String>| {
            shared(cpus_there, &cpus.generator, places.has_generator(role))
        };
        let with_origin = shared(&cpus.proxy, &cpus.origin, places.proxy == places.origin);
        let of_weir = with_generator(&cpus.proxy, &places.proxy) + with_origin;
        (of_weir, with_generator(&cpus.origin, &places.origin))
    }
}

/// Network that connected generator, proxies and origin server.
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
    /// The roles were on several hosts, and used those hosts' own network.
    Hosts,
}

/// Protection that keeps copies of users' configurations from using servers and files outside the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Every address, socket and written file in a copy was checked to belong to the run.
    Checked,
    /// Checked likewise, and the copies ran in network namespaces without a route to any other host.
    CheckedWithoutRoute,
}

impl Protection {
    /// Returns the protection of copies on this network.
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
    /// Settings that a proxy is really running with.
    Proxy(ProxyRecord),
    /// The pilot's choice of the slice for one load.
    Pilot(PilotRecord),
    /// The measured run of one cell in one block.
    Trial(Box<TrialRecord>),
    /// End of a continuous trial over all arms, with the data that belong to none of its blocks.
    Part(Box<PartRecord>),
    /// Counters of a proxy over a load.
    Counters(CountersRecord),
    /// An arm that is not in the study was added during the run.
    Arm(Box<ArmRecord>),
    /// A decision was made from the measurements so far.
    Decision(DecisionRecord),
    /// State of a capacity search after one step.
    Bracket(BracketRecord),
    /// Result of a capacity search.
    Capacity(CapacityRecord),
    /// Result of changing a parameter that is assumed to limit an arm.
    Confirmation(ConfirmationRecord),
    /// An interim look at a load, at which comparisons may be decided.
    Look(Box<LookRecord>),
    /// All trials of one load are complete.
    LoadEnd(LoadEndRecord),
    /// The run ended.
    End(EndRecord),
}

/// An arm that was added during the run. Such arms come after those of the study, in the order of these records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArmRecord {
    /// Session that added the arm.
    pub session: u32,
    /// Description of the arm.
    pub arm: Arm,
}

/// A decision made from the measurements so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecisionRecord {
    /// Number of the session.
    pub session: u32,
    /// Load that the decision is about; empty for the whole run.
    pub load: String,
    /// Phase that the decision ended.
    pub phase: Phase,
    /// The decision: `stop`, `take 800/s`.
    pub decision: String,
    /// Reason for the decision, with figures.
    pub because: String,
}

/// Start of a session: a weir process begins to work on the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionRecord {
    /// Number of the session: 0 for the first, one more for each resume.
    pub session: u32,
    /// Time of the start, RFC 3339 in UTC.
    pub at: String,
}

/// Settings that an instance of an arm's proxy is really running with; one record for each instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProxyRecord {
    /// Session that started the proxy.
    pub session: u32,
    /// Name of the arm.
    pub arm: String,
    /// Address that the proxy listens on.
    pub address: String,
    /// Program and version as the proxy reports them, `nginx/1.22.1`; empty for a proxy that weir did
    /// not start.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// Settings read back from the proxy itself, for every parameter that can be read back.
    pub effective: BTreeMap<String, String>,
    /// Soft `nofile` limit of the process, as in /proc/PID/limits.
    pub nofile: u64,
    /// Process number of this instance's master.
    pub pid: u32,
    /// Requested levels that have no effect, as reading back has shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inert: Vec<Inert>,
    /// Parts of the original configuration that the loads use; empty if weir wrote the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedRecord>,
    /// Original state, before weir changed it, of the cluster objects that the arm's settings go into; only in the
    /// first record of an arm in each session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectRecord>,
}

/// A requested level that makes no difference to the arm it is compared with: the kernel or the proxy really does the
/// same in both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inert {
    /// ID of the parameter.
    pub id: String,
    /// Requested level.
    pub requested: String,
    /// Level that is really in force, with its name: `listen backlog 511`.
    pub effective: String,
    /// Cause of the limitation, as a clause: `the listener's own backlog is 511`.
    pub why: String,
}

/// Counts that an arm's proxy reported for one continuous trial: the differences of its own counters, by the proxy's
/// names for them. Absent if a proxy reports none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountersRecord {
    /// Number of the session.
    pub session: u32,
    /// Name of the load.
    pub load: String,
    /// Name of the arm.
    pub arm: String,
    /// Purpose of the trial.
    #[serde(default, skip_serializing_if = "Phase::is_usual")]
    pub phase: Phase,
    /// Number of the trial's first block.
    pub first_block: u32,
    /// Differences of the counters, unmeasured slices included.
    pub counted: BTreeMap<String, u64>,
}

/// Measurements and choice of a pilot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PilotRecord {
    /// Load that the pilot was for.
    pub load: String,
    /// Chosen slice, in nanoseconds.
    pub slice_ns: u64,
    /// Slice that the residues call for, in nanoseconds, if the load has no time for slices that long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_ns: Option<u64>,
    /// Rate of the open loop in requests per second, if the study gave it as a share.
    pub rate: Option<f64>,
    /// Higher rates that the pilot tried first, at which the generator was not punctual, requests per second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_rates: Vec<f64>,
    /// Residue of every arm; empty if the study gives the slice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residues: Vec<Residue>,
}

/// Time for which an arm's requests in flight remain after the load moves on to another arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Residue {
    /// Name of the arm.
    pub arm: String,
    /// The time in nanoseconds.
    pub ns: u64,
}

/// End of a load: all its trials are complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadEndRecord {
    /// Name of the load.
    pub load: String,
    /// Number of blocks measured in all sessions.
    pub blocks: u32,
}

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndRecord {
    /// Time of the end, RFC 3339 in UTC.
    pub at: String,
    /// Outcome of the run: `complete`, `interrupted` or `failed`.
    pub outcome: Outcome,
    /// The error, if the run failed; otherwise empty.
    pub error: String,
    /// Settings outside the run's own processes and namespaces that the session changed, the last changed first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedSetting>,
}

impl EndRecord {
    /// Creates the end of a run that changed no setting of a host or a cluster.
    pub fn new(at: impl Into<String>, outcome: Outcome) -> EndRecord {
        EndRecord { at: at.into(), outcome, error: String::new(), changed: Vec::new() }
    }
}

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything planned was measured.
    Complete,
    /// The user stopped the run; the measurements are kept.
    Interrupted,
    /// An error stopped the run; the measurements are kept.
    Failed,
}
