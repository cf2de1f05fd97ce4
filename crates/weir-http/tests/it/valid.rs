//! A table of responses that a client has to accept: the cases documented by the test suites of other parsers (llhttp,
//! picohttpparser, h11, httparse), in messages of our own. Each is fed whole, cut at each point and byte by byte.

use weir_http::response::HEAD_LIMIT;

use crate::driver::{End, all_cuts};

/// Name of the case, bytes of the response, and its status, keep alive and content bytes.
type Row = (&'static str, &'static [u8], (u16, bool, u64));

#[rustfmt::skip]
const ROWS: [Row; 44] = [
    // The status line (RFC 9112 §4).
    ("reason", b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", (404, true, 0)),
    ("reason of one word", b"HTTP/1.1 301 MovedPermanently\r\nContent-Length: 0\r\n\r\n", (301, true, 0)),
    ("empty reason", b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("no reason, no space", b"HTTP/1.1 301\r\nContent-Length: 0\r\n\r\n", (301, true, 0)),
    ("blank reason", b"HTTP/1.1 200   \r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("reason behind two blanks", b"HTTP/1.1 200  OK\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("reason with a tab", b"HTTP/1.1 200 O\tK\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("reason in UTF-8", b"HTTP/1.1 500 \xe3\x81\x93\xe3\x82\x8c\r\nContent-Length: 0\r\n\r\n", (500, true, 0)),
    ("reason with marks", b"HTTP/1.1 418 I'm a (tea)pot: \"x\"\r\nContent-Length: 0\r\n\r\n", (418, true, 0)),
    ("a code that is not registered", b"HTTP/1.1 599 Odd\r\nContent-Length: 0\r\n\r\n", (599, true, 0)),
    ("HTTP/1.0", b"HTTP/1.0 200 OK\r\n\r\n", (200, false, 0)),
    ("a later minor version", b"HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("empty line before", b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("lines that end in LF", b"HTTP/1.1 200 OK\nX: y\nContent-Length: 2\n\nab", (200, true, 2)),
    // Fields (RFC 9110 §5, RFC 9112 §5).
    ("no field", b"HTTP/1.1 404 Not Found\r\n\r\n", (404, false, 0)),
    ("underscores", b"HTTP/1.1 200 OK\r\nA_b_: c\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("a dollar", b"HTTP/1.1 200 OK\r\nX-$Version: 1\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("names that begin oddly", b"HTTP/1.1 200 OK\r\n.a: b\r\n_c: d\r\n1e: f\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("empty values", b"HTTP/1.1 200 OK\r\nA:\r\nB: \r\nC:\t\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("blanks around values", b"HTTP/1.1 200 OK\r\nA:  b \t \r\nContent-Length:\t 2 \t\r\n\r\nab", (200, true, 2)),
    ("colons in a value", b"HTTP/1.1 200 OK\r\nA: b:c: :d\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("obs-text in a value", b"HTTP/1.1 200 OK\r\nA: caf\xe9 \xff\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("a folded value", b"HTTP/1.1 200 OK\r\nA: b\r\n  \tc\r\n d\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("a quoted string", b"HTTP/1.1 200 OK\r\nA: \"b, \\\"c\\\"; d\"\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    ("a name nearly of interest", b"HTTP/1.1 200 OK\r\nContent-Length-X: 9\r\nContent-Length: 0\r\n\r\n", (200, true, 0)),
    // Persistence (RFC 9112 §9.3).
    ("another proxy's option", b"HTTP/1.1 200 OK\r\nProxy-Connection: close\r\nContent-Length: 1\r\n\r\na", (200, true, 1)),
    ("HTTP/1.0 that goes on", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na", (200, true, 1)),
    ("an offer of another protocol", b"HTTP/1.1 200 OK\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 4\r\n\r\nbody", (200, true, 4)),
    // Content (RFC 9112 §6.3).
    ("no content, whatever is said", b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", (204, true, 0)),
    ("a length said twice", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab", (200, true, 2)),
    ("a length in a list", b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab", (200, true, 2)),
    ("until the close", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<x>\r\n</x>", (200, false, 9)),
    ("until the close, though kept", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nHTTP/1.0 200 OK", (200, false, 15)),
    ("a coding that is not the last", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, deflate\r\n\r\nWorld", (200, false, 5)),
    ("a coding that is not chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunkedchunked\r\n\r\n0\r\n\r\n", (200, false, 5)),
    ("an empty coding", b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\nContent-Length: 2\r\n\r\nab", (200, true, 2)),
    // Chunks (RFC 9112 §7.1).
    ("chunks", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n00a\r\nworld 2345\r\n0\r\n\r\n", (200, true, 16)),
    ("sizes in both cases", b"HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\nb\r\n01234567890\r\n0\r\n\r\n", (200, true, 37)),
    ("extensions", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b;c\r\nab\r\n2 ; d = \"e; \\\"f\"\r\ncd\r\n0;g\r\n\r\n", (200, true, 4)),
    ("blanks around the signs of extensions", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 \t;\ta \t= b ; c ;d= \"\"\r\nab\r\n0 ;e\r\n\r\n", (200, true, 2)),
    ("any text in quotes", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=\"\\\\ \xe9;\t=\"\r\nab\r\n0\r\n\r\n", (200, true, 2)),
    ("trailer fields", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nVary: *\r\nA:\r\n\r\n", (200, true, 2)),
    ("a line end as data", b"HTTP/1.1 301 Moved\r\nTransfer-Encoding: chunked\r\n\r\n1\n\n\r\n2\r\n\r\n\r\n0\r\n\r\n", (301, true, 3)),
    // Interim responses (RFC 9110 §15.2).
    ("after 100 and 103", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", (200, true, 1)),
];

#[test]
fn every_valid_response_is_taken() {
    for (name, bytes, expected) in ROWS {
        let outcome = all_cuts(HEAD_LIMIT, &[false], bytes);
        assert_eq!(outcome.end, End::Clean, "{name}");
        let read: Vec<_> = outcome
            .complete
            .iter()
            .map(|end| (end.status, end.keep_alive, end.content_bytes))
            .collect();
        assert_eq!(read, [expected], "{name}");
    }
}
