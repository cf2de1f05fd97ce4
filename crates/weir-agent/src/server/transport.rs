//! Transport of arms' bytes: the kernel's TCP, or a bypass of it.
//!
//! One bypass serves all arms of a bench, each with hops of its own. Its programs run for every connection of this
//! process's cgroup, including those of arms that use TCP. A single bypass therefore burdens all arms alike, and less
//! than several would.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use weir_bypass::{Bypass, Counts, Ends, Namespace};
use weir_host::Network;
use weir_parameters::Hop;

use crate::message::Failure;

/// The bypass, attached when the first arm asks for it, and detached on drop. Dropping it loses unread bytes on
/// bypassed sockets, so loads and proxies must end first.
#[derive(Default)]
pub(super) struct Transport {
    bypass: Option<Bypass>,
}

/// Network namespaces of the ends of an arm's hops; `None`: the agent's own.
#[derive(Clone, Default)]
pub(super) struct Sides {
    pub(super) client: Option<Network>,
    pub(super) proxy: Option<Network>,
    pub(super) origin: Option<Network>,
}

/// Addresses of an arm that connections go to.
#[derive(Clone, Default)]
pub(super) struct Hops {
    /// Listeners of the proxy.
    pub(super) inbound: Vec<SocketAddr>,
    /// Address of the origin server.
    pub(super) outbound: Option<SocketAddr>,
}

impl Hops {
    /// Keeps only the addresses on these sides of the proxy.
    pub(super) fn only(mut self, sides: &BTreeSet<Hop>) -> Hops {
        if !sides.contains(&Hop::Inbound) {
            self.inbound.clear();
        }
        self.outbound = self.outbound.filter(|_| sides.contains(&Hop::Outbound));
        self
    }

    /// Returns the sides of the proxy that have addresses.
    pub(super) fn sides(&self) -> BTreeSet<Hop> {
        let inbound = (!self.inbound.is_empty()).then_some(Hop::Inbound);
        let outbound = self.outbound.map(|_| Hop::Outbound);
        inbound.into_iter().chain(outbound).collect()
    }
}

/// Returns the reason why the kernel's TCP cannot be bypassed on this host; `None`: it can.
pub(super) fn unavailable() -> Option<String> {
    let error = weir_bypass::available().err()?;
    Some(super::failure::in_a_line(&error, error.hint()))
}

impl Transport {
    /// Bypasses TCP for new connections of these hops.
    pub(super) fn bypass(&mut self, hops: &Hops, sides: &Sides) -> Result<(), Failure> {
        if hops.sides().is_empty() {
            return Ok(());
        }
        let bypass = match &mut self.bypass {
            Some(bypass) => bypass,
            none => none.insert(Bypass::attach(&[])?),
        };
        let proxy = namespace(bypass, sides.proxy.as_ref())?;
        let inbound = Ends { client: namespace(bypass, sides.client.as_ref())?, server: proxy };
        let outbound = Ends { client: proxy, server: namespace(bypass, sides.origin.as_ref())? };
        let inbound = hops.inbound.iter().map(|&server| (server, inbound));
        for (server, ends) in inbound.chain(hops.outbound.map(|server| (server, outbound))) {
            bypass.add(weir_bypass::Hop { server, namespaces: Some(ends) })?;
        }
        Ok(())
    }

    /// Removes the hops of an arm that has ended from the bypass, since another arm may get their addresses.
    pub(super) fn leave(&mut self, hops: &Hops) {
        let Some(bypass) = &mut self.bypass else {
            return;
        };
        for &server in hops.inbound.iter().chain(&hops.outbound) {
            let namespaces = None;
            // Where not all of them could be bypassed, the rest is unknown.
            let _ = bypass.remove(weir_bypass::Hop { server, namespaces });
        }
    }

    /// Returns the counters of these hops, such as `sockmap.inbound.redirected_bytes`.
    pub(super) fn counters(&self, hops: &Hops) -> Result<BTreeMap<String, u64>, Failure> {
        let Some(bypass) = self.bypass.as_ref().filter(|_| !hops.sides().is_empty()) else {
            return Ok(BTreeMap::new());
        };
        let counters = bypass.counters()?;
        let mut named = BTreeMap::new();
        let directions =
            [(Hop::Inbound, &hops.inbound[..]), (Hop::Outbound, hops.outbound.as_slice())];
        for (direction, servers) in directions.into_iter().filter(|(_, them)| !them.is_empty()) {
            let mut sum = Counts::default();
            (counters.hops.iter())
                .filter(|(server, _)| servers.contains(server))
                .for_each(|(_, counts)| sum += *counts);
            named.extend(by_name(direction, sum));
        }
        Ok(named)
    }
}

fn namespace(bypass: &mut Bypass, network: Option<&Network>) -> Result<Namespace, Failure> {
    Ok(match network {
        Some(network) => network.within(|| bypass.namespace_of_this_thread())?,
        None => bypass.namespace_of_this_thread(),
    }?)
}

fn by_name(hop: Hop, counts: Counts) -> impl Iterator<Item = (String, u64)> {
    let named = [
        ("sockets", counts.sockets),
        ("redirected", counts.redirected),
        ("redirected_bytes", counts.redirected_bytes),
        ("tcp", counts.left_to_tcp()),
        ("tcp_bytes", counts.tcp_bytes),
        ("refused", counts.refused),
    ];
    named.map(|(name, count)| (format!("sockmap.{}.{name}", hop.name()), count)).into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_hops(origin: bool) -> Hops {
        let [first, second, third] = [1, 2, 3].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        Hops { inbound: vec![first, second], outbound: origin.then_some(third) }
    }

    /// Returns the catalog level at which the hops of an arm with these settings are bypassed.
    fn level(transport: &str, origin: bool) -> String {
        let catalog = weir_parameters::Catalog::builtin();
        let settings = BTreeMap::from([("transport".to_owned(), transport.to_owned())]);
        let hops = build_hops(origin).only(&catalog.bypassed(&settings));
        catalog.level_bypassing(&hops.sides()).unwrap().1
    }

    #[test]
    fn a_level_says_which_hops_are_bypassed() {
        for (asked, with_origin, without) in [
            ("tcp", "tcp", "tcp"),
            ("sockmap", "sockmap", "sockmap-inbound"),
            ("sockmap-inbound", "sockmap-inbound", "sockmap-inbound"),
            ("sockmap-outbound", "sockmap-outbound", "tcp"),
        ] {
            assert_eq!(level(asked, true), with_origin);
            assert_eq!(level(asked, false), without, "no origin server");
        }
        let inbound = build_hops(true).only(&BTreeSet::from([Hop::Inbound]));
        assert_eq!((inbound.inbound.len(), inbound.outbound), (2, None));
    }

    #[test]
    fn where_nothing_is_bypassed_nothing_is_attached_or_counted() {
        let mut transport = Transport::default();
        let none = build_hops(true).only(&BTreeSet::new());
        transport.bypass(&none, &Sides::default()).unwrap();
        assert!(transport.bypass.is_none());
        assert!(transport.counters(&none).unwrap().is_empty());
    }
}
