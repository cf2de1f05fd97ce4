//! Caddy's log of requests for [`weir_sut::RequestLog`]: it has the duration of a request, and nothing about the origin.

use serde_json::{Map, Value, json};
use weir_sut::request_line::{FILE, LoggedRequest};

/// Name of the logger for requests of servers that have no logger of their own.
const LOGGER: &str = "weir_requests";

/// Returns a server's value at `logs`.
pub(super) fn of_server() -> Value {
    json!({"default_logger_name": LOGGER})
}

/// Returns the log's value at `logging`. All fields of a request that are not needed are left out.
pub(super) fn logging() -> Value {
    let left_out = ["request", "resp_headers"];
    let left_out: Map<String, Value> =
        left_out.map(|field| (field.to_owned(), json!({"filter": "delete"}))).into_iter().collect();
    let name = format!("http.log.access.{LOGGER}");
    json!({"logs": {
        "default": {"exclude": [name]},
        LOGGER: {
            // Also that of settings: a server has one logger.
            "include": [name, "http.log.access.weir"],
            "writer": {"output": "file", "filename": FILE, "roll": false},
            "encoder": {"format": "filter", "wrap": {"format": "json"}, "fields": left_out},
        },
    }})
}

pub(super) fn parse(line: &str) -> Option<LoggedRequest> {
    let line: Value = serde_json::from_str(line).ok()?;
    let (end_us, total_us) = (field_us(&line, "ts")?, field_us(&line, "duration")?);
    Some(LoggedRequest { end_us, total_us, stands_for: 1000, ..LoggedRequest::default() })
}

fn field_us(line: &Value, field: &str) -> Option<u64> {
    Some((line.get(field)?.as_f64()? * 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_an_end_and_a_duration() {
        let line = r#"{"ts":1795460000.5,"user_id":"","duration":0.00025,"size":9,"status":200}"#;
        let request = parse(line).unwrap();
        assert_eq!((request.end_us, request.total_us), (1_795_460_000_500_000, 250));
        assert_eq!(parse("{\"ts\":1.0}"), None);
    }
}
