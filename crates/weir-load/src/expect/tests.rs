use proptest::prelude::*;
use weir_http::response::{Progress, ResponseParser};
use weir_model::request::{ExpectSpec, FieldSpec, StatusSpec};

use super::{Check, ExpectError, Expectation, MOST_FIELDS, Unexpected};

const RESPONSE: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
    HTTP/1.1 200 OK\r\nX-Cache: \tHIT  \r\nVia: a\r\nVIA: b  c\r\nX-Empty:\r\n\
    X-A-Name-Of-More-Than-Seventeen: y\r\nContent-Length: 3\r\nX-Folded: one\r\n two\r\n\r\nabc";

/// FIPS 180-4, the example of one block.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn fields(wanted: &[(&str, Option<&str>)]) -> ExpectSpec {
    let wanted = wanted.iter().map(|(name, value)| {
        let value = value.map_or(FieldSpec::Present, |value| {
            FieldSpec::Value(value.to_owned())
        });
        ((*name).to_owned(), value)
    });
    ExpectSpec {
        fields: wanted.collect(),
        ..ExpectSpec::default()
    }
}

fn judge<'p>(
    spec: &ExpectSpec,
    check: &mut Check,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Result<(), Unexpected> {
    let expectation = Expectation::new(spec).unwrap();
    let mut parser = ResponseParser::default();
    parser.begin(false);
    check.begin(&expectation);
    for piece in pieces {
        let fed = parser
            .feed_with(piece, &mut check.watch(&expectation))
            .unwrap();
        if let Progress::Complete(end) = fed.event {
            return check.verdict(&expectation, &end);
        }
    }
    panic!("not complete");
}

/// Whole, cut in two everywhere, and byte by byte: all must agree, and one check must do for all.
fn verdict(spec: &ExpectSpec, bytes: &[u8]) -> Result<(), Unexpected> {
    let mut check = Check::default();
    let whole = judge(spec, &mut check, [bytes]);
    for cut in 1..bytes.len() {
        let (front, back) = bytes.split_at(cut);
        assert_eq!(
            judge(spec, &mut check, [front, back]),
            whole,
            "cut at {cut}"
        );
    }
    assert_eq!(
        judge(spec, &mut check, bytes.chunks(1)),
        whole,
        "byte by byte"
    );
    whole
}

#[test]
fn statuses() {
    let status = |specs: &[StatusSpec]| {
        let status = specs.to_vec();
        let spec = ExpectSpec {
            status,
            ..ExpectSpec::default()
        };
        verdict(&spec, RESPONSE)
    };
    assert_eq!(status(&[]), Ok(()));
    assert_eq!(status(&[StatusSpec::Code(200)]), Ok(()));
    assert_eq!(
        status(&[StatusSpec::Class(4), StatusSpec::Class(2)]),
        Ok(())
    );
    let others = [
        StatusSpec::Code(201),
        StatusSpec::Code(199),
        StatusSpec::Class(3),
    ];
    assert_eq!(status(&others), Err(Unexpected::Status));
}

#[test]
fn every_code_has_its_own_bit() {
    let set = super::statuses(&[StatusSpec::Class(4), StatusSpec::Code(999)]).unwrap();
    let expectation = Expectation {
        statuses: set,
        ..Expectation::new(&ExpectSpec::default()).unwrap()
    };
    for code in 0..1000 {
        let wanted = (400..500).contains(&code) || code == 999;
        assert_eq!(expectation.allows(code), wanted, "{code}");
    }
}

#[test]
fn fields_are_found_however_they_are_cut() {
    for (wanted, expected) in [
        (("x-cache", Some("HIT")), Ok(())),
        (("X-CACHE", Some(" HIT\t")), Ok(())),
        (("x-cache", None), Ok(())),
        (("x-cache", Some("hit")), Err(Unexpected::FieldDiffers)),
        (("x-cache", Some("HI")), Err(Unexpected::FieldDiffers)),
        (("x-cache", Some("HITS")), Err(Unexpected::FieldDiffers)),
        (("x-cache", Some("")), Err(Unexpected::FieldDiffers)),
        (("x-cach", None), Err(Unexpected::FieldMissing)),
        (("x-cache-", None), Err(Unexpected::FieldMissing)),
        // Either of several will do.
        (("via", Some("a")), Ok(())),
        (("via", Some("b  c")), Ok(())),
        (("via", Some("b c")), Err(Unexpected::FieldDiffers)),
        (("x-empty", Some("")), Ok(())),
        (("x-empty", Some("a")), Err(Unexpected::FieldDiffers)),
        (("x-a-name-of-more-than-seventeen", Some("y")), Ok(())),
        (
            ("x-a-name-of-more-than-seventee", None),
            Err(Unexpected::FieldMissing),
        ),
        (("content-length", Some("3")), Ok(())),
        // The CR of a folded line and its white space are spaces.
        (("x-folded", Some("one  two")), Ok(())),
        // Of interim responses nothing is seen.
        (("link", None), Err(Unexpected::FieldMissing)),
    ] {
        assert_eq!(
            verdict(&fields(&[wanted]), RESPONSE),
            expected,
            "{wanted:?}"
        );
    }
}

#[test]
fn all_fields_must_be_right() {
    let mut wanted = vec![("via", Some("a")), ("via", Some("b  c")), ("x-cache", None)];
    assert_eq!(verdict(&fields(&wanted), RESPONSE), Ok(()));
    wanted.push(("age", None));
    assert_eq!(
        verdict(&fields(&wanted), RESPONSE),
        Err(Unexpected::FieldMissing)
    );
    // As many as there can be, the last of them wrong.
    let mut many = vec![("x-cache", Some("HIT")); MOST_FIELDS];
    assert_eq!(verdict(&fields(&many), RESPONSE), Ok(()));
    many[MOST_FIELDS - 1].1 = Some("MISS");
    assert_eq!(
        verdict(&fields(&many), RESPONSE),
        Err(Unexpected::FieldDiffers)
    );
}

#[test]
fn size_and_hash_of_the_content() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x\r\nbc\r\n0\r\nT: t\r\n\r\n";
    let sized = |size| ExpectSpec {
        size: Some(size),
        ..ExpectSpec::default()
    };
    let hashed = |hash: &str| ExpectSpec {
        sha256: Some(hash.to_owned()),
        ..ExpectSpec::default()
    };
    for bytes in [RESPONSE, chunked] {
        assert_eq!(verdict(&sized(3), bytes), Ok(()));
        assert_eq!(verdict(&sized(4), bytes), Err(Unexpected::Size));
        assert_eq!(verdict(&hashed(ABC), bytes), Ok(()));
        assert_eq!(verdict(&hashed(&ABC.to_uppercase()), bytes), Ok(()));
        let other = ABC.replace('b', "c");
        assert_eq!(verdict(&hashed(&other), bytes), Err(Unexpected::Hash));
    }
    let trailer = fields(&[("t", None)]);
    assert_eq!(verdict(&trailer, chunked), Err(Unexpected::FieldMissing));
}

#[test]
fn one_check_serves_responses_of_which_different_things_are_expected() {
    let mut check = Check::default();
    let hashed = ExpectSpec {
        sha256: Some(ABC.to_owned()),
        ..ExpectSpec::default()
    };
    for _ in 0..3 {
        let other = fields(&[("x-cache", Some("HIT"))]);
        assert_eq!(judge(&hashed, &mut check, [RESPONSE]), Ok(()));
        assert_eq!(judge(&other, &mut check, [RESPONSE]), Ok(()));
        let bare = b"HTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(
            judge(&other, &mut check, [&bare[..]]),
            Err(Unexpected::FieldMissing)
        );
        assert_eq!(
            judge(&hashed, &mut check, [&bare[..]]),
            Err(Unexpected::Hash)
        );
    }
}

#[test]
fn what_must_be_seen_is_said() {
    let expectation = |spec| Expectation::new(&spec).unwrap();
    let plain = expectation(ExpectSpec {
        size: Some(1),
        ..ExpectSpec::default()
    });
    assert!(!plain.watches() && !plain.reads_content());
    let field = expectation(fields(&[("a", None)]));
    assert!(field.watches() && !field.reads_content());
    let hash = ExpectSpec {
        sha256: Some(ABC.to_owned()),
        ..ExpectSpec::default()
    };
    assert!(expectation(hash).reads_content());
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let refused = |spec: ExpectSpec| Expectation::new(&spec).unwrap_err();
    assert_eq!(
        refused(fields(&[("a b", None)])),
        ExpectError::Name("a b".to_owned())
    );
    assert_eq!(
        refused(fields(&[("a", Some("\r"))])),
        ExpectError::Value("a".to_owned())
    );
    assert_eq!(refused(fields(&[("a", None); 33])), ExpectError::Fields(33));
    for code in [
        StatusSpec::Code(99),
        StatusSpec::Code(1000),
        StatusSpec::Class(200),
    ] {
        let spec = ExpectSpec {
            status: vec![code],
            ..ExpectSpec::default()
        };
        assert!(matches!(refused(spec), ExpectError::Status(_)), "{code:?}");
    }
    for hash in [
        "",
        &ABC[1..],
        &ABC.replace('b', "g"),
        &ABC.replace('b', "+"),
    ] {
        let spec = ExpectSpec {
            sha256: Some(hash.to_owned()),
            ..ExpectSpec::default()
        };
        assert_eq!(refused(spec), ExpectError::Hash(hash.to_owned()));
    }
}

#[test]
fn words_are_those_displayed() {
    use Unexpected::{FieldDiffers, FieldMissing, Hash, Size, Status};
    for kind in [Status, FieldMissing, FieldDiffers, Size, Hash] {
        assert_eq!(kind.words(), kind.to_string());
    }
}

proptest! {
    /// Against the plain way: gather the fields, then compare.
    #[test]
    fn fields_are_judged_as_by_comparing_them_whole(
        sent in prop::collection::vec(("[abAB]{1,3}", "[ab \t]{0,5}"), 0..5),
        wanted in prop::collection::vec(("[abAB]{1,3}", prop::option::of("[ab ]{0,4}")), 0..4),
    ) {
        let lines: String =
            sent.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
        let bytes = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n");
        let named = |name: &str| {
            let name = name.to_owned();
            sent.iter().filter(move |(sent, _)| sent.eq_ignore_ascii_case(&name))
        };
        let blank = [' ', '\t'];
        let missing = wanted.iter().any(|(name, _)| named(name).next().is_none());
        let differs = wanted.iter().any(|(name, value)| value.as_ref().is_some_and(|value| {
            named(name).all(|(_, sent)| sent.trim_matches(blank) != value.trim_matches(blank))
        }));
        let expected = match (missing, differs) {
            (true, _) => Err(Unexpected::FieldMissing),
            (_, true) => Err(Unexpected::FieldDiffers),
            _ => Ok(()),
        };
        let wanted: Vec<_> =
            wanted.iter().map(|(name, value)| (&**name, value.as_deref())).collect();
        prop_assert_eq!(verdict(&fields(&wanted), bytes.as_bytes()), expected);
    }
}
