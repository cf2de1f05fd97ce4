//! Where the time of requests goes, as findings.

use serde::{Deserialize, Serialize};

/// Where the time of an arm's requests goes under one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhereTimeGoes {
    /// The load.
    pub load: String,
    /// The rate, in a search for a capacity: the highest one that was carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The arm.
    pub arm: String,
    /// Requests of the proxy's log that were looked at, and how many these stand for.
    pub requests: (u64, u64),
    /// What the proxy's log tells apart, microseconds.
    pub resolution_us: u64,
    /// Whether the proxy tells what it waits for the origin.
    pub knows_origin: bool,
    /// The mean first, then quantiles; empty where the proxy logged nothing.
    pub rows: Vec<TimeRow>,
    /// What connections waited in the accept queue; `None`: nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<AcceptFindings>,
    /// Segments that were sent again for each request; `None`: nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted: Option<Retransmitted>,
}

/// Where the time goes of requests that take so long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeRow {
    /// The quantile of the response time; `None`: the mean of all.
    pub quantile: Option<f64>,
    /// What the generator saw, microseconds: the response time, or the service time in a closed loop.
    pub seen_us: f64,
    /// Requests of the log that the parts are the mean of.
    pub requests: u64,
    /// Parts in the order in which they come; empty where the log cannot tell them apart or has too few requests.
    pub parts: Vec<(TimePart, f64)>,
}

/// A part of a response time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimePart {
    /// What the generator saw and the proxy did not: the generator's queue, the network, the accept queue, and until
    /// the proxy read the first byte.
    Outside,
    /// The proxy read the request.
    Client,
    /// It waited for a connection to the origin that may be used.
    Queue,
    /// It opened one.
    Connect,
    /// It waited for the origin.
    Origin,
    /// The rest of the origin's answer came.
    Answer,
    /// All else in the proxy.
    Proxy,
    /// All in the proxy, where its log does not tell what it waits for.
    ProxyAndOrigin,
}

/// What connections waited in the accept queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcceptFindings {
    /// Who says so.
    pub by: ToldBy,
    /// Connections that were accepted.
    pub connections: u64,
    /// The mean, microseconds.
    pub mean_us: f64,
    /// Quantiles 0.5, 0.9, 0.99, 0.999: below so many microseconds; `None` where the mean alone is known.
    pub below_us: Option<[u64; 4]>,
}

/// Segments that were sent again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retransmitted {
    /// Who says so.
    pub by: ToldBy,
    /// By the proxy to clients, for each thousand requests. Where samples alone tell, all that its namespace sent again.
    pub inbound: f64,
    /// To the origin; `None`: not told apart.
    pub outbound: Option<f64>,
    /// By clients to the proxy; `None`: they are elsewhere.
    pub clients: Option<f64>,
}

/// Who tells of the kernel's part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToldBy {
    /// Programs at tracepoints, of each connection.
    Ebpf,
    /// Counters that are read every second; a wait is the mean length of the queue over the rate (Little, 1961).
    #[default]
    Samples,
}
