//! Findings of the rules, and the capacity that settings allow.

use serde::Serialize;

use crate::evidence::{Evidence, NodeTable};
use crate::problem::Problem;

/// Severity of a finding, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The load to judge by cannot be carried.
    Error,
    /// A setting cannot take its value, has no effect, or has already cost connections.
    Warning,
    /// Worth knowing.
    Note,
}

/// The step that has to follow before changes take effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Then {
    #[default]
    Nothing,
    /// nginx's files were edited: nginx checks and reloads them.
    Reload,
    /// nginx reads its unchanged files again.
    Again,
    /// nginx is restarted, so that it opens its listeners anew.
    Restart,
}

/// A problem or a remark that a rule found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The problem, with its figures.
    #[serde(flatten)]
    pub problem: Problem,
    /// Severity of the finding.
    pub severity: Severity,
    /// Figures, with the place where each was read.
    pub evidence: Vec<Evidence>,
    /// Commands that change the setting now.
    pub change: Vec<String>,
    /// Commands that keep the change after a reboot, if those in `change` do not.
    pub persist: Vec<String>,
    /// Reference that documents the mechanism.
    pub source: &'static str,
    #[serde(skip)]
    pub(crate) then: Then,
}

impl Finding {
    /// Creates a finding without evidence or remedy.
    pub(crate) fn new(
        problem: impl Into<Problem>,
        severity: Severity,
        source: &'static str,
    ) -> Finding {
        Finding {
            problem: problem.into(),
            severity,
            evidence: Vec::new(),
            change: Vec::new(),
            persist: Vec::new(),
            source,
            then: Then::Nothing,
        }
    }

    pub(crate) fn error(problem: impl Into<Problem>, source: &'static str) -> Finding {
        Finding::new(problem, Severity::Error, source)
    }

    pub(crate) fn warning(problem: impl Into<Problem>, source: &'static str) -> Finding {
        Finding::new(problem, Severity::Warning, source)
    }

    pub(crate) fn note(problem: impl Into<Problem>, source: &'static str) -> Finding {
        Finding::new(problem, Severity::Note, source)
    }

    /// Adds evidence, unless it is there already: several servers may include the same file.
    pub(crate) fn evidence(mut self, evidence: impl Into<Evidence>) -> Finding {
        let addition = evidence.into();
        if !self.evidence.contains(&addition) {
            self.evidence.push(addition);
        }
        self
    }

    pub(crate) fn evidence_all(
        self,
        all: impl IntoIterator<Item = impl Into<Evidence>>,
    ) -> Finding {
        all.into_iter().fold(self, Finding::evidence)
    }

    pub(crate) fn change(mut self, command: impl Into<String>) -> Finding {
        self.change.push(command.into());
        self
    }

    /// Adds commands that edit nginx's files, followed by a reload, which drops no connections.
    pub(crate) fn change_nginx(self, commands: impl IntoIterator<Item = String>) -> Finding {
        let mut changed = self;
        for command in commands {
            // A line that two places take from one file is edited once.
            if !changed.change.contains(&command) {
                changed.change.push(command);
            }
        }
        changed.then(Then::Reload)
    }

    pub(crate) fn then(mut self, then: Then) -> Finding {
        self.then = then;
        self
    }

    /// Adds commands that set a sysctl now and at every boot. The file name sorts after `99-sysctl.conf`, through which
    /// Debian applies /etc/sysctl.conf.
    pub(crate) fn change_sysctl(mut self, key: &str, value: &str) -> Finding {
        self.change.push(if value.contains(' ') {
            format!("sysctl -w {key}='{value}'")
        } else {
            format!("sysctl -w {key}={value}")
        });
        self.persist.push(format!("echo '{key} = {value}' >> /etc/sysctl.d/99-tuning.conf"));
        self
    }
}

/// Capacity that the settings allow, whatever the load to judge by, and its calculation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Room {
    /// Clients at once.
    Clients {
        /// Number that the settings allow.
        amount: u64,
        /// Number of workers.
        workers: u64,
        /// Connections that each worker can have.
        connections: u64,
        /// True if the limit of descriptors allows no more connections, rather than worker_connections.
        is_capped: bool,
        /// Connections that a client takes.
        connections_per_client: u64,
    },
    /// New connections to origin servers per second.
    OriginConnections {
        /// Rate that the settings allow.
        amount: u64,
        /// Local ports for outgoing connections.
        ports: u64,
        /// Addresses of origin servers.
        origins: u64,
        /// Seconds for which TIME_WAIT occupies a tuple.
        held_s: f64,
    },
    /// Connections that a node of a cluster tracks.
    TrackedConnections {
        /// Number that kube-proxy's settings allow.
        amount: u64,
        /// The node and kube-proxy's settings.
        #[serde(flatten)]
        table: NodeTable,
    },
}
