//! The machine and the programs that a run was made with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Facts about a machine and its programs that are needed to judge or repeat a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// Kernel release and version, as `uname -rv` prints them.
    pub kernel: String,
    /// Distribution, from `PRETTY_NAME` of os-release.
    pub distribution: String,
    /// CPU model, from /proc/cpuinfo.
    pub cpu_model: String,
    /// CPUs that weir may run on.
    pub cpus: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Hypervisor named by the CPU flags or DMI; empty if none is detected.
    pub virtualization: String,
    /// Soft and hard limit of open descriptors of weir itself.
    pub nofile: (u64, u64),
    /// Sysctls that matter for a proxy's load: name to value as the kernel prints it.
    pub sysctls: BTreeMap<String, String>,
    /// Programs that took part: name to the version they print.
    pub versions: BTreeMap<String, String>,
    /// SHA-256 and path of each program that an arm runs, as sha256sum(1) prints them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program_sums: Vec<String>,
    /// Privileges of the process: `root`, or `unprivileged`.
    pub privileges: String,
}
