//! HAR files: the requests that a browser or a proxy has recorded.

use serde_json::Value;

/// A request as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// When it began, RFC 3339.
    pub begin: String,
    /// Method.
    pub method: String,
    /// Host and target.
    pub destination: Option<(String, String)>,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub content: String,
}

/// Whether a file that begins so is a HAR file: an object whose first key is `log`, which holds an object.
pub fn is_har(head: &[u8]) -> bool {
    let dense = head.iter().filter(|byte| !byte.is_ascii_whitespace());
    dense.take(8).eq(b"{\"log\":{")
}

/// The entries of a HAR file.
///
/// # Errors
/// It is not JSON, or lacks entries.
pub fn parse(file: &[u8]) -> Result<Vec<Recorded>, String> {
    let file: Value = serde_json::from_slice(file).map_err(|error| error.to_string())?;
    let entries = file["log"]["entries"].as_array();
    Ok(entries
        .ok_or("it has no log.entries")?
        .iter()
        .map(recorded)
        .collect())
}

fn recorded(entry: &Value) -> Recorded {
    let request = &entry["request"];
    let headers = request["headers"].as_array().into_iter().flatten();
    Recorded {
        begin: text(&entry["startedDateTime"]),
        method: text(&request["method"]),
        destination: host_and_target(request["url"].as_str().unwrap_or_default()),
        headers: headers
            .map(|one| (text(&one["name"]), text(&one["value"])))
            .collect(),
        content: text(&request["postData"]["text"]),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Host without a port, and target in origin form, of a URL; `None` unless it is one of http or https.
pub fn host_and_target(url: &str) -> Option<(String, String)> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return None;
    }
    let uri: http::Uri = url.split('#').next()?.parse().ok()?;
    Some((uri.host()?.to_owned(), uri.path_and_query()?.to_string()))
}
