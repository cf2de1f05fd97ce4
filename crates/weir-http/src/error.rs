//! Errors in a message, with texts that are counted and shown to the user.

use weir_model::load::ErrorKind;

/// Reason why bytes are not an HTTP/1.1 message whose end this crate can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The first line is not `HTTP/1.x` and three digits (RFC 9112 §4).
    #[error("status line is not HTTP/1.x and three digits")]
    StatusLine,
    /// A TLS record (RFC 8446 §5.1) came instead of a status line: an alert or a handshake.
    #[error("the port speaks TLS, not http in clear")]
    Tls,
    /// The first line is not method, target and `HTTP/1.x` (RFC 9112 §3).
    #[error("request line is not method, target and HTTP/1.x")]
    RequestLine,
    /// A field line has no name, a name that is not a token, or no colon (RFC 9112 §5).
    #[error("field line is not a name and a colon")]
    FieldLine,
    /// A line of the head or the trailer section contains a CR that does not belong to its end (RFC 9112 §2.2), or a
    /// NUL (RFC 9110 §5.5).
    #[error("a line of the head holds a CR without LF, or a NUL")]
    Control,
    /// Content-Length is not a number, or has several different values (RFC 9112 §6.3, item 5).
    #[error("content-length is not one number")]
    ContentLength,
    /// A request's Transfer-Encoding does not end in chunked, comes with Content-Length, or comes
    /// in HTTP/1.0 (RFC 9112 §6.1 and §6.3, item 4).
    #[error("transfer-encoding leaves the length of the content unclear")]
    TransferEncoding,
    /// The chunked coding is broken (RFC 9112 §7.1).
    #[error("chunked content is broken")]
    Chunk,
    /// Status 101 to a request that asked for no other protocol (RFC 9110 §15.2.2).
    #[error("switched protocols without being asked (101)")]
    Switched,
    /// The head, or the trailer section, exceeds the limit.
    #[error("head is longer than {limit} bytes")]
    HeadTooLarge {
        /// The limit in bytes.
        limit: u32,
    },
    /// Bytes arrived while no response was due.
    #[error("bytes came without a request")]
    Unsolicited,
}

impl ParseError {
    /// Returns the kind under which a trial counts this error.
    pub fn kind(self) -> ErrorKind {
        match self {
            ParseError::HeadTooLarge { .. } => ErrorKind::HeadTooLarge,
            ParseError::Unsolicited => ErrorKind::Unsolicited,
            _ => ErrorKind::Malformed,
        }
    }
}

/// Result of a parser.
pub(crate) type Result<T> = std::result::Result<T, ParseError>;
