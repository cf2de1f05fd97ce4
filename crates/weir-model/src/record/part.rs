//! Results of a continuous trial at its end, apart from its blocks.

use serde::{Deserialize, Serialize};

use super::generators::GeneratorStart;
use super::observation::LostNode;
use super::trial::{Phase, is_zero};
use crate::load::ErrorCount;
use crate::load_report::TlsReport;

/// One continuous trial: the blocks of a load that were measured with the same instances of the proxies, without a
/// pause in between.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartRecord {
    /// Session in which the trial was measured.
    pub session: u32,
    /// Name of the load.
    pub load: String,
    /// Purpose of the trial.
    #[serde(default, skip_serializing_if = "Phase::is_usual")]
    pub phase: Phase,
    /// Number of the trial's first block.
    pub first_block: u32,
    /// Number of the trial's blocks. In runs from before arms came and went as planned, it includes blocks cut off by a
    /// stop.
    pub blocks: u32,
    /// Blocks of other loads that shared the trial by turns; the counts below are of all these loads together. A shared
    /// trial has a record like this for each of its loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<LoadBlocks>,
    /// Number of the generator's threads.
    pub threads: u32,
    /// Kernel interface of the generator: `io_uring` or `epoll`.
    pub io: String,
    /// Number of times that received bytes had to wait for one of the generator's buffers.
    pub starved: u64,
    /// Connections that found a full listen queue on this host during the trial, on any socket (`TcpExt:
    /// ListenOverflows` of /proc/net/netstat).
    pub listen_overflows: u64,
    /// Maximum delay in reading the counters of a slice, nanoseconds.
    pub late_ns: u64,
    /// Offsets between the clocks of the hosts, measured before the trial; empty on one host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockOffset>,
    /// Start time of each generator; empty if there was only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<GeneratorStart>,
    /// Offset in nanoseconds to add to `start_ns` of the trial's slices to get their time in the samples of the run;
    /// absent if no samples were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_at_ns: Option<i64>,
    /// CPU time spent on reading samples on all hosts, nanoseconds; it is not part of the load's CPU time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub samples_cpu_ns: u64,
    /// Cluster nodes with pods of the proxies that were lost during the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_nodes: Vec<LostNode>,
    /// Errors that belong to no slice: connections that could not be opened before the trial.
    pub errors: Vec<ErrorCount>,
    /// Connections to each arm, in the order of the study.
    pub arms: Vec<ArmConnections>,
}

/// Offset of a host's clock from the generator's (from the first generator's, if several share the load).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockOffset {
    /// Name of the host.
    pub host: String,
    /// Nanoseconds by which the host's CLOCK_MONOTONIC is ahead.
    pub ahead_ns: i64,
}

/// Blocks of a load within a continuous trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadBlocks {
    /// Name of the load.
    pub load: String,
    /// Number of the first block.
    pub first_block: u32,
    /// Number of blocks.
    pub blocks: u32,
}

/// Statistics of the connections to one arm in a continuous trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArmConnections {
    /// Name of the arm.
    pub arm: String,
    /// Answered requests, including those of unmeasured slices.
    pub answered: u64,
    /// Connections that send requests.
    pub asking: ConnectionCounts,
    /// Connections that are only held; all counts are 0 if the load holds none.
    pub held: ConnectionCounts,
    /// TLS handshakes of the connections that send requests; absent without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsReport>,
    /// Connections that found the arm's own listen queue full; absent if the arm has no network namespace of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_overflows: Option<u64>,
    /// Memory of the arm's proxy processes before the last slice, when all connections were still open: the sum of
    /// their proportional set sizes (Pss, proc_pid_smaps_rollup(5)), bytes. 0 if it could not be read.
    pub proxy_memory_bytes: u64,
}

/// Counts of one kind of connections to one arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConnectionCounts {
    /// Number of connections that the study wants.
    pub wanted: u64,
    /// Connections open when the trial began; 0 if each request opens its own.
    pub open_at_start: u64,
    /// Connections open when the trial ended.
    pub open_at_end: u64,
    /// Total number of connections opened, for the first time or again.
    pub opened: u64,
    /// Connections that the proxy closed while another arm had the load, and that were opened again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_at_rest: u64,
}

impl ConnectionCounts {
    /// Adds the counts of another generator.
    pub fn add(&mut self, other: &ConnectionCounts) {
        self.wanted += other.wanted;
        self.open_at_start += other.open_at_start;
        self.open_at_end += other.open_at_end;
        self.opened += other.opened;
        self.lost_at_rest += other.lost_at_rest;
    }
}
