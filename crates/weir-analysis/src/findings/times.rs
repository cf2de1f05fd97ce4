//! Findings about the parts that response times consist of.

use serde::{Deserialize, Serialize};

/// Parts of the response times of an arm under one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhereTimeGoes {
    /// The load.
    pub load: String,
    /// Highest rate that was carried, in a search for a capacity; `None` in other studies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The arm.
    pub arm: String,
    /// Number of requests of the proxy's log that were evaluated, and of the requests that they represent.
    pub requests: (u64, u64),
    /// Resolution of the times in the proxy's log, microseconds.
    pub resolution_us: u64,
    /// True if the proxy logs how long it waits for the origin.
    pub knows_origin: bool,
    /// Rows, the mean first, then quantiles; empty if the proxy logged nothing.
    pub rows: Vec<TimeRow>,
    /// Waiting times of connections in the accept queue; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<AcceptFindings>,
    /// Segments that were retransmitted, per thousand requests; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted: Option<Retransmitted>,
}

/// Parts of the time of requests at one quantile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeRow {
    /// Quantile of the response time; `None` for the mean of all requests.
    pub quantile: Option<f64>,
    /// Time measured by the generator, microseconds: the response time, or the service time in a closed loop.
    pub seen_us: f64,
    /// Number of logged requests whose mean the parts are.
    pub requests: u64,
    /// Parts, in microseconds, in chronological order; empty if the log cannot tell them apart or has too few requests.
    pub parts: Vec<(TimePart, f64)>,
}

/// A part of a response time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimePart {
    /// Time outside of the proxy: the generator's queue, the network, the accept queue, and the time until the proxy
    /// read the first byte.
    Outside,
    /// Time in which the proxy read the request.
    Client,
    /// Time in which the proxy waited for a usable connection to the origin.
    Queue,
    /// Time in which the proxy opened a connection to the origin.
    Connect,
    /// Time in which the proxy waited for the origin.
    Origin,
    /// Time in which the rest of the origin's answer arrived.
    Answer,
    /// All other time in the proxy.
    Proxy,
    /// All time in the proxy, if its log does not show what it waits for.
    ProxyAndOrigin,
}

/// Waiting times of connections in the accept queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcceptFindings {
    /// Source of the figures.
    pub by: ToldBy,
    /// Number of connections that were accepted.
    pub connections: u64,
    /// Mean waiting time, microseconds.
    pub mean_us: f64,
    /// Upper bounds of quantiles 0.5, 0.9, 0.99 and 0.999, microseconds; `None` if only the mean is known.
    pub below_us: Option<[u64; 4]>,
}

/// Retransmitted segments per thousand requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retransmitted {
    /// Source of the figures.
    pub by: ToldBy,
    /// Segments that the proxy retransmitted to clients, per thousand requests. If the source is samples, all that its
    /// namespace retransmitted.
    pub inbound: f64,
    /// Segments that the proxy retransmitted to the origin, per thousand requests; `None` if they cannot be told apart.
    pub outbound: Option<f64>,
    /// Segments that clients retransmitted to the proxy, per thousand requests; `None` if the clients are on another
    /// host.
    pub clients: Option<f64>,
}

/// Source of figures about the kernel's part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToldBy {
    /// Programs at tracepoints, which see each connection.
    Ebpf,
    /// Counters that are read every second; a waiting time is the mean length of the queue divided by the rate (Little,
    /// 1961).
    #[default]
    Samples,
}
