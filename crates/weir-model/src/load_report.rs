//! What `weir load` found: the document behind every output format, versioned.

use serde::{Deserialize, Serialize};

use crate::load::{Arrivals, Assignment, Censored, Close, ErrorCount, Lifetime, Overflow};
use crate::record::{GeneratorStart, ValidityReason};

/// Version of [`LoadReport`].
pub const FORMAT: &str = "weir-load/1";

/// The result of one load test. All times are nanoseconds unless a name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadReport {
    /// [`FORMAT`] at the time of writing.
    pub format: String,
    /// Exact version of weir.
    pub weir_version: String,
    /// When the trial began, RFC 3339 in UTC.
    pub started_at: String,
    /// What was asked.
    pub target: Target,
    /// How it was asked.
    pub load: LoadShape,
    /// Phases in seconds; `sustain` is what was really measured.
    pub phases: PhaseSeconds,
    /// Rates in requests per second; figures of `sustain` alone.
    pub rates: Rates,
    /// Counts of `sustain` alone, but for connections.
    pub counts: Counts,
    /// Responses by status code, ascending.
    pub statuses: Vec<StatusCount>,
    /// Errors by kind, the most frequent first, over the whole trial.
    pub errors: Vec<ErrorCount>,
    /// Requests that never ended. They are not in the histograms.
    pub censored: Censored,
    /// From the intended start to the last byte: what a user waits. Free of coordinated omission.
    pub response_time: TimeReport,
    /// From the actual send to the last byte: what the server took.
    pub service_time: TimeReport,
    /// From the actual send to the first byte.
    pub first_byte: TimeReport,
    /// The engine's own lateness: from due, with a connection idle, to sent.
    pub dispatch_lag: TimeReport,
    /// Time to open a connection.
    pub connect_time: TimeReport,
    /// Time of a TLS handshake, from the open connection to where requests can be sent; empty in
    /// clear.
    #[serde(default)]
    pub tls_time: TimeReport,
    /// What was negotiated; absent in clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsReport>,
    /// CPU time of the generator's threads.
    pub generator_cpu_ns: Vec<u64>,
    /// What the generator and its host say about themselves.
    #[serde(default)]
    pub generator: GeneratorReport,
    /// Each of several generators by itself; everything else is all of them together, and histograms are sums of theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<LoadGenerator>,
    /// Second by second.
    pub over_time: Vec<Second>,
    /// Each flow by itself, when there are several; everything above is then all of them together,
    /// but for `target` and `load`, which are the first one's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowReport>,
    /// Reasons to doubt the figures; empty: VALID.
    pub validity: Vec<ValidityReason>,
    /// Remarks on unusual answers, such as redirects or responses without an end, with what to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// `complete` or `interrupted`.
    pub outcome: String,
}

/// One of several flows of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowReport {
    /// Its name.
    pub name: String,
    /// What was asked.
    pub target: Target,
    /// How it was asked.
    pub load: LoadShape,
    /// Rates in requests per second; figures of `sustain` alone.
    pub rates: Rates,
    /// Counts of `sustain` alone, but for connections.
    pub counts: Counts,
    /// Responses by status code, ascending.
    pub statuses: Vec<StatusCount>,
    /// Errors by kind, the most frequent first.
    pub errors: Vec<ErrorCount>,
    /// Requests that never ended.
    pub censored: Censored,
    /// From the intended start to the last byte.
    pub response_time: TimeReport,
    /// From the actual send to the last byte.
    pub service_time: TimeReport,
    /// From the actual send to the first byte.
    pub first_byte: TimeReport,
    /// From due, with a connection idle, to sent.
    pub dispatch_lag: TimeReport,
    /// Time to open a connection.
    pub connect_time: TimeReport,
    /// Time of a TLS handshake.
    pub tls_time: TimeReport,
    /// What was negotiated; absent in clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsReport>,
}

/// One of several generators of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadGenerator {
    /// Its host, and when it started.
    #[serde(flatten)]
    pub start: GeneratorStart,
    /// Its threads, each pinned to the CPU named.
    pub cpus: Vec<Option<u32>>,
    /// CPU time of its threads.
    pub cpu_ns: Vec<u64>,
    /// Requests that were due.
    pub due: u64,
    /// Requests sent.
    pub offered: u64,
    /// Requests left out.
    pub dropped: u64,
    /// Requests that waited and were never sent.
    pub queued: u64,
    /// Responses whose last byte came.
    pub completed: u64,
    /// From the intended start to the last byte.
    pub response_time: TimeReport,
    /// From due, with a connection idle, to sent.
    pub dispatch_lag: TimeReport,
    /// What it says about itself.
    pub generator: GeneratorReport,
}

/// TLS handshakes by what they agreed on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlsReport {
    /// Handshakes completed over the whole trial.
    pub handshakes: u64,
    /// Of these, resumed from an earlier session.
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
    /// Adds the handshakes of others.
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

/// How often something with a name was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NameCount {
    /// The name.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// What the generator says about itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorReport {
    /// `io_uring` or `epoll`.
    pub io: String,
    /// Of the CPU time of each of its threads, how long that was awake only because a request was soon due
    /// (`--spin`), in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spun_ns: Vec<u64>,
    /// How late its threads were woken, at the median and at the p99, in nanoseconds; responses are stamped as
    /// late. Of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woken_late_ns: Option<[u64; 2]>,
    /// Of each of its threads, the longest time in measured time for which it neither came round nor had asked to wait,
    /// in nanoseconds: it was stopped, or others had its CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub longest_gap_ns: Vec<u64>,
    /// How often received bytes had to wait for a buffer.
    pub starved: u64,
    /// Share of its CPUs' time that the hypervisor took away, 0..1.
    pub steal: f64,
    /// Connections that found a full listen queue on this host during the trial, whoever listened
    /// (`TcpExt: ListenOverflows` of /proc/net/netstat).
    pub listen_overflows: u64,
    /// Requests per second that one of its threads has shown to be able to send, by
    /// `weir load --calibrate`; absent when this machine has not been calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_capacity: Option<f64>,
}

/// Whom the load asked for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// The URL as it was typed.
    pub url: String,
    /// Address that the name stood for.
    pub address: String,
    /// Method.
    pub method: String,
    /// Bytes of content sent with each request.
    pub content_bytes: u64,
}

/// The load as asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadShape {
    /// Closed or open loop.
    pub arrivals: Arrivals,
    /// Connections asked for.
    pub connections: u32,
    /// Threads, each pinned to the CPU named.
    pub cpus: Vec<Option<u32>>,
    /// Timeout in nanoseconds.
    pub timeout_ns: u64,
    /// Requests at most.
    pub requests: Option<u64>,
    /// How long a connection is used.
    #[serde(default)]
    pub lifetime: Lifetime,
    /// How connections that have served their time are closed.
    #[serde(default)]
    pub close: Close,
    /// Requests in flight on one connection at most; above 1, response times are those of a pipeline.
    #[serde(default = "one")]
    pub pipeline: u16,
    /// Which connection sends what is due.
    #[serde(default)]
    pub assignment: Assignment,
    /// What becomes of a request that finds no idle connection.
    #[serde(default)]
    pub overflow: Overflow,
    /// The user said which status codes are right; others are errors of kind `unexpected`.
    #[serde(default)]
    pub status_expected: bool,
}

fn one() -> u16 {
    1
}

/// Phases in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseSeconds {
    /// Not measured.
    pub ramp_up: f64,
    /// Measured.
    pub sustain: f64,
}

/// Rates in requests per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// Asked for; absent in a closed loop.
    pub intended: Option<f64>,
    /// Sent.
    pub offered: f64,
    /// Answered.
    pub completed: f64,
    /// Bytes received per second.
    pub received_bytes: f64,
}

/// Counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Requests that the schedule wanted sent; 0 in a closed loop.
    pub due: u64,
    /// Requests sent.
    pub offered: u64,
    /// Requests that were due when no connection was idle, and were not to wait.
    #[serde(default)]
    pub dropped: u64,
    /// Requests that were due, waited for an idle connection, and were never sent.
    #[serde(default)]
    pub queued: u64,
    /// Responses whose last byte came.
    pub completed: u64,
    /// Responses to all requests of the trial, ramp_up and drain included.
    pub completed_whole: u64,
    /// Bytes received over the whole trial.
    pub received_bytes: u64,
    /// Bytes of content received over the whole trial.
    pub content_bytes: u64,
    /// Connections that were open when the trial began.
    pub connected: u64,
    /// Connections opened over the whole trial.
    pub connects: u64,
    /// Of these, how many replaced one that had closed.
    pub reconnects: u64,
    /// Connections that the server closed while nothing was awaited on them.
    #[serde(default)]
    pub lost: u64,
    /// Connections that were open when the measuring ended.
    #[serde(default)]
    pub open_at_end: u64,
}

/// How often a status code came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusCount {
    /// The code.
    pub status: u16,
    /// How often.
    pub count: u64,
}

/// One distribution of times: in short, and without loss.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeReport {
    /// Values recorded.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stdev: f64,
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
    /// (quantile 0..1, nanoseconds).
    pub quantiles: Vec<(f64, u64)>,
    /// All of it: HdrHistogram, V2 encoding with deflate, base64; 1 ns to 1 h, three digits.
    pub histogram: String,
}

/// One second of `sustain`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Second {
    /// Begin, in seconds since the trial's start.
    pub at: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// Requests sent.
    pub offered: u64,
    /// Responses completed.
    pub completed: u64,
    /// Errors.
    pub errors: u64,
    /// Response time at quantile 0.5, nanoseconds.
    pub response_p50: u64,
    /// Response time at quantile 0.99, nanoseconds.
    pub response_p99: u64,
    /// Largest response time, nanoseconds.
    pub response_max: u64,
}
