//! Caddy's log: one JSON object per line, between lines in plain words.

use serde_json::{Map, Value};

/// Text of a warning that Caddy gives about what weir's own configuration sets on purpose.
const ASKED_FOR: &str = "automatic HTTPS is completely disabled";

/// Fields of a log line other than its details.
const HEAD: [&str; 4] = ["level", "ts", "logger", "msg"];

/// Returns the warnings in printed text, each in one line: `http: message (field=value)`.
pub(super) fn warnings(printed: &str) -> Vec<String> {
    printed
        .lines()
        .filter_map(entry)
        .filter(|entry| matches!(level(entry), "warn" | "error"))
        .filter(|entry| !text(entry, "msg").starts_with(ASKED_FOR))
        .map(|entry| sentence(&entry))
        .collect()
}

/// Returns printed text without lines about ordinary events.
pub(super) fn without_notices(printed: &str) -> String {
    let lines: Vec<&str> = printed
        .lines()
        .filter(|line| {
            entry(line).is_none_or(|entry| {
                !matches!(level(&entry), "debug" | "info")
                    && !text(&entry, "msg").starts_with(ASKED_FOR)
            })
        })
        .collect();
    lines.join("\n")
}

fn entry(line: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(line).ok()
}

fn level(entry: &Map<String, Value>) -> &str {
    text(entry, "level")
}

fn text<'a>(entry: &'a Map<String, Value>, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn sentence(entry: &Map<String, Value>) -> String {
    let details: Vec<String> = entry
        .iter()
        .filter(|(name, _)| !HEAD.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let logger = match text(entry, "logger") {
        "" => String::new(),
        logger => format!("{logger}: "),
    };
    let fields =
        if details.is_empty() { String::new() } else { format!(" ({})", details.join(" ")) };
    format!("{logger}{}{fields}", text(entry, "msg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = r#"{"level":"info","ts":1.5,"msg":"using provided configuration"}
{"level":"warn","ts":1.5,"logger":"http","msg":"automatic HTTPS is completely disabled for server","server_name":"site"}
{"level":"warn","ts":1.5,"logger":"tls","msg":"stapling OCSP","error":"no server","n":2}
{"level":"error","ts":1.5,"msg":"plain"}
Error: loading http app module"#;

    #[test]
    fn warnings_are_lines_of_words() {
        let expected = [r#"tls: stapling OCSP (error="no server" n=2)"#, "plain"];
        assert_eq!(warnings(PRINTED), expected);
    }

    #[test]
    fn notices_are_left_out_of_a_refusal() {
        let words = without_notices(PRINTED);
        assert_eq!(words.lines().count(), 3, "{words}");
        assert!(words.ends_with("Error: loading http app module"));
    }
}
