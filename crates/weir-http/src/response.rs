//! Responses, read by a client that needs to find their ends.
//!
//! One [`ResponseParser`] belongs to one connection. For each request in order:
//!
//! ```
//! use weir_http::response::{Progress, ResponseParser};
//!
//! let mut parser = ResponseParser::default();
//! parser.begin(false);
//! let fed = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 ")?;
//! assert_eq!(fed.consumed, 40); // the rest belongs to the next response
//! let Progress::Complete(end) = fed.event else { panic!("not complete") };
//! assert_eq!((end.status, end.content_bytes, end.keep_alive), (200, 2, true));
//! # Ok::<(), weir_http::ParseError>(())
//! ```
//!
//! Tolerated beyond the letter of RFC 9112, because real servers send it and the framing stays clear: bare LF, empty
//! lines before the status line, a status line without the space before an empty reason, folded lines, Content-Length
//! repeated with the same number.
//!
//! Refused although some readers accept it: a CR without LF, or a NUL, in any line; white space after the size of a
//! chunk (some old servers pad to a fixed width with it); a chunk extension without a name.

use crate::chunked::Chunked;
use crate::error::{ParseError, Result};
use crate::section::Section;
use crate::sink::Sink;

/// Maximum length of a head in bytes, unless [`ResponseParser::with_head_limit`] sets another.
pub const HEAD_LIMIT: u32 = 1024 * 1024;

/// Length of `HTTP/1.1 200` and the byte after it: the only part of a status line that is read.
const STATUS_PREFIX: usize = 13;

/// Types of the TLS records that a server may send first, and the first byte of their version, which
/// has not changed since SSL 3.0 (RFC 8446 §5.1).
const TLS_ALERT: u8 = 21;
const TLS_HANDSHAKE: u8 = 22;
const TLS_MAJOR: u8 = 3;

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseEnd {
    /// Status code, 000 to 999 as sent.
    pub status: u16,
    /// True if another request may be sent over the connection (RFC 9112 §9.3).
    pub keep_alive: bool,
    /// Length of the content in bytes, without the chunked coding.
    pub content_bytes: u64,
    /// Length of the head in bytes, including those of preceding interim responses.
    pub head_bytes: u64,
}

/// Progress of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were used and the response is incomplete.
    NeedMore,
    /// The response is complete; bytes beyond [`Fed::consumed`] belong to what follows.
    Complete(ResponseEnd),
}

/// Result of [`ResponseParser::feed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// Number of bytes that belong to the current response.
    pub consumed: usize,
    /// Progress of the current response.
    pub event: Progress,
}

/// Error for a connection that was closed before the response was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClosedError {
    /// No byte of a response arrived. On a connection that was used before, this is the race of RFC 9112 §9.5: the
    /// server closed it while the request was under way.
    #[error("closed before any byte of the response")]
    Unanswered,
    /// The response had begun.
    #[error("closed in the middle of the response")]
    Early,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No response is due.
    Idle,
    /// In the part of the status line that is read.
    Status,
    /// In the rest of the head.
    Fields,
    /// In content of a known length.
    Counted,
    /// In content that lasts until the connection is closed.
    ToClose,
    /// In chunked content.
    Chunked,
    /// In the trailer section after chunked content.
    Trailer,
}

/// Finds the end of each response of one connection. It holds no buffer; see the crate documentation.
#[derive(Debug)]
pub struct ResponseParser {
    section: Section,
    chunked: Chunked,
    /// Bytes of content still to come, in [`State::Counted`].
    left: u64,
    content_bytes: u64,
    /// Total length of complete heads, those of 1xx responses before the final one included, in bytes.
    head_bytes: u64,
    status: u16,
    minor: u8,
    state: State,
    to_head: bool,
    keep_alive: bool,
}

impl Default for ResponseParser {
    fn default() -> ResponseParser {
        ResponseParser::with_head_limit(HEAD_LIMIT)
    }
}

impl ResponseParser {
    /// Creates a parser that accepts heads (and trailer sections) of at most `limit` bytes.
    pub fn with_head_limit(limit: u32) -> ResponseParser {
        ResponseParser {
            section: Section::new(limit),
            chunked: Chunked::new(),
            left: 0,
            content_bytes: 0,
            head_bytes: 0,
            status: 0,
            minor: 1,
            state: State::Idle,
            to_head: false,
            keep_alive: false,
        }
    }

    /// Starts a new response and discards the rest of any previous one. A response to a HEAD request has no content
    /// (RFC 9110 §9.3.2).
    #[inline]
    pub fn begin(&mut self, request_method_is_head: bool) {
        self.section.begin();
        self.content_bytes = 0;
        self.head_bytes = 0;
        self.status = 0;
        self.state = State::Status;
        self.to_head = request_method_is_head;
    }

    /// Returns true if a byte of the response has arrived.
    #[inline]
    pub fn is_begun(&self) -> bool {
        self.head_complete()
            || self.state != State::Idle && (self.head_bytes > 0 || self.section.seen() > 0)
    }

    /// Returns true if the head of the final response is complete and its content is still to come.
    #[inline]
    pub fn head_complete(&self) -> bool {
        !matches!(self.state, State::Idle | State::Status | State::Fields)
    }

    /// Returns true if the response is in content that only the end of the connection ends (RFC 9112 §6.3, item 8).
    /// Over TLS that is close_notify: without it such content is incomplete (RFC 9112 §9.8).
    #[inline]
    pub fn lasts_to_close(&self) -> bool {
        self.state == State::ToClose
    }

    /// Reads the part of `bytes` that belongs to the current response. After an error, and after a complete response,
    /// [`ResponseParser::begin`] must be called first.
    ///
    /// # Errors
    /// Fails if the bytes are not a response, its head is too long, or none is due. The connection cannot be used any
    /// more.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Fed> {
        self.feed_with(bytes, &mut ())
    }

    /// Reads like [`ResponseParser::feed`], and passes the final response's fields and content to `sink`.
    ///
    /// # Errors
    /// Fails like [`ResponseParser::feed`]; `sink` may have received the part before the fault.
    #[inline]
    pub fn feed_with(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<Fed> {
        let fed = self.advance(bytes, sink);
        if fed.is_err() {
            self.state = State::Idle;
        }
        fed
    }

    /// Returns the number of bytes still to come of content with a known length; `None` outside such content. These
    /// bytes may be received without being read, and reported to [`ResponseParser::skip`].
    #[inline]
    pub fn content_left(&self) -> Option<u64> {
        (self.state == State::Counted).then_some(self.left)
    }

    /// Counts `length` bytes of content that were received without being read. The last of them completes the response.
    /// A `length` above [`ResponseParser::content_left`] is ignored.
    #[inline]
    pub fn skip(&mut self, length: u64) -> Progress {
        let due = self.content_left().unwrap_or(0);
        debug_assert!(length <= due, "{length} bytes skipped where {due} are due");
        if length == 0 || length > due {
            return Progress::NeedMore;
        }
        if self.take_content(length) { self.complete() } else { Progress::NeedMore }
    }

    /// Handles a close of the connection by the peer: the regular end of content without a length (RFC 9112 §6.3, item
    /// 8), and an error everywhere else.
    ///
    /// # Errors
    /// Fails if the response has not begun or is not complete.
    pub fn finish_on_close(&mut self) -> std::result::Result<ResponseEnd, ClosedError> {
        let end = match self.state {
            State::ToClose => Ok(self.end()),
            _ if self.is_begun() => Err(ClosedError::Early),
            _ => Err(ClosedError::Unanswered),
        };
        self.state = State::Idle;
        end
    }

    #[inline]
    fn advance(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<Fed> {
        let mut at = 0;
        while at < bytes.len() {
            let remaining = &bytes[at..];
            let complete = match self.state {
                State::Idle => return Err(ParseError::Unsolicited),
                State::Status | State::Fields => {
                    let (used, done) = self.head(remaining, sink)?;
                    at += used;
                    done && self.end_of_head()?
                }
                State::Counted => {
                    // Fits: at most the length of a slice.
                    let content = self.left.min(remaining.len() as u64) as usize;
                    sink.content(&remaining[..content]);
                    at += content;
                    self.take_content(content as u64)
                }
                State::ToClose => {
                    sink.content(remaining);
                    self.content_bytes += remaining.len() as u64;
                    at = bytes.len();
                    false
                }
                State::Chunked => {
                    let piece = self.chunked.feed(remaining, sink)?;
                    at += piece.used;
                    self.content_bytes += piece.data;
                    if piece.last {
                        self.section.begin_trailer();
                        self.state = State::Trailer;
                    }
                    false
                }
                State::Trailer => {
                    let view = self.section.within_limit(remaining);
                    let (used, done) = self.section.fields(view, &mut ())?;
                    self.section.settle(remaining.len(), used, done)?;
                    at += used;
                    done
                }
            };
            if complete {
                let event = self.complete();
                return Ok(Fed { consumed: at, event });
            }
        }
        Ok(Fed { consumed: at, event: Progress::NeedMore })
    }

    /// Counts content of a known length. Returns true if it is complete.
    #[inline]
    fn take_content(&mut self, length: u64) -> bool {
        self.left -= length;
        self.content_bytes += length;
        self.left == 0
    }

    #[inline]
    fn complete(&mut self) -> Progress {
        self.state = State::Idle;
        Progress::Complete(self.end())
    }

    fn end(&self) -> ResponseEnd {
        ResponseEnd {
            status: self.status,
            keep_alive: self.keep_alive,
            content_bytes: self.content_bytes,
            head_bytes: self.head_bytes,
        }
    }

    /// Reads on in the head. Returns the number of bytes used, and true if the head is complete.
    #[inline]
    fn head(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<(usize, bool)> {
        let view = self.section.within_limit(bytes);
        let mut at = 0;
        if self.state == State::Status {
            at = self.status_line(view)?;
        }
        let mut done = false;
        if self.state == State::Fields {
            let (used, complete) = if is_interim(self.status) {
                self.section.fields(&view[at..], &mut ())?
            } else {
                self.section.fields(&view[at..], sink)?
            };
            at += used;
            done = complete;
        }
        self.section.settle(bytes.len(), at, done)?;
        Ok((at, done))
    }

    /// Reads on in the status line, up to the reason phrase, or carries it over. Skips empty lines before it. Returns
    /// the number of bytes used.
    #[inline]
    fn status_line(&mut self, view: &[u8]) -> Result<usize> {
        if self.section.carry.is_empty()
            && let Some(begin) = view.first_chunk::<STATUS_PREFIX>()
            && let Some(used) = self.read_status(begin)?
        {
            return Ok(used);
        }
        self.split_status_line(view)
    }

    /// Does the same as [`Self::status_line`] byte by byte, for a line that is split across reads or follows empty
    /// ones.
    #[cold]
    fn split_status_line(&mut self, view: &[u8]) -> Result<usize> {
        for (at, byte) in view.iter().enumerate() {
            self.section.carry.push(*byte);
            match self.section.carry[..] {
                [b'\n'] | [b'\r', b'\n'] => self.section.carry.clear(),
                [b'\r'] => {}
                _ => {
                    let line = std::mem::take(&mut self.section.carry);
                    let read = self.read_status(&line);
                    self.section.carry = line;
                    if read?.is_some() {
                        self.section.carry.clear();
                        return Ok(at + 1);
                    }
                }
            }
        }
        Ok(view.len())
    }

    /// Reads the beginning of a status line (RFC 9112 §4). Returns the number of bytes used; `None` if the line is
    /// empty or too short to decide.
    #[inline]
    fn read_status(&mut self, line: &[u8]) -> Result<Option<usize>> {
        if let [
            b'H',
            b'T',
            b'T',
            b'P',
            b'/',
            b'1',
            b'.',
            minor @ b'0'..=b'9',
            b' ',
            a @ b'0'..=b'9',
            b @ b'0'..=b'9',
            c @ b'0'..=b'9',
            after @ (b' ' | b'\r' | b'\n'),
            ..,
        ] = line
        {
            let [a, b, c] = [*a, *b, *c].map(|digit| u16::from(digit - b'0'));
            self.status = a * 100 + b * 10 + c;
            self.minor = minor - b'0';
            self.state = State::Fields;
            if *after != b'\n' {
                self.section.skip_line(*after == b'\r');
            }
            return Ok(Some(STATUS_PREFIX));
        }
        match line {
            [b'\r', b'\n', ..] | [b'\n', ..] | [TLS_ALERT | TLS_HANDSHAKE] => Ok(None),
            [TLS_ALERT | TLS_HANDSHAKE, TLS_MAJOR, ..] => Err(ParseError::Tls),
            _ if may_become_status(line) => Ok(None),
            _ => Err(ParseError::StatusLine),
        }
    }

    /// Decides what follows a complete head (RFC 9112 §6.3). Returns true if nothing does.
    #[inline]
    fn end_of_head(&mut self) -> Result<bool> {
        self.head_bytes += u64::from(self.section.seen());
        match self.status {
            101 => return Err(ParseError::Switched),
            status if is_interim(status) => {
                self.section.begin();
                self.state = State::Status;
                return Ok(false);
            }
            _ => {}
        }
        self.keep_alive = self.section.keeps_alive(self.minor);
        if self.to_head || matches!(self.status, 204 | 304) {
            return Ok(true);
        }
        if self.section.is_encoded() {
            // §6.1: the framing of an HTTP/1.0 message with this field is not to be trusted.
            self.keep_alive &= self.minor > 0;
        }
        if self.section.is_chunked() {
            self.chunked = Chunked::new();
            self.state = State::Chunked;
            return Ok(false);
        }
        if !self.section.is_encoded()
            && let Some(length) = self.section.content_length()?
        {
            self.left = length;
            self.state = State::Counted;
            return Ok(length == 0);
        }
        self.keep_alive = false;
        self.state = State::ToClose;
        Ok(false)
    }
}

/// Returns true if another response follows one with this status code (RFC 9110 §15.2).
#[inline]
fn is_interim(status: u16) -> bool {
    matches!(status, 100..=199)
}

/// Returns true if a status line may begin with these bytes, which are fewer than [`STATUS_PREFIX`].
#[cold]
fn may_become_status(line: &[u8]) -> bool {
    const SHAPE: &[u8] = b"HTTP/1.0 000";
    line.len() <= SHAPE.len()
        && line.iter().zip(SHAPE).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            _ => byte == shape,
        })
}

const _: () = assert!(
    size_of::<ResponseParser>() <= 64 + size_of::<Vec<u8>>() + 16,
    "one of these stands for each of perhaps a million connections"
);
