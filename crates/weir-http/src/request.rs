//! Requests: read by a server that needs to find their ends, and encoded by a client.
//!
//! One [`RequestParser`] belongs to one connection and goes from request to request by itself:
//!
//! ```
//! use weir_http::request::{Progress, RequestParser};
//!
//! let mut parser = RequestParser::default();
//! let bytes = b"HEAD /a HTTP/1.1\r\nHost: example\r\n\r\nGET";
//! let fed = parser.feed(bytes)?;
//! assert_eq!(fed.consumed, 35); // the rest belongs to the next request
//! let Progress::Complete(end) = fed.event else { panic!("not complete") };
//! assert!(end.is_head && end.keep_alive);
//! assert_eq!(end.target.map(|range| &bytes[range]), Some(&b"/a"[..]));
//! # Ok::<(), weir_http::ParseError>(())
//! ```
//!
//! A request is refused if two readers could disagree about its end (RFC 9112 §11.2): Transfer-Encoding together with
//! Content-Length, in HTTP/1.0, or not ending in chunked. Host is ignored: every name leads to the same content here.

use std::ops::Range;

use memchr::memchr;

use crate::chunked::Chunked;
use crate::error::{ParseError, Result};
use crate::section::Section;
use crate::text::is_token;

pub use crate::encode::{EncodeError, Part, check, encode, parts};

/// Maximum length of a head in bytes, unless [`RequestParser::with_head_limit`] sets another.
pub const HEAD_LIMIT: u32 = 64 * 1024;

/// A complete request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestEnd {
    /// True if the method is HEAD: the response has no content.
    pub is_head: bool,
    /// Minor version: 0 for HTTP/1.0, whose response must not be chunked.
    pub minor: u8,
    /// True if the client may send more requests over this connection (RFC 9112 §9.3).
    pub keep_alive: bool,
    /// Position of the target in the bytes of the last [`RequestParser::feed`]; `None` if the request line is not
    /// contained in them.
    pub target: Option<Range<usize>>,
}

/// Progress of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were used; the request is incomplete or has not begun.
    NeedMore,
    /// The request is complete, including its content; bytes beyond [`Fed::consumed`] belong to the next.
    Complete(RequestEnd),
}

/// Result of [`RequestParser::feed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fed {
    /// Number of bytes that belong to the current request.
    pub consumed: usize,
    /// Progress of the current request.
    pub event: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the end of the request line.
    Line,
    /// In the rest of the head.
    Fields,
    /// In content of a known length.
    Counted,
    /// In chunked content.
    Chunked,
    /// In the trailer section after chunked content.
    Trailer,
}

/// Finds the end of each request of one connection. It holds no buffer; only the necessary parts of a head that is
/// split across reads are carried over.
#[derive(Debug)]
pub struct RequestParser {
    section: Section,
    chunked: Chunked,
    /// Bytes of content still to come, in [`State::Counted`].
    left: u64,
    minor: u8,
    state: State,
    is_head: bool,
    wants_continue: bool,
}

impl Default for RequestParser {
    fn default() -> RequestParser {
        RequestParser::with_head_limit(HEAD_LIMIT)
    }
}

impl RequestParser {
    /// Creates a parser that accepts heads (and trailer sections) of at most `limit` bytes.
    pub fn with_head_limit(limit: u32) -> RequestParser {
        RequestParser {
            section: Section::new(limit),
            chunked: Chunked::new(),
            left: 0,
            minor: 1,
            state: State::Line,
            is_head: false,
            wants_continue: false,
        }
    }

    /// Returns true if a request has begun and is not complete.
    pub fn is_begun(&self) -> bool {
        self.state != State::Line || self.section.seen() > 0
    }

    /// Returns true, at most once for each request, if the client waits for 100 (Continue) before it sends the content
    /// (RFC 9110 §10.1.1).
    #[inline]
    pub fn take_continue(&mut self) -> bool {
        std::mem::take(&mut self.wants_continue)
    }

    /// Reads the part of `bytes` that belongs to the current request. The next request begins with the next call.
    ///
    /// # Errors
    /// Fails if the bytes are not a request, its head is too long, or its end is not clear. The answer is 400 (Bad
    /// Request), and the connection cannot be used any more.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Fed> {
        let mut at = 0;
        let mut target = None;
        while at < bytes.len() {
            let remaining = &bytes[at..];
            let complete = match self.state {
                State::Line => {
                    let (used, range) = self.request_line(remaining)?;
                    target = range.map(|range| at + range.start..at + range.end);
                    at += used;
                    false
                }
                State::Fields => {
                    let (used, done) = self.fields(remaining)?;
                    at += used;
                    done && self.end_of_head()?
                }
                State::Counted => {
                    let content = self.left.min(remaining.len() as u64);
                    self.left -= content;
                    // Fits: at most the length of a slice.
                    at += content as usize;
                    self.left == 0
                }
                State::Chunked => {
                    let piece = self.chunked.feed(remaining, &mut ())?;
                    at += piece.used;
                    if piece.last {
                        self.state = State::Trailer;
                    }
                    false
                }
                State::Trailer => {
                    let (used, done) = self.fields(remaining)?;
                    at += used;
                    done
                }
            };
            if complete {
                return Ok(Fed { consumed: at, event: Progress::Complete(self.end(target)) });
            }
        }
        Ok(Fed { consumed: at, event: Progress::NeedMore })
    }

    #[inline]
    fn end(&mut self, target: Option<Range<usize>>) -> RequestEnd {
        let end = RequestEnd {
            is_head: self.is_head,
            minor: self.minor,
            keep_alive: self.section.keeps_alive(self.minor),
            target,
        };
        self.section.begin();
        self.state = State::Line;
        self.wants_continue = false;
        end
    }

    #[inline]
    fn fields(&mut self, bytes: &[u8]) -> Result<(usize, bool)> {
        let view = self.section.within_limit(bytes);
        let (used, done) = self.section.fields(view, &mut ())?;
        self.section.settle(bytes.len(), used, done)?;
        Ok((used, done))
    }

    /// Reads the request line, or carries it over. Returns the number of bytes used and the position of the target.
    #[inline]
    fn request_line(&mut self, bytes: &[u8]) -> Result<(usize, Option<Range<usize>>)> {
        let view = self.section.within_limit(bytes);
        let end = memchr(b'\n', view);
        let used = end.map_or(view.len(), |end| end + 1);
        let mut target = None;
        if self.section.carry.is_empty()
            && let Some(end) = end
        {
            target = self.read_line(&view[..end])?;
        } else {
            self.split_line(&view[..used])?;
        }
        self.section.settle(bytes.len(), used, end.is_some())?;
        Ok((used, target))
    }

    #[cold]
    fn split_line(&mut self, piece: &[u8]) -> Result<()> {
        let mut line = std::mem::take(&mut self.section.carry);
        line.extend_from_slice(piece);
        if let [whole @ .., b'\n'] = &line[..] {
            self.read_line(whole)?;
            line.clear();
        } else if let [first, ..] = line[..]
            && !is_token(first)
            && first != b'\r'
        {
            // Whatever speaks another protocol is told at once.
            return Err(ParseError::RequestLine);
        }
        self.section.carry = line;
        Ok(())
    }

    /// Reads a request line without its LF (RFC 9112 §3) and returns the position of the target. An empty line before
    /// it is ignored (RFC 9112 §2.2).
    #[inline]
    fn read_line(&mut self, raw: &[u8]) -> Result<Option<Range<usize>>> {
        let line = raw.strip_suffix(b"\r").unwrap_or(raw);
        if line.is_empty() {
            return Ok(None);
        }
        let Some((request, b" HTTP/1.0" | b" HTTP/1.1")) = line.split_last_chunk::<9>() else {
            return Err(ParseError::RequestLine);
        };
        let method = memchr(b' ', request).ok_or(ParseError::RequestLine)?;
        let target = method + 1..request.len();
        if method == 0
            || target.is_empty()
            || !request[..method].iter().copied().all(is_token)
            || !request[target.clone()].iter().all(|byte| *byte > b' ' && *byte != 0x7f)
        {
            return Err(ParseError::RequestLine);
        }
        self.is_head = &request[..method] == b"HEAD";
        self.minor = line[line.len() - 1] - b'0';
        self.state = State::Fields;
        Ok(Some(target))
    }

    /// Decides what follows a complete head (RFC 9112 §6.3). Returns true if nothing does.
    #[inline]
    fn end_of_head(&mut self) -> Result<bool> {
        let length = self.section.content_length()?;
        if self.section.is_encoded() {
            if !self.section.is_chunked() || length.is_some() || self.minor == 0 {
                return Err(ParseError::TransferEncoding);
            }
            self.chunked = Chunked::new();
            self.state = State::Chunked;
            self.section.begin_trailer();
        } else {
            self.left = length.unwrap_or(0);
            if self.left == 0 {
                return Ok(true);
            }
            self.state = State::Counted;
        }
        self.wants_continue = self.section.expects_continue() && self.minor > 0;
        Ok(false)
    }
}
