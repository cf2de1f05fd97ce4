//! Tests of the journal on simulated settings, to which anything may be done.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use tempfile::TempDir;

use super::settings::SettingError;
use super::*;

mod files;
mod killed;
mod sequences;
mod trust;

/// Settings of a simulated host.
#[derive(Debug, Clone, Default)]
struct Fake(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    values: BTreeMap<String, String>,
    /// Number of accesses to the kernel left before weir is dead; `None` if it is alive.
    steps: Option<usize>,
    writes: usize,
}

impl Fake {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Sets a value as somebody else would.
    fn set(&self, key: &Key, value: &str) {
        self.state().values.insert(key.to_string(), value.to_owned());
    }

    fn get(&self, key: &Key) -> String {
        self.state().values[&key.to_string()].clone()
    }

    /// Returns the values of `a`, `b` and `c`.
    fn all(&self) -> String {
        ["a", "b", "c"].map(|name| self.get(&key(name))).join(" ")
    }

    fn remove(&self, key: &Key) {
        self.state().values.remove(&key.to_string());
    }

    fn kill_after(&self, steps: usize) {
        self.state().steps = Some(steps);
    }

    fn revive(&self) {
        self.state().steps = None;
    }

    fn boxed(&self) -> Box<dyn Settings> {
        Box::new(self.clone())
    }
}

impl State {
    /// Counts an access to the kernel; fails if weir is dead. A dead weir cannot write to the journal either: each line
    /// follows or precedes an access that has just failed.
    fn step(&mut self) -> Result<(), SettingError> {
        match &mut self.steps {
            Some(0) => Err(SettingError::Refused("weir is dead".to_owned())),
            Some(steps) => {
                *steps -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Settings for Fake {
    fn read(&self, key: &Key) -> Result<String, SettingError> {
        let mut state = self.state();
        state.step()?;
        let value = state.values.get(&key.to_string());
        value.cloned().ok_or(SettingError::Absent)
    }

    /// Accepts all values unchanged, but rounds those that begin with `~` and refuses `!`.
    fn write(&self, key: &Key, value: &str) -> Result<(), SettingError> {
        let mut state = self.state();
        state.step()?;
        state.writes += 1;
        if value == "!" {
            return Err(SettingError::Refused("Invalid argument".to_owned()));
        }
        let stored = if value.starts_with('~') { "rounded" } else { value };
        let present = state.values.get_mut(&key.to_string());
        *present.ok_or(SettingError::Absent)? = stored.replace(' ', "\t");
        Ok(())
    }

    fn has_row(&self, key: &Key) -> bool {
        ["fake.a", "fake.b", "fake.c", "net.fake"].contains(&&*key.to_string())
    }
}

fn key(name: &str) -> Key {
    Key::Sysctl(format!("fake.{name}"))
}

struct Host {
    folder: TempDir,
    settings: Fake,
}

impl Host {
    /// Creates a host with settings `a`, `b` and `c`, all `0`.
    fn new() -> Host {
        let settings = Fake::default();
        for name in ["a", "b", "c"] {
            settings.set(&key(name), "0");
        }
        let folder = tempfile::tempdir().unwrap();
        Host { folder, settings }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self) -> PathBuf {
        self.folder().join("journal.jsonl")
    }

    fn open(&self) -> Result<Journal, JournalError> {
        Journal::open_with(self.folder(), "a test", self.settings.boxed())
    }

    /// Ends a weir as SIGKILL does: it does nothing more, and its lock is free.
    fn kill(&self, journal: Journal) {
        self.settings.kill_after(0);
        drop(journal);
        self.settings.revive();
    }

    /// Opens a journal that has given these settings these values.
    fn changed(&self, values: &[(&str, &str)]) -> Journal {
        let mut journal = self.open().unwrap();
        for (name, value) in values {
            journal.change(&key(name), value).unwrap();
        }
        journal
    }

    fn pending(&self) -> Vec<Restored> {
        let pending = pending_with(self.folder(), &self.settings);
        pending.unwrap().settings
    }

    fn restore(&self) -> Vec<(String, Outcome)> {
        let restored = restore_with(self.folder(), &self.settings).unwrap();
        outcomes(restored)
    }
}

fn outcomes(restored: Vec<Restored>) -> Vec<(String, Outcome)> {
    restored.into_iter().map(|setting| (setting.key.to_string(), setting.outcome)).collect()
}

fn put_back(name: &str) -> (String, Outcome) {
    (format!("fake.{name}"), Outcome::PutBack)
}

fn differs(found: &str) -> Outcome {
    Outcome::Differs { found: found.to_owned() }
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

#[test]
fn all_is_put_back_the_last_first() {
    let host = Host::new();
    let mut journal = host.changed(&[("a", "1"), ("b", "2"), ("a", "3")]);
    assert_eq!(host.settings.all(), "3 2 0");
    let restored = journal.restore();
    assert_eq!(restored[1].before, "0");
    assert_eq!(restored[1].given, ["1", "3"]);
    assert_eq!(outcomes(restored), [put_back("b"), put_back("a")]);
    assert_eq!(host.settings.all(), "0 0 0");
    assert_eq!(journal.restore(), []);
    // The same journal goes on.
    journal.change(&key("a"), "1").unwrap();
    drop(journal);
    assert_eq!(host.settings.get(&key("a")), "0");
    assert_eq!(host.pending(), []);
}

#[test]
fn what_was_announced_is_switched_without_the_disk() {
    let host = Host::new();
    let mut journal = host.open().unwrap();
    let levels = texts(&["1", "2", "0", "1"]);
    journal.announce(&key("a"), &levels).unwrap();
    let before = fs::read(host.file()).unwrap();
    for _ in 0..10 {
        for value in ["1", "2", "0"] {
            journal.give(&key("a"), value).unwrap();
            assert_eq!(host.settings.get(&key("a")), value);
        }
    }
    journal.announce(&key("a"), &texts(&["2"])).unwrap();
    journal.change(&key("a"), "2").unwrap();
    assert_eq!(fs::read(host.file()).unwrap(), before);
    for (key, value) in [(key("a"), "3"), (key("b"), "1")] {
        let refused = journal.give(&key, value);
        let refused = matches!(refused, Err(JournalError::NotAnnounced { .. }));
        assert!(refused, "{key}");
    }
    assert_eq!(outcomes(journal.restore()), [put_back("a")]);
}

#[test]
fn a_value_of_somebody_elses_is_left_alone_and_told_of_once() {
    let host = Host::new();
    let mut journal = host.changed(&[("a", "1"), ("b", "1")]);
    host.settings.set(&key("a"), "theirs");
    let refused = journal.change(&key("a"), "2").unwrap_err();
    let words = "somebody else has changed fake.a: it was `0`, weir gave it `1` or `2`, and it is `theirs` now";
    assert_eq!(refused.to_string(), words);
    let hint = "its value before is set by: sysctl -w fake.a=0";
    assert_eq!(refused.hint().unwrap(), hint);
    // Nobody is told when it is dropped, so that comes later.
    drop(journal);
    let outcome = ("fake.a".to_owned(), differs("theirs"));
    assert_eq!(outcomes(host.pending()), std::slice::from_ref(&outcome));
    assert!(matches!(host.open(), Err(JournalError::Left(1))));
    assert_eq!(host.restore(), [outcome]);
    assert_eq!(host.settings.all(), "theirs 0 0");
    assert_eq!(host.restore(), []);
    host.open().unwrap();
}

#[test]
fn a_value_that_the_kernel_rounds_or_refuses_does_not_stay() {
    let host = Host::new();
    let mut journal = host.open().unwrap();
    for (name, value, words) in [
        ("a", "~7", "fake.a was set to `~7` and became `rounded`"),
        ("b", "!", "cannot give the value `!` to fake.b: Invalid argument"),
        ("none", "1", "there is no setting fake.none here"),
    ] {
        let refused = journal.change(&key(name), value).unwrap_err();
        assert_eq!(refused.to_string(), words);
    }
    assert_eq!(host.settings.get(&key("a")), "0");
    let already = ["b", "a"].map(|name| (format!("fake.{name}"), Outcome::Already));
    assert_eq!(outcomes(journal.restore()), already);
}

#[test]
fn values_are_compared_without_regard_to_blanks() {
    let host = Host::new();
    host.settings.set(&key("a"), "4096\t87380\t6291456");
    let mut journal = host.open().unwrap();
    journal.change(&key("a"), "4096 16384  65536").unwrap();
    assert_eq!(host.settings.get(&key("a")), "4096\t16384\t\t65536");
    let restored = journal.restore().remove(0);
    assert_eq!(restored.before, "4096 87380 6291456");
    assert_eq!(restored.outcome, Outcome::PutBack);
    // As the kernel had told it.
    assert_eq!(host.settings.get(&key("a")), "4096\t87380\t6291456");
    let command = put_back_command(&restored.key, &restored.before);
    assert_eq!(command, "sysctl -w fake.a='4096 87380 6291456'");
}

#[test]
fn a_setting_that_is_no_more_is_done_with() {
    let host = Host::new();
    let journal = host.changed(&[("a", "1")]);
    host.settings.remove(&key("a"));
    host.kill(journal);
    assert_eq!(host.restore(), [("fake.a".to_owned(), Outcome::Gone)]);
    assert_eq!(host.restore(), []);
}

#[test]
fn what_cannot_be_put_back_is_tried_again() {
    let host = Host::new();
    let mut journal = host.changed(&[("a", "1"), ("b", "1")]);
    host.settings.kill_after(3);
    let restored = outcomes(journal.restore());
    let words = "weir is dead".to_owned();
    let failed = ("fake.a".to_owned(), Outcome::Failed { words });
    assert_eq!(restored[1], failed);
    host.kill(journal);
    assert_eq!(host.restore(), [put_back("a")]);
    assert_eq!(host.settings.get(&key("a")), "0");
}

#[test]
fn a_network_setting_is_not_taken_for_that_of_another_namespace() {
    let host = Host::new();
    let key = Key::Sysctl("net.fake".to_owned());
    host.settings.set(&key, "0");
    let link = fs::read_link("/proc/self/ns/net").unwrap();
    let mut journal = host.open().unwrap();
    journal.change(&key, "1").unwrap();
    host.kill(journal);
    let text = fs::read_to_string(host.file()).unwrap();
    let namespace = link.to_str().unwrap();
    assert!(text.contains(namespace), "{text}");
    fs::write(host.file(), text.replace(namespace, "net:[1]")).unwrap();
    assert_eq!(host.restore(), [("net.fake".to_owned(), Outcome::Gone)]);
    assert_eq!(host.settings.get(&key), "1", "it is another setting");
}

#[test]
fn one_weir_at_a_time() {
    let host = Host::new();
    let journal = host.open().unwrap();
    let text = host.open().unwrap_err().to_string();
    let pid = std::process::id();
    let words = format!("another weir is using the settings of this host: process {pid}, since 2");
    assert!(text.starts_with(&words) && text.ends_with(", for a test"), "{text}");
    let refused = restore_with(host.folder(), &host.settings);
    assert!(matches!(refused, Err(JournalError::Held(_))));
    let pending = pending_with(host.folder(), &host.settings).unwrap();
    assert_eq!((pending.held, pending.holder.unwrap().pid), (true, pid));
    drop(journal);
    host.open().unwrap();
}

#[test]
fn journals_have_one_place_for_each_user() {
    let (variable, state) = (("WEIR_JOURNAL", "/j"), ("XDG_STATE_HOME", "/state"));
    let home = Some("/home/u");
    #[rustfmt::skip]
    let rows = [
        (&[variable, state][..], true, home, "/j"),
        (&[variable][..], false, home, "/j"),
        (&[("WEIR_JOURNAL", ""), state][..], true, home, "/var/lib/weir/journal"),
        (&[state][..], false, home, "/state/weir/journal"),
        (&[("XDG_STATE_HOME", "state")][..], false, home, "/home/u/.local/state/weir/journal"),
        (&[][..], false, home, "/home/u/.local/state/weir/journal"),
        (&[][..], false, None, "/var/lib/weir/journal"),
    ];
    for (set, is_root, home, expected) in rows {
        let folder = default_folder(
            |name| {
                let variable = set.iter().find(|(set, _)| *set == name);
                variable.map(|(_, value)| PathBuf::from(value))
            },
            is_root,
            home.map(PathBuf::from),
        );
        assert_eq!(folder, Path::new(expected));
    }
}
