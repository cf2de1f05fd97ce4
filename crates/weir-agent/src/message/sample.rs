//! Messages about samples: all counters of a host, read again and again while a trial goes on.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_model::sample::MissingCounter;

/// To read all counters of this host at once and then again and again, until it is stopped. Each reading is told as its
/// rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleJob {
    /// From one reading to the next: a tenth of a second at least.
    pub interval: Duration,
    /// Whether the generator is here.
    pub generator: bool,
    /// The slots of the arms that take part, if the proxies are here.
    pub proxies: Vec<usize>,
    /// Whether the origin server is here.
    pub origin: bool,
    /// Whether requests of proxies are looked at too: see `requests` in `limits/counters.yaml`.
    #[serde(default)]
    pub requests: bool,
    /// Where a proxy listens that nobody has started, if it is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<SocketAddr>,
}

/// What sampling leaves beside its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleEnd {
    /// What could not be read, each once.
    pub missing: Vec<MissingCounter>,
    /// CPU time that the reading took, nanoseconds.
    pub cpu_ns: u64,
    /// Levels of a proxy that nobody has started, by ids of the catalog, as far as its configuration could be read.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// CPUs that its processes may use; none where that is not known.
    #[serde(default)]
    pub cpus: Vec<u64>,
}
