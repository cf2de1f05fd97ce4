//! All values of a document, and the lines that they stand on.

use serde_json::Value as Json;

use super::find::{Finder, Found};
use super::pointer::Pointer;
use super::tree::Tree;
use crate::SourceFile;
use crate::place::line_and_column;

/// A visit of all values.
pub(super) struct Visit;

impl Visit {
    /// Tells of each value and where it is, the outer ones first.
    pub(super) fn all(value: &Json, tell: &mut dyn FnMut(&Pointer, &Json)) {
        Visit::below(&Pointer::default(), value, tell);
    }

    fn below(at: &Pointer, value: &Json, tell: &mut dyn FnMut(&Pointer, &Json)) {
        tell(at, value);
        match value {
            Json::Object(map) => {
                map.iter()
                    .for_each(|(key, value)| Visit::below(&at.child(key), value, tell));
            }
            Json::Array(list) => {
                let items = list.iter().enumerate();
                items.for_each(|(index, value)| Visit::below(&at.child(index), value, tell));
            }
            _ => {}
        }
    }
}

/// The line of a value, counted from 1; the first where it is not there.
pub(super) fn line_of(file: &SourceFile, tree: &Tree, at: &Pointer) -> usize {
    match Finder::new(file, tree).find(at) {
        Ok(Found::There(place)) => line_and_column(&file.text, place.node.span.start).0,
        _ => 1,
    }
}
