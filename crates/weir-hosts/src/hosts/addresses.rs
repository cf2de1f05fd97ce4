//! Addresses at which roles reach each other, and checks that an address belongs to nobody else.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_agent::server::networks;
use weir_probe::source_towards;
use weir_sut::LOWEST_PORT;

use super::Hosts;
use crate::error::HostError;
use crate::host::Host;
use crate::options::Role;

/// Lowest port that the kernel assigns by itself: lower ports are for services of a system.
const FIRST_UNPRIVILEGED: u16 = 1024;

impl Hosts {
    /// Returns the addresses at which the hosts of one role reach those of another, if they are known and the hosts
    /// differ.
    pub fn ways(&self, to: Role, from: Role) -> BTreeSet<IpAddr> {
        let apart = self
            .places(to)
            .iter()
            .flat_map(|to| self.places(from).iter().map(move |from| (to, from)))
            .filter(|(to, from)| to != from);
        apart.filter_map(|(to, from)| between(&self.hosts[*to], &self.hosts[*from]).ok()).collect()
    }

    /// Returns the address at which `asker` reaches a role that has no namespace of its own: loopback on the same host,
    /// otherwise the address at which ssh reaches the host. This host has no such address; it is reached at the address
    /// from which it reaches the other host.
    ///
    /// # Errors
    /// The address of one of the two hosts is not known, or generators would use different ones.
    pub fn address(&self, role: Role, asker: Role) -> Result<IpAddr, HostError> {
        if self.share(role, asker) {
            return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        let host_index = self.of[role as usize];
        let askers = self.places(asker).iter().filter(|other| **other != host_index);
        let mut agreed: Option<(&Host, IpAddr)> = None;
        for other in askers.map(|other| &self.hosts[*other]) {
            let at = between(self.host(role), other)?;
            match agreed {
                Some((first, agreed)) if agreed != at => {
                    return Err(HostError::Addresses {
                        host: self.host(role).called().to_owned(),
                        ways: Box::new(
                            [(first, agreed), (other, at)]
                                .map(|(asker, at)| (asker.called().to_owned(), at)),
                        ),
                    });
                }
                _ => agreed = Some((other, at)),
            }
        }
        let (_, at) = agreed.ok_or_else(|| unknown(self.host(role)))?;
        Ok(at)
    }

    /// Checks an address that the agent of a role's host reports for the arm in a slot, and to which `asker` is to
    /// send. `others` are the addresses to which the run already sends.
    ///
    /// # Errors
    /// The address is not of that host or of the slot's own network, its port is not one that weir would have taken, or
    /// another role has it: an agent must not choose who gets the load.
    pub fn own_address(
        &self,
        (role, asker): (Role, Role),
        slot: usize,
        told: SocketAddr,
        others: &BTreeSet<SocketAddr>,
    ) -> Result<SocketAddr, HostError> {
        let named = match (self.networks, role) {
            (None, _) => self.address(role, asker)?,
            (Some(_), Role::Origin) => networks::origin_address(slot).ip(),
            (Some(_), _) => networks::arm_addresses(slot).0.ip(),
        };
        let lowest_port = match (self.networks, role) {
            (None, Role::Proxy) => LOWEST_PORT,
            _ => FIRST_UNPRIVILEGED,
        };
        let named = if told.ip() != named {
            named.to_string()
        } else if told.port() < lowest_port {
            format!("{named}, at a port from {lowest_port} on")
        } else if others.contains(&told) {
            format!("{named}, at a port that nobody else of this run has")
        } else {
            return Ok(told);
        };
        Err(self.elsewhere(role, told, named))
    }

    /// Makes the error for an agent that reports another address than `named`.
    pub fn elsewhere(&self, role: Role, told: SocketAddr, named: String) -> HostError {
        HostError::Elsewhere {
            host: self.host(role).called().to_owned(),
            what: match role {
                Role::Origin => "origin server",
                _ => "proxy",
            },
            told,
            named,
        }
    }
}

fn unknown(host: &Host) -> HostError {
    HostError::Address { host: host.called().to_owned() }
}

/// Returns the address at which `other` reaches `host`.
fn between(host: &Host, other: &Host) -> Result<IpAddr, HostError> {
    match (host.name(), other.address()) {
        (Some(_), _) => host.address().ok_or_else(|| unknown(host)),
        (None, None) => Err(unknown(other)),
        (None, Some(other)) => source_towards(other).ok_or_else(|| unknown(host)),
    }
}

/// Returns true if an address is one of this host's.
pub fn is_own(address: IpAddr) -> bool {
    let canonical = address.to_canonical();
    // What is sent to oneself comes from where it goes to.
    canonical.is_loopback()
        || canonical.is_unspecified()
        || source_towards(canonical) == Some(canonical)
}
