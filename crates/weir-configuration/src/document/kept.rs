//! What a copy keeps of a document: all that no edit replaces or takes out, as it stands in the user's file.

use std::collections::BTreeSet;

use super::find::{Finder, Found};
use super::set::Edit;
use super::tree::{Node, Tree, Value};
use crate::place::{LEAVE_OUT, error};
use crate::{ConfigurationError, SourceFile};

/// A value that is kept.
pub(super) struct Kept<'n> {
    /// The key that it stands behind, or that of the list that it is in.
    pub(super) key: &'n str,
    /// The key of what that is in.
    pub(super) outer: &'n str,
    /// Where the key begins, or the item.
    pub(super) at: usize,
    pub(super) node: &'n Node,
}

impl Kept<'_> {
    /// The text of a scalar; empty for a collection and an alias.
    pub(super) fn text(&self) -> &str {
        match &self.node.value {
            Value::Scalar { text, .. } => text,
            _ => "",
        }
    }
}

/// What a dialect knows of what its copies may keep.
pub(super) struct Known {
    /// What is foreign about a value, if anything is.
    pub(super) foreign: fn(&Kept<'_>) -> Option<String>,
    /// What to do besides leaving it out.
    pub(super) hint: &'static str,
}

/// Looks at all that no edit replaces or takes out. What has an anchor is looked at where it stands, and so are
/// keys that are said twice.
///
/// # Errors
/// The first that could ask or write something else than the copy may, with its place.
pub(super) fn check(
    file: &SourceFile,
    tree: &Tree,
    edits: &[Edit],
    known: &Known,
) -> Result<(), ConfigurationError> {
    let mut finder = Finder::new(file, tree);
    let mut gone = BTreeSet::new();
    for edit in edits {
        // An object that is to be there keeps what is in it.
        let is_kept = edit.value.as_deref() == Some("{}");
        if let (Ok(Found::There(place)), false) = (finder.find(&edit.at), is_kept) {
            gone.insert(place_of(place.node));
        }
    }
    let foreign = known.foreign;
    let search = Search { gone, foreign };
    match search.below(&tree.root, ["", ""], tree.root.span.start) {
        None => Ok(()),
        Some((at, what)) => Err(error(file, at, what).hint(format!("{LEAVE_OUT}{}", known.hint))),
    }
}

struct Search {
    gone: BTreeSet<(usize, usize, bool)>,
    foreign: fn(&Kept<'_>) -> Option<String>,
}

impl Search {
    /// The byte of the first value that is foreign, and why it is.
    fn below(&self, node: &Node, [outer, key]: [&str; 2], at: usize) -> Option<(usize, String)> {
        if self.gone.contains(&place_of(node)) {
            return None;
        }
        let kept = Kept {
            key,
            outer,
            at,
            node,
        };
        if let Some(what) = (self.foreign)(&kept) {
            return Some((kept.at, what));
        }
        match &node.value {
            Value::Map { entries, .. } => entries.iter().find_map(|entry| {
                self.below(
                    &entry.value,
                    [key, entry.key.as_str()],
                    entry.key_span.start,
                )
            }),
            Value::List(items) => items
                .iter()
                .find_map(|item| self.below(item, [outer, key], item.span.start)),
            Value::Scalar { .. } | Value::Alias(_) => None,
        }
    }
}

/// A list in block style begins where its first item does, and may end there too.
fn place_of(node: &Node) -> (usize, usize, bool) {
    let is_list = matches!(node.value, Value::List(_));
    (node.span.start, node.span.end, is_list)
}
