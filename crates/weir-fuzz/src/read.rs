//! Results of the parsers under test, fed with pieces of a connection's bytes.

use weir_http::request::{self, RequestParser};
use weir_http::response::{self, ClosedError, ResponseEnd, ResponseParser};
use weir_http::{ParseError, Sink};

/// A complete message and its end in the connection's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<E> {
    /// Bytes of the connection up to the end of this message.
    pub used: usize,
    /// Parsed result.
    pub end: E,
}

/// A response, and the fields and content that the parser gave to its sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Result of the response parser.
    pub read: ResponseEnd,
    /// Fields of the final head; values without surrounding white space.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Content that the parser gave to the sink.
    pub content: Vec<u8>,
}

/// Sink that collects the fields and content of a response.
#[derive(Default)]
struct ResponseSink {
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    content: Vec<u8>,
}

impl Sink for ResponseSink {
    fn field(&mut self) {
        self.fields.push(Default::default());
    }

    fn name(&mut self, piece: &[u8]) {
        let (name, value) = self.fields.last_mut().expect("a field has begun");
        assert!(value.is_empty(), "the name comes first");
        name.extend(piece);
    }

    fn value(&mut self, piece: &[u8]) {
        let (_, value) = self.fields.last_mut().expect("a field has begun");
        value.extend(piece);
    }

    fn content(&mut self, piece: &[u8]) {
        self.content.extend(piece);
    }
}

impl ResponseSink {
    /// Takes the fields and content of a response that has ended, and starts afresh for the next one.
    fn take_answer(&mut self, read: ResponseEnd) -> Answer {
        let ResponseSink { fields, content } = std::mem::take(self);
        Answer {
            read,
            fields: fields
                .into_iter()
                .map(|(name, value)| (name, value.trim_ascii().to_vec()))
                .collect(),
            content,
        }
    }
}

/// State of a connection at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Clean,
    Closed(ClosedError),
    Broken(ParseError),
    /// True if a request had begun, and true if the client was waiting for 100 (Continue).
    Open(bool, bool),
}

/// All messages read from a connection, and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Connection<E> {
    pub(crate) complete: Vec<Message<E>>,
    pub(crate) end: End,
}

/// Properties of a request that its first line and fields decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead {
    /// True if the method is HEAD.
    pub is_head: bool,
    /// Minor version of HTTP/1.
    pub minor: u8,
    /// True if the client intends to send more requests.
    pub keep_alive: bool,
}

/// Feeds pieces to a parser. `parse` returns how many bytes it has used and the message that they completed, if any.
/// Returns the complete messages, and the error that ended parsing.
fn feed<E>(
    pieces: &[&[u8]],
    mut parse: impl FnMut(&[u8]) -> Result<(usize, Option<E>), ParseError>,
) -> (Vec<Message<E>>, Option<ParseError>) {
    let (mut complete, mut used) = (Vec::new(), 0);
    for piece in pieces {
        let mut remaining = *piece;
        while !remaining.is_empty() {
            let (consumed, end) = match parse(remaining) {
                Ok(fed) => fed,
                Err(error) => return (complete, Some(error)),
            };
            used += consumed;
            remaining = &remaining[consumed..];
            match end {
                None => assert!(remaining.is_empty(), "bytes are left and more are wanted"),
                Some(end) => complete.push(Message { used, end }),
            }
        }
    }
    (complete, None)
}

/// Reads responses until the end of the pieces, which closes the connection.
pub(crate) fn responses(limit: u32, to_head: bool, pieces: &[&[u8]]) -> Connection<Answer> {
    let mut parser = ResponseParser::with_head_limit(limit);
    let mut sink = ResponseSink::default();
    parser.begin(to_head);
    let (mut complete, broken) = feed(pieces, |bytes| {
        let fed = parser.feed_with(bytes, &mut sink)?;
        let end = match fed.event {
            response::Progress::NeedMore => {
                assert!(parser.is_begun(), "bytes came");
                None
            }
            response::Progress::Complete(end) => {
                assert!(!parser.is_begun() && !parser.head_complete());
                parser.begin(to_head);
                Some(sink.take_answer(end))
            }
        };
        Ok((fed.consumed, end))
    });
    if let Some(error) = broken {
        let end = End::Broken(error);
        return Connection { complete, end };
    }
    let in_content = parser.head_complete();
    let end = match parser.finish_on_close() {
        Ok(end) => {
            assert!(in_content, "only content can end with the connection");
            let used = pieces.iter().map(|piece| piece.len()).sum();
            let end = sink.take_answer(end);
            complete.push(Message { used, end });
            End::Clean
        }
        Err(closed) => End::Closed(closed),
    };
    Connection { complete, end }
}

/// Reads requests until the end of the pieces.
pub(crate) fn requests(limit: u32, pieces: &[&[u8]]) -> Connection<RequestHead> {
    let mut parser = RequestParser::with_head_limit(limit);
    let mut waits = false;
    let (complete, broken) = feed(pieces, |bytes| {
        let fed = parser.feed(bytes)?;
        let request::Progress::Complete(end) = fed.event else {
            waits |= parser.take_continue();
            return Ok((fed.consumed, None));
        };
        if let Some(target) = end.target {
            let target = bytes[..fed.consumed].get(target).expect("it lies in the request");
            assert!(!target.is_empty());
            assert!(target.iter().all(|byte| *byte > b' ' && *byte != 0x7f));
        }
        waits = false;
        assert!(!parser.is_begun() && !parser.take_continue());
        let properties =
            RequestHead { is_head: end.is_head, minor: end.minor, keep_alive: end.keep_alive };
        Ok((fed.consumed, Some(properties)))
    });
    let open = End::Open(parser.is_begun(), waits);
    let end = broken.map_or(open, End::Broken);
    Connection { complete, end }
}
