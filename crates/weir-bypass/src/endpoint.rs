//! Layout of endpoints and counters in the BPF programs' maps (`bpf/sockmap.bpf.c`).

use std::net::{IpAddr, SocketAddr};

use crate::{Counts, Hop};

/// `struct endpoint`: the address in network byte order, and the port.
pub(crate) type Key = [u32; 5];

/// `struct hop`: the cookies of the two ends' namespaces, and the hop's row of `counts`.
pub(crate) type Leg = [u64; 3];

/// `struct counters`.
pub(crate) type Row = [u64; 8];

/// Returns the map key of an endpoint. An IPv4 address is mapped to IPv6, and an unspecified address is all zeros, so
/// that sockets of both families agree.
pub(crate) fn key(server: SocketAddr) -> Key {
    let octets = match server.ip() {
        ip if ip.is_unspecified() => [0; 16],
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    let mut key = [0; 5];
    for (word, bytes) in key.iter_mut().zip(octets.as_chunks::<4>().0) {
        *word = u32::from_ne_bytes(*bytes);
    }
    key[4] = server.port().into();
    key
}

pub(crate) fn leg(hop: Hop, row: u32) -> Leg {
    let [client, server] =
        hop.namespaces.map(|ends| [ends.client.0, ends.server.0]).unwrap_or_default();
    [client, server, row.into()]
}

/// Adds up the counts of all CPUs.
pub(crate) fn sum(rows: &[Row]) -> Counts {
    let mut sums = Row::default();
    for row in rows {
        for (sum, count) in sums.iter_mut().zip(row) {
            *sum += count;
        }
    }
    let [sockets, redirected, redirected_bytes, alone, behind, full, tcp_bytes, refused] = sums;
    Counts { sockets, redirected, redirected_bytes, alone, behind, full, tcp_bytes, refused }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_write_an_ipv4_address_alike() {
        assert_eq!(key_of("10.1.2.3:80"), key_of("[::ffff:10.1.2.3]:80"));
        assert_eq!(key_of("0.0.0.0:80"), key_of("[::]:80"));
        assert_ne!(key_of("10.1.2.3:80"), key_of("10.1.2.3:81"));
        assert_eq!(key_of("[::1]:9")[3], u32::from_be(1));
    }

    fn key_of(address: &str) -> Key {
        key(address.parse().unwrap())
    }

    #[test]
    fn cpus_are_added() {
        let counts = sum(&[[1, 2, 3, 4, 5, 6, 7, 8], [10; 8]]);
        assert_eq!((counts.sockets, counts.tcp_bytes), (11, 17));
        assert_eq!(counts.refused, 18);
        assert_eq!(counts.left_to_tcp(), 14 + 15 + 16);
    }
}
