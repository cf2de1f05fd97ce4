//! Links between namespaces: pairs of virtual Ethernet devices (veth(4)).
//!
//! Queues, offloads (TSO, GRO, checksums) and the queue length are left as the kernel makes them:
//! a segment may then cross the link whole, larger than its MTU, as it does between the containers
//! of a node. The MTU still decides the MSS that both sides announce.
//!
//! Both ends know each other's hardware address for good (`NUD_PERMANENT`), so no ARP crosses the
//! link. That is for the host's sake: the table of neighbours that were learned is one for all
//! namespaces (`net.ipv4.neigh.default.gc_thresh3`, 1024 of them by default), and some ends with
//! hundreds of addresses would fill it for the host as well. What was not learned does not count.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::links::{Links, explained};
use crate::netlink::Refusal;
use crate::wire::{Wire, check_mtu};
use crate::{HostError, Network};

/// Maximum time for a link to come up. The kernel announces a carrier from a work queue, usually at once
/// (net/core/link_watch.c).
const UP_WITHIN: Duration = Duration::from_secs(10);

/// Links two namespaces by a pair of virtual Ethernet devices (veth(4)), sets their addresses and brings them up;
/// returns when frames can cross. `mtu` in bytes. On an error, everything made so far is removed again.
///
/// The pair lives until either namespace is gone. If one of them is the host's own, its end is an interface of the host
/// until then.
///
/// # Errors
/// A name or an address is taken or not valid, the MTU is out of range, or the kernel refused.
pub fn connect(a: (&Network, &Wire), b: (&Network, &Wire), mtu: u32) -> Result<(), HostError> {
    check_mtu(mtu)?;
    a.1.check()?;
    b.1.check()?;
    let mut links = (a.0.within(Links::open)??, b.0.within(Links::open)??);
    if let Err(refusal) = links.0.make_pair(a.1, b, mtu) {
        return Err(not_made(&refusal, links.0.holds(a.1)?, a.1, b.1)
            .unwrap_or_else(|| explained(refusal, "link two network namespaces".to_owned())));
    }
    let done = set_up_pair((&mut links.0, a.1), (&mut links.1, b.1));
    if done.is_err() {
        // Its own error would only hide the one that led here.
        let _ = links.0.remove(&a.1.name);
    }
    done
}

/// Removes a link by the name of its end in one of the two namespaces: both ends, and their addresses, are gone when
/// this returns. The kernel removes a namespace itself later.
///
/// # Errors
/// There is no such interface, or the kernel refused.
pub fn disconnect(network: &Network, name: &str) -> Result<(), HostError> {
    let mut links = network.within(Links::open)??;
    links.remove(name).map_err(|refusal| explained(refusal, format!("remove `{name}`")))
}

fn set_up_pair(a: (&mut Links, &Wire), b: (&mut Links, &Wire)) -> Result<(), HostError> {
    a.0.add_addresses(a.1)?;
    b.0.add_addresses(b.1)?;
    a.0.set_up(&a.1.name)?;
    b.0.set_up(&b.1.name)?;
    let until = Instant::now() + UP_WITHIN;
    let interface_a = a.0.await_up(&a.1.name, until)?;
    let interface_b = b.0.await_up(&b.1.name, until)?;
    // Only now: an interface that comes up begins with no neighbours.
    a.0.add_neighbours(&interface_a, b.1, &interface_b)?;
    b.0.add_neighbours(&interface_b, a.1, &interface_a)
}

/// Returns the error for a pair that could not be made, if it is clearer than the kernel's words.
fn not_made(refusal: &Refusal, first_is_there: bool, a: &Wire, b: &Wire) -> Option<HostError> {
    if refusal.is(Errno::EXIST) {
        let wire = if first_is_there { a } else { b };
        return Some(HostError::NameTaken(wire.name.clone()));
    }
    refusal.is(Errno::OPNOTSUPP).then_some(HostError::NoVirtualEthernet)
}
