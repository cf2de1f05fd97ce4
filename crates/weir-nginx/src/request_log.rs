//! nginx's log of requests for [`weir_sut::RequestLog`]. Its clock has whole milliseconds.

use weir_sut::request_line::{FILE, LoggedRequest, seconds_us, words};

/// Directive of the log's format, for the context `http`.
pub(super) const FORMAT: &str = "log_format weir 'weir|$msec|$request_time|$upstream_connect_time|\
                                 $upstream_header_time|$upstream_response_time'";

/// Returns the directive of the log, for a server. Lines are buffered, so that a request costs no write.
pub(super) fn log() -> String {
    format!("access_log {FILE} weir buffer=64k flush=100ms")
}

pub(super) fn parse(line: &str) -> Option<LoggedRequest> {
    let [end, total, connect, header, response] = words(line)?;
    let [connect, header, response] = [connect, header, response].map(together_us);
    Some(LoggedRequest {
        end_us: seconds_us(end)?,
        total_us: seconds_us(total)?,
        parts_us: [None, None, connect, difference(connect, header), difference(header, response)],
        stands_for: 1000,
    })
}

fn difference(from: Option<u64>, to: Option<u64>) -> Option<u64> {
    Some(to?.saturating_sub(from?))
}

/// Sums the times of a request that was tried at several servers: `0.001, 0.002` or, after an internal redirect, `0.001
/// : 0.002` (ngx_http_upstream_module).
fn together_us(word: &str) -> Option<u64> {
    word.split([',', ':']).map(str::trim).filter_map(seconds_us).reduce(|sum, one| sum + one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_apart_into_what_lies_between_its_times() {
        let line = "weir|1795460000.123|0.250|0.001|0.201|0.240";
        let request = parse(line).unwrap();
        assert_eq!(request.end_us, 1_795_460_000_123_000);
        assert_eq!(request.total_us, 250_000);
        let [connect, origin, answer] = [1000, 200_000, 39_000].map(Some);
        assert_eq!(request.parts_us, [None, None, connect, origin, answer]);
        let tried = parse("weir|1.0|0.5|0.001, 0.002|-, 0.2|0.1 : 0.3").unwrap();
        assert_eq!(tried.parts_us[2..], [3000, 197_000, 200_000].map(Some));
        let refused = parse("weir|1.0|0.000|-|-|-").unwrap();
        assert_eq!((refused.total_us, refused.parts_us), (0, [None; 5]));
        for other in ["", "weir|1|2", "127.0.0.1 - -", "other|1|2|3|4|5"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
