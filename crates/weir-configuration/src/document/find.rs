//! Finds values in a document by pointer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::pointer::Pointer;
use super::tree::{Node, Tree, Value, camel, position};
use crate::place::error;
use crate::{ConfigurationError, SourceFile};

/// Token of a pointer that stands for the item behind the last one of a list (RFC 6901).
pub(super) const BEHIND: &str = "-";

/// Token of a pointer that stands for the first item of a list. It also stands for an object itself in place of a list,
/// which Envoy reads as a list of one (`clusters: {name: app}`).
const FIRST: &str = "0";

/// Returns the value at a pointer, in either spelling of Envoy's fields.
pub fn get<'d>(document: &'d Json, at: &Pointer) -> Option<&'d Json> {
    at.tokens().iter().try_fold(document, |value, token| match value {
        Json::Array(items) => items.get(token.parse::<usize>().ok()?),
        value if token == FIRST => Some(field(value, token).unwrap_or(value)),
        value => field(value, token),
    })
}

/// Returns the text at a pointer.
pub fn text(document: &Json, at: impl Into<Pointer>) -> Option<&str> {
    get(document, &at.into()).and_then(Json::as_str)
}

/// Returns true if the value at a pointer is `true`.
pub fn is_true(document: &Json, at: impl Into<Pointer>) -> bool {
    get(document, &at.into()) == Some(&Json::Bool(true))
}

/// Returns pointers to the items of a list, or to the one object in place of a list.
pub fn items(document: &Json, at: impl Into<Pointer>) -> Vec<Pointer> {
    let at = at.into();
    let count = match get(document, &at) {
        Some(Json::Array(items)) => items.len(),
        Some(Json::Object(_)) => 1,
        _ => 0,
    };
    (0..count).map(|index| at.child(index)).collect()
}

/// Returns the value of a key, in either spelling.
pub fn field<'d>(value: &'d Json, name: &str) -> Option<&'d Json> {
    value.get(name).or_else(|| value.get(camel(name)))
}

/// Returns true if a value is a constant of an enumeration, by its name or number. Envoy's reader of JSON takes names
/// in any case, with dashes for underscores (`case_insensitive_enum_parsing` of protobuf).
pub fn is_constant(value: &Json, name: &str, number: u64) -> bool {
    value.as_u64() == Some(number)
        || value.as_str().is_some_and(|text| text.replace('-', "_").eq_ignore_ascii_case(name))
}

/// Result of following a pointer.
pub(super) enum Lookup<'n> {
    /// A value is there, in this place.
    There(NodePosition<'n>),
    /// No value is there: the deepest value on the way, and the number of steps that lead to it.
    Missing(NodePosition<'n>, usize),
}

/// A value, and the collection that it is in with its index there.
#[derive(Clone, Copy)]
pub(super) struct NodePosition<'n> {
    pub(super) node: &'n Node,
    pub(super) holder: Option<(&'n Node, usize)>,
}

/// Finds values, and keeps track of the aliases on the way to them.
pub(super) struct Finder<'n> {
    file: &'n SourceFile,
    tree: &'n Tree,
    /// For each anchor: the positions from which changes reached its node.
    crossed: BTreeMap<usize, BTreeSet<usize>>,
}

impl<'n> Finder<'n> {
    pub(super) fn new(file: &'n SourceFile, tree: &'n Tree) -> Finder<'n> {
        Finder { file, tree, crossed: BTreeMap::new() }
    }

    /// Follows a pointer. An alias at its end is returned as the value.
    ///
    /// # Errors
    /// Returns an error if the way leads through a value that is no collection, or past the end of a list.
    pub(super) fn find(&mut self, pointer: &Pointer) -> Result<Lookup<'n>, ConfigurationError> {
        let mut current = NodePosition { node: &self.tree.root, holder: None };
        for (steps, token) in pointer.tokens().iter().enumerate() {
            let node = self.enter(current.node);
            current.node = node;
            let (next, index) = match &node.value {
                Value::Map { entries, .. } => match position(entries, token) {
                    Some(index) => (&entries[index].value, index),
                    None if token == FIRST => continue,
                    None => return Ok(Lookup::Missing(current, steps)),
                },
                Value::List(_) if token == BEHIND => return Ok(Lookup::Missing(current, steps)),
                Value::List(items) => {
                    match token.parse().ok().and_then(|i: usize| Some((items.get(i)?, i))) {
                        Some(item) => item,
                        None => {
                            let message = format!("`{}` has no item {token}", pointer.first(steps));
                            let hint = format!("it has {}, counted from 0", items.len());
                            return Err(error(self.file, node.span.start, message).hint(hint));
                        }
                    }
                }
                _ if self.tree.meaning(node).is_null() => {
                    return Ok(Lookup::Missing(current, steps));
                }
                _ => {
                    let message = format!(
                        "`{}` is not an object, so it has no `{token}`",
                        pointer.first(steps)
                    );
                    return Err(error(self.file, node.span.start, message));
                }
            };
            current = NodePosition { node: next, holder: Some((node, index)) };
        }
        Ok(Lookup::There(current))
    }

    /// Returns the node that `node` stands for, and records that its contents will be changed.
    pub(super) fn enter(&mut self, node: &'n Node) -> &'n Node {
        let anchor = match node.value {
            Value::Alias(anchor) => Some(anchor),
            _ => node.anchor,
        };
        if let Some(anchor) = anchor {
            self.crossed.entry(anchor).or_default().insert(node.span.start);
        }
        self.tree.resolve(node)
    }

    /// Checks that no value is changed in places that are not to be changed.
    ///
    /// # Errors
    /// Returns an error if a value is shared by an anchor and its aliases, and not all of them are to be changed.
    pub(super) fn check(&self) -> Result<(), ConfigurationError> {
        for (anchor, places) in &self.crossed {
            let all = self.tree.references.get(anchor).copied().unwrap_or_default();
            if places.len() < all {
                let at = places.first().copied().unwrap_or_default();
                let message = "this value is shared by an anchor and its aliases, \
                            and not all of them are to be changed";
                let hint = "write the value out where it is to differ";
                return Err(error(self.file, at, message).hint(hint));
            }
        }
        Ok(())
    }
}
