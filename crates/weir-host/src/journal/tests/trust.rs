//! Tests of what is refused: a journal that others could have written, and settings that weir never changes.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// Asserts that nothing acts on the journal; returns the error message.
fn must_be_refused(host: &Host, folder: &Path) -> String {
    let refusals = [
        Journal::open_with(folder, "a test", host.settings.boxed()).map(drop),
        restore_with(folder, &host.settings).map(drop),
        pending_with(folder, &host.settings).map(drop),
    ];
    let words = refusals.map(|refused| refused.expect_err("it is refused"));
    assert!(words[1].hint().is_some_and(|hint| hint.contains("nothing was changed")));
    assert_eq!(host.settings.state().writes, 0);
    words[1].to_string()
}

/// Leaves a journal that puts the original value of `a` back; returns its content.
fn leave_journal(host: &Host) -> Vec<u8> {
    host.kill(host.changed(&[("a", "1")]));
    host.settings.state().writes = 0;
    fs::read(host.file()).unwrap()
}

#[test]
fn a_journal_that_others_could_have_written_is_refused_and_nothing_is_changed() {
    let host = Host::new();
    leave_journal(&host);
    let above = host.folder().join("above");
    let below = above.join("journal");
    fs::create_dir_all(&below).unwrap();
    fs::copy(host.file(), below.join("journal.jsonl")).unwrap();
    #[rustfmt::skip]
    let rows = [
        (host.file(), 0o666, host.folder().to_owned()), (host.file(), 0o620, host.folder().to_owned()),
        (host.folder().to_owned(), 0o777, host.folder().to_owned()),
        (host.folder().to_owned(), 0o1777, host.folder().to_owned()),
        (above.clone(), 0o777, below.clone()),
    ];
    for (path, mode, folder) in rows {
        let before = fs::metadata(&path).unwrap().permissions().mode();
        set_mode(&path, mode);
        let words = must_be_refused(&host, &folder);
        let expected = format!(
            "the journal of changed settings cannot be trusted: {} can be written by others \
             (its mode is {mode:04o})",
            path.display()
        );
        assert_eq!(words, expected);
        set_mode(&path, before & 0o7777);
    }
    set_mode(&above, 0o777);
    let refused = Journal::open_with(&above.join("new/journal"), "a test", host.settings.boxed());
    assert!(refused.is_err() && !above.join("new").exists());
    assert_eq!(host.restore(), [put_back("a")]);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn a_journal_behind_a_link_is_refused() {
    let host = Host::new();
    let (real, folder) = (host.folder().join("real"), host.folder().join("journal"));
    fs::create_dir(&real).unwrap();
    fs::write(real.join("journal.jsonl"), leave_journal(&host)).unwrap();
    symlink(&real, &folder).unwrap();
    assert!(must_be_refused(&host, &folder).ends_with("/journal is a link"));
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    symlink(real.join("journal.jsonl"), folder.join("journal.jsonl")).unwrap();
    assert!(must_be_refused(&host, &folder).ends_with("/journal.jsonl is a link"));
}

#[test]
fn settings_without_a_row_are_refused_before_any_is_put_back() {
    let host = Host::new();
    let text = String::from_utf8(leave_journal(&host)).unwrap();
    for name in
        ["kernel.core_pattern", "../../etc/passwd", "/etc/passwd", "fake.d", "kernel/core_pattern"]
    {
        let line = text.lines().nth(1).unwrap().replace("fake.a", name);
        fs::write(host.file(), format!("{text}{line}\n")).unwrap();
        let words = must_be_refused(&host, host.folder());
        let expected = format!(":3: {name} is not a setting of weir's catalog or of the study");
        assert!(words.ends_with(&expected), "{words}");
    }
    // The study's own rows are in the first line.
    let listed = text.replacen("\"purpose\"", "\"settings\":[\"fake.d\"],\"purpose\"", 1);
    let line = text.lines().nth(1).unwrap().replace("fake.a", "fake.d");
    fs::write(host.file(), format!("{listed}{line}\n")).unwrap();
    let outcome = ("fake.d".to_owned(), Outcome::Gone);
    assert_eq!(host.restore(), [outcome, put_back("a")]);
}

#[test]
fn nothing_is_changed_that_could_not_be_put_back() {
    let host = Host::new();
    let key_of_d = Key::Sysctl("fake.d".to_owned());
    host.settings.set(&key_of_d, "0");
    let mut journal = host.open().unwrap();
    let refused = journal.change(&key_of_d, "1").unwrap_err();
    assert!(matches!(refused, JournalError::NoRow(_)), "{refused}");
    assert_eq!(host.settings.get(&key_of_d), "0");
    drop(journal);
    let mut journal = host.open().unwrap().listing(["fake.d".to_owned()]);
    journal.change(&key_of_d, "1").unwrap();
    host.kill(journal);
    assert_eq!(host.restore(), [("fake.d".to_owned(), Outcome::PutBack)]);
    assert_eq!(host.settings.get(&key_of_d), "0");
}
