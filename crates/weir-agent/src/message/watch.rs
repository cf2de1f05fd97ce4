//! Messages about watching: a clock reads counters at every switch of the load.

use serde::{Deserialize, Serialize};
use weir_model::quantity::CpuSet;
use weir_model::record::{HoldUps, SocketCounts};

/// Request to read counters at the start of every slice and at the end of the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchJob {
    /// Start of the trial by this host's CLOCK_MONOTONIC, nanoseconds.
    pub start_ns: u64,
    /// Start of each slice, nanoseconds since the trial's start, followed by the end of the last slice.
    pub times: Vec<u64>,
    /// Time, for each slice, at which everything that the previous arm had in flight has ended. If this is later than
    /// the slice's start, the previous arm's rest is counted from here.
    #[serde(default)]
    pub settled: Vec<u64>,
    /// Arm of each slice, as an index into `slots`.
    pub arms: Vec<usize>,
    /// The slots of the arms that take part.
    pub slots: Vec<usize>,
    /// CPUs of each proxy, in the order of `slots`; `None`: the proxies are not on this host.
    pub proxies: Option<Vec<CpuSet>>,
    /// CPUs of the generator; `None`: it is not on this host.
    pub generator: Option<CpuSet>,
    /// True if the origin server is on this host.
    pub origin: bool,
    /// CPUs of this host whose time is reduced while an arm has the load, and by how many per cent; one entry for each
    /// arm, in the order of `slots`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<Option<(CpuSet, u32)>>,
}

/// Counters at the start of a slice. Counters of other hosts are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Index of the slice; at the end of the trial, the number of slices.
    pub slice: usize,
    /// Arm whose counters these are, as an index into [`WatchJob::slots`].
    pub arm: usize,
    /// CPU time of the arm's proxy, nanoseconds.
    pub proxy_cpu_ns: u64,
    /// Time that the arm has rested since its last answers, nanoseconds; 0 if the arm has not rested.
    #[serde(default)]
    pub rest_ns: u64,
    /// CPU time that the arm's proxy used during `rest_ns`.
    #[serde(default)]
    pub rest_cpu_ns: u64,
    /// Requests that the arm's origin listener has received.
    pub origin_requests: u64,
    /// Connections that the arm's origin listener has accepted.
    pub origin_connects: u64,
    /// CPU time of the origin server, nanoseconds.
    pub origin_cpu_ns: u64,
    /// Steal time of the arm's CPUs, nanoseconds.
    pub proxy_steal_ns: u64,
    /// Idle time of the arm's CPUs, nanoseconds.
    pub proxy_idle_ns: u64,
    /// Time that the arm's CPUs spent on interrupts, nanoseconds.
    #[serde(default)]
    pub proxy_irq_ns: u64,
    /// Time that the CPUs of the arm that had the load until now spent on interrupts.
    #[serde(default)]
    pub left_irq_ns: u64,
    /// Time for which CPU quotas held back weir's own control groups, nanoseconds.
    #[serde(default)]
    pub throttled_ns: u64,
    /// Time for which CPU quotas held back those control groups of the arm's proxy that weir is not in.
    #[serde(default)]
    pub proxy_throttled_ns: u64,
    /// Steal time of the CPUs of the arm that had the load until now; these may be other CPUs.
    pub left_steal_ns: u64,
    /// Idle time of the CPUs of the arm that had the load until now.
    pub left_idle_ns: u64,
    /// Steal time of the generator's CPUs, nanoseconds.
    pub generator_steal_ns: u64,
    /// Sockets of the arm's network namespace, or of the host if the arm has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<SocketCounts>,
    /// Sockets of the arm that had the load until now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_sockets: Option<SocketCounts>,
    /// Time for which CPUs stood still since the previous reading; for proxies, the CPUs of the arm that had the load
    /// until now.
    #[serde(default, skip_serializing_if = "HoldUps::is_unknown")]
    pub held_up: HoldUps,
    /// Delay of the reading behind its due time, nanoseconds.
    pub late_ns: u64,
}

impl Reading {
    /// Merges a reading that another host took at the same time. Each counter belongs to one host only.
    pub fn add(&mut self, other: &Reading) {
        self.proxy_cpu_ns += other.proxy_cpu_ns;
        self.rest_ns += other.rest_ns;
        self.rest_cpu_ns += other.rest_cpu_ns;
        self.origin_requests += other.origin_requests;
        self.origin_connects += other.origin_connects;
        self.origin_cpu_ns += other.origin_cpu_ns;
        self.proxy_steal_ns += other.proxy_steal_ns;
        self.proxy_idle_ns += other.proxy_idle_ns;
        self.proxy_irq_ns += other.proxy_irq_ns;
        self.left_irq_ns += other.left_irq_ns;
        self.throttled_ns += other.throttled_ns;
        self.proxy_throttled_ns += other.proxy_throttled_ns;
        self.left_steal_ns += other.left_steal_ns;
        self.left_idle_ns += other.left_idle_ns;
        self.generator_steal_ns += other.generator_steal_ns;
        self.sockets = self.sockets.or(other.sockets);
        self.left_sockets = self.left_sockets.or(other.left_sockets);
        self.held_up.add(&other.held_up);
        self.late_ns = self.late_ns.max(other.late_ns);
    }
}

/// Result of a watch, besides its readings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchEnd {
    /// Connections that met a full listen queue during the watch, at any listener.
    pub listen_overflows: u64,
    /// Connections that met a full listen queue of the arm itself, in the order of [`WatchJob::slots`]; only for arms
    /// with a namespace of their own.
    pub arm_overflows: Vec<u64>,
    /// Memory of each arm's proxy at the start of the last slice, bytes.
    pub memory: Vec<u64>,
    /// Largest delay of a reading behind its due time, nanoseconds.
    pub late_ns: u64,
}
