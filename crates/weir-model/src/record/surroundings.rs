//! What the network and the hosts were like before the first trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::HoldUps;
use crate::quantity::CpuSet;

/// What was measured between the roles, and read of their hosts, once before the first trial. What could not be is not
/// there, and `unmeasured` says why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Surroundings {
    /// Generator to proxy, and proxy to origin server; for proxies that weir did not start, one for each address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkRecord>,
    /// Every host of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRecord>,
    /// What is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Unmeasured>,
}

impl Surroundings {
    /// The link between the generator and the proxies that weir starts.
    pub fn inbound(&self) -> Option<&LinkRecord> {
        self.link(LinkEnd::Generator, LinkEnd::Proxy)
    }

    /// The first link between two roles over which bytes were sent.
    pub fn link(&self, from: LinkEnd, to: LinkEnd) -> Option<&LinkRecord> {
        let is_it = |link: &&LinkRecord| (link.from, link.to) == (from, to);
        let carries = |link: &&LinkRecord| link.forth.is_some() || link.back.is_some();
        self.links.iter().filter(is_it).find(carries)
    }

    /// Bytes per second that one connection carried from the generator to the proxy.
    pub fn generator_to_proxy_bytes_per_s(&self) -> Option<f64> {
        Some(self.inbound()?.forth?.bytes_per_s)
    }

    /// Bytes per second that one connection carried from the proxy to the generator.
    pub fn proxy_to_generator_bytes_per_s(&self) -> Option<f64> {
        Some(self.inbound()?.back?.bytes_per_s)
    }
}

/// A role at the end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkEnd {
    /// The load engine.
    Generator,
    /// The proxies.
    Proxy,
    /// The origin server.
    Origin,
}

impl std::fmt::Display for LinkEnd {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            LinkEnd::Generator => "generator",
            LinkEnd::Proxy => "proxy",
            LinkEnd::Origin => "origin server",
        })
    }
}

/// What lies between two roles, by a connection that goes as those of the load do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkRecord {
    /// Who connected.
    pub from: LinkEnd,
    /// Who was connected to.
    pub to: LinkEnd,
    /// Where: the address.
    pub peer: String,
    /// Of links from several generators, the host that this one is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Round trips.
    pub trips: RoundTrips,
    /// MTU of the path as the kernel knew it after the measurement (IP_MTU, ip(7)), bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// What it carried from `from` to `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forth: Option<Carried>,
    /// What it carried from `to` to `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Carried>,
}

/// How long it took until something came back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundTrips {
    /// What each was: a message and its echo, or, where nobody echoes, opening a connection.
    pub by: TripKind,
    /// How many.
    pub count: u32,
    /// 0.5 quantile, nanoseconds.
    pub p50_ns: u64,
    /// 0.99 quantile, nanoseconds: of fewer than 100, the longest.
    pub p99_ns: u64,
}

/// What a round trip was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TripKind {
    /// A message of some bytes and its echo.
    #[default]
    Echo,
    /// connect(2).
    Connect,
}

/// What one connection carried in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Carried {
    /// Bytes per second that were received.
    pub bytes_per_s: f64,
    /// CPUs that the thread that sent and the one that received took together. Interrupts that others served are
    /// not in it.
    pub cpus: f64,
}

/// Something that could not be measured or read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unmeasured {
    /// What.
    pub what: String,
    /// Why not.
    pub why: String,
}

impl Unmeasured {
    /// `what` is missing because of `why`.
    pub fn new(what: impl Into<String>, why: impl std::fmt::Display) -> Unmeasured {
        Unmeasured {
            what: what.into(),
            why: why.to_string(),
        }
    }
}

/// A host of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostRecord {
    /// What messages call it.
    pub host: String,
    /// Who is on it.
    pub roles: Vec<LinkEnd>,
    /// How far its clock is ahead of the generator's, nanoseconds, and by how much that may be wrong; `None`: it is the
    /// generator's own, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<(i64, u64)>,
    /// What was read of it.
    pub facts: HostFacts,
}

/// What was read of a host: as far as it concerns CPUs of roles and links of theirs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// CPUs of roles by what chooses their frequency (scaling_governor, kernel Documentation/admin-guide/pm/cpufreq.rst).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub governors: BTreeMap<String, CpuSet>,
    /// CPUs of roles that are threads of one core with others (thread_siblings_list), with those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub siblings: Vec<CpuSet>,
    /// CPUs of each NUMA node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<u32, CpuSet>,
    /// Network cards through which other roles are reached; none where all goes through loopback or namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<CardFacts>,
    /// How long CPUs of roles stood still while nothing was measured.
    #[serde(default, skip_serializing_if = "HoldUps::is_unknown")]
    pub held_up: HoldUps,
    /// How long that was looked at, nanoseconds.
    #[serde(default)]
    pub watched_ns: u64,
    /// What could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Unmeasured>,
}

/// A network card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardFacts {
    /// Its interface's name.
    pub name: String,
    /// Queues that it receives into and sends from.
    pub queues: (u32, u32),
    /// CPUs that serve its interrupts, as far as it has had any since boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<CpuSet>,
    /// Whether packets are passed on to other CPUs (RPS, kernel Documentation/networking/scaling.rst).
    #[serde(default)]
    pub spreads: bool,
    /// The NUMA node that it is at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
}
