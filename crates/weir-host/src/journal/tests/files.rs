//! Tests of the journal's file: incomplete lines, other boots, damage, other versions.

use super::*;

/// State of the journal and of the settings at one moment.
struct Moment {
    bytes: Vec<u8>,
    values: BTreeMap<String, String>,
}

fn moment(host: &Host) -> Moment {
    Moment {
        bytes: fs::read(host.file()).unwrap_or_default(),
        values: host.settings.state().values.clone(),
    }
}

/// Returns the state after each step of a session that writes every kind of line. The settings are those from before
/// the next line, since a line is on the disk before its change is made.
fn moments() -> Vec<Moment> {
    let host = Host::new();
    let mut journal = host.open().unwrap();
    let mut moments = vec![moment(&host)];
    journal.change(&key("a"), "1").unwrap();
    moments.push(moment(&host));
    journal.announce(&key("b"), &texts(&["1", "2"])).unwrap();
    journal.give(&key("b"), "2").unwrap();
    moments.push(moment(&host));
    journal.change(&key("a"), "3").unwrap();
    moments.push(moment(&host));
    journal.change(&key("c"), "4 5").unwrap();
    moments.push(moment(&host));
    moments
}

#[test]
fn a_journal_cut_at_any_byte_still_puts_everything_back() {
    let mut cuts = 0;
    for pair in moments().windows(2) {
        let (now, next) = (&pair[0], &pair[1]);
        assert!(next.bytes.starts_with(&now.bytes));
        for length in now.bytes.len()..=next.bytes.len() {
            let host = Host::new();
            host.settings.state().values = now.values.clone();
            fs::write(host.file(), &next.bytes[..length]).unwrap();
            host.restore();
            assert_eq!(host.settings.all(), "0 0 0", "{length}");
            assert_eq!(host.restore(), [], "{length}");
            // What is appended does not stick to the half line.
            host.kill(host.changed(&[("a", "9")]));
            assert_eq!(host.restore(), [put_back("a")], "{length}");
            cuts += 1;
        }
    }
    assert!(cuts > 300, "{cuts}");
}

/// A restore writes a line after the change that the line records.
#[test]
fn a_restore_cut_at_any_byte_can_be_done_again() {
    let last = moments().pop().unwrap();
    let host = Host::new();
    host.settings.state().values = last.values;
    fs::write(host.file(), &last.bytes).unwrap();
    host.restore();
    let restored = fs::read(host.file()).unwrap();
    for length in last.bytes.len()..=restored.len() {
        fs::write(host.file(), &restored[..length]).unwrap();
        let again = host.restore();
        let already = again.iter().all(|(_, outcome)| *outcome == Outcome::Already);
        assert!(already, "{again:?}");
        assert_eq!(host.restore(), []);
    }
}

#[test]
fn settings_of_an_earlier_boot_need_nobody() {
    let last = moments().pop().unwrap();
    let boot = place::boot_id().unwrap();
    let text = String::from_utf8(last.bytes).unwrap();
    let earlier = text.replace(&boot, "00000000-0000-0000-0000-000000000000");
    let host = Host::new();
    fs::write(host.file(), &earlier).unwrap();
    host.settings.set(&key("a"), "3");
    let names = ["fake.c", "fake.b", "fake.a"];
    let expected = names.map(|name| (name.to_owned(), Outcome::OtherBoot));
    assert_eq!(outcomes(host.pending()), expected);
    assert_eq!(host.restore(), expected);
    // It is not weir's any more.
    assert_eq!(host.settings.get(&key("a")), "3");
    assert_eq!(host.settings.state().writes, 0);
    // And they are in nobody's way.
    fs::write(host.file(), &earlier).unwrap();
    let journal = host.changed(&[("a", "1")]);
    let previous = fs::read_to_string(host.folder().join("journal.previous.jsonl")).unwrap();
    assert_eq!(previous, earlier);
    drop(journal);
    // The power may have garbled the last line and left its end.
    fs::write(host.file(), earlier.clone() + "{\"ahead\":\0\0\0\n").unwrap();
    assert_eq!(host.restore(), expected);
}

#[test]
fn damage_is_named_by_its_line_and_nothing_is_changed() {
    let last = moments().pop().unwrap();
    let text = String::from_utf8(last.bytes).unwrap();
    let lines = text.lines().count();
    for number in 1..=lines {
        let mut damaged: Vec<_> = text.lines().collect();
        damaged[number - 1] = &damaged[number - 1][1..];
        let host = Host::new();
        host.settings.state().values = last.values.clone();
        fs::write(host.file(), damaged.join("\n") + "\n").unwrap();
        let refusals = [
            host.open().map(drop),
            restore_with(host.folder(), &host.settings).map(drop),
            pending_with(host.folder(), &host.settings).map(drop),
        ];
        let file = host.file();
        let prefix = format!("{}:{number}: the journal is damaged: ", file.display());
        for refused in refusals {
            let error = refused.unwrap_err();
            assert!(error.to_string().starts_with(&prefix), "{error}");
            assert!(error.hint().unwrap().contains("by hand"));
        }
        assert_eq!(host.settings.state().values, last.values);
    }
}

#[test]
fn another_version_is_refused() {
    let host = Host::new();
    let text = "{\"journal\":\"weir-journal/2\",\"new\":1}\n{\"newer\":1}\n";
    fs::write(host.file(), text).unwrap();
    let refused = restore_with(host.folder(), &host.settings).unwrap_err();
    let words = "the journal's format is weir-journal/2, and this weir knows weir-journal/1";
    assert!(refused.to_string().ends_with(words), "{refused}");
}

/// The format is fixed byte for byte: a later weir must be able to undo what this one did.
#[test]
fn the_format_is_this() {
    let host = Host::new();
    let mut journal = host.changed(&[("a", "1")]);
    journal.restore();
    let Header { boot, pid, since, .. } = &journal.header;
    let expected = format!(
        r#"{{"journal":"weir-journal/1","boot":"{boot}","pid":{pid},"since":"{since}","purpose":"a test"}}
{{"ahead":{{"key":{{"sysctl":"fake.a"}},"before":"0","given":["1"]}}}}
{{"closed":{{"key":{{"sysctl":"fake.a"}},"outcome":"put_back"}}}}
"#
    );
    assert_eq!(fs::read_to_string(host.file()).unwrap(), expected);
}

#[test]
fn who_changes_nothing_writes_nothing_and_who_has_no_folder_makes_none() {
    let host = Host::new();
    drop(host.open().unwrap());
    assert!(!host.file().exists());
    let none = host.folder().join("none");
    assert_eq!(restore_with(&none, &host.settings).unwrap(), []);
    assert_eq!(pending_with(&none, &host.settings).unwrap().settings, []);
    assert!(!none.exists());
}

#[test]
fn the_folder_and_its_files_are_for_their_owner_alone() {
    let host = Host::new();
    let folder = host.folder().join("state/weir/journal");
    let mut journal = Journal::open_with(&folder, "a test", host.settings.boxed()).unwrap();
    journal.change(&key("a"), "1").unwrap();
    assert_eq!(mode_of(&folder), 0o700);
    assert_eq!(mode_of(&folder.join("journal.jsonl")), 0o600);
    assert_eq!(mode_of(&folder.join("lock")), 0o600);
}

fn mode_of(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777
}

#[test]
fn a_disk_that_takes_nothing_keeps_the_setting_as_it_is() {
    let host = Host::new();
    // A folder where the journal should be: as good as a disk that refuses.
    let mut journal = host.open().unwrap();
    fs::create_dir_all(host.folder().join("journal.previous.jsonl/x")).unwrap();
    fs::create_dir(host.file()).unwrap();
    let refused = journal.change(&key("a"), "1").unwrap_err();
    assert!(matches!(refused, JournalError::Io { .. }), "{refused}");
    assert_eq!(host.settings.state().writes, 0);
}
