//! A second parser to compare with: it reads messages from bytes that are all present, with httparse and by the letter
//! of RFC 9112 §6.3, without regard to speed.
//!
//! It returns the messages that it is sure of and stops at the first that it is not sure of: malformed messages,
//! messages that are looser than httparse allows, and messages longer than a limit of the parsers.

use httparse::{EMPTY_HEADER, Header, Status};
use weir_http::request::HEAD_LIMIT as REQUEST_HEAD_LIMIT;
use weir_http::response::{HEAD_LIMIT, ResponseEnd};

pub use crate::read::{Answer, Message, RequestHead};

/// Maximum number of field lines that httparse reads in one section.
const FIELDS: usize = 256;

/// Longest line with the size of a chunk; the parsers' own limit is not lower.
const SIZE_LINE: usize = 16 * 1024;

/// Reads the responses that `bytes` surely begin with, if the connection is closed after them.
pub fn responses(bytes: &[u8], to_head: bool) -> Vec<Message<Answer>> {
    collect_messages(bytes, |rest| one_response(rest, to_head))
}

/// Reads the requests that `bytes` surely begin with.
pub fn requests(bytes: &[u8]) -> Vec<Message<RequestHead>> {
    collect_messages(bytes, one_request)
}

/// Returns true if `bytes` are surely only a part of a response's head, after any complete interim responses.
pub fn is_begun_head(mut bytes: &[u8]) -> bool {
    loop {
        let mut fields = [EMPTY_HEADER; FIELDS];
        let mut head = httparse::Response::new(&mut fields);
        match head.parse(bytes) {
            Ok(Status::Partial) => return true,
            Ok(Status::Complete(length)) if head.code.is_some_and(|code| code < 200) => {
                bytes = &bytes[length..];
            }
            _ => return false,
        }
    }
}

fn collect_messages<E>(bytes: &[u8], one: impl Fn(&[u8]) -> Option<(usize, E)>) -> Vec<Message<E>> {
    let (mut messages, mut used) = (Vec::new(), 0);
    while used < bytes.len()
        && let Some((length, end)) = one(&bytes[used..])
    {
        used += length;
        messages.push(Message { used, end });
    }
    messages
}

fn one_response(bytes: &[u8], to_head: bool) -> Option<(usize, Answer)> {
    let mut at = 0;
    loop {
        let mut fields = [EMPTY_HEADER; FIELDS];
        let mut head = httparse::Response::new(&mut fields);
        let Ok(Status::Complete(length)) = head.parse(&bytes[at..]) else {
            return None;
        };
        if length > HEAD_LIMIT as usize {
            return None;
        }
        at += length;
        let (status, minor) = (head.code?, head.version?);
        match status {
            // Nobody asked for another protocol.
            101 => return None,
            100..=199 => continue,
            _ => {}
        }
        let bare = to_head || matches!(status, 204 | 304);
        let fields = Fields(head.headers);
        let framing = if bare { Framing::Counted(0) } else { fields.framing()? };
        let body = &bytes[at..];
        let (length, content) = match framing {
            Framing::Counted(length) => (length, body.get(..length)?.to_vec()),
            Framing::Chunked => chunked(body)?,
            Framing::None => (body.len(), body.to_vec()),
        };
        let untrusted = !bare && minor == 0 && fields.has("transfer-encoding");
        let read = ResponseEnd {
            status,
            keep_alive: fields.persist(minor) && !matches!(framing, Framing::None) && !untrusted,
            content_bytes: content.len() as u64,
            head_bytes: at as u64,
        };
        let answer = Answer {
            read,
            fields: fields
                .0
                .iter()
                .map(|field| (field.name.into(), field.value.trim_ascii().to_vec()))
                .collect(),
            content,
        };
        return Some((at + length, answer));
    }
}

fn one_request(bytes: &[u8]) -> Option<(usize, RequestHead)> {
    let mut fields = [EMPTY_HEADER; FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    let Ok(Status::Complete(at)) = head.parse(bytes) else {
        return None;
    };
    if at > REQUEST_HEAD_LIMIT as usize {
        return None;
    }
    let minor = head.version?;
    let fields = Fields(head.headers);
    if fields.has("transfer-encoding") && (minor == 0 || fields.has("content-length")) {
        return None;
    }
    let body = &bytes[at..];
    let length = match fields.framing()? {
        Framing::Counted(length) => length,
        Framing::Chunked => chunked(body)?.0,
        Framing::None if fields.has("transfer-encoding") => return None,
        Framing::None => 0,
    };
    let end =
        RequestHead { is_head: head.method? == "HEAD", minor, keep_alive: fields.persist(minor) };
    (length <= body.len()).then(|| (at + length, end))
}

/// Framing of the content that a head announces (RFC 9112 §6.3).
#[derive(Clone, Copy)]
enum Framing {
    Counted(usize),
    Chunked,
    None,
}

struct Fields<'h, 'b>(&'h [Header<'b>]);

impl<'b> Fields<'_, 'b> {
    /// Members of the list (RFC 9110 §5.6.1) that all fields of this name form together.
    fn list(&self, name: &str) -> Vec<&'b [u8]> {
        self.0
            .iter()
            .filter(|field| field.name.eq_ignore_ascii_case(name))
            .map(|field| field.value)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .collect()
    }

    fn has(&self, name: &str) -> bool {
        !self.list(name).is_empty()
    }

    /// Returns true if the connection persists after this message (RFC 9112 §9.3).
    fn persist(&self, minor: u8) -> bool {
        let options = self.list("connection");
        let has = |option: &[u8]| options.iter().any(|have| have.eq_ignore_ascii_case(option));
        !has(b"close") && (minor > 0 || has(b"keep-alive"))
    }

    /// Framing that the fields announce; `None` if they contradict each other or hold something that this reader does
    /// not support.
    fn framing(&self) -> Option<Framing> {
        let codings = self.list("transfer-encoding");
        if !codings.iter().all(|coding| !coding.is_empty() && !coding.contains(&b'"')) {
            return None;
        }
        match codings.last() {
            Some(last) if last.eq_ignore_ascii_case(b"chunked") => return Some(Framing::Chunked),
            Some(_) => return Some(Framing::None),
            None => {}
        }
        let lengths = self.list("content-length");
        let Some(first) = lengths.first() else {
            return Some(Framing::None);
        };
        let is_number = !first.is_empty() && first.iter().all(u8::is_ascii_digit);
        if !is_number || !lengths.iter().all(|length| length == first) {
            return None;
        }
        let length = std::str::from_utf8(first).ok()?.parse().ok()?;
        Some(Framing::Counted(length))
    }
}

/// Reads chunked content. Returns its length in bytes with the trailer section, and the data in it.
fn chunked(bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    let (mut at, mut data) = (0, Vec::new());
    loop {
        let chunk = &bytes[at..];
        // httparse takes a line without digits for a size of 0.
        if !chunk.first()?.is_ascii_hexdigit() {
            return None;
        }
        let Ok(Status::Complete((line, size))) = httparse::parse_chunk_size(chunk) else {
            return None;
        };
        let digits = chunk.iter().take_while(|byte| byte.is_ascii_hexdigit());
        if line > SIZE_LINE || !are_extensions(&chunk[digits.count()..line - 2]) {
            return None;
        }
        at += line;
        if size == 0 {
            break;
        }
        let end = usize::try_from(size).ok()?.checked_add(at)?;
        if bytes.get(end..end.checked_add(2)?)? != b"\r\n" {
            return None;
        }
        data.extend(&bytes[at..end]);
        at = end + 2;
    }
    let mut fields = [EMPTY_HEADER; FIELDS];
    match httparse::parse_headers(&bytes[at..], &mut fields) {
        Ok(Status::Complete((length, _))) if length <= REQUEST_HEAD_LIMIT as usize => {
            Some((at + length, data))
        }
        _ => None,
    }
}

/// Returns true if the rest of a chunk-size line has valid syntax: `*( BWS ";" BWS name [ BWS "=" BWS value ] )` (RFC
/// 9112 §7.1.1). httparse skips the rest unchecked.
fn are_extensions(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        let Some(named) = past_blanks(rest).strip_prefix(b";") else {
            return false;
        };
        let named = past_blanks(named);
        let behind = past_token(named);
        let valued = past_blanks(behind).strip_prefix(b"=").map(past_blanks);
        let (last, next) = match valued {
            None => (named, behind),
            Some(value) => (value, past_quotes(value).unwrap_or_else(|| past_token(value))),
        };
        if behind.len() == named.len() || next.len() == last.len() {
            return false;
        }
        rest = next;
    }
    true
}

fn past(bytes: &[u8], is_passed: impl Fn(&u8) -> bool) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| is_passed(byte)).count()..]
}

fn past_blanks(bytes: &[u8]) -> &[u8] {
    past(bytes, |byte| b" \t".contains(byte))
}

fn past_token(bytes: &[u8]) -> &[u8] {
    past(bytes, |byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// Returns the bytes after the quoted string that `bytes` begin with; `None` if they do not begin with one.
fn past_quotes(bytes: &[u8]) -> Option<&[u8]> {
    let mut remaining = bytes.strip_prefix(b"\"")?;
    loop {
        remaining = match remaining {
            [b'"', behind @ ..] => return Some(behind),
            [b'\\', escaped, behind @ ..] if is_text(*escaped) => behind,
            [byte, behind @ ..] if *byte != b'\\' && is_text(*byte) => behind,
            _ => return None,
        };
    }
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}
