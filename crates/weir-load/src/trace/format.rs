//! What a line of a trace says.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::time::{self, Stamp};

/// How the lines of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// A time, nothing else.
    Times,
    /// The common or combined log format, or one that begins alike.
    AccessLog,
    /// A JSON object.
    Json,
}

/// What is wrong with a line, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Bytes before the place.
    pub(super) at: usize,
    pub(super) expected: &'static str,
}

impl Wrong {
    fn new(at: usize, expected: &'static str) -> Wrong {
        Wrong { at, expected }
    }
}

const ANY: &str = "a time in seconds or of RFC 3339, a line of an access log, or a JSON object";
const TIME: &str = "a time in seconds (1732194001.25) or of RFC 3339 (2026-11-21T13:00:01.25Z)";
const LOG_TIME: &str = "a time such as [21/Nov/2026:13:00:01 +0000]";
const QUOTED: &str = "a request in quotes, such as \"GET / HTTP/1.1\"";
const OBJECT: &str = "a whole JSON object on the line";
const TIME_KEY: &str =
    "a key `msec`, `time`, `timestamp` or `time_iso8601` with the request's time";
const REQUEST_KEY: &str =
    "a key `request` (\"GET / HTTP/1.1\"), or `method` and `uri` or `path`, with the request";

/// Longest text of a time in brackets, in bytes.
const LONGEST_TIME: usize = 64;

impl Format {
    /// The format of a file that begins with this line.
    pub(super) fn of(line: &[u8]) -> Result<Format, Wrong> {
        let text = line.trim_ascii_start();
        match () {
            () if text.starts_with(b"{") => Ok(Format::Json),
            () if log_time(line).is_ok() => Ok(Format::AccessLog),
            () if times(line).is_ok() => Ok(Format::Times),
            () => Err(Wrong::new(line.len() - text.len(), ANY)),
        }
    }

    /// Reads a line: when the request came, and whether it is one that can be sent. `request`, if the
    /// format has any, becomes its method, a space and its target.
    pub(super) fn read(self, line: &[u8], request: &mut String) -> Result<(Stamp, bool), Wrong> {
        request.clear();
        match self {
            Format::Times => Ok((times(line)?, true)),
            Format::AccessLog => {
                let (stamp, end) = log_time(line)?;
                let quoted = quoted(line, end)?;
                Ok((stamp, request_line(quoted, request).is_some()))
            }
            Format::Json => json_line(line, request),
        }
    }

    /// Whether lines say what was requested.
    pub(super) fn has_requests(self) -> bool {
        self != Format::Times
    }
}

fn times(line: &[u8]) -> Result<Stamp, Wrong> {
    let text = line.trim_ascii_start();
    let stamp = str::from_utf8(text).ok().and_then(time::any);
    stamp.ok_or(Wrong::new(line.len() - text.len(), TIME))
}

/// The first time in brackets, and where it ends. A user's name may have brackets too.
fn log_time(line: &[u8]) -> Result<(Stamp, usize), Wrong> {
    let brackets = line.iter().enumerate().filter(|(_, byte)| **byte == b'[');
    let mut first = None;
    for (at, _) in brackets {
        let inner = &line[at + 1..line.len().min(at + 1 + LONGEST_TIME)];
        let length = inner.iter().position(|byte| *byte == b']');
        let text = length.and_then(|length| str::from_utf8(&inner[..length]).ok());
        if let Some((text, stamp)) = text.and_then(|text| Some((text, time::access_log(text)?))) {
            return Ok((stamp, at + 1 + text.len() + 1));
        }
        first = first.or(Some(at));
    }
    Err(Wrong::new(first.unwrap_or(0), LOG_TIME))
}

/// What stands in the first quotes. A quote in it has a backslash before it (Apache httpd), or is
/// written as `\x22` (nginx).
fn quoted(line: &[u8], from: usize) -> Result<&[u8], Wrong> {
    let wrong = |at| Wrong::new(at, QUOTED);
    let quote = line[from..].iter().position(|&byte| byte == b'"');
    let begin = from + quote.ok_or(wrong(from))? + 1;
    let mut at = begin;
    loop {
        match line.get(at) {
            Some(b'"') => return Ok(&line[begin..at]),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return Err(wrong(begin - 1)),
        }
    }
}

/// `GET /path HTTP/1.1` in a log. A target with a backslash has escapes, or worse, and is none to send.
fn request_line(line: &[u8], request: &mut String) -> Option<()> {
    let line = str::from_utf8(line)
        .ok()
        .filter(|line| !line.contains('\\'))?;
    put_request_line(line, request)
}

/// The version may be missing.
fn put_request_line(line: &str, request: &mut String) -> Option<()> {
    let (method, rest) = line.split_once(' ')?;
    let (target, version) = rest.split_once(' ').unwrap_or((rest, "HTTP/"));
    version.starts_with("HTTP/").then_some(())?;
    put_request(method, target, request)
}

/// Takes requests whose method is a token (RFC 9110 §5.6.2) and whose target is in origin form
/// (RFC 9112 §3.2.1), by its first character and because no blank, control or non-ASCII is in it.
fn put_request(method: &str, target: &str, request: &mut String) -> Option<()> {
    let fits = weir_http::is_token(method)
        && target.starts_with('/')
        && target.bytes().all(|byte| byte.is_ascii_graphic());
    if fits {
        request.push_str(method);
        request.push(' ');
        request.push_str(target);
    }
    fits.then_some(())
}

/// The values of a line by their keys, as they are written.
type Line<'l> = BTreeMap<String, &'l RawValue>;

/// The value of the first of these keys that is a text or a number.
fn first<'l>(line: &Line<'l>, keys: &[&str]) -> Option<&'l str> {
    let mut written = keys.iter().filter_map(|key| Some(line.get(*key)?.get()));
    written.find(|text| !text.starts_with(['{', '[']) && *text != "null")
}

/// A string's text, a number as it is written. Half of a surrogate pair has no meaning here.
fn text(written: &str) -> Option<Cow<'_, str>> {
    match written
        .strip_prefix('"')
        .and_then(|it| it.strip_suffix('"'))
    {
        Some(inner) if !inner.contains('\\') => Some(inner.into()),
        Some(_) => serde_json::from_str(written).ok().map(Cow::Owned),
        None => Some(written.into()),
    }
}

/// Keys of times, the most exact first.
#[rustfmt::skip]
const TIMES: [&str; 7] =
    ["msec", "time", "timestamp", "@timestamp", "ts", "time_iso8601", "time_local"];

fn json_line(line: &[u8], request: &mut String) -> Result<(Stamp, bool), Wrong> {
    // What is no UTF-8 is no request to send, and else of no interest.
    let whole = String::from_utf8_lossy(line);
    let wrong = |at: usize, expected| Wrong::new(at.min(line.len()), expected);
    let read: Line<'_> = serde_json::from_str(&whole).map_err(|error| match error.is_eof() {
        true => wrong(line.len(), OBJECT),
        false => wrong(error.column().saturating_sub(1), OBJECT),
    })?;
    let time = first(&read, &TIMES);
    let time = time.ok_or(wrong(0, TIME_KEY))?;
    let stamp = text(time).and_then(|time| time::any(&time));
    let at = time.as_ptr().addr() - whole.as_ptr().addr();
    let stamp = stamp.ok_or(wrong(at + usize::from(time.starts_with('"')), TIME))?;
    // nginx's `$uri` lacks the query.
    let target = first(&read, &["request_uri", "uri", "path"]);
    let sendable = match (first(&read, &["request"]), target) {
        (Some(line), _) => text(line).and_then(|line| put_request_line(&line, request)),
        (None, Some(target)) => {
            // A target alone was asked for with GET.
            let method = first(&read, &["method", "request_method"]);
            let method = method.map_or(Some("GET".into()), text);
            let pair = text(target).zip(method);
            pair.and_then(|(target, method)| put_request(&method, &target, request))
        }
        (None, None) => return Err(wrong(0, REQUEST_KEY)),
    };
    Ok((stamp, sendable.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(Format, Option<String>), Wrong> {
        let format = Format::of(line.as_bytes())?;
        let mut request = String::new();
        let (stamp, sendable) = format.read(line.as_bytes(), &mut request)?;
        assert_eq!(stamp.ns / 1_000_000_000, 1_795_266_001, "{line}");
        Ok((format, sendable.then_some(request)))
    }

    #[test]
    fn requests_of_access_logs() {
        let common = r#"[21/Nov/2026:13:00:01 +0000] "GET /a?b=1 HTTP/1.1" 200 5"#;
        for line in [
            format!("192.0.2.1 - - {common}"),
            format!(r#"example.org:443 2001:db8::1 - [x] {common} "-" "a [1/2] \"agent\"""#),
        ] {
            let want = Some("GET /a?b=1".to_owned());
            assert_eq!(read(&line), Ok((Format::AccessLog, want)), "{line}");
        }
        let junk = r#"-||\x16\x03\x01\x02|CONNECT example.org:443 HTTP/1.1|GET /\x22 HTTP/1.1|
            GET http://example.org/ HTTP/1.1|OPTIONS * HTTP/1.1|GET /\" HTTP/1.1|
            GET /a b HTTP/1.1|G(T / HTTP/1.1|GET /ü HTTP/1.1"#;
        for junk in junk.split('|').map(str::trim_start) {
            let line = format!(r#"- - - [21/Nov/2026:13:00:01 +0000] "{junk}" 400 0"#);
            assert_eq!(read(&line), Ok((Format::AccessLog, None)), "{line}");
        }
    }

    #[test]
    fn requests_of_json_lines() {
        #[rustfmt::skip]
        let rows = [
            (r#"{"msec":1795266001.123,"time":"x","request":"PUT /a HTTP/2.0"}"#, Some("PUT /a")),
            (r#"{"uri":"\/a","request_uri":"/a?b","method":"GET","timestamp":"2026-11-21T13:00:01Z"}"#,
             Some("GET /a?b")),
            (r#"{"path":"/","ts":1795266001}"#, Some("GET /")),
            (r#"{"time":"21/Nov/2026:13:00:01 +0000","request":""}"#, None),
            (r#"{"time":1795266001.5,"method":"GET","path":"http://a/"}"#, None),
            (r#"{"time":1795266001.5,"path":"/\ud800"}"#, None),
            (r#"{"time":null,"ts":1795266001,"path":"/\u0061","more":[{"d":"}"}]} "#, Some("GET /a")),
        ];
        for (line, want) in rows {
            let want = want.map(str::to_owned);
            assert_eq!(read(line), Ok((Format::Json, want)), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_where_and_what_was_expected() {
        for (line, at, expected) in [
            ("hello", 0, ANY),
            ("  1795266001x", 2, ANY),
            (r#"{"time":1795266001,"request":"GET /"#, 35, OBJECT),
            (r#"{"time":1795266001,}"#, 19, OBJECT),
            (r#"{"time":1795266001} x"#, 20, OBJECT),
            (r#"{"time":{"a":1}}"#, 0, TIME_KEY),
            (r#"{"request":"GET / HTTP/1.1"}"#, 0, TIME_KEY),
            (r#"{"time":1795266001}"#, 0, REQUEST_KEY),
            (r#"{"time":1795266001123,"path":"/"}"#, 8, TIME),
            (r#"{"time":"soon","path":"/"}"#, 9, TIME),
            ("- [21/Nov/2026:13:00:01 +0000] -", 30, QUOTED),
            (r#"- [21/Nov/2026:13:00:01 +0000] "GET"#, 31, QUOTED),
        ] {
            assert_eq!(read(line), Err(Wrong::new(at, expected)), "{line}");
        }
        let mut request = String::new();
        for (format, line, at, expected) in [
            (Format::Times, "soon", 0, TIME),
            (Format::AccessLog, "- - [yesterday] \"GET /\"", 4, LOG_TIME),
            (Format::AccessLog, "garbage", 0, LOG_TIME),
        ] {
            let found = format.read(line.as_bytes(), &mut request);
            assert_eq!(found, Err(Wrong::new(at, expected)), "{line}");
        }
    }
}
