//! What a judgement starts from: the samples between two moments of a trial, and what the generator saw.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::sample::{MissingCounter, SampleRow};

/// What a process does in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It sends the load.
    Generator,
    /// It is asked about.
    Proxy,
    /// It answers the proxy.
    Origin,
}

impl Role {
    /// Its name in samples and files: `proxy`.
    pub fn name(self) -> &'static str {
        match self {
            Role::Generator => "generator",
            Role::Proxy => "proxy",
            Role::Origin => "origin",
        }
    }
}

/// The samples of one host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostSamples {
    /// Who is on it.
    pub roles: Vec<Role>,
    /// CPUs that a role may use; a role that is not here may use all of them.
    pub cpus: BTreeMap<Role, Vec<u64>>,
    /// Rows in the order of time.
    pub rows: Vec<SampleRow>,
    /// What could not be read.
    pub missing: Vec<MissingCounter>,
}

/// A figure of a trial, as the generator and the lab know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Requests per second asked for; of an open loop.
    RateIntended,
    /// Requests per second sent.
    RateOffered,
    /// Requests per second answered as expected.
    RateCompleted,
    /// 1 where the load asked for more than was carried (the objective did not hold, or a closed loop's rate no longer
    /// grows with its connections), 0 where it did not.
    Saturated,
    /// 1 in a closed loop, 0 in an open one.
    Closed,
    /// Mean time from sending a request to the end of its response, in seconds.
    ServiceTimeS,
    /// 0.99 quantile of the generator's own lateness, in seconds.
    DispatchLagS,
    /// Mean time that the proxy waited for the origin's response, in seconds.
    OriginTimeS,
    /// Bytes per second that generator and proxy exchanged, in the direction that had more.
    BytesPerS,
    /// What the link between them carried before the trial, in bytes per second.
    NetworkBytesPerS,
    /// Connections that the load's own policy opens, for each request.
    OpenedPerRequest,
    /// Connections that the generator opened while requests were sent, for each request.
    OpenedAgainPerRequest,
    /// TLS handshakes per second that were full ones.
    FullHandshakesPerS,
    /// 1 where requests have the header Accept-Encoding, without which servers send plain responses, else 0.
    AsksCompressed,
    /// 1 where generator and proxy are on different hosts, 0 where they are on one.
    CrossesLink,
    /// CPUs that the proxy may use.
    ProxyCpuCount,
    /// Threads or processes of the proxy that serve requests.
    Workers,
    /// The share of the time of the proxy's CPUs that neither the trial nor the kernel's interrupts had. Where the trial does
    /// not know it, samples tell it.
    OthersCpu,
    /// CPU time of the proxy's processes in each second, as the lab reads it when the load comes and goes; where arms take turns.
    ProxyCpus,
    /// TCP sockets of the proxy's network namespace, those in TIME_WAIT left out; where arms take turns.
    ProxySockets,
}

impl Figure {
    /// What it is, in words for people.
    pub fn means(self) -> &'static str {
        match self {
            Figure::RateIntended => "the rate asked for",
            Figure::RateOffered => "the rate sent",
            Figure::RateCompleted => "the rate answered",
            Figure::Saturated => "whether the load was carried",
            Figure::Closed => "whether the loop is closed",
            Figure::ServiceTimeS => "the time of a response from its sending on",
            Figure::DispatchLagS => "how late the generator was",
            Figure::OriginTimeS => "the time of the origin's responses",
            Figure::BytesPerS => "bytes per second",
            Figure::NetworkBytesPerS => "the throughput of the network between generator and proxy",
            Figure::OpenedPerRequest => "connections that the load opens for each request",
            Figure::OpenedAgainPerRequest => "connections opened again for each request",
            Figure::FullHandshakesPerS => "full TLS handshakes",
            Figure::AsksCompressed => "whether requests ask for compressed responses",
            Figure::CrossesLink => "whether the load comes from another host",
            Figure::ProxyCpuCount => "the number of the proxy's CPUs",
            Figure::Workers => "the number of workers",
            Figure::OthersCpu => "the CPU time of other processes",
            Figure::ProxyCpus => "the CPU time of the proxy",
            Figure::ProxySockets => "the sockets of the proxy",
        }
    }
}

/// What the generator and the lab know of a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trial {
    /// Figures; one that is not here is unknown.
    pub figures: BTreeMap<Figure, f64>,
    /// Response times as a histogram: nanoseconds and how often, ascending. Empty: unknown.
    pub response_times: Vec<(u64, u64)>,
    /// Failed requests by kind, as records name them (`connect`, `timeout`); `None`: unknown.
    pub errors: Option<BTreeMap<String, u64>>,
    /// Requests that ended, failed ones included.
    pub requests: u64,
    /// Effective settings of the arm, by the catalog's ids.
    pub settings: BTreeMap<String, String>,
}

/// Samples between two moments of a trial, on the clock of the rows.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// Every host of the trial.
    pub hosts: &'a [HostSamples],
    /// First moment; rows before it are left out.
    pub from_ns: u64,
    /// Last moment; rows after it are left out.
    pub until_ns: u64,
    /// The arm that is judged; rows of others are left out. Empty: rows of all arms count.
    pub arm: &'a str,
    /// What was seen from outside.
    pub trial: &'a Trial,
}
