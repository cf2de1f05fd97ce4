//! Visits all values of a document, and finds their byte ranges.

use std::ops::Range;

use serde_json::Value as Json;

use super::find::{Finder, Lookup};
use super::pointer::Pointer;
use super::tree::Tree;
use crate::SourceFile;

/// A visit of all values.
pub struct Visit;

impl Visit {
    /// Calls `tell` with each value and its pointer, outer values first.
    pub fn all(value: &Json, tell: &mut dyn FnMut(&Pointer, &Json)) {
        Visit::below(&Pointer::default(), value, tell);
    }

    fn below(at: &Pointer, value: &Json, tell: &mut dyn FnMut(&Pointer, &Json)) {
        tell(at, value);
        match value {
            Json::Object(map) => {
                map.iter().for_each(|(key, value)| Visit::below(&at.child(key), value, tell));
            }
            Json::Array(list) => {
                list.iter()
                    .enumerate()
                    .for_each(|(index, value)| Visit::below(&at.child(index), value, tell));
            }
            _ => {}
        }
    }
}

/// Returns the byte range of a value; `0..0` if it is not there.
pub(super) fn span_of(file: &SourceFile, tree: &Tree, at: &Pointer) -> Range<usize> {
    match Finder::new(file, tree).find(at) {
        Ok(Lookup::There(place)) => place.node.span.clone(),
        _ => 0..0,
    }
}
