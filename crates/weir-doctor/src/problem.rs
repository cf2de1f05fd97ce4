//! Problems that the rules find, with their figures, by subject.

use serde::Serialize;

/// A problem or a remark. `id` identifies it, in words with hyphens: stable from version to version.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Problem {
    /// Of workers and CPUs.
    Cpu(CpuProblem),
    /// Not yet in figures.
    Text {
        /// Identifier of the rule.
        id: &'static str,
        /// Summary in one line.
        title: String,
        /// The mechanism.
        why: String,
    },
}

macro_rules! from_subjects {
    ($($subject:ident($problem:ident)),* $(,)?) => {
        $(impl From<$problem> for Problem {
            fn from(problem: $problem) -> Problem {
                Problem::$subject(problem)
            }
        })*
    };
}

from_subjects! { Cpu(CpuProblem) }

impl Problem {
    /// Returns the identifier, as in the JSON form.
    pub fn id(&self) -> String {
        let form = serde_json::to_value(self).unwrap_or_default();
        form["id"].as_str().unwrap_or_default().to_owned()
    }
}

/// A problem of workers and the CPUs that they may use.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "id", rename_all = "kebab-case", rename_all_fields = "snake_case")]
pub enum CpuProblem {
    /// More workers than CPUs.
    WorkersAboveCpus {
        /// Number of workers.
        workers: u64,
        /// CPU time that they can have, in CPUs.
        cpus: f64,
    },
    /// Fewer workers than CPUs.
    WorkersBelowCpus {
        /// Number of workers.
        workers: u64,
        /// CPUs that they could use.
        cpus: u64,
    },
    /// Workers share a listener that gets many new connections.
    ListenersShared {
        /// Number of workers.
        workers: u64,
        /// New client connections per second.
        connections_per_second: f64,
    },
}
