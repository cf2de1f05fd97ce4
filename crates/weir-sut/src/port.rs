//! Ports for proxies to listen at.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

use weir_probe::port_is_free;

use crate::SutError;

/// Lowest port that a proxy is given: services commonly use those below.
pub const LOWEST_PORT: u16 = 10_240;

/// Linux's default for the lowest port of outgoing connections (ip-sysctl).
const LOCAL_PORTS_FROM: u16 = 32_768;

/// Returns an unpredictable number, enough to keep two weirs on one host apart.
pub(crate) fn random() -> u64 {
    // The standard library seeds each state from the kernel's random source.
    RandomState::new().hash_one(0_u8)
}

/// Returns ports that are free now at an address of this host, all different.
///
/// They lie below the range from which the kernel takes ports for outgoing connections: in that range, the trial's own
/// connections, or their remains in TIME_WAIT, could take a port before the proxy does.
///
/// # Errors
/// The address is not this host's, or too few ports are free.
pub fn free_ports(address: IpAddr, count: usize) -> Result<Vec<u16>, SutError> {
    let ceiling = local_ports_from().unwrap_or(LOCAL_PORTS_FROM);
    let ceiling = if ceiling > LOWEST_PORT + 1000 { ceiling } else { u16::MAX };
    let span = u64::from(ceiling - LOWEST_PORT);
    let tries = 1000 + 4 * u32::try_from(count).unwrap_or(u32::MAX / 8);
    let mut ports = Vec::with_capacity(count);
    let mut tried = BTreeSet::new();
    for _ in 0..tries {
        if ports.len() == count {
            break;
        }
        let port = LOWEST_PORT + u16::try_from(random() % span).expect("the span is below 2^16");
        if !tried.insert(port) {
            continue;
        }
        let is_free = port_is_free(SocketAddr::new(address, port)).map_err(|source| {
            SutError::File { doing: "listen at", path: address.to_string().into(), source }
        })?;
        if is_free {
            ports.push(port);
        }
    }
    if ports.len() == count { Ok(ports) } else { Err(SutError::NoFreePort { address, tries }) }
}

/// Returns one port that is free now; see [`free_ports`].
///
/// # Errors
/// Same as [`free_ports`].
pub fn free_port(address: IpAddr) -> Result<u16, SutError> {
    let ports = free_ports(address, 1)?;
    Ok(ports[0])
}

/// Returns the lowest port that the kernel takes for outgoing connections.
fn local_ports_from() -> Option<u16> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    range.split_ascii_whitespace().next()?.parse().ok()
}
