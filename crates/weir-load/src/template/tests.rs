use std::io::Write;

use proptest::prelude::*;
use weir_http::request::{Progress, RequestParser};
use weir_model::load::RequestSpec;
use weir_model::request::escape;
use weir_stats::SplitMix64;

use super::{Files, Template, TemplateError};

fn post(target: &str, fields: &[(&str, &str)], content: &str) -> RequestSpec {
    RequestSpec {
        method: "POST".to_owned(),
        target: target.to_owned(),
        fields: fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        content: content.as_bytes().to_vec(),
    }
}

fn compile(spec: &RequestSpec) -> Result<Template, TemplateError> {
    Template::new(spec, "h", &mut Files::default())
}

fn render(template: &Template, number: u64, seed: u64) -> String {
    let mut out = Vec::new();
    template.render(number, &mut SplitMix64::new(seed), &mut out);
    assert!(out.len() <= template.max_len());
    String::from_utf8(out).unwrap()
}

/// Returns the error for a request, and its hint.
fn refused(spec: &RequestSpec) -> (String, String) {
    let error = compile(spec).unwrap_err();
    (error.to_string(), error.hint().unwrap_or_default())
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn without_slots_the_bytes_are_those_of_the_encoder() {
    let spec = post("/a", &[("X", "y")], "{\"a\": {\"b\": 1}}");
    let template = compile(&spec).unwrap();
    let encoded = weir_http::request::encode(&spec, "h").unwrap();
    assert_eq!(template.fixed(), Some(&encoded[..]));
    assert_eq!(render(&template, 7, 1).as_bytes(), encoded);
}

#[test]
fn the_same_number_stands_wherever_sequence_is_written() {
    let content = r#"{"n": {"m": {{sequence}}}}"#;
    let spec = post("/{{sequence:10}}", &[("X-N", "<{{ sequence }}>")], content);
    let template = compile(&spec).unwrap();
    assert_eq!(template.fixed(), None);
    let expected =
        "POST /15 HTTP/1.1\r\nHost: h\r\nX-N: <5>\r\nContent-Length: 15\r\n\r\n{\"n\": {\"m\": 5}}";
    assert_eq!(render(&template, 5, 1), expected);
}

#[test]
fn content_is_counted_anew_for_every_request() {
    let template = compile(&post("/", &[], "{{sequence:98}}23456789{{sequence:98}}")).unwrap();
    for (number, length) in [(0, "12"), (1, "12"), (2, "14"), (u64::MAX, "12")] {
        let text = render(&template, number, 1);
        let (head, content) = text.split_once("\r\n\r\n").unwrap();
        let field = format!("\r\nContent-Length: {length}");
        assert!(head.ends_with(&field), "{head}");
        assert_eq!(content.len().to_string(), length);
    }
}

#[test]
fn braces_that_are_no_slots() {
    for (written, expected) in [
        ("{{{{sequence}}", "{{sequence}}"),
        ("{{{sequence}}: {}}", "{3: {}}"),
        ("{{{{{{sequence}}}}", "{{3}}"),
        ("}} { } {", "}} { } {"),
    ] {
        let text = render(&compile(&post("/", &[], written)).unwrap(), 3, 1);
        assert_eq!(text.split_once("\r\n\r\n").unwrap().1, expected);
    }
}

#[test]
fn random_slots_keep_to_their_bounds() {
    let template = compile(&RequestSpec::get("/{{random:-2..2}}/{{random}}")).unwrap();
    let mut random = SplitMix64::new(5);
    let mut numbers = std::collections::BTreeSet::new();
    for number in 0..200 {
        let mut out = Vec::new();
        template.render(number, &mut random, &mut out);
        let text = String::from_utf8(out).unwrap();
        let mut parts = text["GET /".len()..text.find(" HTTP").unwrap()].split('/');
        numbers.insert(parts.next().unwrap().parse::<i64>().unwrap());
        let hex = parts.next().unwrap();
        let is_hex = hex.len() == 16 && u64::from_str_radix(hex, 16).is_ok();
        assert!(is_hex, "{hex}");
    }
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [-2, -1, 0, 1, 2]);
}

#[test]
fn the_whole_range_of_integers() {
    let (low, high) = (i64::MIN, i64::MAX);
    let spec = RequestSpec::get(&format!("/{{{{random:{low}..{high}}}}}"));
    let text = render(&compile(&spec).unwrap(), 0, 3);
    let number = &text["GET /".len()..text.find(" HTTP").unwrap()];
    number.parse::<i64>().unwrap();
}

#[test]
fn lines_of_files() {
    let words = file("red\r\ngreen\nblue");
    let [line, pick] =
        ["line", "pick"].map(|kind| format!("{{{{{kind}:{}}}}}", words.path().display()));
    let template = compile(&post(&format!("/{line}"), &[("X", &pick)], &line)).unwrap();
    let words = ["red", "green", "blue"];
    for number in 0..7 {
        let text = render(&template, number, number);
        let word = words[number as usize % 3];
        assert!(text.starts_with(&format!("POST /{word} ")), "{text}");
        let end = format!("Content-Length: {}\r\n\r\n{word}", word.len());
        assert!(text.ends_with(&end), "{text}");
        assert!(words.iter().any(|word| text.contains(&format!("X: {word}\r\n"))), "{text}");
    }
}

#[test]
fn lines_that_would_break_the_request_are_refused_with_their_place() {
    // Each line is fine where it stands in the second request.
    type BuildSpec = fn(&str) -> RequestSpec;
    #[rustfmt::skip]
    let cases: [(&str, BuildSpec, BuildSpec, &str); 3] = [
        ("a\nb c\n", get_path, post_field,
         "2: the line holds white space or a control character, and the target"),
        ("a\rX: y\n", post_field, post_content, "1: the line holds CR or NUL, and field `X`"),
        ("/a\n\n", RequestSpec::get, get_path, "2: the line is empty, and the target"),
    ];
    for (text, bad, good, fault) in cases {
        let lines = file(text);
        let path = lines.path().display();
        let slot = format!("{{{{line:{path}}}}}");
        let (message, _) = refused(&bad(&slot));
        assert_eq!(message, format!("{path}:{fault} must not"));
        compile(&good(&slot)).unwrap();
    }
}

fn get_path(slot: &str) -> RequestSpec {
    RequestSpec::get(&format!("/{slot}"))
}

fn post_field(slot: &str) -> RequestSpec {
    post("/", &[("X", slot)], "")
}

fn post_content(slot: &str) -> RequestSpec {
    post("/", &[], slot)
}

#[test]
fn what_is_no_slot_is_said_with_its_place_and_the_nearest_right_one() {
    let get = RequestSpec::get;
    #[rustfmt::skip]
    let rows = [
        (get("/ä/{{seqence}}"), "the target, character 4: `seqence` is not a slot",
         "did you mean `{{sequence}}`?"),
        (get("/{{rand:1..2}}"), "the target, character 2: `rand` is not a slot",
         "did you mean `{{random}}`?"),
        (post("/", &[("X-A", "{{customer}}")], ""),
         "field `X-A`, character 1: `customer` is not a slot", "slots are `{{sequence}}`"),
        (post("/", &[], "x {{random:1..2}"), "the content, character 3: the slot has no `}}`",
         "a plain `{{` is written `{{{{`"),
    ];
    for (spec, message, hint) in rows {
        let (said, advice) = refused(&spec);
        assert_eq!(said, message);
        assert!(advice.starts_with(hint), "{advice}");
    }
    for slot in "random:6..1|random:1|random:a..b|random:|sequence:x|line:|pick".split('|') {
        let (message, _) = refused(&get(&format!("/{{{{{slot}}}}}")));
        assert!(message.contains(&format!("`{slot}` is not ")), "{message}");
    }
    let (message, _) = refused(&get("/{{line:/nonexistent}}"));
    let unreadable = message.starts_with("cannot read /nonexistent: ");
    assert!(unreadable, "{message}");
}

#[test]
fn slots_do_not_hide_what_is_no_request() {
    let (message, _) = refused(&RequestSpec::get("/a b/{{sequence}}"));
    assert!(message.contains("holds white space"), "{message}");
    for (value, content) in [("5", "{{sequence}}"), ("{{random:0..9}}", "")] {
        let (message, hint) = refused(&post("/", &[("content-length", value)], content));
        assert!(message.starts_with("field content-length is given"), "{message}");
        assert!(!hint.is_empty(), "{message}");
    }
}

#[test]
fn nothing_is_allocated_once_there_is_room() {
    let template = compile(&post("/{{random}}", &[], "{{sequence}}")).unwrap();
    let mut out = Vec::with_capacity(template.max_len());
    let capacity = out.capacity();
    let mut random = SplitMix64::new(1);
    for number in [0, 9, 10, u64::MAX] {
        out.clear();
        template.render(number, &mut random, &mut out);
        assert_eq!(out.capacity(), capacity);
    }
}

proptest! {
    #[test]
    fn escaped_content_comes_out_as_it_was(content in "[{}ab]{0,12}") {
        let mut spec = post("/", &[], "");
        spec.content = escape(content.as_bytes());
        let template = compile(&spec).unwrap();
        let bytes = template.fixed().unwrap();
        let end = format!("\r\n\r\n{content}");
        prop_assert!(bytes.ends_with(end.as_bytes()));
    }

    #[test]
    fn what_is_rendered_reads_back_as_one_request(
        target in prop::collection::vec("[a-z/]|\\{\\{(sequence|random|random:0\\.\\.99|sequence:7)\\}\\}", 0..4),
        value in "[ -z]{0,9}(\\{\\{(sequence|random:-5\\.\\.500)\\}\\})?",
        content in "[ -z]{0,9}(\\{\\{(sequence|random:1\\.\\.500000)\\}\\}[ -z]{0,3}){0,3}",
        number in any::<u64>(),
        seed in any::<u64>(),
    ) {
        let spec = post(&format!("/{}", target.concat()), &[("X", &value)], &content);
        let text = render(&compile(&spec).unwrap(), number, seed);
        let fed = RequestParser::default().feed(text.as_bytes()).unwrap();
        prop_assert_eq!(fed.consumed, text.len());
        prop_assert!(matches!(fed.event, Progress::Complete(_)));
    }
}
