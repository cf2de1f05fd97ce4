//! Input of a judgement: the samples between two moments of a trial, and the figures of the generator.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::sample::{MissingCounter, SampleRow};

/// Role of a process in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The process that sends the load.
    Generator,
    /// The proxy under test.
    Proxy,
    /// The backend that answers the proxy.
    Origin,
}

impl Role {
    /// Returns the name used in samples and files: `proxy`.
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
    /// Roles that run on the host.
    pub roles: Vec<Role>,
    /// CPUs that a role may use; a role without an entry may use all of them.
    pub cpus: BTreeMap<Role, Vec<u64>>,
    /// Rows in the order of time.
    pub rows: Vec<SampleRow>,
    /// Counters that could not be read.
    pub missing: Vec<MissingCounter>,
}

/// A figure of a trial, as the generator and the lab know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Requests per second that an open loop is to send.
    RateIntended,
    /// Requests per second sent.
    RateOffered,
    /// Requests per second answered as expected.
    RateCompleted,
    /// 1 if the load demanded more than was carried (the objective did not hold, or a closed loop's rate no longer
    /// grows with its connections), else 0.
    Saturated,
    /// 1 in a closed loop, 0 in an open one.
    Closed,
    /// Mean time from sending a request to the end of its response, in seconds.
    ServiceTimeS,
    /// 0.99 quantile of the generator's own lateness, in seconds.
    DispatchLagS,
    /// Mean time that the proxy waited for the origin's response, in seconds.
    OriginTimeS,
    /// Bytes per second between generator and proxy, in the direction with more.
    BytesPerS,
    /// Bytes per second that the link between generator and proxy carried before the trial.
    NetworkBytesPerS,
    /// Connections per request that the load's own policy opens.
    OpenedPerRequest,
    /// Connections per request that the generator opened while requests were sent.
    OpenedAgainPerRequest,
    /// Full TLS handshakes per second.
    FullHandshakesPerS,
    /// 1 if requests have the header Accept-Encoding, without which servers send plain responses, else 0.
    AsksCompressed,
    /// 1 if generator and proxy are on different hosts, 0 if on the same one.
    CrossesLink,
    /// CPUs that the proxy may use.
    ProxyCpuCount,
    /// Threads or processes of the proxy that serve requests.
    Workers,
    /// Share of the proxy's CPU time used neither by the trial nor by the kernel's interrupts. If the trial does not
    /// provide it, it is derived from samples.
    OthersCpu,
    /// CPU time per second of the proxy's processes, as read by the lab when the load comes and goes; only if arms take
    /// turns.
    ProxyCpus,
    /// TCP sockets of the proxy's network namespace, without those in TIME_WAIT; only if arms take turns.
    ProxySockets,
}

/// Data of the generator and the lab about a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trial {
    /// Figures; a missing one is unknown.
    pub figures: BTreeMap<Figure, f64>,
    /// Response times as a histogram: nanoseconds and count, ascending. Empty if unknown.
    pub response_times: Vec<(u64, u64)>,
    /// Failed requests by kind, as named in records (`connect`, `timeout`); `None` if unknown.
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
    /// The arm to judge; rows of other arms are ignored. Empty: rows of all arms count.
    pub arm: &'a str,
    /// Data of the generator and the lab.
    pub trial: &'a Trial,
}
