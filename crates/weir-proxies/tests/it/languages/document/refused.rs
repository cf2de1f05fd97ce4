//! Bad input, with its place.

use std::fs;

use weir_configuration::document::{self, Dialect, Edit, Format, Pointer};
use weir_configuration::{ConfigurationError, Source};
use weir_envoy::language::Bootstrap;

use super::named;
use crate::languages::support::{make_source, must_have};

/// Returns the error of setting a value.
fn not_set(source: &Source, at: &str, value: &str) -> ConfigurationError {
    let format = Bootstrap.format(&source.files[0].path);
    let edit = Edit { at: Pointer::parse(at), value: Some(value.to_owned()) };
    document::set(source, format, &[edit]).unwrap_err()
}

fn refused(bytes: &[u8], format: Format) -> ConfigurationError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("document");
    fs::write(&path, bytes).unwrap();
    let error = document::read(&path, format).unwrap_err();
    assert_eq!(error.file, path);
    error
}

#[test]
fn every_bad_document_has_its_place() {
    #[rustfmt::skip]
    let rows = [
        (&b"a: [1, 2\nb: 3\n"[..], Format::Yaml, 2, 2, "this is not YAML"),
        (b"a:\n\t- 1\n", Format::Yaml, 2, 2, "this is not YAML"),
        (b"a: *nobody\n", Format::Yaml, 1, 4, "this is not YAML"),
        (b"a: \"b", Format::Yaml, 1, 4, "this is not YAML"),
        (b"a: 1\n---\nb: 1\n", Format::Yaml, 2, 1, "a second document begins here"),
        (b"a: 1\n[b]: 1\n", Format::Yaml, 2, 1, "a key must be text"),
        (b"# nothing\n", Format::Yaml, 1, 1, "the file is empty"),
        (b"a: \xc3\xa9\xff\n", Format::Yaml, 1, 5, "the byte 0xff is not UTF-8"),
        (b"{\n  \"a\": 1,\n}\n", Format::Json, 3, 1, "this is not JSON: trailing comma"),
        (b"{\"a\": 1 \"b\": 2}", Format::Json, 1, 9, "this is not JSON: expected `,` or `}`"),
        (b"{'a': 1}", Format::Json, 1, 2, "this is not JSON: key must be a string"),
        (b"{\"\xc3\xa9\": tru}", Format::Json, 1, 10, "this is not JSON: expected ident"),
        (b"", Format::Json, 1, 1, "this is not JSON: EOF while parsing a value"),
    ];
    for (bytes, format, line, column, what) in rows {
        let error = refused(bytes, format);
        let bytes = String::from_utf8_lossy(bytes);
        assert!(error.what.starts_with(what), "{bytes}: {error}");
        assert_eq!((error.line, error.column), (line, column), "{bytes}: {error}");
    }
}

/// Aliases of the value would lose it.
#[test]
fn what_has_an_anchor_is_not_made_another_kind_of_value() {
    for (text, column) in [("a: &x ", 6), ("a: &x {}", 7), ("a: {b: &x }", 10)] {
        let error = not_set(&make_source("a.yaml", text), "/a/b", "77");
        assert!(error.what.contains("this value has an anchor"), "{text}: {error}");
        assert_eq!((error.line, error.column), (1, column), "{text}: {error}");
    }
}

#[test]
fn depth_is_bounded() {
    for (open, close, format) in
        [("[", "]", Format::Json), ("[", "]", Format::Yaml), ("- ", "", Format::Yaml)]
    {
        let text = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
        refused(text.as_bytes(), format);
    }
}

/// A few bytes that stand for very many values are refused at once, at the line that exceeds the limit.
#[test]
fn what_aliases_stand_for_is_bounded() {
    let text = "x".repeat(1 << 20);
    #[rustfmt::skip]
    let rows = [
        // A thousand million in ten lines of ten.
        (laughs(10, 10, "lol"), 7, "too many values"),
        (laughs(4, 1000, "lol"), 3, "too many values"),
        (laughs(2, 100, &text), 2, "too much text"),
        (laughs(200, 1, "lol"), 127, "too deep a nesting"),
        ("a: &a [1, *a]\n".to_owned(), 1, "this alias stands within the value"),
        ("a: 1\nb: &b\n  c: &c {d: *b}\n".to_owned(), 3, "this alias stands within the value"),
        (format!("{}{}", "&x [".repeat(60), vec!["1"; 20_000].join(",")) + &"]".repeat(60), 1,
         "too many values have anchors"),
    ];
    for (text, line, what) in rows {
        let begun = std::time::Instant::now();
        let error = refused(text.as_bytes(), Format::Yaml);
        let begin = &text[..text.len().min(60)];
        assert!(error.what.starts_with(what), "{begin}: {error}");
        assert_eq!(error.line, line, "{begin}: {error}");
        assert!(begun.elapsed().as_secs() < 5, "{begin}");
    }
    let many = format!("[\n{}1]", "1,".repeat(1 << 20));
    for format in [Format::Json, Format::Yaml] {
        let error = refused(many.as_bytes(), format);
        assert_eq!((&*error.what, error.line), ("too many values", 2));
    }
}

#[test]
fn aliases_mean_what_they_stand_for_however_many_lead_there() {
    let mut text = "a0: &a0 {b: 7}\n".to_owned();
    for level in 1..20 {
        text += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
    }
    let source = make_source("a.yaml", &text);
    let mut value = document::value(&source, Format::Yaml).unwrap()["a19"].take();
    for _ in 1..20 {
        value = value[0].take();
    }
    assert_eq!(value, serde_json::json!({"b": 7}));
}

#[test]
fn a_path_that_cannot_be_gone_has_its_place() {
    #[rustfmt::skip]
    let rows = [
        ("front.yaml", "/admin/access_log_path/x", 3, 20,
         "`/admin/access_log_path` is not an object, so it has no `x`"),
        ("front.yaml", "/static_resources/listeners/2/x", 11, 5,
         "`/static_resources/listeners` has no item 2"),
        ("front.yaml", "/static_resources/listeners/web", 11, 5,
         "`/static_resources/listeners` has no item web"),
        ("plain.json", "/admin/address/socket_address/address/x", 5, 28,
         "`/admin/address/socket_address/address` is not an object, so it has no `x`"),
    ];
    for (name, at, line, column, what) in rows {
        let error = not_set(&make_source(name, &named(name)), at, "1");
        assert_eq!(error.what, what);
        assert_eq!((error.line, error.column), (line, column), "{at}");
    }
}

#[test]
fn what_is_shared_is_not_changed_for_one_alone() {
    let source = make_source("anchors.yaml", &named("anchors.yaml"));
    #[rustfmt::skip]
    let rows = [
        ("/static_resources/clusters/0/connect_timeout", 5),
        ("/static_resources/clusters/1/circuit_breakers/thresholds/0/max_connections", 16),
        ("/static_resources/clusters/0/circuit_breakers/thresholds/0/max_connections", 9),
    ];
    for (at, line) in rows {
        let error = not_set(&source, at, "7");
        assert!(error.what.starts_with("this value is shared"), "{error}");
        assert_eq!(error.line, line, "{at}");
    }
}

/// A new key in a shared object would be new for everything that shares it.
#[test]
fn what_is_shared_gets_nothing_new_for_one_alone() {
    let source = make_source("anchors.yaml", &named("anchors.yaml"));
    for cluster in 0..2 {
        let breakers = format!("/static_resources/clusters/{cluster}/circuit_breakers");
        let error = not_set(&source, &format!("{breakers}/per_host_thresholds"), "[]");
        assert!(error.what.starts_with("this value is shared"), "{error}");
    }
}

#[test]
fn a_value_that_is_no_json_is_named() {
    let error = not_set(&make_source("a.yaml", "a: 1\n"), "/a", "5s");
    must_have(error.what, &["the value `5s` for `/a` is not JSON"]);
}

/// Returns lists of aliases to each other, of which the first has a text.
fn laughs(levels: usize, width: usize, text: &str) -> String {
    let first = format!("a0: &a0 [{text}]\n");
    let levels = (1..levels).map(|level| {
        let aliases = vec![format!("*a{}", level - 1); width].join(", ");
        format!("a{level}: &a{level} [{aliases}]\n")
    });
    std::iter::once(first).chain(levels).collect()
}
