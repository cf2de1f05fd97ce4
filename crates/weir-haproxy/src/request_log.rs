//! HAProxy's log of requests for [`weir_sut::RequestLog`]: its timers (configuration manual 8.4), in whole milliseconds.

use weir_sut::request_line::{LoggedRequest, words};

/// Format of a line: time of logging, active time, and the timers TR, Tw, Tc, Tr, Td.
pub(super) const FORMAT: &str = "log-format weir|%[date(0,us)]|%Ta|%TR|%Tw|%Tc|%Tr|%Td";

/// Target of the log: the standard output, which weir keeps in a file, since HAProxy itself does not write to files.
pub(super) const LOG: &str = "log stdout format raw local0";

pub(super) fn parse(line: &str) -> Option<LoggedRequest> {
    let [end, total, parts @ ..] = words::<7>(line)?;
    Some(LoggedRequest {
        end_us: end.parse().ok()?,
        total_us: parse_us(total)?,
        parts_us: parts.map(parse_us),
        stands_for: 1000,
    })
}

/// Parses a time. -1: it did not come to that. With `option logasap` there is a sign before others.
fn parse_us(word: &str) -> Option<u64> {
    word.parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_milliseconds_and_those_that_did_not_run_are_unknown() {
        let request = parse("weir|1795460000123456|250|1|0|2|200|-1").unwrap();
        assert_eq!(request.end_us, 1_795_460_000_123_456);
        assert_eq!(request.total_us, 250_000);
        let parts = [Some(1000), Some(0), Some(2000), Some(200_000), None];
        assert_eq!(request.parts_us, parts);
        assert_eq!(parse("weir|1|-1|0|0|0|0|0"), None);
        assert_eq!(parse("127.0.0.1:4 [23/Nov/2026] weir origin/origin 0/0"), None);
    }
}
