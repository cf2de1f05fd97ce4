//! Findings about what arms carry for what they cost.

use serde::{Deserialize, Serialize};

/// Rate, CPU time, memory and privileges of the arms under one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrontierFindings {
    /// Name of the load.
    pub load: String,
    /// True if the rates are capacities within the study's objective; if not, they are completed rates.
    pub is_capacity: bool,
    /// Arms without the A/A arm: those with the fewest needs first, then by falling rate.
    pub arms: Vec<FrontierArm>,
}

/// An arm with its rate and its costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrontierArm {
    /// Name of the arm.
    pub arm: String,
    /// Requests per second.
    pub rate: f64,
    /// Requests per second of CPU time of the proxy; `None` if its CPU time is not known.
    pub per_cpu: Option<f64>,
    /// Highest resident memory of the proxy in samples, bytes; `None` if it was not sampled.
    pub memory: Option<u64>,
    /// Needs of the arm beyond a program and its configuration, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Privilege>,
    /// First arm that is shown to be no worse in anything and better in something; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dominated_by: Option<String>,
}

/// Permission or program that a setting needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Privilege {
    /// A program or library around the proxy.
    Launcher,
    /// Kernel settings of the proxy's network namespace.
    NetworkSettings,
    /// Kernel settings of the whole host.
    HostSettings,
    /// eBPF programs that carry its bytes.
    Bpf,
}
