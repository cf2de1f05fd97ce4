//! One row of the catalog: a tunable and all that weir knows about it.

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

/// A tunable of a proxy, its process, its pods or the kernel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Name in studies. For a single directive it is the directive's own name, for a sysctl the name with dots.
    pub id: String,
    /// Part of the system that a change reaches.
    pub scope: Scope,
    /// Kind and range of the levels.
    pub level: LevelKind,
    /// Default of the program or the kernel, by version.
    pub default: Defaults,
    /// Level that Debian's package writes into its configuration, if it writes any.
    #[serde(default)]
    pub debian: Option<String>,
    /// Reason to change the parameter, and cases in which it does nothing.
    pub why: String,
    /// Address of the documentation that the row was written from.
    pub source: String,
    /// Source from which the effective value is read.
    pub effective: EffectiveFrom,
    /// Pieces of configuration that set the parameter. Empty if it is not part of the proxy's configuration.
    #[serde(default)]
    pub writes: Vec<Write>,
    /// Quantity that the parameter controls together with others, if any.
    #[serde(default)]
    pub quantity: Option<String>,
    /// Counter that shows if the parameter takes effect, if there is one.
    #[serde(default)]
    pub shows: Option<Shows>,
    /// True if a level below the host's value is not written, because the host may need its value.
    #[serde(default)]
    pub only_raises: bool,
    /// Requirement for the parameter to exist: `the module nf_conntrack`.
    #[serde(default)]
    pub needs: Option<String>,
    /// Set for a sysctl that Kubernetes calls safe.
    #[serde(default)]
    pub safe_on_kubernetes: Option<Safe>,
    /// Rules that the parameter imposes on other settings.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
    /// Spelling in the objects of each Kubernetes controller of this proxy, by the controller's name.
    #[serde(default)]
    pub controllers: BTreeMap<String, Spelling>,
}

/// Part of the system that a change of a tunable reaches. It decides what is needed for the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The proxy's configuration.
    ProxyDirective,
    /// The start of the proxy's process: prefix, environment, limits.
    ProcessLaunch,
    /// CPUs of the proxy.
    CpuSet,
    /// The kernel, within a network namespace.
    KernelNetns,
    /// The kernel, for the whole host.
    KernelHost,
    /// The carrier of the bytes between the proxy and its peers on the same host.
    Transport,
    /// The pods of a controller's proxy, as a Deployment or a DaemonSet of a cluster describes them.
    Workload,
}

impl Scope {
    /// Returns true for kernel settings, of a network namespace or of the whole host.
    pub fn is_kernel(self) -> bool {
        matches!(self, Scope::KernelNetns | Scope::KernelHost)
    }

    /// Returns true if the scope is on this host and the same for every proxy.
    pub fn is_of_host(self) -> bool {
        !matches!(self, Scope::ProxyDirective | Scope::Workload)
    }

    /// Returns true if the scope is the proxy's configuration.
    pub fn is_configuration(self) -> bool {
        self == Scope::ProxyDirective
    }
}

/// Versions since which Kubernetes lets every pod set a sysctl. Empty: since Kubernetes lets pods set any sysctl.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Safe {
    /// Version of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Version of the kernel that Kubernetes requires besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// Permission of a pod on Kubernetes to have a parameter of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kubernetes {
    /// A safe sysctl: every pod may set it.
    Safe(Safe),
    /// A namespaced sysctl that the kubelet must be configured to allow (`--allowed-unsafe-sysctls`).
    Unsafe,
    /// A setting of the node: no pod can set it for itself.
    None,
}

/// Source from which the effective value of a tunable is read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EffectiveFrom {
    /// A directive in the configuration that the proxy prints (`nginx -T`). Absent: the default.
    Directive {
        /// Name of the directive.
        name: String,
        /// Block that the directive is in.
        context: Context,
    },
    /// A value in the JSON configuration that the proxy returns. Absent: the default.
    Value {
        /// Object of the document that the value is in.
        context: Context,
        /// JSON pointer (RFC 6901) within that object.
        at: String,
    },
    /// Name of the launcher that the process was started through.
    Launcher,
    /// Number of CPUs on which the process may run, from Cpus_allowed_list in /proc/PID/status.
    CpuSet,
    /// The real carrier of the bytes between the proxy and its peers.
    Transport {
        /// Hops whose bytes bypass the kernel's TCP, by level. A level that is not listed bypasses none.
        bypassed: BTreeMap<String, BTreeSet<Hop>>,
    },
    /// A flag of the listen directive. Absent: the default.
    ListenFlag {
        /// The flag, without `=` and value.
        name: String,
    },
    /// A limit of the worker process, from /proc/PID/limits.
    ProcessLimit {
        /// The limit.
        name: ProcessLimit,
    },
    /// A kernel setting, read below /proc/sys in the network namespace of the proxy.
    Sysctl {
        /// Name of the setting, with dots.
        name: String,
    },
    /// The running pods of a workload in a cluster.
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
    /// Returns the name of the limit in limits.conf(5).
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
    /// Returns the name of the hop in records: `inbound`.
    pub fn name(self) -> &'static str {
        match self {
            Hop::Inbound => "inbound",
            Hop::Outbound => "outbound",
        }
    }
}

/// Block of a configuration, by one of the names that the proxy's file of rows declares at its head: `http`,
/// `frontend`, `cluster`. The proxy's writer in `weir-sut` knows the block behind a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(transparent)]
pub struct Context(String);

impl Context {
    /// Creates the context with this name.
    pub fn new(name: &str) -> Context {
        Context(name.to_owned())
    }

    /// Returns the name of the block.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// A piece of configuration that is written for a level.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Block that the piece is written to.
    pub context: Context,
    /// JSON pointer (RFC 6901) within the context, for a proxy whose configuration is JSON.
    #[serde(default)]
    pub at: Option<String>,
    /// Template of the text, without `;`; with `at` of a JSON value. `{value}` is the level, `{seconds}` and
    /// `{milliseconds}` the number of a duration, `{bytes}` the number of a size. The runner fills in other
    /// placeholders.
    pub text: String,
    /// Levels that the piece is written for. Empty: all levels.
    #[serde(default)]
    pub only: Vec<String>,
    /// Levels that the piece is not written for.
    #[serde(default)]
    pub except: Vec<String>,
    /// True if the piece is only a prerequisite for others. If a user's configuration has the directive, the user's
    /// stays.
    #[serde(default)]
    pub yields: bool,
}

/// One directive to write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Directive {
    /// Block that the directive is written to.
    pub context: Context,
    /// JSON pointer within the context, for a proxy whose configuration is JSON.
    pub at: Option<String>,
    /// Text without `;`. `{logs}` is left for the code that owns the folders.
    pub text: String,
}

/// Role of a proxy, as far as rows need it: [`ProxyRole`] without its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The proxy forwards requests to an origin server.
    ReverseProxy,
    /// The proxy responds with files.
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
    /// Returns the role in words that fit after "in": `a reverse proxy`.
    pub fn words(self) -> &'static str {
        match self {
            Role::ReverseProxy => "a reverse proxy",
            Role::StaticFiles => "a proxy that serves files",
        }
    }
}

impl Write {
    fn applies_to(&self, level: &str) -> bool {
        (self.only.is_empty() || self.only.iter().any(|other| other == level))
            && !self.except.iter().any(|other| other == level)
    }
}

impl Parameter {
    /// Converts a level to its one canonical spelling, so that equal levels are equal text.
    ///
    /// # Errors
    /// Returns an error if the text is not a level of this parameter. The error describes the valid levels and the
    /// nearest one.
    pub fn check(&self, level: &str) -> Result<String, LevelError> {
        self.level.check(level)
    }

    /// Returns a pod's permission to set the parameter on Kubernetes. `None` for parameters that are not kernel
    /// settings.
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

    /// Returns the hops whose bytes bypass the kernel's TCP at `level`. Empty for parameters other than the transport.
    pub(crate) fn bypassed(&self, level: Option<&str>) -> BTreeSet<Hop> {
        match (&self.effective, level) {
            (EffectiveFrom::Transport { bypassed }, Some(level)) => {
                bypassed.get(level).cloned().unwrap_or_default()
            }
            _ => BTreeSet::new(),
        }
    }

    /// Returns true if `level` is above the value in force, `now`. Returns false if one of the two is not a number.
    pub fn is_raised_by(&self, level: &str, now: &str) -> bool {
        first_number(level).zip(first_number(now)).is_some_and(|(level, now)| level > now)
    }

    /// Returns true if `level` must be written while `now` is in force. A parameter with `only_raises` is written only
    /// if `level` is higher.
    pub fn is_to_be_written(&self, level: &str, now: &str) -> bool {
        !self.only_raises || self.is_raised_by(level, now)
    }

    /// Returns the directives that set the parameter to `level` (canonical). May be empty.
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

    /// Returns the level that the proxy runs with. `found` is the whole text without `;` of the directive named in
    /// [`Parameter::effective`] or of the listen directive, or the bare process limit, or the content of the file below
    /// /proc/sys. `None` for an absent directive means the default.
    ///
    /// Returns `None` if no level is written as `found`, or the default is not a fixed level.
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
            | EffectiveFrom::CpuSet
            | EffectiveFrom::Transport { .. } => self.check(found).ok(),
        }
    }

    /// Returns the level that is written as `found`: the inverse of [`Parameter::directives`].
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

/// Returns true if a directive's text begins with `name`. The name may be several words, `timeout client`, and have
/// HAProxy's `no` before it.
fn is_named(text: &str, name: &str) -> bool {
    let directive = text.strip_prefix("no ").unwrap_or(text);
    directive.strip_prefix(name).is_some_and(|tail| tail.is_empty() || tail.starts_with([' ', '=']))
}
