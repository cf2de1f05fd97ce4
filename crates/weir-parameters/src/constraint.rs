//! What one setting says about another, and what a whole configuration can carry.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_model::study::Settings;

use crate::grammar::{first_number, last_number};
use crate::row::{Parameter, Role};

/// A rule that a row lays on others.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// What must hold.
    pub rule: Rule,
    /// The row's own levels that it is about; none: all.
    #[serde(default)]
    pub only: Vec<String>,
    /// What it means when it does not.
    pub severity: Severity,
    /// Why, as a clause.
    pub because: String,
    /// What to do about it.
    pub hint: String,
}

impl Constraint {
    /// Returns true if the parameter has no effect beside these settings or in this role, at any level.
    pub(crate) fn rules_out(&self, settings: &Settings, role: Role) -> bool {
        let is_broken = match &self.rule {
            Rule::NotWith { setting, levels } => settings
                .get(setting)
                .is_some_and(|level| levels.contains(level)),
            Rule::OnlyRole(only) => *only != role,
            Rule::AtMost { .. } | Rule::AtLeast { .. } => false,
        };
        is_broken && self.only.is_empty()
    }

    /// What must hold, in words: "not above `backlog`", "`on` not while `transport` is sockmap".
    pub fn words(&self) -> String {
        let rule = self.rule.words();
        match &self.only[..] {
            [] => rule,
            only => format!("`{}` {rule}", only.join("` and `")),
        }
    }
}

impl Parameter {
    /// Why it has no effect where other settings have these levels, as a clause.
    pub fn hindrance(&self, level_of: impl Fn(&str) -> Option<String>) -> Option<String> {
        self.constraints.iter().find_map(|constraint| {
            let Rule::NotWith { setting, levels } = &constraint.rule else {
                return None;
            };
            let level = level_of(setting).filter(|level| levels.contains(level))?;
            let is_for_all = constraint.only.is_empty();
            is_for_all.then(|| format!("{setting} is {level}, and {}", constraint.because))
        })
    }
}

/// What must hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rule {
    /// The level, a number (of several the last), is not above another setting's.
    AtMost {
        /// The other setting.
        setting: String,
        /// The one that counts where that is not set.
        #[serde(default)]
        or: Option<String>,
        /// The limit where neither is set nor has a default of the program's.
        #[serde(default)]
        otherwise: Option<Limit>,
    },
    /// The level, a number (of several the first), is not below another setting's.
    AtLeast {
        /// The other setting.
        setting: String,
    },
    /// The setting has no effect, or does not work, while another has one of these levels.
    NotWith {
        /// The other setting.
        setting: String,
        /// Its levels that this one does not go with.
        levels: Vec<String>,
    },
    /// The setting has an effect in this role only.
    OnlyRole(Role),
}

impl Rule {
    fn words(&self) -> String {
        match self {
            Rule::AtMost {
                setting,
                or,
                otherwise,
            } => {
                let machine = otherwise.map(|limit| limit.words().to_owned());
                let settings = [Some(setting), or.as_ref()].into_iter().flatten();
                let named = settings.map(|setting| format!("`{setting}`"));
                let limits: Vec<String> = named.chain(machine).collect();
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
    /// Descriptors that a process may open, as the proxy inherits it.
    DescriptorLimit,
}

impl Limit {
    fn words(self) -> &'static str {
        match self {
            Limit::DescriptorLimit => "the descriptor limit",
        }
    }
}

/// What a broken rule means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The setting can do nothing as it stands, and is tried all the same.
    Warning,
    /// The configuration cannot be what it says it is.
    Error,
}

/// Settings that do not go together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// How grave it is.
    pub severity: Severity,
    /// The settings concerned; the one that the rule belongs to comes first.
    pub ids: Vec<String>,
    /// What is wrong and why.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// Clients that a configuration can serve at the same time, all workers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// By the number of connections that the proxy allows itself.
    pub connections: u64,
    /// By the number of descriptors that the kernel allows it.
    pub descriptors: u64,
}

/// Descriptors that one process of a proxy may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimits {
    /// What it inherits, and has unless its settings say more.
    pub soft: u64,
    /// What it can raise that to.
    pub hard: u64,
}

/// What a proxy has to serve clients with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Means {
    /// Descriptors of each of its processes.
    pub descriptors: DescriptorLimits,
    /// CPUs: what `auto` workers come to.
    pub cpus_online: u64,
    /// Connections that ask nothing, which it serves besides.
    pub held: u64,
}

/// Which settings decide how many clients a proxy can hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clients {
    /// Setting with the number of workers; a word instead of a number means one per CPU.
    pub(crate) workers: String,
    /// Whether workers are threads of one process, so that connections and descriptors are those of
    /// all of them together.
    #[serde(default)]
    pub(crate) one_process: bool,
    /// Setting with the connections of one worker.
    pub(crate) connections: String,
    /// Settings with the descriptors of one worker; the first that is set counts.
    pub(crate) descriptors: Vec<String>,
    /// Whether it raises its soft limit of descriptors to the hard one by itself.
    #[serde(default)]
    pub(crate) raises_descriptors: bool,
    /// What one client takes.
    pub(crate) per_client: BTreeMap<Role, PerClient>,
}

/// What one client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PerClient {
    pub(crate) connections: u64,
    pub(crate) descriptors: u64,
}

impl Clients {
    /// All settings that it names.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &String> {
        [&self.workers, &self.connections]
            .into_iter()
            .chain(&self.descriptors)
    }

    /// Limits of `settings`, which must be complete (defaults filled in). A connection that asks nothing
    /// takes a connection and a descriptor in every role.
    pub(crate) fn limits(
        &self,
        settings: &Settings,
        role: Role,
        means: Means,
    ) -> Option<ClientLimits> {
        let limits = means.descriptors;
        let per_client = self.per_client.get(&role)?;
        let number = |id: &str| settings.get(id).and_then(|level| level.parse::<u64>().ok());
        let processes = match self.one_process {
            true => 1,
            false => number(&self.workers).unwrap_or(means.cpus_online).max(1),
        };
        let connections = number(&self.connections)?;
        let descriptors = self.descriptors.iter().find_map(|id| number(id));
        let inherited = match self.raises_descriptors {
            true => limits.hard,
            false => limits.soft,
        };
        let descriptors = descriptors.unwrap_or(inherited).min(limits.hard);
        let left = |of_worker: u64| {
            of_worker
                .saturating_mul(processes)
                .saturating_sub(means.held)
        };
        Some(ClientLimits {
            connections: left(connections) / per_client.connections.max(1),
            descriptors: left(descriptors) / per_client.descriptors.max(1),
        })
    }
}

/// What holds where settings say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsaid {
    /// The program's defaults.
    Defaults {
        /// Soft limit of descriptors that the proxy inherits.
        descriptor_limit: u64,
    },
    /// What a configuration of the user's says, which is not known: nothing is taken for it.
    Users,
}

/// What a rule is judged by.
pub(crate) struct Facts<'a> {
    /// Settings, with the program's defaults filled in where those hold.
    pub(crate) settings: &'a Settings,
    /// What the kernel does where they are silent.
    pub(crate) kernel: &'a Settings,
    pub(crate) role: Role,
    /// Soft limit of descriptors that the proxy inherits; `None`: its configuration may raise it.
    pub(crate) descriptor_limit: Option<u64>,
}

/// A number that another must keep to, and whose it is.
struct Bound {
    number: u64,
    name: String,
    id: Option<String>,
}

impl Constraint {
    /// The conflict that `parameter` at `level` has with the other settings, if any.
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
            Rule::AtMost {
                setting,
                or,
                otherwise,
            } => {
                let limit = facts.limit([Some(setting), or.as_ref()], *otherwise)?;
                let (number, name) = (last_number(level)?, &limit.name);
                let broken = number > limit.number;
                let message = || format!("`{id}` {number} is above {name} {}", limit.number);
                (limit.id, broken.then(message)?)
            }
            Rule::AtLeast { setting } => {
                let limit = facts.limit([Some(setting), None], None)?;
                let (number, name) = (first_number(level)?, &limit.name);
                let broken = number < limit.number;
                let message = || format!("`{id}` {number} is below {name} {}", limit.number);
                (limit.id, broken.then(message)?)
            }
            Rule::NotWith { setting, levels } => {
                let other = facts.level(setting)?;
                let fails = match self.severity {
                    Severity::Warning => "has no effect",
                    Severity::Error => "does not work",
                };
                let message = || format!("`{id}` {fails} while `{setting}` is `{other}`");
                let message = levels.contains(other).then(message)?;
                (Some(setting.clone()), message)
            }
            Rule::OnlyRole(only) => {
                let message = || format!("`{id}` has no effect in {}", facts.role.words());
                (None, (*only != facts.role).then(message)?)
            }
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
    /// The level of another setting: the study's, the program's default, or else the kernel's.
    fn level(&self, id: &str) -> Option<&String> {
        self.settings.get(id).or_else(|| self.kernel.get(id))
    }

    /// The first of `settings` that has a level, or the limit in their absence, or the default that
    /// the kernel has for one of them.
    fn limit(&self, settings: [Option<&String>; 2], otherwise: Option<Limit>) -> Option<Bound> {
        let of = |levels: &Settings, note: &str| {
            settings.into_iter().flatten().find_map(|id| {
                Some(Bound {
                    number: first_number(levels.get(id)?)?,
                    name: format!("{note}`{id}`"),
                    id: Some(id.clone()),
                })
            })
        };
        let machine = || {
            let limit = otherwise?;
            let number = match limit {
                Limit::DescriptorLimit => self.descriptor_limit?,
            };
            let (name, id) = (limit.words().to_owned(), None);
            Some(Bound { number, name, id })
        };
        of(self.settings, "")
            .or_else(machine)
            .or_else(|| of(self.kernel, "the kernel's default of "))
    }
}
