//! Ports that connections can be given.

use std::ops::RangeInclusive;

/// The kernel's range of ports for connections (ip_local_port_range in ip(7)); `None` where it
/// cannot be read.
pub fn range() -> Option<RangeInclusive<u16>> {
    parse(&std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?)
}

fn parse(text: &str) -> Option<RangeInclusive<u16>> {
    let mut words = text.split_ascii_whitespace();
    let low = words.next()?.parse().ok()?;
    let high = words.next()?.parse().ok()?;
    (low <= high).then_some(low..=high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_its_range() {
        assert_eq!(parse("32768\t60999\n"), Some(32768..=60999));
        assert_eq!(parse("60999 32768"), None);
        assert_eq!(parse(""), None);
        let range = range().expect("this kernel has a range");
        assert!(!range.is_empty());
    }
}
