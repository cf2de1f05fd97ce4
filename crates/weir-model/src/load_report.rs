//! Result of `weir load`: the document behind every output format, versioned.

use serde::{Deserialize, Serialize};

use crate::load::{Arrivals, Assignment, Censored, Close, ErrorCount, Lifetime, Overflow};
use crate::record::{GeneratorStart, ValidityReason};

/// Format version of [`LoadReport`].
pub const FORMAT: &str = "weir-load/2";

/// The result of one load test. All times are in nanoseconds unless a name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadReport {
    /// [`FORMAT`] at the time of writing.
    pub format: String,
    /// Exact version of weir.
    pub weir_version: String,
    /// When the trial began, RFC 3339 in UTC.
    pub started_at: String,
    /// Results of the load; with several flows, of all of them together, except `target` and `load`, which are the first
    /// flow's.
    #[serde(flatten)]
    pub results: FlowResults,
    /// Phases in seconds; `sustain` is the time that was really measured.
    pub phases: PhaseSeconds,
    /// CPU time of each of the generator's threads, nanoseconds.
    pub generator_cpu_ns: Vec<u64>,
    /// The generator's statistics of itself and its host.
    #[serde(default)]
    pub generator: GeneratorReport,
    /// Results of each generator if there are several. All other figures are of all generators together, and histograms
    /// are sums of theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<LoadGenerator>,
    /// Results for each second.
    pub over_time: Vec<Second>,
    /// Results of each flow if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowReport>,
    /// Reasons to doubt the figures; if empty, the trial is VALID.
    pub validity: Vec<ValidityReason>,
    /// Notes on unusual responses, such as redirects or responses without an end, with advice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Outcome of the test: `complete` or `interrupted`.
    pub outcome: String,
}

/// Results of one of several flows of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowReport {
    /// Name of the flow.
    pub name: String,
    /// Results of this flow.
    #[serde(flatten)]
    pub results: FlowResults,
}

/// Results of one flow, or of all flows of a load together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowResults {
    /// Target of the requests.
    pub target: Target,
    /// Shape of the load.
    pub load: LoadShape,
    /// Rates in requests per second, in `sustain` only.
    pub rates: Rates,
    /// Counts in `sustain` only, except for connections.
    pub counts: Counts,
    /// Responses by status code, ascending.
    pub statuses: Vec<StatusCount>,
    /// Errors by kind over the whole trial, the most frequent first.
    pub errors: Vec<ErrorCount>,
    /// Requests that had not ended when the trial did. They are not in the histograms.
    pub censored: Censored,
    /// Time from the intended start to the last byte: the wait of a user. Free of coordinated omission.
    pub response_time: TimeReport,
    /// Time from the actual send to the last byte: the time that the server took.
    pub service_time: TimeReport,
    /// Time from the actual send to the first byte.
    pub first_byte: TimeReport,
    /// The engine's own delay: from the moment when a request is due and a connection is idle, to the send.
    pub dispatch_lag: TimeReport,
    /// Time to open a connection.
    pub connect_time: TimeReport,
    /// Time of a TLS handshake, from the open connection until requests can be sent; empty without TLS.
    #[serde(default)]
    pub tls_time: TimeReport,
    /// Negotiated TLS parameters; absent without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsReport>,
}

/// Results of one of several generators of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadGenerator {
    /// Host of the generator, and its start time.
    #[serde(flatten)]
    pub start: GeneratorStart,
    /// CPU that each of its threads is pinned to; null if a thread is not pinned.
    pub cpus: Vec<Option<u32>>,
    /// CPU time of each of its threads, nanoseconds.
    pub cpu_ns: Vec<u64>,
    /// Requests that were due.
    pub due: u64,
    /// Requests sent.
    pub offered: u64,
    /// Requests that were due when no connection was idle, and were not sent.
    pub dropped: u64,
    /// Requests that waited and were never sent.
    pub queued: u64,
    /// Responses received completely.
    pub completed: u64,
    /// Time from the intended start to the last byte.
    pub response_time: TimeReport,
    /// Delay from the moment when a request is due and a connection is idle, to the send.
    pub dispatch_lag: TimeReport,
    /// The generator's statistics of itself and its host.
    pub generator: GeneratorReport,
}

/// TLS handshakes by negotiated parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlsReport {
    /// Handshakes completed over the whole trial.
    pub handshakes: u64,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Connections whose early data the server accepted.
    pub early_data: u64,
    /// Handshakes by protocol version.
    pub versions: Vec<NameCount>,
    /// Handshakes by cipher suite.
    pub ciphers: Vec<NameCount>,
    /// Full handshakes by key exchange group.
    pub groups: Vec<NameCount>,
}

impl TlsReport {
    /// Adds the handshakes of another report.
    pub fn add(&mut self, other: TlsReport) {
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
        self.early_data += other.early_data;
        let names = [
            (&mut self.versions, other.versions),
            (&mut self.ciphers, other.ciphers),
            (&mut self.groups, other.groups),
        ];
        for (sum, more) in names {
            for named in more {
                match sum.iter_mut().find(|known| known.name == named.name) {
                    Some(known) => known.count += named.count,
                    None => sum.push(named),
                }
            }
        }
    }
}

/// Number of occurrences of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NameCount {
    /// The name that was counted.
    pub name: String,
    /// Number of occurrences.
    pub count: u64,
}

/// The generator's statistics of itself and its host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorReport {
    /// Kernel interface: `io_uring` or `epoll`.
    pub io: String,
    /// CPU time that each thread spent awake only because a request was soon due (`--spin`), nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spun_ns: Vec<u64>,
    /// Delay of its threads' wake-ups: median and p99, nanoseconds; the timestamps of responses are as late. Only in an
    /// open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woken_late_ns: Option<[u64; 2]>,
    /// Longest gap per thread within the measured time, nanoseconds, in which the thread neither ran its loop nor had
    /// asked to wait: it was stopped, or others had its CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub longest_gap_ns: Vec<u64>,
    /// Number of times that received bytes had to wait for a buffer.
    pub starved: u64,
    /// Share (0..1) of its CPUs' time that the hypervisor took away.
    pub steal: f64,
    /// Connections that found a full listen queue on this host during the trial, on any socket (`TcpExt:
    /// ListenOverflows` of /proc/net/netstat).
    pub listen_overflows: u64,
    /// Requests per second that one of its threads can send, as measured by `weir load --calibrate`; absent if this
    /// machine has not been calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_capacity: Option<f64>,
}

/// Target of a load's requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// The URL as it was typed.
    pub url: String,
    /// Address that the name resolved to.
    pub address: String,
    /// Method of the requests.
    pub method: String,
    /// Bytes of content sent with each request.
    pub content_bytes: u64,
}

/// The load as requested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadShape {
    /// Arrivals of requests: closed or open loop.
    pub arrivals: Arrivals,
    /// Connections as requested.
    pub connections: u32,
    /// CPU that each thread is pinned to; null if a thread is not pinned.
    pub cpus: Vec<Option<u32>>,
    /// Timeout in nanoseconds.
    pub timeout_ns: u64,
    /// Maximum number of requests; absent if there is no limit.
    pub requests: Option<u64>,
    /// Lifetime of a connection.
    #[serde(default)]
    pub lifetime: Lifetime,
    /// Way to close connections at the end of their lifetime.
    #[serde(default)]
    pub close: Close,
    /// Maximum number of requests in flight on one connection; above 1, response times are those of a pipeline.
    #[serde(default = "one")]
    pub pipeline: u16,
    /// Rule that assigns due requests to connections.
    #[serde(default)]
    pub assignment: Assignment,
    /// Treatment of a request that is due when no connection is idle.
    #[serde(default)]
    pub overflow: Overflow,
    /// True if the user gave the expected status codes; other codes are errors of kind `unexpected`.
    #[serde(default)]
    pub status_expected: bool,
}

fn one() -> u16 {
    1
}

/// Lengths of the phases in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseSeconds {
    /// Length of the phase before measuring.
    pub ramp_up: f64,
    /// Length of the measured phase.
    pub sustain: f64,
}

/// Rates in requests per second, and bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// Requested rate; absent in a closed loop.
    pub intended: Option<f64>,
    /// Rate at which requests were sent.
    pub offered: f64,
    /// Rate at which requests were answered.
    pub completed: f64,
    /// Bytes received per second.
    pub received_bytes: f64,
}

/// Counts of requests, responses, bytes and connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Requests that were due by the schedule; 0 in a closed loop.
    pub due: u64,
    /// Requests sent.
    pub offered: u64,
    /// Requests that were due when no connection was idle, and were dropped instead of queued.
    #[serde(default)]
    pub dropped: u64,
    /// Requests that were due, waited for an idle connection, and were never sent.
    #[serde(default)]
    pub queued: u64,
    /// Responses received completely.
    pub completed: u64,
    /// Responses to all requests of the trial, including `ramp_up` and `drain`.
    pub completed_whole: u64,
    /// Bytes received over the whole trial.
    pub received_bytes: u64,
    /// Bytes of content received over the whole trial.
    pub content_bytes: u64,
    /// Connections that were open when the trial began.
    pub connected: u64,
    /// Connections opened over the whole trial.
    pub connects: u64,
    /// Connections that replaced one that had closed.
    pub reconnects: u64,
    /// Connections that the server closed while no response was awaited on them.
    #[serde(default)]
    pub lost: u64,
    /// Connections that were open when measuring ended.
    #[serde(default)]
    pub open_at_end: u64,
}

/// Number of responses with a status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusCount {
    /// The status code.
    pub status: u16,
    /// Number of responses.
    pub count: u64,
}

/// A distribution of times in nanoseconds: a summary, and the lossless histogram.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeReport {
    /// Number of values recorded.
    pub count: u64,
    /// Mean of the values.
    pub mean: f64,
    /// Standard deviation.
    pub stdev: f64,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// Quantiles: (quantile 0..1, nanoseconds).
    pub quantiles: Vec<(f64, u64)>,
    /// The whole distribution: HdrHistogram, V2 encoding with deflate, base64; 1 ns to 1 h, three digits.
    pub histogram: String,
}

/// Results of one second of `sustain`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Second {
    /// Start, in seconds since the start of the trial.
    pub at: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// Requests sent.
    pub offered: u64,
    /// Responses completed.
    pub completed: u64,
    /// Number of errors.
    pub errors: u64,
    /// Response time at quantile 0.5, nanoseconds.
    pub response_p50: u64,
    /// Response time at quantile 0.99, nanoseconds.
    pub response_p99: u64,
    /// Largest response time, nanoseconds.
    pub response_max: u64,
}
