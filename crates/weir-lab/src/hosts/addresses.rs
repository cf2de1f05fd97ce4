//! Where roles are asked by others, and that nobody else is.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_agent::server::networks;
use weir_probe::source_towards;
use weir_sut::LOWEST_PORT;

use super::Hosts;
use crate::LabError;
use crate::host::Host;
use crate::options::Role;

/// The lowest port that the kernel gives where none is asked for: those below are for services of a system.
const FIRST_UNPRIVILEGED: u16 = 1024;

impl Hosts {
    /// Addresses at which the hosts of one role ask those of another, as far as they are known and on other hosts.
    pub(crate) fn ways(&self, to: Role, from: Role) -> BTreeSet<IpAddr> {
        let pairs = self
            .places(to)
            .iter()
            .flat_map(|to| self.places(from).iter().map(move |from| (to, from)));
        let apart = pairs.filter(|(to, from)| to != from);
        apart
            .filter_map(|(to, from)| between(&self.hosts[*to], &self.hosts[*from]).ok())
            .collect()
    }

    /// Where a role listens without a namespace of its own, for `asker` to ask it there: loopback for
    /// one on the same host, else the address that ssh finds the host at. This host has none of that
    /// kind, and is asked at the address that it reaches the other from.
    ///
    /// # Errors
    /// Nobody here knows an address of one of the two hosts, or generators would ask at different ones.
    pub(crate) fn address(&self, role: Role, asker: Role) -> Result<IpAddr, LabError> {
        if self.share(role, asker) {
            return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        let place = self.of[role as usize];
        let others = self.places(asker).iter().filter(|other| **other != place);
        let mut known: Option<(&Host, IpAddr)> = None;
        for other in others.map(|other| &self.hosts[*other]) {
            let at = between(self.host(role), other)?;
            match known {
                Some((first, known)) if known != at => {
                    return Err(LabError::Addresses {
                        host: self.host(role).called().to_owned(),
                        ways: Box::new(
                            [(first, known), (other, at)]
                                .map(|(asker, at)| (asker.called().to_owned(), at)),
                        ),
                    });
                }
                _ => known = Some((other, at)),
            }
        }
        let (_, at) = known.ok_or_else(|| unknown(self.host(role)))?;
        Ok(at)
    }

    /// An address that the agent of a role's host tells for the arm in a slot, and that `asker` is to send to; `others` are
    /// those that the run sends to already.
    ///
    /// # Errors
    /// It is not the address of that host, or of the slot's own network, or its port is not one that weir would have taken,
    /// or is another role's: an agent does not choose who gets the load.
    pub(crate) fn own_address(
        &self,
        (role, asker): (Role, Role),
        slot: usize,
        told: SocketAddr,
        others: &BTreeSet<SocketAddr>,
    ) -> Result<SocketAddr, LabError> {
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

    /// What is said of an agent that tells another address than the one that was named.
    pub(crate) fn elsewhere(&self, role: Role, told: SocketAddr, named: String) -> LabError {
        LabError::Elsewhere {
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

fn unknown(host: &Host) -> LabError {
    LabError::Address {
        host: host.called().to_owned(),
    }
}

/// Where one host is asked by another.
fn between(host: &Host, other: &Host) -> Result<IpAddr, LabError> {
    match (host.name(), other.address()) {
        (Some(_), _) => host.address().ok_or_else(|| unknown(host)),
        (None, None) => Err(unknown(other)),
        (None, Some(other)) => source_towards(other).ok_or_else(|| unknown(host)),
    }
}

/// Whether an address is one of this host's.
pub fn is_own(address: IpAddr) -> bool {
    let address = address.to_canonical();
    // What is sent to oneself comes from where it goes to.
    address.is_loopback() || address.is_unspecified() || source_towards(address) == Some(address)
}
