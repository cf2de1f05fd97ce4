//! Findings about recommendations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::record::Inert;
use weir_model::study::{Metric, ProxyKind};

use crate::book::{Obsolete, Recommendation};

/// Everything that was found out about recommendations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdviceFindings {
    /// Time of the beginning, RFC 3339 in UTC.
    pub started_at: String,
    /// Time that all runs took together, seconds.
    pub took_s: f64,
    /// Number of CPUs of the host.
    pub cpus: u32,
    /// Release of the kernel.
    pub kernel: String,
    /// Program and version of each proxy that is installed.
    pub programs: BTreeMap<ProxyKind, String>,
    /// The user's configuration that they were tried on; `None`: that of the distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// True if all that was planned was measured.
    pub complete: bool,
    /// Runs, in their order.
    pub runs: Vec<TrialRun>,
    /// Findings, in the order of the recommendations.
    pub found: Vec<AdviceFinding>,
}

/// A run in which recommendations were tried side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialRun {
    /// Name of the study.
    pub name: String,
    /// Folder of the run.
    pub folder: String,
    /// The situation in a few words.
    pub title: String,
    /// Finding about what limits the unchanged proxy, a rule of `limits/rules.yaml`; `None` if none is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limiter: Option<String>,
}

/// Finding about one recommendation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdviceFinding {
    /// The recommendation.
    pub recommendation: Recommendation,
    /// The verdict.
    pub verdict: AdviceVerdict,
    /// Reason for the verdict.
    pub because: Because,
    /// Metric that was compared.
    pub metric: Metric,
    /// Ratio of the changed proxy to the unchanged one; `None` if there is no valid figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Interval of the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Levels that were really in force, by parameter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_force: Vec<InForce>,
    /// Index of the run in [`AdviceFindings::runs`], and name of the arm in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<(usize, String)>,
}

/// Levels of a parameter that were read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InForce {
    /// ID of the parameter.
    pub id: String,
    /// Level in force without the change; `None` if it could not be read.
    pub before: Option<String>,
    /// Level in force with it.
    pub after: Option<String>,
}

/// Verdict on a recommendation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AdviceVerdict {
    /// Confirmed: better, and no smaller than published.
    Confirmed,
    /// Better, but by less than published.
    Smaller,
    /// No effect: inside the equivalence band.
    NoEffect,
    /// Worse.
    Harmful,
    /// The change leaves what is in force as it is.
    Inert,
    /// The reason for it is gone, and it shows no gain.
    Obsolete,
    /// Not tried here.
    NotTried,
    /// The measurement cannot tell.
    Undecided,
}

/// Reason for a verdict on a recommendation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// The interval of the ratio decides.
    Measured,
    /// The interval lies below the published effect.
    BelowPublished,
    /// Neither a difference nor equivalence is shown in the time.
    TooLittleTime,
    /// There are no valid figures.
    NoFigures,
    /// Levels that were not in force.
    NotInForce(Vec<Inert>),
    /// The distribution's configuration has these levels already.
    Stock,
    /// The subject has changed since.
    Since(Obsolete),
    /// It was not tried.
    Untried(Untried),
}

/// Reason why a recommendation was not tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Untried {
    /// The proxy is not installed.
    NotInstalled,
    /// It changes the whole host, which weir was not allowed to do.
    HostSettings,
    /// It changes objects of a Kubernetes cluster.
    Kubernetes,
    /// It needs a network card or a long path, and has nothing to act on over loopback.
    Network,
    /// It needs a load that the user's configuration cannot be given.
    Load,
    /// The study or the host refuses it, for this reason.
    Refused(String),
    /// The run ended before it.
    NotReached,
}
