//! All possible responses, created before the first connection.

use std::io;

use weir_http::request::RequestEnd;
use weir_model::study::file_target;

use crate::{Content, OriginConfig};

/// Amount of content stored with each head, in bytes, so that a response up to this size takes one system call.
const INLINE: usize = 64 * 1024;

/// A response with its metadata, the same for every client.
#[derive(Debug)]
pub(crate) struct Response {
    /// Head and the first [`INLINE`] bytes of the content.
    front: Vec<u8>,
    /// True if more content follows, see [`Responses::piece`].
    has_tail: bool,
    /// True if the connection ends after it.
    pub(crate) closes: bool,
    /// True if it answers a complete request, and is counted.
    pub(crate) is_answer: bool,
}

/// Index of a response, see [`Responses::answer`].
pub(crate) type Which = u8;

/// 400 (Bad Request), after which the connection is closed.
pub(crate) const BAD_REQUEST: Which = 0;
/// 100 (Continue), sent before the content of a request that waits for it.
pub(crate) const CONTINUE: Which = 1;
/// Index of the first answer to a complete request.
const FIRST: usize = 2;
/// Number of answers with the same content.
const ANSWERS: usize = 6;
/// Maximum number of additional sizes: as many answers as an index can address.
const MOST_SIZES: usize = 40;

/// All responses of a server.
#[derive(Debug)]
pub(crate) struct Responses {
    all: Vec<Response>,
    /// Content for all other targets, then one for each of `targets`.
    contents: Vec<Content>,
    /// Request targets with their own content.
    targets: Vec<Vec<u8>>,
    /// Heads in CGI and HTTP/2 format, for each content.
    foreign: Vec<ForeignHeads>,
}

/// Heads of an answer in protocols other than HTTP/1.1: for CGI, and for HTTP/2 plain and gRPC.
#[derive(Debug)]
struct ForeignHeads {
    cgi: Vec<u8>,
    h2: [Vec<u8>; 2],
}

impl Responses {
    /// Creates the responses.
    ///
    /// # Errors
    /// Fails if the configuration describes an invalid response.
    pub(crate) fn new(config: &OriginConfig) -> io::Result<Responses> {
        check(config)?;
        let files = config.sizes.iter().map(|&size| Content::text(size));
        let mut contents: Vec<Content> =
            std::iter::once(config.content.clone()).chain(files).collect();
        if has_no_content(config.status) {
            contents.fill(Content::from(Vec::new()));
        }
        let bad = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\
            Content-Length: 12\r\n\r\nbad request\n";
        let mut all =
            vec![fixed_response(bad, true), fixed_response("HTTP/1.1 100 Continue\r\n\r\n", false)];
        for content in &contents {
            all.extend(answers(config, content.bytes()));
        }
        let targets = config.sizes.iter();
        let foreign =
            contents.iter().map(|content| content.bytes().len()).map(|length| ForeignHeads {
                cgi: cgi_head(config, length),
                h2: [false, true].map(|is_call| h2_head(config, length, is_call)),
            });
        Ok(Responses {
            all,
            foreign: foreign.collect(),
            contents,
            targets: targets.map(|&size| file_target(size).into()).collect(),
        })
    }

    /// Returns the answer to a request. `target` is the request target, if known. A response to a client of HTTP/1.0
    /// states that the connection persists; a client of HTTP/1.1 assumes it (RFC 9112 §9.3). If content depends on the
    /// target and the target is not known, the answer is [`BAD_REQUEST`]: one of the wrong size would not be noticed.
    pub(crate) fn answer(&self, end: &RequestEnd, target: Option<&[u8]>) -> Which {
        let connection = match (end.keep_alive, end.minor) {
            (true, 1..) => 0,
            (true, 0) => 2,
            (false, _) => 4,
        };
        let content = match target {
            _ if self.targets.is_empty() => 0,
            None => return BAD_REQUEST,
            Some(target) => self.content_of(target),
        };
        // Fits, since there are no more sizes than that.
        (FIRST + ANSWERS * content + connection + usize::from(end.is_head)) as Which
    }

    /// Returns the index of the content for a request target.
    pub(crate) fn content_of(&self, target: &[u8]) -> usize {
        self.targets.iter().position(|file| file == target).map_or(0, |index| index + 1)
    }

    /// Returns the content with this index.
    pub(crate) fn bytes(&self, content: usize) -> &[u8] {
        self.contents[content].bytes()
    }

    /// Returns the HTTP/1.1 head of the answer that closes the connection.
    pub(crate) fn closing_head(&self, content: usize) -> &[u8] {
        &self.all[FIRST + ANSWERS * content + ANSWERS - 1].front
    }

    /// Returns the head with the status in a field, as in CGI (RFC 3875 §6.3.3).
    pub(crate) fn cgi_head(&self, content: usize) -> &[u8] {
        &self.foreign[content].cgi
    }

    /// Returns the HTTP/2 header block of a plain answer, or of one to a gRPC call.
    pub(crate) fn h2_head(&self, content: usize, is_call: bool) -> &[u8] {
        &self.foreign[content].h2[usize::from(is_call)]
    }

    /// Returns the trailers of a successful answer to a gRPC call.
    pub(crate) fn h2_trailers() -> Vec<u8> {
        let mut block = Vec::new();
        write_field(&mut block, "grpc-status", "0");
        block
    }

    /// Returns true if content depends on the request target.
    pub(crate) fn goes_by_target(&self) -> bool {
        !self.targets.is_empty()
    }

    pub(crate) fn get(&self, which: Which) -> &Response {
        &self.all[usize::from(which)]
    }

    /// Returns the longest piece of a response from `offset` that one call can send, and true if more follows. Empty:
    /// the response is sent.
    pub(crate) fn piece(&self, which: Which, offset: usize) -> (&[u8], bool) {
        let response = self.get(which);
        match response.front.get(offset..) {
            Some(front) if !front.is_empty() => (front, response.has_tail),
            _ if response.has_tail => {
                let sent = offset - response.front.len();
                let content = (usize::from(which) - FIRST) / ANSWERS;
                (&self.contents[content].bytes()[INLINE + sent..], false)
            }
            _ => (&[], false),
        }
    }
}

fn fixed_response(bytes: &str, closes: bool) -> Response {
    Response { front: bytes.as_bytes().to_vec(), has_tail: false, closes, is_answer: false }
}

/// Creates all answers with this content: to GET and HEAD, for each value of `Connection`.
fn answers(config: &OriginConfig, content: &[u8]) -> [Response; ANSWERS] {
    let close = "Connection: close\r\n";
    let keep_alive = "Connection: keep-alive\r\n";
    [
        build_answer(config, content, "", false, false),
        build_answer(config, content, "", false, true),
        build_answer(config, content, keep_alive, false, false),
        build_answer(config, content, keep_alive, false, true),
        build_answer(config, content, close, true, false),
        build_answer(config, content, close, true, true),
    ]
}

fn build_answer(
    config: &OriginConfig,
    content: &[u8],
    connection: &str,
    closes: bool,
    to_head: bool,
) -> Response {
    let mut front = head(config, content.len(), connection);
    let content = if to_head { &[] } else { content };
    front.extend_from_slice(&content[..content.len().min(INLINE)]);
    Response { front, has_tail: content.len() > INLINE, closes, is_answer: true }
}

fn check(config: &OriginConfig) -> io::Result<()> {
    if !(200..=599).contains(&config.status) {
        return refuse(format!("status {} is not within 200 to 599", config.status));
    }
    if config.sizes.len() > MOST_SIZES {
        let sizes = config.sizes.len();
        return refuse(format!("{sizes} sizes are more than {MOST_SIZES}"));
    }
    let content_type = ("Content-Type".to_owned(), config.content_type.clone());
    for (name, value) in config.fields.iter().chain([&content_type]) {
        if !weir_http::is_token(name) {
            return refuse(format!("field name `{}` is not a token", name.escape_debug()));
        }
        let framing = ["connection", "content-length", "transfer-encoding"];
        if framing.iter().any(|field| name.eq_ignore_ascii_case(field)) {
            return refuse(format!("field {name} is written by the server itself"));
        }
        if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return refuse(format!("value of field {name} holds CR, LF or NUL"));
        }
    }
    Ok(())
}

fn refuse(why: String) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Returns the fields of an answer, the same in all protocols.
fn fields(config: &OriginConfig, length: usize) -> impl Iterator<Item = (&str, String)> {
    let has_content = !has_no_content(config.status);
    let content_type = (!config.content_type.is_empty())
        .then_some(&config.content_type)
        .map(|kind| ("Content-Type", kind.clone()));
    let fields = config.fields.iter();
    std::iter::once(("Server", "weir".to_owned()))
        .chain(content_type.filter(|_| has_content))
        .chain(has_content.then(|| ("Content-Length", length.to_string())))
        .chain(fields.map(|(name, value)| (name.as_str(), value.clone())))
}

fn cgi_head(config: &OriginConfig, length: usize) -> Vec<u8> {
    let mut head = format!("Status: {} {}\r\n", config.status, reason(config.status));
    for (name, value) in fields(config, length) {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    head.into_bytes()
}

/// Encodes a header block without dynamic table and Huffman code (RFC 7541 §6.2.2).
fn h2_head(config: &OriginConfig, length: usize, is_call: bool) -> Vec<u8> {
    let mut block = Vec::new();
    let status = if is_call { 200 } else { config.status };
    write_field(&mut block, ":status", &status.to_string());
    for (name, value) in fields(config, length) {
        match &*name.to_ascii_lowercase() {
            "content-length" if is_call => {}
            "content-type" if is_call => {
                write_field(&mut block, "content-type", "application/grpc");
            }
            name => write_field(&mut block, name, &value),
        }
    }
    block
}

/// Encodes a field as a literal that is not added to the dynamic table.
fn write_field(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        write_length(block, text.len());
        block.extend_from_slice(text.as_bytes());
    }
}

/// Encodes an integer with a seven-bit prefix (RFC 7541 §5.1).
fn write_length(block: &mut Vec<u8>, length: usize) {
    const MOST: usize = 0x7f;
    if length < MOST {
        return block.push(length as u8);
    }
    block.push(MOST as u8);
    let mut remaining = length - MOST;
    while remaining > MOST {
        block.push((remaining & MOST) as u8 | 0x80);
        remaining >>= 7;
    }
    block.push(remaining as u8);
}

fn has_no_content(status: u16) -> bool {
    matches!(status, 204 | 304)
}

fn head(config: &OriginConfig, length: usize, connection: &str) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", config.status, reason(config.status));
    for (name, value) in fields(config, length) {
        head += &format!("{name}: {value}\r\n");
    }
    head += connection;
    head += "\r\n";
    head.into_bytes()
}

/// Returns the reason phrase of common status codes (RFC 9110 §15); empty for others.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}
