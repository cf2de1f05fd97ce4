//! Envoy's log of requests for [`weir_sut::RequestLog`], by its time points (access log, COMMON_DURATION), in microseconds.

use serde_json::{Value, json};
use weir_sut::request_line::{FILE, LoggedRequest, seconds_us, words};

/// Interval at which Envoy writes what it has collected, milliseconds, as an option of its command line.
pub(super) const FLUSH: [&str; 2] = ["--file-flush-interval-msec", "100"];

/// Measured spans by start and end: the whole request, reading the request, from the request's begin to that of a
/// connection, opening the connection, waiting for the origin, and the rest of the answer.
const SPANS: [&str; 6] = [
    "DS_RX_BEG:DS_TX_END",
    "DS_RX_BEG:DS_RX_END",
    "DS_RX_BEG:US_CX_BEG",
    "US_CX_BEG:US_CX_END",
    "US_TX_END:US_RX_BEG",
    "US_RX_BEG:US_RX_END",
];

/// Returns the logger, for the connection manager.
pub(super) fn logger() -> Value {
    let spans = SPANS.map(|span| format!("|%COMMON_DURATION({span}:us)%"));
    let format = format!("weir|%START_TIME(%s.%6f)%{}\n", spans.concat());
    json!({"name": "envoy.access_loggers.file", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
        "path": FILE,
        "log_format": {"text_format_source": {"inline_string": format}},
    }})
}

pub(super) fn parse(line: &str) -> Option<LoggedRequest> {
    let [start, spans @ ..] = words::<7>(line)?;
    // Absent, or below zero where the first point is the later one.
    let [total, client, before, connect, origin, answer] = spans.map(|word| word.parse().ok());
    let total_us: u64 = total?;
    Some(LoggedRequest {
        end_us: seconds_us(start)?.checked_add(total_us)?,
        total_us,
        // A connection that was there before the request was opened for another one.
        parts_us: [
            client,
            None,
            connect.map(|us| if before.is_some() { us } else { 0 }),
            origin,
            answer,
        ],
        stands_for: 1000,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_was_there_took_no_time_of_the_request() {
        let line = "weir|1795460000.123456|250000|30|100|2000|200000|900";
        let request = parse(line).unwrap();
        assert_eq!(request.end_us, 1_795_460_000_373_456);
        let parts = [Some(30), None, Some(2000), Some(200_000), Some(900)];
        assert_eq!((request.total_us, request.parts_us), (250_000, parts));
        let reused = parse("weir|1.000000|250|30|-70000|2000|200|9").unwrap();
        assert_eq!(reused.parts_us[2], Some(0));
        let refused = parse("weir|1.000000|250|30|-|-|-|-").unwrap();
        assert_eq!(refused.parts_us[1..], [None; 4]);
        assert_eq!(parse("weir|1.000000|-|-|-|-|-|-"), None);
    }
}
