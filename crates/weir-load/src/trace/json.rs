//! Lines that are JSON objects: the keys used by various programs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::format::{Line, TIME, Wrong, put_request, put_request_line};
use super::time;

pub(super) const OBJECT: &str = "a whole JSON object on the line";
pub(super) const TIME_KEY: &str =
    "a key such as `msec`, `time`, `timestamp`, `ts` or `time_iso8601` with the request's time";
pub(super) const REQUEST_KEY: &str =
    "a key `request` (\"GET / HTTP/1.1\"), or `method` and `uri` or `path`, with the request";

/// Keys of times, methods, targets, and of queries not included in targets; the first key present in a line is used. A
/// dot leads into an object. The time of a request's beginning precedes that of its end.
type Keys = [&'static [&'static str]; 4];

/// Keys of Traefik, Cloudflare Logpush, Google Cloud, Azure Application Gateway, Caddy; last of all of nginx, Envoy and
/// others, whose users choose the keys (nginx's `$uri` lacks the query). A line is read by the first row for which it
/// has a target; if it has none of the row's times, the times of the last row are used.
#[rustfmt::skip]
const WRITERS: [Keys; 6] = [
    [&["StartUTC", "StartLocal"], &["RequestMethod"], &["RequestPath"], &[]],
    [&["EdgeStartTimestamp", "EdgeEndTimestamp"], &["ClientRequestMethod"], &["ClientRequestURI"], &[]],
    [&["timestamp"], &["httpRequest.requestMethod"], &["httpRequest.requestUrl"], &[]],
    [&["timeStamp", "time"], &["properties.httpMethod"], &["properties.requestUri"], &["properties.requestQuery"]],
    [&["ts"], &["request.method"], &["request.uri"], &[]],
    [&["msec", "start_time", "time", "timestamp", "@timestamp", "ts", "time_iso8601", "time_local"],
     &["method", "request_method"], &["request_uri", "uri", "path"], &[]],
];

/// Values of an object by their keys, as raw JSON.
type Object<'l> = BTreeMap<String, &'l RawValue>;

/// Returns the value of the first of these keys that has a text or a number, as raw JSON.
fn first<'l>(line: &Object<'l>, keys: &[&str]) -> Option<&'l str> {
    let mut written = keys.iter().filter_map(|key| value(line, key));
    written.find(|text| !text.starts_with(['{', '[']) && *text != "null")
}

fn value<'l>(line: &Object<'l>, key: &str) -> Option<&'l str> {
    let Some((outer, inner)) = key.split_once('.') else {
        return Some(line.get(key)?.get());
    };
    let inside: Object<'l> = serde_json::from_str(line.get(outer)?.get()).ok()?;
    value(&inside, inner)
}

/// Returns a string's text, or a number as written; `None` for an invalid string, such as half of a surrogate pair.
fn text(written: &str) -> Option<Cow<'_, str>> {
    match written.strip_prefix('"').and_then(|it| it.strip_suffix('"')) {
        Some(inner) if !inner.contains('\\') => Some(inner.into()),
        Some(_) => serde_json::from_str(written).ok().map(Cow::Owned),
        None => Some(written.into()),
    }
}

pub(super) fn read(line: &[u8], request: &mut String) -> Result<Line, Wrong> {
    // What is no UTF-8 is no request to send, and else of no interest.
    let object = String::from_utf8_lossy(line);
    let wrong = |at: usize, expected| Wrong::new(at.min(line.len()), expected);
    let read: Object<'_> = serde_json::from_str(&object).map_err(|error| {
        let at = error.column().saturating_sub(1);
        wrong(if error.is_eof() { line.len() } else { at }, OBJECT)
    })?;
    let [.., others] = &WRITERS;
    let writer = WRITERS.iter().find(|keys| first(&read, keys[2]).is_some());
    let [times, methods, targets, queries] = writer.unwrap_or(others);
    let time = first(&read, times).or_else(|| first(&read, others[0])).ok_or(wrong(0, TIME_KEY))?;
    let parsed = text(time).and_then(|time| time::any(&time));
    let at = time.as_ptr().addr() - object.as_ptr().addr();
    let stamp = parsed.ok_or(wrong(at + usize::from(time.starts_with('"')), TIME))?;
    if let Some(line) = first(&read, &["request"]) {
        let line = text(line).unwrap_or("\\".into());
        return Ok((stamp, put_request_line(&line, request)));
    }
    let target = first(&read, targets).ok_or(wrong(0, REQUEST_KEY))?;
    // A target alone was asked for with GET. What is no text is no target.
    let method = first(&read, methods).map_or(Some("GET".into()), text);
    let mut target = text(target).unwrap_or_default();
    if let Some(query) = first(&read, queries).and_then(text)
        && !matches!(&*query, "" | "-")
        && !target.contains('?')
    {
        target = format!("{target}?{query}").into();
    }
    Ok((stamp, put_request(&method.unwrap_or_default(), &target, request)))
}
