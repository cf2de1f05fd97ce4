//! A checked study: the question, the system under test, the loads and the arms. Only `weir-study` creates a [`Study`];
//! code that has one may rely on the properties documented here.

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
    OwnRequests, ProxyKind, ProxyRole, ProxySpec, SysctlMeans, no_server_at,
};
pub use published::{GainOf, Published, PublishedGain, PublishedQuantile, PublishedTimes};
pub use taken::{Reduction, TakenFrom};

/// Settings of one proxy: parameter id (without the proxy's prefix, for example `keepalive_requests`) to its level as
/// text (`on`, `64k`, `1000`). Every id is in the catalog, and every level passed the check of its parameter.
pub type Settings = BTreeMap<String, String>;

/// A checked study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Study {
    /// Short name that is usable as a file name: lower-case letters, digits and dashes.
    pub name: String,
    /// Title of one line for lists.
    pub title: String,
    /// The study's question in its author's words.
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
    /// Rule for the comparisons between arms.
    pub compare: Compare,
    /// Rules by which the arms take turns.
    pub blocks: BlockSpec,
    /// Rule for the number of blocks of a load.
    #[serde(default, skip_serializing_if = "Until::is_planned")]
    pub until: Until,
    /// Maximum total time of a run; the loads' durations must fit in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Duration>,
    /// Criterion for a better arm.
    pub objective: Objective,
    /// Limits of the capacity objective: the study searches for the highest rate at which all of them hold. Empty if
    /// the study compares arms instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity: Vec<Limit>,
    /// Settings of the capacity search.
    #[serde(default, skip_serializing_if = "SearchSpec::is_default")]
    pub search: SearchSpec,
    /// CPUs that each role may use; `None`: the lab distributes the available CPUs.
    pub cpus: Option<CpuRoles>,
    /// Network that connects the arms' proxies.
    pub network: NetworkSpec,
    /// Figures that others published for the same arms, printed next to the measured ones.
    pub published: Option<Published>,
    /// Parts of the study file that this machine has no capacity for, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Factor by which the connections and rates of all loads were multiplied to fit this machine; `None`: they are as
    /// in the study file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

/// Rule for the comparisons between the arms of a study.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Each arm with the one in its [`Arm::against`].
    #[default]
    Against,
    /// Each arm with the one in its [`Arm::against`], and also every arm with every other except the A/A arm.
    Pairs,
    /// The only change with the baseline, by rates of closed loops and response times of open ones together.
    Overall,
}

/// Responses of the origin server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OriginSpec {
    /// Status code of every response.
    pub status: u16,
    /// Size of the content in bytes.
    pub size: u64,
    /// Media type of the content.
    pub content_type: String,
    /// Delay of each response.
    pub delay: DelaySpec,
    /// Maximum number of requests that are delayed at the same time. Others wait in a queue, in order of arrival, so
    /// that the origin answers at most this number over the mean of `delay` per second. `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Address of the user's own origin server; all other fields have their defaults then. `None`: weir starts one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
}

impl OriginSpec {
    /// Maximum rate of responses per second that the settings imply: `concurrency` over the mean of `delay`. `None` if
    /// they imply no limit.
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

/// Delay of the origin server's responses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DelaySpec {
    /// No delay.
    None,
    /// The same delay for every response.
    Fixed(Duration),
    /// Delay uniformly distributed between two bounds.
    Uniform(Duration, Duration),
    /// Delay exponentially distributed with this mean.
    Exponential(Duration),
}

/// Position of a load in a matrix: the numbers as in the study file. If the study is scaled ([`Study::scale`]), the
/// load's own numbers differ, but published figures are still found by these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatrixCell {
    /// Name of the matrix; empty if the file gives none.
    pub matrix: String,
    /// Connections to each arm.
    pub connections: u32,
    /// Requests per second; `None` if the matrix has only connections.
    pub rate: Option<f64>,
}

/// Returns the request target of the file of `size` bytes that a proxy of role `static-files` serves for loads with a
/// file size: the size in decimal digits, `/1024`.
pub fn file_target(size: u64) -> String {
    format!("/{size}")
}

/// Returns true if a text is valid as the name of an arm's folder next to weir's own files, which all begin with a dot:
/// one component of a path, at most 200 bytes long, without control characters. Studies are stricter.
pub fn is_arm_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 200
        && !text.starts_with('.')
        && text.chars().all(|c| c != '/' && !c.is_control())
}

/// One complete configuration of the system under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Arm {
    /// Short name, unique in the study.
    pub name: String,
    /// Purpose of the arm.
    pub role: ArmRole,
    /// Settings that differ from the arm in `against`; empty for baseline and A/A.
    pub changes: Settings,
    /// Index in [`Study::arms`] of the arm it is compared with: the baseline (0) or, in a cumulative design, the
    /// previous step.
    pub against: usize,
    /// All settings of the arm, including unchanged ones.
    pub settings: Settings,
    /// Proxy of the arm; `None` if it is the study's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Box<ProxySpec>>,
    /// CPUs of the arm's proxy; `None` if they are the common ones ([`CpuRoles::proxy`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
    /// Resource that is reduced for this arm, in a trial that shows whether it limits the arm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Reduction>,
}

impl Arm {
    /// Returns the CPUs of the arm's proxy.
    pub fn cpus<'a>(&'a self, roles: &'a CpuRoles) -> &'a CpuSet {
        self.cpus.as_ref().unwrap_or(&roles.proxy)
    }

    /// Returns the number of the proxy's CPUs if it is a setting of the arm.
    pub fn cpu_count(&self) -> Option<usize> {
        self.settings.get(CPU_COUNT)?.parse().ok()
    }
}

impl Study {
    /// Returns the proxy of an arm.
    pub fn proxy_of<'a>(&'a self, arm: &'a Arm) -> &'a ProxySpec {
        arm.proxy.as_deref().unwrap_or(&self.proxy)
    }

    /// Files that arms run or load, as far as the study names them by paths: proxies, what these are started through,
    /// and preloaded libraries. A bare name is looked for on PATH.
    pub fn programs(&self) -> impl Iterator<Item = &Path> {
        let proxies = self.arms.iter().filter_map(|arm| self.proxy_of(arm).executable.as_deref());
        let launchers = self.launchers.values().flat_map(|launcher| {
            launcher
                .prefix
                .first()
                .map(Path::new)
                .into_iter()
                .chain(launcher.preload.iter().map(PathBuf::as_path))
        });
        proxies.chain(launchers).filter(|path| path.components().count() > 1)
    }

    /// Comparisons that the study decides, by the indices of both arms: every change with the arm it is compared with
    /// or, if all pairs are compared, every pair without the A/A arm.
    pub fn questions(&self) -> Vec<(usize, usize)> {
        let mut arms =
            self.arms.iter().enumerate().filter(|(_, arm)| arm.role != ArmRole::SameAsBaseline);
        match self.compare {
            Compare::Against | Compare::Overall => arms
                .filter(|(_, arm)| arm.role == ArmRole::Change)
                .map(|(place, arm)| (place, arm.against))
                .collect(),
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

    /// Kinds of the arms' proxies without duplicates, in the order of the arms.
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

/// Purpose of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArmRole {
    /// The arm that all others are compared with, directly or step by step.
    Baseline,
    /// A second copy of the baseline, in processes of its own: shows the differences that the lab reports if there is
    /// none (A/A).
    SameAsBaseline,
    /// A changed configuration.
    Change,
}

/// Rules by which the arms take turns in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockSpec {
    /// Length of a slice; `None`: a pilot chooses it.
    pub slice: Option<Duration>,
    /// Share (0..1) of each slice, at its start, that is not measured.
    pub discard: f64,
    /// Minimum number of blocks of one load, regardless of `duration`; never below 6.
    pub at_least: u32,
    /// Seed of the random order.
    pub seed: u64,
    /// Number of instances of every proxy over which a load's trial is spread, one after the other. Two processes with
    /// the same settings differ by about a per cent, depending on the location of their memory; an effect of that size
    /// must not be the luck of one process.
    pub instances: u32,
}

impl Default for BlockSpec {
    fn default() -> BlockSpec {
        BlockSpec { slice: None, discard: 0.2, at_least: 12, seed: 1, instances: 8 }
    }
}

/// Criterion for a better arm, and the required confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Objective {
    /// The metric that answers the question; the others are reported beside it.
    pub metric: Metric,
    /// Half-width of the equivalence band around 1: 0.02 is ±2 %.
    pub band: f64,
    /// Confidence of the intervals, for example 0.95.
    pub confidence: f64,
    /// Bound of a response-time metric for every arm under every load that gives it, regardless of the other arms.
    pub within: Option<Duration>,
}

impl Default for Objective {
    fn default() -> Objective {
        Objective { metric: Metric::Rate, band: 0.02, confidence: 0.95, within: None }
    }
}

/// A quantity that is measured and compared.
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
    /// Returns true if a larger value is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Metric::Rate | Metric::ReceivedBytes)
    }

    /// Quantile of the response time that the metric stands for; `None` for the other metrics.
    pub fn response_quantile(self) -> Option<f64> {
        match self {
            Metric::ResponseP50 => Some(0.5),
            Metric::ResponseP99 => Some(0.99),
            Metric::Rate | Metric::ReceivedBytes | Metric::CpuPerRequest => None,
        }
    }
}

/// Network that connects the arms' proxies to generator and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkSpec {
    /// Namespaces or loopback.
    pub kind: NetworkKind,
    /// MTU of the links in bytes; not used on loopback.
    pub mtu: u32,
}

impl Default for NetworkSpec {
    fn default() -> NetworkSpec {
        NetworkSpec { kind: NetworkKind::Auto, mtu: 1500 }
    }
}

/// Kind of the network of the arms' proxies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NetworkKind {
    /// Namespaces if they can be created, otherwise loopback.
    #[default]
    Auto,
    /// A network namespace for each proxy, with kernel settings of its own.
    Namespaces,
    /// The loopback interface for all proxies, with the host's kernel settings.
    Loopback,
}

/// Id of the parameter that is the number of a proxy's CPUs (`parameters/process.yaml`).
pub const CPU_COUNT: &str = "cpus";

/// CPUs of each role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuRoles {
    /// CPUs of the proxies of all arms.
    pub proxy: CpuSet,
    /// CPUs of the load generator, which has a thread for each.
    pub generator: CpuSet,
    /// CPUs of the origin server.
    pub origin: CpuSet,
}

impl CpuRoles {
    /// Divides the CPUs that weir may use: half of them for the proxy alone; the others for the generator and the origin
    /// server, separately if there are enough.
    pub fn share_out(allowed: &CpuSet) -> CpuRoles {
        let part_or_all =
            |part: &[u32]| CpuSet::new(part.to_vec()).unwrap_or_else(|| allowed.clone());
        let cpus = allowed.cpus();
        match cpus.len() {
            0 | 1 => CpuRoles {
                proxy: allowed.clone(),
                generator: allowed.clone(),
                origin: allowed.clone(),
            },
            2 | 3 => CpuRoles {
                proxy: part_or_all(&cpus[cpus.len() - 1..]),
                generator: part_or_all(&cpus[..1]),
                origin: part_or_all(&cpus[cpus.len() - 2..cpus.len() - 1]),
            },
            n => {
                let quarter = n / 4;
                CpuRoles {
                    generator: part_or_all(&cpus[..quarter]),
                    origin: part_or_all(&cpus[quarter..2 * quarter]),
                    proxy: part_or_all(&cpus[2 * quarter..]),
                }
            }
        }
    }

    /// Returns the maximum number of CPUs that an arm's proxy may have on such a machine: those that [`share_out`] gives
    /// it, or both of two, which the other roles then share.
    ///
    /// [`share_out`]: CpuRoles::share_out
    pub fn most_of_proxy(allowed: &CpuSet) -> usize {
        let share = CpuRoles::share_out(allowed).proxy.cpus().len();
        share.max(allowed.cpus().len().min(2))
    }
}
