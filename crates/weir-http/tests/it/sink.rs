//! Data passed to a sink, and data skipped. Properties of arbitrary bytes, and comparisons with httparse, are in
//! weir-fuzz.

use proptest::prelude::*;
use weir_http::Sink;
use weir_http::response::{ClosedError, HEAD_LIMIT, Progress, ResponseParser};

/// Collects the fields and the content passed to a sink.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct CollectedResponse {
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    content: Vec<u8>,
}

impl Sink for CollectedResponse {
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

impl CollectedResponse {
    /// Fields with values as defined by RFC 9110 §5.5: without white space around them.
    fn fields(&self) -> Vec<(&[u8], Vec<u8>)> {
        self.fields.iter().map(|(name, raw)| (&name[..], raw.trim_ascii().to_vec())).collect()
    }
}

/// Reads the first response in `pieces`. Returns the data passed to the sink, and the end as text.
fn see<'p>(
    to_head: bool,
    limit: u32,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> (CollectedResponse, String) {
    let mut parser = ResponseParser::with_head_limit(limit);
    parser.begin(to_head);
    let mut collected = CollectedResponse::default();
    for piece in pieces {
        match parser.feed_with(piece, &mut collected) {
            // What was seen before a fault may depend on the cuts.
            Err(error) => return (CollectedResponse::default(), error.to_string()),
            Ok(fed) => {
                if let Progress::Complete(end) = fed.event {
                    return (collected, format!("{end:?}"));
                }
            }
        }
    }
    let end = parser.finish_on_close();
    match end {
        Err(ClosedError::Unanswered) => (CollectedResponse::default(), String::new()),
        end => (collected, format!("{end:?}")),
    }
}

fn all_cuts(to_head: bool, limit: u32, bytes: &[u8]) -> (CollectedResponse, String) {
    let uncut = see(to_head, limit, [bytes]);
    // Of a head that is cut off, a name may still be carried over.
    let complete = uncut.1.starts_with("ResponseEnd") || uncut.1.starts_with("Ok");
    let pairs = (0..=bytes.len()).map(|cut| {
        let (front, back) = bytes.split_at(cut);
        (see(to_head, limit, [front, back]), format!("cut at {cut}"))
    });
    let single = (see(to_head, limit, bytes.chunks(1)), "byte by byte".to_owned());
    for (cut, at) in pairs.chain([single]) {
        assert_eq!(cut.1, uncut.1, "{at}");
        assert!(!complete || cut.0 == uncut.0, "{at}: {cut:?} and not {uncut:?}");
    }
    uncut
}

#[test]
fn the_final_head_is_shown_and_interim_ones_and_trailers_are_not() {
    let bytes = b"HTTP/1.1 100 Continue\r\nA: a\r\n\r\nHTTP/1.1 200 B: b\r\nC:c\r\n\
        Transfer-Encoding: chunked\r\nA-Name-That-Is-Longer-Than-Seventeen:\r\nD: d\r\n e\r\n\
        Connection: x\r\n\ty\r\n\r\n2\r\nhi\r\n1;x=y\r\n!\r\n0\r\nT: t\r\n\r\n";
    let (seen, _) = all_cuts(false, HEAD_LIMIT, bytes);
    let fields: Vec<(&[u8], Vec<u8>)> = [
        ("C", "c"),
        ("Transfer-Encoding", "chunked"),
        ("A-Name-That-Is-Longer-Than-Seventeen", ""),
        ("D", "d e"),
        ("Connection", "x y"),
    ]
    .map(|(name, value)| (name.as_bytes(), value.as_bytes().to_vec()))
    .to_vec();
    assert_eq!(seen.fields(), fields);
    assert_eq!(seen.content, b"hi!");
}

#[test]
fn content_that_came_unseen_is_counted_and_completes_the_response() {
    let mut parser = ResponseParser::default();
    assert_eq!(parser.content_left(), None);
    parser.begin(false);
    assert_eq!(parser.content_left(), None);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\nab";
    let fed = parser.feed(head).expect("a head");
    assert_eq!((fed.consumed, fed.event), (head.len(), Progress::NeedMore));
    assert_eq!(parser.content_left(), Some(9_999_999_998));
    assert_eq!(parser.skip(0), Progress::NeedMore);
    assert_eq!(parser.skip(9_999_999_996), Progress::NeedMore);
    parser.feed(b"y").expect("content");
    assert_eq!(parser.content_left(), Some(1));
    let Progress::Complete(end) = parser.skip(1) else {
        panic!("not complete");
    };
    assert_eq!((end.content_bytes, end.status), (10_000_000_000, 200));
    assert_eq!(parser.content_left(), None);
    assert!(!parser.is_begun(), "the next response has not begun");
}

#[test]
fn only_content_of_a_known_length_has_some_left() {
    for fields in ["Transfer-Encoding: chunked\r\n", "", "Content-Length: 0\r\n"] {
        let mut parser = ResponseParser::default();
        parser.begin(false);
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        parser.feed(head.as_bytes()).expect("a head");
        assert_eq!(parser.content_left(), None, "{fields}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Skipping parts of the content has the same result as reading them.
    #[test]
    fn skipped_content_counts_like_content_that_was_read(
        length in 1_u64..200,
        steps in prop::collection::vec((any::<bool>(), 1_u64..60), 0..20),
    ) {
        let mut parser = ResponseParser::default();
        parser.begin(false);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        parser.feed(head.as_bytes()).expect("a head");
        let (mut end, mut gone) = (None, 0);
        for (skip, step) in steps.into_iter().chain([(true, length)]) {
            let bytes = step.min(length - gone);
            prop_assert_eq!(parser.content_left(), Some(length - gone));
            let progress = if skip {
                parser.skip(bytes)
            } else {
                parser.feed(&vec![b'x'; bytes as usize]).expect("content").event
            };
            gone += bytes;
            if let Progress::Complete(complete) = progress {
                end = Some(complete);
                break;
            }
        }
        prop_assert_eq!(gone, length);
        prop_assert_eq!(end.map(|end| end.content_bytes), Some(length));
    }
}
