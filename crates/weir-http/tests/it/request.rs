//! Requests with known answers. Every one is fed whole, cut and byte by byte.

use weir_http::ParseError;
use weir_http::request::{HEAD_LIMIT, Progress, RequestParser};

use crate::driver::{Requests, all_request_cuts};

fn read(bytes: &[u8]) -> Requests {
    all_request_cuts(HEAD_LIMIT, bytes)
}

#[test]
fn requests_in_a_row() {
    let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nHEAD /x HTTP/1.1\r\nConnection: close\r\n\r\n\
        \r\nGET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\nconnection: keep-alive\n\n";
    let first = [(false, 1, true), (true, 1, false)];
    let expected = [first, [(false, 0, false), (false, 0, true)]].concat();
    assert_eq!(read(bytes), (expected, None, false));
}

#[test]
fn content_is_skipped() {
    let bytes = b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /\
        POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
        3;x\r\nGET\r\n0\r\nConnection: keep-alive\r\n\r\n\
        PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
    let expected = vec![(false, 1, true), (false, 1, false), (false, 1, true)];
    assert_eq!(read(bytes), (expected, None, false));
}

#[test]
fn a_trailer_section_decides_nothing() {
    let bytes = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\
        Connection: close\r\nContent-Length: x\r\n\r\n";
    assert_eq!(read(bytes), (vec![(false, 1, true)], None, false));
}

#[test]
fn what_is_no_request() {
    let line = ParseError::RequestLine;
    #[rustfmt::skip]
    let cases: [(&str, ParseError); 23] = [
        ("GET /\r\n\r\n", line),
        ("GET  / HTTP/1.1\r\n\r\n", line),
        ("GET / HTTP/1.1 \r\n\r\n", line),
        ("GET /a b HTTP/1.1\r\n\r\n", line),
        ("GET / HTTP/2.0\r\n\r\n", line),
        ("GET / HTTP/1.2\r\n\r\n", line),
        (" / HTTP/1.1\r\n\r\n", line),
        ("G(T / HTTP/1.1\r\n\r\n", line),
        ("GET HTTP/1.1\r\n\r\n", line),
        ("\u{16}\u{3}\u{1}", line),
        ("GET / HTTP/1.1\r\r\n\r\n", line),
        ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", ParseError::Control),
        ("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", ParseError::Control),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", ParseError::FieldLine),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", ParseError::FieldLine),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", ParseError::FieldLine),
        ("GET / HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\n", ParseError::ContentLength),
        ("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", ParseError::ContentLength),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", ParseError::TransferEncoding),
        ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", ParseError::TransferEncoding),
        ("GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         ParseError::TransferEncoding),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", ParseError::Chunk),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab", ParseError::Chunk),
    ];
    for (text, error) in cases {
        assert_eq!(read(text.as_bytes()), (vec![], Some(error), true), "{text}");
    }
}

#[test]
fn a_head_has_a_limit() {
    let bytes = b"GET /target HTTP/1.1\r\nConnection: x,\r\n y\r\n\r\n";
    for limit in 1..bytes.len() as u32 + 2 {
        let (complete, error, _) = all_request_cuts(limit, bytes);
        let too_large = (limit < bytes.len() as u32).then_some(ParseError::HeadTooLarge { limit });
        assert_eq!(complete.len(), usize::from(error.is_none()));
        assert_eq!(error, too_large);
    }
}

#[test]
fn a_client_that_waits_for_100_is_told_once() {
    let head = b"POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
    let mut parser = RequestParser::default();
    for byte in &head[..head.len() - 1] {
        parser.feed(&[*byte]).expect("part of a head");
        assert!(!parser.take_continue());
    }
    parser.feed(b"\n").expect("end of the head");
    assert!(parser.take_continue() && !parser.take_continue());
    let fed = parser.feed(b"hi").expect("content");
    assert!(matches!(fed.event, Progress::Complete(_)));

    let with_content = [&head[..], b"hi"].concat();
    parser.feed(&with_content).expect("a request");
    assert!(!parser.take_continue(), "the content is already here");
    let bare = b"GET / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n";
    parser.feed(bare).expect("a request");
    assert!(!parser.take_continue(), "there is no content to wait for");
}

#[test]
fn the_parser_says_which_kind_of_error_it_was() {
    use weir_model::load::ErrorKind;
    let too_large = ParseError::HeadTooLarge { limit: 10 };
    assert_eq!(too_large.kind(), ErrorKind::HeadTooLarge);
    assert_eq!(ParseError::Unsolicited.kind(), ErrorKind::Unsolicited);
    assert_eq!(ParseError::Chunk.kind(), ErrorKind::Malformed);
}
