//! Formats of the lines of a trace.

use std::borrow::Cow;

use super::json;
use super::time::{self, Stamp};
use crate::har;

/// Format of a file's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// A time only.
    Times,
    /// A time in brackets or as a word, and a request in quotes.
    AccessLog,
    /// Columns named by a line `#Fields:`.
    Columns(Columns),
    /// A JSON object per line.
    Json,
}

/// Time of a request, and whether it can be sent.
pub(super) type Line = (Stamp, Sendable);

/// Nothing, or the reason why the request cannot be sent.
pub(crate) type Sendable = Result<(), &'static str>;

pub(super) const NO_REQUEST: &str = "without a request (`-`)";
pub(super) const NO_HTTP: &str = "not HTTP (a TLS handshake or other bytes)";
pub(super) const NO_PATH: &str = "`OPTIONS *` or CONNECT";
pub(super) const BAD_TARGET: &str = "with a target in escapes, with spaces or not in ASCII";
pub(super) const UNREADABLE: &str = "not in the format of the others";
pub(super) const OTHER_HOST: &str = "to another host";

/// Error in a line, with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Number of bytes before the error.
    pub(super) at: usize,
    pub(super) expected: &'static str,
}

impl Wrong {
    pub(super) fn new(at: usize, expected: &'static str) -> Wrong {
        Wrong { at, expected }
    }
}

const ANY: &str = "a time in seconds or of RFC 3339, a line of an access log, or a JSON object";
pub(super) const TIME: &str =
    "a time in seconds (1732194001.25) or of RFC 3339 (2026-11-21T13:00:01.25Z)";
const LOG_TIME: &str = "a time such as [21/Nov/2026:13:00:01 +0000]";
const NAMES: &str = "columns `date`, `time` and `cs-uri-stem` among those that `#Fields:` names";
const VALUES: &str = "as many columns as the last line `#Fields:` names";
const QUOTED: &str = "a request in quotes, such as \"GET / HTTP/1.1\"";
/// Maximum length of a time in brackets, bytes.
const LONGEST_TIME: usize = 64;

/// Number of words at the beginning of a line that may be its time.
const WORDS_BEFORE_TIME: usize = 3;

impl Format {
    /// Detects the format of a file that begins with this line.
    pub(super) fn of(line: &[u8]) -> Result<Format, Wrong> {
        let text = line.trim_ascii_start();
        if text.starts_with(b"{") {
            Ok(Format::Json)
        } else if times(line).is_ok() {
            Ok(Format::Times)
        } else if log_time(line).is_ok() {
            Ok(Format::AccessLog)
        } else {
            Err(Wrong::new(line.len() - text.len(), ANY))
        }
    }

    /// Reads a line. If the request can be sent, sets `request` to its method, a space and its target.
    pub(super) fn read(self, line: &[u8], request: &mut String) -> Result<Line, Wrong> {
        request.clear();
        match self {
            Format::Times => Ok((times(line)?, Ok(()))),
            Format::AccessLog => access_log(line, request),
            Format::Columns(columns) => columns.read(line, request),
            Format::Json => json::read(line, request),
        }
    }

    /// Returns true if lines contain requests.
    pub(super) fn has_requests(self) -> bool {
        self != Format::Times
    }
}

fn times(line: &[u8]) -> Result<Stamp, Wrong> {
    let text = line.trim_ascii_start();
    let stamp = str::from_utf8(text).ok().and_then(time::any);
    stamp.ok_or(Wrong::new(line.len() - text.len(), TIME))
}

fn access_log(line: &[u8], request: &mut String) -> Result<Line, Wrong> {
    let (mut stamp, end, is_word) = log_time(line)?;
    let (quoted, end) = quoted(line, end)?;
    let text = without_hashes(String::from_utf8_lossy(quoted));
    // AWS writes the time of the response first, and that of the request among the last.
    if is_word {
        let begin = words(&line[end..]).find_map(|(_, word)| time::rfc3339(word));
        stamp = begin.unwrap_or(stamp);
    }
    let sendable = match put_request_line(&text, request) {
        // What was escaped is not what was sent.
        Ok(()) if text.contains('\\') => Err(BAD_TARGET),
        sendable => sendable,
    };
    Ok((stamp, sendable))
}

/// Finds the first time in brackets, or otherwise as a word. Returns the time, its end, and true if it is a word. A
/// user's name may contain brackets too.
fn log_time(line: &[u8]) -> Result<(Stamp, usize, bool), Wrong> {
    let brackets = line.iter().enumerate().filter(|(_, byte)| **byte == b'[');
    let mut first = None;
    for (at, _) in brackets {
        let inner = &line[at + 1..line.len().min(at + 1 + LONGEST_TIME)];
        let length = inner.iter().position(|byte| *byte == b']');
        let text = length.and_then(|length| str::from_utf8(&inner[..length]).ok());
        if let Some((text, stamp)) = text.and_then(|text| Some((text, time::in_brackets(text)?))) {
            return Ok((stamp, at + 1 + text.len() + 1, false));
        }
        first = first.or(Some(at));
    }
    let mut first_words = words(line).take(WORDS_BEFORE_TIME);
    let word = first_words.find_map(|(end, word)| Some((time::rfc3339(word)?, end, true)));
    word.ok_or(Wrong::new(first.unwrap_or(0), LOG_TIME))
}

/// Returns words separated by spaces, each with its end position. Words that are not UTF-8 are skipped.
fn words(line: &[u8]) -> impl Iterator<Item = (usize, &str)> {
    line.split(|byte| *byte == b' ').filter_map(|word| {
        let end = word.as_ptr_range().end.addr() - line.as_ptr().addr();
        Some((end, str::from_utf8(word).ok()?))
    })
}

/// Returns the text in the first quotes, and the position after them. A quote within the text has a backslash before it
/// (Apache httpd), or is written as `\x22` (nginx).
fn quoted(line: &[u8], from: usize) -> Result<(&[u8], usize), Wrong> {
    let quote = line[from..].iter().position(|&byte| byte == b'"');
    let begin = from + quote.ok_or(Wrong::new(from, QUOTED))? + 1;
    let mut at = begin;
    loop {
        match line.get(at) {
            Some(b'"') => return Ok((&line[begin..at], at + 1)),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return Err(Wrong::new(begin - 1, QUOTED)),
        }
    }
}

/// Decodes `#22`, as which HAProxy writes characters that could end the quotes. No target contains a `#` of its own.
fn without_hashes(text: Cow<'_, str>) -> Cow<'_, str> {
    let Some((before, rest)) = text.split_once('#') else {
        return text;
    };
    let plain = rest.split('#').map(|part| {
        let code = part.get(..2).map(|hex| u8::from_str_radix(hex, 16));
        match code {
            Some(Ok(code)) => format!("{}{}", char::from(code), &part[2..]),
            _ => format!("#{part}"),
        }
    });
    [before.to_owned()].into_iter().chain(plain).collect()
}

/// Columns of the W3C extended log format (IIS, CloudFront), counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns {
    count: usize,
    date: usize,
    time: usize,
    path: usize,
    method: Option<usize>,
    query: Option<usize>,
}

impl Columns {
    /// Reads the column names after `#Fields:`.
    pub(super) fn of(fields: &[u8]) -> Result<Columns, Wrong> {
        let names: Vec<&[u8]> = split(fields).collect();
        let columns = ["date", "time", "cs-uri-stem"].map(|name| find_column(&names, name));
        let [Some(date), Some(time), Some(path)] = columns else {
            return Err(Wrong::new(0, NAMES));
        };
        Ok(Columns {
            count: names.len(),
            date,
            time,
            path,
            method: find_column(&names, "cs-method"),
            query: find_column(&names, "cs-uri-query"),
        })
    }

    pub(super) fn read(self, line: &[u8], request: &mut String) -> Result<Line, Wrong> {
        let values: Vec<&[u8]> = split(line).collect();
        if values.len() != self.count {
            return Err(Wrong::new(0, VALUES));
        }
        let value = |at: usize| String::from_utf8_lossy(values[at]);
        let [date, time, mut path] = [self.date, self.time, self.path].map(value);
        let stamp = time::columns(&date, &time).ok_or(Wrong::new(0, TIME))?;
        // Nothing is written as `-`.
        if let Some(query) = self.query.map(value).filter(|query| *query != "-") {
            path = format!("{path}?{query}").into();
        }
        let method = self.method.map_or("GET".into(), value);
        Ok((stamp, put_request(&method, &path, request)))
    }
}

/// Splits a line at tabs and spaces, which values do not contain.
fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|column| !column.is_empty())
}

/// Reads a request line such as `GET /path HTTP/1.1`; the version may be missing.
pub(super) fn put_request_line(line: &str, request: &mut String) -> Sendable {
    if matches!(line, "" | "-" | "<BADREQ>") || line.starts_with("- ") {
        return Err(NO_REQUEST);
    }
    let (method, rest) = line.split_once(' ').ok_or(NO_HTTP)?;
    if !weir_http::is_token(method) {
        return Err(NO_HTTP);
    }
    let (target, version) = rest.split_once(' ').unwrap_or((rest, "HTTP/"));
    if !version.starts_with("HTTP/") {
        return Err(BAD_TARGET);
    }
    put_request(method, target, request)
}

/// Sets `request` if the method is a token (RFC 9110 §5.6.2) and the target is in origin form, or can be converted to
/// it (RFC 9112 §3.2). The target is checked only for its first character, and for blanks, control and non-ASCII
/// characters.
pub(crate) fn put_request(method: &str, target: &str, request: &mut String) -> Sendable {
    if method == "CONNECT" || target == "*" {
        return Err(NO_PATH);
    }
    // `http://host/x` is `/x`: what is asked is the server of the load.
    let origin_form = har::host_and_target(target).map(|(_, path)| path);
    let target = origin_form.as_deref().unwrap_or(target);
    let fits = weir_http::is_token(method)
        && target.starts_with('/')
        && target.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        return Err(BAD_TARGET);
    }
    request.push_str(method);
    request.push(' ');
    request.push_str(target);
    Ok(())
}

fn find_column(names: &[&[u8]], name: &str) -> Option<usize> {
    names.iter().position(|column| *column == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::json::{OBJECT, REQUEST_KEY, TIME_KEY};
    use super::*;

    fn read(line: &str) -> Result<(Format, Option<String>), Wrong> {
        let format = Format::of(line.as_bytes())?;
        let mut request = String::new();
        let (stamp, sendable) = format.read(line.as_bytes(), &mut request)?;
        assert_eq!(stamp.ns / 1_000_000_000, 1_795_266_001, "{line}");
        Ok((format, sendable.ok().map(|()| request)))
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
            GET ftp://example.org/ HTTP/1.1|OPTIONS * HTTP/1.1|GET /\" HTTP/1.1|
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
            (r#"{"time":1795266001.5,"method":"GET","path":"http://a/"}"#, Some("GET /")),
            (r#"{"time":1795266001.5,"method":"GET","path":"https://a?b"}"#, Some("GET /?b")),
            (r#"{"time":1795266001.5,"path":"/\ud800"}"#, None),
            (r#"{"time":null,"ts":1795266001,"path":"/\u0061","more":[{"d":"}"}]} "#, Some("GET /a")),
        ];
        for (line, want) in rows {
            let request = want.map(str::to_owned);
            assert_eq!(read(line), Ok((Format::Json, request)), "{line}");
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
            let outcome = format.read(line.as_bytes(), &mut request);
            assert_eq!(outcome, Err(Wrong::new(at, expected)), "{line}");
        }
    }
}
