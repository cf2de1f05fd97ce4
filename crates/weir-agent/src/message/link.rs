//! Messages about the surroundings of a trial: links between roles, and the hardware of hosts.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use weir_model::quantity::CpuSet;
use weir_model::record::{Carried, LinkEnd, RoundTrips, Unmeasured};

use super::NetworksJob;

/// Request to listen for a link measurement for a few seconds. The answer is the address of the listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkListener {
    /// Address of this host to listen on.
    pub address: IpAddr,
    /// CPUs of the role that listens there in trials.
    pub cpus: CpuSet,
    /// Number that a measuring client sends first; other connections are dropped.
    pub secret: u64,
}

/// Request to measure a link: round trips, and the throughput of one connection in each direction. Takes about a
/// second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkJob {
    /// The link to measure.
    pub way: LinkWay,
    /// CPUs of the role that connects in trials.
    pub cpus: CpuSet,
}

/// A link to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkWay {
    /// A link between namespaces that are made like those of an arm, and for this measurement alone, so that no arm of
    /// the run has carried more traffic than another.
    Namespaces {
        /// Properties of the namespaces.
        networks: NetworksJob,
        /// The listening end: the proxy, or the origin server, to which the proxy connects.
        to: LinkEnd,
        /// CPUs of the listening end.
        cpus: CpuSet,
    },
    /// A link to a [`LinkListener`].
    Listener {
        /// Address that the listener answered with.
        at: SocketAddr,
        /// Number that the listener expects.
        secret: u64,
    },
    /// A link to a server that weir did not start. A few connections are opened and closed, 100 per second at most.
    Connect(SocketAddr),
}

/// Measurements of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkFigures {
    /// Address of the listening end.
    pub peer: SocketAddr,
    /// Round-trip times.
    pub trips: RoundTrips,
    /// MTU of the path, bytes; `None` if unknown.
    pub mtu: Option<u32>,
    /// Throughput from the connecting end to the listening end; `None` if not measured.
    pub forth: Option<Carried>,
    /// Throughput from the listening end to the connecting end; `None` if not measured.
    pub back: Option<Carried>,
    /// Figures that could not be measured, with reasons.
    pub unmeasured: Vec<Unmeasured>,
}

/// Request for the hardware facts of this host, and for how quiet it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactsJob {
    /// CPUs of the generator, if the generator is on this host.
    pub generator: Option<CpuSet>,
    /// CPUs of the proxies, if the proxies are on this host.
    pub proxy: Option<CpuSet>,
    /// CPUs of the origin server, if the origin server is on this host.
    pub origin: Option<CpuSet>,
    /// Addresses of other hosts that the roles on this host exchange bytes with.
    pub towards: Vec<IpAddr>,
}
