//! The encoder: known answers, refusals, and that its output is parsed as one request.

use proptest::prelude::*;
use weir_http::request::{EncodeError, Progress, RequestParser, encode};
use weir_model::load::RequestSpec;

fn spec(method: &str, target: &str, fields: &[(&str, &str)], content: &[u8]) -> RequestSpec {
    RequestSpec {
        method: method.to_owned(),
        target: target.to_owned(),
        fields: fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        content: content.to_vec(),
    }
}

fn text(spec: &RequestSpec) -> String {
    String::from_utf8(encode(spec, "example:8080").expect("a request")).expect("ASCII")
}

#[test]
fn known_requests() {
    let hosted = "HTTP/1.1\r\nHost: example:8080\r\n";
    let get = text(&RequestSpec::get("/a?b"));
    assert_eq!(get, format!("GET /a?b {hosted}\r\n"));
    let fields = [("B", "2"), ("hOST", "other"), ("A", "1")];
    let own_host = text(&spec("GET", "/", &fields, b""));
    assert_eq!(own_host, "GET / HTTP/1.1\r\nB: 2\r\nhOST: other\r\nA: 1\r\n\r\n");
    let post = text(&spec("POST", "/", &[("A", "1")], b"hi"));
    assert_eq!(post, format!("POST / {hosted}A: 1\r\nContent-Length: 2\r\n\r\nhi"));
    let put = text(&spec("PUT", "/", &[], b""));
    assert_eq!(put, format!("PUT / {hosted}Content-Length: 0\r\n\r\n"));
    // No second length where the user has given one.
    let request = text(&spec("POST", "/", &[("content-length", "2")], b"hi"));
    let lengths = request.to_ascii_lowercase().matches("content-length").count();
    assert_eq!(lengths, 1, "{request}");
}

fn refuse(spec: RequestSpec) -> EncodeError {
    encode(&spec, "host").expect_err("refused")
}

#[test]
fn what_would_not_come_out_as_meant_is_refused() {
    for method in ["", "GE T", "GET\r", "G\u{c9}T"] {
        let error = refuse(spec(method, "/", &[], b""));
        assert_eq!(error, EncodeError::Method(method.into()));
    }
    let error = refuse(spec("CONNECT", "a:1", &[], b""));
    assert_eq!(error, EncodeError::Connect);
    // The content is sent in one piece.
    for content in [&b""[..], b"0\r\n\r\n"] {
        let error = refuse(spec("POST", "/", &[("Transfer-Encoding", "chunked")], content));
        assert_eq!(error, EncodeError::TransferEncoding("chunked".into()));
    }
    for target in ["", "/a b", "/\r\nX: y", "/\0", "/\x7f"] {
        let error = refuse(spec("GET", target, &[], b""));
        assert_eq!(error, EncodeError::Target(target.into()));
    }
    for name in ["", "a b", "a:", "a\n"] {
        let error = refuse(spec("GET", "/", &[(name, "x")], b""));
        assert_eq!(error, EncodeError::FieldName(name.into()));
    }
    for value in ["a\r\nb: c", "\n", "\0"] {
        let error = refuse(spec("GET", "/", &[("X", value)], b""));
        assert_eq!(error, EncodeError::FieldValue("X".into()));
    }
    let length = refuse(spec("POST", "/", &[("Content-Length", "3")], b"hi")).to_string();
    assert_eq!(length, "field content-length says `3` and the content has 2 bytes");
    let host = encode(&RequestSpec::get("/"), "a b").expect_err("refused");
    assert_eq!(host.to_string(), "host `a b` holds white space or a control character");
}

proptest! {
    #[test]
    fn an_encoded_request_reads_back_as_one(
        method in "[A-Z]{1,10}",
        target in "/[!-~]{0,40}",
        fields in prop::collection::vec(("X-[!#-'*+.0-9A-Z^_`a-z|~-]{1,12}", "[ -~\u{80}-\u{ff}]{0,20}"), 0..6),
        content in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        prop_assume!(method != "CONNECT");
        let spec = RequestSpec { method: method.clone(), target: target.clone(), fields, content };
        let bytes = encode(&spec, "example").expect("a request");
        let fed = RequestParser::default().feed(&bytes).expect("readable");
        prop_assert_eq!(fed.consumed, bytes.len());
        let Progress::Complete(end) = fed.event else {
            return Err(TestCaseError::fail("not complete"));
        };
        prop_assert_eq!(end.is_head, method == "HEAD");
        prop_assert_eq!(end.target.map(|range| &bytes[range]), Some(target.as_bytes()));
    }
}
