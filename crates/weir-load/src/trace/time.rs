//! Parsing of times as written in logs, to nanoseconds since 1970-01-01T00:00:00Z.

use jiff::Timestamp;
use jiff::fmt::strtime;

const S: i64 = 1_000_000_000;

/// Seconds since 1970 (in the year 2255) from which on a number is rejected: it is most likely milliseconds.
const LAST: i64 = 9 * S;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Nanoseconds since the epoch.
    pub(super) ns: i64,
    /// True if the time is a whole second of the clock, and so may mean any moment in it. False for a number of
    /// seconds, which is exact.
    pub(super) whole_second: bool,
}

/// Parses `1732194001.25`, a date and time of RFC 3339, or a time of an access log; a number of 19 digits is
/// nanoseconds.
pub(super) fn any(text: &str) -> Option<Stamp> {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    match behind.as_bytes().first() {
        Some(b'-') => rfc3339(text),
        Some(b'/') => access_log(text),
        // Nanoseconds: no other unit is so fine.
        None if text.len() == 19 => Some(Stamp { ns: text.parse().ok()?, whole_second: false }),
        _ => seconds(text),
    }
}

/// Parses `2026-11-21T13:00:01.25Z`.
pub(super) fn rfc3339(text: &str) -> Option<Stamp> {
    stamp(text, text.parse().ok()?)
}

/// Parses the time of a log's line. HAProxy writes the proxy's local time without its zone, which is taken for UTC:
/// only differences matter.
pub(super) fn in_brackets(text: &str) -> Option<Stamp> {
    let zoned = access_log(text).or_else(|| rfc3339(text));
    zoned.or_else(|| access_log(&format!("{text} +0000")))
}

/// Parses a date and a time in separate columns, in UTC (W3C extended log format).
pub(super) fn columns(date: &str, time: &str) -> Option<Stamp> {
    rfc3339(&format!("{date}T{time}Z"))
}

/// Parses seconds with or without a fraction; digits beyond the ninth are dropped.
fn seconds(text: &str) -> Option<Stamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = [whole, fraction].into_iter();
    if parts.any(|text| text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let integer: i64 = whole.parse().ok().filter(|seconds| *seconds < LAST)?;
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    Some(Stamp {
        ns: digits.fold(integer, |ns, digit| ns * 10 + i64::from(digit - b'0')),
        whole_second: false,
    })
}

/// Parses `21/Nov/2026:13:00:01 +0000`, the format introduced by NCSA httpd.
pub(super) fn access_log(text: &str) -> Option<Stamp> {
    let read = strtime::parse("%d/%b/%Y:%H:%M:%S%.f %z", text).ok()?;
    stamp(text, read.to_timestamp().ok()?)
}

/// Converts a parsed time; `text` is its notation, which shows whether it has a fraction. `None` if it is before 1970
/// or not before [`LAST`].
fn stamp(text: &str, moment: Timestamp) -> Option<Stamp> {
    let is_known = (0..LAST).contains(&moment.as_second()) && moment.as_nanosecond() >= 0;
    Some(Stamp {
        ns: i64::try_from(moment.as_nanosecond()).ok().filter(|_| is_known)?,
        whole_second: !text.contains('.'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_moment_in_every_notation() {
        let s = 1_795_266_001 * S;
        for (text, ns, whole_second) in [
            ("1795266001", s, false),
            ("1795266001.25", s + S / 4, false),
            ("1795266001.0000000019", s + 1, false),
            ("2026-11-21T13:00:01Z", s, true),
            ("2026-11-21t13:00:01.250z", s + S / 4, false),
            ("2026-11-21 14:30:01+01:30", s, true),
            ("21/Nov/2026:13:00:01 +0000", s, true),
            ("21/Nov/2026:05:00:01 -0800", s, true),
            ("21/Nov/2026:13:00:01.000 +0000", s, false),
            ("1795266001000000007", s + 7, false),
            ("0", 0, false),
            ("0.5", S / 2, false),
        ] {
            assert_eq!(any(text), Some(Stamp { ns, whole_second }), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let texts = "|-1|1.|.5|1732194001123|9000000000|2026-02-29T00:00:00Z|\
            2026-11-21T24:00:00Z|2026-11-21T13:00:01|2026-13-21T13:00:01Z|1969-12-31T23:59:59Z|\
            9999-01-01T00:00:00Z|21/Nov/2026:13:00:01|31/Feb/2026:13:00:01 +0000|1795266001 5";
        for text in texts.split('|') {
            assert_eq!(any(text), None, "{text}");
        }
    }
}
