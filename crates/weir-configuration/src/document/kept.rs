//! What a copy keeps of a document: all that no edit replaces or takes out, as it stands in the user's file.

use std::collections::BTreeSet;

use super::find::{Finder, Found};
use super::set::Edit;
use super::tree::{Node, Tree, Value};
use crate::SourceFile;

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

/// Finds the first value of those that are kept of which `is_foreign` says something, and what it says,
/// with the byte of the text.
///
/// What has an anchor is looked at where it stands, and so are keys that are said twice.
pub(super) fn first_foreign(
    file: &SourceFile,
    tree: &Tree,
    edits: &[Edit],
    is_foreign: &dyn Fn(&Kept<'_>) -> Option<String>,
) -> Option<(usize, String)> {
    let mut finder = Finder::new(file, tree);
    let mut gone = BTreeSet::new();
    for edit in edits {
        // An object that is to be there keeps what is in it.
        let is_kept = edit.value.as_deref() == Some("{}");
        if let (Ok(Found::There(place)), false) = (finder.find(&edit.at), is_kept) {
            gone.insert(place_of(place.node));
        }
    }
    let search = Search { gone, is_foreign };
    search.below(&tree.root, ["", ""], tree.root.span.start)
}

struct Search<'s> {
    gone: BTreeSet<(usize, usize, bool)>,
    is_foreign: &'s dyn Fn(&Kept<'_>) -> Option<String>,
}

impl Search<'_> {
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
        if let Some(what) = (self.is_foreign)(&kept) {
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
