//! Values that rules write and ask for, and the files of maps and patterns that they look them up in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use super::paths::Bases;
use super::sections::Tree;
use crate::Source;
use crate::place::bytes;

/// A value: `None` if it cannot be told, `Some(None)` if there is none.
pub(super) type Value = Option<Option<String>>;

/// Values that rules have written, by `target`, `method`, `hdr NAME` in small letters and `var NAME`.
#[derive(Clone, Default)]
pub(super) struct Rewritten {
    values: BTreeMap<String, Value>,
    /// A program has had the request in its hands: what no rule has written since may be anything.
    is_open: bool,
}

impl Rewritten {
    /// `None`: no rule has written it.
    pub(super) fn get(&self, key: &str) -> Option<Value> {
        let written = self.values.get(key).cloned();
        written.or_else(|| self.is_open.then_some(None))
    }

    pub(super) fn insert(&mut self, key: String, value: Value) {
        self.values.insert(key, value);
    }

    /// Leaves everything to a program.
    pub(super) fn open(&mut self) {
        self.values.clear();
        self.is_open = true;
    }
}

/// Rules that write into what maps and lists of patterns hold.
const WRITERS: [&str; 4] = ["set-map(", "del-map(", "add-acl(", "del-acl("];

/// Files of maps and patterns, each read once.
pub(super) struct Files {
    folder: PathBuf,
    /// Some rule writes into what such files give.
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

    /// A file without comments and empty lines; `None`: it cannot be read, or its content may be another one.
    pub(super) fn lines(&self, file: &str) -> Option<Rc<str>> {
        let mut read = self.read.borrow_mut();
        let text = read.entry(file.to_owned()).or_insert_with(|| {
            let text = String::from_utf8(bytes(&self.folder.join(file)).ok()?).ok()?;
            let lines = text.lines().map(str::trim);
            let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
            Some(lines.collect::<Vec<_>>().join("\n").into())
        });
        text.clone().filter(|_| !self.are_written)
    }
}

/// A name and its argument in brackets, empty if it has none; `None`: they are not closed.
pub(super) fn call(text: &str) -> Option<(&str, &str)> {
    match text.split_once('(') {
        Some((name, argument)) => Some((name, argument.strip_suffix(')')?)),
        None => Some((text, "")),
    }
}
