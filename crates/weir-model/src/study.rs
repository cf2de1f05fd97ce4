//! A checked study: what is asked, of which system, under which load, with which arms.
//! `weir-study` is the only maker of a [`Study`]; whoever holds one may rely on what is said here.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::flow::{ArrivalsSpec as StudyArrivals, LoadSpec};
use crate::limit::Limit;
use crate::quantity::CpuSet;

mod asked;
mod ends;
mod proxy;
mod published;
mod taken;

pub use asked::{AskSpec, HOST, RequestedSpec, authority, server_name};
pub use ends::{SearchSpec, Until};
pub use proxy::{
    BesideSpec, ControllerSpec, ExternalSpec, InstanceSpec, LauncherSpec, OwnConfiguration,
    ProxyKind, ProxyRole, ProxySpec, SysctlMeans, no_server_at,
};
pub use published::{GainOf, Published, PublishedGain, PublishedQuantile, PublishedTimes};
pub use taken::{Taken, TakenFrom};

/// Settings of one proxy: parameter id (without the proxy's prefix, for example `keepalive_requests`) to its level as it is
/// written (`on`, `64k`, `1000`). Every id is in the catalog and every level passed its row's check.
pub type Settings = BTreeMap<String, String>;

/// A study, checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Study {
    /// Short name, fit for a file name: lower-case letters, digits and dashes.
    pub name: String,
    /// One line for lists.
    pub title: String,
    /// The question in the words of whoever asks.
    pub question: String,
    /// The proxy under test.
    pub proxy: ProxySpec,
    /// The origin server behind it (unused by a proxy that serves files itself).
    pub origin: OriginSpec,
    /// Loads, in the order in which they are run; at least one.
    pub loads: Vec<LoadSpec>,
    /// Arms; the first is the baseline. At least two.
    pub arms: Vec<Arm>,
    /// Ways to start a proxy's process, by name: levels of the parameter `launcher`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub launchers: BTreeMap<String, LauncherSpec>,
    /// Which arms are compared with which.
    #[serde(default)]
    pub compare: Compare,
    /// How the arms take turns.
    pub blocks: BlockSpec,
    /// When a load has blocks enough.
    #[serde(default, skip_serializing_if = "Until::is_planned")]
    pub until: Until,
    /// What a run takes at most, everything included; the loads' durations are to fit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Duration>,
    /// What counts as better.
    pub objective: Objective,
    /// The study asks for the highest rate at which all of these hold; empty: it asks which arm is better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity: Vec<Limit>,
    /// How that rate is searched for.
    #[serde(default, skip_serializing_if = "SearchSpec::is_default")]
    pub search: SearchSpec,
    /// Which CPUs each role may use; `None`: the lab shares out what there is.
    pub cpus: Option<CpuRoles>,
    /// What the arms' proxies are connected by. Studies of before there was a choice ran on loopback.
    #[serde(default = "NetworkSpec::loopback")]
    pub network: NetworkSpec,
    /// Figures that others published for the same arms, printed beside the measured ones.
    pub published: Option<Published>,
    /// What the file asks for and this machine has no room for, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What the connections and rates of all loads were multiplied by, to fit the machine at hand;
    /// `None`: they are as the file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

/// Which arms of a study are compared with which.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Each with the one named in its [`Arm::against`].
    #[default]
    Against,
    /// Besides that, every arm with every other but the A/A arm.
    Pairs,
}

/// What the origin server answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OriginSpec {
    /// Status code of every response.
    pub status: u16,
    /// Size of the content in bytes.
    pub size: u64,
    /// Media type of the content.
    pub content_type: String,
    /// How long it waits before it answers.
    pub delay: DelaySpec,
    /// Requests that wait at the same time: the others stand in line, in the order in which they came, so that it
    /// answers this over the mean of `delay` per second at most. `None`: each waits by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// A server of the user's that answers instead; the rest is as it is by default then. `None`: weir starts one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
}

impl OriginSpec {
    /// Responses per second at most, by what it is told to be: those that wait at the same time over how long each does.
    /// `None`: as many as it can.
    pub fn at_most(&self) -> Option<f64> {
        let mean = match self.delay {
            DelaySpec::None => return None,
            DelaySpec::Fixed(time) | DelaySpec::Exponential(time) => time,
            DelaySpec::Uniform(low, high) => (low + high) / 2,
        };
        let most = f64::from(self.concurrency?) / mean.as_secs_f64();
        Some(most).filter(|most| most.is_finite())
    }
}

impl Default for OriginSpec {
    fn default() -> OriginSpec {
        OriginSpec {
            status: 200,
            size: 1024,
            content_type: "text/plain".to_owned(),
            delay: DelaySpec::None,
            concurrency: None,
            address: None,
        }
    }
}

/// How long the origin server waits before it answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DelaySpec {
    /// Not at all.
    None,
    /// Always as long.
    Fixed(Duration),
    /// Evenly between two bounds.
    Uniform(Duration, Duration),
    /// Exponentially distributed with this mean.
    Exponential(Duration),
}

/// A load's place in a matrix: the numbers as the file has them. After a scale
/// ([`Study::scale`]) the load's own are others, and figures published for a place still find it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatrixCell {
    /// Name of the matrix; empty when the file gives it none.
    pub matrix: String,
    /// Connections to each arm.
    pub connections: u32,
    /// Requests per second; `None`: the matrix has connections alone.
    pub rate: Option<f64>,
}

/// The request target of the file of `size` bytes that a proxy of role `static-files` serves for
/// loads that ask for a size: the size in decimal digits, `/1024`.
pub fn file_target(size: u64) -> String {
    format!("/{size}")
}

/// Whether a text can be the name of an arm's folder beside files of weir's own, which all begin with a
/// dot: one component of a path, at most 200 bytes long, without control characters. A study allows less.
pub fn is_arm_name(text: &str) -> bool {
    let is_fit = |c: char| c != '/' && !c.is_control();
    !text.is_empty() && text.len() <= 200 && !text.starts_with('.') && text.chars().all(is_fit)
}

/// One complete configuration of the system under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Arm {
    /// Short name, unique in the study.
    pub name: String,
    /// What the arm is for.
    pub role: ArmRole,
    /// What it changes against the arm named in `against`; empty for baseline and A/A.
    pub changes: Settings,
    /// Index in [`Study::arms`] of the arm it is compared with: the baseline (0), or, in a
    /// cumulative design, the step before.
    pub against: usize,
    /// Its settings, complete.
    pub settings: Settings,
    /// Its proxy, where that is another than the study's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Box<ProxySpec>>,
    /// CPUs of its proxy, where they are others than those of all proxies ([`CpuRoles::proxy`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
    /// What it has less of than the others, in a trial that shows whether that limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
}

impl Arm {
    /// The CPUs that its proxy has.
    pub fn cpus<'a>(&'a self, roles: &'a CpuRoles) -> &'a CpuSet {
        self.cpus.as_ref().unwrap_or(&roles.proxy)
    }
}

impl Study {
    /// The proxy of an arm.
    pub fn proxy_of<'a>(&'a self, arm: &'a Arm) -> &'a ProxySpec {
        arm.proxy.as_deref().unwrap_or(&self.proxy)
    }

    /// Files that arms run or load, as far as the study names them by paths: proxies, what these are started through,
    /// and preloaded libraries. A bare name is looked for on PATH.
    pub fn programs(&self) -> impl Iterator<Item = &Path> {
        let arms = self.arms.iter();
        let proxies = arms.filter_map(|arm| self.proxy_of(arm).executable.as_deref());
        let launchers = self.launchers.values().flat_map(|launcher| {
            let prefix = launcher.prefix.first().map(Path::new);
            prefix
                .into_iter()
                .chain(launcher.preload.iter().map(PathBuf::as_path))
        });
        proxies
            .chain(launchers)
            .filter(|path| path.components().count() > 1)
    }

    /// What is decided about, by the places of both arms: every change with the arm that it is compared with, or, where
    /// all pairs are compared, every pair but the A/A arm's.
    pub fn questions(&self) -> Vec<(usize, usize)> {
        let arms = self.arms.iter().enumerate();
        let mut arms = arms.filter(|(_, arm)| arm.role != ArmRole::SameAsBaseline);
        match self.compare {
            Compare::Against => {
                let changes = arms.filter(|(_, arm)| arm.role == ArmRole::Change);
                changes.map(|(place, arm)| (place, arm.against)).collect()
            }
            Compare::Pairs => {
                let mut before = Vec::new();
                let mut pairs = Vec::new();
                for (place, _) in &mut arms {
                    pairs.extend(before.iter().map(|other| (place, *other)));
                    before.push(place);
                }
                pairs
            }
        }
    }

    /// The proxies of all arms, each kind once, in the order of the arms.
    pub fn proxy_kinds(&self) -> Vec<ProxyKind> {
        let mut kinds = Vec::new();
        for arm in &self.arms {
            let kind = self.proxy_of(arm).kind;
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }
}

/// What an arm is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArmRole {
    /// What everything else is compared with.
    Baseline,
    /// The baseline once more, in processes of its own: shows what the lab takes for a difference
    /// when there is none.
    SameAsBaseline,
    /// A change.
    Change,
}

/// How the arms take turns in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockSpec {
    /// Length of a slice, or `None`: a pilot chooses it.
    pub slice: Option<Duration>,
    /// First part of each slice that is not measured, as a share of the slice, 0..1.
    pub discard: f64,
    /// Blocks of one load at least, whatever `duration` says; never below 6.
    pub at_least: u32,
    /// Seed of the random order.
    pub seed: u64,
    /// How many instances of every proxy a load's trial is spread over, one after the other. Two
    /// processes with the same settings differ by a per cent or so, by where their memory lies; an
    /// effect of that size must not be the luck of one process.
    #[serde(default = "one_instance")]
    pub instances: u32,
}

/// Records from before there were several.
fn one_instance() -> u32 {
    1
}

impl Default for BlockSpec {
    fn default() -> BlockSpec {
        BlockSpec {
            slice: None,
            discard: 0.2,
            at_least: 12,
            seed: 1,
            instances: 8,
        }
    }
}

/// What counts as better, and how sure one must be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Objective {
    /// The metric that answers the question; the others are reported beside it.
    pub metric: Metric,
    /// Half-width of the equivalence band around 1: 0.02 is ±2 %.
    pub band: f64,
    /// Confidence of the intervals, for example 0.95.
    pub confidence: f64,
    /// What a response-time metric must stay within in every arm under every load that gives it,
    /// whatever the other arms do.
    #[serde(default)]
    pub within: Option<Duration>,
}

impl Default for Objective {
    fn default() -> Objective {
        Objective {
            metric: Metric::Rate,
            band: 0.02,
            confidence: 0.95,
            within: None,
        }
    }
}

/// What is measured and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Completed requests per second; higher is better. Closed loop only.
    Rate,
    /// Bytes received per second; higher is better. Closed loop only.
    ReceivedBytes,
    /// CPU time of the proxy's processes per completed request, in nanoseconds; lower is better.
    CpuPerRequest,
    /// Median response time, in nanoseconds; lower is better. Open loop only.
    ResponseP50,
    /// Quantile 0.99 of the response time, in nanoseconds; lower is better. Open loop only.
    ResponseP99,
}

impl Metric {
    /// Whether a larger value is the better one.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Metric::Rate | Metric::ReceivedBytes)
    }

    /// The quantile of the response time that the metric is; `None` for the others.
    pub fn response_quantile(self) -> Option<f64> {
        match self {
            Metric::ResponseP50 => Some(0.5),
            Metric::ResponseP99 => Some(0.99),
            Metric::Rate | Metric::ReceivedBytes | Metric::CpuPerRequest => None,
        }
    }
}

/// What the arms' proxies are connected by to generator and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkSpec {
    /// Namespaces or loopback.
    pub kind: NetworkKind,
    /// MTU of the links in bytes; of no meaning on loopback.
    pub mtu: u32,
}

impl NetworkSpec {
    /// What there was before there was a choice.
    fn loopback() -> NetworkSpec {
        NetworkSpec {
            kind: NetworkKind::Loopback,
            ..NetworkSpec::default()
        }
    }
}

impl Default for NetworkSpec {
    fn default() -> NetworkSpec {
        NetworkSpec {
            kind: NetworkKind::Auto,
            mtu: 1500,
        }
    }
}

/// Where the arms' proxies are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NetworkKind {
    /// In namespaces where they may be made, else on loopback.
    #[default]
    Auto,
    /// Each in a network namespace of its own, with kernel settings of its own.
    Namespaces,
    /// All on the loopback interface, with the host's kernel settings.
    Loopback,
}

/// CPUs by role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuRoles {
    /// The proxies of all arms.
    pub proxy: CpuSet,
    /// The load engine, a thread for each CPU.
    pub generator: CpuSet,
    /// The origin server.
    pub origin: CpuSet,
}
