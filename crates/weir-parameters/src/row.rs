//! One row of the catalog: a tunable and everything weir knows about it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weir_model::study::ProxyRole;

use crate::constraint::Constraint;
use crate::default::Defaults;
use crate::grammar::first_number;
use crate::level::{LevelError, LevelKind};
use crate::shows::Shows;
use crate::spelling::Spelling;
use crate::template;
use crate::workload::InWorkload;

/// A tunable.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Name in studies: the directive's own where there is one directive, the sysctl's with dots.
    pub id: String,
    /// What a change of it reaches.
    pub scope: Scope,
    /// Which levels there are.
    pub level: LevelKind,
    /// What the program or the kernel does when nobody says anything.
    pub default: Defaults,
    /// What Debian's package writes into its configuration, when it writes anything.
    #[serde(default)]
    pub debian: Option<String>,
    /// Why one would change it, and when it does nothing.
    pub why: String,
    /// Address of the documentation that the row was written from.
    pub source: String,
    /// Where the effective value is read.
    pub effective: EffectiveFrom,
    /// How the proxy spells it; nothing for what is no part of its configuration.
    #[serde(default)]
    pub writes: Vec<Write>,
    /// The quantity that it controls together with others, where it does.
    #[serde(default)]
    pub quantity: Option<String>,
    /// The counter that shows whether it takes effect, where there is one.
    #[serde(default)]
    pub shows: Option<Shows>,
    /// A level below what the host has is not written: the host may need what it has.
    #[serde(default)]
    pub only_raises: bool,
    /// What must be there for the parameter to be: `the module nf_conntrack`.
    #[serde(default)]
    pub needs: Option<String>,
    /// Set for a sysctl that Kubernetes calls safe.
    #[serde(default)]
    pub safe_on_kubernetes: Option<Safe>,
    /// What else it constrains.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
    /// How Kubernetes controllers of this proxy spell it, by the controller's name.
    #[serde(default)]
    pub controllers: BTreeMap<String, Spelling>,
}

/// What a change of a tunable reaches, which decides what is needed to change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The proxy's configuration.
    ProxyDirective,
    /// How the proxy is started: prefix, environment, limits.
    ProcessLaunch,
    /// CPUs of the proxy.
    CpuSet,
    /// The kernel, within a network namespace.
    KernelNetns,
    /// The kernel, for the whole host.
    KernelHost,
    /// What carries the bytes between the proxy and its peers on the same host.
    Transport,
    /// The pods of a controller's proxy, as a Deployment or a DaemonSet of a cluster describes them.
    Workload,
}

impl Scope {
    /// Whether it is the kernel's, in a network namespace or for the whole host.
    pub fn is_kernel(self) -> bool {
        matches!(self, Scope::KernelNetns | Scope::KernelHost)
    }

    /// Whether it goes with every proxy, and this host has it.
    pub fn is_of_host(self) -> bool {
        !matches!(self, Scope::ProxyDirective | Scope::Workload)
    }

    /// Whether it is part of the proxy's configuration.
    pub fn is_configuration(self) -> bool {
        self == Scope::ProxyDirective
    }
}

/// Since when Kubernetes lets every pod set a sysctl. Empty: since it lets pods set any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Safe {
    /// Version of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Version of the kernel that Kubernetes asks for besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// Whether a pod can have a parameter of its own on Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kubernetes {
    /// A safe sysctl: every pod may set it.
    Safe(Safe),
    /// A namespaced sysctl that the kubelet must be told to allow (`--allowed-unsafe-sysctls`).
    Unsafe,
    /// It belongs to the node: no pod can set it for itself.
    None,
}

/// Where the effective value of a tunable is read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EffectiveFrom {
    /// A directive in what the proxy prints as its configuration (`nginx -T`). Absent: the default.
    Directive {
        /// Name of the directive.
        name: String,
        /// Block it stands in.
        context: Context,
    },
    /// A value in what the proxy gives out as its configuration, where that is JSON. Absent: the
    /// default.
    Value {
        /// Object of the document.
        context: Context,
        /// JSON pointer (RFC 6901) within it.
        at: String,
    },
    /// How the process was started: its launcher's name.
    Launcher,
    /// What really carries the bytes between the proxy and its peers.
    Transport {
        /// Hops whose bytes go past the kernel's TCP, by level; a level that is not here has none.
        bypassed: BTreeMap<String, BTreeSet<Hop>>,
    },
    /// A flag of the listen directive. Absent: the default.
    ListenFlag {
        /// The flag, without `=` and value.
        name: String,
    },
    /// A limit of the worker's process, from /proc/PID/limits.
    ProcessLimit {
        /// Which one.
        name: ProcessLimit,
    },
    /// A kernel setting, below /proc/sys as the network namespace of the proxy shows it.
    Sysctl {
        /// Its name, with dots.
        name: String,
    },
    /// The pods that run of a workload in a cluster.
    Workload(InWorkload),
}

/// A limit that a proxy can be started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessLimit {
    /// The soft limit of open descriptors (RLIMIT_NOFILE of setrlimit(2)).
    Nofile,
}

impl ProcessLimit {
    /// Its name, as limits.conf(5) has it.
    pub fn name(self) -> &'static str {
        match self {
            ProcessLimit::Nofile => "nofile",
        }
    }
}

/// A hop of an arm: the proxy and the peers on one side of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hop {
    /// Between clients and the proxy.
    Inbound,
    /// Between the proxy and its origin server.
    Outbound,
}

impl Hop {
    /// Its name in records: `inbound`.
    pub fn name(self) -> &'static str {
        match self {
            Hop::Inbound => "inbound",
            Hop::Outbound => "outbound",
        }
    }
}

/// The block of a configuration that something stands in, by one of the names that its file of rows
/// declares at its head: `http`, `frontend`, `cluster`. What is behind a name is for the proxy's
/// writer in `weir-sut` to know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(transparent)]
pub struct Context(String);

impl Context {
    /// The context of this name.
    pub fn new(name: &str) -> Context {
        Context(name.to_owned())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// One piece of configuration that a level leads to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Where it goes.
    pub context: Context,
    /// JSON pointer (RFC 6901) within the context, for a proxy whose configuration is JSON.
    #[serde(default)]
    pub at: Option<String>,
    /// The text, without `;`; with `at` a JSON value. `{value}` is the level, `{seconds}` and
    /// `{milliseconds}` a duration's, `{bytes}` a size's number; other placeholders are the runner's to
    /// fill.
    pub text: String,
    /// Written for these levels only; empty: for all.
    #[serde(default)]
    pub only: Vec<String>,
    /// Not written for these levels.
    #[serde(default)]
    pub except: Vec<String>,
    /// Whether it only makes room for the others: where a user's configuration says it, it stays.
    #[serde(default)]
    pub yields: bool,
}

/// One directive to write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Directive {
    /// Where it goes.
    pub context: Context,
    /// JSON pointer within the context, for a proxy whose configuration is JSON.
    pub at: Option<String>,
    /// Its text without `;`, with `{logs}` left for whoever owns the folders.
    pub text: String,
}

/// What the proxy does, as far as rows care: [`ProxyRole`] without its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It asks an origin server.
    ReverseProxy,
    /// It answers from files.
    StaticFiles,
}

impl From<&ProxyRole> for Role {
    fn from(role: &ProxyRole) -> Role {
        match role {
            ProxyRole::ReverseProxy => Role::ReverseProxy,
            ProxyRole::StaticFiles { .. } => Role::StaticFiles,
        }
    }
}

impl Role {
    /// In words that fit after "in": `a reverse proxy`.
    pub fn words(self) -> &'static str {
        match self {
            Role::ReverseProxy => "a reverse proxy",
            Role::StaticFiles => "a proxy that serves files",
        }
    }
}

impl Write {
    fn applies_to(&self, level: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|other| other == level);
        (self.only.is_empty() || named(&self.only)) && !named(&self.except)
    }
}

impl Parameter {
    /// Reads a level as somebody wrote it and gives it in its one canonical spelling, so that equal
    /// levels are equal text.
    ///
    /// # Errors
    /// The text is not a level of this parameter; the error says what is, and what comes nearest.
    pub fn check(&self, level: &str) -> Result<String, LevelError> {
        self.level.check(level)
    }

    /// Whether Kubernetes lets a pod set it; `None` for what is no kernel setting.
    pub fn kubernetes(&self) -> Option<Kubernetes> {
        match (self.scope, &self.safe_on_kubernetes) {
            (Scope::KernelNetns, Some(safe)) => Some(Kubernetes::Safe(safe.clone())),
            (Scope::KernelNetns, None) => Some(Kubernetes::Unsafe),
            (Scope::KernelHost, _) => Some(Kubernetes::None),
            (
                Scope::ProxyDirective
                | Scope::ProcessLaunch
                | Scope::CpuSet
                | Scope::Transport
                | Scope::Workload,
                _,
            ) => None,
        }
    }

    /// Hops whose bytes go past the kernel's TCP at `level`; none for what is no transport.
    pub(crate) fn bypassed(&self, level: Option<&str>) -> BTreeSet<Hop> {
        match (&self.effective, level) {
            (EffectiveFrom::Transport { bypassed }, Some(level)) => {
                bypassed.get(level).cloned().unwrap_or_default()
            }
            _ => BTreeSet::new(),
        }
    }

    /// Whether `level` is above what is in force, `now`; `false` where one of the two is no number.
    pub fn is_raised_by(&self, level: &str, now: &str) -> bool {
        first_number(level)
            .zip(first_number(now))
            .is_some_and(|(level, now)| level > now)
    }

    /// Whether `level` is to be written where `now` is in force: a parameter that is only raised is
    /// left alone unless that is higher.
    pub fn is_to_be_written(&self, level: &str, now: &str) -> bool {
        !self.only_raises || self.is_raised_by(level, now)
    }

    /// The configuration that `level` (canonical) leads to; possibly none.
    pub fn directives(&self, level: &str) -> Vec<Directive> {
        self.writes
            .iter()
            .filter(|write| write.applies_to(level))
            .map(|write| Directive {
                context: write.context.clone(),
                at: write.at.clone(),
                text: template::fill(&write.text, level),
            })
            .collect()
    }

    /// The level behind what the proxy runs with: the whole text of the directive named in
    /// [`Parameter::effective`] without `;`, or of the listen directive, or the bare process limit,
    /// or what the file below /proc/sys holds.
    /// `None` for a directive that is not there means the default.
    ///
    /// Answers `None` when the text is none that a level leads to, or the default is no fixed level.
    pub fn read_back(&self, found: Option<&str>) -> Option<String> {
        let Some(found) = found else {
            return self.default.newest().level.clone();
        };
        match &self.effective {
            EffectiveFrom::Directive { name, .. } => self.level_written_as(found, name),
            EffectiveFrom::ListenFlag { name } => found
                .split_whitespace()
                .filter(|flag| flag.split('=').next() == Some(name))
                .find_map(|flag| self.level_written_as(flag, name))
                .or_else(|| self.default.newest().level.clone()),
            EffectiveFrom::Value { at, .. } => self
                .writes
                .iter()
                .filter(|write| write.at.as_ref() == Some(at))
                .find_map(|write| self.level_of(write, found)),
            EffectiveFrom::ProcessLimit { .. }
            | EffectiveFrom::Sysctl { .. }
            | EffectiveFrom::Workload(_)
            | EffectiveFrom::Launcher
            | EffectiveFrom::Transport { .. } => self.check(found).ok(),
        }
    }

    /// The level whose text is `found`: the inverse of [`Parameter::directives`].
    fn level_written_as(&self, found: &str, name: &str) -> Option<String> {
        self.writes
            .iter()
            .filter(|write| is_named(&write.text, name))
            .find_map(|write| self.level_of(write, found))
    }

    fn level_of(&self, write: &Write, found: &str) -> Option<String> {
        let level = match template::value_in(&write.text, found)? {
            Some(value) => self.check(&value).ok()?,
            None => write.only.first()?.clone(),
        };
        write.applies_to(&level).then_some(level)
    }
}

/// Whether a directive's text begins with this name, which may be several words, `timeout client`, and
/// have HAProxy's `no` before it.
fn is_named(text: &str, name: &str) -> bool {
    let text = text.strip_prefix("no ").unwrap_or(text);
    text.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '=']))
}
