//! Observations of the rules of validity, in figures.

use serde::{Deserialize, Serialize};

use crate::load::{ErrorCount, LeftOut};

/// Observation that makes a figure doubtful, with one case for each rule of validity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum Observation {
    /// No response was complete.
    NothingAnswered {
        /// Most frequent error; `None` without errors.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorCount>,
    },
    /// Few responses have a measured time.
    FewResponses {
        /// Number of such responses.
        responses: u64,
    },
    /// Requests failed.
    Failures {
        /// Number of failed requests.
        failed: u64,
        /// Number of all requests.
        requests: u64,
        /// Most frequent error; `None` without errors.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorCount>,
    },
    /// The generator had no local port for connections.
    PortsExhausted {
        /// Number of such connections.
        connections: u64,
    },
    /// The hypervisor kept CPU time of the proxy for others.
    ProxySteal {
        /// Share of the time of the proxy's CPUs.
        share: f64,
    },
    /// The hypervisor kept CPU time of the generator for others.
    Steal {
        /// Share of the time of the generator's CPUs.
        share: f64,
    },
    /// A CPU quota held back weir's own control groups.
    Throttled(HeldBack),
    /// A CPU quota held back the proxy's control groups.
    ProxyThrottled(HeldBack),
    /// Other processes used the CPUs of the proxy.
    ProxyCrowded {
        /// The CPUs.
        cpus: CrowdedCpus,
        /// Share of their time that other processes used.
        share: f64,
    },
    /// Generator or origin server was the limit, not the proxy.
    ProxyNotLimit {
        /// Share of the time for which the proxy's CPUs were idle.
        idle_share: f64,
        /// Role that was busy meanwhile.
        peer: Peer,
        /// Share of the time of its CPUs that it used.
        peer_share: f64,
    },
    /// Half of the responses took longer than the part of a slice that is not measured.
    SliceTooShort {
        /// Median response time, nanoseconds.
        median_ns: f64,
        /// Length of the part that is not measured, nanoseconds.
        unmeasured_ns: f64,
    },
    /// Counters were read late.
    LateCounters {
        /// Mean delay of a slice, nanoseconds.
        late_ns: f64,
        /// Share of the slices' time.
        share: f64,
    },
    /// More or fewer requests were offered than were due.
    OfferedRate {
        /// Number of requests that were sent, waited for a connection or were left out.
        offered: u64,
        /// Number of requests that were due.
        due: u64,
    },
    /// Lines of a recorded trace are not sent.
    TraceLeftOut {
        /// Number of all lines.
        lines: u64,
        /// The lines that are not sent, by kind.
        left_out: Vec<LeftOut>,
    },
    /// Several generators started at different times.
    StartSpread {
        /// Time between the first start and the last one, nanoseconds.
        spread_ns: u64,
        /// Uncertainty of that time, nanoseconds.
        uncertainty_ns: u64,
    },
    /// Nodes with pods of the proxies were lost.
    NodeLost {
        /// The nodes.
        nodes: Vec<LostNode>,
    },
    /// Requests were left out because no connection was idle.
    Dropped {
        /// Number of such requests.
        dropped: u64,
        /// Number of requests that were due.
        due: u64,
    },
    /// The generator itself sent late.
    DispatchLag {
        /// Quantile that both times are of (0..1).
        quantile: f64,
        /// Delay of the sends, nanoseconds.
        lag_ns: u64,
        /// Response time, nanoseconds.
        response_ns: u64,
    },
    /// Threads of the generator share CPUs.
    ThreadsCrowded {
        /// Number of threads.
        threads: u64,
        /// Number of CPUs.
        cpus: u64,
    },
    /// The generator had little CPU time to spare.
    GeneratorBusy {
        /// Share of its CPU time that it used.
        share: f64,
        /// True if requests came by a schedule, so that the generator does not limit the rate.
        is_open: bool,
    },
    /// A thread of the generator stood still.
    GeneratorStopped {
        /// Length of the longest standstill, nanoseconds.
        gap_ns: u64,
        /// Measured time, nanoseconds.
        measured_ns: f64,
    },
    /// The rate is close to the generator's own limit.
    NearSelfCapacity {
        /// Offered requests per second.
        rate: f64,
        /// Requests per second that the generator can send, by calibration.
        self_capacity: f64,
    },
    /// Requests never ended.
    Censored {
        /// Number of such requests.
        unended: u64,
        /// Number of all requests.
        requests: u64,
        /// Age of the oldest request that never ended, nanoseconds.
        oldest_ns: u64,
    },
    /// Received bytes waited for a buffer of the generator.
    GeneratorStarved {
        /// Number of receives that waited.
        starved: u64,
        /// Approximate number of all receives.
        receives: u64,
    },
    /// Connections found a listen queue full.
    ListenOverflows {
        /// Number of such connections on the host.
        on_host: u64,
        /// Upper bound of the connections among them that the measurement opened.
        of_trial: u64,
    },
    /// Connections were not open when the trial began.
    ConnectionsMissing {
        /// Number of connections wanted.
        wanted: u64,
        /// Number of connections that were open.
        open_at_start: u64,
    },
    /// Held connections were not open from the start to the end.
    HeldConnections {
        /// Number of connections wanted.
        wanted: u64,
        /// Number of connections that were open at the start.
        open_at_start: u64,
        /// Number of connections that were open at the end.
        open_at_end: u64,
        /// Number of connections that were lost in between.
        lost: u64,
    },
    /// Bytes went by TCP on a hop that is to bypass it.
    BypassIdle {
        /// Name of the hop: `inbound` or `outbound`.
        hop: String,
        /// Number of bytes that bypassed TCP.
        redirected_bytes: u64,
        /// Number of bytes that went by TCP.
        tcp_bytes: u64,
        /// Number of messages that bypassed TCP.
        redirected: u64,
        /// Number of messages that went by TCP.
        tcp: u64,
    },
    /// The bypass had no place for sockets of a hop.
    BypassRefused {
        /// Name of the hop: `inbound` or `outbound`.
        hop: String,
        /// Number of sockets without a place.
        refused: u64,
        /// Number of all sockets.
        sockets: u64,
    },
}

impl Observation {
    /// Returns the name of the rule: `generator-busy`.
    pub fn rule(&self) -> &'static str {
        match self {
            Observation::NothingAnswered { .. } => "nothing-answered",
            Observation::FewResponses { .. } => "few-responses",
            Observation::Failures { .. } => "failures",
            Observation::PortsExhausted { .. } => "ports-exhausted",
            Observation::ProxySteal { .. } => "proxy-steal",
            Observation::Steal { .. } => "steal",
            Observation::Throttled(_) => "throttled",
            Observation::ProxyThrottled(_) => "proxy-throttled",
            Observation::ProxyCrowded { .. } => "proxy-crowded",
            Observation::ProxyNotLimit { .. } => "proxy-not-limit",
            Observation::SliceTooShort { .. } => "slice-too-short",
            Observation::LateCounters { .. } => "late-counters",
            Observation::OfferedRate { .. } => "offered-rate",
            Observation::TraceLeftOut { .. } => "trace-left-out",
            Observation::StartSpread { .. } => "start-spread",
            Observation::NodeLost { .. } => "node-lost",
            Observation::Dropped { .. } => "dropped",
            Observation::DispatchLag { .. } => "dispatch-lag",
            Observation::ThreadsCrowded { .. } => "threads-crowded",
            Observation::GeneratorBusy { .. } => "generator-busy",
            Observation::GeneratorStopped { .. } => "generator-stopped",
            Observation::NearSelfCapacity { .. } => "near-self-capacity",
            Observation::Censored { .. } => "censored",
            Observation::GeneratorStarved { .. } => "generator-starved",
            Observation::ListenOverflows { .. } => "listen-overflows",
            Observation::ConnectionsMissing { .. } => "connections-missing",
            Observation::HeldConnections { .. } => "held-connections",
            Observation::BypassIdle { .. } => "bypass-idle",
            Observation::BypassRefused { .. } => "bypass-refused",
        }
    }
}

/// Time for which a CPU quota held back the tasks of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldBack {
    /// The time, summed over CPUs, nanoseconds.
    pub held_back_ns: f64,
    /// Length of the slices in which it was counted, nanoseconds.
    pub slices_ns: f64,
}

/// CPUs that other processes used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CrowdedCpus {
    /// CPUs of a proxy that weir started.
    Proxy,
    /// CPUs of the host of a server that weir did not start.
    Host,
}

/// Roles beside the proxy in a closed loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    /// The load generator.
    Generator,
    /// The origin server.
    Origin,
    /// Generator and origin server together, which share CPUs.
    GeneratorAndOrigin,
}

/// A cluster node that was lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostNode {
    /// Name of the node.
    pub node: String,
    /// Reason that the cluster reported.
    pub why: String,
}
