//! Tests of files of requests, accepted and refused.

use weir_model::load::RequestSpec;
use weir_model::request::{ExpectSpec, FieldSpec, StatusSpec, WeightedRequest};
use weir_study::{Engine, StudyErrors, parse_requests};

fn read(text: &str) -> Result<Vec<WeightedRequest>, StudyErrors> {
    let engine = Engine {
        read: |path| match path.to_str() {
            Some("body.json") => Ok(b"{\"a\":{{1}}}".to_vec()),
            _ => Err(std::io::Error::from_raw_os_error(2)),
        },
        ..Engine::default()
    };
    parse_requests(text, "requests.yaml", engine)
}

fn refused(text: &str) -> Vec<String> {
    let errors = read(text).expect_err(text);
    errors
        .errors()
        .iter()
        .map(|error| match &error.nearest {
            Some(nearest) => format!("{error} [{nearest}]"),
            None => error.to_string(),
        })
        .collect()
}

#[test]
fn all_that_can_be_said_of_a_request() {
    let hash = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
    let text = format!(
        "# A mix.
requests:
  - {{path: /, weight: 3}}
  - name: cart
    method: POST
    path: \"/cart/{{{{random:1..1000}}}}\"
    fields: {{Content-Type: application/json, X-N: \"{{{{sequence}}}}\"}}
    content: ' {{\"n\": {{{{sequence}}}}}}\t'
    expect:
      status: [201, 3xx]
      fields: {{x-cache: MISS, etag: \"*\", x-none: }}
      size: 1KiB
      sha256: {hash}
  - {{path: /f, weight: 0.5, method: PUT, content-file: body.json, expect: {{status: 200}}}}
"
    );
    let cart = WeightedRequest {
        name: Some("cart".to_owned()),
        weight: 1.0,
        request: RequestSpec {
            method: "POST".to_owned(),
            target: "/cart/{{random:1..1000}}".to_owned(),
            fields: [("Content-Type", "application/json"), ("X-N", "{{sequence}}")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            content: b" {\"n\": {{sequence}}}\t".to_vec(),
        },
        expect: Some(ExpectSpec {
            status: vec![StatusSpec::Code(201), StatusSpec::Class(3)],
            fields: vec![
                ("x-cache".to_owned(), FieldSpec::Value("MISS".to_owned())),
                ("etag".to_owned(), FieldSpec::Present),
                ("x-none".to_owned(), FieldSpec::Value(String::new())),
            ],
            size: Some(1024),
            sha256: Some(hash.to_ascii_lowercase()),
        }),
    };
    let file = RequestSpec {
        method: "PUT".to_owned(),
        content: b"{\"a\":{{{{1}}}".to_vec(),
        ..RequestSpec::get("/f")
    };
    let requests = read(&text).expect("requests");
    let [first, second, third] = &requests[..] else { panic!("three requests") };
    let root = WeightedRequest::single(RequestSpec::get("/"));
    assert_eq!(*first, WeightedRequest { weight: 3.0, ..root });
    assert_eq!(*second, cart);
    assert_eq!((&third.request, third.weight), (&file, 0.5));
}

#[test]
fn everything_that_is_wrong_is_said_at_once_with_its_place() {
    let text = "\
requests:
  - {paht: /, wieght: 2}
  - {path: a, weight: 0, method: get, content: {a: 1}}
  - {path: /, content: a, content-file: body.json}
  - {path: /, content-file: none.json}
  - path: /
    fields: {Content-Length: 3}
    expect: {stauts: 200, status: [20, 2xx, abc], size: big, sha256: abc, fields: {\"a b\": c}}
";
    assert_eq!(
        refused(text),
        [
            "requests.yaml:2:6: a request has no key `paht` [path]",
            "requests.yaml:2:15: a request has no key `wieght` [weight]",
            "requests.yaml:3:12: `a` is not a path",
            "requests.yaml:3:23: `0` is out of range: a weight must be from 0.000001 to 1000000000",
            "requests.yaml:3:34: `get` is not the method GET [GET]",
            "requests.yaml:3:48: expected text, found YAML",
            "requests.yaml:4:27: a request cannot have both `content` and `content-file`",
            "requests.yaml:5:29: cannot read `none.json`: No such file or directory (os error 2)",
            "requests.yaml:7:14: weir writes `Content-Length` itself",
            "requests.yaml:8:14: what is expected has no key `stauts` [status]",
            "requests.yaml:8:36: `20` is not a status code from 100 to 599",
            "requests.yaml:8:45: `abc` is not a status code from 100 to 599",
            "requests.yaml:8:57: `big` is not a size such as 600, 1KiB, 64k or 1MB",
            "requests.yaml:8:70: `abc` is not 64 hexadecimal digits",
            "requests.yaml:8:84: `a b` is not a valid header name (RFC 9110 §5.1)",
        ]
    );
}

#[test]
fn files_that_hold_no_requests() {
    let mut messages = Vec::new();
    for text in ["", "requests: []", "- /", "request: [{path: /}]", "requests: [/]", "a: &b c"] {
        messages.extend(refused(text));
    }
    assert!(messages.iter().all(|message| !message.contains("stud")), "{messages:?}");
    assert_eq!(messages[0], "requests.yaml:1:1: the file is empty");
    let large = "#".repeat(17 << 20);
    assert!(refused(&large)[0].ends_with("a set of requests of 17825792 bytes is too large"));
}
