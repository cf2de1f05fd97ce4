//! Evidence of findings: what was read, and what was calculated from it.

mod cluster;

use serde::Serialize;

pub use cluster::{ClusterEvidence, NodeTable};

use crate::configuration::Statement;
use crate::facts::{Facts, SysctlLine};

/// One piece of evidence. `kind` says which.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Evidence {
    /// Read in a file.
    File(FileEvidence),
    /// Read from the kernel.
    Host(HostEvidence),
    /// Read from a Kubernetes cluster.
    Cluster(ClusterEvidence),
    /// Not yet in figures.
    Text(String),
}

macro_rules! from_origins {
    ($($origin:ident($evidence:ident)),* $(,)?) => {
        $(impl From<$evidence> for Evidence {
            fn from(evidence: $evidence) -> Evidence {
                Evidence::$origin(evidence)
            }
        })*
    };
}

from_origins! { File(FileEvidence), Host(HostEvidence), Cluster(ClusterEvidence), Text(String) }

impl From<&str> for Evidence {
    fn from(text: &str) -> Evidence {
        Evidence::Text(text.to_owned())
    }
}

/// A line of a file, or the beginning of a directive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileLine {
    /// Path of the file.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Words of the line or the directive.
    pub text: String,
}

/// Evidence that was read in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileEvidence {
    /// A directive of nginx, or a line of another file.
    Line(FileLine),
    /// A directive that is not set.
    Unset {
        /// Name of the directive.
        name: String,
        /// nginx's default.
        default: String,
    },
    /// A line of a sysctl file.
    SysctlLine(SysctlLine),
}

/// Evidence that was read from the kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HostEvidence {
    /// A live sysctl.
    Sysctl {
        /// Dotted name.
        name: String,
        /// Value, runs of blanks replaced by single ones.
        value: String,
    },
    /// CPUs that are online.
    CpusOnline {
        /// Number of CPUs.
        cpus: u64,
    },
    /// CPUs that the proxy may run on.
    CpusAllowed {
        /// Number of CPUs.
        cpus: u64,
    },
    /// CPU time that the proxy's control group may use.
    CpuQuota {
        /// Time in CPUs.
        cpus: f64,
    },
}

impl Statement {
    /// Returns the directive without its block, and its place.
    pub fn place(&self) -> FileLine {
        FileLine { file: self.file.to_string(), line: self.line, text: self.words() }
    }
}

impl From<&Statement> for Evidence {
    fn from(statement: &Statement) -> Evidence {
        FileEvidence::Line(statement.place()).into()
    }
}

impl From<&SysctlLine> for Evidence {
    fn from(line: &SysctlLine) -> Evidence {
        FileEvidence::SysctlLine(line.clone()).into()
    }
}

impl Facts {
    /// Returns a live sysctl as evidence; `None` if it could not be read.
    pub(crate) fn live(&self, name: &str) -> Option<Evidence> {
        let value = self.sysctls.get(name)?;
        Some(HostEvidence::Sysctl { name: name.to_owned(), value: value.clone() }.into())
    }
}
