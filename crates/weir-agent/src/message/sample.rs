//! Messages about samples: all counters of a host, read again and again while a trial goes on.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_model::sample::MissingCounter;

/// Request to read all counters of this host, at once and then repeatedly until stopped. Each reading is sent as its
/// rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleJob {
    /// Time from one reading to the next: at least a tenth of a second.
    pub interval: Duration,
    /// True if the generator is on this host.
    pub generator: bool,
    /// The slots of the arms that take part, if the proxies are here.
    pub proxies: Vec<usize>,
    /// True if the origin server is on this host.
    pub origin: bool,
    /// True if requests of proxies are sampled too: see `requests` in `limits/counters.yaml`.
    #[serde(default)]
    pub requests: bool,
    /// Address of a proxy that weir did not start, if such a proxy is on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<SocketAddr>,
}

/// Result of sampling, besides its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleEnd {
    /// Counters that could not be read, each once.
    pub missing: Vec<MissingCounter>,
    /// CPU time that the readings took, nanoseconds.
    pub cpu_ns: u64,
    /// Levels of a proxy that weir did not start, by catalog ids, as far as its configuration could be read.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// CPUs that the processes of that proxy may use; empty if unknown.
    #[serde(default)]
    pub cpus: Vec<u64>,
}
