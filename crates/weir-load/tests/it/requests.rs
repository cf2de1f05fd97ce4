//! Requests with slots and checked responses against a real server.

use std::io::{Read, Write as _};
use weir_http::response::{Progress, ResponseParser};
use weir_load::expect::{Check, Unexpected};
use weir_load::random::Random;
use weir_load::request_set::RequestSet;
use weir_load::template::Files;
use weir_model::load::RequestSpec;
use weir_model::request::{ExpectSpec, FieldSpec, StatusSpec, WeightedRequest};

use crate::support::Nginx;

/// What an nginx has in its server that says what it understood of a request.
const TELLING: &str = "location / { add_header X-Length $content_length;
    add_header X-Id $http_x_id; return 200 $request_uri; }";

fn expecting(request: RequestSpec, expect: ExpectSpec) -> WeightedRequest {
    let expect = Some(expect);
    WeightedRequest {
        expect,
        ..WeightedRequest::single(request)
    }
}

fn field(name: &str, value: &str) -> (String, FieldSpec) {
    (name.to_owned(), FieldSpec::Value(value.to_owned()))
}

/// One request that is the same every time, one whose content grows with its number, and one whose
/// response is never right.
fn specs() -> Vec<WeightedRequest> {
    let ok = vec![StatusSpec::Class(2)];
    let plain = ExpectSpec {
        status: ok.clone(),
        size: Some(6),
        // Of `/plain`, by sha256sum.
        sha256: Some("9131cfbdac9dd60792168e403dd9f4e841567ab2a8247a8aaad684eee171c2ca".to_owned()),
        ..ExpectSpec::default()
    };
    let growing = RequestSpec {
        method: "POST".to_owned(),
        target: "/{{random:100..999}}".to_owned(),
        fields: vec![("X-Id".to_owned(), "<{{sequence}}>".to_owned())],
        content: b"{\"n\": {{sequence}}}".to_vec(),
    };
    let present = ("X-Id".to_owned(), FieldSpec::Present);
    let counted = ExpectSpec {
        status: ok,
        // For numbers of two digits.
        fields: vec![field("x-length", "9"), present],
        size: Some(4),
        ..ExpectSpec::default()
    };
    let wrong = ExpectSpec {
        fields: vec![field("server", "other")],
        ..ExpectSpec::default()
    };
    vec![
        expecting(RequestSpec::get("/plain"), plain),
        expecting(growing, counted),
        expecting(RequestSpec::get("/"), wrong),
    ]
}

#[test]
fn a_server_understands_what_slots_made_and_its_answers_are_judged() {
    let folder = tempfile::tempdir().unwrap();
    let nginx = Nginx::start(folder.path(), "", TELLING);
    let mut stream = nginx.connect();
    let set = RequestSet::by_arrival(&specs(), [0, 1, 2].into(), "weir", &mut Files::default());
    let set = set.expect("a set");
    let mut random = Random::new(7);
    let (mut parser, mut check) = (ResponseParser::default(), Check::default());
    let mut out = Vec::with_capacity(set.max_len());
    for arrival in 0..120 {
        let index = set.choose(arrival, &mut random);
        let request = set.get(index);
        let expectation = request.expect.as_ref().expect("an expectation");
        out.clear();
        request.template.render(arrival, &mut random, &mut out);
        stream.write_all(&out).expect("sent");
        parser.begin(request.head);
        check.begin(expectation);
        // A few bytes at a time, so that every field is cut somewhere.
        let mut bytes = vec![0; 1 + arrival as usize % 13];
        let end = loop {
            let length = stream.read(&mut bytes).expect("received");
            assert!(length > 0, "closed");
            let watch = &mut check.watch(expectation);
            let fed = parser.feed_with(&bytes[..length], watch);
            if let Progress::Complete(end) = fed.expect("a response").event {
                break end;
            }
        };
        assert_eq!(end.status, 200);
        let expected = match (index, arrival) {
            (1, 10..100) | (0, _) => Ok(()),
            _ => Err(Unexpected::FieldDiffers),
        };
        let verdict = check.verdict(expectation, &end);
        assert_eq!(verdict, expected, "arrival {arrival}");
    }
}
