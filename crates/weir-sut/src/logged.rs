//! A line of the log of requests that weir has proxies write for itself.

/// The file, below the prefix, of proxies that can name one.
pub(crate) const FILE: &str = "logs/requests.log";

/// The first word of a line of weir's own.
pub(crate) const MARK: &str = "weir";

/// Where the time of a request went, as a proxy's log tells it. Microseconds; `None`: it does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoggedRequest {
    /// When it ended, since 1970.
    pub end_us: u64,
    /// What it took from the first byte that the proxy saw of it to the last one of the answer.
    pub total_us: u64,
    /// Of this: reading the request, waiting for a connection that may be used, opening one, waiting for the origin,
    /// and the rest of its answer.
    pub parts_us: [Option<u64>; 5],
    /// How many requests it stands for, times 1000.
    pub stands_for: u64,
}

/// A decimal number of seconds in microseconds; `None` for `-`.
pub(crate) fn seconds_us(word: &str) -> Option<u64> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let micros = format!("{fraction:0<6}");
    let micros: u64 = micros.get(..6)?.parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(micros)
}

/// What a line of weir's own says, word by word.
pub(crate) fn words<const N: usize>(line: &str) -> Option<[&str; N]> {
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
