//! httpd's log of requests for [`weir_sut::RequestLog`]: it has the duration of a request (mod_log_config, `%D`), and
//! nothing about the origin.

use weir_sut::request_line::{FILE, LoggedRequest, words};

use super::counters::HIDDEN;

/// Returns the directive of the log with its format; weir's own queries are left out. Lines are written one by one,
/// since buffering is a setting of the whole server.
pub(super) fn log() -> String {
    format!(
        r#"CustomLog {FILE} "weir|%{{end:usec}}t|%D" "expr=!(%{{REQUEST_URI}} =~ m#^{HIDDEN}#)""#
    )
}

pub(super) fn parse(line: &str) -> Option<LoggedRequest> {
    let [end, total] = words(line)?;
    Some(LoggedRequest {
        end_us: end.parse().ok()?,
        total_us: total.parse().ok()?,
        stands_for: 1000,
        ..LoggedRequest::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_an_end_and_a_duration() {
        let request = parse("weir|1795460000123456|250").unwrap();
        assert_eq!((request.end_us, request.total_us), (1_795_460_000_123_456, 250));
        assert_eq!(request.parts_us, [None; 5]);
        assert_eq!(parse("127.0.0.1 - - [23/Nov/2026]"), None);
    }
}
