//! Requested ends of a link, and checks for what the kernel would not accept.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use crate::HostError;

/// One end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wire {
    /// Name of the interface, 15 bytes at most.
    pub name: String,
    /// Addresses of the interface, each with the length of its prefix, bits.
    pub addresses: Vec<(Ipv4Addr, u8)>,
}

/// MTUs that a veth accepts, bytes: `ETH_MIN_MTU` to `ETH_MAX_MTU` of linux/if_ether.h.
pub(crate) const MTU: std::ops::RangeInclusive<u32> = 68..=65_535;

/// Maximum length of an interface's name: `IFNAMSIZ` of linux/if.h without the NUL at its end.
const NAME_BYTES: usize = 15;

/// Checks that a veth can have this MTU, bytes.
pub(crate) fn check_mtu(mtu: u32) -> Result<(), HostError> {
    if MTU.contains(&mtu) { Ok(()) } else { Err(HostError::MtuOutOfRange(mtu)) }
}

impl Wire {
    /// Checks for what the kernel would refuse, or accept and make useless, before anything is made.
    pub(crate) fn check(&self) -> Result<(), HostError> {
        let name = self.name.clone();
        if let Some(why) = bad_name(&name) {
            return Err(HostError::BadName { name, why });
        }
        let mut addresses = HashSet::new();
        for &(address, prefix) in &self.addresses {
            if let Some(why) = bad_address(address, prefix) {
                return Err(HostError::BadAddress { name, address, prefix, why });
            }
            // The kernel would take an address twice if its prefixes differ.
            if !addresses.insert(address) {
                return Err(HostError::AddressTaken { name, address });
            }
        }
        Ok(())
    }
}

/// Returns the reason why a name is not valid, by the rules of `dev_valid_name` (net/core/dev.c) and of
/// `sysctl_dev_name_is_allowed` (include/net/ip.h); only ASCII names are allowed here.
fn bad_name(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("it is empty"),
        "." | ".." => Some("it would be a directory"),
        "all" | "default" => Some("settings for all interfaces have that name"),
        _ if name.len() > NAME_BYTES => Some("it is longer than 15 bytes"),
        _ if name.contains('%') => Some("the kernel would put a number in the place of `%`"),
        _ if !name.bytes().all(|b| b.is_ascii_graphic()) => {
            Some("it has characters other than visible ASCII")
        }
        _ if name.contains(['/', ':']) => Some("it has a `/` or a `:`"),
        _ => None,
    }
}

/// Returns the reason why an address is not valid for a host on a link (RFC 1122 section 3.2.1.3).
fn bad_address(address: Ipv4Addr, prefix: u8) -> Option<&'static str> {
    if prefix == 0 || prefix > 32 {
        return Some("the length of a prefix is 1 to 32 bits");
    }
    if address.is_unspecified() || address.octets()[0] == 0 {
        return Some("0.0.0.0/8 is nobody's address");
    }
    if address.is_loopback() {
        return Some("127.0.0.0/8 never leaves a namespace");
    }
    if address.is_multicast() || address.octets()[0] >= 240 {
        return Some("it is not an address of one host");
    }
    // On links of two (RFC 3021) and alone, all addresses are for hosts.
    let host = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
    let host_bits = u32::from(address) & host;
    (prefix < 31 && (host_bits == 0 || host_bits == host))
        .then_some("the first and the last address of a network are its own and its broadcast's")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(name: &str, addresses: &[&str]) -> Wire {
        Wire {
            name: name.to_owned(),
            addresses: addresses
                .iter()
                .map(|text| {
                    let (address, prefix) = text.split_once('/').unwrap();
                    (address.parse().unwrap(), prefix.parse().unwrap())
                })
                .collect(),
        }
    }

    #[test]
    fn names_that_the_kernel_would_refuse_or_change_are_found() {
        for good in ["a", "proxy0", "fifteen-bytes-x", "a.b", "veth_1"] {
            wire(good, &[]).check().unwrap();
        }
        let bad = "|.|..|all|default|sixteen-bytes-xx|a/b|a:1|a b|a\n|eth%d|é";
        for bad in bad.split('|') {
            let error = wire(bad, &[]).check().unwrap_err();
            assert!(matches!(error, HostError::BadName { .. }), "{bad}: {error}");
        }
    }

    #[test]
    fn addresses_that_no_host_can_have_are_found() {
        let good = "10.0.0.1/8 10.0.0.254/24 10.0.1.0/8 10.0.0.0/31 10.0.0.1/31 10.0.0.255/32";
        for good in good.split(' ') {
            wire("a", &[good]).check().unwrap();
        }
        let bad = "10.0.0.1/0 10.0.0.1/33 0.0.0.0/24 0.1.2.3/8 127.0.0.2/8 224.0.0.1/24 \
            255.255.255.255/32 10.0.0.0/24 10.0.0.255/24 10.0.0.3/30";
        for bad in bad.split(' ') {
            let error = wire("a", &[bad]).check().unwrap_err();
            assert!(matches!(error, HostError::BadAddress { .. }), "{bad}: {error}");
        }
    }

    #[test]
    fn an_address_is_an_ends_once() {
        let twice = wire("a", &["10.0.0.1/24", "10.0.0.1/16"]);
        let error = twice.check().unwrap_err();
        assert!(matches!(error, HostError::AddressTaken { .. }), "{error}");
    }

    #[test]
    fn an_mtu_is_one_of_ethernet() {
        for mtu in [68, 1500, 9000, 65_535] {
            check_mtu(mtu).unwrap();
        }
        for mtu in [0, 67, 65_536, u32::MAX] {
            assert!(check_mtu(mtu).is_err(), "{mtu}");
        }
    }
}
