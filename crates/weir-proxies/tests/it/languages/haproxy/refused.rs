//! Bad input, with its place.

use std::fs;

use weir_configuration::ConfigurationError;
use weir_haproxy::language as haproxy;

use crate::languages::support::must_have;

fn refused(bytes: &[u8]) -> ConfigurationError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("haproxy.cfg");
    fs::write(&path, bytes).unwrap();
    let error = haproxy::read(&path).unwrap_err();
    assert_eq!(error.file, path);
    error
}

#[test]
fn every_bad_input_has_its_place() {
    #[rustfmt::skip]
    let rows = [
        (&b"globl\n  maxconn 1\n"[..], 1, 1, "unknown section `globl`"),
        (b"# a\n\n  maxconn 1\nglobal\n", 3, 3, "unknown section `maxconn`"),
        (b"global\n  log \xc3\xa9 \xff\n", 2, 9, "the byte 0xff is not UTF-8"),
        (b"global\n  setenv A \"b # c\n", 2, 12, "this quote is not closed in its line"),
        (b"global\n  setenv A b'c\\'d'\n", 2, 18, "this quote is not closed in its line"),
        (b"global\n .if 1\n  maxconn 1\n", 2, 2, "`.if` has no `.endif`"),
        (b"global\n .endif\n", 2, 2, "`.endif` has no `.if`"),
        (b"global\n .if 1\n .endif\n .else\n", 4, 2, "`.else` has no `.if`"),
    ];
    for (bytes, line, column, what) in rows {
        let error = refused(bytes);
        assert_eq!((error.line, error.column, &*error.what), (line, column, what));
    }
}

#[test]
fn what_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("haproxy.cfg");
    let error = haproxy::read(&missing).unwrap_err();
    must_have(error, &["cannot be read: No such file"]);
    let error = haproxy::read(folder.path()).unwrap_err();
    assert_eq!(error.what, "the folder has no configuration");
}

#[test]
fn a_file_begins_with_a_section_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.cfg"), "backend a\n").unwrap();
    fs::write(folder.path().join("b.cfg"), "  server a 127.0.0.1:1\n").unwrap();
    let error = haproxy::read(folder.path()).unwrap_err();
    assert_eq!(error.file, folder.path().join("b.cfg"));
    assert_eq!(error.what, "unknown section `server`");
}
