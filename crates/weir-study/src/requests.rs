//! Files of requests: the mix of requests of a load, and the expected responses.
//!
//! ```yaml
//! requests:
//!   - {path: /, weight: 3, expect: {status: 2xx}}
//!   - name: cart
//!     method: POST
//!     path: /cart/{{random:1..1000}}
//!     fields: {Content-Type: application/json}
//!     content: '{"n": {{sequence}}}'
//!     expect: {status: [201, 409], fields: {X-Cache: MISS, ETag: "*"}, size: 1KiB}
//! ```
//!
//! Slots are left as they are: the load engine fills them, and finds invalid ones.

use std::ops::Range;
use std::path::Path;

use weir_model::load::RequestSpec;
use weir_model::quantity::Limits;
use weir_model::request::{
    ExpectSpec, FieldSpec, StatusSpec, WeightedRequest, is_token, parse_sha256,
};

use crate::check::{Checker, Fields, short};
use crate::engine;
use crate::tree::{self, Form, Node, Value};
use crate::{Engine, RequestFault, StudyErrors};

#[rustfmt::skip]
const KEYS: [&str; 8] = [
    "name", "weight", "method", "path", "fields", "content", "content-file", "expect",
];
const EXPECT_KEYS: [&str; 4] = ["status", "fields", "size", "sha256"];

const REQUESTS: Form = Form {
    noun: "set of requests",
    plural: "sets of requests",
    max_bytes: engine::LARGEST as usize,
    example: "for example `requests: [{path: /}]`",
};

/// Methods of RFC 9110 §9.3 and RFC 5789, to detect lower case and typing errors.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"];
/// Maximum size of an expected response content, in bytes.
const LARGEST: u64 = 1 << 40;

/// Reads a file of requests and checks all of it. `file_name` is the name of the text in errors. Content from files is
/// sent unchanged, so it is escaped with [`weir_model::request::escape`].
///
/// # Errors
/// Returns all errors in the text, in the order of the text.
pub fn parse_requests(
    text: &str,
    file_name: &str,
    engine: Engine,
) -> Result<Vec<WeightedRequest>, StudyErrors> {
    let mut check = Checker::new(engine);
    let requests = tree::read(text, &REQUESTS, &mut check).and_then(|root| read(&root, &mut check));
    match requests {
        Some(requests) if check.is_clean() => Ok(requests),
        _ => Err(StudyErrors::new(file_name, text, check.into_findings())),
    }
}

fn read(root: &Node, check: &mut Checker) -> Option<Vec<WeightedRequest>> {
    let fields = Fields::known(root, "a set of requests", &["requests"], check)?;
    let nodes = fields.required("requests", check)?;
    let nodes = check.list(nodes, "a list of requests")?;
    Some(list(nodes, true, check))
}

/// Reads the requests of a load. With `need_path`, each must have a path.
pub(crate) fn list(nodes: &[Node], need_path: bool, check: &mut Checker) -> Vec<WeightedRequest> {
    let mut requests = Vec::new();
    let mut places = Vec::new();
    for node in nodes {
        let before = check.count();
        if let Some(request) = request(node, need_path, check) {
            requests.push(request);
            places.push((node, check.count() == before));
        }
    }
    for fault in (check.engine.requests)(&requests) {
        let (node, is_sound) = places[fault.index];
        let span = place_of(node, &fault);
        // What is wrong with the whole follows from what was reported of a part.
        if is_sound || span.is_some() {
            check
                .error(span.unwrap_or(node.span.clone()), fault.message)
                .maybe_hint(fault.hint.as_deref());
        }
    }
    requests
}

/// Returns the position of the part of a request that a fault is about.
fn place_of(request: &Node, fault: &RequestFault) -> Option<Range<usize>> {
    let part = request.get(fault.key?)?;
    let header = fault.header.as_deref().and_then(|name| part.get(name));
    Some(header.unwrap_or(part).span.clone())
}

fn request(node: &Node, needs_path: bool, check: &mut Checker) -> Option<WeightedRequest> {
    let fields = Fields::known(node, "a request", &KEYS, check)?;
    let mut request = RequestSpec::get("/");
    if let Some(method) = fields.get("method").and_then(|node| method(node, check)) {
        request.method = method;
    }
    let target = if needs_path { fields.required("path", check) } else { fields.get("path") };
    if let Some(path) = target.and_then(|node| path(node, check)) {
        request.target = path;
    }
    if let Some(node) = fields.get("fields") {
        request.fields = request_fields(node, check);
    }
    if let Some(content) = content(&fields, check) {
        request.content = content;
    }
    Some(WeightedRequest {
        name: fields.get("name").and_then(|node| check.text(node)),
        weight: fields.get("weight").and_then(|node| weight(node, check)).unwrap_or(1.0),
        request,
        expect: fields.get("expect").and_then(|node| expect(node, check)),
    })
}

/// Reads the header fields of a request, in the user's order.
fn request_fields(node: &Node, check: &mut Checker) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for entry in check.entries(node, "a header such as `Accept: text/html`").unwrap_or_default() {
        let name = &entry.key;
        if !is_token(name) {
            let message = format!("`{}` is not a valid header name (RFC 9110 §5.1)", short(name));
            check.error(entry.span.clone(), message);
        }
        // Whoever frames the request must be the only one who says how long it is.
        if ["content-length", "transfer-encoding"].contains(&&*name.to_ascii_lowercase()) {
            check
                .error(entry.span.clone(), format!("weir writes `{name}` itself"))
                .hint("leave it out");
        }
        let value = match &entry.value.value {
            Value::Empty => Some(String::new()),
            _ => check.text(&entry.value),
        };
        if let Some(value) = value {
            if value.chars().any(|c| c.is_control() && c != '\t') {
                let message = "a header's value holds a control character (RFC 9110 §5.5)";
                check.error(entry.value.span.clone(), message);
            }
            fields.push((name.clone(), value));
        }
    }
    fields
}

fn method(node: &Node, check: &mut Checker) -> Option<String> {
    let method = check.text(node)?;
    let upper = method.to_ascii_uppercase();
    if !is_token(&method) {
        let message = format!("`{}` is not a method (RFC 9110 §9)", short(&method));
        check.error(node.span.clone(), message);
    } else if upper != method && METHODS.contains(&&*upper) {
        check
            .error(node.span.clone(), format!("`{method}` is not the method {upper}"))
            .hint("methods are case-sensitive (RFC 9110 §9.1)")
            .nearest(Some(&upper));
    }
    Some(method)
}

fn path(node: &Node, check: &mut Checker) -> Option<String> {
    let path = check.text(node)?;
    let begins = path.starts_with('/') || path.starts_with("{{") || path == "*";
    // What is wrong within slots is found by who knows slots.
    let has_slots = path.contains("{{");
    if !begins || !has_slots && !path.bytes().all(|b| b.is_ascii_graphic() && b != b'#') {
        let message = format!("`{}` is not a path", short(&path));
        check
            .error(node.span.clone(), message)
            .hint("a path begins with `/` and has printable ASCII characters only, no space and no `#`; it has no host, because each arm has an address of its own");
    }
    Some(path)
}

fn weight(node: &Node, check: &mut Checker) -> Option<f64> {
    let text = check.text(node)?;
    let weight = Limits::WEIGHT.read(&text);
    weight
        .map_err(|error| {
            check
                .error(node.span.clone(), error.to_string())
                .hint("a request of weight 3 is sent three times as often as one of weight 1; leave out one that is not to be sent");
        })
        .ok()
}

fn content(fields: &Fields<'_>, check: &mut Checker) -> Option<Vec<u8>> {
    match (fields.get("content"), fields.entry("content-file")) {
        (None, None) => None,
        (Some(_), Some(file)) => {
            check
                .error(file.span.clone(), "a request cannot have both `content` and `content-file`")
                .hint("leave one of the two out");
            None
        }
        (Some(node), None) => match node.value {
            Value::Mapping(_) | Value::List(_) => {
                check
                    .error(node.span.clone(), "expected text, found YAML")
                    .hint("put the content in single quotes");
                None
            }
            _ => Some(check.scalar(node, "text")?.as_bytes().to_vec()),
        },
        (None, Some(file)) => {
            let path = check.text(&file.value)?;
            match (check.engine.read)(Path::new(&path)) {
                Ok(content) => Some(weir_model::request::escape(&content)),
                Err(error) => {
                    let message = format!("cannot read `{}`: {error}", short(&path));
                    check
                        .error(file.value.span.clone(), message)
                        .hint("a relative path starts from the current folder");
                    None
                }
            }
        }
    }
}

pub(crate) fn expect(node: &Node, check: &mut Checker) -> Option<ExpectSpec> {
    let fields = Fields::known(node, "what is expected", &EXPECT_KEYS, check)?;
    let status = fields.get("status").map(|node| statuses(node, check));
    let wanted = fields.get("fields").map(|node| expected_fields(node, check));
    Some(ExpectSpec {
        status: status.unwrap_or_default(),
        fields: wanted.unwrap_or_default(),
        size: fields.get("size").and_then(|node| check.bytes(node, LARGEST)),
        sha256: fields.get("sha256").and_then(|node| sha256(node, check)),
    })
}

fn statuses(node: &Node, check: &mut Checker) -> Vec<StatusSpec> {
    let nodes = match &node.value {
        Value::List(_) => check.list(node, "a list of status codes").unwrap_or_default(),
        _ => std::slice::from_ref(node),
    };
    let mut statuses = Vec::new();
    for node in nodes {
        let Some(text) = check.text(node) else {
            continue;
        };
        match StatusSpec::parse(&text) {
            Some(status) => statuses.push(status),
            None => {
                let message = format!("`{}` is not a status code from 100 to 599", short(&text));
                check.error(node.span.clone(), message).hint(
                    "write one such as 200, a class such as 2xx, or a list such as [200, 304]: any of them will do",
                );
            }
        }
    }
    statuses
}

fn expected_fields(node: &Node, check: &mut Checker) -> Vec<(String, FieldSpec)> {
    let mut fields = Vec::new();
    let entries = check.entries(node, "a header such as `X-Cache: HIT`");
    for entry in entries.unwrap_or_default() {
        if !is_token(&entry.key) {
            let message =
                format!("`{}` is not a valid header name (RFC 9110 §5.1)", short(&entry.key));
            check.error(entry.span.clone(), message);
        }
        let value = match &entry.value.value {
            Value::Empty => FieldSpec::Value(String::new()),
            _ => match check.text(&entry.value) {
                Some(text) if text == "*" => FieldSpec::Present,
                Some(text) => field_value(text, entry.value.span.clone(), check),
                None => continue,
            },
        };
        fields.push((entry.key.clone(), value));
    }
    fields
}

fn field_value(text: String, span: Range<usize>, check: &mut Checker) -> FieldSpec {
    if text.chars().any(|c| c.is_control() && c != '\t') {
        let message = "a header's value holds a control character (RFC 9110 §5.5)";
        check.error(span, message);
    }
    FieldSpec::Value(text)
}

fn sha256(node: &Node, check: &mut Checker) -> Option<String> {
    let text = check.text(node)?;
    let hash = parse_sha256(&text);
    if hash.is_none() {
        let message = format!("`{}` is not 64 hexadecimal digits", short(&text));
        check
            .error(node.span.clone(), message)
            .hint("`sha256sum` prints them; put them in quotes if they are all decimal");
    }
    hash
}
