//! Responses with known answers. Every one is fed whole, cut at each point and byte by byte.

use weir_http::ParseError;
use weir_http::response::{ClosedError, HEAD_LIMIT, Progress, ResponseEnd, ResponseParser};

use crate::driver::{End, Outcome, all_cuts, responses};

/// Feeds the response to one GET.
fn get(bytes: impl AsRef<[u8]>) -> Outcome {
    all_cuts(HEAD_LIMIT, &[false], bytes.as_ref())
}

/// Returns the only response in `bytes` as (status, keep alive, content bytes).
#[track_caller]
fn parse_single(bytes: impl AsRef<[u8]>) -> (u16, bool, u64) {
    let text = bytes.as_ref().escape_ascii();
    let outcome = get(&bytes);
    assert_eq!(outcome.end, End::Clean, "{text}");
    let [end] = outcome.complete[..] else {
        panic!("{} responses: {text}", outcome.complete.len());
    };
    (end.status, end.keep_alive, end.content_bytes)
}

#[track_caller]
fn refused(bytes: impl AsRef<[u8]>, error: ParseError) {
    let text = bytes.as_ref().escape_ascii();
    assert_eq!(get(&bytes).end, End::Broken(error), "{text}");
}

const NGINX: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.26.3\r\n\
    Date: Tue, 04 Nov 2025 10:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\
    Last-Modified: Tue, 04 Nov 2025 09:00:00 GMT\r\nConnection: keep-alive\r\n\
    ETag: \"690a0000-400\"\r\nAccept-Ranges: bytes\r\n\r\nabc\r\n\r\n";

#[test]
fn a_usual_response() {
    let outcome = get(NGINX);
    let end = ResponseEnd {
        status: 200,
        keep_alive: true,
        content_bytes: 7,
        head_bytes: (NGINX.len() - 7) as u64,
    };
    assert_eq!((outcome.complete, outcome.end), (vec![end], End::Clean));
}

#[test]
fn responses_in_one_buffer_are_told_apart() {
    let unmodified = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n";
    let three = [NGINX, unmodified, NGINX].concat();
    let statuses: Vec<u16> = get(&three).complete.iter().map(|end| end.status).collect();
    assert_eq!(statuses, [200, 304, 200]);
}

#[test]
fn content_length() {
    for (fields, length) in [
        ("Content-Length: 3", 3),
        ("content-LENGTH:3", 3),
        ("Content-Length: \t 003 \t", 3),
        ("Content-Length: 3, 3", 3),
        ("Content-Length: 3\r\nContent-Length: 3", 3),
        ("Content-Length: 0", 0),
    ] {
        let content = &"abc"[..length];
        let bytes = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{content}");
        assert_eq!(parse_single(bytes), (200, true, length as u64));
    }
    for value in "|-1|+1|1a|0x1|3, 4|3,,3|3 3|1.5|18446744073709551616".split('|') {
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\nabc");
        refused(bytes, ParseError::ContentLength);
    }
    let differing = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd";
    refused(differing, ParseError::ContentLength);
}

#[test]
fn chunked_content() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let trailer = "Trailer-Field: x\r\nContent-Length: nonsense\r\nfold: a\r\n b\r\n\r\n";
    for (content, length) in [
        ("3\r\nabc\r\n0\r\n\r\n", 3),
        ("0\r\n\r\n", 0),
        ("00a\r\n0123456789\r\n1\nx\n000\n\n", 11),
        ("3;name=value;other=\"quoted\"\r\na\nb\r\n0;last\r\n\r\n", 3),
        ("3 \t;x\r\nabc\r\n0 ; x = y ; z\r\n\r\n", 3),
        ("3;x=\"a\\\"b;c\";y\nabc\r\n0;x=1\n\n", 3),
        (&format!("2\r\n\r\n\r\n0\r\n{trailer}"), 2),
    ] {
        assert_eq!(parse_single(format!("{head}{content}")), (200, true, length));
    }
    let broken = "\r\n|;x\r\n| 3\r\n|g\r\n|3x\r\nabc|3\rabc|-1\r\n|0x3\r\n|3\r\nabcd\r\n|\
        3\r\nabc\rx|10000000000000000\r\n|3 3\r\n|3;a\rb\r\n|3;\r\r\n|3;a\0\r\n|3 \r;\r\n|\
        3 \r\n|3\t\n|3;\r\n|3;\n|3; \r\n|3 ;\r\n|3;;a\r\n|3;a;\r\n|3;a \r\n|3;a=b \r\n|3;=b\r\n|3;a=\r\n|\
        3;a= \r\n|3;a b\r\n|3;a=b=c\r\n|3;\"a\"\r\n|3;a=\"b\"c\r\n|3;a=\"b\r\n|3;a=\"b\n\"\r\n|3;a=\"\0\"\r\n|\
        3;a=\"\\\r\n|3;\x7f\r\n|3;a=\"\x7f\"\r\n|0 \r\n|0;\r\n|0a ;\n";
    for content in broken.split('|') {
        refused(format!("{head}{content}"), ParseError::Chunk);
    }
    refused(format!("{head}0\r\nno colon\r\n\r\n"), ParseError::FieldLine);
}

#[test]
fn an_endless_chunk_extension_is_refused() {
    let extension = "x".repeat(20_000);
    let bytes = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;{extension}\r\nabc\r\n0\r\n\r\n"
    );
    for step in [1, 7, 5000, bytes.len()] {
        let pieces = bytes.as_bytes().chunks(step);
        let outcome = responses(ResponseParser::default(), &[false], pieces);
        assert_eq!(outcome.end, End::Broken(ParseError::Chunk));
    }
}

#[test]
fn transfer_encoding_decides_before_content_length() {
    let chunked = "chunked|Chunked|gzip, chunked|gzip;a=\"b, c\" , chunked,|chunked, chunked";
    for coding in chunked.split('|') {
        for length in ["Content-Length: 1\r\n", "Content-Length: nonsense\r\n", ""] {
            let bytes = format!(
                "HTTP/1.1 200 OK\r\n{length}Transfer-Encoding: {coding}\r\n\r\n2\r\nab\r\n0\r\n\r\n"
            );
            assert_eq!(parse_single(bytes), (200, true, 2));
        }
    }
    // These last until the close.
    for coding in "gzip|chunked, gzip|chunked;q=1|identity|x;a=\", chunked".split('|') {
        let bytes = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: {coding}\r\n\r\n2\r\nab\r\n"
        );
        assert_eq!(parse_single(bytes), (200, false, 7));
    }
    let over_lines =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n\
        1\r\na\r\n0\r\n\r\n";
    assert_eq!(parse_single(over_lines), (200, true, 1));
    let empty = b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\nContent-Length: 1\r\n\r\na";
    assert_eq!(parse_single(empty), (200, true, 1));
}

#[test]
fn content_until_the_close() {
    assert_eq!(parse_single("HTTP/1.1 200 OK\r\n\r\n"), (200, false, 0));
    let keep_alive = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nabc";
    assert_eq!(parse_single(keep_alive), (200, false, 3));
    let old = "HTTP/1.0 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    assert_eq!(parse_single(old), (200, false, 19));
}

#[test]
fn no_content_whatever_the_fields_say() {
    let fields = "|Content-Length: 5\r\n|Transfer-Encoding: chunked\r\n|Content-Length: x\r\n";
    for fields in fields.split('|') {
        for status in [204, 304] {
            let bytes = format!("HTTP/1.1 {status} \r\n{fields}\r\n");
            assert_eq!(parse_single(bytes), (status, true, 0));
        }
        let bytes =
            format!("HTTP/1.1 200 OK\r\n{fields}\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
        let outcome = all_cuts(HEAD_LIMIT, &[true, false], bytes.as_bytes());
        let contents: Vec<u64> = outcome.complete.iter().map(|end| end.content_bytes).collect();
        assert_eq!(contents, [0, 1], "HEAD: {fields}");
        assert_eq!(outcome.end, End::Clean, "HEAD: {fields}");
    }
}

#[test]
fn interim_responses_are_skipped() {
    let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\
        Connection: close\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n\
        HTTP/1.1 102 \r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
    assert_eq!(parse_single(bytes), (200, true, 2));
    // Interim heads are included.
    let head_bytes = get(bytes).complete[0].head_bytes;
    assert_eq!(head_bytes, (bytes.len() - 2) as u64);
    let switched = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
    refused(switched, ParseError::Switched);
}

#[test]
fn persistence() {
    let cases = [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "connection: foo, CLOSE ,bar\r\n", false),
        ("1.1", "Connection: foo\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed, not-close\r\n", true),
        ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.1", "Connection: foo,\r\n  close\r\n", false),
        ("1.1", "X: y\r\n Connection: close\r\n", true),
        ("1.1", "Connectios: close\r\nXonnection: close\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ];
    for (version, fields, keep_alive) in cases {
        let bytes = format!("HTTP/{version} 200 OK\r\n{fields}Content-Length: 1\r\n\r\na");
        assert_eq!(parse_single(bytes), (200, keep_alive, 1));
    }
    // RFC 9112 §6.1.
    let old_and_chunked =
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n\
        1\r\na\r\n0\r\n\r\n";
    assert_eq!(parse_single(old_and_chunked), (200, false, 1));
}

#[test]
fn lines_as_loose_as_the_rfc_allows() {
    for bytes in [
        &b"\r\n\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"[..],
        b"HTTP/1.1 200 OK\nServer: x\nContent-Length: 1\n\na",
        b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.1 200\nContent-Length: 1\n\na",
        b"HTTP/1.1 200 \xff\x80 reason\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.7 200 OK\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 1\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\t\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nX: \xff\r\n y\r\n\tz: :\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nX:\r\nContent-Length: 1\r\n\r\na",
    ] {
        assert_eq!(parse_single(bytes), (200, true, 1));
    }
}

/// A TLS server answers a request in clear text with an alert, whichever version it speaks. OpenSSL sends
/// `unexpected_message`, `protocol_version` or `decode_error`.
#[test]
fn tls_is_told_from_other_nonsense() {
    for bytes in [
        &b"\x15\x03\x01\x00\x02\x02\x46"[..],
        b"\x15\x03\x03\x00\x02\x02\x0a",
        b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03\x00\x00\x00\x00\x00",
    ] {
        refused(bytes, ParseError::Tls);
    }
}

#[test]
fn what_is_no_response() {
    for bytes in [
        &b"HTTP/2 200\r\n\r\n"[..],
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"http/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"SSH-2.0-OpenSSH_10.0\r\n",
        b"\x15\x01\x03\x00",
        b"\x17\x03\x03\x00\x02",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\rHTTP/1.1 200 OK\r\n\r\n",
        b" HTTP/1.1 200 OK\r\n\r\n",
    ] {
        refused(bytes, ParseError::StatusLine);
    }
    for line in "no colon|: no name|name : x|a@b: x|na\0me: x|na\rme: x|\u{e4}: x".split('|') {
        let bytes = format!("HTTP/1.1 200 OK\r\nX: y\r\n{line}\r\n\r\n");
        refused(bytes, ParseError::FieldLine);
    }
    let fold_of_nothing = b"HTTP/1.1 200 OK\r\n X: y\r\n\r\n";
    refused(fold_of_nothing, ParseError::FieldLine);
}

/// RFC 9112 §2.2 and RFC 9110 §5.5, in every part of a message except the content.
#[test]
fn cr_without_lf_and_nul_are_refused() {
    for byte in ['\r', '\0'] {
        let heads = [
            format!("200 O{byte}K\r\n"),
            format!("200 {byte}\r\n"),
            format!("200 OK{byte}\r\n"),
            format!("200 OK\r\nX: {byte}y\r\n"),
            format!("200 OK\r\nX:{byte}\r\n"),
            format!("200 OK\r\nX: y{byte}Content-Length: 9\r\n"),
            format!("200 OK\r\nX: y{byte}\r\n"),
            format!("200 OK\r\nX: y{byte}{byte}\n"),
            format!("200 OK\r\nContent-Length: {byte}1\r\n"),
            format!("200 OK\r\nContent-Length: 1{byte}\r\n"),
            format!("200 OK\r\nConnection: x,\r\n {byte}close\r\n"),
            format!("200 OK\r\nA-Name-That-Is-Longer-Than-Seventeen: {byte}x\r\n"),
            format!("100 Continue{byte}\r\n"),
        ];
        for head in heads {
            let bytes = format!("HTTP/1.1 {head}Content-Length: 1\r\n\r\na");
            refused(bytes, ParseError::Control);
        }
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
        refused(format!("{chunked}T: a{byte}b\r\n\r\n"), ParseError::Control);
        // Content is not looked at.
        let content = format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na{byte}b");
        assert_eq!(parse_single(content), (200, true, 3));
    }
    refused("HTTP/1.1 200 OK\r\rX: y\r\n\r\n", ParseError::Control);
    refused("HTTP/1.1 200\rContent-Length: 1\r\n\r\na", ParseError::Control);
    refused("HTTP/1.1 200 OK\r\nX: y\r\n\rz\r\n\r\n", ParseError::Control);
}

#[test]
fn a_close_before_the_end_is_told() {
    for cut in 0..NGINX.len() {
        let outcome = responses(ResponseParser::default(), &[false], [&NGINX[..cut]]);
        let closed = [ClosedError::Unanswered, ClosedError::Early][cut.min(1)];
        assert_eq!(outcome.end, End::Closed(closed), "cut at {cut}");
    }
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(get(interim).end, End::Closed(ClosedError::Early));
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n";
    assert_eq!(get(chunked).end, End::Closed(ClosedError::Early));
}

#[test]
fn bytes_that_nobody_asked_for() {
    let mut parser = ResponseParser::default();
    assert_eq!(parser.feed(b"H"), Err(ParseError::Unsolicited));
    parser.begin(false);
    parser.feed(NGINX).expect("a response");
    assert_eq!(parser.feed(b"H"), Err(ParseError::Unsolicited));
    let nothing = parser.feed(b"").expect("nothing came");
    assert_eq!(nothing.event, Progress::NeedMore);
}

#[test]
fn first_byte_and_head_are_told() {
    let mut parser = ResponseParser::default();
    parser.begin(false);
    assert!(!parser.is_begun());
    let (head, content) = NGINX.split_at(NGINX.len() - 7);
    for byte in &head[..head.len() - 1] {
        parser.feed(&[*byte]).expect("part of a head");
        assert!(parser.is_begun() && !parser.head_complete());
    }
    let last = &head[head.len() - 1..];
    parser.feed(last).expect("end of the head");
    assert!(parser.is_begun() && parser.head_complete());
    parser.feed(content).expect("the content");
    assert!(!parser.is_begun(), "the next response has not begun");
}

/// Feeds a connection in pieces of `step` bytes and returns its end.
fn end_in_steps(bytes: &str, limit: u32, step: usize) -> End {
    let parser = ResponseParser::with_head_limit(limit);
    responses(parser, &[false], bytes.as_bytes().chunks(step)).end
}

#[test]
fn any_number_of_fields_up_to_the_limit() {
    let fields = "X-Field: some value\r\n".repeat(400);
    let [value, name] = ["v", "n"].map(|letter| letter.repeat(3000));
    let long = format!("X-Long: {value}\r\n{name}: y\r\n");
    let bytes = format!("HTTP/1.1 200 OK\r\n{fields}{long}Content-Length: 1\r\n\r\na");
    assert_eq!(parse_single(&bytes), (200, true, 1));

    let head = (bytes.len() - 1) as u32;
    for step in [1, 2, 97, bytes.len()] {
        // A head exactly as long as the limit.
        assert_eq!(end_in_steps(&bytes, head, step), End::Clean);
        for limit in [head - 1, 5000, 17, 16, 1] {
            let too_large = End::Broken(ParseError::HeadTooLarge { limit });
            assert_eq!(end_in_steps(&bytes, limit, step), too_large, "limit {limit}, step {step}");
        }
    }
}

#[test]
fn a_small_limit_is_kept_at_every_cut() {
    let bytes =
        b"HTTP/1.1 200 OK\r\nConnection: a,\r\n close\r\nContent-Length: 1\r\nX: y\r\n\r\na";
    for limit in 1..bytes.len() as u32 + 2 {
        let outcome = all_cuts(limit, &[false], bytes);
        let fits = limit >= bytes.len() as u32 - 1;
        let clean = outcome.end == End::Clean;
        assert_eq!(clean, fits, "limit {limit}: {outcome:?}");
        if !fits {
            let as_long = all_cuts(limit, &[false], &bytes[..limit as usize]);
            let early = End::Closed(ClosedError::Early);
            assert_eq!(as_long.end, early, "not a byte beyond the limit");
        }
    }
}

#[test]
fn a_trailer_section_has_the_limit_for_itself() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let limit = head.len() as u32;
    let too_large = ParseError::HeadTooLarge { limit };
    for (length, end) in [(limit, End::Clean), (limit + 1, End::Broken(too_large))] {
        let value = "v".repeat(length as usize - "T: \r\n\r\n".len());
        let bytes = format!("{head}1\r\na\r\n0\r\nT: {value}\r\n\r\n");
        assert_eq!(all_cuts(limit, &[false], bytes.as_bytes()).end, end);
    }
    let folded = format!("{head}0\r\n T: t\r\n\r\n");
    let outcome = all_cuts(limit, &[false], folded.as_bytes());
    assert_eq!(outcome.end, End::Broken(ParseError::FieldLine));
}
