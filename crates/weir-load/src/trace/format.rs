//! What a line of a trace says.

use super::json::{self, Value};
use super::scan::Scan;
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
const END: &str = "the end of the line after the time";
const QUOTED: &str = "a request in quotes, such as \"GET / HTTP/1.1\"";
const OBJECT: &str = "a whole JSON object on the line";
const TIME_KEY: &str =
    "a key `msec`, `time`, `timestamp` or `time_iso8601` with the request's time";
const REQUEST_KEY: &str =
    "a key `request` (\"GET / HTTP/1.1\"), or `method` and `uri` or `path`, with the request";

/// Keys of a time, the most exact first.
const TIME_KEYS: [&[u8]; 7] = [
    b"msec",
    b"time",
    b"timestamp",
    b"@timestamp",
    b"ts",
    b"time_iso8601",
    b"time_local",
];
const METHOD_KEYS: [&[u8]; 2] = [b"method", b"request_method"];
/// Keys of a target. nginx's `$uri` lacks the query, so what was asked for comes first.
const TARGET_KEYS: [&[u8]; 3] = [b"request_uri", b"uri", b"path"];
const REQUEST_KEYS: [&[u8]; 1] = [b"request"];

impl Format {
    /// The format of a file that begins with this line.
    pub(super) fn of(line: &[u8]) -> Result<Format, Wrong> {
        let mut scan = Scan::new(line);
        scan.blanks();
        if scan.peek() == Some(b'{') {
            return Ok(Format::Json);
        }
        if log_time(line).is_ok() {
            return Ok(Format::AccessLog);
        }
        match scan.peek() {
            Some(b'0'..=b'9') if times(line).is_ok() => Ok(Format::Times),
            _ => Err(Wrong::new(scan.at(), ANY)),
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
    let mut scan = Scan::new(line);
    scan.blanks();
    let at = scan.at();
    let stamp = time::any(&mut scan).ok_or(Wrong::new(at, TIME))?;
    scan.blanks();
    match scan.rest() {
        [] => Ok(stamp),
        _ => Err(Wrong::new(scan.at(), END)),
    }
}

/// The first time in brackets, and where it ends. A user's name may have brackets too.
fn log_time(line: &[u8]) -> Result<(Stamp, usize), Wrong> {
    let brackets = line.iter().enumerate().filter(|(_, byte)| **byte == b'[');
    let mut first = None;
    for (at, _) in brackets {
        let mut scan = Scan::part(line, at + 1, line.len());
        if let Some(stamp) = time::access_log(&mut scan)
            && scan.byte(b']').is_some()
        {
            return Ok((stamp, scan.at()));
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

/// A value, and the rank of its key among those it may stand under.
type Ranked = Option<(usize, Value)>;

/// The values of a line that matter.
#[derive(Default)]
struct Found {
    time: Ranked,
    method: Ranked,
    target: Ranked,
    request: Ranked,
}

impl Found {
    fn take(&mut self, key: &[u8], value: Value) {
        keep_best(&mut self.time, &TIME_KEYS, key, value);
        keep_best(&mut self.method, &METHOD_KEYS, key, value);
        keep_best(&mut self.target, &TARGET_KEYS, key, value);
        keep_best(&mut self.request, &REQUEST_KEYS, key, value);
    }
}

fn keep_best(place: &mut Ranked, names: &[&[u8]], key: &[u8], value: Value) {
    if let Some(rank) = names.iter().position(|name| *name == key)
        && place.is_none_or(|(best, _)| rank < best)
    {
        *place = Some((rank, value));
    }
}

fn json_line(line: &[u8], request: &mut String) -> Result<(Stamp, bool), Wrong> {
    let mut scan = Scan::new(line);
    let mut found = Found::default();
    let whole = json::object(&mut scan, |key, value| found.take(key, value));
    whole.ok_or(Wrong::new(scan.at(), OBJECT))?;
    let (_, time) = found.time.ok_or(Wrong::new(0, TIME_KEY))?;
    let mut scan = Scan::part(line, time.from, time.to);
    let stamp = time::any(&mut scan).filter(|_| scan.rest().is_empty());
    let stamp = stamp.ok_or(Wrong::new(time.from, TIME))?;
    let (mut room, mut more) = (String::new(), String::new());
    let sendable = match (found.request, found.target) {
        (Some((_, value)), _) => {
            let text = value.text(line, &mut room);
            text.and_then(|line| put_request_line(line, request))
        }
        (None, Some((_, target))) => {
            // A target alone was asked for with GET.
            let method = found.method;
            let method = method.map_or(Some("GET"), |(_, method)| method.text(line, &mut more));
            let pair = target.text(line, &mut room).zip(method);
            pair.and_then(|(target, method)| put_request(method, target, request))
        }
        (None, None) => return Err(Wrong::new(0, REQUEST_KEY)),
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
            (r#"{"time":1795266001,"request":"GET /"#, 30, OBJECT),
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
            (Format::Times, "1795266001 5", 11, END),
            (Format::Times, "soon", 0, TIME),
            (Format::AccessLog, "- - [yesterday] \"GET /\"", 4, LOG_TIME),
            (Format::AccessLog, "garbage", 0, LOG_TIME),
        ] {
            let found = format.read(line.as_bytes(), &mut request);
            assert_eq!(found, Err(Wrong::new(at, expected)), "{line}");
        }
    }
}
