//! Constraints between settings, and the number of clients that a whole configuration can carry.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::study::Settings;

use crate::grammar::{first_number, last_number};
use crate::row::{Parameter, Role};

/// A rule that a row imposes on other settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// The condition that must hold.
    pub rule: Rule,
    /// Levels of the row's parameter that the rule applies to. Empty: all levels.
    #[serde(default)]
    pub only: Vec<String>,
    /// Consequence of a broken rule.
    pub severity: Severity,
    /// The reason, as a clause.
    pub because: String,
    /// Advice on how to resolve the conflict.
    pub hint: String,
}

impl Constraint {
    /// Returns true if the parameter has no effect with these settings or in this role, at any level.
    pub(crate) fn rules_out(&self, settings: &Settings, role: Role) -> bool {
        let is_broken = match &self.rule {
            Rule::NotWith { setting, levels } => {
                settings.get(setting).is_some_and(|level| levels.contains(level))
            }
            Rule::OnlyRole(only) => *only != role,
            Rule::AtMost { .. } | Rule::AtLeast { .. } => false,
        };
        is_broken && self.only.is_empty()
    }

    /// Describes the rule in words: "not above `backlog`", "`on` not while `transport` is sockmap".
    pub fn words(&self) -> String {
        let rule = self.rule.words();
        match &self.only[..] {
            [] => rule,
            only => format!("`{}` {rule}", only.join("` and `")),
        }
    }
}

impl Parameter {
    /// Returns the setting that keeps the parameter from having an effect when other settings have these levels. `None`
    /// if nothing hinders it.
    pub fn hindrance(&self, level_of: impl Fn(&str) -> Option<String>) -> Option<Hindrance> {
        self.constraints.iter().find_map(|constraint| {
            let Rule::NotWith { setting, levels } = &constraint.rule else {
                return None;
            };
            let level = level_of(setting).filter(|level| levels.contains(level))?;
            let is_for_all = constraint.only.is_empty();
            is_for_all.then(|| Hindrance {
                id: setting.clone(),
                level,
                because: constraint.because.clone(),
            })
        })
    }
}

/// A setting whose level keeps a parameter from having an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hindrance {
    /// Id of the setting.
    pub id: String,
    /// Its level.
    pub level: String,
    /// The catalog's reason, as a clause.
    pub because: String,
}

/// A condition that a setting must fulfil.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rule {
    /// The level (a number; of several the last) is not above another setting's.
    AtMost {
        /// The other setting.
        setting: String,
        /// Setting that is used if `setting` is not set.
        #[serde(default)]
        or: Option<String>,
        /// Limit that is used if neither is set nor has a default of the program's.
        #[serde(default)]
        otherwise: Option<Limit>,
    },
    /// The level (a number; of several the first) is not below another setting's.
    AtLeast {
        /// The other setting.
        setting: String,
    },
    /// The setting has no effect, or does not work, while another setting has one of these levels.
    NotWith {
        /// The other setting.
        setting: String,
        /// Levels of the other setting that exclude this one.
        levels: Vec<String>,
    },
    /// The setting has an effect in this role only.
    OnlyRole(Role),
}

impl Rule {
    fn words(&self) -> String {
        match self {
            Rule::AtMost { setting, or, otherwise } => {
                let machine = otherwise.map(|limit| limit.words().to_owned());
                let limits: Vec<String> = [Some(setting), or.as_ref()]
                    .into_iter()
                    .flatten()
                    .map(|setting| format!("`{setting}`"))
                    .chain(machine)
                    .collect();
                format!("not above {}", limits.join(", or where it is not set "))
            }
            Rule::AtLeast { setting } => format!("not below `{setting}`"),
            Rule::NotWith { setting, levels } => {
                format!("not while `{setting}` is {}", levels.join(" or "))
            }
            Rule::OnlyRole(role) => format!("only in {}", role.words()),
        }
    }
}

/// A limit of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Open descriptors per process, as the proxy inherits the limit.
    DescriptorLimit,
}

impl Limit {
    fn words(self) -> &'static str {
        match self {
            Limit::DescriptorLimit => "the descriptor limit",
        }
    }
}

/// Severity of a broken rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The setting has no effect as it stands. The arm is run all the same.
    Warning,
    /// The configuration cannot be what it claims to be.
    Error,
}

/// Settings that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Severity of the conflict.
    pub severity: Severity,
    /// Ids of the settings concerned. The one that the rule belongs to comes first.
    pub ids: Vec<String>,
    /// Description of the conflict with its reason.
    pub message: String,
    /// Advice on how to resolve the conflict.
    pub hint: String,
}

/// Number of clients that a configuration can serve at the same time, all workers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Limit set by the number of connections that the proxy allows itself.
    pub connections: u64,
    /// Limit set by the number of descriptors that the kernel allows the proxy.
    pub descriptors: u64,
}

/// Limits of open descriptors of one process of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimits {
    /// Soft limit that the process inherits, and keeps unless its settings raise it.
    pub soft: u64,
    /// Hard limit, up to which the process can raise the soft one.
    pub hard: u64,
}

/// Resources that a proxy has to serve clients with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Means {
    /// Descriptor limits of each process.
    pub descriptors: DescriptorLimits,
    /// Number of online CPUs, which is the number of workers for `auto`.
    pub cpus_online: u64,
    /// Idle connections that the proxy holds besides.
    pub held: u64,
}

/// Names of the settings that decide how many clients a proxy can hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clients {
    /// Setting with the number of workers; a word instead of a number means one per CPU.
    pub(crate) workers: String,
    /// True if workers are threads of one process. Connections and descriptors are then those of all workers together.
    #[serde(default)]
    pub(crate) one_process: bool,
    /// Setting with the maximum connections of one worker.
    pub(crate) connections: String,
    /// Settings with the descriptor limit of one worker. The first that is set counts.
    pub(crate) descriptors: Vec<String>,
    /// True if the proxy raises its soft limit of descriptors to the hard one by itself.
    #[serde(default)]
    pub(crate) raises_descriptors: bool,
    /// Resources that one client takes, by role of the proxy.
    pub(crate) per_client: BTreeMap<Role, PerClient>,
}

/// Connections and descriptors that one client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PerClient {
    pub(crate) connections: u64,
    pub(crate) descriptors: u64,
}

impl Clients {
    /// Returns the ids of all settings in this description.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &String> {
        [&self.workers, &self.connections].into_iter().chain(&self.descriptors)
    }

    /// Computes the limits of `settings`, which must be complete (defaults filled in). `None` if the role or a number
    /// is unknown. An idle connection takes a connection and a descriptor in every role.
    pub(crate) fn limits(
        &self,
        settings: &Settings,
        role: Role,
        means: Means,
    ) -> Option<ClientLimits> {
        let limits = means.descriptors;
        let per_client = self.per_client.get(&role)?;
        let processes = if self.one_process {
            1
        } else {
            read_number(settings, &self.workers).unwrap_or(means.cpus_online).max(1)
        };
        let connections = read_number(settings, &self.connections)?;
        let inherited = if self.raises_descriptors { limits.hard } else { limits.soft };
        let descriptors = self
            .descriptors
            .iter()
            .find_map(|id| read_number(settings, id))
            .unwrap_or(inherited)
            .min(limits.hard);
        let [connections, descriptors] = [connections, descriptors]
            .map(|of_worker| of_worker.saturating_mul(processes).saturating_sub(means.held));
        Some(ClientLimits {
            connections: connections / per_client.connections.max(1),
            descriptors: descriptors / per_client.descriptors.max(1),
        })
    }
}

/// Source of the values that settings leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsaid {
    /// The program's defaults.
    Defaults {
        /// Soft limit of descriptors that the proxy inherits.
        descriptor_limit: u64,
    },
    /// A user's configuration, which is not known. No value is assumed.
    Users,
}

/// Values that a rule is judged by.
pub(crate) struct Facts<'a> {
    /// Settings, with the program's defaults filled in if those apply.
    pub(crate) settings: &'a Settings,
    /// The kernel's defaults, for settings that are not set.
    pub(crate) kernel: &'a Settings,
    pub(crate) role: Role,
    /// Soft limit of descriptors that the proxy inherits. `None`: its configuration may raise it.
    pub(crate) descriptor_limit: Option<u64>,
}

/// A number that a level is compared with, and the setting or limit that it comes from.
struct Bound {
    number: u64,
    name: String,
    id: Option<String>,
}

impl Constraint {
    /// Returns the conflict of `parameter` at `level` with the other settings, if any.
    pub(crate) fn conflict(
        &self,
        parameter: &Parameter,
        level: &str,
        facts: &Facts<'_>,
    ) -> Option<Conflict> {
        let id = &parameter.id;
        if !self.only.is_empty() && !self.only.iter().any(|own| own == level) {
            return None;
        }
        let (ids, broken) = match &self.rule {
            Rule::AtMost { setting, or, otherwise } => {
                let limit = facts.limit([Some(setting), or.as_ref()], *otherwise)?;
                let (number, name) = (last_number(level)?, &limit.name);
                let broken = number > limit.number;
                (
                    limit.id,
                    broken.then(|| format!("`{id}` {number} is above {name} {}", limit.number))?,
                )
            }
            Rule::AtLeast { setting } => {
                let limit = facts.limit([Some(setting), None], None)?;
                let (number, name) = (first_number(level)?, &limit.name);
                let broken = number < limit.number;
                (
                    limit.id,
                    broken.then(|| format!("`{id}` {number} is below {name} {}", limit.number))?,
                )
            }
            Rule::NotWith { setting, levels } => {
                let other_level = facts.level(setting)?;
                let fails = match self.severity {
                    Severity::Warning => "has no effect",
                    Severity::Error => "does not work",
                };
                let message = levels
                    .contains(other_level)
                    .then(|| format!("`{id}` {fails} while `{setting}` is `{other_level}`"))?;
                (Some(setting.clone()), message)
            }
            Rule::OnlyRole(only) => (
                None,
                (*only != facts.role)
                    .then(|| format!("`{id}` has no effect in {}", facts.role.words()))?,
            ),
        };
        let ids = std::iter::once(id.clone()).chain(ids).collect();
        Some(Conflict {
            severity: self.severity,
            ids,
            message: format!("{broken}: {}", self.because),
            hint: self.hint.clone(),
        })
    }
}

impl Facts<'_> {
    /// Returns the level of another setting: the study's or the program's default, else the kernel's default.
    fn level(&self, id: &str) -> Option<&String> {
        self.settings.get(id).or_else(|| self.kernel.get(id))
    }

    /// Returns the first of `settings` that has a level, else the machine's limit `otherwise`, else the kernel's
    /// default of one of them.
    fn limit(&self, settings: [Option<&String>; 2], otherwise: Option<Limit>) -> Option<Bound> {
        find_bound(settings, self.settings, "")
            .or_else(|| {
                let limit = otherwise?;
                let number = match limit {
                    Limit::DescriptorLimit => self.descriptor_limit?,
                };
                let (name, id) = (limit.words().to_owned(), None);
                Some(Bound { number, name, id })
            })
            .or_else(|| find_bound(settings, self.kernel, "the kernel's default of "))
    }
}

fn read_number(settings: &Settings, id: &str) -> Option<u64> {
    settings.get(id)?.parse().ok()
}

fn find_bound(ids: [Option<&String>; 2], levels: &Settings, note: &str) -> Option<Bound> {
    ids.into_iter().flatten().find_map(|id| {
        Some(Bound {
            number: first_number(levels.get(id)?)?,
            name: format!("{note}`{id}`"),
            id: Some(id.clone()),
        })
    })
}
