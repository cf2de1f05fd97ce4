use proptest::prelude::*;
use weir_http::response::{Progress, ResponseParser};
use weir_model::request::{ExpectSpec, FieldSpec, StatusSpec};

use super::{Check, ExpectError, Expectation, MOST_FIELDS, Unexpected};

const RESPONSE: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
    HTTP/1.1 200 OK\r\nX-Cache: \tHIT  \r\nVia: a\r\nVIA: b  c\r\nX-Empty:\r\n\
    X-A-Name-Of-More-Than-Seventeen: y\r\nContent-Length: 3\r\nX-Folded: one\r\n two\r\n\r\nabc";

/// SHA-256 of "abc": one-block example of FIPS 180-4.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn fields(wanted: &[(&str, Option<&str>)]) -> ExpectSpec {
    ExpectSpec {
        fields: wanted
            .iter()
            .map(|(name, value)| {
                (
                    (*name).to_owned(),
                    value.map_or(FieldSpec::Present, |value| FieldSpec::Value(value.to_owned())),
                )
            })
            .collect(),
        ..ExpectSpec::default()
    }
}

fn hashed(hash: &str) -> ExpectSpec {
    ExpectSpec { sha256: Some(hash.to_owned()), ..ExpectSpec::default() }
}

fn sized(size: u64) -> ExpectSpec {
    ExpectSpec { size: Some(size), ..ExpectSpec::default() }
}

fn of_status(status: &[StatusSpec]) -> ExpectSpec {
    ExpectSpec { status: status.to_vec(), ..ExpectSpec::default() }
}

const MISSING: Result<(), Unexpected> = Err(Unexpected::FieldMissing);
const DIFFERS: Result<(), Unexpected> = Err(Unexpected::FieldDiffers);

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
        let fed = parser.feed_with(piece, &mut check.watch(&expectation));
        if let Progress::Complete(end) = fed.unwrap().event {
            return check.verdict(&expectation, &end);
        }
    }
    panic!("not complete");
}

/// Checks a response whole, cut in two at every position, and byte by byte. All results must agree, with one check for
/// all.
fn verdict(spec: &ExpectSpec, bytes: &[u8]) -> Result<(), Unexpected> {
    let mut check = Check::default();
    let at_once = judge(spec, &mut check, [bytes]);
    for cut in 1..bytes.len() {
        let (front, back) = bytes.split_at(cut);
        let judged = judge(spec, &mut check, [front, back]);
        assert_eq!(judged, at_once, "cut at {cut}");
    }
    let by_bytes = judge(spec, &mut check, bytes.chunks(1));
    assert_eq!(by_bytes, at_once, "byte by byte");
    at_once
}

#[test]
fn statuses() {
    use StatusSpec::{Class, Code};
    for (status, expected) in [
        (&[][..], Ok(())),
        (&[Code(200)], Ok(())),
        (&[Class(4), Class(2)], Ok(())),
        (&[Code(201), Code(199), Class(3)], Err(Unexpected::Status)),
    ] {
        assert_eq!(verdict(&of_status(status), RESPONSE), expected);
    }
}

#[test]
fn every_code_has_its_own_bit() {
    let set = super::statuses(&[StatusSpec::Class(4), StatusSpec::Code(999)]).unwrap();
    let expectation =
        Expectation { statuses: set, ..Expectation::new(&ExpectSpec::default()).unwrap() };
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
        (("x-cache", Some("hit")), DIFFERS),
        (("x-cache", Some("HI")), DIFFERS),
        (("x-cache", Some("HITS")), DIFFERS),
        (("x-cache", Some("")), DIFFERS),
        (("x-cach", None), MISSING),
        (("x-cache-", None), MISSING),
        // Either of several will do.
        (("via", Some("a")), Ok(())),
        (("via", Some("b  c")), Ok(())),
        (("via", Some("b c")), DIFFERS),
        (("x-empty", Some("")), Ok(())),
        (("x-empty", Some("a")), DIFFERS),
        (("x-a-name-of-more-than-seventeen", Some("y")), Ok(())),
        (("x-a-name-of-more-than-seventee", None), MISSING),
        (("content-length", Some("3")), Ok(())),
        // The begin of a folded line is a space.
        (("x-folded", Some("one two")), Ok(())),
        // Of interim responses nothing is seen.
        (("link", None), MISSING),
    ] {
        let judged = verdict(&fields(&[wanted]), RESPONSE);
        assert_eq!(judged, expected, "{wanted:?}");
    }
}

#[test]
fn all_fields_must_be_right() {
    let mut wanted = vec![("via", Some("a")), ("via", Some("b  c")), ("x-cache", None)];
    assert_eq!(verdict(&fields(&wanted), RESPONSE), Ok(()));
    wanted.push(("age", None));
    assert_eq!(verdict(&fields(&wanted), RESPONSE), MISSING);
    // As many as there can be, the last of them wrong.
    let mut many = vec![("x-cache", Some("HIT")); MOST_FIELDS];
    assert_eq!(verdict(&fields(&many), RESPONSE), Ok(()));
    many[MOST_FIELDS - 1].1 = Some("MISS");
    assert_eq!(verdict(&fields(&many), RESPONSE), DIFFERS);
}

#[test]
fn size_and_hash_of_the_content() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x\r\nbc\r\n0\r\nT: t\r\n\r\n";
    for bytes in [RESPONSE, chunked] {
        assert_eq!(verdict(&sized(3), bytes), Ok(()));
        assert_eq!(verdict(&sized(4), bytes), Err(Unexpected::Size));
        assert_eq!(verdict(&hashed(ABC), bytes), Ok(()));
        assert_eq!(verdict(&hashed(&ABC.to_uppercase()), bytes), Ok(()));
        let changed = ABC.replace('b', "c");
        assert_eq!(verdict(&hashed(&changed), bytes), Err(Unexpected::Hash));
    }
    assert_eq!(verdict(&fields(&[("t", None)]), chunked), MISSING);
}

#[test]
fn one_check_serves_responses_of_which_different_things_are_expected() {
    let mut check = Check::default();
    let (hashed, other) = (hashed(ABC), fields(&[("x-cache", Some("HIT"))]));
    let bare = &b"HTTP/1.1 204 No Content\r\n\r\n"[..];
    for _ in 0..3 {
        assert_eq!(judge(&hashed, &mut check, [RESPONSE]), Ok(()));
        assert_eq!(judge(&other, &mut check, [RESPONSE]), Ok(()));
        assert_eq!(judge(&other, &mut check, [bare]), MISSING);
        let judged = judge(&hashed, &mut check, [bare]);
        assert_eq!(judged, Err(Unexpected::Hash));
    }
}

#[test]
fn what_must_be_seen_is_said() {
    assert_eq!(read_needs(sized(1)), (false, false));
    assert_eq!(read_needs(fields(&[("a", None)])), (true, false));
    assert_eq!(read_needs(hashed(ABC)), (true, true));
}

fn read_needs(spec: ExpectSpec) -> (bool, bool) {
    let expectation = Expectation::new(&spec).unwrap();
    (expectation.watches(), expectation.reads_content())
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let error = refuse(fields(&[("a b", None)]));
    assert_eq!(error, ExpectError::Name("a b".to_owned()));
    let error = refuse(fields(&[("a", Some("\r"))]));
    assert_eq!(error, ExpectError::Value("a".to_owned()));
    assert_eq!(refuse(fields(&[("a", None); 33])), ExpectError::Fields(33));
    use StatusSpec::{Class, Code};
    for code in [Code(99), Code(1000), Class(200)] {
        let error = refuse(of_status(&[code]));
        assert!(matches!(error, ExpectError::Status(_)), "{code:?}");
    }
    let [not_hex, signed] = ["g", "+"].map(|other| ABC.replace('b', other));
    for hash in ["", &ABC[1..], &not_hex, &signed] {
        assert_eq!(refuse(hashed(hash)), ExpectError::Hash(hash.to_owned()));
    }
}

fn refuse(spec: ExpectSpec) -> ExpectError {
    Expectation::new(&spec).unwrap_err()
}

proptest! {
    /// Compares with the simple method: gather the fields, then compare.
    #[test]
    fn fields_are_judged_as_by_comparing_them_whole(
        sent in prop::collection::vec(("[abAB]{1,3}", "[ab \t]{0,5}"), 0..5),
        wanted in prop::collection::vec(("[abAB]{1,3}", prop::option::of("[ab ]{0,4}")), 0..4),
    ) {
        let lines: String =
            sent.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
        let bytes = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n");
        let blank = [' ', '\t'];
        let missing = wanted.iter().any(|(name, _)| {
            !sent.iter().any(|(sent, _)| sent.eq_ignore_ascii_case(name))
        });
        let differs = wanted.iter().any(|(name, value)| value.as_ref().is_some_and(|value| {
            let mut named = sent.iter().filter(|(sent, _)| sent.eq_ignore_ascii_case(name));
            named.all(|(_, sent)| sent.trim_matches(blank) != value.trim_matches(blank))
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
