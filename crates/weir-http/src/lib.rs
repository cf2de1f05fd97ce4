//! HTTP/1.1 messages without IO.
//!
//! A parser here is fed the bytes that arrived and returns how many of them belong to the current message and whether
//! it is complete. It owns no buffer: lines that are whole in the given bytes are read in place, and only a line that
//! is split across two reads is carried over. It interprets the few fields that decide where a message ends (RFC 9112
//! §6.3) and skips the rest, content included, because a load generator and its origin server mostly need the framing
//! and nothing else. A [`Sink`] receives more of a response.
//!
//! * [`response`] reads responses, for the load engine.
//! * [`request`] reads requests, for the origin server, and encodes them, for the load engine.
//!
//! The same bytes give the same outcome however they are cut into pieces; the tests verify this for every parser.

#![warn(missing_docs)]

mod chunked;
mod encode;
mod error;
pub mod request;
pub mod response;
mod section;
mod sink;
mod text;

pub use error::ParseError;
pub use sink::Sink;

/// Returns true if a text is a token (RFC 9110 §5.6.2): a method, or the name of a field.
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(text::is_token)
}
