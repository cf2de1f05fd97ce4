//! Findings about the machines that a workload needs.

use serde::{Deserialize, Serialize};
use weir_model::record::Validity;

/// Requests and connections of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workload {
    /// Requests per second.
    pub rate: f64,
    /// Open connections, idle ones included; `None`: as many as in the runs.
    pub connections: Option<f64>,
}

/// Machines and resources that a workload needs, from runs of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeFindings {
    /// Name of the arm.
    pub arm: String,
    /// Names of the runs.
    pub runs: Vec<String>,
    /// Worst validity of the runs.
    pub validity: Validity,
    /// The workload.
    pub workload: Workload,
    /// Measurements of the runs.
    pub basis: SizeBasis,
    /// Needs of one machine that takes the whole workload.
    pub one: Vec<Need>,
    /// Machines like the measured one; `None` if their number is not known.
    pub nodes: Option<Nodes>,
    /// Reason why their number is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_no_nodes: Option<NeedUnknown>,
}

/// Measurements behind a size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeBasis {
    /// Number of times in which the arm carried a load.
    pub windows: u32,
    /// Lowest and highest rate of them, requests per second.
    pub rates: (f64, f64),
    /// Fewest and most connections of them.
    pub connections: (f64, f64),
    /// Rate that one machine carries, requests per second.
    pub carried: f64,
    /// True if `carried` is the lower end of a capacity within an objective, false if it is the highest rate of a load
    /// that was answered.
    pub is_capacity: bool,
    /// Largest share of its CPUs that the proxy used while it carried a load, 0..1; `None` if it was not sampled.
    pub busiest: Option<f64>,
    /// Number of the proxy's CPUs.
    pub cpus: u32,
    /// Memory of the proxy's host, bytes.
    pub memory_bytes: u64,
}

/// Resource that a workload needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SizedResource {
    /// CPU time, in CPUs.
    CpuTime,
    /// CPUs that are no busier than those of the runs were while they carried a load.
    Cpus,
    /// Resident memory of the proxy, in bytes.
    Memory,
    /// Bytes per second between clients and proxy, in the busier direction.
    Network,
    /// TCP sockets of the proxy.
    Sockets,
}

/// Need of one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Need {
    /// The resource.
    pub resource: SizedResource,
    /// Its amount, with the ends of a 95 % interval; `None` if it is not known.
    pub amount: Option<(f64, (f64, f64))>,
    /// Reason why the amount is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_unknown: Option<NeedUnknown>,
}

/// Reason why a need is not known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NeedUnknown {
    /// The resource is known in this number of times, which is too few.
    FewWindows(u32),
    /// Rate and connections changed together.
    Entangled,
    /// The runs had nearly the same value of this variable everywhere, and the workload has another one.
    NotVaried(WorkloadVariable),
    /// The workload is beyond twice what was measured.
    BeyondTwice {
        /// The variable that is beyond.
        variable: WorkloadVariable,
        /// Its highest measured value.
        measured: f64,
        /// Its value in the workload.
        wanted: f64,
    },
    /// Even one request per second and connection needs more memory than the machine has.
    TooLittleMemory,
}

/// Variable of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkloadVariable {
    /// Requests per second.
    Rate,
    /// Open connections.
    Connections,
}

/// Machines like the measured one that share a workload evenly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nodes {
    /// Number of machines.
    pub count: u32,
    /// Reason why there are not fewer.
    pub bound: NodeBound,
    /// Workload of each.
    pub each: Workload,
    /// Needs of each.
    pub needs: Vec<Need>,
}

/// Reason for the number of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NodeBound {
    /// The rate that one machine carries.
    Rate,
    /// The most connections that were measured on one machine.
    Connections,
    /// The memory of one machine.
    Memory,
}

impl SizeFindings {
    /// Returns the need of a resource in `needs`, if it is known.
    pub fn amount(needs: &[Need], resource: SizedResource) -> Option<(f64, (f64, f64))> {
        needs.iter().find(|need| need.resource == resource)?.amount
    }
}
