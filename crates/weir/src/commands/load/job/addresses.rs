//! Lists of addresses as they are typed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use weir_model::study::no_server_at;

use crate::failure::Failure;

/// Most own addresses; a list with more is a mistake.
const MOST: u128 = 65_536;

/// Reads own addresses, such as `127.0.0.2,127.0.0.4-127.0.0.9,10.1.0.0/28`: single addresses, ranges, and networks,
/// without the network's own and its broadcast address.
pub(super) fn sources(text: &str) -> Result<Vec<IpAddr>, Failure> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = range(part).map_err(|why| refused(text, part, why))?;
        let (low, high) = (number(first), number(last));
        if first.is_ipv4() != last.is_ipv4() || low > high {
            return Err(refused(text, part, "does not go up".to_owned()));
        }
        if high - low + all.len() as u128 >= MOST {
            return Err(refused(text, part, format!("is more than {MOST} addresses")));
        }
        all.extend((low..=high).map(|number| address(number, first.is_ipv4())));
    }
    Ok(all)
}

fn refused(text: &str, part: &str, why: String) -> Failure {
    Failure::input(format!("--source {text}: `{part}` {why}"))
        .hint("for example --source 127.0.0.2-127.0.0.9, or --source 10.1.0.0/28")
}

fn range(part: &str) -> Result<(IpAddr, IpAddr), String> {
    if let Some((first, last)) = part.split_once('-') {
        return Ok((parse_address(first)?, parse_address(last)?));
    }
    let Some((network, length)) = part.split_once('/') else {
        let address = parse_address(part)?;
        return Ok((address, address));
    };
    let network = parse_address(network)?;
    let bits: u32 = if network.is_ipv4() { 32 } else { 128 };
    let length: u32 = length
        .parse()
        .ok()
        .filter(|&length| length <= bits)
        .ok_or_else(|| format!("has a prefix length that is not 0 to {bits}"))?;
    let host_bits = bits - length;
    let mask = 1_u128.checked_shl(host_bits).map_or(u128::MAX, |size| size - 1);
    let low = number(network) & !mask;
    let high = low | mask;
    // RFC 919: all zeros is the network, all ones is everybody.
    let inset = u128::from(network.is_ipv4() && host_bits >= 2);
    let is_v4 = network.is_ipv4();
    Ok((address(low + inset, is_v4), address(high - inset, is_v4)))
}

fn parse_address(text: &str) -> Result<IpAddr, String> {
    text.trim().parse().map_err(|_| "is not an address".to_owned())
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => address.into(),
    }
}

fn address(number: u128, is_v4: bool) -> IpAddr {
    match u32::try_from(number) {
        Ok(number) if is_v4 => Ipv4Addr::from(number).into(),
        _ => Ipv6Addr::from(number).into(),
    }
}

/// Reads addresses to connect to instead of the URL's own, such as `10.0.0.1:8080,[::1]:8080`.
pub(super) fn targets(text: &str) -> Result<Vec<SocketAddr>, Failure> {
    text.split(',')
        .map(str::trim)
        .map(|part| {
            let address = part.parse().map_err(|_| {
                Failure::input(format!("--to {text}: `{part}` is not an address with a port"))
                    .hint("for example --to 10.0.0.1:8080,10.0.0.2:8080")
            })?;
            match no_server_at(&address) {
                Some(why) => Err(Failure::input(format!("--to {text}: {why}"))),
                None => Ok(address),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let all = sources(text).expect("a list of addresses");
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn addresses_ranges_and_networks() {
        assert_eq!(texts("127.0.0.2"), ["127.0.0.2"]);
        assert_eq!(
            texts("127.0.0.2-127.0.0.4, 127.0.1.1"),
            ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.1.1"]
        );
        assert_eq!(texts("10.1.0.0/30"), ["10.1.0.1", "10.1.0.2"]);
        assert_eq!(texts("10.1.0.5/32"), ["10.1.0.5"]);
        assert_eq!(texts("fd00::/127"), ["fd00::", "fd00::1"]);
        assert_eq!(texts("10.1.0.0/20").len(), 4094);
    }

    #[test]
    fn what_is_no_list_of_addresses() {
        for text in [
            "",
            "localhost",
            "10.0.0.9-10.0.0.1",
            "10.0.0.1-::1",
            "10.0.0.0/33",
            "10.0.0.0/8",
            "::/0",
        ] {
            assert!(sources(text).is_err(), "{text}");
        }
        for text in ["127.0.0.1", "localhost:80", "127.0.0.1:70000", "127.0.0.1:0", "[ff02::1]:80"]
        {
            assert!(targets(text).is_err(), "{text}");
        }
    }
}
