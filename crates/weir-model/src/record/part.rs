//! What is known of a continuous trial at its end, beside its blocks.

use serde::{Deserialize, Serialize};

use super::generators::GeneratorStart;
use super::trial::{Phase, is_zero};
use crate::load::ErrorCount;
use crate::load_report::TlsReport;

/// One continuous trial: the blocks of a load that were measured with the same instances of the
/// proxies, without a pause in between. Runs of before it was kept have none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartRecord {
    /// The session it was measured in.
    pub session: u32,
    /// The load.
    pub load: String,
    /// What it was for.
    #[serde(default, skip_serializing_if = "Phase::is_usual")]
    pub phase: Phase,
    /// Number of its first block.
    pub first_block: u32,
    /// Its blocks; in runs of before arms came and went as planned, those included that a stop has cut off.
    pub blocks: u32,
    /// Blocks of other loads that it was shared with, taken in turns; the counts below are of all of them
    /// together. A shared trial has such a record for each of its loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<LoadBlocks>,
    /// Threads of the generator.
    pub threads: u32,
    /// How the generator asked the kernel: `io_uring` or `epoll`.
    pub io: String,
    /// How often received bytes had to wait for one of the generator's buffers.
    pub starved: u64,
    /// Connections that found a full listen queue on this host while it lasted, whoever listened
    /// (`TcpExt: ListenOverflows` of /proc/net/netstat).
    pub listen_overflows: u64,
    /// How late the counters of a slice were read at most, nanoseconds.
    #[serde(default)]
    pub late_ns: u64,
    /// How far the clocks of the hosts are apart, as found before it began; empty on one host, and in records of
    /// before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockOffset>,
    /// When each of several generators started; empty where one had all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<GeneratorStart>,
    /// What is added to `start_ns` of its slices to get their time in the samples of the run, nanoseconds; absent: no
    /// samples were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_at_ns: Option<i64>,
    /// CPU time that reading samples took on all hosts, nanoseconds; no part of what the load took.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub samples_cpu_ns: u64,
    /// Nodes of a cluster with pods of the proxies that were lost while it lasted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_nodes: Vec<LostNode>,
    /// Errors that belong to no slice: connections that could not be opened before the trial.
    pub errors: Vec<ErrorCount>,
    /// In the order of the study.
    pub arms: Vec<ArmConnections>,
}

/// A node of a cluster that was lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostNode {
    /// Its name.
    pub node: String,
    /// What the cluster said of it.
    pub why: String,
}

/// The clock of a host against the generator's (of the first one, where several share the load).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockOffset {
    /// The host.
    pub host: String,
    /// How far its CLOCK_MONOTONIC is ahead, nanoseconds.
    pub ahead_ns: i64,
}

/// Blocks of a load within a continuous trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadBlocks {
    /// The load.
    pub load: String,
    /// Number of the first.
    pub first_block: u32,
    /// How many.
    pub blocks: u32,
}

/// What became of the connections to one arm in a continuous trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArmConnections {
    /// The arm.
    pub arm: String,
    /// Requests that were answered, those of unmeasured slices included.
    #[serde(default)]
    pub answered: u64,
    /// Those that ask.
    pub asking: ConnectionCounts,
    /// Those that are held beside them; all 0 where the load holds none.
    #[serde(default)]
    pub held: ConnectionCounts,
    /// Handshakes of those that ask; absent in clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsReport>,
    /// Connections that found the arm's own listen queue full, where it has a network namespace of
    /// its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_overflows: Option<u64>,
    /// Memory of the arm's proxy processes before the last slice, when all connections were still
    /// open: the sum of their proportional set sizes (Pss, proc_pid_smaps_rollup(5)), bytes. 0
    /// where it could not be read.
    #[serde(default)]
    pub proxy_memory_bytes: u64,
}

/// Connections of one kind to one arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConnectionCounts {
    /// As many as the study wants.
    pub wanted: u64,
    /// Open when the trial began; 0 where each request opens its own.
    pub open_at_start: u64,
    /// Open when it ended.
    pub open_at_end: u64,
    /// Opened in all, the first time or again.
    pub opened: u64,
    /// Closed by the proxy while another arm had the load, and opened again; 0 in records of before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_at_rest: u64,
}

impl ConnectionCounts {
    /// Adds those of another generator.
    pub fn add(&mut self, other: &ConnectionCounts) {
        self.wanted += other.wanted;
        self.open_at_start += other.open_at_start;
        self.open_at_end += other.open_at_end;
        self.opened += other.opened;
        self.lost_at_rest += other.lost_at_rest;
    }
}
