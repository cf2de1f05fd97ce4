//! Messages about watching: the clock that reads counters at every switch of the load.

use serde::{Deserialize, Serialize};
use weir_model::quantity::CpuSet;
use weir_model::record::{HoldUps, SocketCounts};

/// To read counters at the begin of every slice and at the end of the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchJob {
    /// The trial's start by this host's CLOCK_MONOTONIC, nanoseconds.
    pub start_ns: u64,
    /// Begin of each slice since then, nanoseconds; and the end of the last.
    pub times: Vec<u64>,
    /// When what the arm before had in flight has ended, for each slice: its rest is counted from there, where
    /// that is later than the slice's begin.
    #[serde(default)]
    pub settled: Vec<u64>,
    /// The arm of each slice: a place in `slots`.
    pub arms: Vec<usize>,
    /// The slots of the arms that take part.
    pub slots: Vec<usize>,
    /// Whether the proxies are on this host, and the CPUs that each has, in the order of `slots`.
    pub proxies: Option<Vec<CpuSet>>,
    /// Whether the generator is, and its CPUs.
    pub generator: Option<CpuSet>,
    /// Whether the origin server is.
    pub origin: bool,
    /// CPUs of this host of which each arm has less time while it has the load, in the order of `slots`, and how much
    /// less, per cent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<Option<(CpuSet, u32)>>,
}

/// Counters at the begin of a slice, as far as they are this host's; the others are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The slice; their number at the end of the trial.
    pub slice: usize,
    /// The arm whose counters these are: its place in [`WatchJob::slots`].
    pub arm: usize,
    /// CPU time of the arm's proxy, nanoseconds.
    pub proxy_cpu_ns: u64,
    /// How long the arm had rested, its last answers left out, nanoseconds; 0 where it had not.
    #[serde(default)]
    pub rest_ns: u64,
    /// CPU time of its proxy meanwhile.
    #[serde(default)]
    pub rest_cpu_ns: u64,
    /// Requests that the arm's origin listener has received.
    pub origin_requests: u64,
    /// Connections that it has accepted.
    pub origin_connects: u64,
    /// CPU time of the origin server.
    pub origin_cpu_ns: u64,
    /// Steal of the arm's CPUs.
    pub proxy_steal_ns: u64,
    /// Idle time of the arm's CPUs.
    pub proxy_idle_ns: u64,
    /// Time that the arm's CPUs served interrupts.
    #[serde(default)]
    pub proxy_irq_ns: u64,
    /// The same of the arm that had the load until now.
    #[serde(default)]
    pub left_irq_ns: u64,
    /// Time that CPU quotas held weir's own control groups back.
    #[serde(default)]
    pub throttled_ns: u64,
    /// The same of the groups of the arm's proxy that weir is not in.
    #[serde(default)]
    pub proxy_throttled_ns: u64,
    /// Steal of the CPUs of the arm that had the load until now, which may be others.
    pub left_steal_ns: u64,
    /// Idle time of those.
    pub left_idle_ns: u64,
    /// Steal of the generator's CPUs.
    pub generator_steal_ns: u64,
    /// Sockets of the arm's network namespace, or of the host where it has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<SocketCounts>,
    /// Those of the arm that had the load until now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_sockets: Option<SocketCounts>,
    /// How long CPUs stood still since the reading before, those of the arm that had the load until now.
    #[serde(default, skip_serializing_if = "HoldUps::is_unknown")]
    pub held_up: HoldUps,
    /// How late it was read, nanoseconds.
    pub late_ns: u64,
}

impl Reading {
    /// Puts what another host has read at the same time beside this: every counter is one host's.
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

/// What a watch leaves beside its readings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchEnd {
    /// Connections that found a full listen queue meanwhile, whoever listened.
    pub listen_overflows: u64,
    /// Connections that found the arm's own listen queue full, where it has a namespace of its own, in the
    /// order of [`WatchJob::slots`].
    pub arm_overflows: Vec<u64>,
    /// Memory of each arm's proxy before the last slice, bytes.
    pub memory: Vec<u64>,
    /// How late a reading was at most, nanoseconds.
    pub late_ns: u64,
}
