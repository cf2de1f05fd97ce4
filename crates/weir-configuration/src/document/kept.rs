//! Checks the parts of a document that a copy keeps: everything that no edit replaces or takes out, as it stands in the
//! user's file.

use std::collections::BTreeSet;

use super::find::{Finder, Lookup};
use super::set::Edit;
use super::tree::{Node, Tree, Value, camel, position};
use crate::place::{LEAVE_OUT, error};
use crate::{ConfigurationError, SourceFile};

/// A value that is kept.
pub struct RetainedValue<'n> {
    /// Key of the value, or of the list that the value is in.
    pub key: &'n str,
    /// Key of the object that contains `key`.
    pub outer: &'n str,
    /// Byte offset at which the key, or the item of a list, begins.
    pub at: usize,
    pub node: &'n Node,
}

impl RetainedValue<'_> {
    /// Returns the text of a scalar; empty for a collection and an alias.
    pub fn text(&self) -> &str {
        match &self.node.value {
            Value::Scalar { text, .. } => text,
            _ => "",
        }
    }

    /// Returns true if the key is one of a list, in either spelling; `, ` separates the names.
    pub fn is(&self, names: &str) -> bool {
        names.split(", ").any(|name| self.key == name || self.key == camel(name))
    }

    /// Returns true for an object with a key, in either spelling.
    pub fn has(&self, name: &str) -> bool {
        match &self.node.value {
            Value::Map { entries, .. } => position(entries, name).is_some(),
            _ => false,
        }
    }
}

/// Rules of a dialect about the values that its copies may keep.
pub struct ForeignCheck {
    /// Returns the reason why a copy must not keep a value; None if it may.
    pub foreign: fn(&RetainedValue<'_>) -> Option<String>,
    /// Hint in addition to leaving the value out.
    pub hint: &'static str,
}

/// Checks everything that no edit replaces or takes out. A value with an anchor is checked where it stands, and so are
/// keys that occur twice.
///
/// # Errors
/// Returns an error for the first value that could contact or write something that a copy must not, with its place.
pub fn check(
    file: &SourceFile,
    tree: &Tree,
    edits: &[Edit],
    known: &ForeignCheck,
) -> Result<(), ConfigurationError> {
    let mut finder = Finder::new(file, tree);
    let mut replaced = BTreeSet::new();
    for edit in edits {
        // An object that is to be there keeps what is in it.
        let is_kept = edit.value.as_deref() == Some("{}");
        if let (Ok(Lookup::There(place)), false) = (finder.find(&edit.at), is_kept) {
            replaced.insert(place_of(place.node));
        }
    }
    let foreign = known.foreign;
    let search = Search { gone: replaced, foreign };
    match search.below(&tree.root, ["", ""], tree.root.span.start) {
        None => Ok(()),
        Some((at, what)) => Err(error(file, at, what).hint(format!("{LEAVE_OUT}{}", known.hint))),
    }
}

struct Search {
    gone: BTreeSet<(usize, usize, bool)>,
    foreign: fn(&RetainedValue<'_>) -> Option<String>,
}

impl Search {
    /// Returns the byte offset of the first foreign value, and the reason why it is foreign.
    fn below(&self, node: &Node, [outer, key]: [&str; 2], at: usize) -> Option<(usize, String)> {
        if self.gone.contains(&place_of(node)) {
            return None;
        }
        let part = RetainedValue { key, outer, at, node };
        if let Some(what) = (self.foreign)(&part) {
            return Some((part.at, what));
        }
        match &node.value {
            Value::Map { entries, .. } => entries.iter().find_map(|entry| {
                self.below(&entry.value, [key, entry.key.as_str()], entry.key_span.start)
            }),
            Value::List(items) => {
                items.iter().find_map(|item| self.below(item, [outer, key], item.span.start))
            }
            Value::Scalar { .. } | Value::Alias(_) => None,
        }
    }
}

/// Returns the key that identifies a node: its byte range, and true for a list. A list in block style begins where its
/// first item does, and may also end there.
fn place_of(node: &Node) -> (usize, usize, bool) {
    let is_list = matches!(node.value, Value::List(_));
    (node.span.start, node.span.end, is_list)
}
