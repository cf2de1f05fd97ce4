//! Feeds parsers in pieces and collects the results.

use weir_http::ParseError;
use weir_http::request::{self, RequestParser};
use weir_http::response::{self, ClosedError, ResponseEnd, ResponseParser};

/// Result of a connection's bytes: the complete responses, then the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) complete: Vec<ResponseEnd>,
    pub(crate) end: End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// All bytes belonged to complete responses, or the last response ended with the connection.
    Clean,
    Closed(ClosedError),
    Broken(ParseError),
}

/// Feeds `pieces` to a response parser, then closes. `heads` tells for each request whether it was HEAD; the last entry
/// holds for all that follow.
pub(crate) fn responses<'p>(
    mut parser: ResponseParser,
    heads: &[bool],
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Outcome {
    let mut complete = Vec::new();
    let head = |index: usize| heads[index.min(heads.len() - 1)];
    parser.begin(head(0));
    for piece in pieces {
        let mut remaining = piece;
        while !remaining.is_empty() {
            let fed = match parser.feed(remaining) {
                Ok(fed) => fed,
                Err(error) => {
                    let end = End::Broken(error);
                    return Outcome { complete, end };
                }
            };
            assert!(fed.consumed <= remaining.len());
            remaining = &remaining[fed.consumed..];
            match fed.event {
                response::Progress::NeedMore => assert!(remaining.is_empty()),
                response::Progress::Complete(end) => {
                    complete.push(end);
                    parser.begin(head(complete.len()));
                }
            }
        }
    }
    let end = match parser.finish_on_close() {
        Ok(end) => {
            complete.push(end);
            End::Clean
        }
        Err(ClosedError::Unanswered) if !complete.is_empty() => End::Clean,
        Err(closed) => End::Closed(closed),
    };
    Outcome { complete, end }
}

/// Feeds the bytes whole, cut in two at every point, and byte by byte; all results must be equal.
pub(crate) fn all_cuts(limit: u32, heads: &[bool], bytes: &[u8]) -> Outcome {
    let parser = || ResponseParser::with_head_limit(limit);
    let uncut = responses(parser(), heads, [bytes]);
    for cut in 0..=bytes.len() {
        let (front, back) = bytes.split_at(cut);
        assert_eq!(responses(parser(), heads, [front, back]), uncut, "cut at {cut}");
    }
    let single = responses(parser(), heads, bytes.chunks(1));
    assert_eq!(single, uncut, "byte by byte");
    uncut
}

/// Complete requests as (is HEAD, minor version, keep alive), the error if there was one, and true if a request had
/// begun and was not complete.
pub(crate) type Requests = (Vec<(bool, u8, bool)>, Option<ParseError>, bool);

/// Feeds `pieces` to a request parser.
pub(crate) fn requests<'p>(
    mut parser: RequestParser,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Requests {
    let mut complete = Vec::new();
    for piece in pieces {
        let mut remaining = piece;
        while !remaining.is_empty() {
            let fed = match parser.feed(remaining) {
                Ok(fed) => fed,
                Err(error) => return (complete, Some(error), true),
            };
            assert!(fed.consumed <= remaining.len());
            remaining = &remaining[fed.consumed..];
            match fed.event {
                request::Progress::NeedMore => assert!(remaining.is_empty()),
                request::Progress::Complete(end) => {
                    complete.push((end.is_head, end.minor, end.keep_alive));
                }
            }
        }
    }
    (complete, None, parser.is_begun())
}

/// Feeds requests whole, cut in two at every point, and byte by byte; all results must be equal.
pub(crate) fn all_request_cuts(limit: u32, bytes: &[u8]) -> Requests {
    let parser = || RequestParser::with_head_limit(limit);
    let uncut = requests(parser(), [bytes]);
    for cut in 0..=bytes.len() {
        let (front, back) = bytes.split_at(cut);
        assert_eq!(requests(parser(), [front, back]), uncut, "cut at {cut}");
    }
    assert_eq!(requests(parser(), bytes.chunks(1)), uncut, "byte by byte");
    uncut
}
