//! What the parsers under test make of pieces.

use weir_http::request::{self, RequestParser};
use weir_http::response::{self, ClosedError, ResponseEnd, ResponseParser};
use weir_http::{ParseError, Sink};

/// A complete message, and where in the connection's bytes it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<E> {
    /// Bytes of the connection up to its end.
    pub used: usize,
    /// What it came to.
    pub end: E,
}

/// A response, and what a sink was shown of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What it came to.
    pub read: ResponseEnd,
    /// Fields of the final head, values without white space around.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Its content.
    pub content: Vec<u8>,
}

/// What has been shown of a response so far.
#[derive(Default)]
struct Shown {
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    content: Vec<u8>,
}

impl Sink for Shown {
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

impl Shown {
    /// Of a response that has ended; the next begins.
    fn of(&mut self, read: ResponseEnd) -> Answer {
        let Shown { fields, content } = std::mem::take(self);
        let trimmed = |(name, value): (_, Vec<u8>)| (name, value.trim_ascii().to_vec());
        Answer {
            read,
            fields: fields.into_iter().map(trimmed).collect(),
            content,
        }
    }
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Clean,
    Closed(ClosedError),
    Broken(ParseError),
    /// A request had begun, or not; the client was waiting for 100 (Continue), or not.
    Open(bool, bool),
}

/// All that was read of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read<E> {
    pub(crate) complete: Vec<Message<E>>,
    pub(crate) end: End,
}

/// What a request's fields and first line decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The method is HEAD.
    pub is_head: bool,
    /// Minor version.
    pub minor: u8,
    /// The client means to send more.
    pub keep_alive: bool,
}

/// Feeds pieces to a parser, which says how many bytes of what is left it has used, and what has
/// ended with them. Gives what has ended, and what broke it.
fn feed<E>(
    pieces: &[&[u8]],
    mut parse: impl FnMut(&[u8]) -> Result<(usize, Option<E>), ParseError>,
) -> (Vec<Message<E>>, Option<ParseError>) {
    let (mut complete, mut used) = (Vec::new(), 0);
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let (consumed, end) = match parse(rest) {
                Ok(fed) => fed,
                Err(error) => return (complete, Some(error)),
            };
            used += consumed;
            rest = &rest[consumed..];
            match end {
                None => assert!(rest.is_empty(), "bytes are left and more are wanted"),
                Some(end) => complete.push(Message { used, end }),
            }
        }
    }
    (complete, None)
}

/// Reads responses until the pieces end, and the connection with them.
pub(crate) fn responses(limit: u32, to_head: bool, pieces: &[&[u8]]) -> Read<Answer> {
    let mut parser = ResponseParser::with_head_limit(limit);
    let mut shown = Shown::default();
    parser.begin(to_head);
    let (mut complete, broken) = feed(pieces, |bytes| {
        let fed = parser.feed_with(bytes, &mut shown)?;
        let end = match fed.event {
            response::Progress::NeedMore => {
                assert!(parser.is_begun(), "bytes came");
                None
            }
            response::Progress::Complete(end) => {
                assert!(!parser.is_begun() && !parser.head_complete());
                parser.begin(to_head);
                Some(shown.of(end))
            }
        };
        Ok((fed.consumed, end))
    });
    if let Some(error) = broken {
        let end = End::Broken(error);
        return Read { complete, end };
    }
    let in_content = parser.head_complete();
    let end = match parser.finish_on_close() {
        Ok(end) => {
            assert!(in_content, "only content can end with the connection");
            let used = pieces.iter().map(|piece| piece.len()).sum();
            let end = shown.of(end);
            complete.push(Message { used, end });
            End::Clean
        }
        Err(closed) => End::Closed(closed),
    };
    Read { complete, end }
}

/// Reads requests until the pieces end.
pub(crate) fn requests(limit: u32, pieces: &[&[u8]]) -> Read<Asked> {
    let mut parser = RequestParser::with_head_limit(limit);
    let mut waits = false;
    let (complete, broken) = feed(pieces, |bytes| {
        let fed = parser.feed(bytes)?;
        let request::Progress::Complete(end) = fed.event else {
            waits |= parser.take_continue();
            return Ok((fed.consumed, None));
        };
        if let Some(target) = end.target {
            let target = bytes[..fed.consumed].get(target);
            let target = target.expect("it lies in the request");
            let visible = |byte: &u8| *byte > b' ' && *byte != 0x7f;
            assert!(!target.is_empty() && target.iter().all(visible));
        }
        waits = false;
        assert!(!parser.is_begun() && !parser.take_continue());
        let asked = Asked {
            is_head: end.is_head,
            minor: end.minor,
            keep_alive: end.keep_alive,
        };
        Ok((fed.consumed, Some(asked)))
    });
    let open = End::Open(parser.is_begun(), waits);
    let end = broken.map_or(open, End::Broken);
    Read { complete, end }
}
