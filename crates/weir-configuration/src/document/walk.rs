//! Visits all values of a document, and finds their byte ranges.

use std::ops::Range;

use serde_json::Value as Json;

use super::find::{Finder, Lookup};
use super::pointer::Pointer;
use super::tree::Tree;
use crate::SourceFile;

/// Calls `visit` with each value and its pointer, outer values first.
pub fn visit_all(value: &Json, visit: &mut dyn FnMut(&Pointer, &Json)) {
    visit_below(&Pointer::default(), value, visit);
}

fn visit_below(at: &Pointer, value: &Json, visit: &mut dyn FnMut(&Pointer, &Json)) {
    visit(at, value);
    match value {
        Json::Object(map) => {
            map.iter().for_each(|(key, value)| visit_below(&at.child(key), value, visit));
        }
        Json::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(index, value)| visit_below(&at.child(index), value, visit));
        }
        _ => {}
    }
}

/// Returns the byte range of a value; `0..0` if it is not there.
pub(super) fn span_of(file: &SourceFile, tree: &Tree, at: &Pointer) -> Range<usize> {
    match Finder::new(file, tree).find(at) {
        Ok(Lookup::There(place)) => place.node.span.clone(),
        _ => 0..0,
    }
}
