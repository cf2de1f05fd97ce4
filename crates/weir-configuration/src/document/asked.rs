//! What answers a request that comes in at a listener of a document.

use std::ops::Range;

use serde_json::Value as Json;

use super::find::get;
use super::listening::{Listening, Missing};
use super::pointer::Pointer;
use super::tree::Tree;
use super::walk::span_of;
use crate::answer::Answer;
use crate::asked::{Door, Map, Request, Spot, Way};
use crate::place::line_and_column;
use crate::{Listener, Source};

/// A document that was read: its file, its text as a tree, and what it means.
pub(super) type Parts<'a> = (&'a Source, &'a Tree, &'a Json);

/// How a dialect finds the way of a request that comes in at a listener.
type FindWay = fn(&Document<'_>, usize, &Request<'_>) -> Way;

/// A document as ways are looked up in it.
pub(super) struct Document<'a> {
    source: &'a Source,
    tree: &'a Tree,
    pub(super) json: &'a Json,
    pub(super) found: Vec<Listening>,
    doors: Vec<Door>,
    missing: &'static Missing,
    find_way: FindWay,
}

impl<'a> Document<'a> {
    pub(super) fn new(
        (source, tree, json): Parts<'a>,
        found: Vec<Listening>,
        missing: &'static Missing,
        find_way: FindWay,
    ) -> Document<'a> {
        let file = &source.files[0];
        let group = |one: &Listening| found.iter().position(|other| other.server == one.server);
        let doors = found.iter().enumerate().map(|(index, one)| {
            let at = span_of(file, tree, &one.at).start;
            Door {
                listener: Listener {
                    file: file.path.clone(),
                    line: line_and_column(&file.text, at).0,
                    address: one.address.clone(),
                    port: one.port,
                    tls: one.tls,
                },
                at: (0, at),
                last_port: None,
                group: group(one).unwrap_or(index),
                first: index,
                is_udp: one.udp,
                is_either: false,
                is_inner: false,
            }
        });
        Document {
            source,
            tree,
            json,
            doors: doors.collect(),
            found,
            missing,
            find_way,
        }
    }

    /// All its listeners.
    pub(super) fn listeners(&self) -> Vec<Listener> {
        self.doors
            .iter()
            .map(|door| door.listener.clone())
            .collect()
    }

    /// Where a value stands: file, and byte of its text.
    pub(super) fn place(&self, at: &Pointer) -> (usize, usize) {
        (0, span_of(&self.source.files[0], self.tree, at).start)
    }

    /// A value with its place.
    pub(super) fn spot(&self, at: &Pointer, name: impl Into<String>) -> Spot {
        let span: Range<usize> = span_of(&self.source.files[0], self.tree, at);
        Spot {
            pointer: at.to_string(),
            ..Spot::new(self.source, 0, span, name.into())
        }
    }
}

impl Map for Document<'_> {
    fn source(&self) -> &Source {
        self.source
    }

    fn doors(&self) -> &[Door] {
        &self.doors
    }

    fn missing(&self, tls: bool) -> &'static str {
        match tls {
            true => self.missing.tls,
            false => self.missing.clear,
        }
    }

    fn without_any(&self) -> &'static str {
        let discovered = Pointer::parse("/dynamic_resources/lds_config");
        match get(self.json, &discovered) {
            Some(_) => "listeners of `lds_config` are not read: write them into static_resources",
            None => self.missing.hint,
        }
    }

    fn way(&self, door: usize, request: &Request<'_>) -> Way {
        (self.find_way)(self, door, request)
    }
}

/// The answer of a status as documents have it: a number, or text with one.
pub(super) fn of_status(status: Option<&Json>, otherwise: u16) -> Answer {
    let number = match status {
        Some(Json::String(text)) => text.parse().ok(),
        Some(number) => number
            .as_u64()
            .and_then(|number| u16::try_from(number).ok()),
        None => Some(otherwise),
    };
    number.map_or(Answer::Unknown, Answer::of_status)
}
