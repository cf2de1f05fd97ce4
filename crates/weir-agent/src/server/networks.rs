//! The namespaces of one host: a generator, an origin server, and arms that are linked with both and come and go.
//!
//! ```text
//!  generator                       arm i                          origin
//!  arm<i>: 10.213.i.1 …  ───── inbound: 10.213.i.254
//!                                outbound: 10.214.i.254 ───── arm<i>: 10.214.i.1
//! ```
//!
//! Each arm has links of its own, so nothing is switched or routed, and no arm's traffic waits behind another's. The
//! namespaces are linked only with each other: their addresses mean nothing outside, and may also be in use there.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

use weir_host::{HostError, Network, Wire, connect, disconnect, sysctl};

use crate::message::{Failure, NetworksJob};

/// Second byte of the addresses on the links between generator and arms.
const INBOUND: u8 = 213;
/// Second byte of the addresses on the links between arms and origin server.
const OUTBOUND: u8 = 214;
/// Last byte of an arm's addresses.
const ARM: u8 = 254;
/// Maximum number of arms at the same time: one for each value of the third byte.
pub const MOST_ARMS: usize = 256;
/// Port on which a proxy listens without TLS, in its own namespace.
const PORT: u16 = 8080;
/// Port on which a proxy listens for TLS, in its own namespace.
const TLS_PORT: u16 = 8443;

/// Settings in the namespaces of the generator and the origin server, which keep either from being the limit: all
/// ports, their reuse from TIME_WAIT, and queues as long as the origin server asks for.
const UNLIMITED: [(&str, &str); 4] = [
    ("net.ipv4.ip_local_port_range", "1024 65535"),
    ("net.ipv4.tcp_tw_reuse", "1"),
    ("net.core.somaxconn", "65535"),
    ("net.ipv4.tcp_max_syn_backlog", "65535"),
];

/// The namespaces of one host.
pub(super) struct Networks {
    pub(super) generator: Network,
    pub(super) origin: Network,
    /// Namespaces of arms, by slot.
    arms: BTreeMap<usize, Network>,
    job: NetworksJob,
}

impl Networks {
    pub(super) fn make(job: &NetworksJob) -> Result<Networks, Failure> {
        check(job)?;
        let networks = Networks {
            generator: Network::create()?,
            origin: Network::create()?,
            arms: BTreeMap::new(),
            job: job.clone(),
        };
        for ends in [&networks.generator, &networks.origin] {
            ends.within(|| {
                UNLIMITED.iter().try_for_each(|(name, value)| sysctl::write(name, value))
            })??;
        }
        Ok(networks)
    }

    /// Returns the namespace of the arm in a slot, linked with the other two. Creates it at first use.
    pub(super) fn arm(&mut self, slot: usize) -> Result<Network, Failure> {
        if let Some(arm) = self.arms.get(&slot) {
            return Ok(arm.clone());
        }
        let arm = Network::create()?;
        let index = u8::try_from(slot).map_err(|_| {
            Failure::other(format!("slot {slot}, and there are networks for {MOST_ARMS} arms"))
        })?;
        self.link(index, &arm, &self.job)?;
        self.arms.insert(slot, arm.clone());
        Ok(arm)
    }

    /// Removes an arm's links, so that its slot can be used again at once. The kernel takes its time to remove the
    /// namespace itself.
    pub(super) fn remove(&mut self, slot: usize) -> Result<(), Failure> {
        // Held until its links are gone: the kernel would take them apart by itself, at its own time.
        let Some(_held) = self.arms.remove(&slot) else {
            return Ok(());
        };
        let name = wire_name(slot);
        let removed = [&self.generator, &self.origin].map(|end| disconnect(end, &name));
        let [inbound, outbound] = removed;
        Ok(inbound.and(outbound)?)
    }

    fn link(&self, index: u8, arm: &Network, job: &NetworksJob) -> Result<(), Failure> {
        let name = wire_name(usize::from(index));
        connect(
            (&self.generator, &build_wire(&name, INBOUND, index, 1..=job.sources)),
            (arm, &build_wire("inbound", INBOUND, index, ARM..=ARM)),
            job.mtu,
        )?;
        connect(
            (&self.origin, &build_wire(&name, OUTBOUND, index, 1..=1)),
            (arm, &build_wire("outbound", OUTBOUND, index, ARM..=ARM)),
            job.mtu,
        )?;
        Ok(())
    }
}

/// Runs work in a namespace, or where it is called if there is none.
pub(super) fn run_within<T: Send>(
    network: Option<&Network>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, HostError> {
    match network {
        Some(network) => network.within(work),
        None => Ok(work()),
    }
}

fn build_wire(name: &str, second: u8, index: u8, last: RangeInclusive<u8>) -> Wire {
    Wire {
        name: name.to_owned(),
        addresses: last.map(|last| (Ipv4Addr::new(10, second, index, last), 24)).collect(),
    }
}

/// Checks that there are enough source addresses.
fn check(job: &NetworksJob) -> Result<(), Failure> {
    let sources = &job.sources;
    if !(1..ARM).contains(sources) {
        let words = format!("{sources} source addresses instead of 1 to {}", ARM - 1);
        return Err(Failure::other(words));
    }
    Ok(())
}

/// Returns the name of an arm's links in the namespaces of the generator and of the origin server.
fn wire_name(slot: usize) -> String {
    format!("arm{slot}")
}

/// Returns the addresses of an arm's proxy in its own namespace, without TLS and with TLS.
pub fn arm_addresses(index: usize) -> (SocketAddr, SocketAddr) {
    let ip = IpAddr::V4(Ipv4Addr::new(10, INBOUND, index as u8, ARM));
    (SocketAddr::new(ip, PORT), SocketAddr::new(ip, TLS_PORT))
}

/// Returns addresses in an arm's namespace for requests to a user's configuration: `count` consecutive ports.
pub(super) fn asked_addresses(index: usize, count: usize) -> Vec<SocketAddr> {
    let (first, _) = arm_addresses(index);
    (PORT..).take(count).map(|port| SocketAddr::new(first.ip(), port)).collect()
}

/// Returns the address at which the origin server listens for an arm. Port 0 lets the kernel choose.
pub fn origin_address(index: usize) -> SocketAddr {
    let ip = IpAddr::V4(Ipv4Addr::new(10, OUTBOUND, index as u8, 1));
    SocketAddr::new(ip, 0)
}

/// Returns the generator's source addresses towards an arm, if the generator has a namespace of its own. `count` is the
/// [`NetworksJob::sources`] of that namespace.
pub fn source_addresses(arm: usize, count: u8) -> Vec<Ipv4Addr> {
    (1..=count).map(|last| Ipv4Addr::new(10, INBOUND, arm as u8, last)).collect()
}
