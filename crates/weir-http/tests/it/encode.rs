//! The encoder: known answers, refusals, and that what it writes reads back as one request.

use proptest::prelude::*;
use weir_http::request::{EncodeError, Progress, RequestParser, encode};
use weir_model::load::RequestSpec;

fn spec(method: &str, target: &str, fields: &[(&str, &str)], content: &[u8]) -> RequestSpec {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    RequestSpec {
        method: method.to_owned(),
        target: target.to_owned(),
        fields: fields.iter().map(own).collect(),
        content: content.to_vec(),
    }
}

fn text(spec: &RequestSpec) -> String {
    String::from_utf8(encode(spec, "example:8080").expect("a request")).expect("ASCII")
}

#[test]
fn known_requests() {
    let get = RequestSpec::get("/a?b");
    assert_eq!(
        text(&get),
        "GET /a?b HTTP/1.1\r\nHost: example:8080\r\n\r\n"
    );
    let fields = [("B", "2"), ("hOST", "other"), ("A", "1")];
    assert_eq!(
        text(&spec("GET", "/", &fields, b"")),
        "GET / HTTP/1.1\r\nB: 2\r\nhOST: other\r\nA: 1\r\n\r\n"
    );
    assert_eq!(
        text(&spec("POST", "/", &[("A", "1")], b"hi")),
        "POST / HTTP/1.1\r\nHost: example:8080\r\nA: 1\r\nContent-Length: 2\r\n\r\nhi"
    );
    assert_eq!(
        text(&spec("PUT", "/", &[], b"")),
        "PUT / HTTP/1.1\r\nHost: example:8080\r\nContent-Length: 0\r\n\r\n"
    );
    let chunked = spec(
        "POST",
        "/",
        &[("Transfer-Encoding", "chunked")],
        b"0\r\n\r\n",
    );
    assert!(
        !text(&chunked)
            .to_ascii_lowercase()
            .contains("content-length")
    );
    let own = spec("POST", "/", &[("content-length", "2")], b"hi");
    assert_eq!(
        text(&own)
            .to_ascii_lowercase()
            .matches("content-length")
            .count(),
        1
    );
}

#[test]
fn what_would_not_come_out_as_meant_is_refused() {
    let refused = |spec: RequestSpec| encode(&spec, "host").expect_err("refused");
    for method in ["", "GE T", "GET\r", "G\u{c9}T"] {
        assert_eq!(
            refused(spec(method, "/", &[], b"")),
            EncodeError::Method(method.into())
        );
    }
    assert_eq!(
        refused(spec("CONNECT", "a:1", &[], b"")),
        EncodeError::Connect
    );
    for target in ["", "/a b", "/\r\nX: y", "/\0", "/\x7f"] {
        assert_eq!(
            refused(spec("GET", target, &[], b"")),
            EncodeError::Target(target.into())
        );
    }
    for name in ["", "a b", "a:", "a\n"] {
        let error = EncodeError::FieldName(name.into());
        assert_eq!(refused(spec("GET", "/", &[(name, "x")], b"")), error);
    }
    for value in ["a\r\nb: c", "\n", "\0"] {
        let error = EncodeError::FieldValue("X".into());
        assert_eq!(refused(spec("GET", "/", &[("X", value)], b"")), error);
    }
    let length = refused(spec("POST", "/", &[("Content-Length", "3")], b"hi"));
    assert_eq!(
        length.to_string(),
        "field content-length says `3` and the content has 2 bytes"
    );
    let host = encode(&RequestSpec::get("/"), "a b").expect_err("refused");
    assert_eq!(
        host.to_string(),
        "host `a b` holds white space or a control character"
    );
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
