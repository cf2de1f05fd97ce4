//! A flow of a load: the words that it shares with `weir load`, and the keys that a study has instead of flags.

use std::path::Path;
use std::time::Duration;

use weir_model::flow::words::{self, Key};
use weir_model::flow::{ArrivalsSpec, FlowSpec, SourceSpec};
use weir_model::request::WeightedRequest;
use weir_model::room::MOST_SOURCES;
use weir_model::study::file_target;

use crate::arrivals;
use crate::check::{Checker, Fields, MAX_CONTENT, short};
use crate::matrix;
use crate::requests;
use crate::tls;
use crate::tree::{Entry, Node, Value};
use crate::words::{Slices, Words};
use crate::{read_small, utf8};

/// Keys of a flow.
#[rustfmt::skip]
pub(crate) const KEYS: [&str; 24] = [
    "host", "path", "port", "closed", "rate", "arrivals", "burst", "trace", "trace-speed",
    "connections", "connection", "close", "connect-rate", "pipeline", "schedule", "overflow", "tls",
    "source", "timeout", "request", "requests", "request-set", "expect", "ramp-up",
];

/// Keys with text that is parsed like the flags of `weir load`.
#[rustfmt::skip]
const AS_TYPED: [&str; 8] = [
    "arrivals", "close", "connect-rate", "pipeline", "schedule", "overflow", "trace", "trace-speed",
];

/// Maximum number of connections that are held at each arm.
const MOST_HELD: u64 = 1_000_000;
/// Maximum time for which a connection may be used, and for which a response may take.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Reads a flow. Invalid parts are reported and keep their defaults.
pub(crate) fn read(
    fields: &Fields<'_>,
    name: &str,
    slices: Slices,
    check: &mut Checker,
) -> FlowSpec {
    let mut words = Words::default();
    let mut base = FlowSpec {
        name: name.to_owned(),
        requests: sent(fields, check),
        ..FlowSpec::new(1, ArrivalsSpec::Closed)
    };
    let has_one_time = arrivals::read(fields, slices, &mut base, &mut words, check);
    let connections = fields.required("connections", check);
    if let Some(node) = connections.filter(|node| !matrix::is_axis(node))
        && let Some(number) = check.whole(node, 1..=1_000_000)
    {
        words.say(Key::Connections, number.to_string(), node);
    }
    if let Some(node) = fields.get("connection") {
        connection(node, &mut words, check);
    }
    for key in AS_TYPED {
        if let (Some(node), Some(about)) = (fields.get(key), Key::of_word(key))
            && let Some(text) = check.text(node)
        {
            words.say(about, text, node);
        }
    }
    if let Some(node) = fields.get("timeout")
        && check.duration(node, Duration::from_millis(1)..=LONGEST).is_some()
        && let Some(text) = check.text(node)
    {
        words.say(Key::Timeout, text, node);
    }
    if let Some(node) = fields.get("source")
        && let Some(count) = check.whole(node, 1..=MOST_SOURCES)
    {
        base.sources = SourceSpec::Count(count as u8);
    }
    if let Some(node) = fields.get("tls") {
        tls::read(node, &mut words, check);
    }
    whom(fields, &mut base, check);
    expect(fields, &mut base, &mut words, check);
    refuse_what_ends(fields, check);
    let length = slices.length.unwrap_or(LONGEST);
    let (spec, mut faults) = words::read(&words.said, base.clone(), length);
    // What is wrong with a word must not be reported again for what follows from it.
    let sound = if faults.is_empty() { spec.clone() } else { base };
    faults.extend((check.engine.flow)(&spec));
    for fault in &faults {
        words.report(fault, fields, check);
    }
    let spec = sound;
    if has_one_time {
        arrivals::check_slices(&spec, fields, slices, check);
    }
    spec
}

/// Reads the target of requests: `host`, `port` and `path`.
fn whom(fields: &Fields<'_>, base: &mut FlowSpec, check: &mut Checker) {
    if let Some(node) = fields.get("port") {
        let port = check.whole(node, 1..=u64::from(u16::MAX));
        base.port = port.and_then(|port| u16::try_from(port).ok());
    }
    if let Some(node) = fields.get("host") {
        base.host = host(node, check);
    }
    let Some(entry) = fields.entry("path") else {
        return;
    };
    let mix = ["requests", "request-set"].iter().find_map(|key| fields.entry(key));
    if let Some(other) = path_of_request(fields).or(mix) {
        let error = check.error(other.span.clone(), "a load cannot have two paths");
        error.hint("`path: /a` stands for `request: {path: /a}`: leave one of the two out");
        return;
    }
    let text = check.text(&entry.value).unwrap_or_default();
    if !text.starts_with('/') {
        let message = format!("`{}` is not a path", short(&text));
        check.error(entry.value.span.clone(), message).hint("a path begins with `/`");
        return;
    }
    base.requests.iter_mut().for_each(|weighted| weighted.request.target.clone_from(&text));
}

/// Reads a host name for handshakes and Host fields (RFC 1123 §2.1). A port is included in the latter.
fn host(node: &Node, check: &mut Checker) -> Option<String> {
    let text = check.text(node)?;
    let (name, port) = text.rsplit_once(':').unwrap_or((&text, "1"));
    let is_port = !port.starts_with('+') && port.parse::<u16>().is_ok_and(|port| port > 0);
    if is_port && name.len() <= 253 && name.split('.').all(is_label) {
        return Some(text.to_ascii_lowercase());
    }
    let message = format!("`{}` is not a host name", short(&text));
    let hint = "for example shop.example or shop.example:8080, without a scheme";
    check.error(node.span.clone(), message).hint(hint);
    None
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Returns the path that `request` has.
fn path_of_request<'n>(fields: &Fields<'n>) -> Option<&'n Entry> {
    match &fields.get("request")?.value {
        Value::Mapping(entries) => entries.iter().find(|entry| entry.key == "path"),
        _ => None,
    }
}

/// Reads the requests: `requests`, `request-set` or `request`.
fn sent(fields: &Fields<'_>, check: &mut Checker) -> Vec<WeightedRequest> {
    let ways = ["requests", "request-set", "request"];
    let entries: Vec<_> = ways.iter().filter_map(|key| fields.entry(key)).collect();
    if let [_, second, ..] = entries[..] {
        let message = "a load can have only one of `request`, `requests` and `request-set`";
        check.error(second.span.clone(), message).hint(
            "write `request` for one, `requests` for a mix, or `request-set` for a file of them",
        );
    }
    let Some(entry) = entries.first() else {
        return default_requests();
    };
    let node = &entry.value;
    let read = match (&*entry.key, &node.value) {
        ("requests", Value::Scalar(text)) => {
            not_a_list(text, node, check);
            Vec::new()
        }
        ("requests", _) => {
            let nodes = check.list(node, "a list of requests").unwrap_or_default();
            requests::list(nodes, true, check)
        }
        ("request-set", _) => file_of_requests(node, check).unwrap_or_default(),
        _ => requests::list(std::slice::from_ref(node), false, check),
    };
    if read.is_empty() { default_requests() } else { read }
}

fn default_requests() -> Vec<WeightedRequest> {
    FlowSpec::new(1, ArrivalsSpec::Closed).requests
}

/// Reports `requests` that is no list: a number, as in `weir load`, or text that was meant for `request`.
fn not_a_list(text: &str, node: &Node, check: &mut Checker) {
    let (message, hint) = match text.parse::<f64>() {
        Ok(_) => (
            "a study does not end after a number of requests".to_owned(),
            "leave `requests` out and say with `duration` how long the load lasts",
        ),
        Err(_) => (
            format!("expected a list of requests, found `{}`", short(text)),
            "write `request: {path: /}` for one, or `requests: [{path: /a, weight: 3}, {path: /b}]` for a mix",
        ),
    };
    check.error(node.span.clone(), message).hint(hint);
}

/// Reads the requests of a file. Errors in it have its own lines and columns.
fn file_of_requests(node: &Node, check: &mut Checker) -> Option<Vec<WeightedRequest>> {
    let name = check.text(node)?;
    let bytes = match read_small(Path::new(&name)) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("cannot read `{}`: {error}", short(&name));
            let error = check.error(node.span.clone(), message);
            error.hint("a relative path starts from the current folder");
            return None;
        }
    };
    let requests =
        utf8(bytes, &name).and_then(|text| requests::parse_requests(&text, &name, check.engine));
    let errors = match requests {
        Ok(requests) => return Some(requests),
        Err(errors) => errors,
    };
    for error in errors.errors() {
        check
            .error(node.span.clone(), error.to_string())
            .maybe_hint(error.hint.as_deref())
            .nearest(error.nearest.as_deref());
    }
    None
}

/// Reads the key `connection`: `keep-alive`, `per-request`, `1000`, `30s`, `{requests: N}`, `{time: 10s}`.
fn connection(node: &Node, words: &mut Words, check: &mut Checker) {
    let Value::Mapping(_) = &node.value else {
        if let Some(text) = check.text(node) {
            words.say(Key::Connection, text, node);
        }
        return;
    };
    let Some(fields) = Fields::known(node, "`connection`", &["requests", "time"], check) else {
        return;
    };
    match (fields.get("requests"), fields.get("time")) {
        (Some(requests), None) => {
            if let Some(number) = check.whole(requests, 1..=u64::from(u32::MAX)) {
                words.say(Key::Connection, number.to_string(), requests);
            }
        }
        (None, Some(time)) => {
            if check.duration(time, Duration::from_millis(1)..=LONGEST).is_some()
                && let Some(text) = check.text(time)
            {
                words.say(Key::Connection, text, time);
            }
        }
        _ if !fields.is_known() => {}
        _ => {
            check
                .error(
                    fields.span(),
                    "a connection is used for a number of requests or for a time, not for both",
                )
                .hint("write `keep-alive`, `per-request`, `{requests: 100}` or `{time: 10s}`");
        }
    }
}

/// Refuses `ramp-up`, with which arms would get different loads.
fn refuse_what_ends(fields: &Fields<'_>, check: &mut Checker) {
    if let Some(entry) = fields.entry("ramp-up") {
        check
            .error(
                entry.span.clone(),
                "a study has no `ramp-up`: arms take turns, so each would get another part of it",
            )
            .hint("write a rate that grows in every slice, such as `rate: 0..5000`; the first part of a slice is not measured anyway (`blocks: {discard: 20%}`)");
    }
}

/// Reads `expect: status=200`, a list of such words, or a mapping as in requests.
fn expect(fields: &Fields<'_>, base: &mut FlowSpec, words: &mut Words, check: &mut Checker) {
    let Some(entry) = fields.entry("expect") else {
        return;
    };
    if ["requests", "request-set"].iter().any(|key| fields.get(key).is_some()) {
        let message = "with several requests, each has its own `expect`";
        let error = check.error(entry.span.clone(), message);
        error.hint("write `expect` next to each `path`");
        return;
    }
    let nodes = match &entry.value.value {
        Value::Mapping(_) => {
            let expected = requests::expect(&entry.value, check);
            base.requests.iter_mut().for_each(|weighted| weighted.expect.clone_from(&expected));
            return;
        }
        Value::List(_) => check.list(&entry.value, "what is expected").unwrap_or_default(),
        _ => std::slice::from_ref(&entry.value),
    };
    for node in nodes {
        if let Some(text) = check.text(node) {
            words.say(Key::Expect, text, node);
        }
    }
}

/// Reads the number of held connections.
pub(crate) fn held(node: &Node, check: &mut Checker) -> Option<u32> {
    let number = check.whole(node, 0..=MOST_HELD)?;
    Some(number as u32)
}

/// Reads the size of the content that a load requests. It determines the target of the requests.
pub(crate) fn size(
    node: &Node,
    fields: &Fields<'_>,
    flow: &mut FlowSpec,
    check: &mut Checker,
) -> Option<u64> {
    let size = check.bytes(node, MAX_CONTENT)?;
    let target = file_target(size);
    let mix = ["path", "requests", "request-set"].iter().find_map(|key| fields.entry(key));
    if let Some(path) = path_of_request(fields).or(mix) {
        check
            .error(path.span.clone(), "a load cannot have both a size and a path")
            .hint(format!("a file of that size is at {target}: leave one of the two out"));
    }
    for weighted in &mut flow.requests {
        weighted.request.target.clone_from(&target);
    }
    Some(size)
}
