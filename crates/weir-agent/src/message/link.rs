//! Messages about what lies around a trial: links between roles, and how hosts are built.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use weir_model::quantity::CpuSet;
use weir_model::record::{Carried, LinkEnd, RoundTrips, Unmeasured};

use super::NetworksJob;

/// To listen for whoever measures the link to here, for some seconds: the answer says where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkListener {
    /// An address of this host.
    pub address: IpAddr,
    /// CPUs of the role that listens there in trials.
    pub cpus: CpuSet,
    /// What whoever measures says first: nobody else is answered.
    pub secret: u64,
}

/// To measure a link: round trips, and what one connection carries in each direction. It takes a second or so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkJob {
    /// Which.
    pub way: LinkWay,
    /// CPUs of the role that connects in trials.
    pub cpus: CpuSet,
}

/// Which link is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkWay {
    /// One between namespaces that are made as those of an arm, and for this alone: no arm of the run is to have
    /// carried more than another.
    Namespaces {
        /// How.
        networks: NetworksJob,
        /// Who listens: the proxy, or the origin server, which the proxy connects to.
        to: LinkEnd,
        /// CPUs of whoever listens.
        cpus: CpuSet,
    },
    /// The one to a [`LinkListener`].
    Listener {
        /// Where it said that it listens.
        at: SocketAddr,
        /// What it was told to expect.
        secret: u64,
    },
    /// The one to a server that weir did not start: a few connections are opened and closed, 100 per second at most.
    Connect(SocketAddr),
}

/// What was found of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkFigures {
    /// Whom it was measured to.
    pub peer: SocketAddr,
    /// Round trips.
    pub trips: RoundTrips,
    /// MTU of the path, bytes.
    pub mtu: Option<u32>,
    /// From whoever connects.
    pub forth: Option<Carried>,
    /// To whoever connects.
    pub back: Option<Carried>,
    /// What is missing of it.
    pub unmeasured: Vec<Unmeasured>,
}

/// To say how this host is built, and how quiet it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactsJob {
    /// CPUs of the generator, if it is here.
    pub generator: Option<CpuSet>,
    /// CPUs of the proxies, if they are here.
    pub proxy: Option<CpuSet>,
    /// CPUs of the origin server, if it is here.
    pub origin: Option<CpuSet>,
    /// Addresses of other hosts that these exchange bytes with.
    pub towards: Vec<IpAddr>,
}
