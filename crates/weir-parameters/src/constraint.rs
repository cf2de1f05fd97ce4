//! What one setting says about another, and what a whole configuration can carry.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_model::study::Settings;

use crate::row::{Parameter, Role};

/// A rule that a row lays on others.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// What must hold.
    pub rule: Rule,
    /// What it means when it does not.
    pub severity: Severity,
    /// Why, as a clause.
    pub because: String,
    /// What to do about it.
    pub hint: String,
}

/// What must hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rule {
    /// The level, a number, is not above another setting's, or, where that is not set and has no
    /// default, not above a limit of the machine.
    AtMost {
        /// The other setting.
        setting: String,
        /// The limit in its absence.
        otherwise: Limit,
    },
    /// The setting has no effect while another has one of these levels.
    NotWith {
        /// The other setting.
        setting: String,
        /// Its levels that make this one idle.
        levels: Vec<String>,
    },
    /// The setting has an effect in this role only.
    OnlyRole(Role),
}

/// A limit of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Descriptors that a process may open, as the proxy inherits it.
    DescriptorLimit,
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

/// Which settings decide how many clients a proxy can hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clients {
    /// Setting with the number of workers; a word instead of a number means one per CPU.
    pub(crate) workers: String,
    /// Setting with the connections of one worker.
    pub(crate) connections: String,
    /// Setting with the descriptors of one worker.
    pub(crate) descriptors: String,
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
    /// Limits of `settings`, which must be complete (defaults filled in), beside `held` connections
    /// that ask nothing: such a one takes a connection and a descriptor in every role.
    pub(crate) fn limits(
        &self,
        settings: &Settings,
        role: Role,
        limits: DescriptorLimits,
        cpus_online: u64,
        held: u64,
    ) -> Option<ClientLimits> {
        let per_client = self.per_client.get(&role)?;
        let number = |id: &str| settings.get(id).and_then(|level| level.parse::<u64>().ok());
        let workers = number(&self.workers).unwrap_or(cpus_online).max(1);
        let connections = number(&self.connections)?;
        let descriptors = number(&self.descriptors)
            .unwrap_or(limits.soft)
            .min(limits.hard);
        let left = |of_worker: u64| of_worker.saturating_mul(workers).saturating_sub(held);
        Some(ClientLimits {
            connections: left(connections) / per_client.connections.max(1),
            descriptors: left(descriptors) / per_client.descriptors.max(1),
        })
    }
}

impl Constraint {
    /// The conflict that `parameter` at `level` has with `settings` (complete), if any.
    pub(crate) fn conflict(
        &self,
        parameter: &Parameter,
        level: &str,
        settings: &Settings,
        role: Role,
        descriptor_limit: u64,
    ) -> Option<Conflict> {
        let id = &parameter.id;
        let mut ids = vec![id.clone()];
        let broken = match &self.rule {
            Rule::AtMost { setting, otherwise } => {
                let (limit, name) = match settings.get(setting) {
                    Some(limit) => {
                        ids.push(setting.clone());
                        (limit.parse().ok()?, format!("`{setting}`"))
                    }
                    None => otherwise.value(descriptor_limit),
                };
                let number: u64 = level.parse().ok()?;
                (number > limit).then(|| format!("`{id}` {number} is above {name} {limit}"))
            }
            Rule::NotWith { setting, levels } => {
                let other = settings.get(setting)?;
                ids.push(setting.clone());
                levels
                    .contains(other)
                    .then(|| format!("`{id}` has no effect while `{setting}` is `{other}`"))
            }
            Rule::OnlyRole(only) => {
                (*only != role).then(|| format!("`{id}` has no effect in {}", role.words()))
            }
        }?;
        Some(Conflict {
            severity: self.severity,
            ids,
            message: format!("{broken}: {}", self.because),
            hint: self.hint.clone(),
        })
    }
}

impl Limit {
    fn value(self, descriptor_limit: u64) -> (u64, String) {
        match self {
            Limit::DescriptorLimit => (descriptor_limit, "the descriptor limit".to_owned()),
        }
    }
}
