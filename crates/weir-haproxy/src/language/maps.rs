//! Values that rules write and read, and the files of maps and patterns in which they look values up.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use weir_configuration::Source;
use weir_configuration::place::bytes;

use super::paths::Bases;
use super::sections::Tree;

/// A value: None if it cannot be determined, `Some(None)` if there is none.
pub(super) type Value = Option<Option<String>>;

/// Values that rules have written, by `target`, `method`, `hdr NAME` in lower case and `var NAME`.
#[derive(Clone, Default)]
pub(super) struct Rewritten {
    values: BTreeMap<String, Value>,
    /// True if a program has handled the request: any value that no rule has written since is unknown.
    is_open: bool,
}

impl Rewritten {
    /// Returns a value that a rule has written; None if no rule has written it.
    pub(super) fn get(&self, key: &str) -> Option<Value> {
        self.values.get(key).cloned().or_else(|| self.is_open.then_some(None))
    }

    pub(super) fn insert(&mut self, key: String, value: Value) {
        self.values.insert(key, value);
    }

    /// Makes all values unknown, after a program has handled the request.
    pub(super) fn open(&mut self) {
        self.values.clear();
        self.is_open = true;
    }
}

/// Rules that change the contents of maps and lists of patterns.
const WRITERS: [&str; 4] = ["set-map(", "del-map(", "add-acl(", "del-acl("];

/// Files of maps and patterns, each read once.
pub(super) struct Files {
    folder: PathBuf,
    /// True if some rule changes the contents that such files give.
    are_written: bool,
    read: RefCell<BTreeMap<String, Option<Rc<str>>>>,
}

impl Files {
    pub(super) fn of(source: &Source, tree: &Tree<'_>) -> Files {
        let mut all = tree.sections.iter().flat_map(|it| &it.statements);
        Files {
            folder: Bases::of(source, tree).folder,
            are_written: all
                .any(|it| it.has(|word| WRITERS.iter().any(|writer| word.starts_with(writer)))),
            read: RefCell::default(),
        }
    }

    /// Returns the lines of a file without comments and empty lines; None if it cannot be read, or if a rule may have
    /// changed its contents.
    pub(super) fn lines(&self, file: &str) -> Option<Rc<str>> {
        let mut read = self.read.borrow_mut();
        let text = read.entry(file.to_owned()).or_insert_with(|| {
            let text = String::from_utf8(bytes(&self.folder.join(file)).ok()?).ok()?;
            let lines = text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'));
            Some(lines.collect::<Vec<_>>().join("\n").into())
        });
        text.clone().filter(|_| !self.are_written)
    }
}

/// Splits a text into a name and its argument in brackets, empty if it has none. None if the brackets are not closed.
pub(super) fn call(text: &str) -> Option<(&str, &str)> {
    match text.split_once('(') {
        Some((name, argument)) => Some((name, argument.strip_suffix(')')?)),
        None => Some((text, "")),
    }
}
