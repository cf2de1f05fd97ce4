//! HAR files: requests recorded by a browser or a proxy.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::trace::put_request;

/// A UTF-8 byte order mark, which some programs write before a text.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

const NOT_HTTP: &str = "not over HTTP (`data:`, `blob:`, `ws:`, an extension's)";
const NO_URL: &str = "with a URL that has spaces, characters not in ASCII, or no host";
const NO_CONTENT: &str = "with a body that was not recorded (a form with files, an upload)";

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Time at which the request began, RFC 3339.
    pub begin: String,
    /// HTTP method.
    pub method: String,
    /// Host and target; or what kind of entry it is that cannot be sent.
    pub destination: Result<(String, String), &'static str>,
    /// Names and values of the headers.
    pub headers: Vec<(String, String)>,
    /// Body; or what kind of entry it is that lacks one.
    pub content: Result<Vec<u8>, &'static str>,
}

/// Returns true if `head` is the beginning of a HAR file: an object whose first key is `log`, which holds an object.
pub fn is_har(head: &[u8]) -> bool {
    begins_with(head, b"{\"log\":{")
}

/// Returns true if a text begins so, a byte order mark and white space apart.
pub(crate) fn begins_with(text: &[u8], begin: &[u8]) -> bool {
    text.strip_prefix(BOM)
        .unwrap_or(text)
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace())
        .take(begin.len())
        .eq(begin)
}

/// Returns the entries of a HAR file.
///
/// # Errors
/// The file is not JSON, or has no `log.entries`.
pub fn parse(file: &[u8]) -> Result<Vec<Recorded>, String> {
    let text = file.strip_prefix(BOM).unwrap_or(file);
    let file: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let entries = file["log"]["entries"].as_array();
    Ok(entries.ok_or("it has no log.entries")?.iter().map(recorded).collect())
}

fn recorded(entry: &Value) -> Recorded {
    let request = &entry["request"];
    let headers = request["headers"].as_array().into_iter().flatten();
    let method = text(&request["method"]);
    Recorded {
        begin: text(&entry["startedDateTime"]),
        destination: destination(&method, request["url"].as_str().unwrap_or_default()),
        method,
        headers: headers.map(|one| (text(&one["name"]), text(&one["value"]))).collect(),
        content: content(request).ok_or(NO_CONTENT),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn destination(method: &str, url: &str) -> Result<(String, String), &'static str> {
    if url.contains(':') && !is_http(url) {
        return Err(NOT_HTTP);
    }
    let (host, target) = host_and_target(url).ok_or(NO_URL)?;
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(NO_URL);
    }
    put_request(method, &target, &mut String::new())?;
    Ok((host, target))
}

/// The body of a request: its text, or its form's parameters (HAR 1.2 has one of both); `None` if it had one that the
/// file lacks.
fn content(request: &Value) -> Option<Vec<u8>> {
    let posted = &request["postData"];
    let written = posted["text"].as_str().unwrap_or_default();
    if !written.is_empty() {
        return match posted["encoding"].as_str() {
            Some("base64") => STANDARD.decode(written).ok(),
            _ => Some(written.as_bytes().to_vec()),
        };
    }
    let parameters = posted["params"].as_array().filter(|list| !list.is_empty());
    let Some(parameters) = parameters else {
        let had_content = request["bodySize"].as_i64().is_some_and(|bytes| bytes > 0);
        return (!had_content).then(Vec::new);
    };
    let kind = posted["mimeType"].as_str().unwrap_or_default();
    let is_urlencoded = kind.to_ascii_lowercase().starts_with(FORM);
    is_urlencoded.then(|| {
        let pairs: Vec<String> = parameters
            .iter()
            .map(|one| [urlencoded(&one["name"]), urlencoded(&one["value"])].join("="))
            .collect();
        pairs.join("&").into_bytes()
    })
}

/// Media type of a form that a browser sends without files.
const FORM: &str = "application/x-www-form-urlencoded";

/// A name or a value of a form as browsers write it (URL Standard §5.2).
fn urlencoded(value: &Value) -> String {
    let mut written = String::new();
    for byte in value.as_str().unwrap_or_default().bytes() {
        match byte {
            b' ' => written.push('+'),
            b'*' | b'-' | b'.' | b'_' => written.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => written.push(byte.into()),
            _ => written.push_str(&format!("%{byte:02X}")),
        }
    }
    written
}

fn is_http(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

/// Returns the host without a port and the target in origin form of a URL; `None` unless its scheme is http or https.
pub fn host_and_target(url: &str) -> Option<(String, String)> {
    if !is_http(url) {
        return None;
    }
    let uri: http::Uri = url.split('#').next()?.parse().ok()?;
    Some((uri.host()?.to_owned(), uri.path_and_query()?.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_what_was_sent_or_the_entry_says_that_it_lacks_one() {
        #[rustfmt::skip]
        let rows = [
            (r#"{}"#, Some("")),
            (r#"{"bodySize": 0, "postData": {"text": "a b"}}"#, Some("a b")),
            (r#"{"postData": {"text": "AGI=", "encoding": "base64"}}"#, Some("\0b")),
            (r#"{"postData": {"text": "?", "encoding": "base64"}}"#, None),
            (r#"{"postData": {"mimeType": "application/x-www-form-urlencoded; charset=UTF-8", "params":
                [{"name": "a*", "value": "b c"}, {"name": "d", "value": "é&~"}, {"name": "e"}]}}"#,
             Some("a*=b+c&d=%C3%A9%26%7E&e=")),
            (r#"{"postData": {"mimeType": "application/x-www-form-urlencoded", "params": [], "text": ""}}"#, Some("")),
            (r#"{"postData": {"mimeType": "multipart/form-data; boundary=X", "params": [{"name": "f"}]}}"#, None),
            (r#"{"bodySize": 7}"#, None),
        ];
        for (request, want) in rows {
            let entry =
                format!("\u{feff}{{\"log\": {{\"entries\": [{{\"request\": {request}}}]}}}}");
            assert!(is_har(entry.as_bytes()));
            let recorded = parse(entry.as_bytes()).unwrap();
            let content = want.map(|text| text.as_bytes().to_vec()).ok_or(NO_CONTENT);
            assert_eq!(recorded[0].content, content, "{request}");
        }
    }

    #[test]
    fn an_entry_that_cannot_be_sent_says_of_which_kind_it_is() {
        for (url, expected) in [
            ("https://a.test:8443/x%20y?z#f", Ok("/x%20y?z")),
            ("http://a.test", Ok("/")),
            ("http://a.test/a b", Err(NO_URL)),
            ("http://a.test/ü", Err(NO_URL)),
            ("", Err(NO_URL)),
            ("data:image/png;base64,AAAA", Err(NOT_HTTP)),
            ("blob:http://a.test/uuid", Err(NOT_HTTP)),
            ("wss://a.test/", Err(NOT_HTTP)),
            ("chrome-extension://abc/x.js", Err(NOT_HTTP)),
        ] {
            let want = expected.map(|target| ("a.test".to_owned(), target.to_owned()));
            assert_eq!(destination("GET", url), want, "{url}");
        }
        assert!(destination("CONNECT", "https://a.test:443").is_err());
    }
}
