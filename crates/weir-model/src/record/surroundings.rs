//! State of the network and the hosts before the first trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::HoldUps;
use crate::quantity::CpuSet;

/// Measurements of the links between the roles, and facts about their hosts, taken once before the first trial. Missing
/// ones are absent, and `unmeasured` gives the reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Surroundings {
    /// Links from generator to proxy, and from proxy to origin server; for proxies that weir did not start, one link
    /// for each address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkRecord>,
    /// All hosts of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRecord>,
    /// Measurements and facts that are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Unmeasured>,
}

impl Surroundings {
    /// Returns the first measured link between the generator and the proxies.
    pub fn inbound(&self) -> Option<&LinkRecord> {
        self.link(LinkEnd::Generator, LinkEnd::Proxy)
    }

    /// Returns the first link between two roles over which bytes were sent.
    pub fn link(&self, from: LinkEnd, to: LinkEnd) -> Option<&LinkRecord> {
        self.links
            .iter()
            .filter(|link| (link.from, link.to) == (from, to))
            .find(|link| link.forth.is_some() || link.back.is_some())
    }

    /// Bytes per second that one connection carried from the generator to the proxy; `None` if not measured.
    pub fn generator_to_proxy_bytes_per_s(&self) -> Option<f64> {
        Some(self.inbound()?.forth?.bytes_per_s)
    }

    /// Bytes per second that one connection carried from the proxy to the generator; `None` if not measured.
    pub fn proxy_to_generator_bytes_per_s(&self) -> Option<f64> {
        Some(self.inbound()?.back?.bytes_per_s)
    }
}

/// A role at the end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkEnd {
    /// The load generator.
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

/// Measurements of the link between two roles, made over a connection like those of the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkRecord {
    /// Role that opened the connection.
    pub from: LinkEnd,
    /// Role that accepted the connection.
    pub to: LinkEnd,
    /// Address that was connected to.
    pub peer: String,
    /// Host of the generator, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Round-trip times over the link.
    pub trips: RoundTrips,
    /// MTU of the path as the kernel knew it after the measurement (IP_MTU, ip(7)), bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Throughput from `from` to `to`; absent if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forth: Option<Carried>,
    /// Throughput from `to` to `from`; absent if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Carried>,
}

/// Round-trip times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundTrips {
    /// Kind of the round trips: a message and its echo or, if the peer does not echo, opening a connection.
    pub by: TripKind,
    /// Number of round trips.
    pub count: u32,
    /// 0.5 quantile, nanoseconds.
    pub p50_ns: u64,
    /// 0.99 quantile, nanoseconds; of fewer than 100 round trips, the longest.
    pub p99_ns: u64,
}

/// Kind of a round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TripKind {
    /// A message of some bytes and its echo.
    #[default]
    Echo,
    /// Opening of a connection: connect(2).
    Connect,
}

/// Throughput of one connection in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Carried {
    /// Bytes received per second.
    pub bytes_per_s: f64,
    /// CPUs that the sending and the receiving thread used together. Interrupts served elsewhere are not included.
    pub cpus: f64,
}

/// A measurement or fact that could not be obtained.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unmeasured {
    /// Name of the missing measurement or fact.
    pub what: String,
    /// Reason why it is missing.
    pub why: String,
}

impl Unmeasured {
    /// Creates an entry that `what` is missing because of `why`.
    pub fn new(what: impl Into<String>, why: impl std::fmt::Display) -> Unmeasured {
        Unmeasured { what: what.into(), why: why.to_string() }
    }
}

/// A host of the run and its facts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostRecord {
    /// Name of the host in messages.
    pub host: String,
    /// Roles on the host.
    pub roles: Vec<LinkEnd>,
    /// Offset of the host's clock: nanoseconds ahead of the generator's, and the maximum error; `None` if the clock is
    /// the generator's own, or the offset unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<(i64, u64)>,
    /// Facts about the host.
    pub facts: HostFacts,
}

/// Facts about a host that concern the CPUs of roles and their links.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// CPUs of roles by frequency governor (scaling_governor, kernel Documentation/admin-guide/pm/cpufreq.rst).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub governors: BTreeMap<String, CpuSet>,
    /// Sets of CPUs that are threads of one core (thread_siblings_list) and include a CPU of a role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub siblings: Vec<CpuSet>,
    /// CPUs of each NUMA node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<u32, CpuSet>,
    /// Network cards through which other roles are reached; empty if all traffic uses loopback or namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<CardFacts>,
    /// Time that CPUs of roles were stalled while nothing was measured.
    #[serde(default, skip_serializing_if = "HoldUps::is_unknown")]
    pub held_up: HoldUps,
    /// Length of the period in which stalls were watched for, nanoseconds.
    #[serde(default)]
    pub watched_ns: u64,
    /// Facts that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Unmeasured>,
}

impl HostFacts {
    /// Returns the place of a CPU among the threads of its core: 0 for the first, and for one that has a core of its own.
    pub fn thread_of(&self, cpu: u32) -> usize {
        let threads =
            self.siblings.iter().find_map(|core| core.cpus().iter().position(|one| *one == cpu));
        threads.unwrap_or(0)
    }

    /// Returns the NUMA node of a CPU, if known.
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        let mut nodes = self.nodes.iter();
        nodes.find(|(_, cpus)| cpus.cpus().contains(&cpu)).map(|(node, _)| *node)
    }
}

/// Facts about a network card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardFacts {
    /// Name of the card's interface.
    pub name: String,
    /// Numbers of receive and send queues.
    pub queues: (u32, u32),
    /// CPUs that serve the card's interrupts, as far as there have been any since boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<CpuSet>,
    /// True if received packets are passed on to other CPUs (RPS, kernel Documentation/networking/scaling.rst).
    #[serde(default)]
    pub spreads: bool,
    /// NUMA node of the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
}
