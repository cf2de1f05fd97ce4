//! Line of the request log that weir has proxies write for it.

/// Path of the log below the prefix, for proxies whose log can have any path.
pub const FILE: &str = "logs/requests.log";

/// First word of weir's own lines.
pub(crate) const MARK: &str = "weir";

/// Duration of a request and its parts from a proxy's log, microseconds; `None` if the log does not have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoggedRequest {
    /// End of the request, microseconds since 1970.
    pub end_us: u64,
    /// Time from the first byte of the request that the proxy saw to the last byte of the answer.
    pub total_us: u64,
    /// Parts of the total: reading the request, waiting for a connection that may be used, opening a connection,
    /// waiting for the origin, and the rest of the answer.
    pub parts_us: [Option<u64>; 5],
    /// Number of requests that this one represents, times 1000.
    pub stands_for: u64,
}

/// Parses a decimal number of seconds into microseconds; `None` for `-`.
pub fn seconds_us(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.split_once('.').unwrap_or((word, ""));
    let micros = format!("{fraction:0<6}");
    let micros: u64 = micros.get(..6)?.parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros)
}

/// Splits one of weir's own lines into its `N` words behind the mark; `None` for other lines.
pub fn words<const N: usize>(line: &str) -> Option<[&str; N]> {
    let mut words = line.split('|');
    (words.next()? == MARK).then_some(())?;
    let words: Vec<&str> = words.collect();
    words.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_to_the_microsecond() {
        for (word, expected) in [
            ("0.001", Some(1000)),
            ("1795460000.123", Some(1_795_460_000_123_000)),
            ("2", Some(2_000_000)),
            ("0.0000019", Some(1)),
            ("-", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(seconds_us(word), expected, "{word}");
        }
    }
}
